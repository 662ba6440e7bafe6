/* SPDX-License-Identifier: MIT */
/* The time as the kernel tells it. All other code gets now_ns as an argument. */
#include "common/base/clock.h"

#include <time.h>

#include "common/base/assert.h"

static uint64_t nanoseconds(clockid_t clock)
{
	struct timespec now;

	MST_ASSERT(clock_gettime(clock, &now) == 0);
	return (uint64_t)now.tv_sec * MST_SECOND + (uint64_t)now.tv_nsec;
}

uint64_t mst_now_ns(void)
{
	return nanoseconds(CLOCK_MONOTONIC);
}

uint64_t mst_thread_ns(void)
{
	return nanoseconds(CLOCK_THREAD_CPUTIME_ID);
}

int64_t mst_wall_ms(void)
{
	struct timespec now;

	MST_ASSERT(clock_gettime(CLOCK_REALTIME, &now) == 0);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void mst_sleep_ns(uint64_t ns)
{
	struct timespec span = {
		.tv_sec = (time_t)(ns / MST_SECOND),
		.tv_nsec = (long)(ns % MST_SECOND),
	};

	nanosleep(&span, NULL);
}
