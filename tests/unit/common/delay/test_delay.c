/* SPDX-License-Identifier: MIT */
/* The promises of common/delay. Statistics are over fixed seeds, with bounds several standard
 * errors wide, so that they hold or fail for good. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/delay/delay.h"
#include "tests/fixtures.h"
#include "tests/ut.h"

#define DRAWS 40000u
#define MS 1e6

static struct mst_reason why;

/* The model of @rank; @spec ends with NULL. */
static int delay_new(uint64_t seed, uint32_t rank, const char *const *spec, struct mst_delay **out)
{
	struct mst_delay_options opt = { .spec = spec, .rank = rank, .seed = seed };

	while (spec[opt.spec_count] != NULL)
		opt.spec_count++;
	*out = NULL;
	why.text[0] = '\0';
	return mst_delay_new(&opt, out, &why);
}
#define SPECS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static struct mst_delay *delay_of(uint64_t seed, uint32_t rank, const char *const *spec)
{
	struct mst_delay *d;

	if (delay_new(seed, rank, spec, &d) != 0)
		fprintf(stderr, "%s\n", why.text);
	CU_ASSERT_FATAL(d != NULL);
	return d;
}

static uint64_t first_of(uint32_t rank, const char *const *spec)
{
	struct mst_delay *d = delay_of(1, rank, spec);
	uint64_t ns = mst_delay_next(d);

	mst_delay_free(d);
	return ns;
}

struct delay_figures {
	double min, median, mean, max; /* ms */
};

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static struct delay_figures measure(const char *const *spec)
{
	static uint64_t ns[DRAWS];
	struct mst_delay *d = delay_of(42, 3, spec);
	double sum = 0;

	for (size_t i = 0; i < DRAWS; i++) {
		ns[i] = mst_delay_next(d);
		sum += (double)ns[i];
	}
	mst_delay_free(d);
	qsort(ns, DRAWS, sizeof(ns[0]), compare);
	return (struct delay_figures){ .min = (double)ns[0] / MS,
				       .median = (double)ns[DRAWS / 2] / MS,
				       .mean = sum / DRAWS / MS,
				       .max = (double)ns[DRAWS - 1] / MS };
}

static bool near(double value, double wanted, double share)
{
	if (fabs(value - wanted) <= share * wanted)
		return true;
	fprintf(stderr, "%g is not near %g\n", value, wanted);
	return false;
}

static void no_spec_is_no_delay(void)
{
	struct mst_delay *d = delay_of(1, 0, SPECS(NULL));

	CU_ASSERT(mst_delay_next(d) == 0 && mst_delay_next(d) == 0);
	mst_delay_free(d);
	mst_delay_free(NULL);
}

static void const_is_constant(void)
{
	struct delay_figures f = measure(SPECS("const:2.5"));

	CU_ASSERT(f.min == 2.5 && f.max == 2.5);
	CU_ASSERT(first_of(0, SPECS("const:0")) == 0);
}

static void uniform_fills_its_range(void)
{
	struct delay_figures f = measure(SPECS("uniform:10,30"));

	CU_ASSERT(f.min >= 10 && near(f.min, 10, 0.01) && f.max <= 30 && near(f.max, 30, 0.01));
	CU_ASSERT(near(f.mean, 20, 0.01) && near(f.median, 20, 0.02));
}

static void exp_has_its_mean_and_median(void)
{
	struct delay_figures f = measure(SPECS("exp:20"));

	CU_ASSERT(near(f.mean, 20, 0.03) && near(f.median, 20 * log(2), 0.03));
	CU_ASSERT(f.min < 0.01 && f.max > 120);
}

static void sexp_is_an_exp_after_a_shift(void)
{
	struct delay_figures f = measure(SPECS("sexp:5,10"));

	CU_ASSERT(f.min >= 5 && near(f.mean, 15, 0.03) && near(f.median, 5 + 10 * log(2), 0.03));
}

static void pareto_starts_at_its_scale(void)
{
	struct delay_figures f = measure(SPECS("pareto:10,3"));

	CU_ASSERT(f.min >= 10 && near(f.mean, 15, 0.03) && near(f.median, 10 * cbrt(2), 0.02));
	CU_ASSERT(f.max > 100);
}

static void lognormal_has_its_median(void)
{
	struct delay_figures f = measure(SPECS("lognormal:8,0.5"));

	CU_ASSERT(near(f.median, 8, 0.02) && near(f.mean, 8 * exp(0.125), 0.02));
}

static void a_heavy_tail_is_cut_not_wrapped(void)
{
	struct delay_figures f = measure(SPECS("pareto:1,0.001"));

	CU_ASSERT(f.min >= 1 && f.max == (double)(UINT64_C(1) << 62) / MS);
	CU_ASSERT(first_of(0, SPECS("const:1e300")) == UINT64_C(1) << 62);
}

static void mix_multiplies_with_its_probability(void)
{
	struct delay_figures f = measure(SPECS("mix:0.1,10", "const:10"));

	CU_ASSERT(f.min == 10 && f.median == 10 && f.max == 100);
	CU_ASSERT(near(f.mean, 19, 0.03));
	CU_ASSERT(measure(SPECS("const:10", "mix:0,10")).max == 10);
	CU_ASSERT(measure(SPECS("const:10", "mix:1,10")).min == 100);
}

static bool same_stream(uint64_t seed_a, uint32_t rank_a, uint64_t seed_b, uint32_t rank_b)
{
	struct mst_delay *a = delay_of(seed_a, rank_a, SPECS("exp:20", "mix:0.5,3"));
	struct mst_delay *b = delay_of(seed_b, rank_b, SPECS("exp:20", "mix:0.5,3"));
	unsigned same = 0;

	for (unsigned i = 0; i < 100; i++)
		same += mst_delay_next(a) == mst_delay_next(b);
	mst_delay_free(a);
	mst_delay_free(b);
	CU_ASSERT(same == 0 || same == 100);
	return same == 100;
}

static void seed_and_rank_decide_every_delay(void)
{
	CU_ASSERT(same_stream(7, 3, 7, 3));
	CU_ASSERT(!same_stream(7, 3, 8, 3));
	CU_ASSERT(!same_stream(7, 3, 7, 4));
	CU_ASSERT(!same_stream(7, 3, 3, 7));
	CU_ASSERT(!same_stream(0, 1, 1, 0));
}

static void a_rank_model_replaces_the_one_for_all(void)
{
	const char *const *spec = SPECS("const:10", "2:const:50", "mix:1,3");

	CU_ASSERT(first_of(0, spec) == (uint64_t)(30 * MS));
	CU_ASSERT(first_of(2, spec) == (uint64_t)(50 * MS));
	spec = SPECS("2:mix:1,7", "const:10", "mix:1,3", "3:mix:1,2", "3:const:4");
	CU_ASSERT(first_of(0, spec) == (uint64_t)(30 * MS));
	CU_ASSERT(first_of(2, spec) == (uint64_t)(70 * MS));
	CU_ASSERT(first_of(3, spec) == (uint64_t)(8 * MS));
	CU_ASSERT(first_of(0, SPECS("2:const:50")) == 0);
}

static void a_bad_spec_is_quoted(void)
{
	static const char *const bad[] = {
		"",
		"exp",
		"exp:",
		"exp:x",
		"exp:5x",
		"exp:-5",
		"exp: 5",
		"exp:5,6",
		"exp:nan",
		"exp:inf",
		"exp:0x5",
		"exp:1e999",
		"expo:5",
		"uniform:5",
		"uniform:6,5",
		"uniform:1,",
		"uniform:,1",
		"pareto:1,0",
		"lognormal:1",
		"mix:2,5",
		"mix:0.1,-5",
		"trace",
		"trace:",
		"2",
		"2:",
		"2:2:exp:5",
		"-1:exp:5",
		"x:exp:5",
		"4294967296:exp:5",
		"2 :exp:5",
		":exp:5",
		"const:5:",
		"99999999999999999999:exp:5",
	};
	struct mst_delay *d;
	char quoted[64];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		/* Also where it is meant for other ranks than this one. */
		CU_ASSERT(delay_new(1, 9, SPECS("const:5", bad[i]), &d) == -EINVAL);
		CU_ASSERT(d == NULL);
		snprintf(quoted, sizeof(quoted), "delay \"%s\": ", bad[i]);
		CU_ASSERT(strncmp(why.text, quoted, strlen(quoted)) == 0);
	}
	CU_ASSERT(delay_new(1, 0, SPECS("uniform:5"), &d) == -EINVAL);
	CU_ASSERT_STRING_EQUAL(why.text, "delay \"uniform:5\": has to be uniform:LO,HI, in decimal "
					 "numbers from 0 on");
}

static void specs_that_contradict_are_refused(void)
{
	struct mst_delay *d;

	CU_ASSERT(delay_new(1, 0, SPECS("const:5", "exp:5"), &d) == -EINVAL);
	CU_ASSERT_STRING_EQUAL(why.text,
			       "delay \"exp:5\": \"const:5\" is already given for all ranks");
	CU_ASSERT(delay_new(1, 0, SPECS("3:const:5", "3:exp:5"), &d) == -EINVAL);
	CU_ASSERT(delay_new(1, 0, SPECS("const:5", "mix:0,1", "mix:0,2"), &d) == -EINVAL);
	CU_ASSERT(delay_new(1, 0, SPECS("mix:0.1,5"), &d) == -EINVAL);
	CU_ASSERT(delay_new(1, 0, SPECS("0:const:5", "mix:0.1,5"), &d) == -EINVAL);
	CU_ASSERT(delay_new(1, 0, SPECS("0:const:5", "1:mix:0.1,5"), &d) == -EINVAL);
	CU_ASSERT(strstr(why.text, "give one beside it") != NULL);
	CU_ASSERT(delay_new(1, 0, SPECS("0:const:5", "1:const:5"), &d) == 0);
	mst_delay_free(d);
}

/* Writes a trace of this text, opens it for the rank. */
static int trace_new(const char *text, size_t len, uint32_t rank, struct mst_delay **out)
{
	struct fix_folder folder;
	char spec[80];

	fix_folder_new(&folder);
	fix_folder_put_bytes(&folder, "/trace", text, len);
	(void)snprintf(spec, sizeof(spec), "trace:%s/trace", folder.root);
	int rc = delay_new(1, rank, SPECS(spec), out);
	fix_folder_free(&folder);
	return rc;
}
#define TRACE(text, rank, out) trace_new(text, sizeof(text) - 1, rank, out)

static void a_trace_gives_each_rank_its_workers_times(void)
{
	struct mst_delay *d;

	for (uint32_t rank = 0; rank < 5; rank++) {
		uint64_t base = rank % 2 == 0 ? 1000000 : 2000000;
		CU_ASSERT_FATAL(TRACE("step,worker,ready_us\r\n16,0,1000\n16,1,2000\r\n"
				      "17,1,2001.5\n17,0,1001",
				      rank, &d) == 0);
		CU_ASSERT(mst_delay_next(d) == base);
		CU_ASSERT(mst_delay_next(d) == base + (rank % 2 == 0 ? 1000 : 1500));
		CU_ASSERT(mst_delay_next(d) == base); /* from the start again */
		mst_delay_free(d);
	}
}

/* As spreadsheets and libraries write tables. */
static void a_trace_may_have_quotes_and_blanks_around_cells(void)
{
	struct mst_delay *d;

	CU_ASSERT_FATAL(TRACE("\xef\xbb\xbf\"step\", worker,\"ready_us\" \r\n\"16\", \"0\",1000\n"
			      " 17,0 ,\t\"1001\"",
			      0, &d) == 0);
	CU_ASSERT(mst_delay_next(d) == 1000000);
	CU_ASSERT(mst_delay_next(d) == 1001000);
	mst_delay_free(d);
}

/* A trace for two ranks, and a model of rank 3 alone. */
static void many_ranks_have_the_delays_of_each(void)
{
	static const char trace[] = "step,worker,ready_us\n0,0,1\n0,1,2\n1,0,3\n1,1,4\n";
	struct fix_folder folder;
	struct mst_delay *each[3], *one;
	char of_all[160];

	fix_folder_new(&folder);
	fix_folder_put_bytes(&folder, "/trace", trace, sizeof(trace) - 1);
	(void)snprintf(of_all, sizeof(of_all), "trace:%s/trace", folder.root);
	const char *const spec[] = { of_all, "3:exp:20", NULL };
	struct mst_delay_options opt = { .spec = spec, .spec_count = 2, .rank = 1, .seed = 7 };
	CU_ASSERT_FATAL(mst_delay_new_each(&opt, 3, each, &why) == 0);
	for (uint32_t i = 0; i < 3; i++) {
		CU_ASSERT_FATAL(delay_new(7, 1 + i, spec, &one) == 0);
		for (int draw = 0; draw < 5; draw++)
			CU_ASSERT_EQUAL(mst_delay_next(each[i]), mst_delay_next(one));
		mst_delay_free(one);
		mst_delay_free(each[i]);
	}
	const char *const bad[] = { of_all, "3:trace:no-such-file", NULL };
	opt.spec = bad;
	CU_ASSERT_EQUAL(mst_delay_new_each(&opt, 3, each, &why), -ENOENT);
	fix_folder_free(&folder);
}

static void a_bad_trace_is_named_with_its_line(void)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "", "no line below its header" },
		{ "step,worker,ready_us\n", "no line below its header" },
		{ "worker,step,ready_us\n0,0,1\n",
		  "line 1 of the file is not step,worker,ready_us" },
		{ "step,worker,ready_us\n0,0,1\n0,1\n", "line 3 of the file is not" },
		{ "step,worker,ready_us\n0,0,1,2\n", "line 2 of the file is not" },
		{ "step,worker,ready_us\n0,0.5,1\n", "line 2 of the file is not" },
		{ "step,worker,ready_us\n0,4294967295,1\n", "line 2 of the file is not" },
		{ "step,worker,ready_us\n0,0,-1\n", "line 2 of the file is not" },
		{ "step,worker,ready_us\n0,0,1e300\n", "line 2 of the file is not" },
		{ "step,worker,ready_us\n0,0,nan\n", "line 2 of the file is not" },
		{ "step,worker,ready_us\n\n0,0,1\n", "line 2 of the file is not" },
		{ "step,worker,ready_us\n0,0,1 0\n", "line 2 of the file is not" },
		{ "step,worker,ready_us\n0,0,\"1\n", "line 2 of the file is not" },
		{ "step,worker,ready_us\n0,0,1\n0,2,1\n", "worker 1 has no line, though worker 2" },
		{ "step,worker,ready_us\n0,4294967294,1\n", "worker 0 has no line" },
	};
	char long_line[300] = "step,worker,ready_us\n0,0,1";
	struct mst_delay *d;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT(trace_new(bad[i].text, strlen(bad[i].text), 0, &d) == -EINVAL);
		CU_ASSERT(strstr(why.text, "delay \"trace:/tmp/muster-test-") == why.text);
		CU_ASSERT(strstr(why.text, bad[i].why) != NULL);
	}
	memset(long_line + strlen(long_line), '0', sizeof(long_line) - strlen(long_line));
	CU_ASSERT(trace_new(long_line, sizeof(long_line), 0, &d) == -EINVAL);
	CU_ASSERT(TRACE("step,worker,ready_us\n0,0,1\0\n", 0, &d) == -EINVAL);
	CU_ASSERT(delay_new(1, 0, SPECS("trace:no-such-file"), &d) == -ENOENT);
	CU_ASSERT(strstr(why.text, "delay \"trace:no-such-file\": cannot open the file") != NULL);
	CU_ASSERT(delay_new(1, 0, SPECS("trace:/"), &d) == -EISDIR);
	CU_ASSERT(delay_new(1, 1, SPECS("0:trace:no-such-file"), &d) == 0);
	mst_delay_free(d);
}

static CU_TestInfo cases[] = {
	{ "no spec is no delay", no_spec_is_no_delay },
	{ "const is constant", const_is_constant },
	{ "uniform fills its range", uniform_fills_its_range },
	{ "exp has its mean and median", exp_has_its_mean_and_median },
	{ "sexp is an exp after a shift", sexp_is_an_exp_after_a_shift },
	{ "pareto starts at its scale", pareto_starts_at_its_scale },
	{ "lognormal has its median", lognormal_has_its_median },
	{ "a heavy tail is cut, not wrapped", a_heavy_tail_is_cut_not_wrapped },
	{ "mix multiplies with its probability", mix_multiplies_with_its_probability },
	{ "seed and rank decide every delay", seed_and_rank_decide_every_delay },
	{ "a rank's model replaces the one for all", a_rank_model_replaces_the_one_for_all },
	{ "a bad spec is quoted", a_bad_spec_is_quoted },
	{ "specs that contradict are refused", specs_that_contradict_are_refused },
	{ "a trace gives each rank its worker's times", a_trace_gives_each_rank_its_workers_times },
	{ "a trace may have quotes and blanks around cells",
	  a_trace_may_have_quotes_and_blanks_around_cells },
	{ "many ranks have the delays of each", many_ranks_have_the_delays_of_each },
	{ "a bad trace is named with its line", a_bad_trace_is_named_with_its_line },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("delay", cases);
}
