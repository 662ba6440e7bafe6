/* SPDX-License-Identifier: MIT */
/* One measurement: servers and workers of their own, from the first process to the last. */
#ifndef MST_TOOLS_BENCH_CELL_H
#define MST_TOOLS_BENCH_CELL_H

#include "common/kernels/select.h"
#include "tools/bench/figures.h"
#include "tools/bench/options.h"
#include "tools/signals.h"

struct mst_bench_cell {
	uint32_t workers;
	uint64_t bytes; /* of one worker's gradient */
	uint32_t servers;
	uint32_t shards; /* that the leader had */
	struct mst_bench_figures figures;
	uint64_t server_cpu_ns; /* of all servers, their starts and ends included */
	uint64_t server_rss_bytes;
	char kernels[MST_KERNELS_TEXT]; /* of the servers */
	uint32_t pauses;                /* of a server's thread that waits, before it yields */
};

/* Measures with cell->workers, cell->bytes and cell->kernels, which it sets in the environment of
 * what it starts, and fills in the rest; logs what goes wrong.
 * Return: the exit status that it would have by itself. */
int mst_bench_cell_run(struct mst_bench_cell *cell, const struct mst_bench_line *line,
		       struct mst_signals *signals);

#endif
