/* SPDX-License-Identifier: MIT */
/* AdaSync with statistics that are made up: which K follows from which losses. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/reason.h"
#include "common/wire/range.h"
#include "server/core/policy/policy.h"
#include "tests/ut.h"

#define WORKERS 8u

static struct mst_reason why;

/* ---- a policy, and its commits ---- */

static struct mst_policy policy;

static void begin(const char *text)
{
	policy = (struct mst_policy){ .rule = { .divide = true, .min_workers = 1 } };
	CU_ASSERT_EQUAL_FATAL(mst_policy_parse(text, &policy, &why), 0);
}

static bool commit(uint32_t gradients, double loss, uint32_t live)
{
	struct mst_commit_view view = { .gradients = gradients,
					.live = live,
					.workers = WORKERS,
					.loss = loss,
					.loss_samples = isnan(loss) ? 0 : gradients };

	return mst_controller_decide(&policy.controller, &view, &policy.rule);
}

static void report(const char *name, double value)
{
	struct mst_metric said = { .value = value };

	(void)snprintf(said.name, sizeof(said.name), "%s", name);
	mst_controller_reported(&policy.controller, &said);
}

static const char *now(void)
{
	static char text[64];

	mst_controller_now(&policy.controller, &policy.rule, text, sizeof(text));
	return text;
}

static const char *because(void)
{
	static char text[128];

	mst_controller_why(&policy.controller, &policy.rule, text, sizeof(text));
	return text;
}

/* ---- the two forms ---- */

static const double ratios[] = { 1, 2, 4, 10, 20, 40, 64, 100 };
#define RATIOS (sizeof(ratios) / sizeof(ratios[0]))

static void table_holds(bool in_proportion, const double *k)
{
	for (size_t i = 0; i < RATIOS; i++) {
		struct mst_adasync_at at = { in_proportion, 1, WORKERS, ratios[i] };
		CU_ASSERT_DOUBLE_EQUAL(mst_adasync_k(&at), k[i], 0.005);
	}
}

static void where_steps_take_time_in_proportion_k_is_the_root_of_the_ratio(void)
{
	table_holds(true, (const double[]){ 1, 1.41, 2, 3.16, 4.47, 6.32, 8, 8 });
}

static void of_distinct_workers_k_is_the_root_of_the_quadratic(void)
{
	table_holds(false, (const double[]){ 1, 1.38, 1.87, 2.74, 3.56, 4.48, 5.13, 5.71 });
}

static void k_is_from_one_to_the_workers_for_every_ratio(void)
{
	static const double extreme[] = { 0, 1e-300, 0.5, 1e300, (double)INFINITY };

	for (int form = 0; form < 2; form++) {
		for (size_t i = 0; i < sizeof(extreme) / sizeof(extreme[0]); i++) {
			struct mst_adasync_at at = { form, 2, WORKERS, extreme[i] };
			double k = mst_adasync_k(&at);
			CU_ASSERT(k >= 1 && k <= WORKERS);
		}
		struct mst_adasync_at full = { form, WORKERS, WORKERS, 0.5 };
		CU_ASSERT_EQUAL(mst_adasync_k(&full), WORKERS);
		struct mst_adasync_at none = { form, 2, WORKERS, (double)INFINITY };
		CU_ASSERT_EQUAL(mst_adasync_k(&none), WORKERS);
	}
}

/* One interval of 100 at the first loss, and one at each loss after it. */
static void follows(const char *text, const char *const *names)
{
	begin(text);
	for (size_t i = 0; i < RATIOS; i++) {
		commit(100, 2 / ratios[i], WORKERS);
		CU_ASSERT_STRING_EQUAL(now(), names[i]);
	}
}

static void each_form_follows_its_rule(void)
{
	static const char *const distinct[] = { "ksync:1", "ksync:1", "ksync:2", "ksync:3",
						"ksync:4", "ksync:4", "ksync:5", "ksync:6" };
	static const char *const late[] = { "kasync:1", "kasync:1", "kasync:2", "kasync:3",
					    "kasync:4", "kasync:4", "kasync:5", "kasync:6" };
	static const char *const any[] = { "kbatchsync:1", "kbatchsync:1", "kbatchsync:2",
					   "kbatchsync:3", "kbatchsync:4", "kbatchsync:6",
					   "kbatchsync:8", "kbatchsync:8" };
	static const char *const both[] = { "kbatchasync:1", "kbatchasync:1", "kbatchasync:2",
					    "kbatchasync:3", "kbatchasync:4", "kbatchasync:6",
					    "kbatchasync:8", "kbatchasync:8" };

	follows("adasync:ksync,paper", distinct);
	follows("adasync:kasync", late);
	follows("adasync:kbatchsync", any);
	follows("adasync:kbatchasync", both);
}

/* ---- intervals ---- */

static void k_changes_only_where_an_interval_ends(void)
{
	begin("adasync:kbatchsync,1,10");
	for (int i = 0; i < 9; i++)
		CU_ASSERT_FALSE(commit(1, 4, WORKERS));
	CU_ASSERT_FALSE(commit(1, 4, WORKERS));
	CU_ASSERT_STRING_EQUAL(because(), "loss 4 -> 4, 8 live workers");
	for (int i = 0; i < 9; i++)
		CU_ASSERT_FALSE(commit(1, 1, WORKERS));
	CU_ASSERT_TRUE(commit(1, 1, WORKERS));
	CU_ASSERT_STRING_EQUAL(now(), "kbatchsync:2");
	CU_ASSERT_STRING_EQUAL(because(), "loss 4 -> 1, 8 live workers");
}

static void the_loss_is_the_mean_over_the_samples_of_the_interval(void)
{
	struct mst_commit_view view = { .gradients = 1, .live = WORKERS };

	begin("adasync:kbatchsync,1,2");
	view.loss = 1, view.loss_samples = 30;
	mst_controller_decide(&policy.controller, &view, &policy.rule);
	view.loss = 5, view.loss_samples = 10;
	mst_controller_decide(&policy.controller, &view, &policy.rule);
	CU_ASSERT_STRING_EQUAL(because(), "loss 2 -> 2, 8 live workers");
}

static void k_starts_where_the_user_says(void)
{
	begin("adasync:kasync,3");
	CU_ASSERT_STRING_EQUAL(now(), "kasync:3");
	CU_ASSERT_STRING_EQUAL(because(), "the first loss is known after 100 gradients");
	commit(100, 1, WORKERS);
	CU_ASSERT_STRING_EQUAL(now(), "kasync:3");
}

/* ---- a loss that workers report ---- */

static void a_reported_loss_stands_in_place_of_that_of_the_gradients(void)
{
	begin("adasync:kbatchsync,1,10,loss=test_loss");
	CU_ASSERT_STRING_EQUAL(mst_controller_metric(&policy.controller), "test_loss");
	CU_ASSERT_STRING_EQUAL(because(), "the first \"test_loss\" has to be reported");
	report("accuracy", 0.001);
	report("test_loss", 4);
	CU_ASSERT_FALSE(commit(10, 100, WORKERS));
	CU_ASSERT_STRING_EQUAL(because(), "test_loss 4 -> 4, 8 live workers");
	report("test_loss", 0.5); /* of two workers, say: their mean is 1 */
	report("test_loss", 1.5);
	CU_ASSERT_FALSE(commit(9, 100, WORKERS));
	CU_ASSERT_TRUE(commit(1, 100, WORKERS));
	CU_ASSERT_STRING_EQUAL(now(), "kbatchsync:2");
	CU_ASSERT_STRING_EQUAL(because(), "test_loss 4 -> 1, 8 live workers");
}

static void an_interval_goes_on_until_something_is_reported(void)
{
	begin("adasync:kbatchsync,1,10,loss=test_loss");
	CU_ASSERT_FALSE(commit(9, 1, WORKERS));
	CU_ASSERT_FALSE(mst_controller_is_stuck(&policy.controller));
	CU_ASSERT_FALSE(commit(1, 1, WORKERS));
	CU_ASSERT_TRUE(mst_controller_is_stuck(&policy.controller));
	CU_ASSERT_STRING_EQUAL(because(), "nobody has reported \"test_loss\" in 10 gradients");
	report("test_loss", 9);
	commit(1, 1, WORKERS);
	CU_ASSERT_FALSE(mst_controller_is_stuck(&policy.controller));
	/* It is no trouble that the next one takes its time. */
	for (int i = 0; i < 50; i++)
		CU_ASSERT_FALSE(commit(1, 1, WORKERS));
	CU_ASSERT_FALSE(mst_controller_is_stuck(&policy.controller));
	report("test_loss", 1);
	CU_ASSERT_TRUE(commit(1, 1, WORKERS));
	CU_ASSERT_STRING_EQUAL(now(), "kbatchsync:3");
}

static void reports_concern_only_who_asks_for_them(void)
{
	begin("adasync:kbatchsync,1,10");
	CU_ASSERT_PTR_NULL(mst_controller_metric(&policy.controller));
	commit(10, 4, WORKERS);
	report("loss", 0.0001);
	report("", 0.0001);
	CU_ASSERT_FALSE(commit(10, 4, WORKERS));
	CU_ASSERT_STRING_EQUAL(because(), "loss 4 -> 4, 8 live workers");
	begin("syncswitch:0.5");
	report("loss", 1);
	begin("dbw");
	report("loss", 1);
}

/* A job that goes on keeps what was reported in an interval that had not ended. */
static void a_checkpoint_keeps_what_was_reported(void)
{
	struct mst_controller_figure figure[MST_CONTROLLER_FIGURES];

	begin("adasync:kbatchsync,1,10,loss=test_loss");
	report("test_loss", 4);
	commit(10, 1, WORKERS);
	report("test_loss", 1);
	commit(9, 1, WORKERS);
	mst_controller_keep(&policy.controller, figure);
	begin("adasync:kbatchsync,1,10,loss=test_loss");
	CU_ASSERT_TRUE(mst_controller_resume(&policy.controller, figure, &policy.rule));
	CU_ASSERT_TRUE(commit(1, 1, WORKERS));
	CU_ASSERT_STRING_EQUAL(because(), "test_loss 4 -> 1, 8 live workers");
	/* Values of another name, or losses of gradients, have no ratio to these. */
	begin("adasync:kbatchsync,1,10,loss=error_rate");
	CU_ASSERT_FALSE(mst_controller_resume(&policy.controller, figure, &policy.rule));
	begin("adasync:kbatchsync,1,10");
	CU_ASSERT_FALSE(mst_controller_resume(&policy.controller, figure, &policy.rule));
	/* The user may ask for shorter intervals then. */
	begin("adasync:kbatchsync,1,3,loss=test_loss");
	CU_ASSERT_TRUE(mst_controller_resume(&policy.controller, figure, &policy.rule));
	CU_ASSERT_TRUE(commit(1, 1, WORKERS));
}

/* ---- down again ---- */

static void noise_of_the_loss_does_not_lower_k(void)
{
	begin("adasync:kbatchsync");
	commit(100, 9, WORKERS);
	CU_ASSERT_TRUE(commit(100, 1, WORKERS));
	CU_ASSERT_STRING_EQUAL(now(), "kbatchsync:3");
	CU_ASSERT_FALSE(commit(100, 9 / (2.1 * 2.1), WORKERS));
	CU_ASSERT_STRING_EQUAL(now(), "kbatchsync:3");
}

static void a_loss_that_rises_lowers_k(void)
{
	begin("adasync:kbatchsync");
	commit(100, 9, WORKERS);
	commit(100, 1, WORKERS);
	CU_ASSERT_TRUE(commit(100, 9 / (1.9 * 1.9), WORKERS));
	CU_ASSERT_STRING_EQUAL(now(), "kbatchsync:2");
	CU_ASSERT_TRUE(commit(100, 100, WORKERS));
	CU_ASSERT_STRING_EQUAL(now(), "kbatchsync:1");
}

static void k_is_at_most_the_live_workers_and_comes_back_with_them(void)
{
	begin("adasync:kbatchsync");
	commit(100, 64, WORKERS);
	commit(100, 1, WORKERS);
	CU_ASSERT_STRING_EQUAL(now(), "kbatchsync:8");
	CU_ASSERT_TRUE(commit(8, 1, 5));
	CU_ASSERT_STRING_EQUAL(now(), "kbatchsync:5");
	CU_ASSERT_STRING_EQUAL(because(), "loss 64 -> 1, 5 live workers");
	CU_ASSERT_TRUE(commit(5, 1, 7));
	CU_ASSERT_STRING_EQUAL(now(), "kbatchsync:7");
	CU_ASSERT_FALSE(commit(5, 1, 0)); /* the last one has left */
	CU_ASSERT_STRING_EQUAL(now(), "kbatchsync:7");
}

/* ---- losses that say nothing ---- */

static void without_losses_k_stays_and_says_so(void)
{
	begin("adasync:ksync,paper");
	CU_ASSERT_FALSE(mst_controller_is_stuck(&policy.controller));
	CU_ASSERT_FALSE(commit(100, (double)NAN, WORKERS));
	CU_ASSERT_STRING_EQUAL(now(), "ksync:1");
	CU_ASSERT_STRING_EQUAL(because(), "the last 100 gradients told no loss");
	CU_ASSERT_TRUE(mst_controller_is_stuck(&policy.controller));
	commit(100, 2, WORKERS); /* from here on they tell */
	CU_ASSERT_FALSE(mst_controller_is_stuck(&policy.controller));
	CU_ASSERT_TRUE(commit(100, 0.02, WORKERS));
	CU_ASSERT_STRING_EQUAL(now(), "ksync:6");
	CU_ASSERT_FALSE(commit(100, (double)NAN, WORKERS));
	CU_ASSERT_STRING_EQUAL(now(), "ksync:6");
}

static void those_who_tell_no_loss_are_left_out_of_the_mean(void)
{
	begin("adasync:kbatchsync");
	commit(50, 4, WORKERS);
	commit(50, (double)NAN, WORKERS);
	CU_ASSERT_STRING_EQUAL(because(), "loss 4 -> 4, 8 live workers");
}

static void a_loss_below_zero_has_no_ratio(void)
{
	begin("adasync:ksync,paper");
	commit(100, -1, WORKERS);
	CU_ASSERT_TRUE(mst_controller_is_stuck(&policy.controller));
	CU_ASSERT_STRING_EQUAL(because(), "a loss of -1, of which there is no ratio");
	commit(100, 1, WORKERS);
	CU_ASSERT_FALSE(mst_controller_is_stuck(&policy.controller));
	CU_ASSERT_TRUE(commit(100, 0, WORKERS)); /* nothing is left to lose */
	CU_ASSERT_STRING_EQUAL(now(), "ksync:8");
	CU_ASSERT_FALSE(commit(100, -2, WORKERS));
	CU_ASSERT_STRING_EQUAL(now(), "ksync:8");
}

/* ---- losses at the ends of the range ---- */

static void all_figures_are_finite(void)
{
	struct mst_controller_figure figure[MST_CONTROLLER_FIGURES];
	uint32_t count = mst_controller_keep(&policy.controller, figure);
	struct mst_policy before = policy;

	for (uint32_t i = 0; i < count; i++)
		CU_ASSERT(isfinite(figure[i].value));
	CU_ASSERT_TRUE(mst_controller_resume(&before.controller, figure, &before.rule));
	CU_ASSERT(policy.rule.quorum >= 1 && policy.rule.quorum <= (int32_t)WORKERS);
}

/* As large as a finite loss can be, in gradients of as many samples as there may be. */
static void commit_extreme(double loss)
{
	struct mst_commit_view view = {
		.gradients = 10, .live = WORKERS, .loss = loss, .loss_samples = 10 * MST_WEIGHT_MAX
	};

	mst_controller_decide(&policy.controller, &view, &policy.rule);
	all_figures_are_finite();
}

static void every_finite_loss_leaves_finite_figures(void)
{
	static const double extreme[] = { DBL_MAX, 1e308,   -DBL_MAX, DBL_MIN,
					  5e-324,  -5e-324, 0,        DBL_MAX };

	for (size_t first = 0; first < sizeof(extreme) / sizeof(extreme[0]); first++) {
		begin("adasync:kbatchsync,1,30");
		for (size_t i = 0; i < sizeof(extreme) / sizeof(extreme[0]); i++)
			for (int k = 0; k < 5; k++)
				commit_extreme(extreme[(first + i) % 8]);
	}
	begin("adasync:kbatchsync,1,10,loss=test_loss");
	for (int i = 0; i < 20; i++) {
		report("test_loss", DBL_MAX);
		all_figures_are_finite();
	}
	commit(10, 1, WORKERS);
	all_figures_are_finite();
	CU_ASSERT_STRING_EQUAL(because(), "test_loss 1.8e+308 -> 1.8e+308, 8 live workers");
}

/* Beside such a first mean K would be the number of workers for good. */
static void a_damaged_batch_at_the_beginning_is_forgotten(void)
{
	begin("adasync:kbatchsync");
	commit(1, 1e308, WORKERS);
	commit(99, 4, WORKERS);
	CU_ASSERT_STRING_EQUAL(now(), "kbatchsync:1");
	CU_ASSERT_FALSE(commit(100, 4, WORKERS));
	CU_ASSERT_STRING_EQUAL(because(), "loss 4 -> 4, 8 live workers");
	CU_ASSERT_TRUE(commit(100, 1, WORKERS));
	CU_ASSERT_STRING_EQUAL(now(), "kbatchsync:2");
}

static void a_damaged_batch_later_on_counts_for_one_interval(void)
{
	begin("adasync:kbatchsync");
	commit(100, 4, WORKERS);
	commit(100, 1, WORKERS);
	CU_ASSERT_STRING_EQUAL(now(), "kbatchsync:2");
	CU_ASSERT_TRUE(commit(100, 1e308, WORKERS));
	CU_ASSERT_STRING_EQUAL(now(), "kbatchsync:1");
	CU_ASSERT_TRUE(commit(100, 1, WORKERS));
	CU_ASSERT_STRING_EQUAL(now(), "kbatchsync:2");
}

/* Sane losses come back, after however many intervals, and whichever comes first in one. */
static void damaged_batches_leave_no_interval_stuck(void)
{
	for (int damaged = 1; damaged < 5; damaged++) {
		begin("adasync:kbatchsync");
		for (int i = 0; i < damaged; i++)
			commit(100, i % 2 == 0 ? 1e308 : 7e307, WORKERS);
		commit(100, 4, WORKERS);
		CU_ASSERT_STRING_EQUAL(because(), "loss 4 -> 4, 8 live workers");
		CU_ASSERT_TRUE(commit(100, 1, WORKERS));
		CU_ASSERT_STRING_EQUAL(now(), "kbatchsync:2");
	}
	for (int first = 0; first < 3; first++) {
		begin("adasync:kbatchsync,1,3");
		for (int i = 0; i < 3; i++)
			commit(1, i == first ? 1e308 : 4, WORKERS);
		CU_ASSERT_STRING_EQUAL(because(), "loss 4 -> 4, 8 live workers");
	}
}

/* ---- ksync by the measured times ---- */

/* Steps that wait for all, in which the k-th gradient arrives after such a time. */
static void steps(const double *after_s, int count)
{
	for (; count > 0; count--) {
		for (uint32_t k = 1; k <= WORKERS; k++) {
			struct mst_arrival arrival = { WORKERS, k, after_s[k - 1] };
			mst_controller_arrived(&policy.controller, &arrival, WORKERS);
		}
		commit(WORKERS, (double)NAN, WORKERS);
	}
}

static const double even[] = { 20, 20, 20, 20, 20, 20, 20, 20 };
static const double one_slow[] = { 20, 20, 20, 20, 20, 20, 20, 200 };
/* The mean times of the k-th of eight exponential times. */
static const double exponential[] = { 0.125, 0.268, 0.435, 0.635, 0.885, 1.218, 1.718, 2.718 };

/* The same with as much that is constant: six of eight are the most gradients a second. */
static const double shifted[] = { 1.125, 1.268, 1.435, 1.635, 1.885, 2.218, 2.718, 3.718 };

static void k_starts_where_the_times_say(void)
{
	begin("adasync:ksync");
	CU_ASSERT_EQUAL(policy.rule.quorum, 0); /* the first steps wait for all */
	CU_ASSERT_STRING_EQUAL(now(), "bsp");
	steps(even, 4);
	CU_ASSERT_STRING_EQUAL(now(), "ksync:8");
	begin("adasync:ksync");
	steps(one_slow, 3);
	CU_ASSERT_STRING_EQUAL(now(), "ksync:8");
	steps(one_slow, 1);
	CU_ASSERT_STRING_EQUAL(now(), "ksync:7");
	begin("adasync:ksync");
	steps(exponential, 4);
	CU_ASSERT_STRING_EQUAL(now(), "ksync:1");
	begin("adasync:ksync");
	steps(shifted, 4);
	CU_ASSERT_STRING_EQUAL(now(), "ksync:6");
	begin("adasync:ksync,3");
	steps(exponential, 4);
	CU_ASSERT_STRING_EQUAL(now(), "ksync:3");
}

/* For such times whole numbers are those of the paper's rule, or next to them. */
static void of_exponential_times_k_is_near_the_paper_s(void)
{
	struct mst_arrival_times t = { 0 };

	for (uint32_t k = 1; k <= WORKERS; k++) {
		const struct mst_arrival arrival = { WORKERS, k, exponential[k - 1] };
		mst_arrival_times_add(&t, WORKERS, &arrival);
	}
	for (size_t i = 0; i < RATIOS; i++) {
		struct mst_adasync_at at = { false, 1, WORKERS, ratios[i] };
		double k = mst_arrival_times_k(&t, WORKERS, WORKERS, 1, ratios[i]);
		CU_ASSERT(fabs(k - mst_adasync_k(&at)) < 1.01);
	}
}

static void measured_k_grows_as_the_loss_falls_but_for_a_slow_one_late(void)
{
	begin("adasync:ksync");
	steps(exponential, 4);
	commit(100, 8, WORKERS);
	CU_ASSERT_STRING_EQUAL(now(), "ksync:1");
	commit(100, 0.4, WORKERS);
	CU_ASSERT_STRING_EQUAL(now(), "ksync:4");
	begin("adasync:ksync");
	steps(one_slow, 4);
	commit(100, 8, WORKERS);
	commit(100, 0.4, WORKERS);
	CU_ASSERT_STRING_EQUAL(now(), "ksync:7");
	commit(100, 0.01, WORKERS);
	CU_ASSERT_STRING_EQUAL(now(), "ksync:8");
}

static void now_and_then_a_step_waits_for_all(void)
{
	uint32_t count = 0;

	begin("adasync:ksync");
	steps(one_slow, 4);
	for (; count < 10000 && policy.rule.quorum == 7; count++) {
		for (uint32_t k = 1; k <= 7; k++) {
			struct mst_arrival arrival = { 7, k, 20 };
			mst_controller_arrived(&policy.controller, &arrival, WORKERS);
		}
		commit(7, (double)NAN, WORKERS);
	}
	CU_ASSERT_EQUAL(policy.rule.quorum, 8);
	CU_ASSERT(count * 20 >= 50 * 200); /* for a fiftieth of the time */
	steps(one_slow, 1);
	CU_ASSERT_STRING_EQUAL(now(), "ksync:7");
	/* The slow one is as fast as the others again. */
	begin("adasync:ksync");
	steps(one_slow, 4);
	policy.controller.adasync.looks = 1;
	steps(even, 5);
	CU_ASSERT_STRING_EQUAL(now(), "ksync:8");
}

static void a_job_that_goes_on_measures_anew(void)
{
	struct mst_controller_figure figure[MST_CONTROLLER_FIGURES];

	begin("adasync:ksync");
	steps(one_slow, 4);
	mst_controller_keep(&policy.controller, figure);
	begin("adasync:ksync");
	CU_ASSERT_TRUE(mst_controller_resume(&policy.controller, figure, &policy.rule));
	CU_ASSERT_EQUAL(policy.rule.quorum, 0);
	steps(even, 4);
	CU_ASSERT_STRING_EQUAL(now(), "ksync:8");
}

/* ---- reading and checking ---- */

static bool refused(const char *text, const char *says)
{
	struct mst_policy p = { .rule = { .divide = true } };

	why.text[0] = '\0';
	return mst_policy_parse(text, &p, &why) == -EINVAL && strstr(why.text, says) != NULL;
}

static void what_it_cannot_read_it_refuses(void)
{
	static const char *const bad[] = {
		"adasync",
		"adasync:",
		"adasync:bsp",
		"adasync:ksync:3",
		"adasync:ksync,",
		"adasync:ksync,0",
		"adasync:ksync,-1",
		"adasync:ksync,1,0",
		"adasync:ksync,x",
		"adasync:ksync,1,2,",
		"adasync:ksync,papers",
		"adasync:ksync,paper,1",
		"adasync:KSYNC",
		"adasync:ksync,1.5",
		"adasync:ksync,loss=",
		"adasync:ksync,loss=a\n",
		"adasync:ksync,1,2,3,loss=a",
		"adasync:ksync,1,,loss=a",
		"adasync:ksync,lose=a",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_TRUE(refused(bad[i], "as in adasync:ksync,1,100"));
	begin("adasync:ksync,2,loss=a, b,1");
	CU_ASSERT_STRING_EQUAL(mst_controller_metric(&policy.controller), "a, b,1");
	CU_ASSERT_TRUE(refused("adasink:ksync", "downpour adasync syncswitch"));
}

static void a_start_above_the_workers_is_refused(void)
{
	struct mst_rule_context ctx = { .owner = MUSTER_SERVERS_OWN, .workers = 4, .slots = 2 };

	begin("adasync:kbatchasync,4");
	CU_ASSERT_EQUAL(mst_policy_check(&policy, &ctx, &why), 0);
	begin("adasync:kbatchasync,5");
	CU_ASSERT_EQUAL(mst_policy_check(&policy, &ctx, &why), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "K starts at 5"));
}

/* kbatchasync:1 does with one slot, and kbatchasync:2 does not. */
static void the_slots_are_those_of_the_largest_k(void)
{
	struct mst_rule_context ctx = { .owner = MUSTER_SERVERS_OWN, .workers = 4, .slots = 1 };

	begin("adasync:kbatchasync");
	CU_ASSERT_EQUAL(mst_rule_slots(&policy.rule), 1);
	CU_ASSERT_EQUAL(mst_policy_slots(&policy, 4), 2);
	CU_ASSERT_EQUAL(mst_policy_check(&policy, &ctx, &why), -EINVAL);
	begin("adasync:ksync,paper");
	CU_ASSERT_EQUAL(mst_policy_slots(&policy, 4), 1);
	CU_ASSERT_EQUAL(mst_policy_check(&policy, &ctx, &why), 0);
}

static void workers_may_own_where_every_k_lets_them(void)
{
	struct mst_rule_context ctx = { .owner = MUSTER_WORKERS_OWN, .workers = 4, .slots = 2 };
	struct mst_rule from = policy.rule;

	begin("adasync:ksync,paper");
	CU_ASSERT_EQUAL(mst_policy_switch_check(&from, &policy, &ctx, &why), 0);
	begin("adasync:kbatchsync");
	CU_ASSERT_EQUAL(mst_policy_switch_check(&from, &policy, &ctx, &why), -EINVAL);
}

/* It has chosen K twice, and is in the middle of an interval. The other one decides as it does. */
static void from_a_checkpoint_it_goes_on_where_it_was(void)
{
	struct mst_controller_figure figure[MST_CONTROLLER_FIGURES];
	const char *text = "adasync:kbatchsync,1,4";

	begin(text);
	commit(4, 4, WORKERS);
	commit(4, 1, WORKERS);
	commit(2, 0.25, WORKERS);
	struct mst_policy before = policy;
	uint32_t count = mst_controller_keep(&policy.controller, figure);
	CU_ASSERT(count > 0 && count <= MST_CONTROLLER_FIGURES);
	begin(text);
	CU_ASSERT_TRUE(mst_controller_resume(&policy.controller, figure, &policy.rule));
	CU_ASSERT_EQUAL(policy.rule.quorum, before.rule.quorum);
	CU_ASSERT_EQUAL(policy.rule.quorum, 2);
	CU_ASSERT_TRUE(commit(2, 0.25, WORKERS)); /* the mean of both halves of the interval */
	CU_ASSERT_EQUAL(policy.rule.quorum, 4);
	CU_ASSERT_STRING_EQUAL(because(), "loss 4 -> 0.25, 8 live workers");
}

static void figures_that_it_cannot_have_are_refused(void)
{
	static const double wrong[] = { -1, 0, 0.5, 1e18, (double)NAN, (double)INFINITY };
	struct mst_controller_figure figure[MST_CONTROLLER_FIGURES];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		begin("adasync:ksync,paper");
		struct mst_rule rule = policy.rule;
		(void)mst_controller_keep(&policy.controller, figure);
		figure[0].value = wrong[i];
		CU_ASSERT_FALSE(mst_controller_resume(&policy.controller, figure, &policy.rule));
		CU_ASSERT_EQUAL(policy.rule.quorum, rule.quorum);
	}
}

static CU_TestInfo cases[] = {
	{ "from a checkpoint it goes on where it was", from_a_checkpoint_it_goes_on_where_it_was },
	{ "figures that it cannot have are refused", figures_that_it_cannot_have_are_refused },
	{ "where steps take time in proportion k is the root of the ratio",
	  where_steps_take_time_in_proportion_k_is_the_root_of_the_ratio },
	{ "of distinct workers k is the root of the quadratic",
	  of_distinct_workers_k_is_the_root_of_the_quadratic },
	{ "k is from one to the workers for every ratio",
	  k_is_from_one_to_the_workers_for_every_ratio },
	{ "each form follows its rule", each_form_follows_its_rule },
	{ "k changes only where an interval ends", k_changes_only_where_an_interval_ends },
	{ "the loss is the mean over the samples of the interval",
	  the_loss_is_the_mean_over_the_samples_of_the_interval },
	{ "k starts where the user says", k_starts_where_the_user_says },
	{ "a reported loss stands in place of that of the gradients",
	  a_reported_loss_stands_in_place_of_that_of_the_gradients },
	{ "an interval goes on until something is reported",
	  an_interval_goes_on_until_something_is_reported },
	{ "reports concern only who asks for them", reports_concern_only_who_asks_for_them },
	{ "a checkpoint keeps what was reported", a_checkpoint_keeps_what_was_reported },
	{ "noise of the loss does not lower k", noise_of_the_loss_does_not_lower_k },
	{ "a loss that rises lowers k", a_loss_that_rises_lowers_k },
	{ "k is at most the live workers and comes back with them",
	  k_is_at_most_the_live_workers_and_comes_back_with_them },
	{ "without losses k stays and says so", without_losses_k_stays_and_says_so },
	{ "those who tell no loss are left out of the mean",
	  those_who_tell_no_loss_are_left_out_of_the_mean },
	{ "a loss below zero has no ratio", a_loss_below_zero_has_no_ratio },
	{ "every finite loss leaves finite figures", every_finite_loss_leaves_finite_figures },
	{ "a damaged batch at the beginning is forgotten",
	  a_damaged_batch_at_the_beginning_is_forgotten },
	{ "a damaged batch later on counts for one interval",
	  a_damaged_batch_later_on_counts_for_one_interval },
	{ "what it cannot read it refuses", what_it_cannot_read_it_refuses },
	{ "a start above the workers is refused", a_start_above_the_workers_is_refused },
	{ "the slots are those of the largest k", the_slots_are_those_of_the_largest_k },
	{ "workers may own where every k lets them", workers_may_own_where_every_k_lets_them },
	{ "damaged batches leave no interval stuck", damaged_batches_leave_no_interval_stuck },
	{ "K starts where the times say", k_starts_where_the_times_say },
	{ "of exponential times K is near the paper's",
	  of_exponential_times_k_is_near_the_paper_s },
	{ "measured K grows as the loss falls, but for a slow one late",
	  measured_k_grows_as_the_loss_falls_but_for_a_slow_one_late },
	{ "now and then a step waits for all", now_and_then_a_step_waits_for_all },
	{ "a job that goes on measures anew", a_job_that_goes_on_measures_anew },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("controller_adasync", cases);
}
