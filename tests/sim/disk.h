/* SPDX-License-Identifier: MIT */
/*
 * The disk that all servers of a world see: parts, and the manifests that make checkpoints of them.
 * What is on it outlives the servers. Their code to go on from a checkpoint reads it through the
 * functions of common/checkpoint that read files: disk.c has them for the simulation.
 */
#ifndef MST_TESTS_SIM_DISK_H
#define MST_TESTS_SIM_DISK_H

#include "common/checkpoint/manifest/manifest.h"

#define SIM_VECTORS_MAX 4u

struct sim_part {
	struct mst_checkpoint_id id;
	uint32_t part, parts;
	uint64_t first, count;
	uint32_t vectors;
	struct sim_vector {
		char group[MST_CHECKPOINT_GROUP_LEN];
		float *bits;
	} vector[SIM_VECTORS_MAX];
	struct sim_part *next; /* written before it */
};

/* It is empty. */
void disk_begin(void);
void disk_keep(struct sim_part *part);
/* Fills in the parts, which must be there, and keeps the manifest. What is wrong with it is a
 * violation. */
void disk_complete(struct mst_checkpoint_manifest *m);
/* A figure that the newest manifest keeps. Return: false: it keeps none of that name. */
bool disk_figure(const char *name, double *out);
/* The version of the newest checkpoint; 0: there is none. */
uint64_t disk_newest(void);

#endif
