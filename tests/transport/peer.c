/* SPDX-License-Identifier: MIT */
/* What a peer does. How it lives: life.c, life_sim.c. */
#include "tests/transport/peer.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/clock.h"
#include "common/base/rand.h"

struct mst_fabric peer_fabric = MST_FABRIC_DEFAULT;
struct mst_channels peer_channels;
bool peer_polls;
struct mst_net *peer_tester;

void pattern(uint8_t *out, size_t bytes, uint64_t seed)
{
	struct mst_rand r;

	mst_rand_seed(&r, seed);
	for (size_t i = 0; i < bytes; i += 8) {
		uint64_t word = mst_rand_next(&r);
		memcpy(out + i, &word, bytes - i < 8 ? bytes - i : 8);
	}
}

bool pattern_is(const void *at, size_t bytes, uint64_t seed)
{
	uint8_t *want = malloc(bytes + 1);
	bool same = want != NULL;

	if (same) {
		pattern(want, bytes, seed);
		same = memcmp(at, want, bytes) == 0;
	}
	free(want);
	return same;
}

/* Message @i of a storm: how long it is, and where it is cut into a silent and a notifying put. */
struct message {
	size_t offset, bytes, cut;
	uint64_t seed;
};

static struct message message_of(uint64_t seed, uint64_t i, uint32_t credits)
{
	struct mst_rand r;
	struct message m = { .offset = i % (3 * credits) * STORM_CELL, .seed = seed + i };

	mst_rand_seed(&r, ~m.seed);
	m.bytes = mst_rand_below(&r, STORM_CELL + 1);
	m.cut = mst_rand_below(&r, m.bytes + 1);
	return m;
}

/* Sends message @i: 1, or what put() says. */
static int storm_send(const struct storm *s, uint64_t i, uint32_t credits)
{
	struct message m = message_of(s->out_seed, i, credits);
	uint8_t buffer[STORM_CELL + 8];
	struct mst_put first = { .offset = m.offset, .src = buffer, .bytes = m.cut };
	struct mst_put rest = { .offset = m.offset + m.cut,
				.src = buffer + m.cut,
				.bytes = m.bytes - m.cut,
				.notify = true,
				.imm = (uint32_t)i };

	pattern(buffer, m.bytes, m.seed);
	int rc = s->link->ops->put(s->link, &first);
	return rc == 1 ? s->link->ops->put(s->link, &rest) : rc;
}

/* Checks whatever has come. 0; -EBADMSG; or why the link was lost. */
static int storm_receive(const struct storm *s, uint64_t *received, uint32_t credits)
{
	struct mst_net_event ev[4];
	int n = s->net->ops->poll(s->net, ev, credits < 4 ? (int)credits : 4);

	for (int i = 0; i < n; i++) {
		if (ev[i].kind == MST_LOST)
			return ev[i].error;
		struct message m = message_of(s->in_seed, *received, credits);
		if (ev[i].kind != MST_ARRIVED || ev[i].imm != (uint32_t)*received ||
		    !pattern_is((uint8_t *)s->link->inbound + m.offset, m.bytes, m.seed))
			return -EBADMSG;
		++*received;
	}
	return 0;
}

int storm(const struct storm *s)
{
	uint32_t credits = s->link->lanes.up_credits; /* of both lanes */
	uint64_t sent = 0, received = 0;
	uint64_t give_up = mst_now_ns() + PEER_PATIENCE_S * MST_SECOND;

	while (sent < s->count || received < s->count) {
		uint64_t before = sent + received;
		int rc = sent < s->count ? storm_send(s, sent, credits) : -EAGAIN;
		if (rc < 0 && rc != -EAGAIN)
			return rc;
		sent += rc == 1;
		rc = storm_receive(s, &received, credits);
		if (rc < 0)
			return rc;
		/* Nothing rings when credits come back, so a side that lacks them looks again
		 * soon. */
		if (before == sent + received)
			s->net->ops->wait(s->net, sent < s->count ? MST_MS : 100 * MST_MS);
		if (mst_now_ns() > give_up)
			return -ETIME;
	}
	return 0;
}

static int open_net(struct side *side, const struct peer_command *c)
{
	struct mst_net_cfg cfg = { .published_bytes = c->order == PEER_LISTEN ? c->bytes : 0,
				   .fabric = &peer_fabric,
				   .channels = peer_channels,
				   .links_max = 2,
				   .views = c->views,
				   .look_ns = PEER_LOOK_NS_OF(side->t),
				   .spin_pauses = c->restless ? 0 : 1000,
				   .spin_yields = c->restless ? 0 : 10 };

	return side->net != NULL ? 0 : side->t->net_open(&cfg, &side->net, &side->why);
}

static bool is_unwanted(void *until_ns)
{
	return mst_now_ns() >= *(const uint64_t *)until_ns;
}

#define UNTOUCHED 0xa5

static int prepare_export(struct side *side, const struct peer_command *c, struct mst_export *out)
{
	if (side->own == NULL)
		side->own = malloc(PEER_OWN_BYTES);
	if (side->own == NULL)
		return -ENOMEM;
	memset(side->own, UNTOUCHED, PEER_OWN_BYTES);
	int rc = 0;
	if (side->region == NULL)
		rc = mst_region_register(&side->net->domain, side->own, PEER_OWN_BYTES,
					 &side->region, &side->why);
	*out = (struct mst_export){ side->region, PEER_OWN_FROM, c->bytes, c->offset };
	return rc;
}

static bool is_untouched(const uint8_t *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (at[i] != UNTOUCHED)
			return false;
	return true;
}

/* What the peer was let write is as it should be, and all around it as it was; nor may it be taken
 * away while the link is there. */
static int check_exported(const struct side *side, const struct peer_command *c)
{
	const uint8_t *at = side->own + PEER_OWN_FROM;
	size_t after = PEER_OWN_BYTES - PEER_OWN_FROM - c->bytes;
	struct mst_reason unused;

	if (!pattern_is(at, c->bytes, c->seed))
		return -EBADMSG;
	if (!is_untouched(side->own, PEER_OWN_FROM) || !is_untouched(at + c->bytes, after))
		return -EFAULT;
	return mst_region_unregister(side->region, &unused) == -EBUSY ? 0 : -EIO;
}

static int dial(struct side *side, const struct peer_command *c)
{
	uint64_t until_ns = mst_now_ns() + c->wanted_ns;
	struct mst_dial how = { .address = c->address,
				.lanes = c->lanes,
				.timeout_ns = c->timeout_ns,
				.unwanted = c->wanted_ns != 0 ? is_unwanted : NULL,
				.ctx = &until_ns };

	memset(how.token, c->token, sizeof(how.token));
	int rc = open_net(side, c);
	if (rc == 0 && c->exported)
		rc = prepare_export(side, c, &how.export);
	return rc < 0 ? rc : side->t->dial(side->net, &how, &side->link, &side->why);
}

static int listen_for(struct side *side, const struct peer_command *c, struct peer_report *r)
{
	int rc = open_net(side, c);

	if (rc == 0)
		rc = side->t->listener->open(side->net, &side->listener, &side->why);
	if (rc == 0)
		memcpy(r->address, side->listener->address, sizeof(r->address));
	return rc;
}

static int accept_one(struct side *side)
{
	struct mst_link_request request;
	int rc = -EAGAIN;

	for (int i = 0; i < 600 && rc == -EAGAIN; i++) {
		await_caller(side->listener);
		rc = side->t->listener->next_request(side->listener, &request, &side->why);
	}
	if (rc == 0)
		rc = side->t->listener->answer(side->listener, &request, &side->link, &side->why);
	return rc < 0 ? rc : side->t->attach(side->net, side->link, &side->why);
}

static int put(struct side *side, const struct peer_command *c)
{
	uint8_t *buffer = malloc(c->bytes + 8);
	uint8_t *src = buffer;

	if (buffer == NULL)
		return -ENOMEM;
	if (c->from_mapping && side->link->remote_mapping != NULL)
		src = (uint8_t *)side->link->remote_mapping + c->offset;
	pattern(src, c->bytes, c->seed);
	struct mst_put how = { .offset = c->offset,
			       .src = src,
			       .bytes = c->bytes,
			       .notify = c->notify,
			       .imm = c->imm };
	int rc = side->t->put(side->link, &how);
	free(buffer);
	return rc;
}

static void poll_for(struct side *side, const struct peer_command *c, struct peer_report *r)
{
	struct mst_net_event ev[PEER_EVENTS];
	uint64_t begin = mst_now_ns();

	while (r->count < (int)c->count && mst_now_ns() - begin < c->timeout_ns) {
		int n = side->t->poll(side->net, ev, (int)c->count - r->count);
		for (int i = 0; i < n; i++, r->count++) {
			r->event[r->count].kind = ev[i].kind;
			r->event[r->count].imm = ev[i].imm;
			r->event[r->count].error = ev[i].error;
		}
		if (n == 0)
			side->t->wait(side->net, 20 * MST_MS);
	}
	r->took_ns = mst_now_ns() - begin;
}

static int wait_once(struct side *side, const struct peer_command *c, struct peer_report *r)
{
	uint64_t begin = mst_now_ns();
	int rc = side->t->wait(side->net, c->timeout_ns);

	r->took_ns = mst_now_ns() - begin;
	return rc;
}

static int check(const struct side *side, const struct peer_command *c)
{
	const uint8_t *base = c->shared ? side->link->shared : side->link->inbound;

	return base != NULL && pattern_is(base + c->offset, c->bytes, c->seed) ? 0 : -EBADMSG;
}

static int scribble(const struct side *side)
{
	void *shared = (void *)(uintptr_t)side->link->shared;

	signal(SIGSEGV, SIG_DFL);
	if (mprotect(shared, 4096, PROT_READ | PROT_WRITE) == 0)
		return -EACCES; /* it should have been refused */
	*(volatile uint8_t *)shared = 1;
	return 0;
}

static int words(const struct side *side, uint64_t timeout_ns)
{
	uint64_t end = mst_now_ns() + timeout_ns;
	uint64_t word = 0;
	struct mst_put how = { .src = &word, .bytes = sizeof(word) };
	int rc = 1;

	for (uint64_t i = 1; rc == 1 && !how.notify; i++) {
		word = UINT64_C(0x0101010101010101) * (i % 251);
		how.notify = i % 1024 == 0 && mst_now_ns() >= end;
		rc = side->t->put(side->link, &how);
	}
	return rc;
}

static int echo(const struct side *side, uint64_t count)
{
	struct mst_put answer = { .notify = true };
	struct mst_net_event ev;

	while (count > 0) {
		if (side->t->poll(side->net, &ev, 1) == 0) {
			side->t->wait(side->net, MST_NEVER);
			continue;
		}
		/* Now sooner, now later, to meet the other end on its way to sleep. */
		uint64_t at = mst_now_ns() + count % 64 * 50;
		while (mst_now_ns() < at)
			;
		if (ev.kind != MST_ARRIVED || side->t->put(side->link, &answer) != 1)
			return -EPIPE;
		count--;
	}
	return 0;
}

/* A page in, so that what is mapped beyond its ends would be seen. */
static int map_view(struct side *side, const struct peer_command *c, uint8_t **out)
{
	size_t room = c->bytes + (size_t)2 * 4096;
	uint8_t *base = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i = 0;

	if (base == MAP_FAILED)
		return -ENOMEM;
	*out = base + 4096;
	int rc = side->t->view(side->link, c->view, c->offset, c->bytes, *out);
	while (side->view[i].bytes > 0)
		i++;
	side->view[i].at = base;
	side->view[i].bytes = rc == 0 ? room : 0;
	if (rc != 0)
		munmap(base, room);
	return rc;
}

/* Composes in a view of the outbound region and puts that from where it lies; looks for it in
 * others. */
static int view(struct side *side, const struct peer_command *c)
{
	uint8_t *at;
	int rc = map_view(side, c, &at);

	if (rc != 0)
		return rc;
	if (c->view != MST_VIEW_OUTBOUND)
		return pattern_is(at, c->bytes, c->seed) ? 0 : -EBADMSG;
	pattern(at, c->bytes, c->seed);
	return side->t->put(side->link,
			    &(struct mst_put){ .offset = c->offset,
					       .src = (uint8_t *)side->link->outbound + c->offset,
					       .bytes = c->bytes,
					       .notify = true,
					       .imm = c->imm });
}

static void detach(struct side *side)
{
	side->t->detach(side->link);
	side->detached = true;
	if (side->own != NULL)
		memset(side->own, UNTOUCHED, PEER_OWN_BYTES);
}

static void hang_up(struct side *side)
{
	if (side->link != NULL && !side->detached)
		side->t->detach(side->link);
	if (side->link != NULL)
		side->t->link_free(side->link);
	side->link = NULL;
	side->detached = false;
	for (int i = 0; i < SIDE_VIEWS; i++) {
		if (side->view[i].bytes > 0)
			munmap(side->view[i].at, side->view[i].bytes);
		side->view[i].bytes = 0;
	}
}

int side_obey(struct side *side, const struct peer_command *c, struct peer_report *r)
{
	int rc;

	switch (c->order) {
	case PEER_DIAL:
		return dial(side, c);
	case PEER_LISTEN:
		return listen_for(side, c, r);
	case PEER_ACCEPT:
		return accept_one(side);
	case PEER_PUT:
		rc = put(side, c);
		r->copied = side->link->copied;
		return rc;
	case PEER_POLL:
		poll_for(side, c, r);
		return 0;
	case PEER_WAIT:
		return wait_once(side, c, r);
	case PEER_CHECK:
		return c->exported ? check_exported(side, c) : check(side, c);
	case PEER_SCRIBBLE:
		return scribble(side);
	case PEER_STORM:
		return storm(&(struct storm){ side->net, side->link, c->seed, ~c->seed, c->count });
	case PEER_WORDS:
		return words(side, c->timeout_ns);
	case PEER_ECHO:
		return echo(side, c->count);
	case PEER_VIEW:
		return view(side, c);
	case PEER_DETACH:
		detach(side);
		return 0;
	case PEER_CLOSE:
		hang_up(side);
		return 0;
	}
	return -EINVAL;
}

void side_close(struct side *side)
{
	hang_up(side);
	if (side->listener != NULL)
		side->t->listener->close(side->listener);
	side->t->net_close(side->net);
	free(side->own);
}
