/* SPDX-License-Identifier: MIT */
#include "tests/unit/common/wire/wire_case.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct mst_message wire_sent;
uint8_t wire_piece[1000];

static const struct mst_origins two_origins = {
	2, { { { 0xfd, [15] = 1 } }, { { [10] = 0xff, 0xff, 10, 0, 0, 2 } } }
};

static void make_hello(void)
{
	wire_sent.hello = (struct mst_hello){ .job = "mnist",
					      .rank = -1,
					      .elems = 79510,
					      .type = MUSTER_BF16,
					      .result_type = MUSTER_F32,
					      .owner = 1,
					      .pid = 4711,
					      .comes_back = 1,
					      .table = { 6, 2, 99, 1, UINT64_MAX, 5 },
					      .origins = two_origins,
					      .returning = { .run = "0123456789abcdef",
							     .number = 3,
							     .workers = 4,
							     .record_ranks = 5,
							     .version = 55,
							     .made = 7,
							     .made_before = 5,
							     .samples = 7040,
							     .incarnation = 2,
							     .seen = 6,
							     .seen_id = 8,
							     .taken = 1,
							     .in_force = { 2, 1, "async" } },
					      .workforce = { 8, 4, 2 } };
}

static void make_parts(struct mst_claim_part *parts)
{
	for (uint32_t i = 0; i < MUSTER_PARTS_MAX; i++) {
		struct mst_claim_part *part = &parts[i];
		(void)snprintf(part->name, sizeof(part->name), "lr of group %" PRIu32, i);
		(void)snprintf(part->value, sizeof(part->value), "0.%" PRIu32, i);
		part->digest = UINT64_C(0x0123456789abcdef) * (i + 1);
		part->kind = i % 2 == 0 ? MUSTER_PART_STATE : MUSTER_PART_KERNEL;
	}
}

static void make_claim(void)
{
	wire_sent.claim.version = 17;
	wire_sent.claim.count = MUSTER_PARTS_MAX;
	make_parts(wire_sent.claim.part);
}

static void make_comparison(void)
{
	struct mst_comparison *c = &wire_sent.comparison;

	*c = (struct mst_comparison){ .version = 32,
				      .takes = 1,
				      .last = 1,
				      .first = 128,
				      .each = 2,
				      .section = 3,
				      .part_count = MUSTER_PARTS_MAX,
				      .count = MUSTER_COMPARE_MAX };
	make_parts(c->part);
	for (uint32_t i = 0; i < MUSTER_COMPARE_MAX; i++)
		c->digest[i] = UINT64_C(0xfedcba9876543210) * (i + 1);
}

static void make_welcome(void)
{
	wire_sent.welcome = (struct mst_welcome){
		.job = "mnist",
		.policy = "backup:4",
		.rank = 3,
		.incarnation = 2,
		.workers = 5,
		.slots = 2,
		.elems = 79510,
		.owner = MUSTER_WORKERS_OWN,
		.buffers = 20,
		.lease_ns = 5000000000,
		.server_lease_ns = 15000000000,
		.patience_ns = 300000000000,
		.state_max = UINT64_C(1) << 33,
		.stands = 39,
		.server_count = 2,
		.server = { { "/muster-1-abc", { 1, 2, 3, [15] = 4 }, 0, 65536 },
			    { "verbs:10.0.0.1:4791", { 9, [15] = 0xff }, 65536, 13974 } },
		.path = { .link_timeout_ns = 2000000000,
			  .traffic_class = 106,
			  .service_level = 5,
			  .pkey = -1,
			  .encrypted = 1 },
		.generation = { "0123456789abcdef", 4, 9, 55, 7, 5 },
		.start_number = 4,
		.server_patience_ns = 600000000000,
		.history = 8,
		.in_force = { 1, 1, "kbatchasync:4" },
		.workers_given = 4,
		.workers_change = 2,
		.record_ranks = 8,
		.verdict_count = 2,
		.verdict = { { 7, 2, MUSTER_COUNTED, 6 }, { 8, 2, MUSTER_CANCELLED, 0 } },
	};
}

static void make_status(void)
{
	wire_sent.status = (struct mst_status){
		.job = "mnist",
		.policy = "bsp",
		.state = MST_JOB_FINISHED,
		.workers = 5,
		.live = 4,
		.version = 100,
		.samples = 32000,
		.loss = 0.25,
		.elapsed_ns = 1,
		.step_mean_ns = 2,
		.step_p50_ns = 3,
		.step_p99_ns = 4,
		.step_max_ns = 5,
		.recent_step_ns = 7,
		.norm_limit = 10,
		.norm_median = 0.5,
		.saved_ns = 6,
		.state_max = 1000,
		.goal = 2000,
		.generation = 3,
		.kept_version = 90,
		.loss_costs = 10,
		.run = "0123456789abcdef",
		.state_too_large = 1001,
		.state_of = 4,
		.why = "100 commits",
		.policy_now = "ksync:3",
		.policy_why = "loss 2.3 -> 0.57, 4 live workers",
		.next_policy = "async",
		.next_since = 102,
		.policy_count = 2,
		.under = { { "kasync:3", 1, 40, 8, 9, 10, 11, 12, 13, 14, 15, 0 },
			   { "backup:4", 41, 60, 1, 2, 3, 4, 5, 6, 7, 8, 9 } },
		.server_count = 2,
		.server = { { MST_SERVER_READY, "/muster-1-abc", 0, 4096 },
			    { MST_SERVER_GONE, "", 4096, 77, { "tcp", 1 } } },
		.metric_count = 2,
		.metric = { { { "accuracy", 0.975, 90 }, 0, 9 },
			    { { "test_loss", 0.125, 80 }, 3, 1 } },
		.rank_count = 2
	};
}

static void make_ranks(void)
{
	wire_sent.ranks.count = 2;
	wire_sent.ranks.row[0] = (struct mst_status_rank){ .rank = 0,
							   .counted = 9,
							   .ready_mean_ns = 1 };
	wire_sent.ranks.row[1] = (struct mst_status_rank){ .rank = 1,
							   .incarnation = 3,
							   .state = MST_RANK_LOST,
							   .link = { "tcp", 1 },
							   .awaited = 1,
							   .rests = 1,
							   .held = 1,
							   .counted = 2,
							   .late = 3,
							   .stale = 4,
							   .cancelled = 5,
							   .refused = 6,
							   .outliers = 12,
							   .damaged = 13,
							   .samples_counted = 20,
							   .samples_pushed = 450.5,
							   .norm = 1.5,
							   .norm_max = 2.5,
							   .given_up = 7,
							   .ready_mean_ns = 8,
							   .ready_max_ns = 9,
							   .behind_mean_ns = 10,
							   .staleness_mean = 0.5,
							   .staleness_p99 = 11,
							   .recent_came = 12,
							   .recent_missed = 13,
							   .recent_given_up = 14,
							   .recent_ready_ns = 15,
							   .recent_behind_ns = 16,
							   .busy_ns = 17,
							   .waiting_ns = 18,
							   .heard_ns = 19,
							   .handed_in_ns = UINT64_MAX,
							   .behind_by = 20,
							   .gone_at = 21 };
}

static void make_appoint(void)
{
	wire_sent.appoint = (struct mst_appoint){
		.job = "mnist",
		.index = 2,
		.servers = MST_SERVERS_MAX,
		.elems = 79510,
		.first = 8192,
		.count = 4096,
		.type = MUSTER_BF16,
		.result_type = MUSTER_F16,
		.owner = MUSTER_WORKERS_OWN,
		.workers = 5,
		.slots = 2,
		.record_ranks = 8,
		.buffers = 20,
		.entries = 15,
		.group = 8,
		.partials = 3,
		.repeats = 1,
		.optimizer = "sgd",
		.averages = 1,
		.distances = 1,
		.parameter_count = 2,
		.parameter = { 0.125, 0.5 },
		.table = { 6, 2, 99, 1, 4, UINT64_MAX },
	};
	struct mst_appoint *a = &wire_sent.appoint;

	a->lease_ns = 1, a->patience_ns = 2;
	a->server_lease_ns = 3;
	a->path = (struct mst_path){ UINT64_C(2000000000), 104, 15, -1, 1 };
	a->token[15] = 8;
	memcpy(a->address, "/muster-1-abc", sizeof("/muster-1-abc"));
}

static void make_between_servers(enum mst_message_kind kind)
{
	if (kind == MST_MSG_SERVE)
		wire_sent.serve = (struct mst_serve){ "mnist", "shm", 4711, two_origins };
	else if (kind == MST_MSG_APPOINT)
		make_appoint();
	else if (kind == MST_MSG_READY)
		memcpy(wire_sent.listener, "/muster-2-def", sizeof("/muster-2-def"));
	else if (kind == MST_MSG_EXPECT)
		wire_sent.expect = (struct mst_expect){ 3, 2, { 1, [15] = 2 }, two_origins };
	else if (kind == MST_MSG_FORGET)
		wire_sent.expect = (struct mst_expect){ .rank = 3, .incarnation = 2 };
	else if (kind == MST_MSG_RELINK)
		wire_sent.token[15] = 0xff;
	else if (kind == MST_MSG_TENSORS)
		wire_sent.piece = (struct mst_tensor_piece){
			7, 9, 2, { { "fc1.weight", 4, 1, 0.5f }, { "", 9, 0, 1 } }
		};
	else if (kind == MST_MSG_BEAT)
		wire_sent.beat = (struct mst_beat){ 2, { { 12345 }, { UINT64_MAX } } };
}

static void make_why(enum mst_message_kind kind)
{
	memcpy(wire_sent.why, "accuracy reached", sizeof("accuracy reached"));
	if (kind == MST_MSG_FINISH || kind == MST_MSG_DONE)
		wire_sent.goal = 1000;
}

static void make_operator(enum mst_message_kind kind)
{
	if (kind == MST_MSG_WORKERS)
		wire_sent.workforce = (struct mst_workforce){ 8, 4, UINT64_MAX };
	else
		wire_sent.evicted = 3;
}

void wire_make(enum mst_message_kind kind)
{
	for (size_t i = 0; i < sizeof(wire_piece); i++)
		wire_piece[i] = (uint8_t)(i * 7);
	memset(&wire_sent, 0, sizeof(wire_sent));
	wire_sent.kind = kind;
	if (kind == MST_MSG_HELLO)
		make_hello();
	else if (kind == MST_MSG_WELCOME)
		make_welcome();
	else if (kind == MST_MSG_ERROR)
		wire_sent.error = (struct mst_error_message){ -ENOSPC, "all 5 ranks are taken" };
	else if (kind == MST_MSG_START)
		wire_sent.start = (struct mst_start_offer){ .offers = 1, .passed = "not shm" };
	else if (kind == MST_MSG_CLAIM)
		make_claim();
	else if (kind == MST_MSG_AGREE)
		wire_sent.agree = (struct mst_agree){ MST_AGREE_TAKE, 3, 17, 1, "lr: 1, and 2" };
	else if (kind == MST_MSG_COMPARE)
		make_comparison();
	else if (kind == MST_MSG_DIFFERS)
		wire_sent.differs = (struct mst_differs){ 32, 1, 1, "lr: 1, and 2 at rank 1" };
	else if (kind == MST_MSG_BEGINS)
		wire_sent.begins = (struct mst_begins){ { "0123456789abcdef", 3, 7, 41, 5, 4 },
							{ 1, { { 42, 7, 1, 4 } } },
							41,
							"ssp:4",
							{ 7, 1, "bounded:4" } };
	else if (kind == MST_MSG_IN_FORCE)
		wire_sent.in_force = (struct mst_in_force){ 3, 1, "backup:2" };
	else if (kind == MST_MSG_SET)
		wire_sent.set = (struct mst_set_piece){
			42, 7, 96, 0.5, 4, 8, 0, 3, 2, { { 0, 1, 32 }, { 2, 1, 64 } }
		};
	else if (kind == MST_MSG_SEND_STATE)
		wire_sent.wanted = (struct mst_wanted){ 1, 1, 1 };
	else if (kind == MST_MSG_STATE)
		wire_sent.state = (struct mst_state_piece){ 4096, 8192, sizeof(wire_piece),
							    wire_piece };
	else if (kind == MST_MSG_LEAVE)
		wire_sent.seq = UINT64_C(0x123456789abcdef);
	else if (kind == MST_MSG_FINISH || kind == MST_MSG_FINISHED || kind == MST_MSG_DONE ||
		 kind == MST_MSG_END_JOB)
		make_why(kind);
	else if (kind == MST_MSG_POLICY)
		wire_sent.change = (struct mst_policy_change){ "backup:4", 1 };
	else if (kind == MST_MSG_REST)
		wire_sent.rest = (struct mst_rest){ 3, 1 };
	else if (kind == MST_MSG_EVICT || kind == MST_MSG_WORKERS)
		make_operator(kind);
	else if (kind == MST_MSG_REPORT)
		wire_sent.metric = (struct mst_metric){ "accuracy", -0.5, UINT64_MAX };
	else if (kind == MST_MSG_BEHIND || kind == MST_MSG_STATE_WANTED || kind == MST_MSG_TOOK ||
		 kind == MST_MSG_ASK_AVERAGE)
		wire_sent.number = UINT64_C(0xfedcba9876543210);
	else if (kind == MST_MSG_GIVE || kind == MST_MSG_TAKE || kind == MST_MSG_AVERAGE)
		wire_sent.handed = (struct mst_handed){
			{ 4096, 8192, sizeof(wire_piece), wire_piece }, 3, 17, 5
		};
	else if (kind == MST_MSG_FETCH)
		wire_sent.fetch = (struct mst_fetch){ 3, 4096, UINT64_C(1) << 33 };
	else if (kind == MST_MSG_ASK_STATUS)
		wire_sent.watch = 1;
	else if (kind == MST_MSG_STATUS)
		make_status();
	else if (kind == MST_MSG_STATUS_RANKS)
		make_ranks();
	else
		make_between_servers(kind);
}
