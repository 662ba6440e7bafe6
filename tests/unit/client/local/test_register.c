/* SPDX-License-Identifier: MIT */
/*
 * Registered memory: what is copied of it, for how long it is lent, and what is refused. Over a
 * transport that maps, and over one that does not, which stands in for RDMA:
 *
 *   test_unit_client_register shm|far
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/api/handle.h"
#include "common/base/clock.h"
#include "common/kernels/finite.h"
#include "tests/unit/client/servers_case.h"
#include "tests/ut.h"

static float own[SERVERS_ELEMS];
static float other[SERVERS_ELEMS];

/* ---- copies that this thread makes of gradients and results ---- */

static _Thread_local bool counts;
static _Thread_local uint64_t copied; /* bytes */

void *__real_memcpy(void *to, const void *from, size_t bytes);
void *__real_memmove(void *to, const void *from, size_t bytes);
bool __real_mst_copy_finite(void *to, const void *from, enum muster_type type, size_t count,
			    bool streams);
void *__wrap_memcpy(void *to, const void *from, size_t bytes);
void *__wrap_memmove(void *to, const void *from, size_t bytes);
bool __wrap_mst_copy_finite(void *to, const void *from, enum muster_type type, size_t count,
			    bool streams);

static bool is_in(const void *at, const void *base, size_t bytes)
{
	return (uintptr_t)at >= (uintptr_t)base && (uintptr_t)at - (uintptr_t)base < bytes;
}

/* Does it lie in a gradient or a result, of the program's or the handle's? */
static bool is_data(const void *at)
{
	struct muster_region region;

	if (is_in(at, own, sizeof(own)))
		return true;
	for (uint32_t i = 0; mst_contiguous_region(&client_handle->contiguous, i, &region); i++)
		if (is_in(at, region.base, region.bytes))
			return true;
	for (uint32_t k = 0; k < client_handle->links.count;
	     k++) { /* what the handle composes in */
		const struct mst_part *p = &client_handle->links.part[k];
		const char *gradient = (const char *)p->link->outbound + p->gradient_at[0];
		if (is_in(at, gradient, p->layout.slot_bytes))
			return true;
	}
	return false;
}

static void count(const void *to, const void *from, size_t bytes)
{
	if (counts && !far_delivers && (is_data(to) || is_data(from)))
		copied += bytes;
}

void *__wrap_memcpy(void *to, const void *from, size_t bytes)
{
	count(to, from, bytes);
	return __real_memcpy(to, from, bytes);
}

void *__wrap_memmove(void *to, const void *from, size_t bytes)
{
	count(to, from, bytes);
	return __real_memmove(to, from, bytes);
}

bool __wrap_mst_copy_finite(void *to, const void *from, enum muster_type type, size_t n,
			    bool streams)
{
	bool counted = counts;

	count(to, from, n * sizeof(float));
	counts = false; /* however it goes about it */
	bool finite = __real_mst_copy_finite(to, from, type, n, streams);
	counts = counted;
	return finite;
}

/* ---- a link that nothing leaves ---- */

static _Thread_local bool stuck_here;

static bool is_stuck(const struct mst_link *link)
{
	(void)link;
	return stuck_here;
}

/* ---- what servers and workers do ---- */

static bool serve_one(struct fake_leader *f)
{
	return fake_begin(f) && servers_hear_push(f, 1, 7) && servers_answer_push(f, 1, false) &&
	       servers_end_well(f);
}

static bool begin_only(struct fake_leader *f)
{
	return fake_begin(f) && servers_end_well(f);
}

static bool begin_guarded(struct fake_leader *f)
{
	f->welcome.guard = MST_GUARD_WORKER;
	return fake_begin(f) && servers_end_well(f);
}

static void fill(float *at)
{
	for (uint64_t i = 0; i < SERVERS_ELEMS; i++)
		at[i] = 7 + (float)i;
}

static void scribble(float *at)
{
	memset(at, 0xff, SERVERS_ELEMS * sizeof(*at));
}

static int push(bool keep, uint64_t *ticket)
{
	struct muster_contribution c = {
		.size = sizeof(c), .weight = 3, .full = true, .keep = keep
	};

	return muster_push(client_handle, &c, ticket);
}

/* Across the borders of parts. */
static int push_from(const float *at)
{
	int rc = muster_push_range(client_handle, 4000, 4200, at + 4000);

	if (rc == 0)
		rc = muster_push_range(client_handle, 0, 4000, at);
	return rc != 0 ? rc
		       : muster_push_range(client_handle, 8200, SERVERS_ELEMS - 8200, at + 8200);
}

static bool lends(void)
{
	return !fake_transport->maps;
}

/* Until it says something else than 0. */
static int await_release(uint64_t ticket)
{
	uint64_t until_ns = mst_now_ns() + 60 * MST_SECOND;
	int rc;

	while ((rc = muster_released(client_handle, ticket)) == 0 && mst_now_ns() < until_ns)
		mst_sleep_ns(MST_MS);
	return rc;
}

/* The script has heard all that it waits for; over far nothing moves but when this end looks. */
static void await_script(void)
{
	uint64_t until_ns = mst_now_ns() + 60 * MST_SECOND;

	while (!atomic_load(&servers_went_well) && mst_now_ns() < until_ns) {
		(void)mst_engine_take(&client_handle->engine);
		mst_sleep_ns(MST_MS);
	}
}

/* ---- bytes copied ---- */

enum hand_over_way { IN_PLACE, FROM_OWN, FROM_REGISTERED, WAYS };

static int hand_over(enum hand_over_way way)
{
	if (way != IN_PLACE)
		return push_from(own);
	float *gradient = muster_gradient(client_handle);
	CU_ASSERT_PTR_NOT_NULL_FATAL(gradient);
	fill(gradient); /* the program's stores, which are no copy */
	return 0;
}

static void each_way_copies_what_it_is_said_to(void)
{
	const uint64_t all = SERVERS_ELEMS * sizeof(float);
	const uint64_t said[2][WAYS] = { { 0, all, all }, { 0, all, 0 } };

	for (enum hand_over_way way = IN_PLACE; way < WAYS; way++) {
		servers_begin(serve_one);
		fill(own);
		if (way == FROM_REGISTERED)
			CU_ASSERT_EQUAL(muster_register(client_handle, own, sizeof(own)), 0);
		copied = 0;
		counts = true;
		CU_ASSERT_EQUAL(hand_over(way), 0);
		CU_ASSERT_EQUAL(push(false, NULL), 0);
		CU_ASSERT_EQUAL(copied, said[lends()][way]);
		CU_ASSERT_EQUAL(client_wait(), 0);
		counts = false;
		CU_ASSERT_EQUAL(copied, said[lends()][way]); /* and nothing of the result */
		CU_ASSERT_EQUAL(((const float *)client_outcome.result)[5000],
				SERVERS_RESULT + 5000);
		scribble(own);
		servers_end();
	}
}

/* ---- lent ---- */

static void a_source_is_lent_until_it_is_sent(void)
{
	uint64_t ticket = 0;

	servers_begin(serve_one);
	CU_ASSERT_EQUAL(muster_register(client_handle, own, sizeof(own)), 0);
	fill(own);
	stuck_here = true;
	CU_ASSERT_EQUAL(push_from(own), 0);
	CU_ASSERT_EQUAL(muster_released(client_handle, 0), lends() ? 0 : 1);
	CU_ASSERT_EQUAL(push(false, &ticket), 0);
	CU_ASSERT_EQUAL(ticket, 1);
	if (lends()) {
		CU_ASSERT_EQUAL(muster_released(client_handle, 1), 0);
		CU_ASSERT_EQUAL(muster_unregister(client_handle, own), -EBUSY);
		CU_ASSERT(client_says(muster_error(client_handle), "are lent"));
		CU_ASSERT_EQUAL(muster_wait(client_handle, &client_outcome), -ETIMEDOUT);
		CU_ASSERT(
			client_says(muster_error(client_handle), "registered memory that is lent"));
	}
	stuck_here = false;
	CU_ASSERT_EQUAL(client_wait(), 0);
	scribble(own); /* far_spoiled says whether that was too early */
	CU_ASSERT_EQUAL(muster_released(client_handle, 1), 1);
	CU_ASSERT_EQUAL(muster_released(client_handle, 0), 1);
	CU_ASSERT_EQUAL(muster_released(client_handle, 2), -EINVAL);
	CU_ASSERT(client_says(muster_error(client_handle), "the newest is 1"));
	CU_ASSERT_EQUAL(muster_unregister(client_handle, own), 0);
	CU_ASSERT_EQUAL(muster_unregister(client_handle, own), -EINVAL);
	servers_end();
}

static bool hear_kept(struct fake_leader *f)
{
	uint32_t imm = 0;

	for (uint32_t k = 0; k < SERVERS_COUNT; k++)
		if (!fake_arrival_of(f, k, &imm) || mst_imm_kind(imm) != MST_IMM_HEADER)
			return false;
	return true;
}

static bool serve_kept(struct fake_leader *f)
{
	return fake_begin(f) && hear_kept(f) && servers_end_well(f);
}

static void what_was_kept_is_released_without_a_wait(void)
{
	uint64_t ticket = 0;

	servers_begin(serve_kept);
	CU_ASSERT_EQUAL(muster_register(client_handle, own, sizeof(own)), 0);
	fill(own);
	CU_ASSERT_EQUAL(push_from(own), 0);
	CU_ASSERT_EQUAL(push(true, &ticket), 0);
	CU_ASSERT_EQUAL(await_release(ticket), 1);
	scribble(own);
	await_script();
	servers_end();
}

static bool hear_abandon(struct fake_leader *f)
{
	uint32_t imm = 0;

	for (uint32_t k = 0; k < SERVERS_COUNT && lends(); k++)
		if (!fake_arrival_of(f, k, &imm) || imm != mst_imm(MST_IMM_ABANDON, 0, 1))
			return false;
	return true;
}

static bool serve_abandon(struct fake_leader *f)
{
	return fake_begin(f) && hear_abandon(f) && servers_end_well(f);
}

static void what_was_given_up_is_released(void)
{
	servers_begin(serve_abandon);
	CU_ASSERT_EQUAL(muster_register(client_handle, own, sizeof(own)), 0);
	fill(own);
	stuck_here = true;
	CU_ASSERT_EQUAL(push_from(own), 0);
	CU_ASSERT_EQUAL(muster_abandon(client_handle), 0);
	CU_ASSERT_EQUAL(muster_released(client_handle, 0), lends() ? 0 : 1);
	stuck_here = false;
	CU_ASSERT_EQUAL(await_release(0), 1);
	scribble(own);
	CU_ASSERT_EQUAL(muster_unregister(client_handle, own), 0);
	await_script();
	servers_end();
}

static bool finish_meanwhile(struct fake_leader *f)
{
	struct mst_lane_session word = { .state = MST_SESSION_FINISHED };

	return fake_begin(f) && servers_await_stage(f, 1) &&
	       fake_put(f, f->layout.down_session[MST_SESSION_OF_JOB], &word, sizeof(word),
			mst_imm(MST_IMM_SESSION, MST_SESSION_OF_JOB, 0)) &&
	       servers_end_well(f);
}

static void the_last_outcome_brings_all_sources_back(void)
{
	servers_begin(finish_meanwhile);
	CU_ASSERT_EQUAL(muster_register(client_handle, own, sizeof(own)), 0);
	fill(own);
	stuck_here = true;
	CU_ASSERT_EQUAL(push_from(own), 0);
	CU_ASSERT_EQUAL(push(true, NULL), 0);
	atomic_store(&servers_stage, 1);
	if (lends())
		CU_ASSERT_EQUAL(muster_wait(client_handle, &client_outcome), -ETIMEDOUT);
	stuck_here = false;
	CU_ASSERT_EQUAL(client_wait(), 0);
	CU_ASSERT(client_outcome.finished);
	CU_ASSERT_EQUAL(muster_released(client_handle, 0), 1);
	scribble(own);
	CU_ASSERT_EQUAL(muster_unregister(client_handle, own),
			0); /* the job's end does not matter to it */
	servers_end();
}

/* ---- a session lost in mid-put ---- */

static bool hang_up_one(struct fake_leader *f)
{
	if (!fake_begin(f) || !servers_await_stage(f, 1))
		return false;
	fake_transport->detach(f->server[1].link);
	fake_transport->link_free(f->server[1].link);
	f->server[1].link = NULL;
	return servers_end_well(f);
}

static void a_lost_session_gives_its_sources_back_when_closed(void)
{
	servers_begin(hang_up_one);
	CU_ASSERT_EQUAL(muster_register(client_handle, own, sizeof(own)), 0);
	fill(own);
	stuck_here = true;
	CU_ASSERT_EQUAL(push_from(own), 0);
	CU_ASSERT_EQUAL(push(false, NULL), 0);
	atomic_store(&servers_stage, 1);
	CU_ASSERT_EQUAL(client_wait(), -ENOTCONN);
	CU_ASSERT_EQUAL(muster_released(client_handle, 1), lends() ? -ENOTCONN : 1);
	CU_ASSERT_EQUAL(muster_unregister(client_handle, own), lends() ? -EBUSY : 0);
	if (lends())
		CU_ASSERT(client_says(muster_error(client_handle), "close the handle"));
	struct mst_region *region = lends() ? client_handle->sources.list[0].region : NULL;
	CU_ASSERT(region == NULL || atomic_load(&region->lent) > 0);
	servers_end();
	stuck_here = false;
	scribble(own);
}

/* ---- the guard ---- */

static void a_source_that_is_not_finite_is_refused_where_it_lies(void)
{
	servers_begin(begin_guarded);
	CU_ASSERT_EQUAL(muster_register(client_handle, own, sizeof(own)), 0);
	fill(own);
	own[5000] = NAN;
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 0, 4000, own), 0);
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 4000, 4200, own + 4000), -EDOM);
	CU_ASSERT(client_says(muster_error(client_handle), "element 5000 of the gradient is NaN"));
	CU_ASSERT(client_handle->worker.abandoned);
	CU_ASSERT_EQUAL(await_release(0), 1);
	CU_ASSERT_EQUAL(muster_unregister(client_handle, own), 0);
	servers_end();
}

/* ---- what is refused ---- */

static void refused(void *base, size_t bytes, int error, const char *words)
{
	CU_ASSERT_EQUAL(muster_register(client_handle, base, bytes), error);
	CU_ASSERT(client_says(muster_error(client_handle), words));
}

static void regions_that_cannot_be_are_refused_in_words(void)
{
	servers_begin(begin_only);
	float *gradient = muster_gradient(client_handle);
	refused(own, 0, -EINVAL, "0 bytes");
	refused(NULL, 4096, -EINVAL, "no memory");
	refused(own, SIZE_MAX, -EINVAL, "no memory");
	refused(gradient + 10, 4, -EINVAL, "memory of this handle");
	CU_ASSERT_EQUAL(muster_register(client_handle, own + 100, 400), 0);
	refused(own + 100, 400, -EEXIST, "registered already, 400 bytes");
	refused(own, 401, -EEXIST, "overlap");
	refused(own + 199, 8, -EEXIST, "overlap");
	CU_ASSERT_EQUAL(muster_register(client_handle, own, 400), 0);
	CU_ASSERT_EQUAL(muster_register(client_handle, own + 200, 4), 0);
	CU_ASSERT_EQUAL(muster_unregister(client_handle, own + 101), -EINVAL);
	CU_ASSERT(client_says(muster_error(client_handle), "it lies in the one of 400 bytes"));
	CU_ASSERT_EQUAL(muster_unregister(client_handle, other), -EINVAL);
	CU_ASSERT(client_says(muster_error(client_handle), "no region of this handle"));
	CU_ASSERT_EQUAL(muster_unregister(client_handle, own + 100), 0);
	CU_ASSERT_EQUAL(muster_unregister(client_handle, own + 200), 0);
	CU_ASSERT_EQUAL(muster_register(client_handle, own + 100, 404), 0);
	CU_ASSERT_EQUAL(muster_unregister(client_handle, own), 0);
	servers_end();
}

/* Over shared memory, too, where nothing is pinned and the copy would fail later. The hole is made
 * once nobody maps anything any more that might fill it. */
static void memory_with_a_hole_is_refused(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char hole[60];

	servers_begin(begin_only);
	char *mine = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);
	CU_ASSERT_FATAL(mine != MAP_FAILED);
	CU_ASSERT_EQUAL_FATAL(munmap(mine + page, page), 0);
	(void)snprintf(hole, sizeof(hole), "bytes from %p on are not mapped",
		       (void *)(mine + page));
	refused(mine, 3 * page, -EFAULT, hole);
	refused(mine, page + 1, -EFAULT, hole);
	refused(mine + page, page, -EFAULT, hole);
	CU_ASSERT_EQUAL(mprotect(mine + 2 * page, page, PROT_NONE), 0);
	refused(mine + 2 * page, page, -EFAULT, "may not be read by this process");
	CU_ASSERT_EQUAL(muster_register(client_handle, mine, page), 0);
	CU_ASSERT_EQUAL(muster_unregister(client_handle, mine), 0);
	munmap(mine, page);
	munmap(mine + 2 * page, page);
	servers_end();
}

/* No device is asked here; what RDMA says of both, transport.verbs.register shows. */
static void memory_that_may_only_be_read_is_registered(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	FILE *f = tmpfile();

	CU_ASSERT_FATAL(f != NULL && ftruncate(fileno(f), (off_t)page) == 0);
	void *of_own = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *of_file = mmap(NULL, page, PROT_READ, MAP_SHARED, fileno(f), 0);
	CU_ASSERT_FATAL(of_own != MAP_FAILED && of_file != MAP_FAILED);
	servers_begin(begin_only);
	CU_ASSERT_EQUAL(muster_register(client_handle, of_own, page), 0);
	CU_ASSERT_EQUAL(muster_register(client_handle, of_file, page), 0);
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 0, 100, of_own), 0);
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 100, 100, of_file), 0);
	CU_ASSERT_EQUAL(await_release(0), 1);
	servers_end();
	munmap(of_own, page);
	munmap(of_file, page);
	fclose(f);
}

/* As many as one likes, in any order; they are found again. */
static void many_regions_are_kept_apart(void)
{
	uint64_t wrong = 0;

	servers_begin(begin_only);
	for (uint64_t i = 0; i < 200; i++)
		wrong += muster_register(client_handle, other + (i * 77 % 200) * 10, 40) != 0;
	for (uint64_t i = 0; i < 200; i++)
		wrong += muster_push_range(client_handle, i * 10, 10, other + i * 10) != 0;
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 5000, 4, other + 5000),
			0); /* of none of them */
	CU_ASSERT_EQUAL(await_release(0), 1);
	for (uint64_t i = 0; i < 200; i++)
		wrong += muster_unregister(client_handle, other + (i * 33 % 200) * 10) != 0;
	CU_ASSERT_EQUAL(wrong, 0);
	servers_end();
}

static void a_source_half_inside_is_refused_and_nothing_is_sent(void)
{
	servers_begin(begin_only);
	CU_ASSERT_EQUAL(muster_register(client_handle, own + 100, 400), 0);
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 0, 101, own), -EINVAL);
	CU_ASSERT(client_says(muster_error(client_handle),
			      "only partly in the registered 400 bytes"));
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 0, 2, own + 199), -EINVAL);
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 0, 102, own + 99), -EINVAL);
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 0, UINT64_MAX, own), -EINVAL);
	CU_ASSERT(client_says(muster_error(client_handle), "beyond the vector"));
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 0, 100, own),
			0); /* none of it was given */
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 100, 100, own + 100), 0);
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 200, 1, own + 200), 0);
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 201, 0, own + 150), 0);
	CU_ASSERT_EQUAL(await_release(0), 1);
	servers_end();
}

/* ---- several handles, and children ---- */

static void each_handle_has_its_own_regions(void)
{
	static struct fake_leader second;
	struct muster *m2 = NULL;

	servers_begin(begin_only);
	fake_open(&second, begin_only);
	struct muster_options opt = client_options_for(second.address, CLIENT_LONG_MS);
	CU_ASSERT_EQUAL_FATAL(muster_open(&opt, &m2), 0);
	CU_ASSERT_EQUAL(muster_register(client_handle, own, sizeof(own)), 0);
	CU_ASSERT_EQUAL(muster_register(m2, own, sizeof(own)), 0);
	CU_ASSERT_EQUAL(muster_unregister(client_handle, own), 0);
	CU_ASSERT_EQUAL(muster_unregister(client_handle, own), -EINVAL);
	CU_ASSERT_EQUAL(muster_register(m2, own, sizeof(own)), -EEXIST);
	fake_release(&second);
	muster_close(m2); /* and what it has registered */
	fake_close(&second);
	servers_end();
}

static int wrong_in_child(float *mine)
{
	struct muster_region region;
	int wrong = 0;

	wrong += mine[17] != 24;
	mine[17] = 0; /* a child's own copy */
	wrong += muster_register(client_handle, mine, 4096) != -ECHILD;
	wrong += muster_unregister(client_handle, mine) != -ECHILD;
	wrong += muster_released(client_handle, 0) != -ECHILD;
	wrong += muster_regions(client_handle, &region, 1) != -ECHILD;
	if (fake_transport->disown != NULL)
		muster_close(client_handle);
	return wrong;
}

static void a_child_has_the_memory_and_not_the_regions(void)
{
	float *mine = mmap(NULL, sizeof(own), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	int status = -1;

	CU_ASSERT_FATAL(mine != MAP_FAILED);
	servers_begin(serve_one);
	CU_ASSERT_EQUAL(muster_register(client_handle, mine, sizeof(own)), 0);
	fill(mine);
	CU_ASSERT_EQUAL(push_from(mine), 0);
	pid_t child = fork();
	if (child == 0)
		_exit(wrong_in_child(mine));
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT_EQUAL(push(false, NULL), 0);
	CU_ASSERT_EQUAL(client_wait(), 0);
	CU_ASSERT_EQUAL(muster_unregister(client_handle, mine), 0);
	servers_end();
	munmap(mine, sizeof(own));
}

/* ---- what the handle gives out ---- */

static bool is_listed(const struct muster_region *list, int count, const void *at, bool writable)
{
	for (int i = 0; i < count; i++)
		if (list[i].base == at)
			return list[i].writable == writable &&
			       list[i].bytes == SERVERS_ELEMS * sizeof(float);
	return false;
}

static void all_that_is_given_out_is_listed(void)
{
	struct muster_region list[FAKE_SLOTS + 1 + FAKE_BUFFERS + 1], first;
	const int most = FAKE_SLOTS + 1 + (fake_transport->maps ? FAKE_BUFFERS : 0);

	servers_begin(serve_one);
	memset(list, 0, sizeof(list));
	CU_ASSERT_EQUAL(muster_regions(client_handle, NULL, 0), most);
	CU_ASSERT_EQUAL(muster_regions(client_handle, NULL, 1), -EINVAL);
	CU_ASSERT_EQUAL(muster_regions(client_handle, &first, 1), most);
	CU_ASSERT_EQUAL(muster_regions(client_handle, list, sizeof(list) / sizeof(list[0])), most);
	CU_ASSERT_EQUAL(list[0].base, first.base);
	CU_ASSERT_PTR_NULL(list[most].base);
	float *gradient = muster_gradient(client_handle);
	CU_ASSERT(is_listed(list, most, gradient, true));
	fill(gradient);
	CU_ASSERT_EQUAL(push(false, NULL), 0);
	CU_ASSERT_EQUAL(client_wait(), 0);
	CU_ASSERT(is_listed(list, most, client_outcome.result, false));
	servers_end();
}

static CU_TestInfo cases[] = {
	{ "each way of handing over copies what it is said to copy",
	  each_way_copies_what_it_is_said_to },
	{ "a source is lent until it is sent", a_source_is_lent_until_it_is_sent },
	{ "what was kept is released without a wait", what_was_kept_is_released_without_a_wait },
	{ "what was given up is released", what_was_given_up_is_released },
	{ "the last outcome brings all sources back", the_last_outcome_brings_all_sources_back },
	{ "a lost session gives its sources back when it is closed",
	  a_lost_session_gives_its_sources_back_when_closed },
	{ "a source that is not finite is refused where it lies",
	  a_source_that_is_not_finite_is_refused_where_it_lies },
	{ "regions that cannot be are refused in words",
	  regions_that_cannot_be_are_refused_in_words },
	{ "memory with a hole is refused", memory_with_a_hole_is_refused },
	{ "memory that may only be read is registered",
	  memory_that_may_only_be_read_is_registered },
	{ "many regions are kept apart", many_regions_are_kept_apart },
	{ "a source half inside is refused, and nothing of it is sent",
	  a_source_half_inside_is_refused_and_nothing_is_sent },
	{ "each handle has its own regions", each_handle_has_its_own_regions },
	{ "a child has the memory, and not the regions",
	  a_child_has_the_memory_and_not_the_regions },
	{ "all that is given out is listed", all_that_is_given_out_is_listed },
	CU_TEST_INFO_NULL,
};

int main(int argc, char **argv)
{
	servers_transport(argc, argv);
	far_manner.stuck = is_stuck;
	return ut_main("client: registered memory", cases);
}
