/* SPDX-License-Identifier: MIT */
/*
 * The statistics: which workers were late, by how much, how often; how long steps took; which
 * workers compute right now. They observe the ledger's events and decisions, and influence none.
 * Pure: events, decisions and now_ns go in, figures come out. The memory is fixed. An event or
 * a decision costs a few instructions, however many workers there are.
 *
 * Figures of the whole job count from its start. Recent figures are of the last
 * MST_STATISTICS_RECENT gradients of each rank, or of as many steps.
 *
 * By how much longer steps would have been if they had waited for every worker, saved_time.h says,
 * and periods.h what has happened under each policy.
 */
#ifndef MST_SERVER_CORE_STATISTICS_STATISTICS_H
#define MST_SERVER_CORE_STATISTICS_STATISTICS_H

#include <stdint.h>

#include "common/wire/message.h"
#include "server/core/ledger/ledger.h"

#define MST_STATISTICS_RECENT 32u

struct mst_statistics;

uint64_t mst_statistics_bytes(uint32_t workers); /* that mst_statistics_new() allocates */
int mst_statistics_new(uint32_t workers, struct mst_statistics **out);
void mst_statistics_free(struct mst_statistics *t); /* accepts NULL */

/* The job goes on from a checkpoint, or from what its workers bring: so many samples have been
 * counted in it. */
void mst_statistics_go_on(struct mst_statistics *t, double samples);

/* To be called for every event that the ledger handles. */
void mst_statistics_event(struct mst_statistics *t, const struct mst_ledger_event *ev,
			  uint64_t now_ns);

/* A decision as it is executed. record: of the version for COMMIT, else NULL. rule: the one in
 * force. */
struct mst_statistics_decision {
	const struct mst_decision *decision;
	const struct mst_record *record;
	const struct mst_rule *rule;
};
/* To be called for every decision, in order. */
void mst_statistics_decided(struct mst_statistics *t, const struct mst_statistics_decision *d,
			    uint64_t now_ns);

/* If the version that was committed last is the first of a policy with a window of 0: how many
 * verdicts were late in its step. These gradients were on their way when the policy changed. Else
 * 0. */
uint64_t mst_statistics_dropped(const struct mst_statistics *t);

/* How many gradients were refused for what is in them since the last that was counted. */
uint64_t mst_statistics_refused(const struct mst_statistics *t);

/* Write what the statistics know of the job, and of the rank @out->rank; other fields stay as they
 * are. @view: the ledger's view of the rank at that moment. */
void mst_statistics_job(const struct mst_statistics *t, uint64_t now_ns, struct mst_status *out);
void mst_statistics_rank(const struct mst_statistics *t, const struct mst_member_view *view,
			 uint64_t now_ns, struct mst_status_rank *out);

#endif
