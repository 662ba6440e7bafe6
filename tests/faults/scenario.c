/* SPDX-License-Identifier: MIT */
#include "tests/faults/scenario.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "tests/ut.h"

void scenario_holds(bool holds, const char *promise)
{
	if (!holds)
		printf("\n\t%s failed, and it does not hold that %s\n", faulty_text(), promise);
	CU_ASSERT(holds);
}

/* Descriptors that this process has open. */
static unsigned descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	while (dir != NULL && readdir(dir) != NULL)
		count++;
	if (dir != NULL)
		closedir(dir);
	return count;
}

static unsigned open_before; /* descriptors, between two runs */

/* Some are closed by threads that take their time, also before the first run: then there are fewer
 * after one. */
static bool all_are_closed(void)
{
	uint64_t end_ns = mst_now_ns() + 60 * MST_SECOND;
	unsigned now;

	while ((now = descriptors()) > open_before) {
		if (mst_now_ns() >= end_ns)
			return false;
		mst_sleep_ns(MST_MS / 4);
	}
	open_before = now;
	return true;
}

static void run(const struct scenario *s)
{
	uint64_t began_ns = mst_now_ns();

	s->run();
	scenario_holds(mst_now_ns() - began_ns <= s->patience_ns, "it is over soon");
	scenario_holds(all_are_closed(), "all descriptors are closed");
}

/* Return: how many calls of the kind there are, as far as they are tried. */
static unsigned play_call(const struct scenario *s, enum faulty_call call)
{
	for (unsigned n = 1; n <= s->most; n++) {
		faulty_arm(s->side, call, n);
		run(s);
		if (faulty_disarm() < n)
			return n - 1;
		if (s->after != NULL)
			s->after();
	}
	return s->most;
}

unsigned scenario_play(const struct scenario *s)
{
	bool made[FAULTY_CALL_COUNT]; /* what the scenario never calls cannot fail */
	unsigned total = 0;

	faulty_arm(s->side, (enum faulty_call)0, UINT_MAX);
	s->run(); /* what is opened once for ever is open from now on, */
	faulty_disarm();
	for (unsigned call = 0; call < FAULTY_CALL_COUNT; call++)
		made[call] = faulty_made((enum faulty_call)call) > 0;
	mst_sleep_ns(100 * MST_MS); /* and what is closed later is closed, mostly */
	open_before = descriptors();
	printf("\n\t%s:", s->name);
	for (unsigned call = 0; call < FAULTY_CALL_COUNT; call++) {
		if (!made[call])
			continue;
		unsigned points = play_call(s, (enum faulty_call)call);
		if (points > 0)
			printf(" %s %u%s", faulty_name((enum faulty_call)call), points,
			       points == s->most ? "+" : "");
		total += points;
	}
	printf("; failure points: %u ", total);
	(void)fflush(stdout);
	return total;
}
