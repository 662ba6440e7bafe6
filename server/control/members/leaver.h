/* SPDX-License-Identifier: MIT */
/*
 * The first worker that has left a job which goes on, where workers own the parameters. Workers of
 * one loop leave at about the same time. One that has left long before the others keeps parameters
 * that are not theirs, and perhaps nobody ends the job. Pure.
 */
#ifndef MST_SERVER_CONTROL_MEMBERS_LEAVER_H
#define MST_SERVER_CONTROL_MEMBERS_LEAVER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/clock.h"

/* After so long the others have not left with it. */
#define MST_LEAVER_NS (5 * MST_SECOND)

/* Zeroed: nobody has left. */
struct mst_leaver {
	uint32_t rank;
	uint64_t at_ns; /* 0: nobody has */
	bool told;
};

static inline void mst_leaver_left(struct mst_leaver *l, uint32_t rank, uint64_t now_ns)
{
	if (l->at_ns == 0)
		*l = (struct mst_leaver){ .rank = rank, .at_ns = now_ns, .told = l->told };
}

/* The rank has joined again. */
static inline void mst_leaver_joined(struct mst_leaver *l, uint32_t rank)
{
	if (l->rank == rank)
		l->at_ns = 0;
}

/* Is it to be told that it has left? Once. */
static inline bool mst_leaver_is_due(struct mst_leaver *l, uint64_t now_ns)
{
	bool due = l->at_ns != 0 && !l->told && now_ns - l->at_ns >= MST_LEAVER_NS;

	l->told |= due;
	return due;
}

#endif
