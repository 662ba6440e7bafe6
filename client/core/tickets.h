/* SPDX-License-Identifier: MIT */
/*
 * Tickets and their verdicts. A worker's contributions are judged in the order of their tickets, so
 * three numbers say it all: given out <= judged <= sent, and between the first two lie the verdicts
 * that no outcome has brought yet. A pass takes a number among them and has no verdict to give out.
 * After the loss of a server the sets of versions tell the verdicts of what it did not judge.
 */
#ifndef MST_CLIENT_CORE_TICKETS_H
#define MST_CLIENT_CORE_TICKETS_H

#include <stdbool.h>
#include <stdint.h>

#include "muster/muster.h"

struct mst_ticket {
	uint64_t number;
	uint64_t counted_in;
	uint64_t tag; /* the version that the contribution was computed on */
	enum muster_verdict verdict;
	bool granted; /* a pass: its slot has been granted again, so it has been judged */
};

struct mst_tickets {
	uint64_t sent, judged, given; /* the newest of each; 0: none yet */
	struct mst_ticket ring[MUSTER_TICKETS_MAX];
};

/* Is there a verdict that has not been given out? */
static inline bool mst_tickets_due(const struct mst_tickets *t)
{
	return t->given < t->judged;
}

/* How many have been sent whose verdicts no outcome has brought yet. */
static inline uint32_t mst_tickets_open(const struct mst_tickets *t)
{
	return (uint32_t)(t->sent - t->given);
}

static inline bool mst_tickets_full(const struct mst_tickets *t)
{
	return mst_tickets_open(t) == MUSTER_TICKETS_MAX;
}

/* A new ticket, of a contribution with this tag; there must be room. */
uint64_t mst_tickets_issue(struct mst_tickets *t, uint64_t tag);
/* The same for a pass. */
uint64_t mst_tickets_issue_pass(struct mst_tickets *t);
/* The pass with this number has been judged. Verdicts of tickets before it may still be on their
 * way: the grant of one slot may arrive before the verdict of another one. */
void mst_tickets_passed(struct mst_tickets *t, uint64_t number);

/* What a server says of one. 0; -EPROTO: not the oldest that waits, or a verdict that cannot be. */
int mst_tickets_judge(struct mst_tickets *t, const struct mst_ticket *verdict);

/* The job has ended: what has no verdict yet will not be counted any more. */
void mst_tickets_cancel_rest(struct mst_tickets *t);

/* After the loss of a server nobody says any more what became of the tickets that wait. The sets of
 * the versions that were made tell it: first mst_tickets_counted() for each version after that of
 * the worker's last outcome, in rising order; then mst_tickets_cancel_rest(). */

/* A worker's part in a version. */
struct mst_tickets_part {
	uint64_t version; /* from 1 on */
	uint32_t count;   /* its contributions in the set */
	uint32_t window;  /* of the rule of the step that made the version */
	uint64_t sent;    /* the last ticket that has been sent; those after it went nowhere */
};
/* So many of the tickets have been counted in the version: those of which that is known already,
 * and then the first of the others, in their order, whose tags the rule accepted. Contributions are
 * judged in the order of tickets, so those that it passes over have been judged, too, and do not
 * count. */
void mst_tickets_counted(struct mst_tickets *t, const struct mst_tickets_part *part);
/* The versions after @newest are lost: what was counted in them, and has not been given out as
 * such, does not count any more. */
void mst_tickets_withdraw(struct mst_tickets *t, uint64_t newest);
/* Whether the versions after @newest are lost is told by the next verdicts: tickets are open again
 * from the first on that was counted in one of them, as far as they have not been given out. */
void mst_tickets_reopen(struct mst_tickets *t, uint64_t newest);

/* The oldest verdict that has not been given out; one must be due. */
static inline const struct mst_ticket *mst_tickets_next(const struct mst_tickets *t)
{
	return &t->ring[(t->given + 1) % MUSTER_TICKETS_MAX];
}
/* Gives it out. */
struct mst_ticket mst_tickets_give(struct mst_tickets *t);

#endif
