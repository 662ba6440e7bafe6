/* SPDX-License-Identifier: MIT */
/* On a new link each end says first how far it has come, by the word behind the cells; then what
 * the other has not executed is put, again or for the first time. */
#include "server/peer.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "common/base/clock.h"

struct mst_lanes mst_peer_lanes(uint32_t window)
{
	size_t bytes = mst_peer_bytes(window);
	uint32_t credits = mst_peer_credits(window);

	return (struct mst_lanes){ bytes, bytes, credits, credits };
}

int mst_peer_init(struct mst_peer *p, uint32_t window)
{
	*p = (struct mst_peer){ .window = window, .lost_ns = MST_NEVER };
	return mst_relay_new(window, &p->relay);
}

static void bury(struct mst_peer *p)
{
	if (p->dead != NULL)
		p->dead->ops->link_free(p->dead);
	p->dead = NULL;
}

static void let_go(struct mst_peer *p)
{
	if (p->link == NULL)
		return;
	bury(p);
	p->link->ops->detach(p->link);
	p->dead = p->link;
	p->link = NULL;
}

void mst_peer_fini(struct mst_peer *p)
{
	let_go(p);
	bury(p);
	mst_relay_free(p->relay);
	p->relay = NULL;
}

/* A link that is up is none yet: one that breaks at once, again and again, must not last. */
void mst_peer_use(struct mst_peer *p, struct mst_link *link, uint64_t now_ns)
{
	let_go(p);
	p->link = link;
	link->user = NULL;
	p->hailed = p->greeted = false;
	p->arrived = mst_relay_taken(p->relay); /* what was not taken comes again */
	if (p->lost_ns == MST_NEVER)
		p->lost_ns = now_ns;
}

const char *mst_peer_why(const struct mst_peer *p, int error)
{
	const char *why = p->link != NULL ? p->link->why : mst_why();

	return why[0] != '\0' ? why : strerror(-error);
}

void mst_peer_drop(struct mst_peer *p, uint64_t now_ns)
{
	let_go(p);
	if (p->lost_ns == MST_NEVER)
		p->lost_ns = now_ns;
}

static int take_word(struct mst_peer *p)
{
	const char *word = (const char *)p->link->landing + mst_peer_ack_at(p->window);
	/* Relaxed: the other end writes it anew, and whole, whenever it likes; each holds. */
	uint64_t ack = atomic_load_explicit((const _Atomic uint64_t *)(const void *)word,
					    memory_order_relaxed);

	if (p->greeted)
		return mst_relay_acked(p->relay, ack);
	p->greeted = true;
	p->lost_ns = MST_NEVER;
	return mst_relay_resume(p->relay, ack);
}

/* What the newest cell acknowledges holds at once: the cell itself may have to wait until there is
 * room for what it leads to, and that room is what it acknowledges. */
static int take_ack(const struct mst_peer *p)
{
	uint64_t ack;

	memcpy(&ack,
	       (const char *)p->link->landing + mst_peer_at(p->arrived, p->window) +
		       offsetof(struct mst_peer_cell, ack),
	       sizeof(ack));
	return mst_relay_acked(p->relay, ack);
}

int mst_peer_arrived(struct mst_peer *p, uint32_t imm)
{
	if (imm == MST_PEER_IMM_ACK)
		return take_word(p);
	if (!p->greeted || imm != mst_peer_imm(p->arrived + 1))
		return -EPROTO;
	p->arrived++;
	return take_ack(p);
}

int mst_peer_take(struct mst_peer *p, struct mst_peer_cell *out)
{
	uint64_t next = mst_relay_taken(p->relay) + 1;

	if (p->link == NULL || next > p->arrived)
		return 0;
	memcpy(out, (const char *)p->link->landing + mst_peer_at(next, p->window), sizeof(*out));
	if (out->number != next) /* it was announced as that one */
		return -EPROTO;
	return mst_relay_take(p->relay, out);
}

/* An error of the link's own that says "later", or that says it is lost. */
static int put(struct mst_peer *p, const struct mst_put *what)
{
	int rc = p->link->ops->put(p->link, what);

	return rc < 0 ? rc : 0;
}

static int put_word(struct mst_peer *p)
{
	uint64_t ack = mst_relay_taken(p->relay);
	int rc = put(p, &(struct mst_put){ .offset = mst_peer_ack_at(p->window),
					   .src = &ack,
					   .bytes = sizeof(ack),
					   .notify = true,
					   .imm = MST_PEER_IMM_ACK,
					   .more = true });

	if (rc == 0)
		mst_relay_told(p->relay);
	return rc;
}

/* The last goes at once: behind what is told here a server goes on to sum, before it polls. */
static int put_cells(struct mst_peer *p)
{
	const struct mst_peer_cell *cell;
	int rc = 0;

	while (rc == 0 && (cell = mst_relay_next(p->relay)) != NULL) {
		rc = put(p, &(struct mst_put){ .offset = mst_peer_at(cell->number, p->window),
					       .src = cell,
					       .bytes = sizeof(*cell),
					       .notify = true,
					       .imm = mst_peer_imm(cell->number),
					       .more = mst_relay_unput(p->relay) > 1 });
		if (rc == 0)
			mst_relay_put(p->relay);
	}
	return rc;
}

int mst_peer_flush(struct mst_peer *p)
{
	int rc = 0;

	bury(p); /* a step looks at its events before it puts */
	if (p->link == NULL)
		return 0;
	if (!p->hailed) {
		rc = put_word(p);
		p->hailed = rc == 0;
	}
	if (rc == 0 && p->greeted)
		rc = put_cells(p);
	if (rc == 0 && mst_relay_owes(p->relay, p->prompt))
		rc = put_word(p);
	return rc;
}
