/* SPDX-License-Identifier: MIT */
/*
 * Verdicts are the verdicts of one session that its worker may not have heard. Each header
 * acknowledges the verdicts that the worker has heard. If the session ends, the next session of the
 * same rank is told the verdicts that have not been acknowledged (PROTOCOL 4). Pure.
 */
#ifndef MST_SERVER_CORE_LEDGER_VERDICTS_H
#define MST_SERVER_CORE_LEDGER_VERDICTS_H

#include <stdint.h>

#include "muster/muster.h"

/* At most MUSTER_TICKETS_MAX tickets are open, so a ring of that many never loses one. */
struct mst_verdicts {
	uint32_t incarnation;              /* of the session; 0: the rank has had no session */
	uint64_t heard;                    /* the worker has heard the verdicts up to this ticket */
	uint64_t judged;                   /* the newest ticket that has been judged or cancelled */
	uint64_t ring[MUSTER_TICKETS_MAX]; /* by ticket: verdict and counted_in; 0: no verdict */
};

/* Begins with the session @incarnation, and drops what was kept of the session before. */
void mst_verdicts_begin(struct mst_verdicts *f, uint32_t incarnation);

/* The same of a session that has ended elsewhere, which had heard the verdicts up to @heard. */
void mst_verdicts_resume(struct mst_verdicts *f, uint32_t incarnation, uint64_t heard);

/* Notes the verdict on @ticket, which must be newer than all before and at most MUSTER_TICKETS_MAX
 * newer than the last verdict that was heard. MUSTER_NONE: the ticket gets no verdict. */
void mst_verdicts_add(struct mst_verdicts *f, uint64_t ticket, enum muster_verdict verdict,
		      uint64_t counted_in);

/* Notes that the worker has heard all verdicts up to @ticket, which must have been judged. */
void mst_verdicts_heard(struct mst_verdicts *f, uint64_t ticket);

/* Writes the verdicts that have not been heard to @out, in the order of tickets. @out has room for
 * MUSTER_TICKETS_MAX.
 * Return: how many were written. */
uint32_t mst_verdicts_list(const struct mst_verdicts *f, struct muster_push_verdict *out);

#endif
