/* SPDX-License-Identifier: MIT */
/*
 * The error of a training as it goes on: points at equal distances of time, of commits or of
 * samples, the start, and the end.
 */
#ifndef MST_TOOLS_SIM_LEARN_CURVE_H
#define MST_TOOLS_SIM_LEARN_CURVE_H

#include <stddef.h>
#include <stdint.h>

/* A curve with more points is refused: a longer distance is meant. */
#define MST_SIM_POINTS_MAX 1000000u

enum mst_sim_every_unit { MST_SIM_EVERY_TIME, MST_SIM_EVERY_COMMITS, MST_SIM_EVERY_SAMPLES };

struct mst_sim_every {
	enum mst_sim_every_unit unit;
	double distance; /* above 0; in ns, commits or samples */
};

/* "500ms", "100commits" or "6400samples". Return: 0 or -EINVAL. */
int mst_sim_every_parse(const char *text, struct mst_sim_every *out);

struct mst_sim_point {
	uint64_t time_ns, commits; /* since the start of the job */
	double samples;
	double error;
	double loss; /* mean of what was counted since the point before; NaN: nothing was */
};

struct mst_sim_curve {
	struct mst_sim_point *point;
	uint32_t count, room;
};

/* The last point. Only of a curve that has one. */
static inline const struct mst_sim_point *mst_sim_curve_end(const struct mst_sim_curve *c)
{
	return &c->point[c->count - 1];
}

/* Return: 0; -ENOMEM; -E2BIG: it has MST_SIM_POINTS_MAX already. */
int mst_sim_curve_add(struct mst_sim_curve *c, const struct mst_sim_point *point);
void mst_sim_curve_fini(struct mst_sim_curve *c); /* accepts one that is all zero */

#endif
