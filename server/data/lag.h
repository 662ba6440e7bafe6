/* SPDX-License-Identifier: MIT */
/*
 * Measures how late arrivals are reported, where they are read first and reported afterwards.
 * Without it a timer would be judged before a contribution that had come in time. Pure.
 */
#ifndef MST_SERVER_DATA_LAG_H
#define MST_SERVER_DATA_LAG_H

#include <stdint.h>

#include "server/data/aggregator.h"

struct mst_lag {
	uint64_t until_ns; /* all that had arrived by then has been reported */
	/* The same will hold for this time when so much has been reported. */
	uint64_t mark_ns, mark;
};

/* What is reported comes in the order in which it arrived.
 * Return: the time within which something may have arrived that is not reported; 0: nothing has. */
static inline uint64_t mst_lag_look(struct mst_lag *l, const struct mst_reports *r, uint64_t now_ns)
{
	if (r->reported >= l->mark) {
		l->until_ns = l->mark_ns;
		l->mark_ns = now_ns;
		l->mark = r->arrived;
	}
	if (r->reported == r->arrived)
		l->until_ns = now_ns;
	return now_ns - l->until_ns;
}

#endif
