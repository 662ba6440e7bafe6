/* SPDX-License-Identifier: MIT */
#include "tests/unit/server/core/ledger/ledger_text.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const event_name[] = {
	[MST_EV_JOIN] = "join",
	[MST_EV_LINKED] = "linked",
	[MST_EV_START] = "start",
	[MST_EV_STATE] = "state",
	[MST_EV_FULL] = "full",
	[MST_EV_ABANDONED] = "abandoned",
	[MST_EV_ASK] = "ask",
	[MST_EV_ANSWERED] = "answered",
	[MST_EV_HEARTBEAT] = "heartbeat",
	[MST_EV_HEARD] = "heard",
	[MST_EV_LEAVE] = "leave",
	[MST_EV_LOST] = "lost",
	[MST_EV_UNLINKED] = "unlinked",
	[MST_EV_FINISH] = "finish",
	[MST_EV_GOAL] = "goal",
	[MST_EV_POLICY] = "policy",
	[MST_EV_REST] = "rest",
	[MST_EV_SERVER] = "server",
	[MST_EV_SPOILT] = "spoilt",
	[MST_EV_SETTLED] = "settled",
	[MST_EV_REDUCED] = "reduced",
	[MST_EV_STOP] = "stop",
	[MST_EV_SAVED] = "saved",
	[MST_EV_LEND] = "lend",
	[MST_EV_RETURNED] = "returned",
	[MST_EV_EVICT] = "evict",
	[MST_EV_END] = "end",
	[MST_EV_GIVEN] = "given",
	[MST_EV_TAKEN] = "taken",
	[MST_EV_METRIC] = "metric",
	[MST_EV_STRAYS] = "strays",
};

static const char *const decision_name[] = {
	[MST_DO_ADMIT] = "ADMIT",     [MST_DO_REFUSE] = "REFUSE", [MST_DO_SEND_STATE] = "STATE?",
	[MST_DO_START] = "START",     [MST_DO_COUNT] = "COUNT",   [MST_DO_VERDICT] = "VERDICT",
	[MST_DO_REGRANT] = "REGRANT", [MST_DO_COMMIT] = "COMMIT", [MST_DO_RELEASE] = "RELEASE",
	[MST_DO_ADVISE] = "ADVISE",   [MST_DO_REST] = "REST",     [MST_DO_EVICT] = "EVICT",
	[MST_DO_POLICY] = "POLICY",   [MST_DO_FINISH] = "FINISH", [MST_DO_SETTLE] = "SETTLE",
	[MST_DO_APPLY] = "APPLY",     [MST_DO_SAVE] = "SAVE",     [MST_DO_SAVED] = "SAVED",
	[MST_DO_BEHIND] = "BEHIND",   [MST_DO_WANT] = "WANT",     [MST_DO_HAND] = "HAND",
	[MST_DO_HANDED] = "HANDED",   [MST_DO_LEND] = "LEND",     [MST_DO_GOAL] = "GOAL",
};

static const char *const evict_name[] = {
	[MST_EVICT_LEFT] = "left",         [MST_EVICT_LOST] = "lost",
	[MST_EVICT_LEASE] = "lease",       [MST_EVICT_PATIENCE] = "patience",
	[MST_EVICT_INVALID] = "invalid",   [MST_EVICT_STALE] = "stale",
	[MST_EVICT_NO_STATE] = "no state", [MST_EVICT_UNTAKEN] = "untaken",
	[MST_EVICT_ASKED] = "asked",       [MST_EVICT_APART] = "apart",
	[MST_EVICT_TOO_LATE] = "too late", [MST_EVICT_OUTNUMBERED] = "outnumbered",
};

static const char *const finish_name[] = {
	[MST_FINISH_COMMITS] = "commits",
	[MST_FINISH_SAMPLES] = "samples",
	[MST_FINISH_ASKED] = "asked",
	[MST_FINISH_LEFT] = "left",
	[MST_FINISH_JOIN_TIMEOUT] = "join timeout",
	[MST_FINISH_TOO_FEW] = "too few",
	[MST_FINISH_LOSS] = "loss",
	[MST_FINISH_NO_START] = "no start",
	[MST_FINISH_SERVER] = "server",
	[MST_FINISH_SPOILT] = "spoilt",
	[MST_FINISH_STOPPED] = "stopped",
	[MST_FINISH_CLOSED] = "closed",
	[MST_FINISH_STOOD] = "stood",
	[MST_FINISH_NOT_BEGUN] = "not begun",
	[MST_FINISH_SUPERSEDED] = "superseded",
};

static const char *const verdict_name[] = {
	[MUSTER_NONE] = "none",           [MUSTER_COUNTED] = "counted",
	[MUSTER_LATE] = "late",           [MUSTER_STALE] = "stale",
	[MUSTER_CANCELLED] = "cancelled", [MUSTER_REFUSED] = "refused",
	[MUSTER_OUTLIER] = "outlier",     [MUSTER_DAMAGED] = "damaged",
};

static const char *const where_name[] = {
	[MST_WHERE_KEEP] = "keep",
	[MST_WHERE_IN_PLACE] = "in place",
	[MST_WHERE_COPIED] = "copied",
	[MST_WHERE_NOWHERE] = "nowhere",
};

static void header_text(const struct mst_lane_header *h, char text[LEDGER_TEXT_LEN])
{
	char ask[64] = "", clip[32] = "";

	if ((h->flags & MST_HEADER_ASK) != 0)
		snprintf(ask, sizeof(ask), ", ask %" PRIu64 " have %" PRId64, h->ask.number,
			 (int64_t)h->ask.have);
	if ((h->flags & MST_HEADER_CLIPPED) != 0)
		snprintf(clip, sizeof(clip), " clip %g", (double)h->clip);
	snprintf(text, LEDGER_TEXT_LEN,
		 "seq %" PRIu64 " slot %u epoch %" PRIu64 " tag %" PRId64 " weight %g%s%s%s%s%s%s",
		 h->seq, h->slot, h->epoch, (int64_t)h->tag, h->weight,
		 h->flags & MST_HEADER_FULL ? " full" : "", h->flags & MST_HEADER_SUM ? " sum" : "",
		 h->flags & MST_HEADER_EMPTY ? " empty" : "",
		 h->flags & MST_HEADER_PASS ? " pass" : "", clip, ask);
}

void ledger_rule_text(const struct mst_rule *rule, char text[LEDGER_TEXT_LEN])
{
	static const char *const release[] = { "commit", "push", "bound" };
	static const char *const trigger[] = { "none", "full", "deadline" };
	static const char *const start[] = { "auto", "now", "commit" };

	snprintf(text, LEDGER_TEXT_LEN,
		 "quorum %d window %d release %s bound %u trigger %s/%u us%s grace %u us late "
		 "start %s%s%s%s%s%s%s",
		 rule->quorum, (int)rule->window, release[rule->release], rule->bound,
		 trigger[rule->trigger], (unsigned)(rule->deadline_ns / 1000),
		 rule->collect ? " collect" : "", (unsigned)(rule->grace_ns / 1000),
		 start[rule->late_start], rule->deltas ? " deltas" : "",
		 rule->late == MST_LATE_REJECT ? " reject" : "", rule->preempt ? " preempt" : "",
		 rule->weigh == MST_WEIGH_SAMPLES ? " samples" : "",
		 rule->compensate ? " compensate" : "", rule->divide ? " divide" : "");
}

static void about_event(const struct mst_ledger_event *ev, char text[LEDGER_TEXT_LEN])
{
	text[0] = '\0';
	switch (ev->kind) {
	case MST_EV_JOIN:
		snprintf(text, LEDGER_TEXT_LEN, "cookie %" PRIu64 " rank %d", ev->join.cookie,
			 ev->join.rank);
		break;
	case MST_EV_LINKED:
		snprintf(text, LEDGER_TEXT_LEN, "shard %u%s", ev->shard, ev->far ? " far" : "");
		break;
	case MST_EV_START:
		snprintf(text, LEDGER_TEXT_LEN, "%s", ev->offers ? "offers" : "offers nothing");
		break;
	case MST_EV_FULL: {
		char header[LEDGER_TEXT_LEN];
		header_text(&ev->full.header, header);
		snprintf(text, LEDGER_TEXT_LEN, "shard %u %.160s", ev->full.shard, header);
		break;
	}
	case MST_EV_ABANDONED:
		snprintf(text, LEDGER_TEXT_LEN, "shard %u slot %u epoch %" PRIu64,
			 ev->abandoned.shard, ev->abandoned.slot, ev->abandoned.epoch);
		break;
	case MST_EV_ASK:
		snprintf(text, LEDGER_TEXT_LEN, "number %" PRIu64 " have %" PRId64, ev->ask.number,
			 (int64_t)ev->ask.have);
		break;
	case MST_EV_ANSWERED:
		snprintf(text, LEDGER_TEXT_LEN, "shard %u number %" PRIu64, ev->answered.shard,
			 ev->answered.number);
		break;
	case MST_EV_HEARD:
		snprintf(text, LEDGER_TEXT_LEN, "all until %" PRIu64 " us", ev->heard_ns / 1000);
		break;
	case MST_EV_LOST:
		snprintf(text, LEDGER_TEXT_LEN, "error %d", ev->error);
		break;
	case MST_EV_LEAVE:
		snprintf(text, LEDGER_TEXT_LEN, "seq %" PRIu64, ev->seq);
		break;
	case MST_EV_REST:
		snprintf(text, LEDGER_TEXT_LEN, "%s", ev->rests ? "rests" : "returns");
		break;
	case MST_EV_POLICY:
		ledger_rule_text(&ev->rule, text);
		break;
	default:
		break;
	}
}

void ledger_event_text(const struct mst_ledger_event *ev, char text[LEDGER_TEXT_LEN])
{
	char about[LEDGER_TEXT_LEN];

	about_event(ev, about);
	snprintf(text, LEDGER_TEXT_LEN, "%u.%u %s %.160s", ev->who.rank, ev->who.incarnation,
		 event_name[ev->kind], about);
}

static void about_state(const struct mst_decision *d, char text[LEDGER_TEXT_LEN])
{
	snprintf(text, LEDGER_TEXT_LEN, "number %" PRIu64 " version %" PRIu64, d->state.number,
		 d->state.version);
}

static void about_saved(const struct mst_decision *d, char text[LEDGER_TEXT_LEN])
{
	snprintf(text, LEDGER_TEXT_LEN, "version %" PRIu64 "%s", d->saved.version,
		 d->saved.failed ? ", failed" : "");
}

static void about_goal(const struct mst_decision *d, char text[LEDGER_TEXT_LEN])
{
	snprintf(text, LEDGER_TEXT_LEN, "version %" PRIu64 " of %d, asked %" PRIu64,
		 d->goal.of_job.version, (int)d->goal.of_job.rank, d->goal.asked);
}

static void about_advice(const struct mst_decision *d, char text[LEDGER_TEXT_LEN])
{
	snprintf(text, LEDGER_TEXT_LEN, "version %" PRIu64 "%s", d->advice.version,
		 d->advice.hand_in ? ", hand in" : "");
}

static void about_decision(const struct mst_decision *d, char text[LEDGER_TEXT_LEN])
{
	text[0] = '\0';
	switch (d->kind) {
	case MST_DO_ADMIT:
	case MST_DO_REFUSE:
		snprintf(text, LEDGER_TEXT_LEN, "cookie %" PRIu64 " error %d", d->join.cookie,
			 d->join.error);
		break;
	case MST_DO_COUNT:
		snprintf(text, LEDGER_TEXT_LEN, "seq %" PRIu64 " slot %u coefficient %.9g",
			 d->count.seq, d->count.slot, (double)d->count.coefficient);
		break;
	case MST_DO_VERDICT:
		snprintf(text, LEDGER_TEXT_LEN,
			 "seq %" PRIu64 " tag %" PRId64 " slot %u %s in %" PRIu64, d->verdict.seq,
			 (int64_t)d->verdict.tag, d->verdict.slot, verdict_name[d->verdict.verdict],
			 d->verdict.counted_in);
		break;
	case MST_DO_REGRANT:
		snprintf(text, LEDGER_TEXT_LEN, "slot %u epoch %" PRIu64, d->grant.slot,
			 d->grant.epoch);
		break;
	case MST_DO_SEND_STATE:
	case MST_DO_START:
	case MST_DO_COMMIT:
		snprintf(text, LEDGER_TEXT_LEN, "version %" PRIu64 " buffer %d", d->commit.version,
			 (int)d->commit.buffer);
		break;
	case MST_DO_RELEASE:
		snprintf(text, LEDGER_TEXT_LEN,
			 "number %" PRIu64 " version %" PRIu64 " newest %" PRIu64 " %s buffer %d",
			 d->answer.number, d->answer.version, d->answer.newest,
			 where_name[d->answer.where], (int)d->answer.buffer);
		break;
	case MST_DO_ADVISE:
		about_advice(d, text);
		break;
	case MST_DO_REST:
		snprintf(text, LEDGER_TEXT_LEN, "%s", d->rests ? "rests" : "returns");
		break;
	case MST_DO_EVICT:
		snprintf(text, LEDGER_TEXT_LEN, "%s", evict_name[d->evict]);
		break;
	case MST_DO_FINISH:
		snprintf(text, LEDGER_TEXT_LEN, "%s, version %" PRIu64, finish_name[d->finish.why],
			 d->finish.version);
		break;
	case MST_DO_APPLY: /* no optimiser here has a reduce phase */
	case MST_DO_SAVE:
	case MST_DO_LEND:
		snprintf(text, LEDGER_TEXT_LEN, "version %" PRIu64, d->commit.version);
		break;
	case MST_DO_SAVED:
		about_saved(d, text);
		break;
	case MST_DO_BEHIND:
	case MST_DO_WANT:
	case MST_DO_HAND:
		about_state(d, text);
		break;
	case MST_DO_GOAL:
		about_goal(d, text);
		break;
	case MST_DO_SETTLE:
	case MST_DO_POLICY:
	case MST_DO_HANDED:
		break;
	}
}

void ledger_decision_text(const struct mst_decision *d, char text[LEDGER_TEXT_LEN])
{
	char about[LEDGER_TEXT_LEN];

	about_decision(d, about);
	snprintf(text, LEDGER_TEXT_LEN, "%s %u.%u %.160s", decision_name[d->kind], d->who.rank,
		 d->who.incarnation, about);
}
