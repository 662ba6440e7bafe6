/* SPDX-License-Identifier: MIT */
/* The only place that reads a clock. Deciding code is handed now_ns instead. */
#ifndef MST_BASE_CLOCK_H
#define MST_BASE_CLOCK_H

#include <stdint.h>

#define MST_MS UINT64_C(1000000)
#define MST_SECOND UINT64_C(1000000000)
#define MST_NEVER UINT64_MAX /* as a time: no deadline */

/* Monotonic nanoseconds; only differences mean something. */
uint64_t mst_now_ns(void);

/* Sleeps so long, unless a signal comes first. */
void mst_sleep_ns(uint64_t ns);

#endif
