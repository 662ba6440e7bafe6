/* SPDX-License-Identifier: MIT */
#include "server/control/connections/hearing.h"

/* How often in a lease the ledger is told that workers are listened to. */
#define TOLD_PER_LEASE 8u
/* After connections were read, the clock runs on for this part of a lease. */
#define FRESH_SHARE 4u

/* If connections are read further apart than this, the process stood still. */
#define STOOD_STILL_NS MST_SECOND
/* For so many leases afterwards, peers find out what they missed. */
#define STOOD_LEASES 2u

/* The lease may change: a follower is told it with its appointment. */
void mst_hearing_look(struct mst_hearing *h, uint64_t lease_ns, uint64_t now_ns)
{
	if (h->listening.looked_ns == 0)
		mst_listening_start(&h->listening, 0, now_ns);
	if (now_ns >= h->listening.heard_ns + STOOD_STILL_NS) {
		h->stood_ns = now_ns - h->listening.heard_ns;
		h->woke_ns = now_ns;
	}
	h->listening.fresh_ns = lease_ns / FRESH_SHARE;
	(void)mst_listening_now(&h->listening, now_ns);
}

uint64_t mst_hearing_stood(const struct mst_hearing *h, uint64_t lease_ns, uint64_t now_ns)
{
	return now_ns - h->woke_ns <= STOOD_LEASES * lease_ns ? h->stood_ns : 0;
}

void mst_hearing_heard(struct mst_hearing *h, uint64_t now_ns)
{
	mst_listening_heard(&h->listening, now_ns, now_ns);
}

/* A worker that sends more than a step reads has certainly been heard in it, so a heartbeat is
 * reported for that worker.
 * Return: false: not now, the ring of requests is full. */
static bool vouch_for_unread(const struct mst_frontend *f, struct mst_requests *r)
{
	const struct mst_conn *c;

	for (uint32_t i = 0; (c = mst_frontend_next_of(f, MST_CONN_WORKER, &i)) != NULL;) {
		struct mst_ledger_event ev = { .kind = MST_EV_HEARTBEAT, .who = c->who };
		if (!c->dry && !mst_requests_event(r, &ev))
			return false;
	}
	return true;
}

/* The ring keeps the order, so the ledger gets what was read before it gets HEARD. */
void mst_hearing_tell(struct mst_hearing *h, const struct mst_frontend *f, struct mst_requests *r,
		      uint64_t lease_ns, uint64_t now_ns)
{
	struct mst_ledger_event ev = { .kind = MST_EV_HEARD, .heard_ns = now_ns };

	if (now_ns < h->told_due_ns || !vouch_for_unread(f, r) || !mst_requests_event(r, &ev))
		return;
	h->told_due_ns = now_ns + lease_ns / TOLD_PER_LEASE;
}

bool mst_hearing_is_silent(const struct mst_hearing *h, const struct mst_conn *c, uint64_t heard_ns,
			   uint64_t lease_ns)
{
	return c->dry && mst_hearing_since(h, heard_ns) >= lease_ns;
}
