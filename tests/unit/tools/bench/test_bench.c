/* SPDX-License-Identifier: MIT */
/* What `muster bench` calls right, and how records become figures: against made-up steps. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/kernels/sum.h"
#include "tests/unit/common/optim/optim_case.h"
#include "tests/ut.h"
#include "tools/bench/figures.h"
#include "tools/bench/options.h"
#include "tools/bench/values.h"

#define COUNT 9000u /* more than two periods */
#define WORKERS 5u

static float gradient[WORKERS][COUNT], wide[COUNT], total[COUNT], theta[COUNT], before[COUNT];
static float result[COUNT];

/* ---- values ---- */

/* Everybody's gradient on @version, as the servers read it. */
static void make_gradients(const struct mst_bench_values *v, uint64_t version)
{
	for (uint32_t rank = 0; rank < WORKERS; rank++) {
		mst_bench_fill(v, rank, version, result, COUNT);
		mst_sum_load(gradient[rank], result, v->type, COUNT);
	}
}

/* Their mean, over the ranks whose bit is set, one element after the other. */
static uint32_t make_mean(uint32_t ranks, struct muster_share *set)
{
	uint32_t len = 0;

	memset(total, 0, sizeof(total));
	for (uint32_t rank = 0; rank < WORKERS; rank++) {
		if ((ranks >> rank & 1) == 0)
			continue;
		for (uint32_t i = 0; i < COUNT; i++)
			total[i] += gradient[rank][i];
		set[len++] = (struct muster_share){ .rank = rank, .count = 1, .weight = 1 };
	}
	for (uint32_t i = 0; i < COUNT; i++)
		total[i] /= (float)len;
	return len;
}

static void means_are_known(void)
{
	static const enum muster_type types[] = { MUSTER_F32, MUSTER_BF16, MUSTER_F16 };
	struct muster_share set[WORKERS];
	struct mst_bench_values v;

	for (uint32_t t = 0; t < 3; t++) {
		mst_bench_values_init(&v, types[t], MUSTER_WORKERS_OWN, WORKERS);
		for (uint64_t version = 0; version < 40; version++) {
			make_gradients(&v, version);
			struct mst_bench_expected e = {
				.version = version + 1,
				.set = set,
				.set_len = make_mean(version % 3 == 0 ? 0x1d : 0x1f, set),
			};
			mst_sum_store(result, v.type, total, COUNT);
			CU_ASSERT_EQUAL(mst_bench_wrong(&v, &e, result, COUNT), 0);
		}
	}
}

/* Sets change from step to step, as under a backup policy. */
static void parameters_are_known(void)
{
	static const enum muster_type types[] = { MUSTER_F32, MUSTER_BF16, MUSTER_F16 };
	struct muster_share set[WORKERS];
	struct mst_bench_values v;

	for (uint32_t t = 0; t < 3; t++) {
		int64_t drift = 0;

		mst_bench_values_init(&v, types[t], MUSTER_SERVERS_OWN, 3);
		memset(theta, 0, sizeof(theta));
		for (uint64_t version = 0; version < 40; version++) {
			make_gradients(&v, version);
			struct mst_bench_expected e = {
				.version = version + 1,
				.set = set,
				.set_len = make_mean(version % 2 == 0 ? 0x0b : 0x1c, set),
			};
			optim_case_step_sgd(theta, theta, total, NULL, 0, 1, COUNT);
			mst_sum_store(result, v.type, theta, COUNT);
			drift += mst_bench_drift(&v, &e);
			e.drift = drift;
			CU_ASSERT_EQUAL(mst_bench_wrong(&v, &e, result, COUNT), 0);
		}
	}
}

static void gradients_differ(void)
{
	struct mst_bench_values v;

	mst_bench_values_init(&v, MUSTER_F32, MUSTER_WORKERS_OWN, 64);
	for (uint64_t version = 0; version < 8; version++) {
		for (uint32_t rank = 1; rank < 64; rank++) {
			mst_bench_fill(&v, 0, version, wide, COUNT);
			mst_bench_fill(&v, rank, version, total, COUNT);
			CU_ASSERT_NOT_EQUAL(wide[0], total[0]);
			mst_bench_fill(&v, rank, version + 1, before, COUNT);
			CU_ASSERT_NOT_EQUAL(memcmp(before, total, sizeof(total)), 0);
		}
	}
	CU_ASSERT_NOT_EQUAL(memcmp(total, total + 1024, 1024 * sizeof(total[0])), 0);
}

/* What a server may get wrong, and how many elements of it are found. */
static void mistakes_are_found(void)
{
	struct muster_share set[WORKERS];
	struct mst_bench_values v;

	mst_bench_values_init(&v, MUSTER_F32, MUSTER_WORKERS_OWN, WORKERS);
	make_gradients(&v, 6);
	uint32_t all = make_mean(0x1f, set);
	struct mst_bench_expected e = { .version = 7, .set = set, .set_len = all };
	mst_sum_store(result, v.type, total, COUNT);
	result[8999] += 1;
	result[4093] = -result[4093] - 1;
	CU_ASSERT_EQUAL(mst_bench_wrong(&v, &e, result, COUNT), 2);
	e.version = 9; /* the version before the one that is claimed */
	CU_ASSERT_TRUE(mst_bench_wrong(&v, &e, total, COUNT) > COUNT / 2);
	e.version = 7;
	make_mean(0x0f, set); /* one is left out, and yet named */
	make_gradients(&v, 6);
	struct muster_share whole[WORKERS];
	memcpy(wide, total, sizeof(total));
	e.set = whole;
	e.set_len = make_mean(0x1f, whole);
	CU_ASSERT_EQUAL(mst_bench_wrong(&v, &e, wide, COUNT), COUNT);
	e.set_len = 0;
	CU_ASSERT_EQUAL(mst_bench_wrong(&v, &e, total, COUNT), COUNT);
}

/* ---- figures ---- */

static struct mst_bench_plan *plan;
static struct mst_bench_figures f;

static void plan_begin(uint32_t steps)
{
	struct mst_bench_plan want = {
		.workers = 3, .quorum = 2, .warmup = 1, .steps = steps, .begun_ns = 50
	};
	int fd;

	CU_ASSERT_EQUAL_FATAL(mst_bench_plan_new(&want, &plan, &fd), 0);
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	mst_bench_plan_free(plan);
	CU_ASSERT_EQUAL_FATAL(mst_bench_plan_map(path, &plan), 0);
	CU_ASSERT_EQUAL(plan->steps, steps);
	close(fd);
}

static void plan_end(void)
{
	CU_ASSERT_EQUAL(mst_bench_figures_make(plan, &f), 0);
	mst_bench_plan_free(plan);
}

/* A counted worker of a step that begins at 1000 x step. */
static struct mst_bench_record *write_record(uint32_t rank, uint64_t step, uint64_t start,
					     uint64_t pushed, uint64_t end)
{
	struct mst_bench_record *r = mst_bench_record_of(plan, rank, step);

	for (uint64_t i = 0; i <= step; i++)
		mst_bench_step_of(plan, i)->begin.state = MST_BENCH_GO;
	mst_bench_step_of(plan, step)->open_ns = 1000 * step;
	*r = (struct mst_bench_record){ .start_ns = 1000 * step + start,
					.pushed_ns = 1000 * step + pushed,
					.end_ns = 1000 * step + end,
					.verdict = MUSTER_COUNTED,
					.counted_in = step + 1 };
	return r;
}

static void a_step_is_its_slowest_worker(void)
{
	plan_begin(2);
	write_record(0, 0, 0, 1, 900);
	write_record(0, 1, 10, 20, 110);
	write_record(1, 1, 40, 60, 150);
	write_record(2, 1, 15, 35, 120);
	plan_end();
	CU_ASSERT_EQUAL(f.samples, 1);
	CU_ASSERT_EQUAL(f.commits, 2);
	CU_ASSERT_EQUAL(f.step.p50, 110); /* of rank 1, not 150 - 10 */
	CU_ASSERT_EQUAL(f.opened.p50, 150);
	CU_ASSERT_EQUAL(f.wait_ns, 50);
	CU_ASSERT_EQUAL(f.sum_ns, 50);
	CU_ASSERT_EQUAL(f.answer_ns, 40);
	CU_ASSERT_EQUAL(f.first_commit_ns, 850);
}

static void who_is_not_counted_is_not_waited_for(void)
{
	plan_begin(2);
	write_record(0, 1, 10, 20, 110);
	write_record(1, 1, 10, 20, 500)->counted_in = 3; /* in another version */
	write_record(2, 1, 10, 20, 900)->verdict = MUSTER_LATE;
	plan_end();
	CU_ASSERT_EQUAL(f.step.max, 100);
	CU_ASSERT_EQUAL(f.late, 1);
	CU_ASSERT_EQUAL(f.counted, 2);
	CU_ASSERT_EQUAL(f.checked, 3);
}

static void a_worker_may_hear_late_that_it_was_last(void)
{
	plan_begin(2);
	write_record(0, 1, 0, 10, 60);
	write_record(1, 1, 20, 70, 80);
	plan_end();
	CU_ASSERT_EQUAL(f.wait_ns, 60);
	CU_ASSERT_EQUAL(f.sum_ns, 0);
	CU_ASSERT_EQUAL(f.answer_ns, 20);
}

static void the_last_is_timed_alone(void)
{
	plan_begin(2);
	plan->last_alone = true;
	write_record(0, 1, 10, 20, 800);
	write_record(1, 1, 700, 705, 790);
	write_record(2, 1, 15, 35, 750);
	plan_end();
	CU_ASSERT_EQUAL(f.step.p50, 100);
	CU_ASSERT_EQUAL(f.own_ns, 90);
	CU_ASSERT_EQUAL(f.first_ns, 50);
}

static void after_the_last_barrier_there_is_nothing(void)
{
	plan_begin(4);
	write_record(0, 1, 0, 1, 70);
	write_record(0, 3, 0, 1, 90);
	mst_bench_step_of(plan, 2)->begin.state = MST_BENCH_OVER;
	plan_end();
	CU_ASSERT_EQUAL(f.samples, 1);
	CU_ASSERT_EQUAL(f.step.max, 70);
}

static void the_mean_is_that_of_all_timed_steps(void)
{
	plan_begin(4);
	write_record(0, 0, 0, 1, 900);
	write_record(0, 1, 0, 1, 10);
	write_record(0, 2, 0, 1, 20);
	write_record(0, 3, 0, 1, 90);
	plan_end();
	CU_ASSERT_EQUAL(f.step.mean, 40);
	CU_ASSERT_EQUAL(f.step.p50, 20);
}

static void quantiles_are_samples(void)
{
	plan_begin(1999);
	for (uint64_t step = 1; step < 1999; step++)
		write_record(0, step, 0, 1, step * 7 % 1999)->wrong = step == 5 ? 3 : 0;
	plan_end();
	CU_ASSERT_EQUAL(f.samples, 1998);
	CU_ASSERT_EQUAL(f.step.min, 1);
	CU_ASSERT_EQUAL(f.step.p50, 999);
	CU_ASSERT_EQUAL(f.step.p90, 1799);
	CU_ASSERT_EQUAL(f.step.p99, 1979);
	CU_ASSERT_EQUAL(f.step.p999, 1997);
	CU_ASSERT_EQUAL(f.step.max, 1998);
	CU_ASSERT_EQUAL(f.wrong, 3);
}

/* ---- options ---- */

static void sizes_fit_the_servers(void)
{
	char *two[] = { "bench", "--servers", "2", NULL };
	static const uint64_t sizes[] = { 4 << 10, 64 << 10, 1 << 20, 25 << 20, 100 << 20 };
	static struct mst_bench_line line;
	struct mst_reason why = { "" };

	CU_ASSERT_EQUAL(mst_bench_line_init(&line, 1, two, &why), 0);
	CU_ASSERT_EQUAL(line.bytes_count, 5);
	CU_ASSERT_EQUAL(memcmp(line.bytes, sizes, sizeof(sizes)), 0);
	mst_bench_line_fini(&line);
	CU_ASSERT_EQUAL(mst_bench_line_init(&line, 3, two, &why), 0);
	CU_ASSERT_EQUAL(line.bytes_count, 4);
	CU_ASSERT_EQUAL(memcmp(line.bytes, sizes + 1, sizeof(sizes) - sizeof(sizes[0])), 0);
	mst_bench_line_fini(&line);
}

static CU_TestInfo cases[] = {
	{ "means are known to the bit", means_are_known },
	{ "parameters are known, whoever is in a version", parameters_are_known },
	{ "gradients differ by rank, version, element", gradients_differ },
	{ "mistakes are found", mistakes_are_found },
	{ "a step is its slowest worker", a_step_is_its_slowest_worker },
	{ "who is not counted is not waited for", who_is_not_counted_is_not_waited_for },
	{ "a worker may hear late that it was last", a_worker_may_hear_late_that_it_was_last },
	{ "the last is timed alone", the_last_is_timed_alone },
	{ "after the last barrier there is nothing", after_the_last_barrier_there_is_nothing },
	{ "the mean is that of all timed steps", the_mean_is_that_of_all_timed_steps },
	{ "quantiles are samples", quantiles_are_samples },
	{ "sizes that nobody chose are such as the servers can share", sizes_fit_the_servers },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("bench", cases);
}
