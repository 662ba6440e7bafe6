/* SPDX-License-Identifier: MIT */
/* Dynamic backup workers with statistics that are made up: which quorum follows from which norms,
 * losses and times. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "common/base/reason.h"
#include "server/core/policy/policy.h"
#include "tests/ut.h"

#define WORKERS 8u
#define RATE 0.1
#define SMOOTH 2.0 /* L */

static struct mst_reason why;

/* ---- a policy, and its commits ---- */

static struct mst_policy policy;

/* The world: the squared norm of the gradient, the variance of one, and when the k-th comes. */
static struct {
	double square, variance, loss;
	double last_square; /* of the step before */
	uint32_t last;      /* gradients in it */
	double after_s[WORKERS];
	uint32_t live;
	bool told, linear;
} world;

static void begin(const char *text)
{
	policy = (struct mst_policy){ .rule = { .divide = true, .min_workers = 1 } };
	CU_ASSERT_EQUAL_FATAL(mst_policy_parse(text, &policy, &why), 0);
	world.square = world.last_square = 1;
	world.variance = 1;
	world.last = WORKERS;
	world.loss = 100;
	world.live = WORKERS;
	world.told = true;
	world.linear = false;
	for (uint32_t k = 0; k < WORKERS; k++)
		world.after_s[k] = 1;
}

static uint32_t quorum(void)
{
	uint32_t k = policy.rule.quorum > 0 ? (uint32_t)policy.rule.quorum : WORKERS;

	return k < world.live ? k : world.live;
}

/* A step: everybody's gradient arrives in the end, and the loss falls by what the bound says. */
static bool commit(void)
{
	uint32_t k = quorum();
	double curve = SMOOTH * RATE * RATE / 2;
	struct mst_commit_view view = {
		.gradients = k,
		.live = world.live,
		.workers = WORKERS,
		.loss = world.loss,
		.loss_samples = isnan(world.loss) ? 0 : k,
		.rate = RATE,
		.linear = world.linear,
		.norms = { .known = world.told,
			   .mean_square = world.last_square + world.variance / world.last,
			   .square = world.last_square + world.variance,
			   .concentration = 1.0 / world.last,
			   .factor = 1 },
	};

	for (uint32_t number = 1; number <= world.live; number++)
		mst_controller_arrived(
			&policy.controller,
			&(struct mst_arrival){ world.last, number, world.after_s[number - 1] },
			WORKERS);
	world.last = k;
	world.last_square = world.square;
	world.loss -= (RATE - curve) * world.square - curve * world.variance / k;
	return mst_controller_decide(&policy.controller, &view, &policy.rule);
}

static void run(int steps)
{
	for (int i = 0; i < steps; i++)
		commit();
}

static const char *because(void)
{
	static char text[128];

	mst_controller_why(&policy.controller, &policy.rule, text, sizeof(text));
	return text;
}

static const char *now(void)
{
	static char text[64];

	mst_controller_now(&policy.controller, &policy.rule, text, sizeof(text));
	return text;
}

/* ---- which quorum ---- */

/* Times of an exponential: the k-th of eight comes after 1/8 + 1/7 + ... */
static void heavy_tails(void)
{
	double after_s = 0;

	for (uint32_t k = 0; k < WORKERS; k++)
		world.after_s[k] = after_s += 1.0 / (WORKERS - k);
}

static void after_one_step_of_all_it_goes_by_times_until_it_knows_the_gain(void)
{
	begin("dbw");
	world.after_s[WORKERS - 1] = 100;
	CU_ASSERT_STRING_EQUAL(now(), "bsp");
	CU_ASSERT_STRING_EQUAL(because(), "until a step has told times");
	CU_ASSERT_TRUE(commit());
	for (int i = 0; i < 4; i++) {
		CU_ASSERT_STRING_EQUAL(now(), "backup:7");
		CU_ASSERT_STRING_EQUAL(because(),
				       "by times alone, until 5 steps have told the gain");
		CU_ASSERT_FALSE(commit());
	}
	CU_ASSERT_STRING_EQUAL(now(), "backup:7");
	CU_ASSERT_STRING_EQUAL(because(), "gradient 1, deviation 1, L 2, 8 live workers");
}

/* One gradient tells no variance, so with a quorum of 1 the gain would never be known. */
static void by_times_alone_it_is_half_of_the_workers_or_more(void)
{
	begin("dbw:1");
	heavy_tails();
	world.variance = 0;
	for (int i = 0; i < 4; i++) {
		commit();
		CU_ASSERT_EQUAL(quorum(), WORKERS / 2);
	}
	commit();
	CU_ASSERT_EQUAL(quorum(), 1);
}

/* Each fall of the loss is put beside the N of the same step. Means of both that lag differently
 * would give another L as long as N falls. */
static void the_curvature_is_right_while_the_gradient_shrinks(void)
{
	begin("dbw");
	for (int i = 0; i < 40; i++) {
		commit();
		world.square *= 0.9;
		CU_ASSERT(!mst_quorum_gain_known(&policy.controller.dbw.gain) ||
			  fabs(mst_quorum_gain_lipschitz(&policy.controller.dbw.gain) - SMOOTH) <
				  0.01 * SMOOTH);
	}
	CU_ASSERT_TRUE(mst_quorum_gain_known(&policy.controller.dbw.gain));
}

/* Without a bound L was still 0 after a thousand steps. */
static void one_wild_loss_does_not_spoil_the_curvature(void)
{
	begin("dbw");
	run(100);
	world.loss += 1e6;
	commit();
	world.loss -= 1e6;
	run(20);
	CU_ASSERT_DOUBLE_EQUAL(mst_quorum_gain_lipschitz(&policy.controller.dbw.gain), SMOOTH,
			       0.1 * SMOOTH);
}

static void where_all_take_the_same_time_it_waits_for_all(void)
{
	begin("dbw:1");
	run(50);
	CU_ASSERT_EQUAL(quorum(), WORKERS);
	world.variance = 0; /* then no quorum gains more than another, and none is shorter */
	run(50);
	CU_ASSERT_EQUAL(quorum(), WORKERS);
}

static void slow_workers_become_backups_and_come_back(void)
{
	begin("dbw");
	world.after_s[6] = world.after_s[7] = 5;
	run(20);
	CU_ASSERT_EQUAL(quorum(), 6);
	world.after_s[6] = world.after_s[7] = 1;
	run(150);
	CU_ASSERT_EQUAL(quorum(), WORKERS);
}

static uint32_t quorum_with(double variance)
{
	begin("dbw:1");
	heavy_tails();
	world.variance = variance;
	run(60);
	return quorum();
}

static void the_more_variance_the_larger_the_quorum(void)
{
	uint32_t before = 0;

	for (double variance = 0.25; variance < 100; variance *= 4) {
		uint32_t k = quorum_with(variance);
		CU_ASSERT(k >= before && k >= 1 && k <= WORKERS);
		before = k;
	}
	CU_ASSERT_EQUAL(quorum_with(0), 1);
	CU_ASSERT(quorum_with(0.25) < quorum_with(64));
}

/* The figure by hand: with V = 16, G(k) = 0.09 - 0.16 / k, over the times of heavy_tails(). */
static void the_quorum_has_the_most_gain_per_second(void)
{
	double most = 0, after_s = 0;
	uint32_t best = 0;

	for (uint32_t k = 1; k <= WORKERS; k++) {
		after_s += 1.0 / (WORKERS + 1 - k);
		double gain = (0.09 - 0.16 / k) / after_s;
		best = gain > most ? k : best;
		most = fmax(gain, most);
	}
	CU_ASSERT_EQUAL(quorum_with(16), best);
}

/* The rate is in proportion to the gradients: two short steps of four are as good as one of eight
 * that takes twice as long, and better than one that takes longer. */
static void where_the_rate_follows_so_does_the_gain(void)
{
	begin("dbw:1");
	world.linear = true;
	world.variance = 0.01;
	for (uint32_t k = 0; k < WORKERS; k++)
		world.after_s[k] = k < 4 ? 1 : 1.5;
	run(6);
	CU_ASSERT_EQUAL(quorum(), 8);
	begin("dbw:1");
	world.linear = true;
	world.variance = 0.01;
	for (uint32_t k = 0; k < WORKERS; k++)
		world.after_s[k] = k < 4 ? 1 : 4;
	run(6);
	CU_ASSERT_EQUAL(quorum(), 4);
}

/* ---- bounds ---- */

static void it_is_at_least_what_the_user_says(void)
{
	begin("dbw");
	heavy_tails();
	world.variance = 0;
	run(20);
	CU_ASSERT_EQUAL(quorum(), 4);
	begin("dbw:3");
	heavy_tails();
	world.variance = 0;
	run(20);
	CU_ASSERT_EQUAL(quorum(), 3);
}

static void it_is_never_more_than_the_live_workers(void)
{
	begin("dbw:1");
	run(10);
	world.live = 3;
	for (int i = 0; i < 20; i++) {
		commit();
		CU_ASSERT(policy.rule.quorum >= 1 && policy.rule.quorum <= 3);
	}
	world.live = WORKERS;
	run(60);
	CU_ASSERT_EQUAL(quorum(), WORKERS);
}

static void a_loss_that_rises_raises_the_quorum(void)
{
	begin("dbw:1");
	heavy_tails();
	world.variance = 0;
	run(10);
	CU_ASSERT_EQUAL(quorum(), 1);
	world.loss *= 2;
	run(4); /* a single one may be noise */
	CU_ASSERT(quorum() > 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(because(), "the loss has risen to 1"));
}

static void where_nothing_gains_it_waits_for_all(void)
{
	begin("dbw:1");
	heavy_tails();
	world.square = world.last_square = 0;
	world.variance = 1;
	run(20);
	CU_ASSERT_EQUAL(quorum(), WORKERS);
	CU_ASSERT_STRING_EQUAL(because(), "no quorum is sure to gain");
}

/* Noise has hidden the gradient. */
static void where_nothing_gains_any_more_it_waits_for_one_more(void)
{
	begin("dbw:1");
	heavy_tails();
	world.variance = 0;
	run(10);
	CU_ASSERT_EQUAL(quorum(), 1);
	world.square = world.last_square = -1e6;
	for (uint32_t k = 2; k <= WORKERS; k++) {
		world.loss = 100;
		commit();
		CU_ASSERT_EQUAL(quorum(), k);
	}
	commit();
	CU_ASSERT_EQUAL(quorum(), WORKERS);
}

/* ---- what is missing ---- */

static void without_losses_the_quorum_stays_and_says_so(void)
{
	begin("dbw");
	world.after_s[7] = 5;
	run(20);
	CU_ASSERT_EQUAL(quorum(), 7);
	world.after_s[7] = 1;
	world.loss = (double)NAN;
	run(50);
	CU_ASSERT_EQUAL(quorum(), 7);
	CU_ASSERT_TRUE(mst_controller_is_stuck(&policy.controller));
	CU_ASSERT_STRING_EQUAL(because(), "the last gradients told no loss");
	world.loss = 10;
	run(150);
	CU_ASSERT_FALSE(mst_controller_is_stuck(&policy.controller));
	CU_ASSERT_EQUAL(quorum(), WORKERS);
}

static void without_norms_it_waits_for_all_and_says_so(void)
{
	begin("dbw");
	world.after_s[7] = 5;
	world.told = false;
	CU_ASSERT_TRUE(commit()); /* before the first version nobody could tell */
	CU_ASSERT_FALSE(mst_controller_is_stuck(&policy.controller));
	CU_ASSERT_EQUAL(quorum(), 7);
	run(20);
	CU_ASSERT_EQUAL(quorum(), WORKERS);
	CU_ASSERT_TRUE(mst_controller_is_stuck(&policy.controller));
	CU_ASSERT_STRING_EQUAL(because(), "the last gradients told no norms");
}

static void figures_that_are_no_numbers_change_nothing(void)
{
	begin("dbw:1");
	run(10);
	world.square = (double)INFINITY;
	run(10);
	world.square = 1;
	world.loss = 10;
	run(20);
	CU_ASSERT_EQUAL(quorum(), WORKERS);
}

/* Finite, but of no use beside other losses: one at any time counts as one that was not told. */
static void a_loss_at_the_end_of_the_range_is_forgotten(void)
{
	for (int at = 0; at < 30; at += 3) {
		begin("dbw");
		run(at);
		double loss = world.loss;
		world.loss = at % 2 == 0 ? DBL_MAX : -1e308;
		commit();
		world.loss = loss;
		run(200);
		CU_ASSERT_DOUBLE_EQUAL(mst_quorum_gain_lipschitz(&policy.controller.dbw.gain),
				       SMOOTH, 0.1 * SMOOTH);
	}
}

/* ---- reading, and where it suits ---- */

static void what_it_cannot_read_it_refuses(void)
{
	static const char *const bad[] = { "dbw:0", "dbw:-1", "dbw:1.5", "dbw:x", "dbw:1,2" };
	struct mst_policy p = { .rule = { .divide = true } };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT_EQUAL(mst_policy_parse(bad[i], &p, &why), -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "as in dbw:1"));
	}
}

static bool refused(const char *text, const struct mst_rule_context *ctx, const char *says)
{
	begin(text);
	why.text[0] = '\0';
	return mst_policy_check(&policy, ctx, &why) == -EINVAL && strstr(why.text, says) != NULL;
}

static void a_job_that_it_does_not_suit_is_refused(void)
{
	struct mst_rule_context ctx = { .owner = MUSTER_SERVERS_OWN,
					.workers = WORKERS,
					.slots = 1,
					.plain_step = true,
					.norms = true };

	begin("dbw");
	CU_ASSERT_EQUAL(mst_policy_check(&policy, &ctx, &why), 0);
	CU_ASSERT_TRUE(refused("dbw:9", &ctx, "there are 8 workers"));
	CU_ASSERT_TRUE(refused("dbw:3", &ctx, "--force"));
	ctx.norms = false;
	CU_ASSERT_TRUE(refused("dbw", &ctx, "started with --policy dbw"));
	ctx.plain_step = false;
	CU_ASSERT_TRUE(refused("dbw", &ctx, "--optimizer sgd:lr=LR,momentum=0"));
}

/* ---- checkpoints ---- */

static void from_a_checkpoint_it_goes_on_where_it_was(void)
{
	struct mst_controller_figure figure[MST_CONTROLLER_FIGURES];

	begin("dbw");
	world.after_s[7] = 5;
	run(30);
	CU_ASSERT(mst_controller_keep(&policy.controller, figure) <= MST_CONTROLLER_FIGURES);
	double loss = world.loss;
	begin("dbw");
	world.after_s[7] = 5;
	world.loss = loss;
	CU_ASSERT_TRUE(mst_controller_resume(&policy.controller, figure, &policy.rule));
	CU_ASSERT_STRING_EQUAL(now(), "backup:7");
	commit();
	CU_ASSERT_STRING_EQUAL(now(), "backup:7");
	CU_ASSERT_STRING_EQUAL(because(), "gradient 1, deviation 1, L 2, 8 live workers");
}

static void figures_that_it_cannot_have_are_refused(void)
{
	static const double wrong[] = { -1, 0.5, 1e18, (double)NAN, (double)INFINITY };
	struct mst_controller_figure figure[MST_CONTROLLER_FIGURES];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		begin("dbw");
		(void)mst_controller_keep(&policy.controller, figure);
		figure[0].value = wrong[i];
		CU_ASSERT_FALSE(mst_controller_resume(&policy.controller, figure, &policy.rule));
		CU_ASSERT_EQUAL(policy.rule.quorum, 0);
	}
}

static CU_TestInfo cases[] = {
	{ "after one step of all it goes by times until it knows the gain",
	  after_one_step_of_all_it_goes_by_times_until_it_knows_the_gain },
	{ "by times alone it is half of the workers or more",
	  by_times_alone_it_is_half_of_the_workers_or_more },
	{ "one wild loss does not spoil the curvature",
	  one_wild_loss_does_not_spoil_the_curvature },
	{ "the curvature is right while the gradient shrinks",
	  the_curvature_is_right_while_the_gradient_shrinks },
	{ "where all take the same time it waits for all",
	  where_all_take_the_same_time_it_waits_for_all },
	{ "slow workers become backups and come back", slow_workers_become_backups_and_come_back },
	{ "the more variance the larger the quorum", the_more_variance_the_larger_the_quorum },
	{ "the quorum has the most gain per second", the_quorum_has_the_most_gain_per_second },
	{ "where the rate follows so does the gain", where_the_rate_follows_so_does_the_gain },
	{ "it is at least what the user says", it_is_at_least_what_the_user_says },
	{ "it is never more than the live workers", it_is_never_more_than_the_live_workers },
	{ "a loss that rises raises the quorum", a_loss_that_rises_raises_the_quorum },
	{ "where nothing gains it waits for all", where_nothing_gains_it_waits_for_all },
	{ "where nothing gains any more it waits for one more",
	  where_nothing_gains_any_more_it_waits_for_one_more },
	{ "without losses the quorum stays and says so",
	  without_losses_the_quorum_stays_and_says_so },
	{ "without norms it waits for all and says so",
	  without_norms_it_waits_for_all_and_says_so },
	{ "figures that are no numbers change nothing",
	  figures_that_are_no_numbers_change_nothing },
	{ "a loss at the end of the range is forgotten",
	  a_loss_at_the_end_of_the_range_is_forgotten },
	{ "what it cannot read it refuses", what_it_cannot_read_it_refuses },
	{ "a job that it does not suit is refused", a_job_that_it_does_not_suit_is_refused },
	{ "from a checkpoint it goes on where it was", from_a_checkpoint_it_goes_on_where_it_was },
	{ "figures that it cannot have are refused", figures_that_it_cannot_have_are_refused },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("controller_dbw", cases);
}
