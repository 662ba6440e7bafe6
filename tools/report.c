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
#include "common/host/exit.h"
#include "common/host/limits.h"
#include "common/wire/counted.h"
#include "common/wire/leavers.h"
#include "tools/figure.h"
#include "tools/figures.h"
#include "tools/straggler.h"

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
		[MST_RANK_LOST] = "lost",     [MST_RANK_EVICTED] = "evicted",
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

	if (job->saved_ns != MST_NOT_KNOWN && job->saved_ns > 0)
		(void)snprintf(words.text, sizeof(words.text),
			       "; not waiting for the late saved at least %s",
			       mst_figure_duration(job->saved_ns).text);
	return words;
}

struct mst_report_words mst_report_goal(const struct mst_status *job)
{
	struct mst_report_words words = { .text = "" };

	if (job->goal != MST_NOT_KNOWN)
		(void)snprintf(words.text, sizeof(words.text), " of %" PRIu64, job->goal);
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
	if (job->policy_change != MST_NOT_KNOWN && job->policy_change > 0)
		(void)fprintf(out,
			      "policy %s came with change %" PRIu64
			      " of the policy, counted from the start of the run\n",
			      job->policy, job->policy_change);
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

/* An object with @more, which it takes over, and the figures of @of. NULL: no memory. */
static json_t *with_figures(enum mst_figures_of table, const void *of, json_t *more)
{
	if (mst_figures_json(table, of, more) == 0)
		return more;
	json_decref(more);
	return NULL;
}

static json_t *policy_json(const struct mst_status_policy *p)
{
	return with_figures(MST_FIGURES_OF_POLICY, p, json_pack("{s:s}", "policy", p->policy));
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

void mst_report_leavers(const struct mst_job_snapshot *s, FILE *out)
{
	char line[MST_LEAVERS_LEN];

	mst_leavers_line(s->row, s->row_count, s->job.version, line);
	if (line[0] != '\0')
		(void)fprintf(out, "%s\n", line);
}

void mst_report_generation(const struct mst_status *job, FILE *out)
{
	if (job->generation == MST_NOT_KNOWN)
		return;
	if (job->generation > 0)
		(void)fprintf(out, "generation %" PRIu64 " of run %s", job->generation, job->run);
	else
		(void)fprintf(out, "a generation that has not begun yet%s%s",
			      job->run[0] != '\0' ? ", of run " : "", job->run);
	if (job->loss_costs == MST_NOT_KNOWN || job->generation == 0)
		(void)fprintf(out, "\n");
	else if (job->loss_costs == 0)
		(void)fprintf(out, "; a server that is lost costs no version\n");
	else if (job->kept_version == MST_NOT_KNOWN)
		(void)fprintf(out,
			      "; there is no checkpoint yet: a server that is lost now costs all "
			      "%" PRIu64 " versions\n",
			      job->loss_costs);
	else
		(void)fprintf(out,
			      "; the newest checkpoint is of version %" PRIu64
			      ": a server that is lost now costs %" PRIu64 " %s\n",
			      job->kept_version, job->loss_costs,
			      job->loss_costs == 1 ? "version" : "versions");
}

void mst_report_state(const struct mst_status *job, FILE *out)
{
	if (job->state_too_large > 0)
		(void)fprintf(out,
			      "rank %" PRIu32
			      " could not give its state to a worker that comes back: it has "
			      "%" PRIu64 " bytes, and musterd --state-max is %" PRIu64 "\n",
			      job->state_of, job->state_too_large, job->state_max);
	if (job->differences > 0 && job->differences != MST_NOT_KNOWN)
		(void)fprintf(out,
			      "ranks had different states %" PRIu64
			      " times after the same version: the log of the leader says which\n",
			      job->differences);
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
		failed |= json_object_set_new(out, m->newest.name,
					      json_pack("{s:o, s:I, s:I, s:I}", "value",
							mst_figures_real(m->newest.value),
							"version", (json_int_t)m->newest.version,
							"rank", (json_int_t)m->rank, "reports",
							(json_int_t)m->reports));
	}
	if (failed != 0) {
		json_decref(out);
		return NULL;
	}
	return out;
}

static json_t *state_too_large_json(const struct mst_status *job)
{
	return job->state_too_large > 0 ? json_pack("{s:I, s:I}", "rank", (json_int_t)job->state_of,
						    "bytes", (json_int_t)job->state_too_large)
					: json_null();
}

static json_t *run_json(const struct mst_status *job)
{
	return job->run[0] != '\0' ? json_string(job->run) : json_null();
}

static json_t *job_json(const struct mst_status *job)
{
	return with_figures(MST_FIGURES_OF_JOB, job,
			    json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "job", job->job,
				      "policy", job->policy, "state",
				      mst_report_job_state(job->state), "why", job->why, "access",
				      mst_report_access(job->access), "state_too_large",
				      state_too_large_json(job), "run", run_json(job)));
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

struct mst_report_words mst_report_network(const struct mst_status_link *link)
{
	struct mst_report_words words;

	(void)snprintf(words.text, sizeof(words.text), "%s%s",
		       link->network[0] != '\0' ? link->network : "-",
		       link->encrypted != 0 ? "+tls" : "");
	return words;
}

/* @into, which it takes over, with these two members. */
static json_t *with_link(const struct mst_status_link *link, json_t *into)
{
	bool any = link->network[0] != '\0';

	if (json_object_set_new(into, "network", any ? json_string(link->network) : json_null()) ==
		    0 &&
	    json_object_set_new(into, "encrypted",
				any ? json_boolean(link->encrypted != 0) : json_null()) == 0)
		return into;
	json_decref(into);
	return NULL;
}

json_t *mst_report_server(const struct mst_status_server *server)
{
	return with_figures(
		MST_FIGURES_OF_SERVER, server,
		with_link(&server->link,
			  json_pack("{s:s, s:s}", "state", mst_report_server_state(server->state),
				    "listener", server->listener)));
}

json_t *mst_report_rank(const struct mst_status_rank *row)
{
	return with_figures(
		MST_FIGURES_OF_RANK, row,
		with_link(&row->link, json_pack("{s:s, s:o, s:I, s:{s:s}}", "state",
						mst_report_rank_state(row->state), "late_share",
						mst_report_share(mst_report_late(row)), "pushed",
						(json_int_t)mst_report_pushed(row), "straggler",
						"kind", mst_straggler_kind_word(row->straggler))));
}

int mst_report_check(const char *option, const char *path, struct mst_reason *why)
{
	if (mst_report_may_write(path))
		return 0;
	return mst_reason_fail(why, -EINVAL, "option --%s: cannot write %s: %s", option, path,
			       strerror(errno));
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
	if (rc < 0 && to_stdout)
		mst_exit_told();
	if (rc < 0)
		mst_error("cannot write the figures to %s: %s",
			  to_stdout ? "standard output" : path,
			  mst_limit_failed(rc, 0, &(struct mst_reason){ 0 }));
	free(text);
	return rc;
}
