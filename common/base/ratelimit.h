/* SPDX-License-Identifier: MIT */
/*
 * A limit on how often one kind of thing may be logged: the first few times in a window of time,
 * which begins with the first of them. In the rest of the window it is held back, and counted.
 * Pure: time is an argument.
 */
#ifndef MST_BASE_RATELIMIT_H
#define MST_BASE_RATELIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct mst_ratelimit {
	uint64_t window_ns;
	uint32_t burst; /* how often in a window */
	/* Zeroed: */
	uint32_t said;
	uint64_t began_ns;
	uint64_t held_back;
};

/* May it be logged now? If not, it is counted as held back. Call mst_ratelimit_take() before, for
 * what the last window has held back. */
bool mst_ratelimit_pass(struct mst_ratelimit *r, uint64_t now_ns);

/* Return: how many were held back in a window that is over now; the count begins again. */
uint64_t mst_ratelimit_take(struct mst_ratelimit *r, uint64_t now_ns);

#endif
