/* SPDX-License-Identifier: MIT */
#include "tests/faults/scenario.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/ut.h"

void scenario_holds(bool holds, const char *promise)
{
	if (!holds)
		printf("\n\t%s failed, and it does not hold that %s\n", faulty_text(), promise);
	CU_ASSERT(holds);
}

bool scenario_is_named(const char *said)
{
	return strstr(said, faulty_name(faulty_armed())) != NULL ||
	       strstr(said, strerror(faulty_error())) != NULL ||
	       (faulty_error() == ENOMEM && strstr(said, "no memory") != NULL) ||
	       (faulty_error() == EADDRINUSE && strstr(said, "another process") != NULL) ||
	       /* Streams tell of both by one error (common/transport/stream.h). */
	       (faulty_error() == ECONNRESET && strstr(said, strerror(EPIPE)) != NULL);
}

void scenario_names(const char *said)
{
	bool names = scenario_is_named(said);

	if (!names)
		printf("\n\t%s failed (%s), which this does not name: %s\n", faulty_text(),
		       strerror(faulty_error()), said);
	CU_ASSERT(names);
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

/* Return: false: there is no n-th call of the kind. */
static bool play_one(const struct scenario *s, enum faulty_call call, unsigned n)
{
	faulty_arm(s->side, call, n);
	run(s);
	if (faulty_disarm() < n)
		return false;
	if (s->after != NULL)
		s->after();
	return true;
}

/* Return: how many calls of the kind there are, as far as they are tried. */
static unsigned play_call(const struct scenario *s, enum faulty_call call)
{
	unsigned tried = 0;

	while (tried < s->most && play_one(s, call, tried + 1))
		tried++;
	if (tried < s->most || call != FAULTY_malloc || s->thin == 0)
		return tried;
	for (unsigned n = tried + s->thin; play_one(s, call, n); n += s->thin)
		tried++;
	return tried;
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
			       points >= s->most ? "+" : "");
		(void)fflush(stdout);
		total += points;
	}
	printf("; failure points: %u ", total);
	(void)fflush(stdout);
	return total;
}
