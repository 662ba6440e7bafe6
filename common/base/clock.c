/* SPDX-License-Identifier: MIT */
/* Time as the kernel tells it; everybody else is handed now_ns. */
#include "common/base/clock.h"

#include <time.h>

#include "common/base/assert.h"

uint64_t mst_now_ns(void)
{
	struct timespec now;

	MST_ASSERT(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
	return (uint64_t)now.tv_sec * MST_SECOND + (uint64_t)now.tv_nsec;
}

void mst_sleep_ns(uint64_t ns)
{
	struct timespec span = {
		.tv_sec = (time_t)(ns / MST_SECOND),
		.tv_nsec = (long)(ns % MST_SECOND),
	};

	nanosleep(&span, NULL);
}
