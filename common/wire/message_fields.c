/* SPDX-License-Identifier: MIT */
/* The lists of fields. Each field is named once, with its limit, for both encoding and decoding. */
#include "common/wire/message_fields.h"

#define FIELD(type, of, name)                                                                      \
	{                                                                                          \
		MST_FIELD_##type, 0, offsetof(struct of, name), NULL, #name                        \
	}
#define LIMITED(type, of, name, limit)                                                             \
	{                                                                                          \
		MST_FIELD_##type, limit, offsetof(struct of, name), NULL, #name                    \
	}
#define ROWS(of, name, limit, rows)                                                                \
	{                                                                                          \
		MST_FIELD_ROWS, limit, offsetof(struct of, name), &(rows), #name                   \
	}
#define TEXT(of, name) LIMITED(TEXT, of, name, sizeof(((struct of *)NULL)->name))
#define BYTES(of, name) LIMITED(BYTES, of, name, sizeof(((struct of *)NULL)->name))
#define PATH(of)                                                                                   \
	LIMITED(ENUM, of, path.ack_timeout, 32), LIMITED(ENUM, of, path.retries, 7),               \
		LIMITED(ENUM, of, path.traffic_class, 256),                                        \
		LIMITED(ENUM, of, path.service_level, 16), FIELD(I32, of, path.pkey)
#define TABLE(of)                                                                                  \
	LIMITED(ENUM, of, table.tensors, MUSTER_TENSORS_MAX + 1),                                  \
		LIMITED(ENUM, of, table.runs, MUSTER_TENSORS_MAX + 1),                             \
		FIELD(U64, of, table.name_bytes), FIELD(U64, of, table.names),                     \
		FIELD(U64, of, table.places), FIELD(U64, of, table.scales)
#define ORIGINS(of, rows) ROWS(of, origins.count, MST_ORIGINS_MAX, rows)
#define SHAPE(fields)                                                                              \
	{                                                                                          \
		fields, sizeof(fields) / sizeof((fields)[0])                                       \
	}

static const struct mst_field origin_fields[] = { BYTES(mst_origin, address) };
static const struct mst_rows hello_origin_rows = {
	offsetof(struct mst_hello, origins.at),
	sizeof(struct mst_origin),
	SHAPE(origin_fields),
};
static const struct mst_field hello_fields[] = {
	TEXT(mst_hello, job),
	FIELD(I32, mst_hello, rank),
	FIELD(U64, mst_hello, elems),
	LIMITED(ENUM, mst_hello, type, MUSTER_F16 + 1),
	LIMITED(ENUM, mst_hello, result_type, MUSTER_F16 + 1),
	LIMITED(ENUM, mst_hello, owner, MUSTER_WORKERS_OWN + 1),
	FIELD(U32, mst_hello, pid),
	LIMITED(ENUM, mst_hello, comes_back, 2),
	TABLE(mst_hello),
	ORIGINS(mst_hello, hello_origin_rows),
};

static_assert(sizeof(enum muster_verdict) == sizeof(uint32_t), "a verdict is coded as an ENUM");
static const struct mst_field fate_fields[] = {
	FIELD(U64, muster_fate, ticket),
	FIELD(U32, muster_fate, incarnation),
	LIMITED(ENUM, muster_fate, verdict, MUSTER_DAMAGED + 1),
	FIELD(U64, muster_fate, counted_in),
};
static const struct mst_rows fate_rows = {
	offsetof(struct mst_welcome, fate),
	sizeof(struct muster_fate),
	SHAPE(fate_fields),
};
static const struct mst_field server_fields[] = {
	TEXT(mst_welcome_server, address),
	BYTES(mst_welcome_server, token),
	FIELD(U64, mst_welcome_server, first),
	FIELD(U64, mst_welcome_server, count),
};
static const struct mst_rows server_rows = {
	offsetof(struct mst_welcome, server),
	sizeof(struct mst_welcome_server),
	SHAPE(server_fields),
};
static const struct mst_field welcome_fields[] = {
	TEXT(mst_welcome, job),
	TEXT(mst_welcome, policy),
	FIELD(U32, mst_welcome, rank),
	FIELD(U32, mst_welcome, incarnation),
	FIELD(U32, mst_welcome, workers),
	FIELD(U32, mst_welcome, slots),
	FIELD(U64, mst_welcome, elems),
	LIMITED(ENUM, mst_welcome, type, MUSTER_F16 + 1),
	LIMITED(ENUM, mst_welcome, result_type, MUSTER_F16 + 1),
	LIMITED(ENUM, mst_welcome, owner, MUSTER_WORKERS_OWN + 1),
	FIELD(U32, mst_welcome, buffers),
	FIELD(U64, mst_welcome, lease_ns),
	FIELD(U64, mst_welcome, server_lease_ns),
	FIELD(U64, mst_welcome, patience_ns),
	LIMITED(ENUM, mst_welcome, guard, MST_GUARD_FULL + 1),
	LIMITED(ENUM, mst_welcome, norms, 2),
	LIMITED(ENUM, mst_welcome, checks, 2),
	LIMITED(ENUM, mst_welcome, may_finish, 2),
	FIELD(U64, mst_welcome, first_version),
	FIELD(F64, mst_welcome, first_samples),
	FIELD(U64, mst_welcome, state_max),
	LIMITED(ENUM, mst_welcome, averages, 2),
	ROWS(mst_welcome, server_count, MST_SERVERS_MAX, server_rows),
	PATH(mst_welcome),
	ROWS(mst_welcome, fate_count, MUSTER_TICKETS_MAX, fate_rows),
};

static const struct mst_field error_fields[] = {
	FIELD(ERRNO, mst_error_message, code),
	TEXT(mst_error_message, reason),
};

static const struct mst_field state_fields[] = {
	FIELD(U64, mst_state_piece, offset),
	FIELD(U64, mst_state_piece, total),
	FIELD(PIECE, mst_state_piece, length),
};

static_assert(offsetof(struct mst_handed, piece) == 0, "a piece is read at the start of its body");
static const struct mst_field handed_fields[] = {
	FIELD(U64, mst_handed, number),      FIELD(U64, mst_handed, version),
	FIELD(U64, mst_handed, too_large),   FIELD(U64, mst_handed, piece.offset),
	FIELD(U64, mst_handed, piece.total), FIELD(PIECE, mst_handed, piece.length),
};

static const struct mst_field tensor_fields[] = {
	TEXT(mst_tensor_row, name),
	FIELD(U64, mst_tensor_row, count),
	FIELD(F32, mst_tensor_row, lr_scale),
	FIELD(F32, mst_tensor_row, decay_scale),
};
static const struct mst_rows tensor_rows = {
	offsetof(struct mst_tensor_piece, row),
	sizeof(struct mst_tensor_row),
	SHAPE(tensor_fields),
};
static const struct mst_field tensors_fields[] = {
	FIELD(U32, mst_tensor_piece, at),
	FIELD(U32, mst_tensor_piece, total),
	ROWS(mst_tensor_piece, count, MST_TENSORS_PIECE, tensor_rows),
};

static const struct mst_field status_server_fields[] = {
	LIMITED(ENUM, mst_status_server, state, MST_SERVER_GONE + 1),
	FIELD(U64, mst_status_server, first),
	FIELD(U64, mst_status_server, count),
	TEXT(mst_status_server, listener),
};
static const struct mst_rows status_server_rows = {
	offsetof(struct mst_status, server),
	sizeof(struct mst_status_server),
	SHAPE(status_server_fields),
};

static const struct mst_field status_policy_fields[] = {
	TEXT(mst_status_policy, policy),         FIELD(U64, mst_status_policy, since),
	FIELD(U64, mst_status_policy, versions), FIELD(U64, mst_status_policy, step_mean_ns),
	FIELD(U64, mst_status_policy, counted),  FIELD(U64, mst_status_policy, late),
	FIELD(U64, mst_status_policy, stale),    FIELD(U64, mst_status_policy, cancelled),
	FIELD(U64, mst_status_policy, refused),  FIELD(U64, mst_status_policy, outliers),
	FIELD(U64, mst_status_policy, damaged),  FIELD(U64, mst_status_policy, dropped),
};
static const struct mst_rows status_policy_rows = {
	offsetof(struct mst_status, under),
	sizeof(struct mst_status_policy),
	SHAPE(status_policy_fields),
};

static const struct mst_field metric_fields[] = {
	TEXT(mst_metric, name),
	FIELD(F64, mst_metric, value),
	FIELD(U64, mst_metric, version),
};
static const struct mst_field status_metric_fields[] = {
	TEXT(mst_status_metric, newest.name),          FIELD(F64, mst_status_metric, newest.value),
	FIELD(U64, mst_status_metric, newest.version), FIELD(U32, mst_status_metric, rank),
	FIELD(U64, mst_status_metric, reports),
};
static const struct mst_rows status_metric_rows = {
	offsetof(struct mst_status, metric),
	sizeof(struct mst_status_metric),
	SHAPE(status_metric_fields),
};

static const struct mst_field status_fields[] = {
	TEXT(mst_status, job),
	TEXT(mst_status, policy),
	TEXT(mst_status, policy_now),
	TEXT(mst_status, policy_why),
	TEXT(mst_status, next_policy),
	FIELD(U64, mst_status, next_since),
	ROWS(mst_status, policy_count, MST_STATUS_POLICIES, status_policy_rows),
	LIMITED(ENUM, mst_status, state, MST_JOB_FAILED + 1),
	LIMITED(ENUM, mst_status, access, MST_ACCESS_INSECURE + 1),
	FIELD(U32, mst_status, workers),
	FIELD(U32, mst_status, live),
	FIELD(U32, mst_status, shards),
	FIELD(U64, mst_status, first_version),
	FIELD(U64, mst_status, version),
	FIELD(F64, mst_status, samples),
	FIELD(F64, mst_status, loss),
	FIELD(U64, mst_status, elapsed_ns),
	FIELD(U64, mst_status, step_mean_ns),
	FIELD(U64, mst_status, step_p50_ns),
	FIELD(U64, mst_status, step_p99_ns),
	FIELD(U64, mst_status, step_max_ns),
	FIELD(U64, mst_status, recent_step_ns),
	FIELD(F64, mst_status, norm_limit),
	FIELD(F64, mst_status, norm_median),
	LIMITED(ENUM, mst_status, saved_told, 2),
	FIELD(U64, mst_status, saved_ns),
	FIELD(U64, mst_status, state_max),
	FIELD(U64, mst_status, state_too_large),
	FIELD(U32, mst_status, state_of),
	TEXT(mst_status, why),
	ROWS(mst_status, server_count, MST_SERVERS_MAX, status_server_rows),
	ROWS(mst_status, metric_count, MST_STATUS_METRICS, status_metric_rows),
	FIELD(U32, mst_status, rank_count),
};

static const struct mst_field rank_fields[] = {
	FIELD(U32, mst_status_rank, rank),
	FIELD(U32, mst_status_rank, incarnation),
	LIMITED(ENUM, mst_status_rank, state, MST_RANK_LOST + 1),
	LIMITED(ENUM, mst_status_rank, awaited, 2),
	LIMITED(ENUM, mst_status_rank, rests, 2),
	LIMITED(ENUM, mst_status_rank, held, 2),
	FIELD(U64, mst_status_rank, counted),
	FIELD(U64, mst_status_rank, late),
	FIELD(U64, mst_status_rank, stale),
	FIELD(U64, mst_status_rank, cancelled),
	FIELD(U64, mst_status_rank, refused),
	FIELD(U64, mst_status_rank, outliers),
	FIELD(U64, mst_status_rank, damaged),
	FIELD(F64, mst_status_rank, samples_counted),
	FIELD(F64, mst_status_rank, samples_pushed),
	FIELD(F64, mst_status_rank, norm),
	FIELD(F64, mst_status_rank, norm_max),
	FIELD(U64, mst_status_rank, given_up),
	FIELD(U64, mst_status_rank, ready_mean_ns),
	FIELD(U64, mst_status_rank, ready_max_ns),
	FIELD(U64, mst_status_rank, behind_mean_ns),
	FIELD(F64, mst_status_rank, staleness_mean),
	FIELD(U64, mst_status_rank, staleness_p99),
	FIELD(U64, mst_status_rank, recent_came),
	FIELD(U64, mst_status_rank, recent_missed),
	FIELD(U64, mst_status_rank, recent_given_up),
	FIELD(U64, mst_status_rank, recent_ready_ns),
	FIELD(U64, mst_status_rank, recent_behind_ns),
	FIELD(U64, mst_status_rank, busy_ns),
	FIELD(U64, mst_status_rank, waiting_ns),
	FIELD(U64, mst_status_rank, heard_ns),
	FIELD(U64, mst_status_rank, handed_in_ns),
	FIELD(U64, mst_status_rank, behind_by),
};
static const struct mst_rows rank_rows = {
	offsetof(struct mst_message, ranks.row),
	sizeof(struct mst_status_rank),
	SHAPE(rank_fields),
};
static const struct mst_field ranks_fields[] = {
	ROWS(mst_message, ranks.count, MST_STATUS_RANKS, rank_rows),
};

static const struct mst_field offers_fields[] = { LIMITED(ENUM, mst_message, offers, 2) };
static const struct mst_field wanted_fields[] = { LIMITED(ENUM, mst_message, wanted.tensors, 2),
						  LIMITED(ENUM, mst_message, wanted.state, 2) };
static const struct mst_field seq_fields[] = { FIELD(U64, mst_message, seq) };
static const struct mst_field number_fields[] = { FIELD(U64, mst_message, number) };
static const struct mst_field why_fields[] = { TEXT(mst_message, why) };
static const struct mst_field evict_fields[] = { FIELD(U32, mst_message, evicted) };
static const struct mst_field watch_fields[] = { LIMITED(ENUM, mst_message, watch, 2) };

static const struct mst_field change_fields[] = {
	TEXT(mst_policy_change, policy),
	LIMITED(ENUM, mst_policy_change, force, 2),
};
static const struct mst_field rest_fields[] = {
	FIELD(U32, mst_rest, rank),
	LIMITED(ENUM, mst_rest, rests, 2),
};

static const struct mst_field fetch_fields[] = {
	FIELD(U64, mst_fetch, number),
	FIELD(U64, mst_fetch, offset),
	FIELD(U64, mst_fetch, length),
};

static const struct mst_rows serve_origin_rows = {
	offsetof(struct mst_serve, origins.at),
	sizeof(struct mst_origin),
	SHAPE(origin_fields),
};
static const struct mst_field serve_fields[] = {
	TEXT(mst_serve, job),
	TEXT(mst_serve, scheme),
	FIELD(U32, mst_serve, pid),
	ORIGINS(mst_serve, serve_origin_rows),
};

static const struct mst_field parameter_fields[] = { { MST_FIELD_F64, 0, 0, NULL, "parameter" } };
static const struct mst_rows parameter_rows = {
	offsetof(struct mst_appoint, parameter),
	sizeof(double),
	SHAPE(parameter_fields),
};
static const struct mst_field appoint_fields[] = {
	TEXT(mst_appoint, job),
	LIMITED(ENUM, mst_appoint, index, MST_SERVERS_MAX),
	LIMITED(ENUM, mst_appoint, servers, MST_SERVERS_MAX + 1),
	FIELD(U64, mst_appoint, elems),
	FIELD(U64, mst_appoint, first),
	FIELD(U64, mst_appoint, count),
	LIMITED(ENUM, mst_appoint, type, MUSTER_F16 + 1),
	LIMITED(ENUM, mst_appoint, result_type, MUSTER_F16 + 1),
	LIMITED(ENUM, mst_appoint, owner, MUSTER_WORKERS_OWN + 1),
	LIMITED(ENUM, mst_appoint, workers, MST_WORKERS_MAX + 1),
	LIMITED(ENUM, mst_appoint, slots, MST_SLOTS_MAX + 1),
	FIELD(U32, mst_appoint, buffers),
	FIELD(U32, mst_appoint, entries),
	FIELD(U32, mst_appoint, group),
	FIELD(U32, mst_appoint, partials),
	LIMITED(ENUM, mst_appoint, repeats, 2),
	TEXT(mst_appoint, optimizer),
	ROWS(mst_appoint, parameter_count, MST_APPOINT_PARAMETERS, parameter_rows),
	LIMITED(ENUM, mst_appoint, averages, 2),
	LIMITED(ENUM, mst_appoint, distances, 2),
	TABLE(mst_appoint),
	LIMITED(ENUM, mst_appoint, guard, MST_GUARD_FULL + 1),
	LIMITED(ENUM, mst_appoint, measures, 2),
	LIMITED(ENUM, mst_appoint, checks, 2),
	FIELD(U64, mst_appoint, lease_ns),
	FIELD(U64, mst_appoint, server_lease_ns),
	FIELD(U64, mst_appoint, patience_ns),
	TEXT(mst_appoint, saves),
	LIMITED(ENUM, mst_appoint, resumes, 2),
	FIELD(U64, mst_appoint, resumed_version),
	TEXT(mst_appoint, resumed_save),
	PATH(mst_appoint),
	TEXT(mst_appoint, address),
	BYTES(mst_appoint, token),
};

static const struct mst_rows expect_origin_rows = {
	offsetof(struct mst_expect, origins.at),
	sizeof(struct mst_origin),
	SHAPE(origin_fields),
};
static const struct mst_field expect_fields[] = {
	FIELD(U32, mst_expect, rank),
	FIELD(U32, mst_expect, incarnation),
	BYTES(mst_expect, token),
	ORIGINS(mst_expect, expect_origin_rows),
};
static const struct mst_field forget_fields[] = {
	FIELD(U32, mst_expect, rank),
	FIELD(U32, mst_expect, incarnation),
};
static const struct mst_field listener_fields[] = { TEXT(mst_message, listener) };
static const struct mst_field beat_server_fields[] = { FIELD(U64, mst_beat_server, passes) };
static const struct mst_rows beat_rows = {
	offsetof(struct mst_message, beat.server),
	sizeof(struct mst_beat_server),
	SHAPE(beat_server_fields),
};
static const struct mst_field beat_fields[] = {
	ROWS(mst_message, beat.count, MST_SERVERS_MAX, beat_rows),
};
static const struct mst_field token_fields[] = { BYTES(mst_message, token) };

/* What a kind's fields are relative to: the whole message, or its member of the union. */
#define BODY offsetof(struct mst_message, hello)
static_assert(offsetof(struct mst_message, status) == BODY, "members of one union");

static const struct mst_body bodies[] = {
	[MST_MSG_HELLO] = { true, BODY, SHAPE(hello_fields) },
	[MST_MSG_WELCOME] = { true, BODY, SHAPE(welcome_fields) },
	[MST_MSG_ERROR] = { true, BODY, SHAPE(error_fields) },
	[MST_MSG_START] = { true, 0, SHAPE(offers_fields) },
	[MST_MSG_SEND_STATE] = { true, 0, SHAPE(wanted_fields) },
	[MST_MSG_STATE] = { true, BODY, SHAPE(state_fields) },
	[MST_MSG_HEARTBEAT] = { true, 0, { NULL, 0 } },
	[MST_MSG_LEAVE] = { true, 0, SHAPE(seq_fields) },
	[MST_MSG_FINISH] = { true, 0, SHAPE(why_fields) },
	[MST_MSG_FINISHED] = { true, 0, SHAPE(why_fields) },
	[MST_MSG_ASK_STATUS] = { true, 0, SHAPE(watch_fields) },
	[MST_MSG_STATUS] = { true, BODY, SHAPE(status_fields) },
	[MST_MSG_STATUS_RANKS] = { true, 0, SHAPE(ranks_fields) },
	[MST_MSG_SERVE] = { true, BODY, SHAPE(serve_fields) },
	[MST_MSG_APPOINT] = { true, BODY, SHAPE(appoint_fields) },
	[MST_MSG_READY] = { true, 0, SHAPE(listener_fields) },
	[MST_MSG_EXPECT] = { true, BODY, SHAPE(expect_fields) },
	[MST_MSG_FORGET] = { true, BODY, SHAPE(forget_fields) },
	[MST_MSG_STATE_DONE] = { true, 0, { NULL, 0 } },
	[MST_MSG_RELINK] = { true, 0, SHAPE(token_fields) },
	[MST_MSG_BEAT] = { true, 0, SHAPE(beat_fields) },
	[MST_MSG_TENSORS] = { true, BODY, SHAPE(tensors_fields) },
	[MST_MSG_POLICY] = { true, BODY, SHAPE(change_fields) },
	[MST_MSG_REST] = { true, BODY, SHAPE(rest_fields) },
	[MST_MSG_DONE] = { true, 0, SHAPE(why_fields) },
	[MST_MSG_REPORT] = { true, BODY, SHAPE(metric_fields) },
	[MST_MSG_EVICT] = { true, 0, SHAPE(evict_fields) },
	[MST_MSG_END_JOB] = { true, 0, SHAPE(why_fields) },
	[MST_MSG_BEHIND] = { true, 0, SHAPE(number_fields) },
	[MST_MSG_STATE_WANTED] = { true, 0, SHAPE(number_fields) },
	[MST_MSG_GIVE] = { true, BODY, SHAPE(handed_fields) },
	[MST_MSG_TAKE] = { true, BODY, SHAPE(handed_fields) },
	[MST_MSG_TOOK] = { true, 0, SHAPE(number_fields) },
	[MST_MSG_SEND_TABLE] = { true, 0, { NULL, 0 } },
	[MST_MSG_ASK_AVERAGE] = { true, 0, SHAPE(number_fields) },
	[MST_MSG_AVERAGE] = { true, BODY, SHAPE(handed_fields) },
	[MST_MSG_FETCH] = { true, BODY, SHAPE(fetch_fields) },
};

const struct mst_body *mst_body_of(uint32_t kind)
{
	if (kind >= sizeof(bodies) / sizeof(bodies[0]) || !bodies[kind].known)
		return NULL;
	return &bodies[kind];
}

size_t mst_field_bytes(const struct mst_field *f)
{
	switch (f->type) {
	case MST_FIELD_U64:
	case MST_FIELD_F64:
		return 8;
	case MST_FIELD_BYTES:
		return f->limit;
	default:
		return 4;
	}
}
