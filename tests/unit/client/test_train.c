/* SPDX-License-Identifier: MIT */
/* muster_train() with a compute() that never comes to an end: the loop does, in words. */
#include <errno.h>
#include <stdio.h>

#include "client/handle.h"
#include "common/base/clock.h"
#include "tests/unit/client/client_case.h"
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

static CU_TestInfo cases[] = {
	{ "a call that adds nothing, and is not the last, ends it",
	  a_call_that_adds_nothing_ends_it },
	{ "a batch that is not full after patience and lease ends it",
	  a_batch_that_is_never_full_ends_it },
	{ "the call that sets full may add nothing, and take long",
	  a_last_call_may_add_nothing_and_take_long },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("muster_train", cases);
}
