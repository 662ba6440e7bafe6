/* SPDX-License-Identifier: MIT */
#include "server/control/members/finishing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/base/log.h"
#include "server/control/job/sentences.h"
#include "server/control/transfer/start_sender.h"

/* ---- the version that the job ends with ---- */

/* "rank 3", or "--commits". */
static void who_gave(const struct mst_goal *goal, struct mst_reason *out)
{
	if (goal->rank == MST_RANK_NONE)
		mst_reason_set(out, "--commits");
	else
		mst_reason_set(out, "rank %" PRIu32, goal->rank);
}

/* @before: what the job was to end with.
 * Return: whether somebody should look at it: two have not given the same, or it is too late. */
static bool say_goal(const struct mst_notice *notice, const struct mst_goal *before,
		     struct mst_reason *out)
{
	uint32_t rank = notice->who.rank;
	uint64_t asked = notice->goal.asked;
	bool lower = before->version != 0 && asked < before->version;
	struct mst_reason giver;

	who_gave(before, &giver);
	if (before->version != 0 && asked > before->version)
		mst_reason_set(out,
			       "rank %" PRIu32 " wants the job to end with version %" PRIu64
			       ", and it ends with %" PRIu64 " (%s): the least counts",
			       rank, asked, before->version, giver.text);
	else if (lower)
		mst_reason_set(out,
			       "rank %" PRIu32 " has the job end with version %" PRIu64
			       ", and no more with %" PRIu64 " (%s): the least counts",
			       rank, asked, before->version, giver.text);
	else
		mst_reason_set(out, "rank %" PRIu32 " has the job end with version %" PRIu64, rank,
			       asked);
	if (asked <= notice->goal.newest && asked == notice->goal.of_job.version)
		mst_reason_add(out, ", and it has made version %" PRIu64 " already: it ends now",
			       notice->goal.newest);
	return asked != before->version && (before->version != 0 || asked <= notice->goal.newest);
}

/* All ranks may give a version, again and again. So a log has few lines of it. */
void mst_finishing_goal(struct mst_leading *l, const struct mst_notice *notice)
{
	struct mst_conn *c = mst_frontend_worker(&l->base->front, notice->who);
	struct mst_goal before = l->base->job.goal;
	struct mst_reason text;

	l->base->job.goal = notice->goal.of_job;
	if (say_goal(notice, &before, &text))
		mst_complain(&l->base->front.complaints, MST_COMPLAINT_GOAL, "%s", text.text);
	else if (before.version == 0)
		mst_info("%s", text.text);
	if (c == NULL)
		return;
	struct mst_message *m = mst_frontend_draft(&l->base->front, MST_MSG_DONE);
	(void)snprintf(m->why, sizeof(m->why), "%s", text.text);
	m->goal = notice->goal.of_job.version;
	mst_frontend_send(&l->base->front, c, m);
}

/* ---- the end of the job ---- */

/* "1, 4": ranks that have not started, or whose session has ended. */
static void absent_ranks(const struct mst_job *j, char *out, size_t len)
{
	size_t used = 0;

	out[0] = '\0';
	for (uint32_t rank = 0; rank < j->o->workers && used + 16 < len; rank++) {
		if (!j->present[rank])
			used += (size_t)snprintf(out + used, len - used, "%s%" PRIu32,
						 used > 0 ? ", " : "", rank);
	}
}

static void say_checkpoint(const struct mst_job *j, struct mst_reason *why)
{
	const struct mst_claimed *of = &j->generation.absent;

	mst_reason_set(why,
		       "workers come back with version %" PRIu64 " (generation %" PRIu64
		       " of run %s), and there is no checkpoint in %.200s: ",
		       of->version, of->number, j->generation.now.run,
		       mst_server_options_saves(j->o) ? j->o->state
						      : "any --state DIR of this server");
	mst_reason_add(
		why,
		"give --state the directory of that run, or end the workers that are left and "
		"begin the job anew; this server waited %.3g s (--join-timeout)",
		(double)j->o->join_timeout_ns / (double)MST_SECOND);
}

/* Adds how the last worker or server was lost, which has ended the job. If a server is lost, a
 * worker on the same host may be lost with it; but then the server has ended the job. */
static void add_loss(const struct mst_job *j, enum mst_finish_why finish, struct mst_reason *why)
{
	bool of_server = finish == MST_FINISH_SERVER && j->server_loss.text[0] != '\0';
	const char *loss = of_server ? j->server_loss.text : j->worker_loss.text;

	if (loss[0] != '\0')
		mst_reason_add(why, " (%s)", loss);
}

/* A worker or an operator who ends a job before its goal means it, and the sentence says how far it
 * came. Workers that have all left have failed to reach it.
 * Return: true: they have. */
static bool judge_goal(const struct mst_job *j, const struct mst_notice *notice,
		       struct mst_reason *why)
{
	bool left = notice->finish.why == MST_FINISH_LEFT;
	uint64_t commits = j->goal.version != 0 ? j->goal.version : j->o->commits;
	struct mst_reason got;

	if ((!left && notice->finish.why != MST_FINISH_ASKED) ||
	    !mst_sentence_short(&got, notice->finish.version, notice->finish.samples, commits,
				j->o->samples))
		return false;
	mst_reason_add(why, left ? " before the goal of the job: %s" : " (%s)", got.text);
	return left;
}

/* Has a start failed of another generation than the first? */
static bool lacks_of_before(const struct mst_job *j, const struct mst_notice *notice)
{
	return j->generation.counts && (notice->finish.why == MST_FINISH_NOT_BEGUN ||
					notice->finish.gathered.workers > j->o->workers);
}

static void say_gathered(const struct mst_leading *l, const struct mst_notice *notice,
			 const char *absent, struct mst_reason *why)
{
	const struct mst_job *j = &l->base->job;

	mst_sentence_gathered(why, &notice->finish.gathered, absent, notice->finish.ranks, j->o);
	if (absent[0] == '\0')
		mst_start_sender_name(&l->base->front, why);
	else if (l->refused > 0)
		mst_reason_add(why, "; the last that was refused: %.300s", l->refusal.text);
}

static void why_finished(const struct mst_leading *l, const struct mst_notice *notice,
			 struct mst_reason *why)
{
	enum mst_finish_why finish = notice->finish.why;
	const struct mst_job *j = &l->base->job;
	char absent[256];

	absent_ranks(j, absent, sizeof(absent));
	if (finish == MST_FINISH_ASKED && j->asked.text[0] != '\0')
		mst_reason_set(why, "%s", j->asked.text);
	else if (finish == MST_FINISH_COMMITS && j->goal.rank != MST_RANK_NONE)
		mst_reason_set(why,
			       "version %" PRIu64 " is made, which is the last that rank %" PRIu32
			       " wants",
			       j->goal.version, j->goal.rank);
	else if (finish == MST_FINISH_SPOILT)
		mst_sentence_spoilt(why, &notice->finish.spoilt, notice->finish.ranks,
				    mst_job_servers(j));
	else
		mst_sentence_finished(why, finish, absent, j->o);
	if (finish == MST_FINISH_JOIN_TIMEOUT || finish == MST_FINISH_NOT_BEGUN) {
		/* The ledger knows no servers, and may judge the time before this thread does. */
		bool of_server = mst_leading_nobody_came(l, why);
		if (!of_server && mst_job_lacks_checkpoint(j))
			say_checkpoint(j, why);
		else if (!of_server && lacks_of_before(j, notice))
			say_gathered(l, notice, absent, why);
		else if (!of_server && absent[0] == '\0')
			mst_start_sender_name(&l->base->front, why);
		else if (!of_server && j->generation.counts && l->refused > 0)
			mst_reason_add(why, "; the last that was refused: %.300s", l->refusal.text);
	}
	if (finish == MST_FINISH_LOSS || finish == MST_FINISH_TOO_FEW ||
	    finish == MST_FINISH_SERVER)
		add_loss(j, finish, why);
}

/* A server that has stood still finds that others have given it up, and is the cause itself. */
static void add_standstill(const struct mst_leading *l, struct mst_reason *why, uint64_t now_ns)
{
	uint64_t ns = mst_hearing_stood(&l->base->hearing, l->base->job.o->lease_ns, now_ns);

	if (ns != 0)
		mst_reason_add(why, "; before that this server stood still for %.3g s",
			       (double)ns / (double)MST_SECOND);
}

static void tell_failure(struct mst_leading *l, struct mst_conn *c, uint64_t now_ns)
{
	struct mst_ledger_event ev = { .kind = MST_EV_LOST, .who = c->who, .error = -EPIPE };

	c->left = true;
	mst_frontend_error(&l->base->front, c, mst_job_failure_word(&l->base->job),
			   l->base->job.why.text, now_ns);
	/* if there is no room, the lease ends the session */
	(void)mst_requests_event(&l->base->job.requests, &ev);
}

static void tell_end(struct mst_leading *l, uint64_t now_ns)
{
	struct mst_conn *c;

	for (uint32_t i = 0;
	     (c = mst_frontend_next_of(&l->base->front, MST_CONN_WORKER, &i)) != NULL;) {
		if (l->base->job.state == MST_JOB_FAILED) {
			tell_failure(l, c, now_ns);
			continue;
		}
		struct mst_message *m = mst_frontend_draft(&l->base->front, MST_MSG_FINISHED);
		mst_job_fill_end(&l->base->job, m);
		mst_frontend_send(&l->base->front, c, m);
	}
}

void mst_finishing_end(struct mst_leading *l, const struct mst_notice *notice, uint64_t now_ns)
{
	bool failed = mst_finish_failed(notice->finish.why);
	struct mst_job *j = &l->base->job;
	bool begun = notice->finish.why != MST_FINISH_NOT_BEGUN;
	/* Workers try on, but nothing says that another start of this server would begin. */
	int error = begun ? mst_job_finish_word(j, notice->finish.why)
			  : mst_finish_error(notice->finish.why);
	struct mst_reason why;

	why_finished(l, notice, &why);
	if (error == MST_AGAIN)
		add_standstill(l, &why, now_ns);
	if (judge_goal(j, notice, &why)) {
		failed = true;
		error = -EHOSTDOWN;
	}
	if (!mst_job_end(j, failed ? MST_JOB_FAILS : MST_JOB_ENDS, why.text, now_ns))
		return; /* the server is being stopped */
	j->error = error;
	j->all_left = !failed && notice->finish.why == MST_FINISH_LEFT;
	if (failed)
		mst_job_tell_failure(j);
	else
		mst_info("job \"%s\" is finished at version %" PRIu64 ": %s", j->o->job,
			 notice->finish.version, j->why.text);
	tell_end(l, now_ns);
}

void mst_finishing_stop(struct mst_leading *l, const char *why, uint64_t now_ns)
{
	struct mst_conn *c;

	int error = mst_job_stop_word(&l->base->job);

	mst_base_stop(l->base, why, now_ns);
	for (uint32_t i = 0; (c = mst_frontend_next(&l->base->front, &i)) != NULL;) {
		if (c->role == MST_CONN_WORKER || c->role == MST_CONN_JOINING) {
			c->left = true; /* the server ends the session, so it is no loss */
			mst_frontend_error(&l->base->front, c, error, why, now_ns);
		}
	}
}
