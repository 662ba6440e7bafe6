/* SPDX-License-Identifier: MIT */
/*
 * The tables of fields. Each field is named once, with its tag and its limit, for both encoding and
 * decoding.
 *
 * A new field is a row at the end of its table, with the next tag, and optional: then MST_PROTOCOL
 * stays as it is. A tag is never used again, also when its field has gone: another release still
 * writes it. A required field (one without OPTIONAL) is a new protocol, as is another type or limit
 * of one.
 */
#include "common/wire/message_fields.h"

/* Tags from @tag on: five, of which the second is of an older protocol. */
#define PATH(tag, of)                                                                              \
	FIELD(tag, U64, of, path.link_timeout_ns),                                                 \
		LIMITED((tag) + 2, ENUM, of, path.traffic_class, 256),                             \
		LIMITED((tag) + 3, ENUM, of, path.service_level, 16),                              \
		FIELD((tag) + 4, I32, of, path.pkey)
/* Tags from @tag on: six. */
#define TABLE(tag, of)                                                                             \
	LIMITED(tag, ENUM, of, table.tensors, MUSTER_TENSORS_MAX + 1),                             \
		LIMITED((tag) + 1, ENUM, of, table.runs, MUSTER_TENSORS_MAX + 1),                  \
		FIELD((tag) + 2, U64, of, table.name_bytes),                                       \
		FIELD((tag) + 3, U64, of, table.names), FIELD((tag) + 4, U64, of, table.places),   \
		FIELD((tag) + 5, U64, of, table.scales)
/* Tags from @tag on: three. */
#define IN_FORCE(tag, of, at)                                                                      \
	OPTIONAL(tag, U64, of, at number, 0), OPTIONAL((tag) + 1, ENUM, of, at forced, 2),         \
		OPTIONAL((tag) + 2, TEXT, of, at policy, MST_POLICY_LEN)
#define ORIGINS(tag, of, rows) ROWS(tag, of, origins.count, MST_ORIGINS_MAX, rows)

static const struct mst_field origin_fields[] = { BYTES(1, mst_origin, address) };
static const struct mst_rows hello_origin_rows = {
	offsetof(struct mst_hello, origins.at),
	sizeof(struct mst_origin),
	SHAPE(origin_fields),
};
static const struct mst_field hello_fields[] = {
	TEXT(1, mst_hello, job),
	FIELD(2, I32, mst_hello, rank),
	FIELD(3, U64, mst_hello, elems),
	LIMITED(4, ENUM, mst_hello, type, MUSTER_F16 + 1),
	LIMITED(5, ENUM, mst_hello, result_type, MUSTER_F16 + 1),
	LIMITED(6, ENUM, mst_hello, owner, MUSTER_WORKERS_OWN + 1),
	FIELD(7, U32, mst_hello, pid),
	LIMITED(8, ENUM, mst_hello, comes_back, 2),
	TABLE(9, mst_hello),
	ORIGINS(15, mst_hello, hello_origin_rows),
	OPTIONAL(16, TEXT, mst_hello, returning.run, MST_RUN_LEN),
	OPTIONAL(17, U64, mst_hello, returning.number, 0),
	OPTIONAL(18, U64, mst_hello, returning.version, 0),
	OPTIONAL(19, U64, mst_hello, returning.made, 0),
	OPTIONAL(20, U64, mst_hello, returning.made_before, 0),
	OPTIONAL(21, F64, mst_hello, returning.samples, 0),
	OPTIONAL(22, U32, mst_hello, returning.incarnation, 0),
	OPTIONAL(23, U64, mst_hello, returning.seen, 0),
	OPTIONAL(24, U64, mst_hello, returning.seen_id, 0),
	OPTIONAL(25, ENUM, mst_hello, returning.taken, 2),
	OPTIONAL(30, ENUM, mst_hello, returning.workers, MST_WORKERS_MAX + 1),
	OPTIONAL(31, ENUM, mst_hello, workforce.workers, MST_WORKERS_MAX + 1),
	OPTIONAL(32, ENUM, mst_hello, workforce.given, MST_WORKERS_MAX + 1),
	OPTIONAL(33, U64, mst_hello, workforce.change, 0),
	OPTIONAL(34, ENUM, mst_hello, returning.record_ranks, MST_WORKERS_MAX + 1),
	IN_FORCE(40, mst_hello, returning.in_force.),
};

static_assert(sizeof(enum muster_verdict) == sizeof(uint32_t), "a verdict is coded as an ENUM");
static const struct mst_field verdict_fields[] = {
	FIELD(1, U64, muster_push_verdict, ticket),
	FIELD(2, U32, muster_push_verdict, incarnation),
	LIMITED(3, ENUM, muster_push_verdict, verdict, MUSTER_DAMAGED + 1),
	FIELD(4, U64, muster_push_verdict, counted_in),
};
static const struct mst_rows verdict_rows = {
	offsetof(struct mst_welcome, verdict),
	sizeof(struct muster_push_verdict),
	SHAPE(verdict_fields),
};
static const struct mst_field server_fields[] = {
	TEXT(1, mst_welcome_server, address),
	BYTES(2, mst_welcome_server, token),
	FIELD(3, U64, mst_welcome_server, first),
	FIELD(4, U64, mst_welcome_server, count),
};
static const struct mst_rows server_rows = {
	offsetof(struct mst_welcome, server),
	sizeof(struct mst_welcome_server),
	SHAPE(server_fields),
};
static const struct mst_field welcome_fields[] = {
	TEXT(1, mst_welcome, job),
	TEXT(2, mst_welcome, policy),
	FIELD(3, U32, mst_welcome, rank),
	FIELD(4, U32, mst_welcome, incarnation),
	FIELD(5, U32, mst_welcome, workers),
	FIELD(6, U32, mst_welcome, slots),
	FIELD(7, U64, mst_welcome, elems),
	LIMITED(8, ENUM, mst_welcome, type, MUSTER_F16 + 1),
	LIMITED(9, ENUM, mst_welcome, result_type, MUSTER_F16 + 1),
	LIMITED(10, ENUM, mst_welcome, owner, MUSTER_WORKERS_OWN + 1),
	FIELD(11, U32, mst_welcome, buffers),
	FIELD(12, U64, mst_welcome, lease_ns),
	FIELD(13, U64, mst_welcome, server_lease_ns),
	FIELD(14, U64, mst_welcome, patience_ns),
	LIMITED(15, ENUM, mst_welcome, guard, MST_GUARD_FULL + 1),
	LIMITED(16, ENUM, mst_welcome, norms, 2),
	LIMITED(17, ENUM, mst_welcome, checks, 2),
	LIMITED(18, ENUM, mst_welcome, may_finish, 2),
	FIELD(19, U64, mst_welcome, first_version),
	FIELD(20, F64, mst_welcome, first_samples),
	FIELD(21, U64, mst_welcome, state_max),
	LIMITED(22, ENUM, mst_welcome, averages, 2),
	ROWS(23, mst_welcome, server_count, MST_SERVERS_MAX, server_rows),
	PATH(24, mst_welcome),
	ROWS(29, mst_welcome, verdict_count, MUSTER_TICKETS_MAX, verdict_rows),
	OPTIONAL(30, ENUM, mst_welcome, path.encrypted, 2),
	OPTIONAL(31, TEXT, mst_welcome, generation.run, MST_RUN_LEN),
	OPTIONAL(32, U64, mst_welcome, generation.number, 0),
	OPTIONAL(33, U64, mst_welcome, generation.id, 0),
	OPTIONAL(34, U64, mst_welcome, generation.began, 0),
	OPTIONAL(35, U64, mst_welcome, generation.made, 0),
	OPTIONAL(36, U64, mst_welcome, generation.made_before, 0),
	OPTIONAL(37, U64, mst_welcome, server_patience_ns, 0),
	OPTIONAL(38, U32, mst_welcome, history, 0),
	OPTIONAL(39, U64, mst_welcome, start_number, 0),
	OPTIONAL(45, U64, mst_welcome, stands, 0),
	IN_FORCE(50, mst_welcome, in_force.),
	OPTIONAL(60, ENUM, mst_welcome, workers_given, MST_WORKERS_MAX + 1),
	OPTIONAL(61, U64, mst_welcome, workers_change, 0),
	OPTIONAL(62, ENUM, mst_welcome, record_ranks, MST_WORKERS_MAX + 1),
};

static const struct mst_field error_fields[] = {
	FIELD(1, ERRNO, mst_error_message, code),
	TEXT(2, mst_error_message, reason),
};

static const struct mst_field state_fields[] = {
	FIELD(1, U64, mst_state_piece, offset),
	FIELD(2, U64, mst_state_piece, total),
	FIELD(3, PIECE, mst_state_piece, length),
};

static_assert(offsetof(struct mst_handed, piece) == 0, "a piece is read at the start of its body");
static const struct mst_field handed_fields[] = {
	FIELD(1, U64, mst_handed, number),      FIELD(2, U64, mst_handed, version),
	FIELD(3, U64, mst_handed, too_large),   FIELD(4, U64, mst_handed, piece.offset),
	FIELD(5, U64, mst_handed, piece.total), FIELD(6, PIECE, mst_handed, piece.length),
};

static const struct mst_field tensor_fields[] = {
	TEXT(1, mst_tensor_row, name),
	FIELD(2, U64, mst_tensor_row, count),
	FIELD(3, F32, mst_tensor_row, lr_scale),
	FIELD(4, F32, mst_tensor_row, decay_scale),
};
static const struct mst_rows tensor_rows = {
	offsetof(struct mst_tensor_piece, row),
	sizeof(struct mst_tensor_row),
	SHAPE(tensor_fields),
};
static const struct mst_field tensors_fields[] = {
	FIELD(1, U32, mst_tensor_piece, at),
	FIELD(2, U32, mst_tensor_piece, total),
	ROWS(3, mst_tensor_piece, count, MST_TENSORS_PIECE, tensor_rows),
};

/* ---- figures ---- */

#define U32_ROW(tag, of, member) FIELD(tag, U32, of, member)
#define FLAG_ROW(tag, of, member) LIMITED(tag, ENUM, of, member, 2)
#define U64_ROW(tag, of, member) FIELD(tag, U64, of, member)
#define F64_ROW(tag, of, member) FIELD(tag, F64, of, member)
#define NEW_U64_ROW(tag, of, member) OPTIONAL_ONES(tag, of, member)
#define NEW_F64_ROW(tag, of, member) OPTIONAL_NAN(tag, of, member)
#define NEW_FLAG_ROW(tag, of, member) OPTIONAL(tag, ENUM, of, member, 2)
#define JOB_FIGURE(tag, type, member, ...) type##_ROW(tag, mst_status, member),
#define POLICY_FIGURE(tag, type, member, ...) type##_ROW(tag, mst_status_policy, member),
#define RANK_FIGURE(tag, type, member, ...) type##_ROW(tag, mst_status_rank, member),
#define SERVER_FIGURE(tag, type, member, ...) type##_ROW(tag, mst_status_server, member),

/* Tags from @tag on: two. */
#define LINK(tag, of)                                                                              \
	OPTIONAL(tag, TEXT, of, link.network, MST_NETWORK_LEN),                                    \
		OPTIONAL((tag) + 1, ENUM, of, link.encrypted, 2)

static const struct mst_field status_server_fields[] = {
	FIELD(1, U32, mst_status_server, state),
	TEXT(2, mst_status_server, listener),
	MST_SERVER_FIGURES(SERVER_FIGURE) LINK(5, mst_status_server),
};
static const struct mst_rows status_server_rows = {
	offsetof(struct mst_status, server),
	sizeof(struct mst_status_server),
	SHAPE(status_server_fields),
};

static const struct mst_field status_policy_fields[] = { TEXT(1, mst_status_policy, policy),
							 MST_POLICY_FIGURES(POLICY_FIGURE) };
static const struct mst_rows status_policy_rows = {
	offsetof(struct mst_status, under),
	sizeof(struct mst_status_policy),
	SHAPE(status_policy_fields),
};

static const struct mst_field metric_fields[] = {
	TEXT(1, mst_metric, name),
	FIELD(2, F64, mst_metric, value),
	FIELD(3, U64, mst_metric, version),
};
static const struct mst_field status_metric_fields[] = {
	TEXT(1, mst_status_metric, newest.name),
	FIELD(2, F64, mst_status_metric, newest.value),
	FIELD(3, U64, mst_status_metric, newest.version),
	FIELD(4, U32, mst_status_metric, rank),
	FIELD(5, U64, mst_status_metric, reports),
};
static const struct mst_rows status_metric_rows = {
	offsetof(struct mst_status, metric),
	sizeof(struct mst_status_metric),
	SHAPE(status_metric_fields),
};

/* States are no ENUM: a state that this release does not know is printed as "unknown". */
static const struct mst_field status_fields[] = {
	TEXT(1, mst_status, job),
	TEXT(2, mst_status, policy),
	TEXT(3, mst_status, policy_now),
	TEXT(4, mst_status, policy_why),
	TEXT(5, mst_status, next_policy),
	FIELD(6, U64, mst_status, next_since),
	ROWS(7, mst_status, policy_count, MST_STATUS_POLICIES, status_policy_rows),
	FIELD(8, U32, mst_status, state),
	FIELD(9, U32, mst_status, access),
	FIELD(10, U64, mst_status, state_too_large),
	FIELD(11, U32, mst_status, state_of),
	TEXT(12, mst_status, why),
	ROWS(13, mst_status, server_count, MST_SERVERS_MAX, status_server_rows),
	ROWS(14, mst_status, metric_count, MST_STATUS_METRICS, status_metric_rows),
	FIELD(15, U32, mst_status, rank_count),
	MST_JOB_FIGURES(JOB_FIGURE) /* up to 60 */
	OPTIONAL(61, TEXT, mst_status, run, sizeof(((struct mst_status *)NULL)->run)),
};

static const struct mst_field rank_fields[] = { FIELD(1, U32, mst_status_rank, state),
						LINK(2, mst_status_rank),
						OPTIONAL(4, U32, mst_status_rank, straggler, 0),
						MST_RANK_FIGURES(RANK_FIGURE) };
static const struct mst_rows rank_rows = {
	offsetof(struct mst_message, ranks.row),
	sizeof(struct mst_status_rank),
	SHAPE(rank_fields),
};
static const struct mst_field ranks_fields[] = {
	ROWS(1, mst_message, ranks.count, MST_STATUS_RANKS, rank_rows),
};

static const struct mst_field part_fields[] = {
	TEXT(1, mst_claim_part, name),
	TEXT(2, mst_claim_part, value),
	FIELD(3, U64, mst_claim_part, digest),
	LIMITED(4, ENUM, mst_claim_part, kind, MUSTER_PART_KERNEL + 1),
};
static const struct mst_rows part_rows = {
	offsetof(struct mst_state_claim, part),
	sizeof(struct mst_claim_part),
	SHAPE(part_fields),
};
static const struct mst_field claim_fields[] = {
	FIELD(1, U64, mst_state_claim, version),
	ROWS(2, mst_state_claim, count, MUSTER_PARTS_MAX, part_rows),
};
static const struct mst_field agree_fields[] = {
	LIMITED(1, ENUM, mst_agree, what, MST_AGREE_TAKE + 1),
	FIELD(2, U32, mst_agree, from),
	FIELD(3, U64, mst_agree, version),
	LIMITED(4, ENUM, mst_agree, kernels, 2),
	TEXT(5, mst_agree, why),
};
static const struct mst_rows compared_rows = {
	offsetof(struct mst_comparison, part),
	sizeof(struct mst_claim_part),
	SHAPE(part_fields),
};
/* Rows that are numbers. */
static const struct mst_field digest_fields[] = {
	{ 1, 0, MST_FIELD_U64, 0, 0, NULL, "digest" },
};
static const struct mst_rows digest_rows = {
	offsetof(struct mst_comparison, digest),
	sizeof(uint64_t),
	SHAPE(digest_fields),
};
static const struct mst_field comparison_fields[] = {
	FIELD(1, U64, mst_comparison, version),
	LIMITED(2, ENUM, mst_comparison, takes, 2),
	LIMITED(3, ENUM, mst_comparison, last, 2),
	LIMITED(4, ENUM, mst_comparison, first, MUSTER_TENSORS_MAX + 1),
	LIMITED(5, ENUM, mst_comparison, each, MUSTER_TENSORS_MAX + 1),
	ROWS(6, mst_comparison, part_count, MUSTER_PARTS_MAX, compared_rows),
	ROWS(7, mst_comparison, count, MUSTER_COMPARE_MAX, digest_rows),
	FIELD(8, U32, mst_comparison, section),
};
static const struct mst_field differs_fields[] = {
	FIELD(1, U64, mst_differs, version),
	FIELD(2, U32, mst_differs, from),
	LIMITED(3, ENUM, mst_differs, kernels, 2),
	TEXT(4, mst_differs, why),
};
static const struct mst_field start_fields[] = {
	LIMITED(1, ENUM, mst_start_offer, offers, MST_OFFER_STATELESS + 1),
	OPTIONAL(2, U64, mst_start_offer, version, 0),
	OPTIONAL(3, TEXT, mst_start_offer, passed, MST_REASON_LEN),
};
static const struct mst_field share_fields[] = {
	FIELD(1, U32, mst_lane_share, rank),
	FIELD(2, U32, mst_lane_share, count),
	FIELD(3, F64, mst_lane_share, weight),
};
static const struct mst_rows share_rows = {
	offsetof(struct mst_set_piece, share),
	sizeof(struct mst_lane_share),
	SHAPE(share_fields),
};
static const struct mst_field set_fields[] = {
	FIELD(1, U64, mst_set_piece, version),
	FIELD(2, U64, mst_set_piece, made),
	FIELD(3, F64, mst_set_piece, weight),
	FIELD(4, F64, mst_set_piece, lr_scale),
	FIELD(5, U32, mst_set_piece, window),
	FIELD(6, U32, mst_set_piece, first),
	FIELD(7, U32, mst_set_piece, total),
	ROWS(8, mst_set_piece, count, MST_SET_SHARES, share_rows),
	OPTIONAL(9, ENUM, mst_set_piece, workers, MST_WORKERS_MAX + 1),
};
static const struct mst_field counted_row_fields[] = {
	FIELD(1, U64, mst_counted_row, version),
	FIELD(2, U64, mst_counted_row, made),
	FIELD(3, U32, mst_counted_row, count),
	FIELD(4, U32, mst_counted_row, window),
};
static const struct mst_rows counted_rows = {
	offsetof(struct mst_begins, counted.row),
	sizeof(struct mst_counted_row),
	SHAPE(counted_row_fields),
};
static const struct mst_field begins_fields[] = {
	TEXT(1, mst_begins, generation.run),
	FIELD(2, U64, mst_begins, generation.number),
	FIELD(3, U64, mst_begins, generation.id),
	FIELD(4, U64, mst_begins, generation.began),
	FIELD(5, U64, mst_begins, generation.made),
	FIELD(6, U64, mst_begins, generation.made_before),
	ROWS(7, mst_begins, counted.count, MST_COUNTED_MAX, counted_rows),
	OPTIONAL(10, TEXT, mst_begins, policy, MST_POLICY_LEN),
	IN_FORCE(11, mst_begins, in_force.),
	OPTIONAL(20, U64, mst_begins, stands, 0),
};
static const struct mst_field in_force_fields[] = { IN_FORCE(1, mst_in_force, ) };
static const struct mst_field wanted_fields[] = { LIMITED(1, ENUM, mst_message, wanted.tensors, 2),
						  LIMITED(2, ENUM, mst_message, wanted.state, 2),
						  OPTIONAL(3, ENUM, mst_message, wanted.sets, 2) };
static const struct mst_field seq_fields[] = { FIELD(1, U64, mst_message, seq) };
static const struct mst_field number_fields[] = { FIELD(1, U64, mst_message, number) };
static const struct mst_field why_fields[] = { TEXT(1, mst_message, why) };
/* A server that skipped it would end the job at once. */
static const struct mst_field finish_fields[] = {
	TEXT(1, mst_message, why),
	OPTIONAL_MUST_KNOW(2, U64, mst_message, goal, 0),
};
static const struct mst_field done_fields[] = {
	TEXT(1, mst_message, why),
	OPTIONAL(2, U64, mst_message, goal, 0),
};
static const struct mst_field evict_fields[] = { FIELD(1, U32, mst_message, evicted) };
static const struct mst_field watch_fields[] = { LIMITED(1, ENUM, mst_message, watch, 2) };

static const struct mst_field change_fields[] = {
	TEXT(1, mst_policy_change, policy),
	LIMITED(2, ENUM, mst_policy_change, force, 2),
};
static const struct mst_field rest_fields[] = {
	FIELD(1, U32, mst_rest, rank),
	LIMITED(2, ENUM, mst_rest, rests, 2),
};

static const struct mst_field workers_fields[] = {
	LIMITED(1, ENUM, mst_workforce, workers, MST_WORKERS_MAX + 1),
	LIMITED(2, ENUM, mst_workforce, given, MST_WORKERS_MAX + 1),
	FIELD(3, U64, mst_workforce, change),
};

static const struct mst_field fetch_fields[] = {
	FIELD(1, U64, mst_fetch, number),
	FIELD(2, U64, mst_fetch, offset),
	FIELD(3, U64, mst_fetch, length),
};

static const struct mst_rows serve_origin_rows = {
	offsetof(struct mst_serve, origins.at),
	sizeof(struct mst_origin),
	SHAPE(origin_fields),
};
static const struct mst_field serve_fields[] = {
	TEXT(1, mst_serve, job),
	TEXT(2, mst_serve, schemes),
	FIELD(3, U32, mst_serve, pid),
	ORIGINS(4, mst_serve, serve_origin_rows),
};

/* Rows that are numbers. */
static const struct mst_field parameter_fields[] = {
	{ 1, 0, MST_FIELD_F64, 0, 0, NULL, "parameter" },
};
static const struct mst_rows parameter_rows = {
	offsetof(struct mst_appoint, parameter),
	sizeof(double),
	SHAPE(parameter_fields),
};
static const struct mst_field appoint_fields[] = {
	TEXT(1, mst_appoint, job),
	LIMITED(2, ENUM, mst_appoint, index, MST_SERVERS_MAX),
	LIMITED(3, ENUM, mst_appoint, servers, MST_SERVERS_MAX + 1),
	FIELD(4, U64, mst_appoint, elems),
	FIELD(5, U64, mst_appoint, first),
	FIELD(6, U64, mst_appoint, count),
	LIMITED(7, ENUM, mst_appoint, type, MUSTER_F16 + 1),
	LIMITED(8, ENUM, mst_appoint, result_type, MUSTER_F16 + 1),
	LIMITED(9, ENUM, mst_appoint, owner, MUSTER_WORKERS_OWN + 1),
	LIMITED(10, ENUM, mst_appoint, workers, MST_WORKERS_MAX + 1),
	LIMITED(11, ENUM, mst_appoint, slots, MST_SLOTS_MAX + 1),
	FIELD(12, U32, mst_appoint, buffers),
	FIELD(13, U32, mst_appoint, entries),
	FIELD(14, U32, mst_appoint, group),
	FIELD(15, U32, mst_appoint, partials),
	LIMITED(16, ENUM, mst_appoint, repeats, 2),
	TEXT(17, mst_appoint, optimizer),
	ROWS(18, mst_appoint, parameter_count, MST_APPOINT_PARAMETERS, parameter_rows),
	LIMITED(19, ENUM, mst_appoint, averages, 2),
	LIMITED(20, ENUM, mst_appoint, distances, 2),
	TABLE(21, mst_appoint),
	LIMITED(27, ENUM, mst_appoint, guard, MST_GUARD_FULL + 1),
	LIMITED(28, ENUM, mst_appoint, measures, 2),
	LIMITED(29, ENUM, mst_appoint, checks, 2),
	FIELD(30, U64, mst_appoint, lease_ns),
	FIELD(31, U64, mst_appoint, server_lease_ns),
	FIELD(32, U64, mst_appoint, patience_ns),
	TEXT(33, mst_appoint, saves),
	LIMITED(34, ENUM, mst_appoint, resumes, 2),
	FIELD(35, U64, mst_appoint, resumed_version),
	TEXT(36, mst_appoint, resumed_save),
	PATH(37, mst_appoint),
	TEXT(42, mst_appoint, address),
	BYTES(43, mst_appoint, token),
	OPTIONAL(44, ENUM, mst_appoint, path.encrypted, 2),
	OPTIONAL(45, U64, mst_appoint, server_patience_ns, 0),
	OPTIONAL(46, ENUM, mst_appoint, record_ranks, MST_WORKERS_MAX + 1),
};

static const struct mst_rows expect_origin_rows = {
	offsetof(struct mst_expect, origins.at),
	sizeof(struct mst_origin),
	SHAPE(origin_fields),
};
static const struct mst_field expect_fields[] = {
	FIELD(1, U32, mst_expect, rank),
	FIELD(2, U32, mst_expect, incarnation),
	BYTES(3, mst_expect, token),
	ORIGINS(4, mst_expect, expect_origin_rows),
};
static const struct mst_field forget_fields[] = {
	FIELD(1, U32, mst_expect, rank),
	FIELD(2, U32, mst_expect, incarnation),
};
static const struct mst_field listener_fields[] = { TEXT(1, mst_message, listener) };
static const struct mst_field beat_server_fields[] = { FIELD(1, U64, mst_beat_server, passes) };
static const struct mst_rows beat_rows = {
	offsetof(struct mst_message, beat.server),
	sizeof(struct mst_beat_server),
	SHAPE(beat_server_fields),
};
static const struct mst_field beat_fields[] = {
	ROWS(1, mst_message, beat.count, MST_SERVERS_MAX, beat_rows),
};
static const struct mst_field token_fields[] = { BYTES(1, mst_message, token) };

/* What a kind's fields are relative to: the whole message, or its member of the union. */
#define BODY offsetof(struct mst_message, hello)
static_assert(offsetof(struct mst_message, status) == BODY, "members of one union");

/* A kind's name, for people, is that of the enum. */
#define KIND(kind, base, ...) [MST_MSG_##kind] = { #kind, base, __VA_ARGS__ }
#define NOTHING                                                                                    \
	{                                                                                          \
		NULL, 0                                                                            \
	}

static const struct mst_body bodies[] = {
	KIND(HELLO, BODY, SHAPE(hello_fields)),
	KIND(WELCOME, BODY, SHAPE(welcome_fields)),
	KIND(ERROR, BODY, SHAPE(error_fields)),
	KIND(START, BODY, SHAPE(start_fields)),
	KIND(CLAIM, BODY, SHAPE(claim_fields)),
	KIND(AGREE, BODY, SHAPE(agree_fields)),
	KIND(COMPARE, BODY, SHAPE(comparison_fields)),
	KIND(DIFFERS, BODY, SHAPE(differs_fields)),
	KIND(SEND_STATE, 0, SHAPE(wanted_fields)),
	KIND(STATE, BODY, SHAPE(state_fields)),
	KIND(HEARTBEAT, 0, NOTHING),
	KIND(LEAVE, 0, SHAPE(seq_fields)),
	KIND(FINISH, 0, SHAPE(finish_fields)),
	KIND(FINISHED, 0, SHAPE(why_fields)),
	KIND(ASK_STATUS, 0, SHAPE(watch_fields)),
	KIND(STATUS, BODY, SHAPE(status_fields)),
	KIND(STATUS_RANKS, 0, SHAPE(ranks_fields)),
	KIND(SERVE, BODY, SHAPE(serve_fields)),
	KIND(APPOINT, BODY, SHAPE(appoint_fields)),
	KIND(READY, 0, SHAPE(listener_fields)),
	KIND(EXPECT, BODY, SHAPE(expect_fields)),
	KIND(FORGET, BODY, SHAPE(forget_fields)),
	KIND(STATE_DONE, 0, NOTHING),
	KIND(RELINK, 0, SHAPE(token_fields)),
	KIND(BEAT, 0, SHAPE(beat_fields)),
	KIND(TENSORS, BODY, SHAPE(tensors_fields)),
	KIND(POLICY, BODY, SHAPE(change_fields)),
	KIND(REST, BODY, SHAPE(rest_fields)),
	KIND(DONE, 0, SHAPE(done_fields)),
	KIND(REPORT, BODY, SHAPE(metric_fields)),
	KIND(EVICT, 0, SHAPE(evict_fields)),
	KIND(END_JOB, 0, SHAPE(why_fields)),
	KIND(BEHIND, 0, SHAPE(number_fields)),
	KIND(STATE_WANTED, 0, SHAPE(number_fields)),
	KIND(GIVE, BODY, SHAPE(handed_fields)),
	KIND(TAKE, BODY, SHAPE(handed_fields)),
	KIND(TOOK, 0, SHAPE(number_fields)),
	KIND(SEND_TABLE, 0, NOTHING),
	KIND(ASK_AVERAGE, 0, SHAPE(number_fields)),
	KIND(AVERAGE, BODY, SHAPE(handed_fields)),
	KIND(FETCH, BODY, SHAPE(fetch_fields)),
	KIND(BEGINS, BODY, SHAPE(begins_fields)),
	KIND(SET, BODY, SHAPE(set_fields)),
	KIND(IN_FORCE, BODY, SHAPE(in_force_fields)),
	KIND(WORKERS, BODY, SHAPE(workers_fields)),
};

const struct mst_body *mst_body_of(uint32_t kind)
{
	if (kind >= sizeof(bodies) / sizeof(bodies[0]) || bodies[kind].name == NULL)
		return NULL;
	return &bodies[kind];
}
