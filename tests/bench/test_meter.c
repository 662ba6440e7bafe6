/* SPDX-License-Identifier: MIT */
/* That what measures the comparison's peers finds what is wrong, and takes the slowest's time. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/bench/peers/meter.h"
#include "tests/ut.h"

#define ELEMS 4096u
#define ALL 0x7u
#define LONG_NS (100 * MST_MS) /* on a busy host few short steps take so long */

static char path[] = "/tmp/test_meter.XXXXXX";

static struct meter *open_meter(char *workers, char *fill, char *delay_ms)
{
	char *argv[] = { "test", "--file",     path,     "--elems",   "4096",  "--steps",
			 "10",   "--warmup",   "2",      "--workers", workers, "--fill",
			 fill,   "--delay-ms", delay_ms, NULL };
	struct meter *m = meter_open(15, argv);

	CU_ASSERT_PTR_NOT_NULL_FATAL(m);
	return m;
}

/* --- contents ------------------------------------------------------------------------------- */

static float sum[ELEMS], part[ELEMS];

/* What three ranks fill for @tag in their step @step, added up. */
static void add_up(char *fill, uint64_t tag, unsigned step)
{
	memset(sum, 0, sizeof(sum));
	for (int rank = 2; rank >= 0; rank--) { /* 0 last: it waits for the others */
		struct meter *m = open_meter("3", fill, "0");
		CU_ASSERT_EQUAL_FATAL(meter_join(m, (uint32_t)rank), 0);
		for (unsigned i = 0; i < step; i++)
			meter_done(m);
		memset(part, 0, sizeof(part));
		meter_fill(m, part, tag);
		for (unsigned i = 0; i < ELEMS; i++)
			sum[i] += part[i];
		(void)meter_close(m);
	}
	CU_ASSERT_EQUAL(truncate(path, 0), 0); /* a new file for those who check */
}

/* Wrong elements of `sum`, which is called the step @tag of the ranks in @set. */
static uint64_t wrong_in(char *fill, uint64_t tag, uint64_t set, double divisor)
{
	struct meter *m = open_meter("3", fill, "0");

	CU_ASSERT_EQUAL_FATAL(meter_join(m, 1), 0);
	for (unsigned i = 0; i < 4; i++) /* warmed up */
		meter_done(m);
	meter_check(m, sum, tag, set, divisor);
	uint64_t wrong = meter_wrong(m);
	(void)meter_close(m);
	CU_ASSERT_EQUAL(truncate(path, 0), 0);
	return wrong;
}

static void a_right_sum_has_nothing_wrong(void)
{
	add_up("all", 5, 3);
	CU_ASSERT_EQUAL(wrong_in("all", 5, ALL, 1), 0);
	for (unsigned i = 0; i < ELEMS; i++)
		sum[i] /= 3;
	CU_ASSERT_EQUAL(wrong_in("all", 5, ALL, 3), 0);
}

static void each_wrong_element_counts(void)
{
	add_up("all", 5, 3);
	sum[0] += 2;
	sum[17] = NAN;
	sum[ELEMS - 1] = INFINITY;
	CU_ASSERT_EQUAL(wrong_in("all", 5, ALL, 1), 3);
}

static void two_elements_that_changed_places_are_wrong(void)
{
	add_up("all", 5, 3);
	float first = sum[1000];
	sum[1000] = sum[1001];
	sum[1001] = first;
	CU_ASSERT_EQUAL(wrong_in("all", 5, ALL, 1), 2);
}

static void another_step_or_another_set_is_wrong(void)
{
	add_up("all", 5, 3);
	CU_ASSERT(wrong_in("all", 4, ALL, 1) > ELEMS * 9 / 10);
	CU_ASSERT(wrong_in("all", 7, ALL, 1) > ELEMS * 9 / 10);
	CU_ASSERT(wrong_in("all", 5, 0x3, 1) > ELEMS * 9 / 10);
	CU_ASSERT(wrong_in("all", 5, ALL, 3) > ELEMS * 9 / 10);
}

static void a_difference_of_parameters_is_checked_as_a_mean(void)
{
	float before[ELEMS];

	add_up("all", 5, 3);
	for (unsigned i = 0; i < ELEMS; i++) {
		before[i] = (float)(840 * i);
		part[i] = before[i] - sum[i] / 3;
	}
	struct meter *m = open_meter("3", "all", "0");
	CU_ASSERT_EQUAL_FATAL(meter_join(m, 1), 0);
	meter_done(m);
	meter_check_step(m, part, before, 5, ALL);
	CU_ASSERT_EQUAL(meter_wrong(m), 0);
	part[9] += 2;
	meter_check_step(m, part, before, 5, ALL);
	CU_ASSERT_EQUAL(meter_wrong(m), 1);
	(void)meter_close(m);
	CU_ASSERT_EQUAL(truncate(path, 0), 0);
}

static void marks_are_all_that_is_written_and_checked(void)
{
	unsigned written = 0;

	add_up("marks", 5, 3);
	for (unsigned i = 0; i < ELEMS; i++)
		written += sum[i] != 0;
	CU_ASSERT(written >= 4 && written <= 17);
	CU_ASSERT_EQUAL(wrong_in("marks", 5, ALL, 1), 0);
	sum[1] += 2; /* none */
	CU_ASSERT_EQUAL(wrong_in("marks", 5, ALL, 1), 0);
	sum[ELEMS - 1] += 2;
	CU_ASSERT_EQUAL(wrong_in("marks", 5, ALL, 1), 1);
	sum[0] += 2;
	CU_ASSERT_EQUAL(wrong_in("marks", 5, ALL, 1), 2);
}

static void steps_that_warm_up_write_everything(void)
{
	add_up("marks", 5, 1);
	CU_ASSERT_EQUAL(wrong_in("all", 5, ALL, 1), 0);
}

/* --- times ---------------------------------------------------------------------------------- */

static bool must_wait; /* rank 0, in every step that counts, for the long ones of the other */
static _Atomic unsigned *slept; /* long ones so far; both processes see it */

static void go(uint32_t rank, char *workers, char *delay_ms, unsigned long_ones)
{
	struct meter *m = open_meter(workers, "all", delay_ms);
	bool early = false;

	if (meter_join(m, rank) != 0)
		_exit(1);
	for (unsigned i = 0; meter_next(m); i++) {
		if (i >= 2 && i - 2 < long_ones) {
			mst_sleep_ns(LONG_NS);
			atomic_fetch_add(slept, 1);
		}
		meter_done(m);
		meter_meet(m);
		early |= must_wait && i >= 2 && atomic_load(slept) < i - 1;
	}
	int rc = meter_close(m);
	_exit(early ? 1 : rc);
}

/* The figure @name that two workers print, the second of which has so many long steps. */
static double figure(const char *name, char *delay_ms, unsigned long_ones)
{
	char line[1024] = "";
	int out[2], status;

	CU_ASSERT_EQUAL_FATAL(pipe(out), 0);
	atomic_store(slept, 0);
	for (uint32_t rank = 0; rank < 2; rank++) {
		pid_t pid = fork();
		CU_ASSERT_FATAL(pid >= 0);
		if (pid == 0) {
			dup2(out[1], STDOUT_FILENO);
			go(rank, "2", delay_ms, rank == 1 ? long_ones : 0);
		}
	}
	for (int i = 0; i < 2; i++) {
		CU_ASSERT(wait(&status) > 0);
		CU_ASSERT_EQUAL(status, 0);
	}
	CU_ASSERT(read(out[0], line, sizeof(line) - 1) > 0);
	close(out[0]);
	close(out[1]);
	CU_ASSERT_EQUAL(truncate(path, 0), 0);
	char *at = strstr(line, name);
	CU_ASSERT_PTR_NOT_NULL_FATAL(at);
	return strtod(at + strlen(name) + 2, NULL);
}

#define LONG_US ((double)LONG_NS / 1e3)

static void a_step_takes_what_its_slowest_worker_takes(void)
{
	CU_ASSERT(figure("min_us", "0", 10) >= LONG_US);
}

static void nobody_goes_on_before_all_have_their_result(void)
{
	must_wait = true;
	CU_ASSERT_EQUAL(figure("samples", "0", 10), 10);
	must_wait = false;
}

/* Is half of the steps short where so many are long? On a busy host others may be long, too: of
 * several tries one is enough. */
static bool half_is_short(char *delay_ms, unsigned long_ones)
{
	for (int tries = 0; tries < 20; tries++) {
		if (figure("p50_us", delay_ms, long_ones) < LONG_US)
			return true;
	}
	return false;
}

static void quantiles_are_of_the_steps(void)
{
	CU_ASSERT(half_is_short("0", 3));
	CU_ASSERT(figure("p50_us", "0", 6) >= LONG_US);
	CU_ASSERT(figure("p99_us", "0", 1) >= LONG_US);
	CU_ASSERT_EQUAL(figure("samples", "0", 0), 10);
}

static void a_delayed_worker_is_not_measured(void)
{
	CU_ASSERT(half_is_short("1", 10));
}

static CU_TestInfo cases[] = {
	{ "a right sum, or mean, has nothing wrong", a_right_sum_has_nothing_wrong },
	{ "each wrong element counts", each_wrong_element_counts },
	{ "two elements that changed places are wrong",
	  two_elements_that_changed_places_are_wrong },
	{ "another step, or another set, is wrong", another_step_or_another_set_is_wrong },
	{ "a difference of parameters is checked as a mean",
	  a_difference_of_parameters_is_checked_as_a_mean },
	{ "marks are all that is written and checked", marks_are_all_that_is_written_and_checked },
	{ "steps that warm up write everything", steps_that_warm_up_write_everything },
	{ "a step takes what its slowest worker takes",
	  a_step_takes_what_its_slowest_worker_takes },
	{ "nobody goes on before all have their result",
	  nobody_goes_on_before_all_have_their_result },
	{ "quantiles are of the steps", quantiles_are_of_the_steps },
	{ "a delayed worker is not measured", a_delayed_worker_is_not_measured },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	int fd = mkstemp(path);

	slept = mmap(NULL, sizeof(*slept), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (fd < 0 || slept == MAP_FAILED)
		return EXIT_FAILURE;
	int status = ut_main("meter", cases);
	close(fd);
	unlink(path);
	return status;
}
