/* SPDX-License-Identifier: MIT */
/*
 * How often a process that ends has been started again lately. One that ends again and again is not
 * started for ever: its cause does not go away by that. Pure: times go in, counts come out.
 */
#ifndef MST_TOOLS_RUN_RESTARTS_H
#define MST_TOOLS_RUN_RESTARTS_H

#include <stdint.h>

#include "common/base/clock.h"

#define MST_RESTARTS_MOST 5u                    /* in */
#define MST_RESTARTS_SPAN_NS (600 * MST_SECOND) /* such a time */

struct mst_restarts {
	uint32_t count;                    /* all that there were */
	uint64_t at_ns[MST_RESTARTS_MOST]; /* the last ones, by count */
};

/* It has ended, and may be started again: that is counted.
 * Return: the how-manieth time it is, from 1, in the span that ends now; 0: it may not. */
uint32_t mst_restarts_take(struct mst_restarts *r, uint64_t now_ns);

/* How long to wait before it is started again: not at all, unless it has just been started and may
 * keep the host busy. @lived_ns: how long it was there. */
uint64_t mst_restarts_pause(uint64_t lived_ns);

#endif
