/* SPDX-License-Identifier: MIT */
#include "tools/tune/trial.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/reason.h"
#include "tools/command.h"
#include "tools/run/supervisor.h"

#define ENDING_LEN 96u
#define NAMES_LEN 800u

/* ---- the command line ---- */

static size_t count_of(char *const *words)
{
	size_t count = 0;

	while (words[count] != NULL)
		count++;
	return count;
}

/* Composes the line of muster run: the flags as they were typed, what this command adds, the
 * program. */
static int compose(struct mst_trial_line *line, const struct mst_tune_line *tune)
{
	size_t flags = count_of(tune->flags), program = count_of(tune->program), count = 0;

	line->argv = calloc(flags + program + 6, sizeof(line->argv[0]));
	if (line->argv == NULL)
		return -ENOMEM;
	(void)snprintf(line->option[0], sizeof(line->option[0]), "--policy=%s", line->policy);
	(void)snprintf(line->option[1], sizeof(line->option[1]), "--grace=auto");
	if (tune->options.grace_ns != 0)
		(void)snprintf(line->option[1], sizeof(line->option[1]), "--grace=%" PRIu64 "ns",
			       tune->options.grace_ns);
	line->argv[count++] = "run";
	memcpy(&line->argv[count], tune->flags, flags * sizeof(line->argv[0]));
	count += flags;
	line->argv[count++] = line->option[0];
	line->argv[count++] = line->option[1];
	line->argv[count++] = "--quiet";
	line->argv[count++] = "--";
	memcpy(&line->argv[count], tune->program, program * sizeof(line->argv[0]));
	return (int)(count + program);
}

static bool is_set(const char *option)
{
	return option != NULL && option[0] != '\0';
}

/* Would the runs write to the same files, or go on from the same checkpoint? */
static bool lasts(const struct mst_server_options *o)
{
	return is_set(o->state) || is_set(o->resume) || is_set(o->record);
}

int mst_trial_line_init(struct mst_trial_line *line, const struct mst_tune_line *tune,
			const char *policy, struct mst_reason *why)
{
	*line = (struct mst_trial_line){ .argv = NULL };
	(void)snprintf(line->policy, sizeof(line->policy), "%s", policy);
	int argc = compose(line, tune);
	if (argc < 0) {
		mst_reason_set(why, "no memory");
		return argc;
	}
	int rc = mst_run_line_init(&line->run, argc, line->argv, why);
	/* Standard output is the table's: what workers print there goes to standard error. */
	line->run.options.json = "-";
	if (rc == 0 && lasts(&line->run.options.server)) {
		mst_reason_set(why, "each run begins anew, so the file of -c may not say "
				    "state, resume or record");
		rc = -EINVAL;
	}
	if (rc == 0 && line->run.options.server.workers == 0) {
		mst_reason_set(why, "how many workers? -n W says it");
		rc = -EINVAL;
	}
	return rc == 0 ? mst_server_options_check(&line->run.options.server, why) : rc;
}

void mst_trial_line_fini(struct mst_trial_line *line)
{
	mst_run_line_fini(&line->run);
	free(line->argv);
}

/* ---- a run ---- */

/* What a run that failed has failed of. A job that finished may have a worker that failed. */
static void blame(const struct mst_ending *e, struct mst_reason *out)
{
	char verdict[ENDING_LEN];

	mst_reason_set(out, "%s", e->why.text[0] != '\0' ? e->why.text : "it has failed");
	for (uint32_t rank = 0; e->finished && rank < e->workers; rank++) {
		if (e->worker[rank].status == 0)
			continue;
		mst_child_ending(&e->worker[rank], verdict, sizeof(verdict));
		mst_reason_set(out, "rank %" PRIu32 " %s", rank, verdict);
		return;
	}
}

static const struct mst_status_metric *find(const struct mst_status *job, const char *name)
{
	for (uint32_t i = 0; i < job->metric_count; i++)
		if (strcmp(job->metric[i].newest.name, name) == 0)
			return &job->metric[i];
	return NULL;
}

static void name_metrics(const struct mst_status *job, const char *wanted, struct mst_reason *out)
{
	char names[NAMES_LEN] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < job->metric_count && used < sizeof(names); i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s\"%s\"",
					 i > 0 ? ", " : "", job->metric[i].newest.name);
	if (used > 0)
		mst_reason_set(out, "no worker has reported \"%.63s\"; what was reported is %s",
			       wanted, names);
	else
		mst_reason_set(
			out,
			"no worker has reported \"%.63s\", or anything else: does the program "
			"call muster_report()?",
			wanted);
}

static int judge(const struct mst_ending *e, const char *metric, struct mst_trial *out,
		 struct mst_reason *why)
{
	const struct mst_status *job = &e->job->job;
	const struct mst_status_metric *m = find(job, metric);
	int status = mst_ending_status(e);

	if (status != MST_EXIT_DONE && status != MST_EXIT_INCOMPLETE) {
		blame(e, why);
		return status;
	}
	if (m == NULL) {
		name_metrics(job, metric, why);
		return MST_EXIT_FAILED;
	}
	out->value = m->newest.value;
	out->version = m->newest.version;
	out->wall_ns = job->elapsed_ns;
	return MST_EXIT_DONE;
}

int mst_trial_run(const struct mst_trial_line *line, const char *metric,
		  struct mst_signals *signals, struct mst_trial *out, struct mst_reason *why)
{
	struct mst_supervisor_cfg cfg = { .line = &line->run, .signals = signals };
	struct mst_supervisor *supervisor;
	struct mst_ending ending;
	char seed[24];

	(void)snprintf(seed, sizeof(seed), "%" PRIu64, out->seed);
	if (setenv("MUSTER_SEED", seed, 1) != 0 || mst_supervisor_new(&cfg, &supervisor) < 0) {
		mst_reason_set(why, "no memory for a run");
		return MST_EXIT_FAILED;
	}
	mst_supervisor_run(supervisor, &ending);
	int status = judge(&ending, metric, out, why);
	mst_supervisor_free(supervisor);
	return status;
}
