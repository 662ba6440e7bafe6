/* SPDX-License-Identifier: MIT */
/* Finds the caller that a further rail belongs to, and the incomplete caller that makes room for
 * the next. Pure. */
#ifndef MST_VERBS_CALLERS_H
#define MST_VERBS_CALLERS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/transport/transport.h"

/* A place of the listener's table. */
struct mst_verbs_coming {
	bool here; /* a caller that has not come with all its rails; else the rest is unused */
	uint64_t since_ns; /* its first request came */
	struct mst_origin from;
	uint8_t token[MST_TOKEN_LEN];
};

/* The place of the half-come caller that has shown this token; -1: nobody has. A caller is known by
 * its token alone: whatever else its requests say, they are of one caller, and take one place. */
int mst_verbs_callers_find(const struct mst_verbs_coming *coming, uint32_t count,
			   const uint8_t *token);

/*
 * The table is full: the place that is to be given up; -1: nobody in it is half come.
 *
 * It is the oldest of the address that has the most. So an address that begins callers without
 * number loses its own: a caller of another address, which is there once or a few times, keeps its
 * place between its first rail and its last. Of addresses with equally many it is the oldest.
 */
int mst_verbs_callers_yield(const struct mst_verbs_coming *coming, uint32_t count);

#endif
