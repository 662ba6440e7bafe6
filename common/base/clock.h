/* SPDX-License-Identifier: MIT */
/* The only module that reads a clock. Code that decides gets now_ns as an argument instead. */
#ifndef MST_BASE_CLOCK_H
#define MST_BASE_CLOCK_H

#include <stdint.h>

#define MST_MS UINT64_C(1000000)
#define MST_SECOND UINT64_C(1000000000)
#define MST_NEVER UINT64_MAX /* as a time: no deadline */

/* Monotonic nanoseconds; only differences have a meaning. */
uint64_t mst_now_ns(void);

/* Nanoseconds of processor time that the calling thread has used: a measurement of plain computing
 * uses this, so that other threads and processes are not measured. */
uint64_t mst_thread_ns(void);

/* Milliseconds since 1970 in UTC, for users: the clock may jump, and nothing is decided by it. */
int64_t mst_wall_ms(void);

/* Sleeps for @ns, or until a signal comes. */
void mst_sleep_ns(uint64_t ns);

/* The time that is @timeout_ns from now. Never wraps: MST_NEVER stays MST_NEVER. */
static inline uint64_t mst_deadline_ns(uint64_t timeout_ns)
{
	uint64_t now_ns = mst_now_ns();

	return timeout_ns < MST_NEVER - now_ns ? now_ns + timeout_ns : MST_NEVER;
}

/* The time that is left until @deadline_ns; 0: it is over. */
static inline uint64_t mst_left_ns(uint64_t deadline_ns)
{
	uint64_t now_ns = mst_now_ns();

	return now_ns < deadline_ns ? deadline_ns - now_ns : 0;
}

#endif
