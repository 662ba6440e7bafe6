/* SPDX-License-Identifier: MIT */
/*
 * The archives of a world's servers. A part takes a drawn time of the world, from none to many
 * leases; writing may fail as a full disk would, or never end. What is written is compared with
 * what it was when writing began, given to the observer, and kept on the disk.
 */
#ifndef MST_TESTS_SIM_ARCHIVE_H
#define MST_TESTS_SIM_ARCHIVE_H

#include "server/control/job/archive.h"
#include "tests/sim/plan.h"
#include "tests/sim/world.h"

void archives_begin(const struct sim_plan *plan);
/* The archive of this server, which is a process. */
struct mst_archive *archives_of(uint32_t server, struct sim_process *process);
/* The server ends: what is under way is dropped, and nothing of the server is read any more. */
void archives_stop(uint32_t server);

#endif
