/* SPDX-License-Identifier: MIT */
#include "server/control/operator/resizing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/base/log.h"
#include "server/control/job/budget.h"
#include "server/control/job/sentences.h"

/* ---- may it be? ---- */

static int check_job(const struct mst_job *j, uint32_t workers, struct mst_reason *why)
{
	const struct mst_server_options *o = j->o;

	if (mst_job_is_over(j)) {
		mst_reason_set(why, "job \"%s\" is over: %s", o->job, j->why.text);
		return -ESHUTDOWN;
	}
	if (workers == 0 || workers > MST_WORKERS_MAX)
		return mst_reason_fail(why, -EINVAL,
				       "job \"%s\" cannot have %" PRIu32
				       " workers: a job has 1 to %u",
				       o->job, workers, MST_WORKERS_MAX);
	if (!mst_server_options_goes_on(o))
		return mst_reason_fail(
			why, -EPERM,
			"job \"%s\" has %" PRIu32
			" workers from start to end, for its server was started without "
			"--server-patience, and so its workers do not wait for a generation with "
			"another number",
			o->job, o->workers);
	if (o->owner == MUSTER_SERVERS_OWN && !mst_server_options_saves(o))
		return mst_reason_fail(
			why, -EPERM,
			"job \"%s\" has %" PRIu32
			" workers from start to end, for its servers own the parameters and save "
			"none: a server with --state DIR goes on from there",
			o->job, o->workers);
	return 0;
}

/* The options of the next generation, under the policy in force and under that of the command line.
 */
static int check_options(const struct mst_job *j, uint32_t workers, struct mst_reason *why)
{
	struct mst_server_options o = *j->o;
	struct mst_reason cause;

	o.workers = workers;
	int rc = mst_server_options_workers_check(&o, &cause);
	o.policy = mst_job_policy(j)->name;
	if (rc == 0)
		rc = mst_server_options_workers_check(&o, &cause);
	if (rc != 0)
		mst_reason_set(why,
			       "job \"%s\" cannot go on with %" PRIu32
			       " workers, in place of %" PRIu32 ": %s",
			       o.job, workers, j->o->workers, cause.text);
	return rc;
}

/* The limit of descriptors, which is compared when a server starts. */
static int check_host(const struct mst_job *j, uint32_t workers, struct mst_reason *why)
{
	struct mst_server_options o = *j->o;
	struct mst_budget budget[MST_SERVERS_MAX];
	struct mst_plan_cfg plan = { .options = &o,
				     .networks = &j->networks,
				     .channels = j->channels,
				     .cores = j->cores,
				     .processors = j->processors };
	uint64_t elems = j->plan.vector.elems;

	o.workers = workers;
	int rc = mst_budget_job(&plan, elems != 0 ? elems : 1, budget, why);
	return rc != 0 ? rc : mst_descriptors_check(&budget[0].files, why);
}

static int check(const struct mst_job *j, uint32_t workers, struct mst_reason *why)
{
	int rc = check_job(j, workers, why);

	if (rc == 0)
		rc = check_options(j, workers, why);
	return rc != 0 ? rc : check_host(j, workers, why);
}

/* ---- it is ---- */

static void tell(struct mst_base *b, const struct mst_workforce *now)
{
	struct mst_conn *c;

	for (uint32_t i = 0; (c = mst_frontend_next(&b->front, &i)) != NULL;) {
		if (c->role != MST_CONN_SERVER && !(c->role == MST_CONN_WORKER && c->welcomed))
			continue;
		struct mst_message *m = mst_frontend_draft(&b->front, MST_MSG_WORKERS);
		m->workforce = *now;
		mst_frontend_send(&b->front, c, m);
	}
}

static void answer(struct mst_base *b, struct mst_conn *c, const char *text)
{
	struct mst_message *m = mst_frontend_draft(&b->front, MST_MSG_DONE);

	(void)snprintf(m->why, sizeof(m->why), "%s", text);
	mst_frontend_send(&b->front, c, m);
}

void mst_resizing_ask(struct mst_base *b, struct mst_conn *c, uint32_t workers, uint64_t now_ns)
{
	struct mst_job *j = &b->job;
	struct mst_reason text;
	int rc = check(j, workers, &text);

	if (rc != 0) {
		mst_frontend_error(&b->front, c, rc, text.text, now_ns);
		return;
	}
	if (mst_workforce_now(&j->workforce).workers == workers) {
		mst_reason_set(&text, "job \"%s\" has %" PRIu32 " workers already", j->o->job,
			       workers);
		answer(b, c, text.text);
		return;
	}
	mst_info("%s asks for %" PRIu32 " workers", c->peer, workers);
	struct mst_workforce now = mst_workforce_change(&j->workforce, workers);
	mst_workforce_names(&j->workforce, j->o->workers);
	tell(b, &now);
	mst_sentence_renews(&text, workers, j->o);
	answer(b, c, text.text);
	j->renews = true;
}
