/* SPDX-License-Identifier: MIT */
#include "tools/report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/wire/counted.h"
#include "tools/figure.h"

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

const char *mst_report_rank_now(const struct mst_status_rank *row)
{
	if (row->state != MST_RANK_LIVE || (!row->rests && !row->held))
		return mst_report_rank_state(row->state);
	return row->rests ? "rests" : "held";
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

/* JSON has no NaN: a loss that nobody told is null; and so is what only a broken peer says. */
static json_t *real_or_null(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

const char *mst_report_access(uint32_t access)
{
	static const char *const words[] = {
		[MST_ACCESS_LOCAL] = "local",
		[MST_ACCESS_CERTIFICATES] = "certificates",
		[MST_ACCESS_INSECURE] = "insecure",
	};

	return access <= MST_ACCESS_INSECURE ? words[access] : "unknown";
}

const char *mst_report_access_means(uint32_t access)
{
	switch (access) {
	case MST_ACCESS_LOCAL:
		return "every user of the server's host may join and change the job: it listens on "
		       "loopback, without certificates";
	case MST_ACCESS_CERTIFICATES:
		return "by certificates";
	case MST_ACCESS_INSECURE:
		return "INSECURE: whoever reaches the server's port may join, read all parameters "
		       "and end the job (--insecure)";
	default:
		return "unknown";
	}
}

struct mst_report_words mst_report_saved(const struct mst_status *job)
{
	struct mst_report_words words = { .text = "" };

	if (job->saved_told && job->saved_ns > 0)
		(void)snprintf(words.text, sizeof(words.text),
			       "; not waiting for the late saved at least %s",
			       mst_figure_duration(job->saved_ns).text);
	return words;
}

struct mst_late_share mst_report_late(const struct mst_status_rank *row)
{
	return (struct mst_late_share){ row->late, row->counted + row->late + row->stale };
}

struct mst_late_share mst_report_late_mean(const struct mst_job_snapshot *s)
{
	struct mst_late_share all = { 0 };

	for (uint32_t i = 0; i < s->row_count; i++) {
		struct mst_late_share one = mst_report_late(&s->row[i]);
		all.late += one.late;
		all.pushed += one.pushed;
	}
	return all;
}

json_t *mst_report_share(struct mst_late_share share)
{
	return share.pushed > 0 ? json_real((double)share.late / (double)share.pushed)
				: json_null();
}

struct mst_report_words mst_report_policy(const struct mst_status *job)
{
	struct mst_report_words words;

	if (job->policy_now[0] != '\0')
		(void)snprintf(words.text, sizeof(words.text), "%s, now %s (%s)", job->policy,
			       job->policy_now, job->policy_why);
	else
		(void)snprintf(words.text, sizeof(words.text), "%s", job->policy);
	return words;
}

static void print_policy(const struct mst_status_policy *p, FILE *out)
{
	(void)fprintf(out,
		      "%-18s %9" PRIu64 " %9" PRIu64 " %9s %9" PRIu64 " %8" PRIu64 " %8" PRIu64,
		      p->policy, p->since, p->versions, mst_figure_duration(p->step_mean_ns).text,
		      p->counted, p->late, p->stale);
	if (p->dropped > 0)
		(void)fprintf(out, "  %" PRIu64 " were on their way when it came into force",
			      p->dropped);
	(void)fputc('\n', out);
}

void mst_report_policies(const struct mst_status *job, FILE *out)
{
	if (job->next_policy[0] != '\0')
		(void)fprintf(out, "from version %" PRIu64 " on: policy %s\n", job->next_since,
			      job->next_policy);
	if (job->policy_count < 2)
		return;
	(void)fprintf(out, "%-18s %9s %9s %9s %9s %8s %8s\n", "policy", "since", "versions",
		      "mean step", "counted", "late", "stale");
	for (uint32_t i = 0; i < job->policy_count; i++)
		print_policy(&job->under[i], out);
}

static json_t *policy_json(const struct mst_status_policy *p)
{
	return json_pack("{s:s, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "policy",
			 p->policy, "since", (json_int_t)p->since, "versions",
			 (json_int_t)p->versions, "mean_step_ms", ms(p->step_mean_ns), "counted",
			 (json_int_t)p->counted, "late", (json_int_t)p->late, "stale",
			 (json_int_t)p->stale, "cancelled", (json_int_t)p->cancelled, "refused",
			 (json_int_t)p->refused, "outliers", (json_int_t)p->outliers, "damaged",
			 (json_int_t)p->damaged, "dropped", (json_int_t)p->dropped);
}

/* The policies that were in force, and the one that comes. */
static json_t *policies_json(const struct mst_status *job)
{
	json_t *past = json_array();
	int failed = 0;

	for (uint32_t i = 0; i < job->policy_count; i++)
		failed |= json_array_append_new(past, policy_json(&job->under[i]));
	if (failed != 0) {
		json_decref(past);
		return NULL;
	}
	bool due = job->next_policy[0] != '\0';
	bool adapts = job->policy_now[0] != '\0';
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "policies", past, "policy_now",
			 adapts ? json_string(job->policy_now) : json_null(), "policy_why",
			 adapts ? json_string(job->policy_why) : json_null(), "next_policy",
			 due ? json_string(job->next_policy) : json_null(), "next_policy_since",
			 due ? json_integer((json_int_t)job->next_since) : json_null());
}

/* Ranks whose contributions were refused for their data, or whose norms are told. */
static bool is_named(const struct mst_status *job, const struct mst_status_rank *row)
{
	return row->outliers > 0 || row->damaged > 0 || (job->norm_limit > 0 && !isnan(row->norm));
}

static void print_norm(const struct mst_status_rank *row, FILE *out)
{
	(void)fprintf(out, "%4" PRIu32 " %12s %12s %9" PRIu64 " %9" PRIu64 "\n", row->rank,
		      mst_figure_norm(row->norm).text, mst_figure_norm(row->norm_max).text,
		      row->outliers, row->damaged);
}

void mst_report_norms(const struct mst_job_snapshot *s, FILE *out)
{
	bool any = false;

	for (uint32_t i = 0; i < s->row_count; i++)
		any |= is_named(&s->job, &s->row[i]);
	if (!any)
		return;
	if (s->job.norm_limit > 0)
		(void)fprintf(
			out,
			"norms: the median of the ranks' last is %.6g, the limit %g times it\n",
			s->job.norm_median, s->job.norm_limit);
	(void)fprintf(out, "%4s %12s %12s %9s %9s\n", "rank", "norm", "largest", "outliers",
		      "damaged");
	for (uint32_t i = 0; i < s->row_count; i++)
		if (is_named(&s->job, &s->row[i]))
			print_norm(&s->row[i], out);
}

void mst_report_counted(const struct mst_job_snapshot *s, FILE *out)
{
	char line[MST_COUNTED_LEN];

	mst_counted_line(s->row, s->row_count, line);
	if (line[0] != '\0')
		(void)fprintf(out, "counted: %s\n", line);
}

void mst_report_state(const struct mst_status *job, FILE *out)
{
	if (job->state_too_large > 0)
		(void)fprintf(out,
			      "rank %" PRIu32
			      " could not give its state to a worker that comes back: it has "
			      "%" PRIu64 " bytes, and musterd --state-max is %" PRIu64 "\n",
			      job->state_of, job->state_too_large, job->state_max);
}

uint64_t mst_report_pushed(const struct mst_status_rank *row)
{
	return row->counted + row->late + row->stale + row->cancelled + row->refused +
	       row->outliers + row->damaged;
}

void mst_report_metrics(const struct mst_status *job, FILE *out)
{
	if (job->metric_count == 0)
		return;
	(void)fprintf(out, "%-24s %12s %9s %5s %8s\n", "metric", "value", "version", "rank",
		      "reports");
	for (uint32_t i = 0; i < job->metric_count; i++) {
		const struct mst_status_metric *m = &job->metric[i];
		(void)fprintf(out, "%-24s %12.6g %9" PRIu64 " %5" PRIu32 " %8" PRIu64 "\n",
			      m->newest.name, m->newest.value, m->newest.version, m->rank,
			      m->reports);
	}
}

static json_t *metrics_json(const struct mst_status *job)
{
	json_t *out = json_object();
	int failed = 0;

	for (uint32_t i = 0; i < job->metric_count; i++) {
		const struct mst_status_metric *m = &job->metric[i];
		failed |= json_object_set_new(
			out, m->newest.name,
			json_pack("{s:o, s:I, s:I, s:I}", "value", real_or_null(m->newest.value),
				  "version", (json_int_t)m->newest.version, "rank",
				  (json_int_t)m->rank, "reports", (json_int_t)m->reports));
	}
	if (failed != 0) {
		json_decref(out);
		return NULL;
	}
	return out;
}

static json_t *job_json(const struct mst_status *job)
{
	return json_pack(
		"{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:f, s:f, s:f, s:f, s:f, s:f, s:o, "
		"s:s, s:o, s:s, s:o, s:o, s:I, s:o}",
		"job", job->job, "policy", job->policy, "state", mst_report_job_state(job->state),
		"workers", (json_int_t)job->workers, "live", (json_int_t)job->live, "shards",
		(json_int_t)job->shards, "commits", (json_int_t)job->version, "samples",
		real_or_null(job->samples), "wall_s", seconds(job->elapsed_ns), "mean_step_ms",
		ms(job->step_mean_ns), "p50_step_ms", ms(job->step_p50_ns), "p99_step_ms",
		ms(job->step_p99_ns), "max_step_ms", ms(job->step_max_ns), "recent_step_ms",
		ms(job->recent_step_ns), "saved_s",
		job->saved_told ? json_real(seconds(job->saved_ns)) : json_null(), "why", job->why,
		"loss", real_or_null(job->loss), "access", mst_report_access(job->access),
		"norm_limit", job->norm_limit > 0 ? json_real(job->norm_limit) : json_null(),
		"norm_median", job->norm_limit > 0 ? real_or_null(job->norm_median) : json_null(),
		"state_max", (json_int_t)job->state_max, "state_too_large",
		job->state_too_large > 0
			? json_pack("{s:I, s:I}", "rank", (json_int_t)job->state_of, "bytes",
				    (json_int_t)job->state_too_large)
			: json_null());
}

json_t *mst_report_job(const struct mst_status *job)
{
	json_t *out = job_json(job);

	if (json_object_update_new(out, policies_json(job)) < 0 ||
	    json_object_set_new(out, "metrics", metrics_json(job)) < 0) {
		json_decref(out);
		return NULL;
	}
	return out;
}

json_t *mst_report_server(const struct mst_status_server *server)
{
	return json_pack("{s:s, s:I, s:I, s:s}", "state", mst_report_server_state(server->state),
			 "first", (json_int_t)server->first, "count", (json_int_t)server->count,
			 "listener", server->listener);
}

/* Null: never. */
static json_t *ms_ago(uint64_t ns)
{
	return ns == MST_NEVER ? json_null() : json_real(ms(ns));
}

/* What is true now, or was at the end. */
static json_t *rank_now(const struct mst_status_rank *row)
{
	return json_pack("{s:b, s:b, s:b, s:f, s:f, s:o, s:o, s:I}", "awaited", row->awaited != 0,
			 "rests", row->rests != 0, "held", row->held != 0, "waiting_ms",
			 ms(row->waiting_ns), "busy_ms", ms(row->busy_ns), "heard_ms_ago",
			 ms_ago(row->heard_ns), "handed_in_ms_ago", ms_ago(row->handed_in_ns),
			 "versions_behind", (json_int_t)row->behind_by);
}

static json_t *rank_recent(const struct mst_status_rank *row)
{
	return json_pack("{s:I, s:I, s:I, s:f, s:f}", "gradients", (json_int_t)row->recent_came,
			 "missed", (json_int_t)row->recent_missed, "given_up",
			 (json_int_t)row->recent_given_up, "mean_ready_ms",
			 ms(row->recent_ready_ns), "mean_behind_ms", ms(row->recent_behind_ns));
}

json_t *mst_report_rank(const struct mst_status_rank *row)
{
	json_t *out = json_pack(
		"{s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, "
		"s:o, s:I, s:f, s:f, s:f, s:o, s:o, s:I, s:o, s:o}",
		"rank", (json_int_t)row->rank, "incarnation", (json_int_t)row->incarnation, "state",
		mst_report_rank_state(row->state), "counted", (json_int_t)row->counted, "late",
		(json_int_t)row->late, "stale", (json_int_t)row->stale, "given_up",
		(json_int_t)row->given_up, "cancelled", (json_int_t)row->cancelled, "refused",
		(json_int_t)row->refused, "outliers", (json_int_t)row->outliers, "damaged",
		(json_int_t)row->damaged, "norm", real_or_null(row->norm), "max_norm",
		real_or_null(row->norm_max), "mean_staleness", real_or_null(row->staleness_mean),
		"p99_staleness", (json_int_t)row->staleness_p99, "mean_ready_ms",
		ms(row->ready_mean_ns), "max_ready_ms", ms(row->ready_max_ns), "mean_behind_ms",
		ms(row->behind_mean_ns), "recent", rank_recent(row), "late_share",
		mst_report_share(mst_report_late(row)), "pushed",
		(json_int_t)mst_report_pushed(row), "samples_counted",
		real_or_null(row->samples_counted), "samples_pushed",
		real_or_null(row->samples_pushed));

	if (json_object_update_new(out, rank_now(row)) < 0) {
		json_decref(out);
		return NULL;
	}
	return out;
}

bool mst_report_may_write(const char *path)
{
	FILE *f;

	if (path == NULL || strcmp(path, "-") == 0)
		return true;
	bool was_there = access(path, F_OK) == 0;
	f = fopen(path, "ae");
	if (f == NULL)
		return false;
	(void)fclose(f);
	if (!was_there)
		(void)unlink(path);
	return true;
}

static int write_text(const char *text, FILE *out)
{
	errno = 0;
	if (fputs(text, out) == EOF || fputc('\n', out) == EOF || fflush(out) == EOF)
		return errno != 0 ? -errno : -EIO;
	return 0;
}

/* A part of the figures is not valid JSON. So if not all of them can be written, the file is
 * removed. */
static int write_file(const char *text, const char *path)
{
	FILE *out = fopen(path, "we");
	struct stat status;

	if (out == NULL)
		return -errno;
	int rc = write_text(text, out);
	bool is_file = fstat(fileno(out), &status) == 0 && S_ISREG(status.st_mode);
	if (fclose(out) == EOF && rc == 0)
		rc = -errno;
	if (rc != 0 && is_file)
		(void)unlink(path);
	return rc;
}

int mst_report_write(const json_t *doc, const char *path)
{
	bool to_stdout = strcmp(path, "-") == 0;
	char *text = doc != NULL ? json_dumps(doc, FORMAT) : NULL;

	if (text == NULL) {
		mst_error("the figures cannot be put as JSON: no memory, or a figure that is none");
		return -ENOMEM;
	}
	int rc = to_stdout ? write_text(text, stdout) : write_file(text, path);
	if (rc < 0)
		mst_error("cannot write the figures to %s: %s",
			  to_stdout ? "standard output" : path, strerror(-rc));
	free(text);
	return rc;
}
