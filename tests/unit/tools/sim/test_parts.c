/* SPDX-License-Identifier: MIT */
/* A simulated worker that contributes parts of batches, steps on parameters of its own, or takes a
 * nap. A batch takes 20 ms, and has four micro-batches. */
#include "common/base/clock.h"
#include "common/delay/delay.h"
#include "tests/ut.h"
#include "tools/sim/worker.h"

#define ASKS (MST_HEADER_ASK | MST_HEADER_FULL)

static struct mst_sim_worker w;
static struct mst_sim_act act;
static const struct mst_sim_orders plain = { .until_asked = false };
static const struct mst_sim_orders until_asked = { .until_asked = true };
static const struct mst_sim_orders by_micro = { .by_micro = true };

static void tell(struct mst_decision d, uint64_t now_ms)
{
	d.who = w.who;
	mst_sim_worker_told(&w, &d, now_ms * MST_MS, &act);
}

static void answer(uint64_t version, struct mst_sim_orders orders, uint64_t now_ms)
{
	w.next = orders;
	tell((struct mst_decision){ .kind = MST_DO_RELEASE,
				    .answer = { .number = w.asks, .version = version } },
	     now_ms);
}

static void ask(uint64_t version, bool hand_in, uint64_t now_ms)
{
	tell((struct mst_decision){ .kind = MST_DO_ADVISE, .advice = { version, hand_in } },
	     now_ms);
}

static void grant(void)
{
	mst_sim_worker_granted(&w, w.epoch + 1, &act);
}

/* The next thing that the worker does by itself must be at this time. */
static void wake(uint64_t at_ms)
{
	CU_ASSERT_EQUAL(w.wake_ns, at_ms * MST_MS);
	mst_sim_worker_wake(&w, w.wake_ns, &act);
}

static void begin(struct mst_sim_orders orders)
{
	static const char *const spec = "const:20";
	struct mst_delay_options delay = { .spec = &spec, .spec_count = 1 };
	struct mst_reason why;

	w = (struct mst_sim_worker){ .servers = 1, .samples = 1, .batch = { .micro = 4 } };
	CU_ASSERT_FATAL(mst_delay_new(&delay, &w.delay, &why) == 0);
	mst_sim_worker_join(&w, &act);
	w.who.incarnation = 1;
	mst_sim_worker_told(&w, &(struct mst_decision){ .kind = MST_DO_ADMIT, .who = { 0, 1 } }, 0,
			    &act);
	answer(0, orders, 100);
}

static void end(void)
{
	mst_delay_free(w.delay);
}

/* It has pushed so many batches, with these flags and on this version. */
static void pushes(double weight, uint32_t flags, uint64_t tag)
{
	const struct mst_lane_header *h = &act.event.full.header;

	CU_ASSERT_FATAL(act.sends && act.event.kind == MST_EV_FULL);
	CU_ASSERT(h->weight == weight && h->flags == flags && h->tag == tag);
	CU_ASSERT_EQUAL(act.pushed_ns, (uint64_t)(weight * 20 * (double)MST_MS));
}

static void asks(void)
{
	CU_ASSERT(act.sends && act.event.kind == MST_EV_ASK);
	CU_ASSERT_EQUAL(act.event.ask.number, w.asks);
}

static void who_is_asked_hands_in_and_goes_on_with_the_rest(void)
{
	begin(plain);
	ask(0, true, 107);
	wake(110);
	pushes(0.5, MST_HEADER_ASK, 0);
	grant();
	answer(1, plain, 130);
	CU_ASSERT_FALSE(act.sends);
	ask(1, true, 135); /* exactly at a bound */
	wake(135);
	pushes(0.25, MST_HEADER_ASK, 1);
	grant();
	answer(2, plain, 200);
	wake(205);
	pushes(0.25, ASKS, 2);
	grant();
	answer(3, plain, 300);
	wake(320);
	pushes(1, ASKS, 3);
	end();
}

static void a_whole_batch_is_full_also_if_it_is_asked_for(void)
{
	begin(plain);
	ask(0, true, 116);
	wake(120);
	pushes(1, ASKS, 0);
	end();
}

/* The hint is there before the version that it is about. */
static void who_has_nothing_passes(void)
{
	begin(plain);
	ask(0, true, 106);
	wake(110);
	ask(1, true, 112);
	grant();
	answer(1, plain, 130);
	wake(130);
	pushes(0, MST_HEADER_ASK | MST_HEADER_PASS, 1);
	grant();
	answer(2, plain, 140);
	wake(150);
	pushes(0.5, ASKS, 2);
	end();
}

static void what_is_taken_back_is_not_handed_in(void)
{
	begin(plain);
	ask(0, true, 107);
	ask(0, false, 108);
	wake(120);
	pushes(1, ASKS, 0);
	end();
}

static void a_hint_about_an_older_version_asks_for_nothing(void)
{
	begin(plain);
	wake(120);
	grant();
	answer(1, plain, 120);
	ask(0, true, 125);
	wake(140);
	pushes(1, ASKS, 1);
	end();
}

static void until_it_is_asked_a_contribution_grows_over_batches(void)
{
	begin(until_asked);
	wake(120);
	CU_ASSERT_FALSE(act.sends);
	wake(140);
	ask(0, true, 141);
	wake(145);
	pushes(2.25, MST_HEADER_ASK, 0);
	grant();
	answer(1, plain, 150);
	wake(165);
	pushes(0.75, ASKS, 1);
	end();
}

static void every_micro_batch_is_handed_over(void)
{
	begin(by_micro);
	for (uint64_t i = 1; i < 4; i++) {
		wake(100 + 5 * i);
		pushes(0.25, MST_HEADER_ASK | MST_HEADER_PART, 0);
		grant();
		answer(0, by_micro, 100 + 5 * i);
	}
	wake(120);
	pushes(0.25, ASKS, 0);
	grant();
	answer(1, plain, 120);
	wake(140);
	pushes(1, ASKS, 1);
	end();
}

static void all_of_a_contribution_is_given_up(void)
{
	begin(until_asked);
	w.checks = MST_SIM_AT_ONCE;
	wake(120);
	ask(1, false, 127);
	wake(127);
	CU_ASSERT(act.gave_up && act.given_up_ns == 27 * MST_MS);
	asks();
	answer(1, plain, 130);
	wake(150);
	pushes(1, ASKS, 1);
	end();
}

static void local_steps_are_pushed_together(void)
{
	static const struct mst_sim_orders local = { .pace = { .local_steps = 3 } };

	begin(local);
	wake(120);
	wake(140);
	CU_ASSERT_FALSE(act.sends);
	wake(160);
	pushes(3, ASKS, 0);
	grant();
	answer(1, plain, 200);
	wake(220);
	pushes(1, ASKS, 1);
	end();
}

static void elastic_averaging_pulls_and_then_pushes_without_waiting(void)
{
	static const struct mst_sim_orders easgd = { .pace = { .local_steps = 2, .alpha = 0.5 } };

	begin(easgd);
	wake(120);
	wake(140);
	asks();
	answer(7, easgd, 150);
	pushes(2, MST_HEADER_FULL, 7);
	wake(170);
	wake(190); /* the push has not been judged yet: the ask is read after it */
	CU_ASSERT(!act.sends && w.state == MST_SIM_WAITING);
	grant();
	CU_ASSERT_TRUE(act.arrives);
	asks();
	answer(8, plain, 200); /* the rule has changed: these steps are differences */
	CU_ASSERT(act.gave_up && act.given_up_ns == 40 * MST_MS);
	wake(220);
	pushes(1, ASKS, 8);
	end();
}

/* downpour:2,3: in six batches three pushes, and two fetches. */
static void downpour_pushes_and_fetches_at_its_pace(void)
{
	static const struct mst_sim_orders downpour = { .pace = { .push_every = 2,
								  .fetch_every = 3 } };

	begin(downpour);
	wake(120);
	wake(140);
	pushes(2, MST_HEADER_FULL, 0);
	grant();
	CU_ASSERT_FALSE(act.sends);
	wake(160);
	asks();
	answer(5, downpour, 170);
	wake(190);
	pushes(2, MST_HEADER_FULL, 0); /* begun before the fetch */
	grant();
	wake(210);
	wake(230);
	pushes(2, ASKS, 5);
	end();
}

static void without_a_slot_downpour_waits_for_one(void)
{
	static const struct mst_sim_orders downpour = { .pace = { .push_every = 1,
								  .fetch_every = 9 } };

	begin(downpour);
	wake(120);
	pushes(1, MST_HEADER_FULL, 0);
	wake(140);
	CU_ASSERT(!act.sends && w.state == MST_SIM_WAITING);
	grant();
	asks();
	answer(1, downpour, 150);
	pushes(1, MST_HEADER_FULL, 1);
	grant();
	wake(170);
	pushes(1, MST_HEADER_FULL, 1);
	end();
}

static void gradients_that_were_added_up_survive_a_change_of_the_rule(void)
{
	static const struct mst_sim_orders downpour = { .pace = { .push_every = 9,
								  .fetch_every = 2 } };

	begin(downpour);
	wake(120);
	wake(140);
	asks();
	answer(4, plain, 150);
	pushes(2, ASKS, 0);
	grant();
	answer(5, plain, 160);
	wake(180);
	pushes(1, ASKS, 5);
	end();
}

static void a_nap_moves_all_by_its_length(void)
{
	begin(plain);
	mst_sim_worker_nap(&w, 200 * MST_MS, 107 * MST_MS);
	ask(0, true, 150);
	wake(310);
	pushes(0.5, MST_HEADER_ASK, 0);
	grant();
	mst_sim_worker_nap(&w, 200 * MST_MS, 320 * MST_MS);
	answer(1, plain, 330);
	wake(530);
	pushes(0.5, ASKS, 1);
	CU_ASSERT_EQUAL(mst_sim_worker_stop(&w, 530 * MST_MS), 0);
	end();
}

/* What it had computed before the nap. */
static void who_dies_in_a_nap_has_computed_until_it(void)
{
	begin(plain);
	mst_sim_worker_nap(&w, 200 * MST_MS, 107 * MST_MS);
	CU_ASSERT_EQUAL(mst_sim_worker_stop(&w, 150 * MST_MS), 7 * MST_MS);
	end();
}

static CU_TestInfo cases[] = {
	{ "who is asked hands in and goes on with the rest",
	  who_is_asked_hands_in_and_goes_on_with_the_rest },
	{ "a whole batch is full also if it is asked for",
	  a_whole_batch_is_full_also_if_it_is_asked_for },
	{ "who has nothing passes", who_has_nothing_passes },
	{ "what is taken back is not handed in", what_is_taken_back_is_not_handed_in },
	{ "a hint about an older version asks for nothing",
	  a_hint_about_an_older_version_asks_for_nothing },
	{ "until it is asked a contribution grows over batches",
	  until_it_is_asked_a_contribution_grows_over_batches },
	{ "every micro-batch is handed over", every_micro_batch_is_handed_over },
	{ "all of a contribution is given up", all_of_a_contribution_is_given_up },
	{ "local steps are pushed together", local_steps_are_pushed_together },
	{ "elastic averaging pulls and then pushes without waiting",
	  elastic_averaging_pulls_and_then_pushes_without_waiting },
	{ "downpour pushes and fetches at its pace", downpour_pushes_and_fetches_at_its_pace },
	{ "without a slot downpour waits for one", without_a_slot_downpour_waits_for_one },
	{ "gradients that were added up survive a change of the rule",
	  gradients_that_were_added_up_survive_a_change_of_the_rule },
	{ "a nap moves all by its length", a_nap_moves_all_by_its_length },
	{ "who dies in a nap has computed until it", who_dies_in_a_nap_has_computed_until_it },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("sim_parts", cases);
}
