/* SPDX-License-Identifier: MIT */
#include "tools/report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"

#define FORMAT (JSON_INDENT(2) | JSON_REAL_PRECISION(9))

const char *mst_report_job_state(uint32_t state)
{
	static const char *const names[] = {
		[MST_JOB_GATHERING] = "gathering",
		[MST_JOB_RUNNING] = "running",
		[MST_JOB_FINISHED] = "finished",
		[MST_JOB_FAILED] = "failed",
	};

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "unknown";
}

const char *mst_report_rank_state(uint32_t state)
{
	static const char *const names[] = {
		[MST_RANK_ABSENT] = "absent", [MST_RANK_JOINED] = "joined",
		[MST_RANK_LIVE] = "live",     [MST_RANK_LEFT] = "left",
		[MST_RANK_LOST] = "lost",
	};

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "unknown";
}

const char *mst_report_server_state(uint32_t state)
{
	static const char *const names[] = {
		[MST_SERVER_AWAITED] = "awaited",
		[MST_SERVER_JOINED] = "joined",
		[MST_SERVER_READY] = "ready",
		[MST_SERVER_GONE] = "gone",
	};

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "unknown";
}

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

/* JSON has no NaN: a loss that nobody told is null. */
static json_t *real_or_null(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

json_t *mst_report_job(const struct mst_status *job)
{
	return json_pack(
		"{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:s, s:o}",
		"job", job->job, "policy", job->policy, "state", mst_report_job_state(job->state),
		"workers", (json_int_t)job->workers, "live", (json_int_t)job->live, "shards",
		(json_int_t)job->shards, "commits", (json_int_t)job->version, "samples",
		job->samples, "wall_s", seconds(job->elapsed_ns), "mean_step_ms",
		ms(job->step_mean_ns), "p50_step_ms", ms(job->step_p50_ns), "p99_step_ms",
		ms(job->step_p99_ns), "max_step_ms", ms(job->step_max_ns), "saved_s",
		seconds(job->saved_ns), "why", job->why, "loss", real_or_null(job->loss));
}

json_t *mst_report_server(const struct mst_status_server *server)
{
	return json_pack("{s:s, s:I, s:I, s:s}", "state", mst_report_server_state(server->state),
			 "first", (json_int_t)server->first, "count", (json_int_t)server->count,
			 "door", server->door);
}

json_t *mst_report_rank(const struct mst_status_rank *row)
{
	return json_pack("{s:I, s:I, s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f}",
			 "rank", (json_int_t)row->rank, "incarnation", (json_int_t)row->incarnation,
			 "state", mst_report_rank_state(row->state), "awaited", row->awaited != 0,
			 "counted", (json_int_t)row->counted, "late", (json_int_t)row->late,
			 "stale", (json_int_t)row->stale, "cancelled", (json_int_t)row->cancelled,
			 "refused", (json_int_t)row->refused, "mean_ready_ms",
			 ms(row->ready_mean_ns), "max_ready_ms", ms(row->ready_max_ns),
			 "mean_behind_ms", ms(row->behind_mean_ns), "waiting_ms",
			 ms(row->waiting_ns));
}

bool mst_report_may_write(const char *path)
{
	FILE *f;

	if (path == NULL || strcmp(path, "-") == 0)
		return true;
	f = fopen(path, "ae");
	if (f != NULL)
		(void)fclose(f);
	return f != NULL;
}

static int dump(const json_t *doc, FILE *out)
{
	if (json_dumpf(doc, out, FORMAT) < 0 || fputc('\n', out) == EOF || fflush(out) == EOF)
		return errno != 0 ? -errno : -EIO;
	return 0;
}

int mst_report_write(const json_t *doc, const char *path)
{
	bool to_stdout = strcmp(path, "-") == 0;
	FILE *out = to_stdout ? stdout : fopen(path, "we");
	int rc = out == NULL ? -errno : 0;

	errno = 0;
	if (rc == 0)
		rc = dump(doc, out);
	if (out != NULL && !to_stdout && fclose(out) == EOF && rc == 0)
		rc = -errno;
	if (rc < 0)
		mst_error("cannot write the figures to %s: %s",
			  to_stdout ? "standard output" : path, strerror(-rc));
	return rc;
}
