/* SPDX-License-Identifier: MIT */
/* Every allocation of muster_open() fails in turn, until none does: each time the caller gets
 * -ENOMEM and no handle, and nothing is left behind (the address sanitizer looks for that). So does
 * every allocation of a worker that needs parameters of its own, which may try again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/client/train_case.h"
#include "tests/ut.h"

/* The fake leader allocates too, on its own thread: only this one's are counted. */
static _Thread_local unsigned fail_at, seen;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
	return fail_at != 0 && ++seen == fail_at ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return fail_at != 0 && ++seen == fail_at ? NULL : __real_calloc(count, bytes);
}

static bool link_and_stay(struct fake_leader *f)
{
	return fake_link(f) && fake_stay(f);
}

static int open_failing_at(unsigned n)
{
	fake_open(&client_fake, link_and_stay);
	struct muster_options opt = client_options_for(client_fake.address, CLIENT_LONG_MS);
	client_handle = NULL;
	seen = 0;
	fail_at = n;
	int rc = muster_open(&opt, &client_handle);
	fail_at = 0;
	return rc;
}

/* Some need not succeed: a handle opens also without those that read quotas of control groups. */
static void every_allocation_may_fail(void)
{
	unsigned n = 0, failed = 0;

	do {
		int rc = open_failing_at(++n);
		if (rc != 0) {
			failed++;
			CU_ASSERT_EQUAL(rc, -ENOMEM);
			CU_ASSERT_PTR_NULL(client_handle);
			CU_ASSERT(strlen(muster_error(NULL)) > 10);
		}
		client_close();
	} while (seen >= n && n < 100);
	CU_ASSERT(n < 100);
	CU_ASSERT(failed > 5);
	CU_ASSERT(n - failed < 5);
}

static void parameters_of_its_own_may_fail(void)
{
	train_prepare();
	for (unsigned i = 0; i < TRAIN_VERSIONS; i++)
		train_plan.pace[i].local_steps = 1;
	train_begin();
	for (unsigned n = 1; n <= 2; n++) { /* the first call keeps what it has got */
		seen = 0;
		fail_at = n == 1 ? 2 : 1;
		CU_ASSERT_EQUAL(train_run(), -ENOMEM);
		CU_ASSERT(client_says(muster_error(client_handle), "1000 parameters"));
		fail_at = 0;
	}
	train_batches(2);
	client_close();
}

static CU_TestInfo cases[] = {
	{ "every allocation of an opening may fail, and nothing is left behind",
	  every_allocation_may_fail },
	{ "so may those of a worker with parameters of its own, which may try again",
	  parameters_of_its_own_may_fail },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("client allocations", cases);
}
