/* SPDX-License-Identifier: MIT */
#include "server/control/job/sentences.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "server/core/policy/rule.h"

static double seconds(uint64_t ns)
{
	return (double)ns / (double)MST_SECOND;
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

void mst_sentence_refused(struct mst_reason *out, int error, const struct mst_hello *hello,
			  const struct mst_server_options *o)
{
	switch (error) {
	case -EEXIST:
		mst_reason_set(out,
			       "rank %" PRId32
			       " of job \"%s\" is taken by a live worker; give this one "
			       "another rank, or let the server give it a free one (rank -1)",
			       hello->rank, o->job);
		break;
	case -ENOSPC:
		mst_reason_set(out, "all %" PRIu32 " ranks of job \"%s\" are taken", o->workers,
			       o->job);
		break;
	case -ERANGE:
		mst_reason_set(out,
			       "rank %" PRId32 " is not one of job \"%s\": its %" PRIu32
			       " workers are ranks 0 to %" PRIu32,
			       hello->rank, o->job, o->workers, o->workers - 1);
		break;
	case -EIDRM:
		mst_reason_set(
			out, "rank %" PRId32 " is over: job \"%s\" has %" PRIu32 " worker%s now%s",
			hello->rank, o->job, o->workers, o->workers > 1 ? "s" : "",
			o->workers > 1 ? "" : ", rank 0");
		if (o->workers > 1)
			mst_reason_add(out, ", ranks 0 to %" PRIu32, o->workers - 1);
		mst_reason_add(out, " (muster workers, or --workers of its server)");
		break;
	case -ESTALE:
		mst_reason_set(
			out,
			"job \"%s\" keeps %" PRIu32
			" versions and no longer has the first: a worker that joins now can only "
			"catch up with the state of another, and its program does not take one "
			"(options.comes_back); else raise --history",
			o->job, o->history);
		break;
	case -EBUSY:
		mst_reason_set(
			out,
			"job \"%s\" is still clearing away earlier sessions; try again in a moment",
			o->job);
		break;
	default:
		mst_reason_set(out, "job \"%s\" is over, or about to end", o->job);
	}
}

/* "ranks 3 to 5": from the first on, without the one at @end. */
static void add_ranks(struct mst_reason *out, const char *before, uint32_t first, uint32_t end)
{
	if (end == first + 1)
		mst_reason_add(out, "%srank %" PRIu32, before, first);
	else
		mst_reason_add(out, "%sranks %" PRIu32 " to %" PRIu32, before, first, end - 1);
}

void mst_sentence_renews(struct mst_reason *out, uint32_t workers,
			 const struct mst_server_options *o)
{
	mst_reason_set(out, "job \"%s\" goes on with %" PRIu32 " worker%s, in place of %" PRIu32,
		       o->job, workers, workers > 1 ? "s" : "", o->workers);
	if (workers < o->workers) {
		add_ranks(out, "; ", workers, o->workers);
		mst_reason_add(out, workers + 1 < o->workers ? " are over" : " is over");
	} else if (workers > o->workers) {
		add_ranks(out, "; it waits for ", o->workers, workers);
		mst_reason_add(out, ", for you to start");
	}
}

void mst_sentence_too_often(struct mst_reason *out, const struct mst_hello *hello, uint64_t wait_ns,
			    const struct mst_server_options *o)
{
	char who[64] = "workers without a rank";

	if (hello->rank >= 0)
		snprintf(who, sizeof(who), "rank %" PRId32, hello->rank);
	mst_reason_set(
		out,
		"%s joined job \"%s\" too often in a short time: try again in %.1f s; does the "
		"program fail as soon as it has joined?",
		who, o->job, seconds(wait_ns) + 0.05);
}

static void no_state(struct mst_reason *out, const struct mst_eviction *loss,
		     const struct mst_server_options *o)
{
	if (loss->alone)
		mst_reason_set(out,
			       "rank %" PRIu32 " is behind the history of %" PRIu32
			       " versions, and no other worker is in the job any more whose state "
			       "it could take: all others have left, or are lost. The last version "
			       "is in what they have saved",
			       loss->rank, o->history);
	else
		mst_reason_set(
			out,
			"rank %" PRIu32 " is behind the history of %" PRIu32
			" versions, and no other worker has given its state: each was asked, and "
			"gave none, was lost, or took longer than two patiences (%.3g s)",
			loss->rank, o->history, 2 * seconds(o->patience_ns));
}

/* A worker has left and was waited for: the time limits are not too short for the others. */
static void left_too_soon(struct mst_reason *out, const struct mst_eviction *loss,
			  const struct mst_server_options *o)
{
	mst_reason_set(out,
		       "rank %" PRIu32 " has left without all that it announced: its last "
		       "contribution was to be number %" PRIu64 ", and ",
		       loss->rank, loss->announced);
	if (loss->came == 0)
		mst_reason_add(out, "none came; ");
	else
		mst_reason_add(out, "the last that came is number %" PRIu64 "; ", loss->came);
	if (loss->why == MST_EVICT_LOST)
		mst_reason_add(out, "its link is gone, so no other can come%s%s",
			       loss->link[0] != '\0' ? ": " : "", loss->link);
	else if (loss->why == MST_EVICT_LEASE)
		mst_reason_add(out, "it was silent for its lease of %.3g s: stopped, or cut off",
			       seconds(o->lease_ns));
	else
		mst_reason_add(out,
			       "its link is there and brought no other, for which a step waited "
			       "for the patience of %.3g s",
			       seconds(o->patience_ns));
}

static bool is_about_rest(const struct mst_eviction *loss)
{
	return loss->announced > loss->came &&
	       (loss->why == MST_EVICT_LOST || loss->why == MST_EVICT_LEASE ||
		loss->why == MST_EVICT_PATIENCE);
}

/* Why a worker that owns its parameters cannot go on from the version that it has. */
static void lacks_version(struct mst_reason *out, const struct mst_eviction *loss,
			  const struct mst_server_options *o)
{
	uint32_t rank = loss->rank;

	switch (loss->why) {
	case MST_EVICT_STALE:
		mst_reason_set(out,
			       "rank %" PRIu32 " is behind the history of %" PRIu32
			       " versions: it was too slow to keep up; raise --history, or let its "
			       "program take the state of another (options.comes_back)",
			       rank, o->history);
		break;
	case MST_EVICT_NO_STATE:
		no_state(out, loss, o);
		break;
	case MST_EVICT_UNTAKEN:
		mst_reason_set(out,
			       "rank %" PRIu32 " is behind the history of %" PRIu32
			       " versions, and has not taken the state of another worker that it "
			       "was sent for two patiences (%.3g s; raise --patience)",
			       rank, o->history, 2 * seconds(o->patience_ns));
		break;
	case MST_EVICT_APART:
		mst_reason_set(out,
			       "rank %" PRIu32
			       " lacks the version that the job goes on from after the loss of a "
			       "server, and no worker could send that version alone; let its "
			       "program take the state of another worker (options.comes_back)",
			       rank);
		break;
	default:
		mst_reason_set(out,
			       "rank %" PRIu32
			       " has joined too late: the job ended before it had the state of "
			       "another worker",
			       rank);
		break;
	}
}

static void outnumbered(struct mst_reason *out, uint32_t rank)
{
	mst_reason_set(out,
		       "rank %" PRIu32
		       " says hello again: another worker has been at a start with the number that "
		       "this start was to have, which takes a later one",
		       rank);
}

void mst_sentence_evicted(struct mst_reason *out, const struct mst_eviction *loss,
			  const struct mst_server_options *o)
{
	bool told = loss->link[0] != '\0';
	uint32_t rank = loss->rank;

	if (is_about_rest(loss)) {
		left_too_soon(out, loss, o);
		return;
	}
	switch (loss->why) {
	case MST_EVICT_LEFT:
		mst_reason_set(out, "rank %" PRIu32 " left", rank);
		break;
	case MST_EVICT_LOST:
		mst_reason_set(out, "rank %" PRIu32 " is gone: %s", rank,
			       told ? loss->link : "its connection closed");
		break;
	case MST_EVICT_LEASE:
		mst_reason_set(out,
			       "rank %" PRIu32
			       " was silent for its lease of %.3g s: stopped, or cut off",
			       rank, seconds(o->lease_ns));
		break;
	case MST_EVICT_PATIENCE:
		mst_reason_set(out,
			       "rank %" PRIu32
			       " is alive, but a step waited for it longer than the patience of "
			       "%.3g s; if its steps take so long, raise --patience",
			       rank, seconds(o->patience_ns));
		break;
	case MST_EVICT_INVALID:
		mst_reason_set(out, "rank %" PRIu32 " broke the protocol%s%s", rank,
			       told ? ": " : "", loss->link);
		break;
	case MST_EVICT_ASKED:
		mst_reason_set(out,
			       "rank %" PRIu32
			       " was evicted by an operator (muster evict): its session "
			       "is over",
			       rank);
		break;
	case MST_EVICT_OUTNUMBERED:
		outnumbered(out, rank);
		break;
	default:
		lacks_version(out, loss, o);
	}
}

/* All may be there. */
static void add_missing(struct mst_reason *out, const char *absent)
{
	if (absent[0] != '\0')
		mst_reason_add(out, "; missing: rank %s", absent);
}

/* All ranks of this generation are there, and more of the one before have to be. */
static void lacks_outside(struct mst_reason *out, const struct mst_gathered *g, const char *outside,
			  const struct mst_server_options *o)
{
	mst_reason_set(out,
		       "all %" PRIu32 " workers are there, but the job had %" PRIu32
		       " before, of which only %" PRIu32 " have come back within %.3g s "
		       "(--join-timeout), and %" PRIu32
		       " have to: more than half, for the others may be with another server; "
		       "missing: rank %s: let them call here, too, or start this server with "
		       "--workers %" PRIu32 ", and new processes of these ranks",
		       o->workers, g->workers, g->claims, seconds(o->join_timeout_ns),
		       mst_majority(g->workers), outside, g->workers);
}

void mst_sentence_gathered(struct mst_reason *out, const struct mst_gathered *g, const char *absent,
			   const char *outside, const struct mst_server_options *o)
{
	uint32_t majority = mst_majority(g->workers);

	if (absent[0] == '\0') {
		if (outside[0] != '\0')
			lacks_outside(out, g, outside, o);
		return;
	}
	if (g->least < majority)
		mst_reason_add(out,
			       "; a start needs all, since --min-workers %" PRIu32
			       " is at most half of %" PRIu32 ": start the others",
			       g->least, g->workers);
	else if (g->claims < majority)
		mst_reason_add(out,
			       "; of %" PRIu32 " ranks %" PRIu32
			       " have come back, and a start without the others needs %" PRIu32
			       ", more than half, for the others may be with another server: let "
			       "them call here, or start new processes of them: with all %" PRIu32
			       " the job goes on",
			       g->workers, g->claims, majority, o->workers);
	else if (g->started < g->least)
		mst_reason_add(out,
			       "; %" PRIu32 " have started, and a start without the others needs "
			       "--min-workers %" PRIu32 ": start the others",
			       g->started, g->least);
	if (outside[0] != '\0')
		mst_reason_add(out, "; rank %s of the %" PRIu32 " before would count, too", outside,
			       g->workers);
}

void mst_sentence_finished(struct mst_reason *out, enum mst_finish_why why, const char *absent,
			   const struct mst_server_options *o)
{
	switch (why) {
	case MST_FINISH_COMMITS:
		mst_reason_set(out, "%" PRIu64 " commits are made", o->commits);
		break;
	case MST_FINISH_SAMPLES:
		mst_reason_set(out, "%.0f samples are counted", o->samples);
		break;
	case MST_FINISH_ASKED:
		mst_reason_set(out, "a worker finished the job");
		break;
	case MST_FINISH_LEFT:
		mst_reason_set(out, "all workers have left");
		break;
	case MST_FINISH_JOIN_TIMEOUT:
	case MST_FINISH_NOT_BEGUN:
		mst_reason_set(out,
			       "not all of %" PRIu32
			       " workers started within %.3g s (--join-timeout)",
			       o->workers, seconds(o->join_timeout_ns));
		add_missing(out, absent);
		break;
	case MST_FINISH_TOO_FEW:
		mst_reason_set(out, "fewer than %" PRIu32 " live workers (--min-workers)",
			       mst_server_options_min_workers(o));
		add_missing(out, absent);
		break;
	case MST_FINISH_LOSS:
		mst_reason_set(out, "a worker was lost and --on-loss is fail");
		add_missing(out, absent);
		break;
	case MST_FINISH_SERVER:
		mst_reason_set(out, "a server of the job is gone, and its part of the vector");
		break;
	case MST_FINISH_SPOILT:
		mst_reason_set(out, "a version would not have been finite");
		break;
	case MST_FINISH_STOOD:
		mst_reason_set(out,
			       "workers have given this server up, so that fewer are left than "
			       "the job needs");
		add_missing(out, absent);
		break;
	case MST_FINISH_SUPERSEDED:
		mst_reason_set(out, "a worker has come back that has been at the start of a later "
				    "generation: another server has taken the place of this one");
		break;
	case MST_FINISH_STOPPED:
	case MST_FINISH_CLOSED:
		mst_reason_set(out, "the server was told to end");
		break;
	case MST_FINISH_NO_START:
		mst_reason_set(
			out,
			"the servers own the parameters and no worker offered a start state: give "
			"one to muster_start() on at least one rank");
		break;
	}
}

/* One of two goals is enough. No version may have been made. */
bool mst_sentence_short(struct mst_reason *out, uint64_t version, double samples, uint64_t commits,
			double of_samples)
{
	uint64_t made = version == MST_VERSION_NONE ? 0 : version;

	if ((commits == 0 && !(of_samples > 0)) || (commits > 0 && made >= commits) ||
	    (of_samples > 0 && samples >= of_samples))
		return false;
	out->text[0] = '\0';
	if (commits > 0)
		mst_reason_add(out, "%" PRIu64 " of %" PRIu64 " commits", made, commits);
	if (of_samples > 0)
		mst_reason_add(out, "%s%.0f of %.0f samples", commits > 0 ? ", " : "", samples,
			       of_samples);
	return true;
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

void mst_sentence_spoilt(struct mst_reason *out, const struct mst_spoilt *spoilt, const char *ranks,
			 uint32_t servers)
{
	bool step = (enum mst_spoil)spoilt->kind == MST_SPOIL_STEP;
	char by[192], good[64] = "";

	(void)spoilt_by(by, sizeof(by), spoilt);
	if (servers == 1)
		snprintf(good, sizeof(good), "; the last good version is %" PRIu64,
			 spoilt->version - 1);
	mst_reason_set(
		out, "version %" PRIu64 "%s%s would not be finite and is not published: %s%s (%s)",
		spoilt->version, ranks[0] != '\0' ? " of rank " : "", ranks, by, good,
		step ? "a smaller learning rate may help"
		     : "--guard full has muster_push() refuse it, and the job go on");
}

/* When the steps of the rule commit. */
static void when_it_commits(struct mst_reason *out, const struct mst_rule *rule, uint32_t workers)
{
	struct mst_rule_step whole = { .roster = workers, .missing = workers };
	uint32_t needed = mst_rule_needed(rule, &whole);
	double deadline_ms = (double)rule->deadline_ns / (double)MST_MS;

	if (rule->trigger == MST_TRIGGER_DEADLINE && rule->collect)
		mst_reason_set(out,
			       "commits when %g ms are over and all of %" PRIu32
			       " have handed in what they have finished",
			       deadline_ms, workers);
	else if (rule->trigger == MST_TRIGGER_DEADLINE)
		mst_reason_set(out,
			       "commits after %" PRIu32 " of %" PRIu32
			       ", or after %g ms with those who are there",
			       needed, workers, deadline_ms);
	else if (rule->by_micro && rule->grace_ns > 0)
		mst_reason_set(
			out,
			"commits when one of %" PRIu32
			" has handed over a batch, at most %g ms later if a micro-batch would "
			"be more than %" PRIu32 " versions old after it",
			workers, (double)rule->grace_ns / (double)MST_MS, rule->window);
	else if (rule->by_micro)
		mst_reason_set(out,
			       "commits when one of %" PRIu32
			       " has handed over a batch, and no micro-batch would be more than "
			       "%" PRIu32 " versions old after it",
			       workers, rule->window);
	else if (rule->trigger == MST_TRIGGER_FULL && rule->grace_ns > 0)
		mst_reason_set(out,
			       "commits when one of %" PRIu32
			       " has finished a batch and the others have handed in what they "
			       "have, or %g ms later",
			       workers, (double)rule->grace_ns / (double)MST_MS);
	else if (rule->trigger == MST_TRIGGER_FULL)
		mst_reason_set(out,
			       "commits when one of %" PRIu32
			       " has finished a batch and the others have handed in what they "
			       "have",
			       workers);
	else if (mst_rule_repeats(rule) && needed == 1)
		mst_reason_set(out, "commits after every %s",
			       rule->deltas ? "contribution" : "gradient");
	else if (mst_rule_repeats(rule))
		mst_reason_set(out, "commits after every %" PRIu32 " gradients", needed);
	else
		mst_reason_set(out,
			       "commits after %" PRIu32 " of %" PRIu32 ", %" PRIu32 " may be late",
			       needed, workers, workers - needed);
}

void mst_sentence_policy(struct mst_reason *out, const struct mst_rule *rule, uint32_t workers)
{
	const struct mst_pace *pace = &rule->pace;

	when_it_commits(out, rule, workers);
	if (pace->alpha > 0)
		mst_reason_add(out,
			       "; after %" PRIu32 " steps a worker moves by %g towards the servers",
			       pace->local_steps, pace->alpha);
	else if (pace->local_steps > 0)
		mst_reason_add(out, "; a worker contributes after %" PRIu32 " steps of its own",
			       pace->local_steps);
	else if (pace->push_every > 0)
		mst_reason_add(out,
			       "; a worker pushes after %" PRIu32
			       " batches and fetches after %" PRIu32,
			       pace->push_every, pace->fetch_every);
}
