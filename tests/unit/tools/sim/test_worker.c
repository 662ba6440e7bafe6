/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "common/base/clock.h"
#include "common/delay/delay.h"
#include "tests/ut.h"
#include "tools/sim/worker.h"

#define RANK 2u
#define GRADIENT_NS (20 * MST_MS)

static struct mst_sim_worker w;
static struct mst_sim_act act;

static void tell(struct mst_decision d, uint64_t now_ns)
{
	if (d.who.incarnation == 0)
		d.who = w.who;
	mst_sim_worker_told(&w, &d, now_ns, &act);
}

static void answer(uint64_t number, uint64_t version, uint64_t now_ns)
{
	tell((struct mst_decision){ .kind = MST_DO_RELEASE,
				    .answer = { .number = number, .version = version } },
	     now_ns);
}

static void advise(uint64_t version, uint64_t now_ns)
{
	tell((struct mst_decision){ .kind = MST_DO_ADVISE, .advice = { version, false } }, now_ns);
}

static void admit(uint32_t incarnation)
{
	tell((struct mst_decision){ .kind = MST_DO_ADMIT, .who = { RANK, incarnation } }, 0);
}

static void open_worker(uint32_t servers, uint32_t checks)
{
	const char *spec = "const:20";
	struct mst_delay_options delay = { .spec = &spec, .spec_count = 1, .rank = RANK };
	struct mst_reason why;

	w = (struct mst_sim_worker){ .who = { .rank = RANK },
				     .servers = servers,
				     .checks = checks,
				     .samples = 1,
				     .batch = { .micro = 4 } };
	CU_ASSERT_FATAL(mst_delay_new(&delay, &w.delay, &why) == 0);
	mst_sim_worker_join(&w, &act);
}

/* A worker that computes on version 5 since 1000 ns. */
static void open_computing(uint32_t checks)
{
	open_worker(1, checks);
	admit(1);
	answer(1, 5, 1000);
}

static void close_worker(void)
{
	mst_delay_free(w.delay);
}

static void it_joins_starts_and_computes(void)
{
	open_worker(1, 0);
	CU_ASSERT(act.sends && act.event.kind == MST_EV_JOIN);
	CU_ASSERT_EQUAL(act.event.join.rank, RANK);
	admit(1);
	CU_ASSERT(act.sends && act.event.kind == MST_EV_START && act.event.offers);
	CU_ASSERT_EQUAL(w.wake_ns, MST_NEVER);
	tell((struct mst_decision){ .kind = MST_DO_SEND_STATE }, 500);
	CU_ASSERT(act.sends && act.event.kind == MST_EV_STATE);
	answer(1, 0, 1000);
	CU_ASSERT(!act.sends && mst_sim_worker_computes(&w));
	CU_ASSERT_EQUAL(w.wake_ns, 1000 + GRADIENT_NS);
	close_worker();
}

static void a_refused_worker_tries_again(void)
{
	open_worker(1, 0);
	tell((struct mst_decision){ .kind = MST_DO_REFUSE, .join = { RANK, -EEXIST } }, 1000);
	CU_ASSERT(!act.sends);
	CU_ASSERT_EQUAL_FATAL(w.wake_ns, 1000 + 100 * MST_MS);
	advise(3, 2000); /* of an earlier session: it does not disturb */
	CU_ASSERT_EQUAL(w.wake_ns, 1000 + 100 * MST_MS);
	mst_sim_worker_wake(&w, w.wake_ns, &act);
	CU_ASSERT(act.sends && act.event.kind == MST_EV_JOIN);
	tell((struct mst_decision){ .kind = MST_DO_REFUSE, .join = { RANK, -ESHUTDOWN } }, 2000);
	CU_ASSERT_EQUAL(w.wake_ns, MST_NEVER);
	close_worker();
}

static void a_complete_gradient_is_pushed_with_an_ask(void)
{
	open_computing(0);
	w.epoch = 4;
	mst_sim_worker_wake(&w, w.wake_ns, &act);
	const struct mst_lane_header *h = &act.event.full.header;
	CU_ASSERT(act.sends && act.event.kind == MST_EV_FULL);
	CU_ASSERT(h->seq == 1 && h->epoch == 4 && h->tag == 5 && h->weight == 1);
	CU_ASSERT(h->ask.number == 2 && h->ask.have == 5 && (h->flags & MST_HEADER_ASK));
	CU_ASSERT(!mst_sim_worker_computes(&w) && w.wake_ns == MST_NEVER);
	answer(1, 6, 2000); /* of an earlier ask */
	CU_ASSERT_FALSE(mst_sim_worker_computes(&w));
	answer(2, 6, 3000);
	CU_ASSERT(mst_sim_worker_computes(&w) && w.version == 6);
	close_worker();
}

static void an_answer_is_there_when_all_parts_are(void)
{
	open_worker(3, 0);
	admit(1);
	answer(1, 0, 1000);
	answer(1, 0, 2000);
	CU_ASSERT_FALSE(mst_sim_worker_computes(&w));
	answer(1, 0, 3000);
	CU_ASSERT_EQUAL(w.batch.begin_ns, 3000);
	close_worker();
}

static void without_checks_a_hint_changes_nothing(void)
{
	open_computing(0);
	advise(6, 2000);
	CU_ASSERT(w.state == MST_SIM_COMPUTING && w.wake_ns == 1000 + GRADIENT_NS);
	close_worker();
}

static void at_once_is_at_once(void)
{
	open_computing(MST_SIM_AT_ONCE);
	advise(6, 7000);
	CU_ASSERT_EQUAL_FATAL(w.wake_ns, 7000);
	mst_sim_worker_wake(&w, 7000, &act);
	CU_ASSERT(act.gave_up && act.given_up_ns == 6000);
	CU_ASSERT(act.sends && act.event.kind == MST_EV_ASK);
	CU_ASSERT(act.event.ask.number == 2 && act.event.ask.have == 5);
	CU_ASSERT_EQUAL(act.event.given_up, 1);
	CU_ASSERT_FALSE(mst_sim_worker_computes(&w));
	close_worker();
}

/* Four times in 20 ms: after 5, 10 and 15; the fourth would be when the gradient is complete. */
static void it_looks_a_few_times_in_a_gradient(void)
{
	static const uint64_t hint_ms[] = { 0, 1, 5, 6, 14, 15 },
			      look_ms[] = { 5, 5, 5, 10, 15, 15 };

	for (unsigned i = 0; i < 6; i++) {
		open_computing(4);
		advise(6, 1000 + hint_ms[i] * MST_MS);
		CU_ASSERT_EQUAL(w.state, MST_SIM_GIVING_UP);
		CU_ASSERT_EQUAL(w.wake_ns, 1000 + look_ms[i] * MST_MS);
		close_worker();
	}
	open_computing(4);
	advise(6, 1000 + 16 * MST_MS);
	CU_ASSERT(w.state == MST_SIM_COMPUTING && w.wake_ns == 1000 + GRADIENT_NS);
	close_worker();
}

static void a_hint_about_its_own_version_is_none(void)
{
	open_computing(MST_SIM_AT_ONCE);
	advise(5, 2000);
	CU_ASSERT_EQUAL(w.state, MST_SIM_COMPUTING);
	close_worker();
}

/* The hint has come before the older version: with a slow network. */
static void a_version_that_is_outdated_already_is_given_up(void)
{
	open_worker(1, MST_SIM_AT_ONCE);
	admit(1);
	advise(6, 900);
	answer(1, 5, 1000);
	CU_ASSERT(w.state == MST_SIM_GIVING_UP && w.wake_ns == 1000);
	close_worker();
}

static void what_is_about_an_earlier_session_changes_nothing(void)
{
	open_computing(MST_SIM_AT_ONCE);
	CU_ASSERT_EQUAL(mst_sim_worker_stop(&w, 5000), 4000);
	CU_ASSERT(w.state == MST_SIM_GONE && w.wake_ns == MST_NEVER);
	answer(2, 6, 5000);
	CU_ASSERT_EQUAL(w.state, MST_SIM_GONE);
	mst_sim_worker_join(&w, &act);
	admit(2);
	tell((struct mst_decision){ .kind = MST_DO_RELEASE,
				    .who = { RANK, 1 },
				    .answer = { .number = 1, .version = 6 } },
	     6000);
	CU_ASSERT_EQUAL(w.state, MST_SIM_WAITING);
	CU_ASSERT(w.seq == 0 && w.asks == 1 && w.epoch == 1);
	CU_ASSERT_EQUAL(mst_sim_worker_stop(&w, 7000), 0);
	close_worker();
}

static CU_TestInfo cases[] = {
	{ "it joins, starts and computes", it_joins_starts_and_computes },
	{ "a refused worker tries again", a_refused_worker_tries_again },
	{ "a complete gradient is pushed with an ask", a_complete_gradient_is_pushed_with_an_ask },
	{ "an answer is there when all parts are", an_answer_is_there_when_all_parts_are },
	{ "without checks a hint changes nothing", without_checks_a_hint_changes_nothing },
	{ "at once is at once", at_once_is_at_once },
	{ "it looks a few times in a gradient", it_looks_a_few_times_in_a_gradient },
	{ "a hint about its own version is none", a_hint_about_its_own_version_is_none },
	{ "a version that is outdated already is given up",
	  a_version_that_is_outdated_already_is_given_up },
	{ "what is about an earlier session changes nothing",
	  what_is_about_an_earlier_session_changes_nothing },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("sim_worker", cases);
}
