/* SPDX-License-Identifier: MIT */
/* muster_train(): when a contribution ends, what hooks are told, and what it says of a compute()
 * that never comes to an end. */
#include <errno.h>
#include <stdio.h>

#include "client/api/handle.h"
#include "common/base/clock.h"
#include "tests/unit/client/train_case.h"
#include "tests/ut.h"

#define PATIENCE_NS (50 * MST_MS) /* the lease is as long */

static unsigned calls;

static bool begin_patient(struct fake_leader *f)
{
	return fake_begin(f) && fake_stay(f);
}

static bool begin_impatient(struct fake_leader *f)
{
	f->welcome.patience_ns = PATIENCE_NS;
	f->welcome.lease_ns = PATIENCE_NS;
	return fake_begin(f) && fake_stay(f);
}

static int apply(void *ctx, const struct muster_outcome *got)
{
	(void)ctx;
	(void)got;
	return 0;
}

static int train(bool (*script)(struct fake_leader *),
		 int (*compute)(void *, void *, struct muster_contribution *))
{
	struct muster_hooks hooks = MUSTER_HOOKS;

	hooks.compute = compute;
	hooks.apply = apply;
	calls = 0;
	client_begin(script);
	return muster_train(client_handle, &hooks);
}

static int add_nothing_at_the_third_call(void *ctx, void *grad, struct muster_contribution *c)
{
	(void)ctx;
	(void)grad;
	if (++calls < 3)
		c->weight += 16;
	return 0;
}

static void a_call_that_adds_nothing_ends_it(void)
{
	CU_ASSERT_EQUAL(train(begin_patient, add_nothing_at_the_third_call), -EINVAL);
	CU_ASSERT_EQUAL(calls, 3);
	CU_ASSERT(client_says(muster_error(client_handle), "micro-batch 3"));
	CU_ASSERT(client_says(muster_error(client_handle), "weight 32"));
	CU_ASSERT(client_says(muster_error(client_handle), "full"));
	client_close();
}

static int go_on_for_ever(void *ctx, void *grad, struct muster_contribution *c)
{
	(void)ctx;
	(void)grad;
	calls++;
	c->weight += 1;
	mst_sleep_ns(MST_MS);
	return calls < 5000 ? 0 : -ELOOP;
}

static void a_batch_that_is_never_full_ends_it(void)
{
	char figures[64];

	CU_ASSERT_EQUAL(train(begin_impatient, go_on_for_ever), -EINVAL);
	CU_ASSERT(client_took_ms() >= 2 * PATIENCE_NS / MST_MS);
	(void)snprintf(figures, sizeof(figures), "%u micro-batches with %u samples", calls, calls);
	CU_ASSERT(client_says(muster_error(client_handle), figures));
	CU_ASSERT(client_says(muster_error(client_handle), "full"));
	client_close();
}

static int end_with_what_there_is(void *ctx, void *grad, struct muster_contribution *c)
{
	(void)ctx;
	(void)grad;
	if (++calls == 1)
		c->weight = 8;
	else
		c->full = true;
	if (calls == 2) { /* longer than patience, but it ends */
		client_handle->session.welcome.patience_ns = PATIENCE_NS;
		client_handle->session.welcome.lease_ns = PATIENCE_NS;
		mst_sleep_ns(3 * PATIENCE_NS);
	}
	return 0;
}

static void a_last_call_may_add_nothing_and_take_long(void)
{
	CU_ASSERT_EQUAL(train(begin_patient, end_with_what_there_is),
			-ETIMEDOUT); /* nobody answers the push */
	CU_ASSERT_EQUAL(calls, 2);
	client_close();
}

/* ---- what servers ask for ---- */

static unsigned advise_at; /* the call that brings the hint to hand in */

/* Micro-batches of one sample, four to a batch. */
static int compute_micro(void *ctx, void *grad, struct muster_contribution *c)
{
	float *g = grad;

	(void)ctx;
	for (unsigned i = 0; i < FAKE_ELEMS; i++)
		g[i] = c->weight == 0 ? 1 : g[i] + 1;
	c->weight += 1;
	calls++;
	c->full = calls % 4 == 0;
	if (calls == advise_at)
		train_hint(0, true);
	return calls < 20 ? 0 : -ECANCELED;
}

static void prepare_micro(unsigned hint_at)
{
	train_prepare();
	calls = 0;
	advise_at = hint_at;
	train_hooks.compute = compute_micro;
}

static void check_header(unsigned index, double weight, uint32_t flags)
{
	CU_ASSERT_EQUAL(train_push[index].header.weight, weight);
	CU_ASSERT_EQUAL(train_push[index].header.flags, flags);
	CU_ASSERT_EQUAL((double)train_push[index].value, weight);
}

static void what_is_finished_is_handed_in_and_the_rest_follows(void)
{
	prepare_micro(3);
	train_begin();
	CU_ASSERT_EQUAL(train_run(), -ECANCELED);
	train_await(5);
	check_header(0, 3, MST_HEADER_ASK);
	check_header(1, 1, MST_HEADER_FULL | MST_HEADER_ASK); /* on version 1: no hint */
	check_header(2, 4, MST_HEADER_FULL | MST_HEADER_ASK);
	client_close();
}

static void who_has_nothing_passes(void)
{
	prepare_micro(0);
	train_plan.drift = 1;
	train_begin();
	train_hint(0, true);
	CU_ASSERT_EQUAL(train_run(), -ECANCELED);
	CU_ASSERT_EQUAL(train_push[0].header.flags, MST_HEADER_PASS); /* the wait asks */
	CU_ASSERT_EQUAL(train_push[0].header.seq, 1);
	CU_ASSERT_EQUAL(train_push[1].header.seq, 2);
	CU_ASSERT_EQUAL(train_push[1].header.unheard, 0);
	check_header(1, 4, MST_HEADER_FULL | MST_HEADER_ASK);
	CU_ASSERT_EQUAL(train_seen.ticket[0], 2); /* a pass has no verdict */
	client_close();
}

static void where_it_is_asked_for_batches_go_on(void)
{
	prepare_micro(10);
	train_plan.until_asked[0] = true;
	train_begin();
	CU_ASSERT_EQUAL(train_run(), -ECANCELED);
	check_header(0, 10, MST_HEADER_ASK);
	check_header(1, 2, MST_HEADER_FULL | MST_HEADER_ASK);
	client_close();
}

/* As long as the versions say so: then the rest of the batch is one contribution. */
static void every_micro_batch_is_pushed_where_that_is_wanted(void)
{
	prepare_micro(0);
	train_plan.by_micro[0] = train_plan.by_micro[1] = true;
	train_begin();
	CU_ASSERT_TRUE(client_outcome.orders.by_micro);
	CU_ASSERT_EQUAL(train_run(), -ECANCELED);
	check_header(0, 1, MST_HEADER_PART | MST_HEADER_ASK);
	check_header(1, 1, MST_HEADER_PART | MST_HEADER_ASK);
	check_header(2, 2, MST_HEADER_FULL | MST_HEADER_ASK);
	check_header(3, 4, MST_HEADER_FULL | MST_HEADER_ASK);
	client_close();
}

static void the_last_micro_batch_ends_its_batch(void)
{
	prepare_micro(0);
	calls = 3;
	train_plan.by_micro[0] = true;
	train_begin();
	CU_ASSERT_EQUAL(train_run(), -ECANCELED);
	check_header(0, 1, MST_HEADER_FULL | MST_HEADER_ASK);
	client_close();
}

static void a_pass_is_sent_by_an_abandon_too(void)
{
	train_prepare();
	train_plan.drift = 1;
	train_begin();
	CU_ASSERT_PTR_NOT_NULL(muster_gradient(client_handle));
	train_hint(0, true);
	CU_ASSERT_EQUAL(muster_check(client_handle), MUSTER_HAND_IN);
	CU_ASSERT_EQUAL(muster_abandon(client_handle), 0);
	CU_ASSERT_EQUAL(client_wait(), 0);
	CU_ASSERT_EQUAL(client_outcome.verdict, MUSTER_NONE);
	CU_ASSERT_EQUAL(client_outcome.version, 1);
	CU_ASSERT_EQUAL(train_push[0].header.flags, MST_HEADER_PASS); /* the wait asks */
	CU_ASSERT_EQUAL(muster_check(client_handle), MUSTER_GO_ON);
	client_close();
}

/* ---- what hooks are told ---- */

static void verdicts_come_before_versions(void)
{
	train_prepare();
	train_plan.drift = 1;
	train_plan.verdict[0] = MUSTER_LATE;
	train_plan.verdict[1] = MUSTER_STALE;
	train_begin();
	train_batches(4);
	CU_ASSERT_EQUAL(train_seen.judged, 4);
	CU_ASSERT_EQUAL(train_seen.verdict[0], MUSTER_LATE);
	CU_ASSERT_EQUAL(train_seen.verdict[1], MUSTER_STALE);
	CU_ASSERT_EQUAL(train_seen.verdict[2], MUSTER_COUNTED);
	CU_ASSERT_EQUAL(train_seen.ticket[2], 3);
	CU_ASSERT_EQUAL(train_seen.applied, 4);
	/* compute() has seen each result in its turn */
	CU_ASSERT_EQUAL(train_seen.parameters[0], TRAIN_START);
	for (unsigned i = 1; i < 4; i++)
		CU_ASSERT_EQUAL(train_seen.parameters[i], train_seen.result[i - 1]);
	client_close();
}

static int refuse(void *ctx, const struct muster_outcome *out)
{
	(void)ctx;
	return out->verdict == MUSTER_STALE ? -EIO : 0;
}

static void what_judged_returns_ends_it(void)
{
	train_prepare();
	train_plan.verdict[1] = MUSTER_STALE;
	train_hooks.judged = refuse;
	train_begin();
	CU_ASSERT_EQUAL(train_run(), -EIO);
	CU_ASSERT_EQUAL(train_seen.computed, 2);
	train_batches(3); /* and it goes on with the next batch */
	client_close();
}

static void parameters_are_there_from_the_start_on(void)
{
	train_prepare();
	train_begin();
	CU_ASSERT_PTR_EQUAL(muster_parameters(client_handle), client_outcome.result);
	client_handle->worker.phase = MST_WORKER_STARTING;
	CU_ASSERT_PTR_NULL(muster_parameters(client_handle));
	client_handle->worker.phase = MST_WORKER_WORKING;
	client_handle->inherited = true;
	CU_ASSERT_PTR_NULL(muster_parameters(client_handle));
	client_handle->inherited = false;
	client_close();
}

static CU_TestInfo cases[] = {
	{ "a call that adds nothing, and is not the last, ends it",
	  a_call_that_adds_nothing_ends_it },
	{ "a batch that is not full after patience and lease ends it",
	  a_batch_that_is_never_full_ends_it },
	{ "the call that sets full may add nothing, and take long",
	  a_last_call_may_add_nothing_and_take_long },
	{ "what is finished is handed in when it is asked for, and the rest follows",
	  what_is_finished_is_handed_in_and_the_rest_follows },
	{ "who has nothing finished passes", who_has_nothing_passes },
	{ "where contributions are asked for, the end of a batch ends none",
	  where_it_is_asked_for_batches_go_on },
	{ "every micro-batch is pushed where that is wanted",
	  every_micro_batch_is_pushed_where_that_is_wanted },
	{ "the last micro-batch ends its batch", the_last_micro_batch_ends_its_batch },
	{ "muster_abandon() passes where something is asked for",
	  a_pass_is_sent_by_an_abandon_too },
	{ "verdicts are told, each before the version that comes with it",
	  verdicts_come_before_versions },
	{ "what judged() returns ends it, and it may be called again",
	  what_judged_returns_ends_it },
	{ "parameters are there from the start on", parameters_are_there_from_the_start_on },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("muster_train", cases);
}
