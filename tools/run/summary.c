/* SPDX-License-Identifier: MIT */
#include "tools/run/summary.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/host/exit.h"
#include "tools/figure.h"
#include "tools/report.h"
#include "tools/straggler.h"

#define FAILED_MAX 8u /* ranks that are named */

const char *mst_ending_state(const struct mst_ending *e)
{
	if (e->signo != 0)
		return "interrupted";
	return e->finished ? "finished" : "failed";
}

void mst_ending_miss(struct mst_ending *e, const char *fmt, ...)
{
	va_list args;

	if (e->missing_count == MST_MISSING_MAX)
		return;
	va_start(args, fmt);
	mst_reason_vset(&e->missing[e->missing_count], fmt, args);
	va_end(args);
	mst_text_clean(e->missing[e->missing_count++].text); /* it may name a file as typed */
}

/* The session of the rank ended, and the job went on. */
static bool is_gone(const struct mst_status_rank *row)
{
	return row->state == MST_RANK_LOST || row->state == MST_RANK_EVICTED;
}

/* The job has gone on with fewer workers, as an operator has asked for (muster workers). */
static bool is_left_out(const struct mst_ending *e, uint32_t rank)
{
	return e->job != NULL && rank >= e->job->job.workers;
}

/* A worker may be lost in two ways and leave the job well: musterd saw its lease or connection end;
 * or it was halted when the job ended, before its lease was over. */
static bool was_lost(const struct mst_ending *e, uint32_t rank)
{
	const struct mst_status_rank *row = mst_snapshot_rank(e->job, rank);

	return (row != NULL && is_gone(row)) || e->worker[rank].stopped || is_left_out(e, rank);
}

/* An operator has ended its session, so that its program could not go on. */
static bool was_evicted(const struct mst_ending *e, uint32_t rank)
{
	const struct mst_status_rank *row = mst_snapshot_rank(e->job, rank);

	return row != NULL && row->state == MST_RANK_EVICTED;
}

/* The signals that a program brings upon itself: those that leave a core by default, but for
 * SIGQUIT. The policy may do without the worker, but its program is broken. */
static bool is_crash(int signo)
{
	switch (signo) {
	case SIGABRT:
	case SIGBUS:
	case SIGFPE:
	case SIGILL:
	case SIGSEGV:
	case SIGSYS:
	case SIGTRAP:
	case SIGXCPU:
	case SIGXFSZ:
		return true;
	default:
		return false;
	}
}

/* Has another process taken the rank since, as one that was started by hand? */
static bool came_back(const struct mst_ending *e, uint32_t rank)
{
	const struct mst_status_rank *row = mst_snapshot_rank(e->job, rank);
	const struct mst_rank_course *course = &e->course[rank];

	return row != NULL && !is_gone(row) && course->known &&
	       row->incarnation > course->incarnation;
}

/* A program that says itself that it has failed has failed, whatever the policy made of it: unless
 * an operator wanted to go on without it. */
static bool ended_well(const struct mst_ending *e, uint32_t rank)
{
	int status = e->worker[rank].status;

	if (status == 0 || came_back(e, rank))
		return true;
	if (status > 0)
		return was_evicted(e, rank) || is_left_out(e, rank);
	return was_lost(e, rank) && !is_crash(-status);
}

/* In a job that has failed, workers that were left were ended by the run. */
static bool has_failed(const struct mst_ending *e, uint32_t rank)
{
	int status = e->worker[rank].status;
	bool by_run = !e->finished && (status == -SIGTERM || status == -SIGKILL);

	return e->worker[rank].pid != 0 && !by_run && !ended_well(e, rank);
}

int mst_ending_status(const struct mst_ending *e)
{
	if (e->signo != 0)
		return MST_EXIT_BY_SIGNAL + e->signo;
	if (!e->finished)
		return MST_EXIT_FAILED;
	for (uint32_t rank = 0; rank < e->workers; rank++)
		if (!ended_well(e, rank))
			return MST_EXIT_FAILED;
	return e->missing_count > 0 ? MST_EXIT_INCOMPLETE : MST_EXIT_DONE;
}

static void print_job(const struct mst_ending *e, FILE *out)
{
	const struct mst_status *job = &e->job->job;

	(void)fprintf(out, "%s after %s%s%s\n", mst_ending_state(e),
		      mst_figure_duration(job->elapsed_ns).text, e->why.text[0] != '\0' ? ": " : "",
		      e->why.text);
	(void)fprintf(out, "policy %s, workers %u, commits %" PRIu64 "%s, samples %.0f, loss %s\n",
		      mst_report_policy(job).text, e->workers, job->version,
		      mst_report_goal(job).text, job->samples, mst_figure_loss(job->loss).text);
	if (job->step_mean_ns == 0)
		return;
	(void)fprintf(out, "step: mean %s, p50 %s, p99 %s, max %s%s\n",
		      mst_figure_duration(job->step_mean_ns).text,
		      mst_figure_duration(job->step_p50_ns).text,
		      mst_figure_duration(job->step_p99_ns).text,
		      mst_figure_duration(job->step_max_ns).text, mst_report_saved(job).text);
}

static void print_exit(const struct mst_ending *e, uint32_t rank, FILE *out)
{
	const struct mst_child *worker = &e->worker[rank];
	const struct mst_status_rank *row = mst_snapshot_rank(e->job, rank);

	if (worker->pid == 0)
		(void)fprintf(out, "  not started");
	else if (worker->status >= 0)
		(void)fprintf(out, "  exit %d", worker->status);
	else
		(void)fprintf(out, "  signal %d, %s", -worker->status, strsignal(-worker->status));
	if (worker->stopped)
		(void)fprintf(out, ", was halted");
	if (e->course[rank].restarts > 0)
		(void)fprintf(out, ", started again %u time%s", e->course[rank].restarts,
			      e->course[rank].restarts > 1 ? "s" : "");
	if (worker->status != 0 && came_back(e, rank))
		(void)fprintf(out, ", came back");
	if (row != NULL && is_gone(row))
		(void)fprintf(out, ", %s", mst_report_rank_state(row->state));
	if (row != NULL && is_gone(row) && row->gone_at != MST_NOT_KNOWN)
		(void)fprintf(out, " at version %" PRIu64, row->gone_at);
	(void)fputc('\n', out);
}

static void print_rank(const struct mst_ending *e, uint32_t rank, FILE *out)
{
	static const struct mst_status_rank never;
	const struct mst_status_rank *row = mst_snapshot_rank(e->job, rank);

	if (row == NULL)
		row = &never;
	struct mst_late_share late = mst_report_late(row);
	(void)fprintf(out,
		      "%4u %9" PRIu64 " %8" PRIu64 " %8s %8" PRIu64 " %9" PRIu64 " %9" PRIu64
		      " %12s %9s %9s",
		      rank, row->counted, row->late, mst_figure_share(late.late, late.pushed).text,
		      row->stale, row->given_up, row->cancelled, mst_figure_staleness(row).text,
		      mst_figure_duration(row->ready_mean_ns).text,
		      mst_figure_duration(row->behind_mean_ns).text);
	print_exit(e, rank, out);
}

static bool any_started(const struct mst_ending *e)
{
	for (uint32_t rank = 0; rank < e->workers; rank++)
		if (e->worker[rank].pid != 0)
			return true;
	return false;
}

static void print_ranks(const struct mst_ending *e, FILE *out)
{
	(void)fprintf(out, "%4s %9s %8s %8s %8s %9s %9s %12s %9s %9s  %s\n", "rank", "counted",
		      "late", "share", "stale", "given up", "cancelled", "staleness", "ready",
		      "behind", "end");
	for (uint32_t rank = 0; rank < e->workers; rank++)
		print_rank(e, rank, out);
}

/* Why the exit status is not 0, although the job has finished. */
static void print_failed(const struct mst_ending *e, FILE *out)
{
	char verdict[64];
	uint32_t failed = 0;

	for (uint32_t rank = 0; rank < e->workers; rank++) {
		if (!has_failed(e, rank) || failed++ >= FAILED_MAX)
			continue;
		mst_child_ending(&e->worker[rank], verdict, sizeof(verdict));
		(void)fprintf(out, "failed: rank %u %s\n", rank, verdict);
	}
	if (failed > FAILED_MAX)
		(void)fprintf(out, "failed: %u ranks more\n", failed - FAILED_MAX);
}

void mst_summary_print(const struct mst_ending *e, FILE *out)
{
	struct mst_named_straggler straggler = mst_straggler_find(e->job);
	struct mst_late_share mean = mst_report_late_mean(e->job);
	char reason[512];

	print_job(e, out);
	if (e->finished)
		print_failed(e, out);
	for (uint32_t i = 0; i < e->missing_count; i++)
		(void)fprintf(out, "missing: %s\n", e->missing[i].text);
	mst_report_policies(&e->job->job, out);
	mst_report_metrics(&e->job->job, out);
	mst_report_state(&e->job->job, out);
	if (any_started(e)) /* else the reason would vanish above a table that says nothing */
		print_ranks(e, out);
	mst_report_norms(e->job, out);
	mst_report_counted(e->job, out);
	mst_report_leavers(e->job, out);
	if (mean.late > 0)
		(void)fprintf(out, "a fair share of late gradients would be %s of each rank's\n",
			      mst_figure_share(mean.late, mean.pushed).text);
	if (straggler.kind != MST_STRAGGLER_NONE) {
		mst_straggler_reason(&straggler, reason, sizeof(reason));
		(void)fprintf(out, "%s\n", reason);
	}
	(void)fflush(out);
}

static json_t *rank_json(const struct mst_ending *e, uint32_t rank)
{
	struct mst_status_rank never = { MST_STATUS_RANK_NOTHING, .rank = rank };
	const struct mst_status_rank *row = mst_snapshot_rank(e->job, rank);
	const struct mst_child *worker = &e->worker[rank];
	json_t *out = mst_report_rank(row != NULL ? row : &never);

	if (json_object_set_new(out, "exit",
				worker->pid == 0 ? json_null() : json_integer(worker->status)) <
		    0 ||
	    json_object_set_new(out, "failed", json_boolean(has_failed(e, rank))) < 0 ||
	    json_object_set_new(out, "halted", json_boolean(worker->stopped)) < 0 ||
	    json_object_set_new(out, "restarts", json_integer(e->course[rank].restarts)) < 0) {
		json_decref(out);
		return NULL;
	}
	return out;
}

json_t *mst_summary_json(const struct mst_ending *e)
{
	json_t *ranks = json_array(), *missing = json_array();
	json_t *out = mst_report_job(&e->job->job);
	int failed = 0;

	for (uint32_t rank = 0; rank < e->workers; rank++)
		failed |= json_array_append_new(ranks, rank_json(e, rank));
	for (uint32_t i = 0; i < e->missing_count; i++)
		failed |= json_array_append_new(missing, json_string(e->missing[i].text));
	failed |= json_object_set_new(out, "missing", missing);
	failed |= json_object_set_new(out, "workers", json_integer(e->workers));
	failed |= json_object_set_new(out, "state", json_string(mst_ending_state(e)));
	failed |= json_object_set_new(out, "why", json_string(e->why.text));
	failed |= json_object_set_new(out, "signal", json_integer(e->signo));
	failed |= json_object_set_new(out, "fair_late_share",
				      mst_report_share(mst_report_late_mean(e->job)));
	failed |= json_object_set_new(out, "ranks", ranks);
	if (failed != 0) {
		json_decref(out);
		return NULL;
	}
	return out;
}
