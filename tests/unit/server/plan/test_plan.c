/* SPDX-License-Identifier: MIT */
/* Plans of leaders and followers, from options as a user types them. */
#include <errno.h>
#include <string.h>

#include "common/config/option.h"
#include "common/transport/spin.h"
#include "common/transport/transport.h"
#include "server/cluster/follower.h"
#include "server/cluster/leader.h"
#include "server/plan/plan.h"
#include "tests/ut.h"

#define RUNS 7
#define ELEMS UINT64_C(1000000)

static struct mst_server_options typed;
static struct mst_options parsed;
static struct mst_terms terms;
static struct mst_plan_cfg cfg;
static const struct mst_networks over_shm = { 1, { &mst_shm }, false };
static struct mst_plan leader;
static struct mst_reason why;

/* @words: options and their values, ended by NULL. */
static void type(const char *const words[])
{
	char *argv[32] = { (char *)(uintptr_t) "musterd" };
	int argc = 1, operand;

	for (; words[argc - 1] != NULL; argc++)
		argv[argc] = (char *)(uintptr_t)words[argc - 1];
	CU_ASSERT_EQUAL_FATAL(mst_options_init(&parsed, mst_server_table, &typed), 0);
	CU_ASSERT_EQUAL_FATAL(mst_options_argv(&parsed, argc, argv, &operand), 0);
	CU_ASSERT_EQUAL_FATAL(mst_terms_read(&typed, &terms, &why), 0);
	cfg = (struct mst_plan_cfg){ .options = &typed,
				     .terms = &terms,
				     .networks = &over_shm,
				     .cores = 8,
				     .processors = 8 };
}

static int plan_elems(uint64_t elems)
{
	struct mst_vector vector = { .elems = elems,
				     .result_type = MUSTER_BF16,
				     .table = { .tensors = RUNS, .runs = RUNS } };

	return mst_plan_leader(&cfg, &vector, &leader, &why);
}

static void end(void)
{
	mst_options_free(&parsed);
}

#define TYPE(...) type((const char *const[]){ __VA_ARGS__, NULL })

/* ---- cases ---- */

static void one_server_has_all_of_it_and_decides_alone(void)
{
	TYPE("--workers", "4");
	CU_ASSERT_EQUAL_FATAL(plan_elems(ELEMS), 0);
	CU_ASSERT_EQUAL(leader.first, 0);
	CU_ASSERT_EQUAL(leader.count, ELEMS);
	CU_ASSERT_PTR_NULL(leader.server.decider);
	CU_ASSERT_EQUAL(leader.server.peers, 0);
	CU_ASSERT_EQUAL(leader.server.aggregator.sessions_max, 4 * MST_PLAN_SESSIONS_PER_RANK);
	end();
}

/* The host of these cases has eight processors. */
static void waits_pause_where_each_process_has_a_processor(void)
{
	static const struct {
		const char *workers, *pauses, *transport;
		uint32_t want;
	} rows[] = {
		{ "7", "auto", "shm", MST_SPIN_PAUSES },
		{ "8", "auto", "shm", 0 },
		{ "8", "30", "shm", 30 },
		{ "8", "auto", "far", MST_SPIN_PAUSES },
	};
	struct mst_transport far = mst_shm;
	const struct mst_networks over_far = { 1, { &far }, false };

	far.maps = false;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		TYPE("--workers", rows[i].workers, "--spin-pauses", rows[i].pauses);
		if (strcmp(rows[i].transport, "far") == 0)
			cfg.networks = &over_far;
		CU_ASSERT_EQUAL_FATAL(plan_elems(ELEMS), 0);
		CU_ASSERT_EQUAL(leader.server.net.spin_pauses, rows[i].want);
		end();
	}
}

/* Each element is planned once, and what both ends of a link reckon with is the same. */
static void parts_cover_the_vector(void)
{
	struct mst_appoint appoint;
	struct mst_plan follower;
	uint64_t at;

	TYPE("--workers", "4", "--servers", "3", "--partition", "2,1,1", "--policy",
	     "kbatchasync:3");
	CU_ASSERT_EQUAL_FATAL(plan_elems(ELEMS), 0);
	CU_ASSERT_PTR_EQUAL(leader.server.decider, mst_leader_make);
	at = leader.first + leader.count;
	for (uint32_t i = 1; i < 3; i++) {
		memset(&appoint, 0, sizeof(appoint));
		mst_plan_appoint(&cfg, &leader, i, &appoint);
		mst_plan_follower(&cfg, &appoint, &follower);
		CU_ASSERT_EQUAL(follower.first, at);
		CU_ASSERT_EQUAL(follower.server.aggregator.table.runs, RUNS);
		at += follower.count;
		CU_ASSERT_PTR_EQUAL(follower.server.decider, mst_follower_make);
		CU_ASSERT(follower.vector.elems == ELEMS && follower.vector.type == MUSTER_F32 &&
			  follower.vector.result_type == MUSTER_BF16);
		const struct mst_aggregator_cfg *l = &leader.server.aggregator;
		const struct mst_aggregator_cfg *f = &follower.server.aggregator;
		CU_ASSERT(f->follower && f->index == i && f->slots == l->slots &&
			  f->buffers == l->buffers && f->entries_max == l->entries_max &&
			  f->partials == l->partials && f->group == l->group &&
			  f->guards == l->guards);
		CU_ASSERT(follower.repeats);
	}
	CU_ASSERT_EQUAL(at, ELEMS);
	end();
}

static void a_vector_too_short_to_be_shared_is_refused_with_figures(void)
{
	TYPE("--workers", "4", "--servers", "3");
	CU_ASSERT_EQUAL(plan_elems(4096), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "4096 elements cannot be shared by 3 servers"));
	end();
}

/* Sums of groups can wait; where a rank contributes again its sum cannot. */
static void only_sums_that_can_wait_are_left_out(void)
{
	TYPE("--workers", "20", "--group", "4", "--policy", "bsp");
	CU_ASSERT_EQUAL_FATAL(plan_elems(ELEMS), 0);
	CU_ASSERT_EQUAL(leader.server.aggregator.partials, 4);
	CU_ASSERT(mst_plan_shrink(&leader));
	CU_ASSERT_EQUAL(leader.server.aggregator.partials, 0);
	CU_ASSERT_FALSE(mst_plan_shrink(&leader));
	end();
	TYPE("--workers", "20", "--policy", "kbatchsync:8");
	CU_ASSERT_EQUAL_FATAL(plan_elems(ELEMS), 0);
	CU_ASSERT(leader.server.aggregator.partials > 0);
	CU_ASSERT_FALSE(mst_plan_shrink(&leader));
	end();
}

/* Servers of one host share its processors; a short vector needs no second thread. */
static void shards_follow_processors_and_length(void)
{
	struct mst_appoint appoint = { 0 };
	struct mst_plan follower;

	TYPE("--workers", "4", "--servers", "3");
	CU_ASSERT_EQUAL_FATAL(plan_elems(100 * ELEMS), 0);
	CU_ASSERT_EQUAL(leader.server.aggregator.shards, 3);
	mst_plan_appoint(&cfg, &leader, 2, &appoint);
	mst_plan_follower(&cfg, &appoint, &follower);
	CU_ASSERT_EQUAL(follower.server.aggregator.shards, 2);
	CU_ASSERT_EQUAL_FATAL(plan_elems(3 * 4096), 0);
	CU_ASSERT_EQUAL(leader.server.aggregator.shards, 1);
	end();
	TYPE("--workers", "4", "--servers", "3", "--cpus", "0,1");
	CU_ASSERT_EQUAL_FATAL(plan_elems(100 * ELEMS), 0);
	CU_ASSERT_EQUAL(leader.server.aggregator.shards, 8);
	end();
}

static uint64_t bytes_with(const char *average, const char *state)
{
	uint64_t bytes;

	TYPE("--workers", "4", "--average", average, "--state", state);
	CU_ASSERT_EQUAL_FATAL(plan_elems(ELEMS), 0);
	bytes = mst_aggregator_bytes(&leader.server.aggregator);
	end();
	return bytes;
}

/* Two vectors of f32, one of which may be lent; three where versions are saved. */
static void an_average_takes_its_memory(void)
{
	CU_ASSERT_EQUAL(bytes_with("0.9", "") - bytes_with("0", ""), 2 * ELEMS * sizeof(float));
	CU_ASSERT_EQUAL(bytes_with("0.9", "d") - bytes_with("0", "d"), 3 * ELEMS * sizeof(float));
}

/* Only the leader has the decay. */
static void a_follower_is_told_to_keep_an_average(void)
{
	struct mst_plan follower;

	for (int kept = 0; kept < 2; kept++) {
		struct mst_appoint appoint = { .index = 1 };

		TYPE("--workers", "4", "--servers", "2", "--average", kept ? "0.5" : "0");
		CU_ASSERT_EQUAL_FATAL(plan_elems(ELEMS), 0);
		mst_plan_appoint(&cfg, &leader, 1, &appoint);
		mst_plan_follower(&cfg, &appoint, &follower);
		CU_ASSERT_EQUAL(leader.server.ledger.average, kept ? 0.5 : 0);
		CU_ASSERT_EQUAL(leader.server.aggregator.averages, kept);
		CU_ASSERT_EQUAL(follower.server.aggregator.averages, kept);
		end();
	}
}

/* The version that each worker was given last, and one more; at each server, which is told. */
static void what_gradients_are_compared_with_takes_its_memory(void)
{
	struct mst_plan follower;
	uint64_t bytes[2], more = 0;

	for (int compares = 0; compares < 2; compares++) {
		struct mst_appoint appoint = { .index = 1 };

		TYPE("--workers", "4", "--servers", "2", "--policy", "async", "--buffers", "4",
		     "--lr-distance", compares ? "0.5" : "0");
		CU_ASSERT_EQUAL_FATAL(plan_elems(ELEMS), 0);
		mst_plan_appoint(&cfg, &leader, 1, &appoint);
		mst_plan_follower(&cfg, &appoint, &follower);
		CU_ASSERT_EQUAL(leader.server.aggregator.buffers, compares ? 9 : 4);
		CU_ASSERT_EQUAL(follower.server.aggregator.buffers, compares ? 9 : 4);
		CU_ASSERT_EQUAL(leader.server.aggregator.distances, compares);
		CU_ASSERT_EQUAL(follower.server.aggregator.distances, compares);
		bytes[compares] = mst_server_published(&leader.server);
		more = 5 * mst_version_stride(leader.count, leader.vector.result_type);
		end();
	}
	CU_ASSERT_EQUAL(bytes[1] - bytes[0], more);
}

/* Only workers that own come back with what they hold; each server is told, and has a page more. */
static void versions_are_marked_where_workers_own_and_wait_for_a_server(void)
{
	static const char *const owner[] = { "servers", "workers" };
	static const char *const patience[] = { "0", "1m" };
	struct mst_plan follower;

	for (int i = 0; i < 4; i++) {
		struct mst_appoint appoint = { .index = 1 };
		bool marks = i == 3;

		TYPE("--workers", "4", "--servers", "2", "--owner", owner[i & 1],
		     "--server-patience", patience[i >> 1]);
		CU_ASSERT_EQUAL_FATAL(plan_elems(ELEMS), 0);
		mst_plan_appoint(&cfg, &leader, 1, &appoint);
		mst_plan_follower(&cfg, &appoint, &follower);
		CU_ASSERT_EQUAL(leader.server.aggregator.marks, marks);
		CU_ASSERT_EQUAL(follower.server.aggregator.marks, marks);
		CU_ASSERT_EQUAL(mst_server_published(&follower.server) %
					mst_version_stride(follower.count, MUSTER_BF16),
				marks ? 4096 : 0);
		end();
	}
}

static CU_TestInfo cases[] = {
	{ "versions are marked where workers own and wait for a server",
	  versions_are_marked_where_workers_own_and_wait_for_a_server },
	{ "what gradients are compared with takes its memory",
	  what_gradients_are_compared_with_takes_its_memory },
	{ "an average takes its memory", an_average_takes_its_memory },
	{ "a follower is told to keep an average", a_follower_is_told_to_keep_an_average },
	{ "waits pause where each process has a processor",
	  waits_pause_where_each_process_has_a_processor },
	{ "one server has all of it and decides alone",
	  one_server_has_all_of_it_and_decides_alone },
	{ "parts cover the vector", parts_cover_the_vector },
	{ "a vector too short to be shared is refused with figures",
	  a_vector_too_short_to_be_shared_is_refused_with_figures },
	{ "only sums that can wait are left out", only_sums_that_can_wait_are_left_out },
	{ "shards follow processors and length", shards_follow_processors_and_length },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("plan", cases);
}
