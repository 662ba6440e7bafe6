/* SPDX-License-Identifier: MIT */
/*
 * How long after the start of a step each gradient arrives that is computed on the version that the
 * step began with. A late gradient counts for the step that its worker began with, so it tells how
 * long that step would have taken with one worker more. Pure.
 */
#ifndef MST_SERVER_CORE_POLICY_STARTS_H
#define MST_SERVER_CORE_POLICY_STARTS_H

#include <stdbool.h>
#include <stdint.h>

/* A gradient that is later than by so many steps is not measured. */
#define MST_STARTS_KEPT 16u

struct mst_arrival {
	uint32_t before; /* gradients that the version it is computed on was made of */
	uint32_t number; /* it is the so manieth on that version, from 1 */
	double after_s;
};

struct mst_starts {
	struct mst_start {
		uint64_t version, opened_ns;
		uint32_t before, count;
		bool known;
	} step[MST_STARTS_KEPT];
};

/* A step begins, in which workers compute on @version, which was made of @before gradients. */
void mst_starts_open(struct mst_starts *a, uint64_t version, uint32_t before, uint64_t now_ns);
/* A gradient on @version is there. Return: false: the start of that step is not known any more. */
bool mst_starts_add(struct mst_starts *a, uint64_t version, uint64_t now_ns,
		    struct mst_arrival *out);

#endif
