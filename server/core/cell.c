/* SPDX-License-Identifier: MIT */
/* Each kind is written and read side by side. What comes from another server is checked all the
 * same: a figure out of range ends the job with an error, not with a crash. */
#include "server/core/cell.h"

#include "common/base/assert.h"

static struct mst_peer_cell cell_for(enum mst_peer_kind kind, struct mst_identity who)
{
	return (struct mst_peer_cell){ .kind = (uint32_t)kind,
				       .rank = who.rank,
				       .incarnation = who.incarnation };
}

static bool names_somebody(const struct mst_peer_cell *cell, const struct mst_cell_limits *limits)
{
	return cell->rank < limits->workers && cell->incarnation > 0;
}

/* ---- events ---- */

void mst_cell_of_event(const struct mst_ledger_event *ev, struct mst_peer_cell *out)
{
	switch (ev->kind) {
	case MST_EV_LINKED:
		*out = cell_for(MST_PEER_LINKED, ev->who);
		break;
	case MST_EV_FULL:
		*out = cell_for(MST_PEER_FULL, ev->who);
		out->header = ev->full.header;
		break;
	case MST_EV_ABANDONED:
		*out = cell_for(MST_PEER_ABANDONED, ev->who);
		out->slot = ev->abandoned.slot;
		out->value = ev->abandoned.epoch;
		break;
	case MST_EV_ANSWERED:
		*out = cell_for(MST_PEER_ANSWERED, ev->who);
		out->value = ev->answered.number;
		break;
	case MST_EV_LOST:
		*out = cell_for(MST_PEER_LOST, ev->who);
		out->code = ev->error;
		break;
	default:
		MST_ASSERT(false); /* the control plane's, which is the lead's */
	}
}

static void read_event(const struct mst_peer_cell *cell, uint32_t server,
		       struct mst_ledger_event *out)
{
	switch ((enum mst_peer_kind)cell->kind) {
	case MST_PEER_LINKED:
		out->kind = MST_EV_LINKED;
		out->shard = server;
		break;
	case MST_PEER_FULL:
		out->kind = MST_EV_FULL;
		out->full.shard = server;
		out->full.header = cell->header;
		break;
	case MST_PEER_ABANDONED:
		out->kind = MST_EV_ABANDONED;
		out->abandoned.shard = server;
		out->abandoned.slot = cell->slot;
		out->abandoned.epoch = cell->value;
		break;
	case MST_PEER_ANSWERED:
		out->kind = MST_EV_ANSWERED;
		out->answered.shard = server;
		out->answered.number = cell->value;
		break;
	default:
		out->kind = MST_EV_LOST;
		out->error = cell->code;
	}
}

bool mst_cell_event(const struct mst_peer_cell *cell, const struct mst_cell_limits *limits,
		    uint32_t server, struct mst_ledger_event *out)
{
	struct mst_ledger_event ev = { .who = { cell->rank, cell->incarnation } };

	if (cell->kind < MST_PEER_LINKED || cell->kind > MST_PEER_LOST ||
	    !names_somebody(cell, limits))
		return false;
	if (cell->kind == MST_PEER_LOST && cell->code >= 0)
		return false;
	read_event(cell, server, &ev);
	*out = ev;
	return true;
}

/* ---- decisions ---- */

static void write_slot(const struct mst_decision *d, bool repeats, struct mst_peer_cell *out)
{
	if (d->kind == MST_DO_COUNT) {
		*out = cell_for(MST_PEER_COUNT, d->who);
		out->slot = d->count.slot;
		out->coefficient = d->count.coefficient;
		out->code = repeats;
	} else {
		*out = cell_for(MST_PEER_REGRANT, d->who);
		out->slot = d->grant.slot;
		out->value = d->grant.epoch;
	}
}

static void write_commit(const struct mst_decision *d, const struct mst_record *record,
			 struct mst_peer_cell *out)
{
	*out = cell_for(d->kind == MST_DO_START ? MST_PEER_START : MST_PEER_COMMIT, d->who);
	out->commit.version = d->commit.version;
	out->commit.buffer = d->commit.buffer;
	if (d->kind == MST_DO_START)
		return;
	out->commit.divisor = record->divisor;
	out->commit.rate = record->rate;
}

static void write_answer(const struct mst_decision *d, struct mst_peer_cell *out)
{
	*out = cell_for(MST_PEER_RELEASE, d->who);
	out->answer = (struct mst_lane_answer){ .number = d->answer.number,
						.version = d->answer.version,
						.newest = d->answer.newest,
						.where = d->answer.where,
						.buffer = d->answer.buffer };
}

static void write_end(const struct mst_decision *d, struct mst_peer_cell *out)
{
	if (d->kind == MST_DO_EVICT) {
		*out = cell_for(MST_PEER_EVICT, d->who);
		out->code = (int32_t)d->evict;
	} else {
		*out = cell_for(MST_PEER_FINISH, d->who);
		out->code = (int32_t)d->finish.why;
		out->value = d->finish.version;
	}
}

bool mst_cell_of_decision(const struct mst_decision *d, const struct mst_record *record,
			  bool repeats, struct mst_peer_cell *out)
{
	switch (d->kind) {
	case MST_DO_COUNT:
	case MST_DO_REGRANT:
		write_slot(d, repeats, out);
		return true;
	case MST_DO_START:
	case MST_DO_COMMIT:
		write_commit(d, record, out);
		return true;
	case MST_DO_RELEASE:
		write_answer(d, out);
		return true;
	case MST_DO_EVICT:
	case MST_DO_FINISH:
		write_end(d, out);
		return true;
	default:
		return false;
	}
}

static void read_slot(const struct mst_peer_cell *cell, struct mst_order *out)
{
	struct mst_decision *d = &out->decision;

	if (cell->kind == MST_PEER_COUNT) {
		d->kind = MST_DO_COUNT;
		d->count.slot = cell->slot;
		d->count.coefficient = cell->coefficient;
		out->repeats = cell->code != 0;
	} else {
		d->kind = MST_DO_REGRANT;
		d->grant.slot = cell->slot;
		d->grant.epoch = cell->value;
	}
}

static void read_commit(const struct mst_peer_cell *cell, struct mst_order *out)
{
	out->decision.kind = cell->kind == MST_PEER_START ? MST_DO_START : MST_DO_COMMIT;
	out->decision.commit.version = cell->commit.version;
	out->decision.commit.buffer = cell->commit.buffer;
	out->record.version = cell->commit.version;
	out->record.divisor = cell->commit.divisor;
	out->record.rate = cell->commit.rate;
}

static void read_answer(const struct mst_peer_cell *cell, struct mst_order *out)
{
	out->decision.kind = MST_DO_RELEASE;
	out->decision.answer.number = cell->answer.number;
	out->decision.answer.version = cell->answer.version;
	out->decision.answer.newest = cell->answer.newest;
	out->decision.answer.buffer = cell->answer.buffer;
	out->decision.answer.where = (enum mst_where)cell->answer.where;
}

static void read_end(const struct mst_peer_cell *cell, struct mst_order *out)
{
	if (cell->kind == MST_PEER_EVICT) {
		out->decision.kind = MST_DO_EVICT;
		out->decision.evict = (enum mst_evict_why)cell->code;
	} else {
		out->decision.kind = MST_DO_FINISH;
		out->decision.finish.why = (enum mst_finish_why)cell->code;
		out->decision.finish.version = cell->value;
	}
}

static bool figures_ok(const struct mst_peer_cell *cell, const struct mst_cell_limits *limits)
{
	switch (cell->kind) {
	case MST_PEER_START:
	case MST_PEER_COMMIT:
		return cell->commit.buffer < limits->buffers;
	case MST_PEER_COUNT:
	case MST_PEER_REGRANT:
		return names_somebody(cell, limits) && cell->slot < limits->slots;
	case MST_PEER_RELEASE:
		return names_somebody(cell, limits) && cell->answer.where <= MST_WHERE_NOWHERE &&
		       cell->answer.buffer < limits->buffers;
	case MST_PEER_EVICT:
		return names_somebody(cell, limits) && cell->code >= 0 &&
		       cell->code <= MST_EVICT_STALE;
	case MST_PEER_FINISH:
		return cell->code >= 0 && cell->code <= MST_FINISH_SERVER;
	default:
		return false;
	}
}

bool mst_cell_order(const struct mst_peer_cell *cell, const struct mst_cell_limits *limits,
		    struct mst_order *out)
{
	if (!figures_ok(cell, limits))
		return false;
	*out = (struct mst_order){ .decision.who = { cell->rank, cell->incarnation } };
	if (cell->kind == MST_PEER_COUNT || cell->kind == MST_PEER_REGRANT)
		read_slot(cell, out);
	else if (cell->kind == MST_PEER_START || cell->kind == MST_PEER_COMMIT)
		read_commit(cell, out);
	else if (cell->kind == MST_PEER_RELEASE)
		read_answer(cell, out);
	else
		read_end(cell, out);
	return true;
}
