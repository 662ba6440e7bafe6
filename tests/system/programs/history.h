/* SPDX-License-Identifier: MIT */
/*
 * What a worker did and saw, as lines of a file that check_history.py reads:
 *
 *	job RANK INCARNATION WORKERS ELEMS TYPE RESULT_TYPE OWNER STRIDE POLICY
 *	verdict INCARNATION TICKET VERDICT COUNTED_IN      of an earlier session, from the welcome
 *	push TICKET TAG WEIGHT SUM                         about to be
 *	void TICKET                                        it was not: the job is over
 *	pass TICKET                                        a pass has taken this number
 *	outcome VERDICT TICKET COUNTED_IN VERSION FRESH FINISHED CHECKSUM SAMPLE LR_SCALE WEIGHT
 *		AT_NS COUNT RANK:COUNT:WEIGHT ...
 *	error CALL ERRNO WALL_MS
 *	end ERRNO
 *
 * Every line is out before the call returns, so that a worker that is killed has told all. SAMPLE
 * is the checksum of every STRIDE-th element of the result. Where gradients are kept, as many of
 * their elements follow each other in FILE.grad, and those of the start state in FILE.start.
 */
#ifndef MST_TESTS_SYSTEM_PROGRAMS_HISTORY_H
#define MST_TESTS_SYSTEM_PROGRAMS_HISTORY_H

#include <stdint.h>

#include "muster/muster.h"

struct history;

/* Begins PATH.RANK.INCARNATION. @samples: elements of a vector that are looked at; 0: all. NULL: it
 * cannot be written. */
struct history *history_open(const char *path, const struct muster_job *job, uint64_t samples);
void history_push(struct history *h, uint64_t ticket, uint64_t tag,
		  const struct muster_contribution *c);
void history_void(struct history *h, uint64_t ticket);
void history_pass(struct history *h, uint64_t ticket);
void history_outcome(struct history *h, const struct muster_outcome *out);
void history_error(struct history *h, const char *call, int error);
/* Accepts NULL. */
void history_end(struct history *h, int error);

/* Whole vectors, in the types of the job; a sample is kept. */
void history_keep_gradient(struct history *h, uint64_t ticket, const void *gradient);
void history_keep_start(struct history *h, const void *state);

#endif
