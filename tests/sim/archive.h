/* SPDX-License-Identifier: MIT */
/*
 * The archives of a world's servers, and the disk that all of them see. A part takes a drawn time
 * of the world, from none to many leases; writing may fail as a full disk would, or never end. What
 * is written is compared with what it was when writing began, and given to the observer.
 */
#ifndef MST_TESTS_SIM_ARCHIVE_H
#define MST_TESTS_SIM_ARCHIVE_H

#include "server/control/archive.h"
#include "tests/sim/plan.h"
#include "tests/sim/world.h"

#define SIM_VECTORS_MAX 4u

/* A part on the disk. */
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

void archives_begin(const struct sim_plan *plan);
/* Of this server, which is a process. */
struct mst_archive *archives_of(uint32_t server, struct sim_process *process);
/* The server ends: what is under way is dropped, and nothing of the server is read any more. */
void archives_stop(uint32_t server);

#endif
