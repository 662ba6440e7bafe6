/* SPDX-License-Identifier: MIT */
/* On a new link each end first says, by the acknowledgement word after the entries, which entries
 * it has executed. Then the entries that the other end has not executed are put, again or for the
 * first time. */
#include "server/cluster/peer.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"

/* After this end has looked at the clock, it runs on for this part of the lease. A follower looks
 * again after each attempt to connect, which takes as long as this if there is no answer; that time
 * counts. */
#define FRESH_SHARE 4u

uint64_t mst_peers_bytes(uint32_t peers, uint32_t window)
{
	return (uint64_t)peers * 3 * mst_peer_bytes(window);
}

struct mst_lanes mst_peer_lanes(uint32_t window)
{
	size_t bytes = mst_peer_bytes(window);
	uint32_t credits = mst_peer_credits(window);

	return (struct mst_lanes){ bytes, bytes, credits, credits };
}

int mst_peer_init(struct mst_peer *p, uint32_t window, uint64_t lease_ns)
{
	MST_ASSERT(lease_ns > 0);
	*p = (struct mst_peer){ .window = window, .lease_ns = lease_ns };
	return mst_resend_new(window, &p->resend);
}

static void free_dead(struct mst_peer *p)
{
	if (p->dead != NULL)
		p->dead->ops->link_free(p->dead);
	p->dead = NULL;
}

static void let_go(struct mst_peer *p)
{
	if (p->link == NULL)
		return;
	free_dead(p);
	p->link->ops->detach(p->link);
	p->dead = p->link;
	p->link = NULL;
}

void mst_peer_fini(struct mst_peer *p)
{
	let_go(p);
	free_dead(p);
	mst_resend_free(p->resend);
	p->resend = NULL;
}

static void begin_to_miss(struct mst_peer *p, uint64_t now_ns)
{
	if (p->is_lost)
		return;
	p->is_lost = true;
	mst_listening_start(&p->listening, p->lease_ns / FRESH_SHARE, now_ns);
	p->lost_ns = p->listening.clock_ns;
}

/* A link that has been established does not count before the other end has sent on it. Otherwise
 * links that break at once, again and again, would keep a server that is cut off from giving up. */
void mst_peer_use(struct mst_peer *p, struct mst_link *link, uint64_t now_ns)
{
	let_go(p);
	p->link = link;
	link->user = NULL;
	p->hailed = p->greeted = false;
	p->arrived = mst_resend_taken(p->resend); /* entries that were not taken are put again */
	begin_to_miss(p, now_ns);
}

void mst_peer_drop(struct mst_peer *p, uint64_t now_ns)
{
	let_go(p);
	begin_to_miss(p, now_ns);
}

/* ---- without a link ---- */

bool mst_peer_is_over(struct mst_peer *p, uint64_t now_ns)
{
	if (!p->is_lost)
		return false;
	mst_listening_heard(&p->listening, now_ns, now_ns);
	return p->listening.clock_ns - p->lost_ns >= p->lease_ns;
}

/* Often enough that the clock runs on between two looks, even if they are somewhat late. */
uint64_t mst_peer_deadline(const struct mst_peer *p)
{
	const struct mst_listening *l = &p->listening;

	if (!p->is_lost)
		return MST_NEVER;
	uint64_t left = p->lease_ns - (l->clock_ns - p->lost_ns), most = l->fresh_ns / 2;
	return l->looked_ns + (left < most ? left : most);
}

/* ---- entries ---- */

static int take_word(struct mst_peer *p)
{
	const char *word = (const char *)p->link->inbound + mst_peer_ack_at(p->window);
	/* Relaxed: the other end may overwrite the word at any time, but always as a whole, and
	 * each value is valid. */
	uint64_t ack = atomic_load_explicit((const _Atomic uint64_t *)(const void *)word,
					    memory_order_relaxed);

	if (p->greeted)
		return mst_resend_acked(p->resend, ack);
	p->greeted = true;
	p->is_lost = false;
	return mst_resend_resume(p->resend, ack);
}

/* The acknowledgement of the newest entry is used at once. The entry itself may have to wait until
 * there is room for the entries that follow from it, and the acknowledgement is what makes that
 * room. */
static int take_ack(const struct mst_peer *p)
{
	uint64_t ack;

	memcpy(&ack,
	       (const char *)p->link->inbound + mst_peer_at(p->arrived, p->window) +
		       offsetof(struct mst_peer_entry, ack),
	       sizeof(ack));
	return mst_resend_acked(p->resend, ack);
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

int mst_peer_take(struct mst_peer *p, struct mst_peer_entry *out)
{
	uint64_t next = mst_resend_taken(p->resend) + 1;

	if (p->link == NULL || next > p->arrived)
		return 0;
	memcpy(out, (const char *)p->link->inbound + mst_peer_at(next, p->window), sizeof(*out));
	if (out->number != next) /* the immediate announced this number */
		return -EPROTO;
	return mst_resend_take(p->resend, out);
}

/* Return: 0; -EAGAIN: not now; another -errno: the link is lost. */
static int put(struct mst_peer *p, const struct mst_put *what)
{
	int rc = p->link->ops->put(p->link, what);

	return rc < 0 ? rc : 0;
}

static int put_word(struct mst_peer *p)
{
	uint64_t ack = mst_resend_taken(p->resend);
	int rc = put(p, &(struct mst_put){ .offset = mst_peer_ack_at(p->window),
					   .src = &ack,
					   .bytes = sizeof(ack),
					   .notify = true,
					   .imm = MST_PEER_IMM_ACK,
					   .more = true });

	if (rc == 0)
		mst_resend_told(p->resend);
	return rc;
}

/* The last entry is put without `more`, so that it is sent at once: after this the server goes on
 * to sum, and polls only later. */
static int put_entries(struct mst_peer *p)
{
	const struct mst_peer_entry *entry;
	int rc = 0;

	while (rc == 0 && (entry = mst_resend_next(p->resend)) != NULL) {
		rc = put(p, &(struct mst_put){ .offset = mst_peer_at(entry->number, p->window),
					       .src = entry,
					       .bytes = sizeof(*entry),
					       .notify = true,
					       .imm = mst_peer_imm(entry->number),
					       .more = mst_resend_unput(p->resend) > 1 });
		if (rc == 0)
			mst_resend_put(p->resend);
	}
	return rc;
}

int mst_peer_flush(struct mst_peer *p)
{
	int rc = 0;

	free_dead(p); /* the events of this step have been handled, so none is of this link */
	if (p->link == NULL)
		return 0;
	if (!p->hailed) {
		rc = put_word(p);
		p->hailed = rc == 0;
	}
	if (rc == 0 && p->greeted)
		rc = put_entries(p);
	if (rc == 0 && mst_resend_owes(p->resend, p->prompt))
		rc = put_word(p);
	return rc;
}
