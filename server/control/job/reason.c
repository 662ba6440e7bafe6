/* SPDX-License-Identifier: MIT */
#include "server/control/job/reason.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/transport/transport.h"
#include "server/core/policy/rule.h"

static double seconds(uint64_t ns)
{
	return (double)ns / (double)MST_SECOND;
}

const char *mst_reason_cause(int error)
{
	return mst_why()[0] != '\0' ? mst_why() : strerror(-error);
}

const char *mst_type_name(enum muster_type type)
{
	static const char *const name[] = { "f32", "bf16", "f16" };

	return name[type];
}

const char *mst_owner_name(enum muster_owner owner)
{
	return owner == MUSTER_SERVERS_OWN ? "servers" : "workers";
}

void mst_reason_refused(char *out, size_t len, int error, const struct mst_hello *hello,
			const struct mst_server_options *o)
{
	switch (error) {
	case -EEXIST:
		snprintf(out, len,
			 "rank %" PRId32 " of job \"%s\" is taken by a live worker; give this one "
			 "another rank, or let the server give it a free one (rank -1)",
			 hello->rank, o->job);
		break;
	case -ENOSPC:
		snprintf(out, len, "all %" PRIu32 " ranks of job \"%s\" are taken", o->workers,
			 o->job);
		break;
	case -ERANGE:
		snprintf(out, len,
			 "rank %" PRId32 " is not one of job \"%s\": its %" PRIu32
			 " workers are ranks 0 to %" PRIu32,
			 hello->rank, o->job, o->workers, o->workers - 1);
		break;
	case -ESTALE:
		snprintf(out, len,
			 "job \"%s\" keeps %" PRIu32
			 " versions and no longer has the first: a worker that joins now can only "
			 "catch up with the state of another, and its program does not take one "
			 "(options.comes_back); else raise --history",
			 o->job, o->history);
		break;
	case -EBUSY:
		snprintf(
			out, len,
			"job \"%s\" is still clearing away earlier sessions; try again in a moment",
			o->job);
		break;
	default:
		snprintf(out, len, "job \"%s\" is over, or about to end", o->job);
	}
}

void mst_reason_too_often(char *out, size_t len, const struct mst_hello *hello, uint64_t wait_ns,
			  const struct mst_server_options *o)
{
	char who[64] = "workers without a rank";

	if (hello->rank >= 0)
		snprintf(who, sizeof(who), "rank %" PRId32, hello->rank);
	snprintf(out, len,
		 "%s joined job \"%s\" too often in a short time: try again in %.1f s; does the "
		 "program fail as soon as it has joined?",
		 who, o->job, seconds(wait_ns) + 0.05);
}

void mst_reason_evicted(char *out, size_t len, const struct mst_eviction *loss,
			const struct mst_server_options *o)
{
	bool told = loss->link[0] != '\0';
	uint32_t rank = loss->rank;

	switch (loss->why) {
	case MST_EVICT_LEFT:
		snprintf(out, len, "rank %" PRIu32 " left", rank);
		break;
	case MST_EVICT_LOST:
		snprintf(out, len, "rank %" PRIu32 " is gone: %s", rank,
			 told ? loss->link : "its connection closed");
		break;
	case MST_EVICT_LEASE:
		snprintf(out, len,
			 "rank %" PRIu32 " was silent for its lease of %.3g s: stopped, or cut off",
			 rank, seconds(o->lease_ns));
		break;
	case MST_EVICT_PATIENCE:
		snprintf(out, len,
			 "rank %" PRIu32
			 " is alive, but a step waited for it longer than the patience of "
			 "%.3g s; if its steps take so long, raise --patience",
			 rank, seconds(o->patience_ns));
		break;
	case MST_EVICT_INVALID:
		snprintf(out, len, "rank %" PRIu32 " broke the protocol%s%s", rank,
			 told ? ": " : "", loss->link);
		break;
	case MST_EVICT_STALE:
		snprintf(out, len,
			 "rank %" PRIu32 " is behind the history of %" PRIu32
			 " versions: it was too slow to keep up; raise --history, or let its "
			 "program take the state of another (options.comes_back)",
			 rank, o->history);
		break;
	case MST_EVICT_ASKED:
		snprintf(out, len,
			 "rank %" PRIu32 " was evicted by an operator (muster evict): its session "
			 "is over",
			 rank);
		break;
	case MST_EVICT_NO_STATE:
		snprintf(out, len,
			 "rank %" PRIu32 " is behind the history of %" PRIu32
			 " versions, and no other worker has given its state: each was asked, and "
			 "gave none, was lost, or took longer than two patiences (%.3g s)",
			 rank, o->history, 2 * seconds(o->patience_ns));
		break;
	case MST_EVICT_OUTRUN:
		snprintf(out, len,
			 "rank %" PRIu32 " cannot catch up: before it had the state of another "
			 "worker, the job had made more than the %" PRIu32
			 " versions that it keeps for that (raise --catch-up), or two patiences "
			 "were over (%.3g s; raise --patience)",
			 rank, o->history + o->catch_up, 2 * seconds(o->patience_ns));
		break;
	}
}

void mst_reason_finished(char *out, size_t len, enum mst_finish_why why, const char *absent,
			 const struct mst_server_options *o)
{
	switch (why) {
	case MST_FINISH_COMMITS:
		snprintf(out, len, "%" PRIu64 " commits are made", o->commits);
		break;
	case MST_FINISH_SAMPLES:
		snprintf(out, len, "%.0f samples are counted", o->samples);
		break;
	case MST_FINISH_ASKED:
		snprintf(out, len, "a worker finished the job");
		break;
	case MST_FINISH_LEFT:
		snprintf(out, len, "all workers have left");
		break;
	case MST_FINISH_JOIN_TIMEOUT:
		snprintf(out, len,
			 "not all of %" PRIu32 " workers started within %.3g s (--join-timeout); "
			 "missing: rank %s",
			 o->workers, seconds(o->join_timeout_ns), absent);
		break;
	case MST_FINISH_TOO_FEW:
		snprintf(out, len,
			 "fewer than %" PRIu32 " live workers (--min-workers); missing: rank %s",
			 o->min_workers, absent);
		break;
	case MST_FINISH_LOSS:
		snprintf(out, len, "a worker was lost and --on-loss is fail; missing: rank %s",
			 absent);
		break;
	case MST_FINISH_SERVER:
		snprintf(out, len, "a server of the job is gone, and its part of the vector");
		break;
	case MST_FINISH_SPOILT:
		snprintf(out, len, "a version would not have been finite");
		break;
	case MST_FINISH_STOPPED:
		snprintf(out, len, "the server was told to end");
		break;
	case MST_FINISH_NO_START:
		snprintf(out, len,
			 "the servers own the parameters and no worker offered a start state: give "
			 "one to muster_start() on at least one rank");
		break;
	}
}

/* Writes where the element that is not finite comes from. */
static int spoilt_by(char *out, size_t len, const struct mst_spoilt *s)
{
	switch ((enum mst_spoil)s->kind) {
	case MST_SPOIL_GRADIENT:
		return snprintf(out, len,
				"the gradient of rank %" PRIu32
				" is infinite or NaN, first at element %" PRIu64,
				s->rank, s->element);
	case MST_SPOIL_SUM:
		if (s->rank_end == s->rank + 1)
			return snprintf(out, len,
					"the sum of the gradients of rank %" PRIu32
					" is infinite or NaN, first at element %" PRIu64,
					s->rank, s->element);
		return snprintf(out, len,
				"the sum of the gradients of ranks %" PRIu32 " to %" PRIu32
				" overflows at element %" PRIu64,
				s->rank, s->rank_end - 1, s->element);
	case MST_SPOIL_STEP:
		break;
	}
	return snprintf(out, len,
			"all gradients in it are finite, and their sum, or the step that the "
			"optimiser makes of it, overflows at element %" PRIu64,
			s->element);
}

void mst_reason_spoilt(char *out, size_t len, const struct mst_spoilt *spoilt, const char *ranks,
		       uint32_t servers)
{
	bool step = (enum mst_spoil)spoilt->kind == MST_SPOIL_STEP;
	char by[192], good[64] = "";

	(void)spoilt_by(by, sizeof(by), spoilt);
	if (servers == 1)
		snprintf(good, sizeof(good), "; the last good version is %" PRIu64,
			 spoilt->version - 1);
	snprintf(out, len,
		 "version %" PRIu64 "%s%s would not be finite and is not published: %s%s (%s)",
		 spoilt->version, ranks[0] != '\0' ? " of rank " : "", ranks, by, good,
		 step ? "a smaller learning rate may help"
		      : "--guard full has muster_push() refuse it, and the job go on");
}

/* When the steps of the rule commit. */
static int when_it_commits(char *out, size_t len, const struct mst_rule *rule, uint32_t workers)
{
	struct mst_rule_step whole = { .roster = workers, .missing = workers };
	uint32_t needed = mst_rule_needed(rule, &whole);
	double deadline_ms = (double)rule->deadline_ns / (double)MST_MS;

	if (rule->trigger == MST_TRIGGER_DEADLINE && rule->collect)
		return snprintf(out, len,
				"commits when %g ms are over and all of %" PRIu32
				" have handed in what they have finished",
				deadline_ms, workers);
	if (rule->trigger == MST_TRIGGER_DEADLINE)
		return snprintf(out, len,
				"commits after %" PRIu32 " of %" PRIu32
				", or after %g ms with those who are there",
				needed, workers, deadline_ms);
	if (rule->trigger == MST_TRIGGER_FULL && rule->grace_ns > 0)
		return snprintf(out, len,
				"commits when one of %" PRIu32
				" has finished a batch and the others have handed in what they "
				"have, or %g ms later",
				workers, (double)rule->grace_ns / (double)MST_MS);
	if (rule->trigger == MST_TRIGGER_FULL)
		return snprintf(out, len,
				"commits when one of %" PRIu32
				" has finished a batch and the others have handed in what they "
				"have",
				workers);
	if (mst_rule_repeats(rule) && needed == 1)
		return snprintf(out, len, "commits after every %s",
				rule->deltas ? "contribution" : "gradient");
	if (mst_rule_repeats(rule))
		return snprintf(out, len, "commits after every %" PRIu32 " gradients", needed);
	return snprintf(out, len,
			"commits after %" PRIu32 " of %" PRIu32 ", %" PRIu32 " may be late", needed,
			workers, workers - needed);
}

void mst_reason_policy(char *out, size_t len, const struct mst_rule *rule, uint32_t workers)
{
	const struct mst_pace *pace = &rule->pace;
	int used = when_it_commits(out, len, rule, workers);

	if (used < 0 || (size_t)used >= len)
		return;
	out += used, len -= (size_t)used;
	if (pace->alpha > 0)
		snprintf(out, len,
			 "; after %" PRIu32 " steps a worker moves by %g towards the servers",
			 pace->local_steps, pace->alpha);
	else if (pace->local_steps > 0)
		snprintf(out, len, "; a worker contributes after %" PRIu32 " steps of its own",
			 pace->local_steps);
	else if (pace->push_every > 0)
		snprintf(out, len,
			 "; a worker pushes after %" PRIu32 " batches and fetches after %" PRIu32,
			 pace->push_every, pace->fetch_every);
}
