/* SPDX-License-Identifier: MIT */
/*
 * muster bench: how long a step takes, with real processes and every result checked.
 *
 * A row of the table is one measurement with a musterd of its own, so that none inherits what
 * another has left behind. The workers are this program again (worker.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/host/limits.h"
#include "common/host/processors.h"
#include "common/kernels/select.h"
#include "common/kernels/tune.h"
#include "common/transport/spin.h"
#include "server/core/policy/rule.h"
#include "tools/bench/cell.h"
#include "tools/bench/print.h"
#include "tools/bench/worker.h"
#include "tools/command.h"
#include "tools/keys.h"
#include "tools/report.h"
#include "tools/secure.h"

static int print_help(void)
{
	(void)puts(
		"usage: muster bench [options]\n\n"
		"Measures steps of a server and its workers on this host, for each number of "
		"workers and each\nsize, and checks every element of every result. Between "
		"two steps, and not timed, every element\nof the gradient is rewritten. The line "
		"\"# kernels\" names what the server sums with, as\nMUSTER_KERNELS takes it, and "
		"how often its threads pause before they yield.\n\n"
		"Options of the benchmark:");
	mst_passthrough_help(&mst_bench_passthrough, "musterd");
	return MST_EXIT_DONE;
}

/* What the measurements have come to so far. */
struct measurements {
	const struct mst_bench_line *line;
	FILE *table;  /* NULL: quiet */
	json_t *rows; /* NULL: no JSON is wanted, or no memory for it */
	bool json_failed;
	char named[MST_KERNELS_TEXT]; /* by MUSTER_KERNELS, or the best instruction set */
	struct mst_bench_cell told;   /* the row before: its kernels and pauses */
};

/* A wrong result is a failure, whatever it was good for. */
static int judge(const struct mst_bench_cell *cell)
{
	if (cell->figures.wrong > 0) {
		mst_error("workers %u, %llu bytes: %llu elements of results are wrong",
			  cell->workers, (unsigned long long)cell->bytes,
			  (unsigned long long)cell->figures.wrong);
		return MST_EXIT_FAILED;
	}
	if (cell->figures.samples > 0)
		return MST_EXIT_DONE;
	mst_error("workers %u, %llu bytes: no step was timed", cell->workers,
		  (unsigned long long)cell->bytes);
	return MST_EXIT_FAILED;
}

/* What a server would measure is measured here, so that the table can name it. */
static void kernels_choose(const struct measurements *all, struct mst_bench_cell *cell)
{
	enum muster_type type = (enum muster_type)all->line->options.type;
	uint32_t group = all->line->options.server.group;

	(void)mst_kernels_select(all->named);
	(void)mst_kernels_tune(type, type, cell->workers < group ? cell->workers : group,
			       (cell->workers + UINT64_C(1)) * cell->bytes);
	mst_kernels_text(cell->kernels);
}

/* As server/plan/plan.c chooses. */
static void pauses_choose(const struct mst_bench_line *line, struct mst_bench_cell *cell)
{
	const struct mst_server_options *o = &line->options.server;
	struct mst_networks networks;
	struct mst_reason why;

	(void)mst_server_options_networks(o, &networks, &why); /* checked */
	bool together = networks.count == 1 && mst_networks_map(&networks);

	cell->pauses = o->spin_pauses != 0
			       ? o->spin_pauses
			       : mst_spin_pauses_of(together ? cell->workers + o->servers : 1,
						    mst_host_processors(""));
}

static void print_row(struct measurements *all, const struct mst_bench_cell *cell)
{
	if (strcmp(cell->kernels, all->told.kernels) != 0 || cell->pauses != all->told.pauses)
		(void)fprintf(all->table, "# kernels %s; pauses %u\n", cell->kernels, cell->pauses);
	all->told = *cell;
	mst_bench_print_row(all->line, cell, all->table);
}

static int measure_cell(struct measurements *all, struct mst_bench_cell *cell,
			struct mst_signals *signals)
{
	kernels_choose(all, cell);
	pauses_choose(all->line, cell);
	int status = mst_bench_cell_run(cell, all->line, signals);

	if (status != MST_EXIT_DONE)
		return status;
	if (all->table != NULL)
		print_row(all, cell);
	if (all->line->options.json != NULL &&
	    json_array_append_new(all->rows, mst_bench_json(all->line, cell)) < 0)
		all->json_failed = true;
	return judge(cell);
}

/* After a measurement that fails the others are made all the same, but not after a signal.
 * Return: the exit status. */
static int measure_all(struct measurements *all, struct mst_signals *signals)
{
	const struct mst_bench_line *line = all->line;
	int status = MST_EXIT_DONE;

	for (uint32_t i = 0; i < line->workers_count * line->bytes_count; i++) {
		struct mst_bench_cell cell = {
			.workers = line->workers[i / line->bytes_count],
			.bytes = line->bytes[i % line->bytes_count],
		};
		int own = measure_cell(all, &cell, signals);

		if (own >= MST_EXIT_BY_SIGNAL)
			return own;
		status = own != MST_EXIT_DONE ? MST_EXIT_FAILED : status;
	}
	return status;
}

static int write_json(const struct measurements *all)
{
	if (all->rows == NULL || all->json_failed) {
		mst_error("no memory for the figures as JSON");
		return -ENOMEM;
	}
	return mst_report_write(all->rows, all->line->options.json);
}

static int bench(const struct mst_bench_line *line)
{
	const struct mst_bench_options *o = &line->options;
	bool json_only = o->json != NULL && strcmp(o->json, "-") == 0;
	struct measurements all = {
		.line = line,
		.table = o->quiet    ? NULL
			 : json_only ? stderr
				     : stdout,
		.rows = o->json != NULL ? json_array() : NULL,
	};
	const char *named = getenv("MUSTER_KERNELS");
	struct mst_signals signals;
	int rc = mst_signals_open(&signals);

	if (named == NULL || mst_kernels_select(named) != 0)
		named = mst_kernels_name(0);
	(void)snprintf(all.named, sizeof(all.named), "%s", named);
	if (rc < 0) {
		mst_error("cannot begin: %s",
			  mst_limit_refused("signalfd", rc, &(struct mst_reason){ 0 }));
		json_decref(all.rows);
		return MST_EXIT_FAILED;
	}
	if (all.table != NULL)
		mst_bench_print_head(line, all.table);
	int status = measure_all(&all, &signals);
	mst_signals_close(&signals);
	if (all.table != NULL)
		mst_bench_print_foot(line, all.table);
	if (o->json != NULL && write_json(&all) < 0)
		status = mst_exit_incomplete(status);
	json_decref(all.rows);
	return status;
}

int mst_bench_command(int argc, char **argv)
{
	struct mst_bench_line line;
	struct mst_reason why;

	if (argc == 3 && strcmp(argv[1], MST_BENCH_WORKER) == 0)
		return mst_bench_worker(argv[2]);
	mst_secure_forget();
	int rc = mst_bench_line_init(&line, argc, argv, &why);
	int status = rc < 0 ? mst_refuse("bench", "%s", why.text) : MST_EXIT_DONE;
	if (rc == 0 && line.options.help) {
		status = print_help();
	} else if (rc == 0) {
		mst_log_open("muster",
			     MST_LOG_WARN); /* the beginning of each measurement is no news */
		status = bench(&line);
	}
	mst_bench_line_fini(&line);
	mst_keys_remove();
	return status;
}
