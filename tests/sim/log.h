/* SPDX-License-Identifier: MIT */
/*
 * The log of one server in a world: the real one, from mst_log() over the queue to the loop of the
 * thread that writes. That thread is a fiber, its locks and waits are the world's, and standard
 * error is a pipe whose reader may stand still.
 *
 * Whatever the reader does, a call of mst_log() takes no time. What the reader gets are the lines
 * that were said, in their order, and where lines are missing it is told how many.
 */
#ifndef MST_TESTS_SIM_LOG_H
#define MST_TESTS_SIM_LOG_H

#include <stdint.h>

#include "common/base/log.h"
#include "tests/sim/world.h"

/* From now on the lines of this process go to that log. NULL: this world has none. */
void log_begin(struct sim_process *of);
/* The process ends, and gives its log the time that exit() does. Its last fiber calls this. */
void log_end(struct sim_process *p);

/* The reader of the log stands still for a while. */
void log_block(uint64_t span_ns);
/* A line of the process whose fiber runs. If it is another's: nothing. */
void log_line(enum mst_log_level level, char *line);

#endif
