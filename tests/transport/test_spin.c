/* SPDX-License-Identifier: MIT */
/*
 * How a waiting thread spins before it sleeps. Clock and scheduler are played here: a look takes
 * LOOK_NS, a yield as long as the case says.
 */
#include <CUnit/CUnit.h>
#include <stdlib.h>

#include "common/transport/spin.h"
#include "tests/ut.h"

#define US UINT64_C(1000)
#define LOOK_NS 20
#define ALONE_NS 300 /* a yield to nobody */

static uint64_t now_ns, has_work_at_ns, yield_ns;
static unsigned looks, yields;

uint64_t __wrap_mst_now_ns(void);
int __wrap_sched_yield(void);

uint64_t __wrap_mst_now_ns(void)
{
	return now_ns;
}

int __wrap_sched_yield(void)
{
	yields++;
	now_ns += yield_ns;
	return 0;
}

static bool has_work(void *net)
{
	(void)net;
	looks++;
	now_ns += LOOK_NS;
	return now_ns >= has_work_at_ns;
}

/* A wait in which there is work after so long. Return: what the spin says; *took_ns: its time. */
static bool spin_for(struct mst_spin *spin, uint64_t has_work_after_ns, uint64_t deadline_after_ns,
		     uint64_t *took_ns)
{
	static const struct mst_net_cfg cfg = { .spin_pauses = 20, .spin_yields = 2000 };
	uint64_t began_ns = now_ns;

	has_work_at_ns = has_work_after_ns == MST_NEVER ? MST_NEVER : now_ns + has_work_after_ns;
	looks = yields = 0;
	bool found = mst_spin(
		spin, &cfg, deadline_after_ns == MST_NEVER ? MST_NEVER : now_ns + deadline_after_ns,
		has_work, NULL);
	*took_ns = now_ns - began_ns;
	return found;
}

static void begin(uint64_t a_yield_takes_ns)
{
	now_ns = MST_SECOND;
	yield_ns = a_yield_takes_ns;
}

static void what_comes_soon_is_found(void)
{
	struct mst_spin spin = { 0 };
	uint64_t took_ns;

	begin(ALONE_NS);
	for (int i = 0; i < 100; i++) {
		CU_ASSERT(spin_for(&spin, 80 * US, MST_NEVER, &took_ns));
		CU_ASSERT(took_ns >= 80 * US && took_ns < 81 * US);
	}
	CU_ASSERT(spin_for(&spin, 0, MST_NEVER, &took_ns));
	CU_ASSERT_EQUAL(yields, 0);
}

static void a_spin_in_vain_ends_soon(void)
{
	for (uint64_t turn_ns = 0; turn_ns <= US; turn_ns += 100) {
		struct mst_spin spin = { 0 };
		uint64_t took_ns;

		begin(turn_ns);
		CU_ASSERT(!spin_for(&spin, MST_NEVER, MST_NEVER, &took_ns));
		CU_ASSERT(took_ns > 20 * US && took_ns < 110 * US);
	}
}

static void after_it_waits_sleep_at_once_for_a_while(void)
{
	struct mst_spin spin = { 0 };
	uint64_t took_ns, ignored_ns;

	begin(ALONE_NS);
	CU_ASSERT(!spin_for(&spin, MST_NEVER, MST_NEVER, &took_ns));
	now_ns += 31 * took_ns;
	CU_ASSERT(!spin_for(&spin, 10 * US, MST_NEVER, &ignored_ns));
	CU_ASSERT_EQUAL(looks, 1);
	CU_ASSERT(spin_for(&spin, 0, MST_NEVER, &ignored_ns)); /* but it looks */
	now_ns += 2 * took_ns;
	CU_ASSERT(spin_for(&spin, 10 * US, MST_NEVER, &ignored_ns));
	CU_ASSERT(looks > 1);
}

/* Burnt at most, of the time that waits of @wait_ns take. */
static double burnt_of(uint64_t wait_ns)
{
	struct mst_spin spin = { 0 };
	uint64_t took_ns, all_ns = 0;

	begin(ALONE_NS);
	for (int i = 0; i < 1000; i++) {
		uint64_t began_ns = now_ns;
		CU_ASSERT(!spin_for(&spin, wait_ns, MST_NEVER, &took_ns));
		all_ns += took_ns;
		now_ns = began_ns + wait_ns; /* asleep */
	}
	return (double)all_ns / (double)(now_ns - MST_SECOND);
}

static void long_waits_burn_next_to_nothing(void)
{
	CU_ASSERT(burnt_of(150 * US) < 0.035);
	CU_ASSERT(burnt_of(MST_MS) < 0.035);
	CU_ASSERT(burnt_of(100 * MST_MS) < 0.0011);
}

static void others_turns_are_not_burnt(void)
{
	struct mst_spin spin = { 0 };
	uint64_t took_ns;

	begin(40 * US);
	for (int i = 0; i < 10; i++) {
		CU_ASSERT(spin_for(&spin, 3 * MST_MS, MST_NEVER, &took_ns));
		CU_ASSERT(yields > 50);
	}
	CU_ASSERT(!spin_for(&spin, MST_NEVER, MST_NEVER, &took_ns));
	CU_ASSERT(yields <= 101);
}

static void who_keeps_the_core_is_not_yielded_to(void)
{
	struct mst_spin spin = { 0 };
	uint64_t took_ns, lost_ns = 0;

	begin(3 * MST_MS);
	for (int i = 0; i < 10000; i++) {
		/* It came at once, but this thread hears of it only when it has the core again. */
		CU_ASSERT(spin_for(&spin, 5 * US, MST_NEVER, &took_ns) || took_ns == LOOK_NS);
		CU_ASSERT(yields <= 1);
		lost_ns += took_ns;
		now_ns += 50 * US;
	}
	CU_ASSERT((double)lost_ns / (double)(now_ns - MST_SECOND) < 0.05);
}

static void who_was_stopped_spins_again_soon(void)
{
	struct mst_spin spin = { 0 };
	uint64_t took_ns;

	begin(3600 * MST_SECOND);
	CU_ASSERT(spin_for(&spin, 5 * US, MST_NEVER, &took_ns));
	yield_ns = ALONE_NS;
	now_ns += 101 * MST_MS;
	CU_ASSERT(spin_for(&spin, 50 * US, MST_NEVER, &took_ns));
}

static void a_deadline_is_kept(void)
{
	struct mst_spin spin = { 0 };
	uint64_t took_ns;

	begin(ALONE_NS);
	CU_ASSERT(spin_for(&spin, MST_NEVER, 30 * US, &took_ns));
	CU_ASSERT(took_ns >= 30 * US && took_ns < 31 * US);
	CU_ASSERT(spin_for(&spin, MST_NEVER, 0, &took_ns));
	CU_ASSERT(took_ns < US);
}

static void who_shall_not_spin_looks_once(void)
{
	static const struct mst_net_cfg cfg = { .spin_pauses = 0, .spin_yields = 0 };
	struct mst_spin spin = { 0 };

	begin(ALONE_NS);
	has_work_at_ns = MST_NEVER;
	looks = yields = 0;
	for (unsigned i = 1; i <= 3; i++) {
		CU_ASSERT(!mst_spin(&spin, &cfg, MST_NEVER, has_work, NULL));
		CU_ASSERT(looks == i && yields == 0);
	}
}

static CU_TestInfo cases[] = {
	{ "what comes soon is found", what_comes_soon_is_found },
	{ "a spin in vain ends soon", a_spin_in_vain_ends_soon },
	{ "after it waits sleep at once, for a while", after_it_waits_sleep_at_once_for_a_while },
	{ "long waits burn next to nothing", long_waits_burn_next_to_nothing },
	{ "others' turns are not burnt", others_turns_are_not_burnt },
	{ "who keeps the core is not yielded to", who_keeps_the_core_is_not_yielded_to },
	{ "who was stopped spins again soon", who_was_stopped_spins_again_soon },
	{ "a deadline is kept", a_deadline_is_kept },
	{ "who shall not spin looks once", who_shall_not_spin_looks_once },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("spin", cases);
}
