/* SPDX-License-Identifier: MIT */
/*
 * The table of figures: what `muster status` and `muster run` tell in numbers of a job, of its
 * policies and of its ranks. A row is all that a figure needs between the place that counts it and
 * the people and programs that read it: it makes the member of the struct (message.h), the field of
 * the message (message_fields.c), the member of the JSON object (tools/figures.c) and its entry in
 * the manual (muster-run(1)).
 *
 *   F(tag, type, member, key, shown, means)
 *
 * tag    of the field on the wire. Tags rise, and none is ever used for another figure.
 * type   U32, U64, F64, or FLAG: u32, 0 or 1. NEW_U64, NEW_F64 and NEW_FLAG are for a figure that
 *        protocol 15 began without: a server that is older than the figure does not send it, and
 *        then it is not known: MST_NOT_KNOWN, or a NaN; of a flag 0.
 * key    in JSON; "a.b" is the member b of the object a
 * shown  how JSON shows it:
 *          COUNT    an integer
 *          REAL     a real number; a NaN and infinity are null
 *          SOME     as REAL, and 0 is null: there is none
 *          SECONDS  of nanoseconds; MS: milliseconds of nanoseconds
 *          BOOL     true or false
 *        A U64 that is MST_NOT_KNOWN is null.
 * means  what the manual says of it
 *
 * So a new metric is a row here, and the line in the server that fills the member.
 */
#ifndef MST_WIRE_FIGURES_H
#define MST_WIRE_FIGURES_H

#include <stdint.h>

#define MST_NOT_KNOWN UINT64_MAX /* of times it is MST_NEVER */

/* The verdicts, as muster.h has them. */
#define MST_MEANS_COUNTED "contributions that are part of a version"
#define MST_MEANS_LATE "contributions that were dropped because their step had been committed"
#define MST_MEANS_STALE "contributions that were rejected as too old"
#define MST_MEANS_CANCELLED                                                                        \
	"contributions that were abandoned, or whose session or job ended before they were counted"
#define MST_MEANS_REFUSED "contributions that were invalid, such as a weight out of its range"
#define MST_MEANS_OUTLIERS "contributions whose norm was beyond --norm-limit, or not finite"
#define MST_MEANS_DAMAGED "contributions whose data were not those that were pushed (--checksum)"

/* clang-format off */

/* Figures of the job. Tags 1 to 15, and 61, are the fields that are no figures. */
#define MST_JOB_FIGURES(F) \
	F(16, U32, workers, "workers", COUNT, "the ranks of the job") \
	F(17, U32, live, "live", COUNT, "of these, how many take part now") \
	F(18, U32, shards, "shards", COUNT, \
	  "threads of a server that share the sums; 0: not known yet") \
	F(19, U64, first_version, "first_version", COUNT, \
	  "the version that the job began with, or goes on from") \
	F(20, U64, version, "commits", COUNT, "the newest version") \
	F(21, F64, samples, "samples", REAL, "in all contributions that were counted") \
	F(22, F64, loss, "loss", REAL, "of the newest version; null if no worker told one") \
	F(23, U64, elapsed_ns, "wall_s", SECONDS, "since the start, until the end") \
	F(24, U64, step_mean_ns, "mean_step_ms", MS, \
	  "from commit to commit, without the first commit") \
	F(25, U64, step_p50_ns, "p50_step_ms", MS, "half of the steps took less") \
	F(26, U64, step_p99_ns, "p99_step_ms", MS, "99 of 100 steps took less") \
	F(27, U64, step_max_ns, "max_step_ms", MS, "the longest step") \
	F(28, U64, recent_step_ns, "recent_step_ms", MS, "the mean of the last 32 steps") \
	/* server/core/statistics/statistics.h says how it is found. */ \
	F(29, U64, saved_ns, "saved_s", SECONDS, \
	  "how much longer all steps would have taken, at least, if each had waited for every " \
	  "worker; null under a policy where that cannot be known") \
	F(30, F64, norm_limit, "norm_limit", SOME, "--norm-limit; null if there is none") \
	F(31, F64, norm_median, "norm_median", REAL, \
	  "the median that the limit goes by, or last went by; null if there was none") \
	F(32, U64, state_max, "state_max", COUNT, \
	  "how many bytes a state of a worker may have that it gives to another") \
	F(33, NEW_U64, goal, "goal", COUNT, \
	  "the version that the job ends with: the least of --commits and of what its workers " \
	  "have given (muster_goal()); null if there is none") \
	F(34, NEW_U64, differences, "differences", COUNT, \
	  "how often a worker had another state than most after a version, of those that workers " \
	  "compare (muster_compare())") \
	F(35, NEW_U64, fast_ready_ns, "fast_ready_ms", MS, \
	  "how long gradients of the fast ranks take on average, with their way to the server; " \
	  "stragglers are compared with it; null while that is not known") \
	F(40, NEW_FLAG, goes_on, "goes_on", BOOL, \
	  "it has ended at this server, since one is lost, and goes on when servers are started " \
	  "again (--server-patience)") \
	F(45, NEW_U64, generation, "generation", COUNT, \
	  "how often servers of this run have begun, from 1; 0: they have not begun yet; null " \
	  "where none is counted (--server-patience is 0)") \
	F(46, NEW_U64, kept_version, "checkpoint", COUNT, \
	  "the version of the newest checkpoint that is whole; null: there is none") \
	F(47, NEW_U64, loss_costs, "loss_costs", COUNT, \
	  "how many versions would be void if a server were lost now: those after the newest " \
	  "checkpoint, and 0 where workers own; null where the loss of a server ends the job") \
	F(60, NEW_U64, policy_change, "policy_change", COUNT, \
	  "the number of the change that the policy in force came with, counted over all " \
	  "generations; 0: it is that of the command line")

/* Figures of each policy that was in force. */
#define MST_POLICY_FIGURES(F) \
	F(2, U64, since, "since", COUNT, "the first version made under it") \
	F(3, U64, versions, "versions", COUNT, "made under it") \
	F(4, U64, step_mean_ns, "mean_step_ms", MS, \
	  "from commit to commit, without the job's first commit") \
	F(5, U64, counted, "counted", COUNT, MST_MEANS_COUNTED) \
	F(6, U64, late, "late", COUNT, MST_MEANS_LATE) \
	F(7, U64, stale, "stale", COUNT, MST_MEANS_STALE) \
	F(8, U64, cancelled, "cancelled", COUNT, MST_MEANS_CANCELLED) \
	F(9, U64, refused, "refused", COUNT, MST_MEANS_REFUSED) \
	F(10, U64, outliers, "outliers", COUNT, MST_MEANS_OUTLIERS) \
	F(11, U64, damaged, "damaged", COUNT, MST_MEANS_DAMAGED) \
	F(12, U64, dropped, "dropped", COUNT, \
	  "of the late, those that were on their way when the policy came into force")

/* Figures of each rank. Tag 1 is the state, 2 and 3 its link, 4 what kind of straggler it is;
 * 5 to 7 are free for what is no figure. */
#define MST_RANK_FIGURES(F) \
	F(8, U32, rank, "rank", COUNT, "from 0") \
	F(9, U32, incarnation, "incarnation", COUNT, \
	  "the number of its newest session; 0: it has not joined yet") \
	F(10, U64, counted, "counted", COUNT, MST_MEANS_COUNTED) \
	F(11, U64, late, "late", COUNT, MST_MEANS_LATE) \
	F(12, U64, stale, "stale", COUNT, MST_MEANS_STALE) \
	F(13, U64, cancelled, "cancelled", COUNT, MST_MEANS_CANCELLED) \
	F(14, U64, refused, "refused", COUNT, MST_MEANS_REFUSED) \
	F(15, U64, outliers, "outliers", COUNT, MST_MEANS_OUTLIERS) \
	F(16, U64, damaged, "damaged", COUNT, MST_MEANS_DAMAGED) \
	F(17, U64, given_up, "given_up", COUNT, \
	  "gradients that it gave up after a hint that they could not count any more") \
	F(18, F64, samples_counted, "samples_counted", REAL, "samples in those counted") \
	F(19, F64, samples_pushed, "samples_pushed", REAL, \
	  "samples in all that have a verdict; a weight that cannot be is none") \
	F(20, F64, norm, "norm", REAL, \
	  "of its last contribution; null if servers do not know it: without --norm-limit, under " \
	  "a policy that does not ask for norms") \
	F(21, F64, norm_max, "max_norm", REAL, "the largest") \
	F(22, F64, staleness_mean, "mean_staleness", REAL, \
	  "of those counted: commits between the version that it had and its step") \
	F(23, U64, staleness_p99, "p99_staleness", COUNT, "99 of 100 had less, or as much") \
	F(24, U64, ready_mean_ns, "mean_ready_ms", MS, \
	  "from being given a version until the gradient on it was there") \
	F(25, U64, ready_max_ns, "max_ready_ms", MS, "the longest") \
	F(26, U64, behind_mean_ns, "mean_behind_ms", MS, \
	  "how long after the commit of its step a late gradient came") \
	F(27, U64, recent_came, "recent.gradients", COUNT, \
	  "how many these figures are of: its last, 32 at most") \
	F(28, U64, recent_missed, "recent.missed", COUNT, "late, stale or given up") \
	F(29, U64, recent_given_up, "recent.given_up", COUNT, "of these, given up") \
	F(30, U64, recent_ready_ns, "recent.mean_ready_ms", MS, "as mean_ready_ms") \
	F(31, U64, recent_behind_ns, "recent.mean_behind_ms", MS, "as mean_behind_ms") \
	F(32, FLAG, awaited, "awaited", BOOL, "the open step waits for it") \
	F(33, FLAG, rests, "rests", BOOL, "it was told to rest") \
	F(34, FLAG, held, "held", BOOL, "it was late, and starts again at the next commit") \
	F(35, U64, waiting_ns, "waiting_ms", MS, "how long the open step has been waiting for it") \
	F(36, U64, busy_ns, "busy_ms", MS, \
	  "how long it has computed its gradient; 0: it waits for the server") \
	F(37, U64, heard_ns, "heard_ms_ago", MS, "anything of it; null: never") \
	F(38, U64, handed_in_ns, "handed_in_ms_ago", MS, "its last gradient; null: never") \
	F(39, U64, behind_by, "versions_behind", COUNT, \
	  "versions between the one that it has and the newest") \
	F(40, NEW_U64, gone_at, "gone_at", COUNT, \
	  "the newest version when its newest session ended; null while it has one, and if the " \
	  "job had ended before") \
	F(41, NEW_F64, straggler_ratio, "straggler.ratio", REAL, \
	  "how long its gradients take, measured by fast_ready_ms, while it is a straggler") \
	F(42, NEW_U64, straggler_ns, "straggler.for_s", SECONDS, \
	  "for how long it has been one; null if it is none now") \
	F(43, NEW_U64, straggler_total_ns, "straggler.total_s", SECONDS, \
	  "for how long it was one in all") \
	F(44, NEW_U64, waited_ns, "straggler.steps_waited_s", SECONDS, \
	  "how long steps waited for it meanwhile, after all ranks had come that are no stragglers")

/* Figures of each server of the job. Tags 1, 2, 5 and 6 are no figures. */
#define MST_SERVER_FIGURES(F) \
	F(3, U64, first, "first", COUNT, \
	  "the first element of its part; 0 if that is not known yet") \
	F(4, U64, count, "count", COUNT, "how many elements it has")

/* clang-format on */

/* ---- the members of a struct ---- */

#define MST_FIGURE_U32 uint32_t
#define MST_FIGURE_FLAG uint32_t
#define MST_FIGURE_NEW_FLAG uint32_t
#define MST_FIGURE_U64 uint64_t
#define MST_FIGURE_NEW_U64 uint64_t
#define MST_FIGURE_F64 double
#define MST_FIGURE_NEW_F64 double
#define MST_FIGURE_MEMBER(tag, type, member, ...) MST_FIGURE_##type member;

#endif
