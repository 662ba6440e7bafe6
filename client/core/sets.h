/* SPDX-License-Identifier: MIT */
/*
 * The records of the last versions that a worker was given: who is in them, and with what. Where
 * workers own, a generation of servers begins without them, and asks the workers.
 *
 * A ring. The shares of a record that arrives are read into it, and stay where they are: to hold
 * one version more costs no copy of them, and no allocation. Besides the versions that were given
 * it has room for one that has arrived and was not given yet.
 */
#ifndef MST_CLIENT_CORE_SETS_H
#define MST_CLIENT_CORE_SETS_H

#include <stdint.h>

#include "muster/muster.h"

struct mst_held;

struct mst_sets {
	struct mst_held *cell;      /* [count]; without a version: empty */
	struct muster_share *share; /* [count][room] */
	uint32_t count, room;
	uint32_t at; /* of the newest */
};

struct mst_sets_figures {
	uint32_t history; /* so many versions that were given; 0: one */
	uint32_t workers;
};

/* 0 or -ENOMEM. */
int mst_sets_init(struct mst_sets *s, const struct mst_sets_figures *f);
void mst_sets_fini(struct mst_sets *s); /* of a zeroed struct too */
/* Makes room for what another session needs, where there is less. What it has stays. 0 or
 * -ENOMEM. */
int mst_sets_fit(struct mst_sets *s, const struct mst_sets_figures *f);

/* Where the shares of a @version's record are to be read to. @given: the version of the last
 * outcome; a newer one that the ring has is replaced. */
struct muster_share *mst_sets_place(struct mst_sets *s, uint64_t version, uint64_t given);
/* The record has been read, with its shares there. */
void mst_sets_keep(struct mst_sets *s, const struct mst_held *held);

/* NULL: the ring does not have it. */
const struct mst_held *mst_sets_find(const struct mst_sets *s, uint64_t version);
/* Drops those after @version, which is the newest then; MST_VERSION_NONE: drops all. Return: as
 * mst_sets_find(). */
const struct mst_held *mst_sets_go_back(struct mst_sets *s, uint64_t version);

#endif
