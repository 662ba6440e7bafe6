/* SPDX-License-Identifier: MIT */
/* For each kind of entry the function that writes it and the one that reads it stand side by side.
 * What comes from another server is checked too: a figure out of range ends the job with an error,
 * not with a crash. */
#include "server/cluster/entry.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/base/assert.h"

static_assert(MST_PEER_SCALARS == MST_SCALARS_MAX,
	      "an entry has room for all scalars of a version");

static struct mst_peer_entry entry_for(enum mst_peer_kind kind, struct mst_identity who)
{
	return (struct mst_peer_entry){ .kind = (uint32_t)kind,
					.rank = who.rank,
					.incarnation = who.incarnation };
}

static bool names_somebody(const struct mst_peer_entry *entry,
			   const struct mst_entry_limits *limits)
{
	return entry->rank < limits->workers && entry->incarnation > 0;
}

/* ---- events ---- */

void mst_entry_of_event(const struct mst_ledger_event *ev, struct mst_peer_entry *out)
{
	switch (ev->kind) {
	case MST_EV_LINKED:
		*out = entry_for(MST_PEER_LINKED, ev->who);
		break;
	case MST_EV_FULL:
		*out = entry_for(MST_PEER_FULL, ev->who);
		out->header = ev->full.header;
		memcpy(&out->value, &ev->full.squares, sizeof(out->value));
		out->code = ev->full.damaged;
		break;
	case MST_EV_ABANDONED:
		*out = entry_for(MST_PEER_ABANDONED, ev->who);
		out->slot = ev->abandoned.slot;
		out->value = ev->abandoned.epoch;
		break;
	case MST_EV_ANSWERED:
		*out = entry_for(MST_PEER_ANSWERED, ev->who);
		out->value = ev->answered.number;
		break;
	case MST_EV_LOST:
		*out = entry_for(MST_PEER_LOST, ev->who);
		out->code = ev->error;
		break;
	case MST_EV_UNLINKED:
		*out = entry_for(MST_PEER_LOST, ev->who);
		out->code = -EPIPE;
		out->value = 1;
		break;
	case MST_EV_SPOILT:
		*out = entry_for(MST_PEER_SPOILT, ev->who);
		out->spoilt.version = ev->spoilt.version;
		out->spoilt.element = ev->spoilt.element;
		out->spoilt.kind = ev->spoilt.kind;
		out->spoilt.rank = ev->spoilt.rank;
		out->spoilt.rank_end = ev->spoilt.rank_end;
		break;
	case MST_EV_SETTLED:
		*out = entry_for(MST_PEER_SETTLED, ev->who);
		break;
	case MST_EV_REDUCED:
		*out = entry_for(MST_PEER_REDUCED, ev->who);
		out->value = ev->reduced.version;
		out->slot = ev->reduced.sum;
		out->code = ev->reduced.spans;
		out->coefficient = ev->reduced.decay;
		out->squares = ev->reduced.squares;
		break;
	case MST_EV_SAVED:
		*out = entry_for(MST_PEER_SAVED, ev->who);
		out->value = ev->saved.version;
		out->code = ev->saved.failed;
		break;
	case MST_EV_RETURNED:
		*out = entry_for(MST_PEER_RETURNED, ev->who);
		out->value = ev->lent.version;
		break;
	default:
		MST_ASSERT(false); /* events of the control plane happen at the leader only */
	}
}

/* The sum of squares in a FULL. */
static double squares_in(const struct mst_peer_entry *entry)
{
	double squares;

	memcpy(&squares, &entry->value, sizeof(squares));
	return squares;
}

static void read_event(const struct mst_peer_entry *entry, uint32_t server,
		       struct mst_ledger_event *out)
{
	switch ((enum mst_peer_kind)entry->kind) {
	case MST_PEER_LINKED:
		out->kind = MST_EV_LINKED;
		out->shard = server;
		break;
	case MST_PEER_FULL:
		out->kind = MST_EV_FULL;
		out->full.shard = server;
		out->full.header = entry->header;
		out->full.squares = squares_in(entry);
		out->full.damaged = entry->code != 0;
		break;
	case MST_PEER_ABANDONED:
		out->kind = MST_EV_ABANDONED;
		out->abandoned.shard = server;
		out->abandoned.slot = entry->slot;
		out->abandoned.epoch = entry->value;
		break;
	case MST_PEER_ANSWERED:
		out->kind = MST_EV_ANSWERED;
		out->answered.shard = server;
		out->answered.number = entry->value;
		break;
	case MST_PEER_SPOILT:
		out->kind = MST_EV_SPOILT;
		out->spoilt = (struct mst_spoilt){ .version = entry->spoilt.version,
						   .element = entry->spoilt.element,
						   .kind = entry->spoilt.kind,
						   .rank = entry->spoilt.rank,
						   .rank_end = entry->spoilt.rank_end };
		break;
	case MST_PEER_SETTLED:
		out->kind = MST_EV_SETTLED;
		out->shard = server;
		break;
	case MST_PEER_REDUCED:
		out->kind = MST_EV_REDUCED;
		out->reduced.shard = server;
		out->reduced.version = entry->value;
		out->reduced.sum = entry->slot;
		out->reduced.spans = entry->code != 0;
		out->reduced.decay = entry->coefficient;
		out->reduced.squares = entry->squares;
		break;
	case MST_PEER_SAVED:
		out->kind = MST_EV_SAVED;
		out->saved.shard = server;
		out->saved.version = entry->value;
		out->saved.failed = entry->code != 0;
		break;
	case MST_PEER_RETURNED:
		out->kind = MST_EV_RETURNED;
		out->lent.shard = server;
		out->lent.version = entry->value;
		break;
	default:
		out->kind = entry->value == 1 ? MST_EV_UNLINKED : MST_EV_LOST;
		if (out->kind == MST_EV_UNLINKED)
			out->shard = server;
		else
			out->error = entry->code;
	}
}

bool mst_entry_event(const struct mst_peer_entry *entry, const struct mst_entry_limits *limits,
		     uint32_t server, struct mst_ledger_event *out)
{
	struct mst_ledger_event ev = { .who = { entry->rank, entry->incarnation } };

	if (entry->kind < MST_PEER_LINKED || entry->kind > MST_PEER_RETURNED)
		return false;
	if (entry->kind <= MST_PEER_LOST && !names_somebody(entry, limits))
		return false;
	if (entry->kind == MST_PEER_SPOILT &&
	    (entry->spoilt.kind > MST_SPOIL_STEP || entry->spoilt.rank >= limits->workers ||
	     entry->spoilt.rank_end > limits->workers))
		return false;
	if (entry->kind == MST_PEER_LOST && entry->code >= 0)
		return false;
	if (entry->kind == MST_PEER_FULL && !(squares_in(entry) >= 0))
		return false;
	read_event(entry, server, &ev);
	if (ev.kind == MST_EV_FULL && !mst_lane_header_trim(&ev.full.header))
		return false;
	*out = ev;
	return true;
}

/* ---- decisions ---- */

static void write_slot(const struct mst_decision *d, struct mst_peer_entry *out)
{
	if (d->kind == MST_DO_COUNT) {
		*out = entry_for(MST_PEER_COUNT, d->who);
		out->slot = d->count.slot;
		out->coefficient = d->count.coefficient;
		out->code = d->count.repeats;
	} else {
		*out = entry_for(MST_PEER_REGRANT, d->who);
		out->slot = d->grant.slot;
		out->value = d->grant.epoch;
	}
}

static void write_commit(const struct mst_decision *d, const struct mst_record *record,
			 struct mst_peer_entry *out)
{
	static const uint32_t kinds[] = { [MST_DO_START] = MST_PEER_START,
					  [MST_DO_COMMIT] = MST_PEER_COMMIT,
					  [MST_DO_SAVE] = MST_PEER_SAVE };

	*out = entry_for(kinds[d->kind], d->who);
	out->commit.version = d->commit.version;
	out->commit.buffer = d->commit.buffer;
	if (d->kind != MST_DO_COMMIT)
		return;
	out->commit.divisor = record->divisor;
	memcpy(out->commit.scalar, record->scalar, sizeof(out->commit.scalar));
	out->commit.average = record->average;
	out->commit.read = d->commit.read;
}

static void write_answer(const struct mst_decision *d, struct mst_peer_entry *out)
{
	*out = entry_for(MST_PEER_RELEASE, d->who);
	out->answer = (struct mst_lane_answer){ .number = d->answer.number,
						.version = d->answer.version,
						.newest = d->answer.newest,
						.where = d->answer.where,
						.buffer = d->answer.buffer };
}

static void write_end(const struct mst_decision *d, struct mst_peer_entry *out)
{
	if (d->kind == MST_DO_EVICT) {
		*out = entry_for(MST_PEER_EVICT, d->who);
		out->code = (int32_t)d->evict;
	} else {
		*out = entry_for(MST_PEER_FINISH, d->who);
		out->code = (int32_t)d->finish.why;
		out->value = d->finish.version;
	}
}

bool mst_entry_of_decision(const struct mst_decision *d, const struct mst_record *record,
			   struct mst_peer_entry *out)
{
	switch (d->kind) {
	case MST_DO_COUNT:
	case MST_DO_REGRANT:
		write_slot(d, out);
		return true;
	case MST_DO_START:
	case MST_DO_COMMIT:
	case MST_DO_SAVE:
		write_commit(d, record, out);
		return true;
	case MST_DO_RELEASE:
		write_answer(d, out);
		return true;
	case MST_DO_EVICT:
	case MST_DO_FINISH:
		write_end(d, out);
		return true;
	case MST_DO_SETTLE:
		*out = entry_for(MST_PEER_SETTLE, d->who);
		return true;
	case MST_DO_LEND:
		*out = entry_for(MST_PEER_LEND, d->who);
		out->value = d->commit.version;
		return true;
	case MST_DO_APPLY:
		*out = entry_for(MST_PEER_APPLY, d->who);
		out->value = d->apply.version;
		out->coefficient = d->apply.factor;
		memcpy(out->apply.trust, d->apply.trust, sizeof(out->apply.trust));
		memcpy(out->apply.scalar, d->apply.scalar, sizeof(out->apply.scalar));
		return true;
	default:
		return false;
	}
}

static void read_slot(const struct mst_peer_entry *entry, struct mst_order *out)
{
	struct mst_decision *d = &out->decision;

	if (entry->kind == MST_PEER_COUNT) {
		d->kind = MST_DO_COUNT;
		d->count.slot = entry->slot;
		d->count.coefficient = entry->coefficient;
		d->count.repeats = entry->code != 0;
	} else {
		d->kind = MST_DO_REGRANT;
		d->grant.slot = entry->slot;
		d->grant.epoch = entry->value;
	}
}

static void read_commit(const struct mst_peer_entry *entry, struct mst_order *out)
{
	static const enum mst_decision_kind kinds[] = { [MST_PEER_START] = MST_DO_START,
							[MST_PEER_COMMIT] = MST_DO_COMMIT,
							[MST_PEER_SAVE] = MST_DO_SAVE };

	out->decision.kind = kinds[entry->kind];
	out->decision.commit.version = entry->commit.version;
	out->decision.commit.buffer = entry->commit.buffer;
	out->record.version = entry->commit.version;
	out->record.divisor = entry->commit.divisor;
	memcpy(out->record.scalar, entry->commit.scalar, sizeof(out->record.scalar));
	out->record.average = entry->commit.average;
	out->decision.commit.read = entry->commit.read;
}

static void read_answer(const struct mst_peer_entry *entry, struct mst_order *out)
{
	out->decision.kind = MST_DO_RELEASE;
	out->decision.answer.number = entry->answer.number;
	out->decision.answer.version = entry->answer.version;
	out->decision.answer.newest = entry->answer.newest;
	out->decision.answer.buffer = entry->answer.buffer;
	out->decision.answer.where = (enum mst_where)entry->answer.where;
}

static void read_apply(const struct mst_peer_entry *entry, struct mst_order *out)
{
	out->decision.kind = MST_DO_APPLY;
	out->decision.apply.version = entry->value;
	out->decision.apply.factor = entry->coefficient;
	memcpy(out->decision.apply.trust, entry->apply.trust, sizeof(entry->apply.trust));
	memcpy(out->decision.apply.scalar, entry->apply.scalar, sizeof(entry->apply.scalar));
}

static void read_lend(const struct mst_peer_entry *entry, struct mst_order *out)
{
	out->decision.kind = MST_DO_LEND;
	out->decision.commit.version = entry->value;
}

static void read_end(const struct mst_peer_entry *entry, struct mst_order *out)
{
	if (entry->kind == MST_PEER_EVICT) {
		out->decision.kind = MST_DO_EVICT;
		out->decision.evict = (enum mst_evict_why)entry->code;
	} else {
		out->decision.kind = MST_DO_FINISH;
		out->decision.finish.why = (enum mst_finish_why)entry->code;
		out->decision.finish.version = entry->value;
	}
}

static bool figures_ok(const struct mst_peer_entry *entry, const struct mst_entry_limits *limits)
{
	switch (entry->kind) {
	case MST_PEER_COMMIT:
		return entry->commit.buffer < limits->buffers &&
		       (entry->commit.read < limits->buffers ||
			entry->commit.read == MST_BUFFER_NONE);
	case MST_PEER_START:
	case MST_PEER_SAVE:
		return entry->commit.buffer < limits->buffers;
	case MST_PEER_COUNT:
	case MST_PEER_REGRANT:
		return names_somebody(entry, limits) && entry->slot < limits->slots;
	case MST_PEER_RELEASE:
		return names_somebody(entry, limits) && entry->answer.where <= MST_WHERE_NOWHERE &&
		       entry->answer.buffer < limits->buffers;
	case MST_PEER_EVICT:
		return names_somebody(entry, limits) && entry->code >= 0 &&
		       entry->code <= MST_EVICT_OUTNUMBERED;
	case MST_PEER_FINISH:
		return entry->code >= 0 && entry->code <= MST_FINISH_SUPERSEDED;
	case MST_PEER_SETTLE:
	case MST_PEER_APPLY:
	case MST_PEER_LEND:
		return true;
	default:
		return false;
	}
}

bool mst_entry_order(const struct mst_peer_entry *entry, const struct mst_entry_limits *limits,
		     struct mst_order *out)
{
	if (!figures_ok(entry, limits))
		return false;
	*out = (struct mst_order){ .decision.who = { entry->rank, entry->incarnation } };
	if (entry->kind == MST_PEER_COUNT || entry->kind == MST_PEER_REGRANT)
		read_slot(entry, out);
	else if (entry->kind == MST_PEER_START || entry->kind == MST_PEER_COMMIT ||
		 entry->kind == MST_PEER_SAVE)
		read_commit(entry, out);
	else if (entry->kind == MST_PEER_RELEASE)
		read_answer(entry, out);
	else if (entry->kind == MST_PEER_SETTLE)
		out->decision.kind = MST_DO_SETTLE;
	else if (entry->kind == MST_PEER_APPLY)
		read_apply(entry, out);
	else if (entry->kind == MST_PEER_LEND)
		read_lend(entry, out);
	else
		read_end(entry, out);
	return true;
}
