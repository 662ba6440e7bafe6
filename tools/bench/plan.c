/* SPDX-License-Identifier: MIT */
#include "tools/bench/plan.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/clock.h"

/* A step has a cache line of its own, so that those who wait at it do not disturb the next. */
#define LINE 64u
static_assert(sizeof(struct mst_bench_step) <= LINE, "a step's barriers lie in one line");

static size_t steps_at(void)
{
	return (sizeof(struct mst_bench_plan) + LINE - 1) / LINE * LINE;
}

static size_t records_at(const struct mst_bench_plan *p)
{
	return steps_at() + ((size_t)p->steps + 1) * LINE;
}

static int map(int fd, size_t bytes, struct mst_bench_plan **out)
{
	void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	*out = base;
	return 0;
}

int mst_bench_plan_new(const struct mst_bench_plan *want, struct mst_bench_plan **out, int *fd)
{
	size_t records = (size_t)want->workers * want->steps;
	size_t bytes = records_at(want) + records * sizeof(struct mst_bench_record);
	int memory = memfd_create("muster-bench", MFD_CLOEXEC);

	if (memory < 0)
		return -errno;
	int rc = ftruncate(memory, (off_t)bytes) < 0 ? -errno : map(memory, bytes, out);
	if (rc < 0) {
		(void)close(memory);
		return rc;
	}
	**out = *want;
	(*out)->bytes = bytes;
	*fd = memory;
	return 0;
}

int mst_bench_plan_map(const char *path, struct mst_bench_plan **out)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	int rc = fstat(fd, &st) < 0 ? -errno : 0;
	if (rc == 0 && (size_t)st.st_size < sizeof(struct mst_bench_plan))
		rc = -EINVAL;
	if (rc == 0)
		rc = map(fd, (size_t)st.st_size, out);
	(void)close(fd);
	return rc;
}

void mst_bench_plan_free(struct mst_bench_plan *p)
{
	if (p != NULL)
		(void)munmap(p, p->bytes);
}

struct mst_bench_step *mst_bench_step_of(struct mst_bench_plan *p, uint64_t step)
{
	MST_ASSERT(step <= p->steps);
	return (struct mst_bench_step *)((char *)p + steps_at() + step * LINE);
}

struct mst_bench_record *mst_bench_record_of(struct mst_bench_plan *p, uint32_t rank, uint64_t step)
{
	MST_ASSERT(rank < p->workers && step < p->steps);
	struct mst_bench_record *first = (struct mst_bench_record *)((char *)p + records_at(p));
	return first + (size_t)rank * p->steps + step;
}

/* ---- the barriers ---- */

#define YIELDS 1000u
#define LOOK_NS (100 * MST_MS) /* a sleeper looks again after this time */
#define NAP_NS (200 * UINT64_C(1000))
#define SAMPLES_MIN 5u /* also where the budget is too small */

static void sleep_on(_Atomic uint32_t *word, uint32_t value)
{
	struct timespec look = { .tv_nsec = (long)LOOK_NS };

	(void)syscall(SYS_futex, word, FUTEX_WAIT, value, &look, NULL, 0);
}

static void wake_all(_Atomic uint32_t *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static bool is_over(struct mst_bench_plan *p, uint64_t step, uint64_t now)
{
	if (step >= p->steps)
		return true;
	if (step == p->warmup)
		atomic_store_explicit(&p->timed_ns, now, memory_order_relaxed);
	if (p->budget_ns == MST_NEVER || step < p->warmup + SAMPLES_MIN)
		return false;
	return now - atomic_load_explicit(&p->timed_ns, memory_order_relaxed) > p->budget_ns;
}

static void open_barrier(struct mst_bench_barrier *barrier, enum mst_bench_state state)
{
	/* Release: pairs with the acquire load of await(); what was written before is seen. */
	atomic_store_explicit(&barrier->state, (uint32_t)state, memory_order_release);
	wake_all(&barrier->state);
}

/* Return: is this the last worker that the barrier waits for? Acquire and release: the worker that
 * opens the barrier sees what each worker wrote before it arrived. All others see it too, since
 * they read the state that this worker then writes. */
static bool arrive(const struct mst_bench_plan *p, struct mst_bench_barrier *barrier)
{
	return atomic_fetch_add_explicit(&barrier->arrived, 1, memory_order_acq_rel) + 1 ==
	       p->quorum;
}

static enum mst_bench_state await(struct mst_bench_barrier *barrier, bool (*gone)(void *arg),
				  void *arg)
{
	uint32_t state;

	for (uint32_t i = 0;; i++) {
		state = atomic_load_explicit(&barrier->state, memory_order_acquire);
		if (state != MST_BENCH_SHUT)
			return (enum mst_bench_state)state;
		if (i < YIELDS) {
			(void)sched_yield();
			continue;
		}
		if (gone(arg))
			return MST_BENCH_SHUT;
		sleep_on(&barrier->state, MST_BENCH_SHUT);
	}
}

enum mst_bench_state mst_bench_step_enter(struct mst_bench_plan *p, uint64_t step,
					  bool (*gone)(void *arg), void *arg)
{
	struct mst_bench_step *shared = mst_bench_step_of(p, step);

	if (arrive(p, &shared->begin)) {
		shared->open_ns = mst_now_ns();
		open_barrier(&shared->begin,
			     is_over(p, step, shared->open_ns) ? MST_BENCH_OVER : MST_BENCH_GO);
	}
	return await(&shared->begin, gone, arg);
}

bool mst_bench_step_leave(struct mst_bench_plan *p, uint64_t step, bool (*gone)(void *arg),
			  void *arg)
{
	struct mst_bench_step *shared = mst_bench_step_of(p, step);

	if (arrive(p, &shared->end))
		open_barrier(&shared->end, MST_BENCH_GO);
	return await(&shared->end, gone, arg) != MST_BENCH_SHUT;
}

void mst_bench_step_pushed(struct mst_bench_plan *p, uint64_t step)
{
	atomic_fetch_add_explicit(&mst_bench_step_of(p, step)->pushed, 1, memory_order_relaxed);
}

bool mst_bench_step_settle(struct mst_bench_plan *p, uint64_t step, bool (*gone)(void *arg),
			   void *arg)
{
	struct mst_bench_step *shared = mst_bench_step_of(p, step);

	while (atomic_load_explicit(&shared->pushed, memory_order_relaxed) + 1 < p->workers) {
		if (gone(arg))
			return false;
		mst_sleep_ns(NAP_NS);
	}
	mst_sleep_ns(p->settle_ns);
	return true;
}
