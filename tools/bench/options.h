/* SPDX-License-Identifier: MIT */
/*
 * The options of `muster bench`: its own, and those of the server that it passes on to musterd
 * (tools/passthrough.h).
 */
#ifndef MST_TOOLS_BENCH_OPTIONS_H
#define MST_TOOLS_BENCH_OPTIONS_H

#include "common/base/reason.h"
#include "common/config/option.h"
#include "muster/muster.h"
#include "server/options/options.h"
#include "tools/passthrough.h"

#define MST_BENCH_LIST_MAX 32u

enum mst_bench_owner { MST_BENCH_OWNER_AUTO, MST_BENCH_OWNER_WORKERS, MST_BENCH_OWNER_SERVERS };

struct mst_bench_options {
	struct mst_server_options server; /* workers and owner are set for each measurement */
	const char *workers, *sizes, *json;
	uint32_t buffers, type, owner; /* slot|own; enum muster_type; enum mst_bench_owner */
	uint32_t samples, warmup;      /* samples 0: as many as the budget allows */
	uint64_t budget_ns, settle_ns, seed;
	struct mst_option_list delay;
	bool latency_of_last, quiet, help;
};

/* A command line and what it came to. */
struct mst_bench_line {
	struct mst_bench_options options;
	uint32_t workers[MST_BENCH_LIST_MAX], workers_count;
	uint64_t bytes[MST_BENCH_LIST_MAX]; /* of one worker's gradient */
	uint32_t bytes_count;
	enum muster_owner owner;
	char **flags;                     /* for musterd; ends with NULL */
	struct mst_options parsed, fixed; /* own the strings of `options` */
};

/* All rows: the benchmark's own, and the server's that are passed on. */
extern struct mst_passthrough mst_bench_passthrough;

/* Reads argv[1..] and checks all of it, unless help is wanted; argv must outlive the line. @why: a
 * sentence. Call mst_bench_line_fini() in any case. Return: 0; -EINVAL; -ENOMEM; or what opening a
 * file gives. */
int mst_bench_line_init(struct mst_bench_line *line, int argc, char **argv, struct mst_reason *why);
void mst_bench_line_fini(struct mst_bench_line *line);

/* Contributions that make a version of @workers. */
uint32_t mst_bench_quorum(const struct mst_bench_line *line, uint32_t workers);

#endif
