/* SPDX-License-Identifier: MIT */
/*
 * Results in memory of the program's own: what is copied, when it is written, and when not any
 * more. Over a transport that maps, and over one that does not, which stands in for RDMA:
 *
 *   test_unit_client_result_into shm|far
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "client/api/handle.h"
#include "common/base/clock.h"
#include "tests/unit/client/servers_case.h"
#include "tests/ut.h"

#define PAGE ((size_t)4096)
#define SMALL 1000u /* bytes: no gradient, and no part of a result */

static float into[SERVERS_ELEMS];
static float seen[SERVERS_ELEMS];

static bool writes_there(void)
{
	return !fake_transport->maps;
}

/* ---- copies that this thread makes of gradients and results ---- */

static _Thread_local uint64_t copied;           /* bytes */
static _Thread_local void (*before_copy)(void); /* called once, before a result is copied */

void *__real_memcpy(void *to, const void *from, size_t bytes);
void *__real_memmove(void *to, const void *from, size_t bytes);
void *__wrap_memcpy(void *to, const void *from, size_t bytes);
void *__wrap_memmove(void *to, const void *from, size_t bytes);

static void count(const void *to, size_t bytes)
{
	void (*hook)(void) = before_copy;

	if (!far_delivers && bytes >= SMALL)
		copied += bytes;
	if (hook == NULL || to != into)
		return;
	before_copy = NULL;
	hook();
}

void *__wrap_memcpy(void *to, const void *from, size_t bytes)
{
	count(to, bytes);
	return __real_memcpy(to, from, bytes);
}

void *__wrap_memmove(void *to, const void *from, size_t bytes)
{
	count(to, bytes);
	return __real_memmove(to, from, bytes);
}

/* ---- what workers do ---- */

static void begin_into(bool (*script)(struct fake_leader *))
{
	client_result_into = into;
	servers_begin(script);
	client_result_into = NULL;
}

static void scribble(void)
{
	for (uint64_t i = 0; i < SERVERS_ELEMS; i++)
		into[i] = -1;
}

static uint64_t count_of(const float *at, float base, float step)
{
	uint64_t right = 0;

	for (uint64_t i = 0; i < SERVERS_ELEMS; i++)
		right += at[i] == base + step * (float)i;
	return right;
}

static void push(float base)
{
	struct muster_contribution c = { .size = sizeof(c), .weight = 3, .full = true };
	float *gradient = muster_gradient(client_handle);

	CU_ASSERT_PTR_NOT_NULL_FATAL(gradient);
	for (uint64_t i = 0; i < SERVERS_ELEMS; i++)
		gradient[i] = base + (float)i;
	CU_ASSERT_EQUAL(muster_push(client_handle, &c, NULL), 0);
}

static void await(const _Atomic bool *flag)
{
	uint64_t until_ns = mst_now_ns() + 60 * MST_SECOND;

	while (!atomic_load(flag) && mst_now_ns() < until_ns)
		mst_sleep_ns(MST_MS);
	CU_ASSERT(atomic_load(flag));
}

/* ---- results ---- */

static bool serve_two(struct fake_leader *f)
{
	return fake_begin(f) && servers_hear_push(f, 1, 7) && servers_answer_push(f, 1, false) &&
	       servers_hear_push(f, 2, 8) && servers_answer_push(f, 2, true) && servers_end_well(f);
}

/* Published, and copied by the servers; where they write to this end's memory it is all one. */
static void results_come_there_with_as_many_copies_as_said(void)
{
	begin_into(serve_two);
	CU_ASSERT_PTR_EQUAL(client_outcome.result, into);
	for (uint64_t version = 1; version <= 2; version++) {
		scribble();
		copied = 0;
		push(6 + (float)version);
		CU_ASSERT_EQUAL(client_wait(), 0);
		CU_ASSERT_EQUAL(copied, writes_there() ? 0 : sizeof(into));
		CU_ASSERT(client_outcome.fresh && client_outcome.version == version);
		CU_ASSERT_PTR_EQUAL(client_outcome.result, into);
		CU_ASSERT_EQUAL(count_of(into, SERVERS_RESULT, 1), SERVERS_ELEMS);
	}
	servers_end();
}

static bool keep(struct fake_leader *f)
{
	struct mst_lane_answer a = { 3, 1, 1, MST_WHERE_KEEP, 0 };
	uint32_t imm = 0;
	bool well = fake_arrival(f, &imm);

	for (uint32_t k = 0; k < SERVERS_COUNT && well; k++)
		well = fake_answer_of(f, k, &a);
	return well;
}

static bool serve_one_and_keep(struct fake_leader *f)
{
	return fake_begin(f) && servers_hear_push(f, 1, 7) && servers_answer_push(f, 1, false) &&
	       keep(f) && servers_end_well(f);
}

/* What the program has made of it meanwhile stays. */
static void what_is_not_fresh_is_not_written(void)
{
	begin_into(serve_one_and_keep);
	push(7);
	CU_ASSERT_EQUAL(client_wait(), 0);
	scribble();
	copied = 0;
	CU_ASSERT_EQUAL(muster_pull(client_handle), 0);
	CU_ASSERT_EQUAL(client_wait(), 0);
	CU_ASSERT(!client_outcome.fresh && client_outcome.version == 1);
	CU_ASSERT_PTR_EQUAL(client_outcome.result, into);
	CU_ASSERT_EQUAL(copied, 0);
	CU_ASSERT_EQUAL(count_of(into, -1, 0), SERVERS_ELEMS);
	servers_end();
}

static void it_is_the_only_place_of_results_that_is_listed(void)
{
	struct muster_region list[FAKE_SLOTS + 2];

	begin_into(serve_two);
	CU_ASSERT_EQUAL(muster_regions(client_handle, list, FAKE_SLOTS + 2), FAKE_SLOTS + 1);
	CU_ASSERT_PTR_EQUAL(list[FAKE_SLOTS].base, into);
	CU_ASSERT_EQUAL(list[FAKE_SLOTS].bytes, sizeof(into));
	CU_ASSERT(!list[FAKE_SLOTS].writable && list[0].writable);
	client_close();
}

/* ---- ends ---- */

/* Without a look at its links: nothing moves meanwhile. */
static bool stand_still(struct fake_leader *f, int until)
{
	while (atomic_load(&servers_stage) < until && !atomic_load(&f->released))
		mst_sleep_ns(MST_MS);
	return !atomic_load(&f->released);
}

/* What is on its way goes on, if it can. */
static bool go_on(struct fake_leader *f)
{
	for (int i = 0; i < 40; i++)
		fake_turn(f);
	return servers_end_well(f);
}

static bool half_answer(struct fake_leader *f)
{
	if (!fake_begin(f) || !servers_hear_push(f, 1, 7))
		return false;
	if (!writes_there()) /* else it would be all there at once */
		return true;
	bool well = servers_answer_push(f, 1, false);
	fake_turn(f);
	return well;
}

static void hang_up(struct fake_leader *f, uint32_t k)
{
	fake_transport->detach(f->server[k].link);
	fake_transport->link_free(f->server[k].link);
	f->server[k].link = NULL;
}

static _Atomic bool half_there;

static bool lose_one_halfway(struct fake_leader *f)
{
	if (!half_answer(f))
		return false;
	atomic_store(&half_there, true);
	hang_up(f, 1);
	return stand_still(f, 2) && go_on(f);
}

static bool leave_halfway(struct fake_leader *f)
{
	bool well = half_answer(f);

	atomic_store(&half_there, true);
	return well && stand_still(f, 2) && go_on(f);
}

/* Some of the result is there, and some is not. */
static void expect_half(void)
{
	uint64_t there = count_of(into, SERVERS_RESULT, 1);

	if (writes_there())
		CU_ASSERT(there > 0 && there < SERVERS_ELEMS);
	CU_ASSERT_EQUAL(there + count_of(into, -1, 0), SERVERS_ELEMS);
}

static void expect_nothing_more(void)
{
	__real_memcpy(seen, into, sizeof(seen));
	atomic_store(&servers_stage, 2);
	await(&servers_went_well);
	CU_ASSERT_EQUAL(memcmp(seen, into, sizeof(seen)), 0);
}

/* Other servers than the one that is lost go on, and no result of theirs is written. */
static void a_session_lost_halfway_writes_no_more(void)
{
	atomic_store(&half_there, false);
	begin_into(lose_one_halfway);
	scribble();
	push(7);
	CU_ASSERT_EQUAL(client_wait(), -ENOTCONN);
	CU_ASSERT(client_says(muster_error(client_handle), "server 1"));
	expect_half();
	expect_nothing_more();
	CU_ASSERT_EQUAL(muster_wait(client_handle, &client_outcome),
			-ENOTCONN); /* in the same words */
	CU_ASSERT(client_says(muster_error(client_handle), "server 1"));
	CU_ASSERT_PTR_NULL(muster_gradient(client_handle));
	CU_ASSERT_EQUAL(muster_pull(client_handle), -ENOTCONN);
	CU_ASSERT_EQUAL(muster_check(client_handle), MUSTER_GIVE_UP);
	servers_end();
}

static void a_handle_closed_halfway_writes_no_more(void)
{
	atomic_store(&half_there, false);
	begin_into(leave_halfway);
	scribble();
	push(7);
	uint64_t until_ns = mst_now_ns() + 60 * MST_SECOND;
	while (!atomic_load(&half_there) && mst_now_ns() < until_ns)
		CU_ASSERT_EQUAL(muster_wait(client_handle, &client_outcome), -ETIMEDOUT);
	muster_close(client_handle);
	client_handle = NULL;
	expect_half();
	expect_nothing_more();
	servers_end();
}

static bool end_when_told(struct fake_leader *f)
{
	struct mst_lane_session word = { .state = MST_SESSION_ENDED, .error = -ENOTCONN };

	if (!fake_begin(f) || !servers_hear_push(f, 1, 7) || !servers_answer_push(f, 1, false) ||
	    !stand_still(f, 1))
		return false;
	return fake_put(f, f->layout.down_session[MST_SESSION_OF_WORKER], &word, sizeof(word),
			mst_imm(MST_IMM_SESSION, MST_SESSION_OF_WORKER, 0)) &&
	       servers_end_well(f);
}

static void let_it_end(void)
{
	atomic_store(&servers_stage, 1);
	await(&servers_went_well);
}

/* From then on the buffer that is copied may be another version's. */
static void a_session_that_ends_before_the_copy_has_no_outcome(void)
{
	if (writes_there())
		return;
	begin_into(end_when_told);
	push(7);
	before_copy = let_it_end;
	CU_ASSERT_EQUAL(client_wait(), -ENOTCONN);
	CU_ASSERT_PTR_NULL(before_copy);
	servers_end();
}

/* ---- what is refused ---- */

static void refused(void *at, int error, const char *words)
{
	struct muster_options opt = client_options_for("127.0.0.1:1", 1);
	struct muster *none = NULL;

	opt.elems = SERVERS_ELEMS;
	opt.result_into = at;
	CU_ASSERT_EQUAL(muster_open(&opt, &none), error);
	CU_ASSERT_PTR_NULL(none);
	CU_ASSERT(client_says(muster_error(NULL), "options.result_into"));
	CU_ASSERT(client_says(muster_error(NULL), words));
}

/* Before anybody is asked. */
static void memory_that_cannot_be_written_is_refused_in_words(void)
{
	size_t bytes = (sizeof(into) + PAGE - 1) / PAGE * PAGE;
	char *own = mmap(NULL, bytes + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	char hole[40];

	CU_ASSERT_FATAL(own != MAP_FAILED);
	refused((void *)(UINTPTR_MAX - 100), -EINVAL, "reach beyond the end of memory");
	refused((void *)64, -EFAULT, "are not mapped");
	munmap(own + PAGE, PAGE);
	(void)snprintf(hole, sizeof(hole), "bytes from %p on are not mapped", (void *)(own + PAGE));
	refused(own + 12, -EFAULT, hole);
	CU_ASSERT(mmap(own + PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		       0) == own + PAGE);
	refused(own + 12, -EFAULT, "may not be written");
	munmap(own, bytes + PAGE);
}

static void it_is_not_registered_as_a_source(void)
{
	begin_into(serve_two);
	CU_ASSERT_EQUAL(muster_register(client_handle, into + 10, 40), -EINVAL);
	CU_ASSERT(client_says(muster_error(client_handle), "memory of this handle"));
	CU_ASSERT_EQUAL(muster_unregister(client_handle, into), -EINVAL);
	client_close();
}

static CU_TestInfo cases[] = {
	{ "results come there, with as many copies as is said",
	  results_come_there_with_as_many_copies_as_said },
	{ "what is not fresh is not written", what_is_not_fresh_is_not_written },
	{ "it is the only place of results that is listed",
	  it_is_the_only_place_of_results_that_is_listed },
	{ "a session that is lost halfway writes no more", a_session_lost_halfway_writes_no_more },
	{ "a handle that is closed halfway writes no more",
	  a_handle_closed_halfway_writes_no_more },
	{ "a session that ends before the copy has no outcome",
	  a_session_that_ends_before_the_copy_has_no_outcome },
	{ "memory that cannot be written is refused in words",
	  memory_that_cannot_be_written_is_refused_in_words },
	{ "it is not registered as a source", it_is_not_registered_as_a_source },
	CU_TEST_INFO_NULL,
};

int main(int argc, char **argv)
{
	servers_transport(argc, argv);
	return ut_main("client: results in memory of the program's own", cases);
}
