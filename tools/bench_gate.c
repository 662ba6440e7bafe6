/* SPDX-License-Identifier: MIT */
#include "tools/bench_gate.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"

#define YIELDS 1000u
#define LOOK_NS (100 * MST_MS) /* a sleeper looks round so often */
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

static void open_door(struct mst_bench_door *door, enum mst_bench_state state)
{
	/* Release: pairs with the acquire load of await(); what was written before is seen. */
	atomic_store_explicit(&door->state, (uint32_t)state, memory_order_release);
	wake_all(&door->state);
}

/* Return: is this the last of those who are waited for? Acquire and release: what each did before
 * it came is behind whoever opens, and so, by state, behind all. */
static bool arrive(const struct mst_bench_plan *p, struct mst_bench_door *door)
{
	return atomic_fetch_add_explicit(&door->arrived, 1, memory_order_acq_rel) + 1 == p->quorum;
}

static enum mst_bench_state await(struct mst_bench_door *door, bool (*gone)(void *arg), void *arg)
{
	uint32_t state;

	for (uint32_t i = 0;; i++) {
		state = atomic_load_explicit(&door->state, memory_order_acquire);
		if (state != MST_BENCH_SHUT)
			return (enum mst_bench_state)state;
		if (i < YIELDS) {
			(void)sched_yield();
			continue;
		}
		if (gone(arg))
			return MST_BENCH_SHUT;
		sleep_on(&door->state, MST_BENCH_SHUT);
	}
}

enum mst_bench_state mst_bench_gate_pass(struct mst_bench_plan *p, uint64_t step,
					 bool (*gone)(void *arg), void *arg)
{
	struct mst_bench_gate *gate = mst_bench_gate_of(p, step);

	if (arrive(p, &gate->in)) {
		gate->open_ns = mst_now_ns();
		open_door(&gate->in,
			  is_over(p, step, gate->open_ns) ? MST_BENCH_OVER : MST_BENCH_GO);
	}
	return await(&gate->in, gone, arg);
}

bool mst_bench_gate_leave(struct mst_bench_plan *p, uint64_t step, bool (*gone)(void *arg),
			  void *arg)
{
	struct mst_bench_gate *gate = mst_bench_gate_of(p, step);

	if (arrive(p, &gate->out))
		open_door(&gate->out, MST_BENCH_GO);
	return await(&gate->out, gone, arg) != MST_BENCH_SHUT;
}

void mst_bench_gate_pushed(struct mst_bench_plan *p, uint64_t step)
{
	atomic_fetch_add_explicit(&mst_bench_gate_of(p, step)->pushed, 1, memory_order_relaxed);
}

bool mst_bench_gate_settle(struct mst_bench_plan *p, uint64_t step, bool (*gone)(void *arg),
			   void *arg)
{
	struct mst_bench_gate *gate = mst_bench_gate_of(p, step);

	while (atomic_load_explicit(&gate->pushed, memory_order_relaxed) + 1 < p->workers) {
		if (gone(arg))
			return false;
		mst_sleep_ns(NAP_NS);
	}
	mst_sleep_ns(p->settle_ns);
	return true;
}
