/* SPDX-License-Identifier: MIT */
/*
 * The parameters of versions. The newest few are kept in any case, and each other one for as long
 * as a worker computes on it. So a version costs its memory once, however many workers read it.
 */
#ifndef MST_TOOLS_SIM_LEARN_VERSIONS_H
#define MST_TOOLS_SIM_LEARN_VERSIONS_H

#include <stdint.h>

struct mst_sim_version {
	uint64_t number;
	uint32_t readers; /* one of them is the list of the newest */
	struct mst_sim_version *next;
	float *at;
};

struct mst_sim_versions {
	uint64_t elems;
	uint32_t room;                   /* how many of the newest are kept */
	struct mst_sim_version **newest; /* at number % room; NULL: there is none yet */
	struct mst_sim_version *unused;
};

/* Memory for a vector of f32, at the beginning of a cache line; NULL: there is none. */
float *mst_sim_vector_new(uint64_t elems);

/* @room: 2 or more. Return: 0 or -ENOMEM. Call mst_sim_versions_fini() in any case. */
int mst_sim_versions_init(struct mst_sim_versions *v, uint64_t elems, uint32_t room);
/* Nobody may hold a version any more. Accepts one that is all zero. */
void mst_sim_versions_fini(struct mst_sim_versions *v);

/* The next version, whose elements the caller writes. The oldest of the newest is no longer kept.
 * Return: NULL: no memory. */
struct mst_sim_version *mst_sim_versions_add(struct mst_sim_versions *v, uint64_t number);
/* The version with this number, which is one of the newest. */
struct mst_sim_version *mst_sim_versions_at(const struct mst_sim_versions *v, uint64_t number);
struct mst_sim_version *mst_sim_version_hold(struct mst_sim_version *version);
void mst_sim_version_drop(struct mst_sim_versions *v, struct mst_sim_version *version);

#endif
