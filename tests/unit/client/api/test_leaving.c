/* SPDX-License-Identifier: MIT */
/* A worker that leaves a job whose servers are waited for (PROTOCOL 11). */
#include <stdatomic.h>
#include <string.h>

#include "client/api/handle.h"
#include "common/base/clock.h"
#include "tests/unit/client/client_case.h"
#include "tests/ut.h"

static _Atomic unsigned hellos; /* after the worker has left */
static float bytes[FAKE_ELEMS];

void __real_mst_handle_free(struct muster *m);
void __wrap_mst_handle_free(struct muster *m);

/* The session is over, and the handle's thread stands still on its way to free the handle. */
void __wrap_mst_handle_free(struct muster *m)
{
	uint64_t until_ns = mst_deadline_ns(200 * MST_MS);

	while (atomic_load(&hellos) == 0 && mst_left_ns(until_ns) > 0)
		mst_sleep_ns(MST_MS);
	__real_mst_handle_free(m);
}

/* The server ends the session in turn, and counts who comes after that. */
static bool let_it_leave(struct fake_leader *f)
{
	struct mst_lane_answer first = { .number = 1, .where = MST_WHERE_COPIED };
	struct mst_welcome *w = &f->welcome;

	w->incarnation = 1;
	w->owner = MUSTER_WORKERS_OWN;
	w->history = 4;
	w->server_patience_ns = 3600 * MST_SECOND;
	w->generation = (struct mst_generation){ .run = "0123456789abcdef", .number = 1, .id = 7 };
	if (!fake_link(f) || !fake_hear(f, MST_MSG_START) ||
	    !fake_put(f, f->layout.down_result, bytes, sizeof(bytes), 0) ||
	    !fake_answer(f, &first) || !fake_hear(f, MST_MSG_LEAVE))
		return false;
	while (fake_next(f))
		atomic_fetch_add(&hellos, 1);
	return true;
}

static void worker_that_leaves_does_not_come_back(void)
{
	fake_marked = true;
	fake_open(&client_fake, let_it_leave);
	struct muster_options opt = client_options_for(client_fake.address, CLIENT_LONG_MS);

	opt.owner = MUSTER_WORKERS_OWN;
	client_handle = NULL;
	CU_ASSERT_EQUAL_FATAL(muster_open(&opt, &client_handle), 0);
	CU_ASSERT_EQUAL_FATAL(client_start(NULL, &client_outcome), 0);
	muster_close(client_handle);
	fake_close(&client_fake);
	CU_ASSERT_EQUAL(atomic_load(&hellos), 0);
}

static CU_TestInfo cases[] = {
	{ "a worker that leaves does not come back", worker_that_leaves_does_not_come_back },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("workers that leave", cases);
}
