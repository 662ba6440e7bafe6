/* SPDX-License-Identifier: MIT */
/*
 * A digest of all that two releases must have in common to understand each other: the required
 * fields of every message, and the records, immediates and places of the lanes. Releases take each
 * other for the same if they have the same MST_PROTOCOL, so whoever changes these must raise that
 * number. An optional field of a message is no part of it.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/wire/lane.h"
#include "common/wire/message_fields.h"
#include "common/wire/peer.h"
#include "common/wire/table.h"
#include "tests/ut.h"

/* Both are new with each change of the wire. */
static const struct {
	uint32_t protocol;
	uint64_t digest;
} wire = { 19, UINT64_C(0xdd3eb43125312dbf) };

/* ---- FNV-1a of 64 bits ---- */

static uint64_t so_far = UINT64_C(0xcbf29ce484222325);

static void add(uint64_t figure)
{
	for (unsigned i = 0; i < 8; i++)
		so_far = (so_far ^ (figure >> 8 * i & 0xff)) * UINT64_C(0x100000001b3);
}

static void add_text(const char *text)
{
	for (; *text != '\0'; text++)
		add((unsigned char)*text);
	add(0);
}

/* ---- messages ---- */

static bool is_required(const struct mst_field *f)
{
	return !(f->flags & MST_FIELD_OPTIONAL);
}

/* What fields say themselves. Where a decoded field is kept is no part of the wire. */
static void add_fields(const struct mst_shape *shape)
{
	for (size_t i = 0; i < shape->count; i++) {
		if (!is_required(&shape->field[i]))
			continue;
		add(shape->field[i].tag);
		add_text(shape->field[i].name);
		add(shape->field[i].type);
		add(shape->field[i].limit);
	}
	add(0); /* no tag: the end */
}

/* Rows have no rows within them. */
static void add_shape(const struct mst_shape *shape)
{
	add_fields(shape);
	for (size_t i = 0; i < shape->count; i++) {
		if (shape->field[i].rows != NULL && is_required(&shape->field[i]))
			add_fields(&shape->field[i].rows->shape);
	}
}

static void add_messages(void)
{
	const struct mst_body *body;

	for (uint32_t kind = MST_MSG_HELLO; (body = mst_body_of(kind)) != NULL; kind++)
		add_shape(&body->shape);
}

/* ---- records: their members up to the size that each sender must fill ---- */

static const struct {
	const char *name;
	size_t offset, bytes;
} records[] = {
#define WHOLE(of)                                                                                  \
	{                                                                                          \
#of, 0, sizeof(struct of)                                                          \
	}
#define PART(of, field)                                                                            \
	{                                                                                          \
#field, offsetof(struct of, field), sizeof(((struct of *)NULL)->field)             \
	}
	WHOLE(mst_lane_ask),
	PART(mst_lane_ask, number),
	PART(mst_lane_ask, have),
	WHOLE(mst_lane_lone_ask),
	PART(mst_lane_lone_ask, ask),
	PART(mst_lane_lone_ask, given_up),
	WHOLE(mst_lane_header),
	PART(mst_lane_header, seq),
	PART(mst_lane_header, epoch),
	PART(mst_lane_header, tag),
	PART(mst_lane_header, weight),
	PART(mst_lane_header, loss),
	PART(mst_lane_header, norm),
	PART(mst_lane_header, ask),
	PART(mst_lane_header, slot),
	PART(mst_lane_header, unheard),
	PART(mst_lane_header, flags),
	PART(mst_lane_header, clip),
	PART(mst_lane_header, sum),
	PART(mst_lane_header, size),
	WHOLE(mst_lane_session),
	PART(mst_lane_session, state),
	PART(mst_lane_session, error),
	PART(mst_lane_session, version),
	WHOLE(mst_lane_grant),
	PART(mst_lane_grant, epoch),
	WHOLE(mst_lane_verdict),
	PART(mst_lane_verdict, ticket),
	PART(mst_lane_verdict, counted_in),
	PART(mst_lane_verdict, verdict),
	PART(mst_lane_verdict, pad),
	WHOLE(mst_lane_answer),
	PART(mst_lane_answer, number),
	PART(mst_lane_answer, version),
	PART(mst_lane_answer, newest),
	PART(mst_lane_answer, where),
	PART(mst_lane_answer, buffer),
	WHOLE(mst_lane_share),
	PART(mst_lane_share, rank),
	PART(mst_lane_share, count),
	PART(mst_lane_share, weight),
	WHOLE(mst_lane_record),
	PART(mst_lane_record, version),
	PART(mst_lane_record, weight),
	PART(mst_lane_record, lr_scale),
	PART(mst_lane_record, alpha),
	PART(mst_lane_record, local_steps),
	PART(mst_lane_record, push_every),
	PART(mst_lane_record, fetch_every),
	PART(mst_lane_record, window),
	PART(mst_lane_record, flags),
	PART(mst_lane_record, share_count),
	PART(mst_lane_record, size),
	PART(mst_lane_record, by_micro),
	PART(mst_lane_record, samples),
	WHOLE(mst_exact_sum),
	WHOLE(mst_peer_entry),
	PART(mst_peer_entry, number),
	PART(mst_peer_entry, ack),
	PART(mst_peer_entry, kind),
	PART(mst_peer_entry, rank),
	PART(mst_peer_entry, incarnation),
	PART(mst_peer_entry, slot),
	PART(mst_peer_entry, value),
	PART(mst_peer_entry, code),
	PART(mst_peer_entry, coefficient),
	PART(mst_peer_entry, header),
	PART(mst_peer_entry, answer),
	PART(mst_peer_entry, commit.version),
	PART(mst_peer_entry, commit.buffer),
	PART(mst_peer_entry, commit.divisor),
	PART(mst_peer_entry, commit.scalar),
	PART(mst_peer_entry, commit.average),
	PART(mst_peer_entry, commit.read),
	PART(mst_peer_entry, spoilt.version),
	PART(mst_peer_entry, spoilt.element),
	PART(mst_peer_entry, spoilt.kind),
	PART(mst_peer_entry, spoilt.rank),
	PART(mst_peer_entry, spoilt.rank_end),
	PART(mst_peer_entry, spoilt.pad),
	PART(mst_peer_entry, squares),
	PART(mst_peer_entry, apply.trust),
	PART(mst_peer_entry, apply.scalar),
#undef PART
#undef WHOLE
};

static void add_records(void)
{
	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		add_text(records[i].name);
		add(records[i].offset);
		add(records[i].bytes);
	}
}

/* ---- what the figures in records and immediates mean ---- */

static const struct {
	const char *name;
	uint64_t value;
} figures[] = {
#define FIGURE(name)                                                                               \
	{                                                                                          \
#name, name                                                                        \
	}
	FIGURE(MST_SLOTS_MAX),       FIGURE(MST_VERSION_NONE),      FIGURE(MST_IMM_HEADER),
	FIGURE(MST_IMM_ABANDON),     FIGURE(MST_IMM_ASK),           FIGURE(MST_IMM_SESSION),
	FIGURE(MST_IMM_GRANT),       FIGURE(MST_IMM_VERDICT),       FIGURE(MST_IMM_ANSWER),
	FIGURE(MST_IMM_EPOCH_MASK),  FIGURE(MST_HEADER_FULL),       FIGURE(MST_HEADER_SUM),
	FIGURE(MST_HEADER_EMPTY),    FIGURE(MST_HEADER_PASS),       FIGURE(MST_HEADER_ASK),
	FIGURE(MST_HEADER_LOSS),     FIGURE(MST_HEADER_CLIPPED),    FIGURE(MST_HEADER_NORM),
	FIGURE(MST_SESSION_RUNNING), FIGURE(MST_SESSION_FINISHED),  FIGURE(MST_SESSION_ENDED),
	FIGURE(MST_SESSION_OF_JOB),  FIGURE(MST_SESSION_OF_WORKER), FIGURE(MST_SESSION_WORDS),
	FIGURE(MST_WHERE_KEEP),      FIGURE(MST_WHERE_IN_PLACE),    FIGURE(MST_WHERE_COPIED),
	FIGURE(MST_WHERE_NOWHERE),   FIGURE(MUSTER_COUNTED),        FIGURE(MUSTER_LATE),
	FIGURE(MUSTER_STALE),        FIGURE(MUSTER_CANCELLED),      FIGURE(MUSTER_REFUSED),
	FIGURE(MUSTER_OUTLIER),      FIGURE(MUSTER_DAMAGED),        FIGURE(MST_HEADER_CHECKED),
	FIGURE(MST_PEER_IMM_MASK),   FIGURE(MST_PEER_IMM_ACK),      FIGURE(MST_PEER_LINKED),
	FIGURE(MST_PEER_FULL),       FIGURE(MST_PEER_ABANDONED),    FIGURE(MST_PEER_ANSWERED),
	FIGURE(MST_PEER_LOST),       FIGURE(MST_PEER_SPOILT),       FIGURE(MST_PEER_SETTLED),
	FIGURE(MST_PEER_REDUCED),    FIGURE(MST_PEER_START),        FIGURE(MST_PEER_COUNT),
	FIGURE(MST_PEER_REGRANT),    FIGURE(MST_PEER_COMMIT),       FIGURE(MST_PEER_RELEASE),
	FIGURE(MST_PEER_EVICT),      FIGURE(MST_PEER_FINISH),       FIGURE(MST_PEER_SETTLE),
	FIGURE(MST_PEER_APPLY),      FIGURE(MST_PEER_KINDS),        FIGURE(MST_HEADER_SIZE_MIN),
	FIGURE(MST_RECORD_SIZE_MIN), FIGURE(MST_MARK_WORDS),
#undef FIGURE
};

static void add_figures(void)
{
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
		add_text(figures[i].name);
		add(figures[i].value);
	}
	add(mst_imm(MST_IMM_GRANT, 3, UINT64_C(0x123456789a)));
	add(mst_imm_answer(1, 2));
	add(mst_peer_imm(UINT64_C(0x123456789a)));
}

/* ---- places, which both ends compute for themselves ---- */

static void add_layout(const struct mst_lane_figures *of)
{
	struct mst_lane_layout l;

	mst_lane_layout(of, &l);
	add(l.up_ask);
	for (uint32_t slot = 0; slot < l.slots; slot++) {
		add(l.up_header[slot]);
		add(mst_lane_gradient(&l, slot, 0));
		add(mst_lane_gradient(&l, slot, 37));
		add(l.down_grant[slot]);
		add(l.down_verdict[slot]);
	}
	for (uint32_t word = 0; word < MST_SESSION_WORDS; word++)
		add(l.down_session[word]);
	add(l.down_hint);
	add(l.down_mark);
	add(l.down_answer);
	add(l.down_record);
	add(l.down_result);
	add(l.up_bytes);
	add(l.down_bytes);
	add(l.up_credits);
	add(l.down_credits);
}

static void add_places(void)
{
	static const struct mst_lane_figures lanes[] = {
		{ 1, 2, 4, 1, 1, false },
		{ 1001, 4, 2, 2, 40, false },
		{ 1 << 24, 4, 4, MST_SLOTS_MAX, MST_WORKERS_MAX, true },
	};

	for (size_t i = 0; i < sizeof(lanes) / sizeof(lanes[0]); i++)
		add_layout(&lanes[i]);
	for (uint32_t workers = 1; workers <= MST_WORKERS_MAX; workers *= 4) {
		uint32_t window = mst_peer_window(workers, 2);
		add(window);
		add(mst_peer_at(workers + 1, window));
		add(mst_peer_ack_at(window));
		add(mst_peer_bytes(window));
		add(mst_peer_credits(window));
	}
}

/* What a hello says of a table, each worker computes for itself too. */
static void add_table(void)
{
	static const struct muster_tensor tensor[] = {
		{ .name = "weight", .first = 0, .count = 12, .lr_scale = 1, .decay_scale = 1 },
		{ .name = NULL, .first = 12, .count = 3, .lr_scale = 2, .decay_scale = 0.5f },
	};
	struct mst_table table;

	mst_table_of(tensor, 2, &table);
	add(table.tensors);
	add(table.runs);
	add(table.name_bytes);
	add(table.names);
	add(table.places);
	add(table.scales);
}

/* ---- the promise ---- */

static void a_change_of_the_wire_has_a_new_number(void)
{
	add_messages();
	add_records();
	add_figures();
	add_places();
	add_table();
	if (MST_PROTOCOL != wire.protocol || so_far != wire.digest)
		(void)printf(
			"the wire has changed: raise MST_PROTOCOL (common/wire/message.h), and "
			"write here %u, UINT64_C(0x%016" PRIx64 ")\n",
			MST_PROTOCOL == wire.protocol ? wire.protocol + 1 : MST_PROTOCOL, so_far);
	CU_ASSERT_EQUAL(MST_PROTOCOL, wire.protocol);
	CU_ASSERT_EQUAL(so_far, wire.digest);
}

/* ---- what is none ---- */

struct growing {
	uint32_t first, second, added;
};

static uint64_t digest_of(const struct mst_field *field, size_t count)
{
	const struct mst_shape shape = { field, count };

	so_far = 0;
	add_shape(&shape);
	return so_far;
}

static void an_optional_field_is_no_change(void)
{
	static const struct mst_field old[] = {
		FIELD(1, U32, growing, first),
		FIELD(2, U32, growing, second),
	};
	static const struct mst_field optional[] = {
		FIELD(1, U32, growing, first),
		FIELD(2, U32, growing, second),
		OPTIONAL(3, U32, growing, added, 0),
		OPTIONAL_MUST_KNOW(4, U32, growing, added, 0),
	};
	static const struct mst_field required[] = {
		FIELD(1, U32, growing, first),
		FIELD(2, U32, growing, second),
		FIELD(3, U32, growing, added),
	};
	static const struct mst_field other_tag[] = {
		FIELD(1, U32, growing, first),
		FIELD(3, U32, growing, second),
	};

	CU_ASSERT_EQUAL(digest_of(old, 2), digest_of(optional, 4));
	CU_ASSERT_NOT_EQUAL(digest_of(old, 2), digest_of(required, 3));
	CU_ASSERT_NOT_EQUAL(digest_of(old, 2), digest_of(other_tag, 2));
	CU_ASSERT_NOT_EQUAL(digest_of(old, 2), digest_of(old, 1));
}

static CU_TestInfo cases[] = {
	{ "a change of the wire has a new protocol number", a_change_of_the_wire_has_a_new_number },
	{ "an optional field is no change of the protocol", an_optional_field_is_no_change },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("protocol", cases);
}
