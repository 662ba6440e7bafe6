/* SPDX-License-Identifier: MIT */
/* The end of a write test that is written to: looks, counts, answers. */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/rand.h"
#include "tools/doctor/lane.h"

#define LINKS_MAX 16u
#define LOOK_EVERY_NS (20 * MST_MS) /* for link requests, while links are attached */

struct mst_write_peer {
	struct mst_write_side side;
	struct mst_net *net;
	struct mst_link_listener *listener;
	struct mst_link *link[LINKS_MAX];
	uint32_t owed[LINKS_MAX]; /* answers to pulls that there was no room for yet */
	uint32_t owed_imm[LINKS_MAX];
	uint32_t link_count;
	_Atomic bool stopped;
	mst_write_seen *seen;
	void *ctx;
};

void mst_write_fill(void *data, uint64_t seed)
{
	struct mst_rand r;
	uint8_t *out = data;

	mst_rand_seed(&r, seed);
	for (uint64_t i = 0; i < MST_WRITE_BYTES; i += sizeof(uint64_t)) {
		uint64_t word = mst_rand_next(&r);
		memcpy(out + i, &word, sizeof(word));
	}
}

uint64_t mst_write_count_wrong(const void *data, uint64_t seed)
{
	struct mst_rand r;
	const uint8_t *in = data;
	uint64_t wrong = 0;

	mst_rand_seed(&r, seed);
	for (uint64_t i = 0; i < MST_WRITE_BYTES; i += sizeof(uint64_t)) {
		uint64_t word = mst_rand_next(&r), got;
		memcpy(&got, in + i, sizeof(got));
		for (got ^= word; got != 0; got >>= 8)
			wrong += (got & 0xff) != 0;
	}
	return wrong;
}

int mst_write_net(const struct mst_write_side *side, uint32_t links_max, struct mst_net **out,
		  struct mst_reason *why)
{
	struct mst_net_cfg cfg = { .fabric = &side->fabric,
				   .channels = side->channels,
				   .links_max = links_max,
				   .spin_pauses = 20,
				   .spin_yields = 2000 };

	return side->transport->net_open(&cfg, out, why);
}

int mst_write_peer_open(const struct mst_write_side *side, struct mst_write_peer **out,
			struct mst_reason *why)
{
	struct mst_write_peer *p = calloc(1, sizeof(*p));

	mst_reason_clear(why);
	if (p == NULL)
		return -ENOMEM;
	p->side = *side;
	int rc = mst_write_net(side, LINKS_MAX, &p->net, why);
	if (rc == 0)
		rc = side->transport->listener->open(p->net, &p->listener, why);
	if (rc < 0) {
		mst_write_peer_close(p);
		return rc;
	}
	*out = p;
	return 0;
}

static void hang_up(struct mst_write_peer *p, struct mst_link *link)
{
	uint32_t i = 0;

	p->side.transport->detach(link);
	p->side.transport->link_free(link);
	while (p->link[i] != link)
		i++;
	p->link_count--;
	p->link[i] = p->link[p->link_count];
	p->owed[i] = p->owed[p->link_count];
	p->owed_imm[i] = p->owed_imm[p->link_count];
}

void mst_write_peer_close(struct mst_write_peer *p)
{
	if (p == NULL)
		return;
	while (p->link_count > 0)
		hang_up(p, p->link[0]);
	p->side.transport->listener->close(p->listener);
	p->side.transport->net_close(p->net);
	free(p);
}

const char *mst_write_peer_address(const struct mst_write_peer *p)
{
	return p->listener->address;
}

void mst_write_peer_set_card(struct mst_write_peer *p, const struct mst_write_card *card)
{
	p->side.card = *card;
}

static bool is_test(const struct mst_link_request *r, const char *token, struct mst_lanes lanes)
{
	return memcmp(r->token, token, MST_TOKEN_LEN) == 0 && r->lanes.up_bytes == lanes.up_bytes &&
	       r->lanes.down_bytes == lanes.down_bytes;
}

/* Lets in a caller that knows a token. */
static void open_listener(struct mst_write_peer *p)
{
	const struct mst_transport *t = p->side.transport;
	struct mst_link *link;
	struct mst_link_request request;
	struct mst_reason unused; /* the caller is told why it is sent away */

	if (t->listener->next_request(p->listener, &request, &unused) != 0)
		return;
	if (p->link_count == LINKS_MAX || !(is_test(&request, MST_WRITE_TOKEN, mst_write_lanes()) ||
					    is_test(&request, MST_RATE_TOKEN, mst_rate_lanes()))) {
		(void)t->listener->answer(p->listener, &request, NULL, &unused);
		return;
	}
	if (t->listener->answer(p->listener, &request, &link, &unused) != 0)
		return;
	if (t->attach(p->net, link, &unused) != 0) {
		t->link_free(link);
		return;
	}
	p->owed[p->link_count] = 0;
	p->link[p->link_count++] = link;
}

/* Gives what was pulled of link @i, as far as there is room. Return: was there? */
static bool pay(struct mst_write_peer *p, uint32_t i)
{
	struct mst_link *link = p->link[i];
	uint32_t imm = p->owed_imm[i], owed = p->owed[i];
	struct mst_put put = { .offset = MST_WRITE_DATA_AT,
			       .src = (uint8_t *)link->outbound + MST_WRITE_DATA_AT,
			       .bytes = (size_t)(imm >> MST_WRITE_IMM_SHIFT) * MST_RATE_UNIT,
			       .notify = true,
			       .imm = imm };

	/* Beyond the region it is -EINVAL, and the caller waits for what it has no right to. */
	while (p->owed[i] > 0 && p->side.transport->put(link, &put) >= 0)
		p->owed[i]--;
	return p->owed[i] < owed;
}

static void owe(struct mst_write_peer *p, const struct mst_link *link, uint32_t imm)
{
	uint32_t i = 0;

	while (p->link[i] != link)
		i++;
	p->owed_imm[i] = imm;
	p->owed[i] += p->owed[i] < 2 * MST_RATE_WINDOW;
	(void)pay(p, i);
}

static void answer(struct mst_write_peer *p, struct mst_link *link, uint32_t imm)
{
	struct mst_write_record in, out = { .magic = MST_WRITE_MAGIC, .card = p->side.card };
	struct mst_put put = {
		.src = &out, .bytes = sizeof(out.magic), .notify = true, .imm = imm
	};

	if (imm == MST_WRITE_LOOK) {
		memcpy(&in, link->inbound, sizeof(in));
		in.card.host[MST_WRITE_NAME_LEN - 1] = '\0';
		in.card.port[MST_WRITE_NAME_LEN - 1] = '\0';
		out.wrong = mst_write_count_wrong((uint8_t *)link->inbound + MST_WRITE_DATA_AT,
						  in.seed);
		put.bytes = sizeof(out);
	}
	/* A link that cannot take it is lost, which the next poll says. */
	(void)p->side.transport->put(link, &put);
	if (imm == MST_WRITE_LOOK && p->seen != NULL)
		p->seen(p->ctx, &in.card, out.wrong);
}

/* Return: did anything happen? */
static bool hear(struct mst_write_peer *p)
{
	struct mst_net_event ev[LINKS_MAX];
	int n = p->side.transport->poll(p->net, ev, LINKS_MAX);
	bool paid = false;

	for (int i = 0; i < n; i++) {
		if (ev[i].kind == MST_LOST)
			hang_up(p, ev[i].link);
		else if (ev[i].kind == MST_ARRIVED &&
			 (ev[i].imm & MST_WRITE_IMM_MASK) == MST_WRITE_PULL)
			owe(p, ev[i].link, ev[i].imm);
		else if (ev[i].kind == MST_ARRIVED)
			answer(p, ev[i].link, ev[i].imm);
	}
	for (uint32_t i = 0; i < p->link_count; i++)
		paid |= pay(p, i);
	return n > 0 || paid;
}

static void sleep_on_listener(const struct mst_write_peer *p, uint64_t timeout_ns)
{
	struct pollfd pfd = { .fd = p->side.transport->listener->fd(p->listener),
			      .events = POLLIN };

	(void)poll(&pfd, 1, (int)(timeout_ns / MST_MS));
}

void mst_write_peer_serve(struct mst_write_peer *p, uint64_t until_ns, mst_write_seen *seen,
			  void *ctx)
{
	uint64_t look_ns = 0;

	p->seen = seen;
	p->ctx = ctx;
	while (!atomic_load_explicit(&p->stopped, memory_order_relaxed)) {
		uint64_t now = mst_now_ns();
		if (now >= until_ns)
			return;
		if (now >= look_ns) {
			open_listener(p);
			look_ns = now + LOOK_EVERY_NS;
		}
		if (hear(p))
			continue;
		if (p->link_count > 0) {
			(void)p->side.transport->wait(p->net, LOOK_EVERY_NS);
		} else {
			sleep_on_listener(p, LOOK_EVERY_NS);
			look_ns = 0;
		}
	}
}

void mst_write_peer_stop(struct mst_write_peer *p)
{
	atomic_store_explicit(&p->stopped, true, memory_order_relaxed);
	p->side.transport->wake(p->net);
}
