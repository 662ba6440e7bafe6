/* SPDX-License-Identifier: MIT */
#include "tools/bench/cell.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/host/limits.h"
#include "common/kernels/sum.h"
#include "tools/bench/worker.h"
#include "tools/command.h"
#include "tools/run/supervisor.h"

#define SAMPLES_MAX 10000u /* where nobody says how many */
#define GRACE_NS (10 * MST_SECOND)
#define FIXED_MAX 9u

static struct mst_bench_plan plan_of(const struct mst_bench_cell *cell,
				     const struct mst_bench_line *line)
{
	const struct mst_bench_options *o = &line->options;
	uint32_t samples = o->samples != 0 ? o->samples : SAMPLES_MAX;
	struct mst_bench_plan plan = {
		.elems = cell->bytes / mst_type_bytes((enum muster_type)o->type),
		.type = (enum muster_type)o->type,
		.owner = line->owner,
		.own_buffers = o->buffers == 1,
		.last_alone = o->latency_of_last,
		.workers = cell->workers,
		.quorum = mst_bench_quorum(line, cell->workers),
		.warmup = o->warmup,
		.steps = o->warmup + samples,
		.begun_ns = mst_now_ns(),
		.budget_ns = o->samples != 0 ? MST_NEVER : o->budget_ns,
		.settle_ns = o->settle_ns,
		.seed = o->seed,
		.delay_count = o->delay.count,
	};

	for (uint32_t i = 0; i < o->delay.count; i++)
		(void)snprintf(plan.delay[i], sizeof(plan.delay[i]), "%s", o->delay.item[i]);
	return plan;
}

/* Flags of musterd: what the benchmark needs, and what was typed. Return: an array to free(). */
static char **flags_of(const struct mst_bench_line *line)
{
	static char *const workers_own[] = { "--owner=workers", NULL };
	static char *const servers_own[] = { "--owner=servers", "--optimizer=sgd:lr=1,momentum=0",
					     "--lr-scale=none", NULL };
	char *const *fixed = line->owner == MUSTER_WORKERS_OWN ? workers_own : servers_own;
	size_t typed = 0, count = 0;

	while (line->flags[typed] != NULL)
		typed++;
	char **flags = calloc(FIXED_MAX + typed + 1, sizeof(flags[0]));
	if (flags == NULL)
		return NULL;
	flags[count++] = "--log-level=warn"; /* unless another is typed: the last one holds */
	flags[count++] = "--guard=worker";   /* its gradients are finite; likewise */
	flags[count++] = "--on-loss=fail";
	flags[count++] = "--job=bench";
	while (*fixed != NULL)
		flags[count++] = *fixed++;
	memcpy(&flags[count], line->flags, typed * sizeof(flags[0]));
	return flags;
}

static void add_server(struct mst_bench_cell *cell, const struct mst_child *server)
{
	cell->servers++;
	cell->server_cpu_ns += server->cpu_ns;
	cell->server_rss_bytes += server->rss_bytes;
}

/* Return: the exit status. */
static int run_supervisor(const struct mst_run_line *run, struct mst_signals *signals,
			  struct mst_bench_cell *cell)
{
	struct mst_supervisor_cfg cfg = { .line = run, .signals = signals };
	struct mst_supervisor *supervisor;
	struct mst_ending ending;

	if (mst_supervisor_new(&cfg, &supervisor) < 0) {
		mst_error("no memory for %u workers", cell->workers);
		return MST_EXIT_FAILED;
	}
	mst_supervisor_run(supervisor, &ending);
	int status = mst_ending_status(&ending);
	cell->shards = ending.job->job.shards;
	add_server(cell, ending.musterd);
	for (uint32_t i = 0; i < ending.followers; i++)
		add_server(cell, &ending.follower[i]);
	if (status == MST_EXIT_FAILED)
		mst_error("workers %u, %llu bytes: %s", cell->workers,
			  (unsigned long long)cell->bytes,
			  ending.why.text[0] != '\0' ? ending.why.text : "a worker failed");
	mst_supervisor_free(supervisor);
	return status;
}

static int run_plan(struct mst_bench_cell *cell, const struct mst_bench_line *line,
		    struct mst_signals *signals, int plan_fd)
{
	char path[64];
	char **flags = flags_of(line);
	struct mst_run_line run = {
		.options = { .server = line->options.server,
			     .json = line->options.json,
			     .grace_ns = GRACE_NS,
			     .quiet = true },
		.flags = flags,
		.program = (char *[]){ "/proc/self/exe", "bench", MST_BENCH_WORKER, path, NULL },
	};

	if (flags == NULL) {
		mst_error("no memory for the server's options");
		return MST_EXIT_FAILED;
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), plan_fd);
	run.options.server.workers = cell->workers;
	run.options.server.listen = "127.0.0.1:0";
	run.options.server.job = "bench";
	(void)setenv("MUSTER_KERNELS", cell->kernels, 1);
	int status = run_supervisor(&run, signals, cell);
	free(flags);
	return status;
}

int mst_bench_cell_run(struct mst_bench_cell *cell, const struct mst_bench_line *line,
		       struct mst_signals *signals)
{
	struct mst_bench_plan want = plan_of(cell, line), *plan;
	int fd;
	int rc = mst_bench_plan_new(&want, &plan, &fd);

	if (rc < 0) {
		mst_error("no shared memory for the records of %u workers: %s", cell->workers,
			  mst_limit_failed(rc, 0, &(struct mst_reason){ 0 }));
		return MST_EXIT_FAILED;
	}
	int status = run_plan(cell, line, signals, fd);
	if (mst_bench_figures_make(plan, &cell->figures) < 0) {
		mst_error("no memory for the samples");
		status = MST_EXIT_FAILED;
	}
	mst_bench_plan_free(plan);
	(void)close(fd);
	return status;
}
