/* SPDX-License-Identifier: MIT */
/* Steps on parameters of the worker's own, against figures computed by hand: local steps, elastic
 * averaging, Downpour; and muster_train() called again wherever it returned. train_case.h says what
 * batches and steps are made of. */
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "client/api/handle.h"
#include "tests/unit/client/train_case.h"
#include "tests/ut.h"

/* From that version on. */
static void order(unsigned version, uint32_t local_steps, double alpha, uint32_t push_every,
		  uint32_t fetch_every)
{
	for (; version < TRAIN_VERSIONS; version++)
		train_plan.pace[version] = (struct mst_pace){ local_steps, push_every, fetch_every,
							      alpha };
}

/* @value, of @samples samples with the mean loss @loss. */
static void check_push(unsigned index, float value, double samples, double loss)
{
	const struct train_push *p = &train_push[index];

	CU_ASSERT_EQUAL(p->header.seq, index + 1);
	CU_ASSERT_EQUAL(p->value, value);
	CU_ASSERT_EQUAL(p->header.weight, samples);
	CU_ASSERT_EQUAL(p->header.loss, loss);
	CU_ASSERT(p->header.flags & MST_HEADER_LOSS);
	CU_ASSERT(p->header.flags & MST_HEADER_FULL);
}

static void check_parameters(const float *wanted, unsigned count)
{
	CU_ASSERT_EQUAL(train_seen.computed, count);
	for (unsigned i = 0; i < count; i++)
		CU_ASSERT_EQUAL(train_seen.parameters[i], wanted[i]);
}

/* ---- local steps ---- */

/* From 10: 9.5, 8.5; the servers take half of -1.5: 9.25. Then 7.75, 5.75; half of -3.5: 7.5. */
static const float locally[] = { 10, 9.5f, 9.25f, 7.75f, 7.5f };

static void train_locally(bool slow)
{
	train_prepare();
	order(0, 2, 0, 0, 0);
	train_plan.factor = 0.5f;
	train_plan.slow = slow;
	train_begin();
	train_batches(5);
	check_parameters(locally, 5);
	train_await(2);
	check_push(0, -1.5f, 2, 15);
	check_push(1, -3.5f, 2, 35);
	CU_ASSERT(train_push[0].header.flags & MST_HEADER_ASK);
	CU_ASSERT_EQUAL(train_seen.result[1], 7.5f);
}

static void local_steps_contribute_the_difference(void)
{
	train_locally(false);
	CU_ASSERT_EQUAL(train_seen.judged, 2);
	CU_ASSERT_EQUAL(train_push[1].header.tag, 1);
	client_close();
}

static void a_wait_that_times_out_loses_no_average(void)
{
	train_locally(true);
	CU_ASSERT(train_seen.timeouts >= 2);
	client_close();
}

static void a_late_worker_goes_on_from_the_newest(void)
{
	train_prepare();
	order(0, 1, 0, 0, 0);
	train_plan.verdict[0] = MUSTER_LATE;
	train_plan.drift = 1;
	train_begin();
	train_batches(2);
	check_parameters((float[]){ 10, 11 }, 2);
	CU_ASSERT_EQUAL(train_seen.verdict[0], MUSTER_LATE);
	CU_ASSERT_EQUAL(train_seen.ticket[0], 1);
	client_close();
}

/* ---- elastic averaging ---- */

/* From 10: 9.5, 8.5. The centre is at 11: z = -1.25, x = 9.75, and the centre goes to 9.75. Then
 * 8.25, 6.25. The centre is at 10.75: z = -2.25, x = 8.5. */
static const float elastically[] = { 10, 9.5f, 9.75f, 8.25f, 8.5f };

static void train_elastically(bool slow)
{
	train_prepare();
	order(0, 2, 0.5, 0, 0);
	train_plan.drift = 1;
	train_plan.slow = slow;
	train_begin();
	train_batches(5);
	check_parameters(elastically, 5);
	train_await(2);
	check_push(0, -1.25f, 2, 15);
	check_push(1, -2.25f, 2, 35);
	CU_ASSERT_FALSE(train_push[0].header.flags & MST_HEADER_ASK);
	CU_ASSERT_EQUAL(train_push[0].header.tag, 1);
}

static void worker_and_servers_move_by_the_same(void)
{
	train_elastically(false);
	CU_ASSERT_EQUAL(train_seen.judged, 1); /* the first, with the second fetch */
	CU_ASSERT_EQUAL(train_seen.verdict[0], MUSTER_COUNTED);
	client_close();
}

static void a_fetch_that_times_out_loses_no_exchange(void)
{
	train_elastically(true);
	CU_ASSERT(train_seen.timeouts >= 2);
	client_close();
}

/* ---- Downpour ---- */

/* From 10: 9.5, 8.5, 7; 1 + 2 was pushed, and the third step fetches 10 + 3. Then 11, 8.5, 5.5;
 * 3 + 4 and 5 + 6 were pushed, and 13 + 7 + 11 is fetched. */
static const float pouring[] = { 10, 9.5f, 8.5f, 13, 11, 8.5f, 31 };

static void train_downpour(bool slow)
{
	train_prepare();
	order(0, 0, 0, 2, 3);
	train_plan.slow = slow;
	train_begin();
	train_batches(7);
	check_parameters(pouring, 7);
	train_await(3);
	check_push(0, 3, 2, 15);
	check_push(1, 7, 2, 35);
	check_push(2, 11, 2, 55);
	CU_ASSERT_FALSE(train_push[1].header.flags & MST_HEADER_ASK);
	CU_ASSERT(train_push[2].header.flags & MST_HEADER_ASK); /* the sixth step also fetches */
}

static void gradients_accrue_and_the_newest_is_fetched(void)
{
	train_downpour(false);
	CU_ASSERT_EQUAL(train_seen.judged, 3);
	client_close();
}

static void downpour_goes_on_after_every_timeout(void)
{
	train_downpour(true);
	CU_ASSERT(train_seen.timeouts >= 2);
	client_close();
}

/* There is one slot, and the worker has its next gradient before the slot is granted again. */
static void no_gradient_is_lost_while_slots_are_in_flight(void)
{
	float sum = 0;

	train_prepare();
	order(0, 0, 0, 1, 100);
	train_plan.lazy = true;
	train_begin();
	train_batches(12);
	train_await(12);
	for (unsigned i = 0; i < 12; i++)
		sum += train_push[i].value;
	CU_ASSERT_EQUAL(sum, 78);
	CU_ASSERT_EQUAL(train_seen.parameters[11], 10 - 66 / 2.0f);
	client_close();
}

/* ---- a pace that begins and ends ---- */

/* Version 1 orders Downpour, version 2, which the second of its steps fetches, no pace. What has
 * accrued by then, 2 + 3, is pushed before a batch of the new kind. */
static void a_pace_begins_and_ends_with_versions(void)
{
	train_prepare();
	train_plan.drift = 1;
	order(1, 0, 0, 4, 2);
	order(3, 0, 0, 0, 0);
	train_plan.factor = 0;
	train_begin();
	train_batches(5);
	train_await(4);
	check_push(0, 1, 1, 10);
	check_push(1, 5, 2, 25);
	check_push(2, 4, 1, 40);
	check_parameters((float[]){ 10, 11, 10, 13, 14 }, 5);
	client_close();
}

/* The fetch that brings a slot for the second gradient also ends the pace. */
static void a_gradient_without_a_slot_is_pushed_when_the_pace_ends(void)
{
	train_prepare();
	train_plan.drift = 1;
	train_plan.lazy = true;
	order(0, 0, 0, 1, 100);
	order(2, 0, 0, 0, 0);
	train_begin();
	train_batches(3);
	train_await(3);
	check_push(0, 1, 1, 10);
	check_push(1, 2, 1, 20);
	check_push(2, 3, 1, 30);
	check_parameters((float[]){ 10, 9.5f, 15 }, 3);
	client_close();
}

/* ---- what ends a batch ---- */

static int take_back(void *ctx, const struct muster_outcome *out)
{
	if (out->verdict == MUSTER_CANCELLED)
		train_hint(0, false);
	train_seen.ticket[train_seen.judged] = out->ticket;
	train_seen.verdict[train_seen.judged++] = out->verdict;
	(void)ctx;
	return 0;
}

static int (*next_compute)(void *ctx, void *grad, struct muster_contribution *c);

static int advised_in_the_second(void *ctx, void *grad, struct muster_contribution *c)
{
	int rc = next_compute(ctx, grad, c);

	if (train_seen.computed == 2) {
		c->full = false;
		train_hint(1, false);
	}
	return rc;
}

static void a_worker_told_to_give_up_begins_anew(void)
{
	train_prepare();
	order(0, 3, 0, 0, 0);
	train_plan.drift = 1;
	next_compute = train_hooks.compute;
	train_hooks.compute = advised_in_the_second;
	train_hooks.judged = take_back;
	train_begin();
	train_batches(6);
	check_parameters((float[]){ 10, 9.5f, 11, 9.5f, 7.5f, 6 }, 6);
	CU_ASSERT_EQUAL(train_seen.verdict[0], MUSTER_CANCELLED);
	CU_ASSERT_EQUAL(train_seen.ticket[0], 0);
	check_push(0, -6, 3, 40);
	client_close();
}

static int fail_in_the_second(void *ctx, void *grad, struct muster_contribution *c)
{
	int rc = next_compute(ctx, grad, c);

	return train_seen.computed == 2 ? -EIO : rc;
}

/* The batch that failed has made no step; the next ones complete what was begun. */
static void a_failed_hook_costs_its_own_batch_only(void)
{
	train_prepare();
	order(0, 2, 0, 0, 0);
	next_compute = train_hooks.compute;
	train_hooks.compute = fail_in_the_second;
	train_begin();
	CU_ASSERT_EQUAL(train_run(), -EIO);
	train_batches(4);
	check_push(0, -2, 2, 20);
	check_parameters((float[]){ 10, 9.5f, 9.5f, 8 }, 4);
	client_close();
}

static int fail(void *ctx, void *grad)
{
	(void)ctx;
	(void)grad;
	return -EIO;
}

static void what_local_returns_ends_it(void)
{
	train_prepare();
	order(0, 2, 0, 0, 0);
	train_hooks.local = fail;
	train_begin();
	CU_ASSERT_EQUAL(train_run(), -EIO);
	CU_ASSERT_EQUAL(train_seen.computed, 1);
	client_close();
}

static int no_number_in_the_first(void *ctx, void *grad, struct muster_contribution *c)
{
	int rc = next_compute(ctx, grad, c);

	if (train_seen.computed == 1)
		c->loss = NAN;
	return rc;
}

static void what_is_not_finite_is_given_up_with_the_parameters(void)
{
	train_prepare();
	order(0, 1, 0, 0, 0);
	train_plan.drift = 1;
	next_compute = train_hooks.compute;
	train_hooks.compute = no_number_in_the_first;
	train_begin();
	client_handle->session.welcome.guard = MST_GUARD_WORKER;
	CU_ASSERT_EQUAL(train_run(), -EDOM);
	train_batches(3);
	check_parameters((float[]){ 10, 11, 11 }, 3);
	CU_ASSERT_EQUAL(train_seen.verdict[0], MUSTER_CANCELLED);
	check_push(0, -1, 1, 20);
	client_close();
}

static int weightless(void *ctx, void *grad, struct muster_contribution *c)
{
	(void)ctx;
	(void)grad;
	c->sum = c->full = true;
	return 0;
}

/* The norm of a difference is no gradient's. Gradients that are summed up are gradients. */
static void differences_are_not_clipped(void)
{
	setenv("MUSTER_CLIP", "0.5", 1);
	train_prepare();
	order(0, 2, 0, 0, 0);
	train_open();
	CU_ASSERT_EQUAL(client_start(NULL, &client_outcome), -ENOTSUP);
	CU_ASSERT(client_says(muster_error(client_handle), "differences of parameters"));
	CU_ASSERT(client_says(muster_error(client_handle), "MUSTER_CLIP"));
	client_close();
	train_prepare();
	order(0, 0, 0, 2, 2);
	train_begin();
	train_batches(3);
	CU_ASSERT(train_push[0].header.flags & MST_HEADER_CLIPPED);
	client_close();
	unsetenv("MUSTER_CLIP");
}

static void a_batch_without_samples_is_refused(void)
{
	train_prepare();
	order(0, 1, 0, 0, 0);
	train_hooks.compute = weightless;
	train_begin();
	CU_ASSERT_EQUAL(train_run(), -EINVAL);
	CU_ASSERT(client_says(muster_error(client_handle), "weight 0"));
	client_close();
}

static int summed(void *ctx, void *grad, struct muster_contribution *c)
{
	int rc = next_compute(ctx, grad, c);

	c->sum = true;
	c->weight = 4;
	return rc;
}

static void steps_and_pushes_are_of_the_mean(void)
{
	train_prepare();
	order(0, 0, 0, 2, 2);
	next_compute = train_hooks.compute;
	train_hooks.compute = summed;
	train_begin();
	train_batches(3);
	check_parameters((float[]){ 10, 9.875f, 10.75f }, 3);
	check_push(0, 0.75f, 8, 15);
	CU_ASSERT_FALSE(train_push[0].header.flags & MST_HEADER_SUM);
	client_close();
}

static int without_loss_in_the_first(void *ctx, void *grad, struct muster_contribution *c)
{
	int rc = next_compute(ctx, grad, c);

	c->has_loss = train_seen.computed != 1;
	return rc;
}

static void a_loss_is_told_only_if_all_batches_have_one(void)
{
	train_prepare();
	order(0, 2, 0, 0, 0);
	next_compute = train_hooks.compute;
	train_hooks.compute = without_loss_in_the_first;
	train_begin();
	train_batches(5);
	CU_ASSERT_FALSE(train_push[0].header.flags & MST_HEADER_LOSS);
	CU_ASSERT(train_push[1].header.flags & MST_HEADER_LOSS);
	CU_ASSERT_EQUAL(train_push[1].header.loss, 35);
	client_close();
}

/* The servers have taken the first exchange, and the job ends while the second one is on its way:
 * there is one version more to see, and no ticket stays open. */
static void the_job_may_end_in_mid_exchange(void)
{
	train_prepare();
	order(0, 2, 0.5, 0, 0);
	train_plan.ends_at = 3;
	train_begin();
	CU_ASSERT_EQUAL(train_run(), 0);
	CU_ASSERT_EQUAL(train_seen.computed, 4);
	CU_ASSERT_EQUAL(train_seen.applied, 1);
	CU_ASSERT_EQUAL(train_seen.result[0], 9.25f);
	CU_ASSERT_EQUAL(train_seen.judged, 1);
	CU_ASSERT_EQUAL(train_run(), 0);
	CU_ASSERT_EQUAL(train_seen.computed, 4);
	client_close();
}

static void what_has_accrued_ends_with_the_job(void)
{
	train_prepare();
	order(0, 0, 0, 4, 2);
	train_plan.ends_at = 2;
	train_begin();
	CU_ASSERT_EQUAL(train_run(), 0);
	CU_ASSERT_EQUAL(train_seen.computed, 2);
	CU_ASSERT_EQUAL(train_seen.judged, 0);
	client_close();
}

/* ---- what it needs ---- */

static void the_hook_local_is_needed(void)
{
	train_prepare();
	order(0, 2, 0, 0, 0);
	train_hooks.local = NULL;
	train_begin();
	CU_ASSERT_EQUAL(train_run(), -ENOTSUP);
	CU_ASSERT(client_says(muster_error(client_handle), "hook local"));
	CU_ASSERT(client_says(muster_error(client_handle), "bsp")); /* the policy's name */
	client_close();
}

static void types_of_16_bits_are_refused(void)
{
	train_prepare();
	order(0, 2, 0, 0, 0);
	train_begin();
	client_handle->settings.type = MUSTER_BF16;
	CU_ASSERT_EQUAL(train_run(), -ENOTSUP);
	CU_ASSERT(client_says(muster_error(client_handle), "f32"));
	client_handle->settings.type = MUSTER_F32;
	client_handle->settings.result_type = MUSTER_F16;
	CU_ASSERT_EQUAL(train_run(), -ENOTSUP);
	client_handle->settings.result_type = MUSTER_F32;
	train_batches(1);
	client_close();
}

static CU_TestInfo cases[] = {
	{ "local steps contribute the difference that they have made",
	  local_steps_contribute_the_difference },
	{ "a wait that times out loses no average, and makes none twice",
	  a_wait_that_times_out_loses_no_average },
	{ "a worker whose steps were late goes on from the newest version",
	  a_late_worker_goes_on_from_the_newest },
	{ "easgd: worker and servers move towards each other by the same",
	  worker_and_servers_move_by_the_same },
	{ "easgd: a fetch that times out loses no exchange, and makes none twice",
	  a_fetch_that_times_out_loses_no_exchange },
	{ "downpour: gradients accrue, and the newest version is fetched",
	  gradients_accrue_and_the_newest_is_fetched },
	{ "downpour goes on after every timeout", downpour_goes_on_after_every_timeout },
	{ "downpour loses no gradient while all slots are in flight",
	  no_gradient_is_lost_while_slots_are_in_flight },
	{ "differences are not clipped", differences_are_not_clipped },
	{ "a pace begins and ends with versions, and what has accrued is pushed",
	  a_pace_begins_and_ends_with_versions },
	{ "downpour: a gradient without a slot is pushed when the pace ends",
	  a_gradient_without_a_slot_is_pushed_when_the_pace_ends },
	{ "a worker that is told to give up begins anew", a_worker_told_to_give_up_begins_anew },
	{ "a hook that fails costs its own batch only", a_failed_hook_costs_its_own_batch_only },
	{ "what local() returns ends it", what_local_returns_ends_it },
	{ "what is not finite is given up, together with the parameters",
	  what_is_not_finite_is_given_up_with_the_parameters },
	{ "a batch without samples is refused", a_batch_without_samples_is_refused },
	{ "steps and pushes are of the mean, where compute() gives sums",
	  steps_and_pushes_are_of_the_mean },
	{ "a loss is told only if all batches have one",
	  a_loss_is_told_only_if_all_batches_have_one },
	{ "easgd: the job may end in the middle of an exchange", the_job_may_end_in_mid_exchange },
	{ "downpour: what has accrued ends with the job", what_has_accrued_ends_with_the_job },
	{ "the hook local is needed", the_hook_local_is_needed },
	{ "types of 16 bits are refused", types_of_16_bits_are_refused },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("muster_train: paced", cases);
}
