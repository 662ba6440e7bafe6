/* SPDX-License-Identifier: MIT */
#include "server/control/operator/reporting.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/wire/counted.h"
#include "common/wire/leavers.h"

int mst_reporting_init(struct mst_reporting *r)
{
	r->snapshot.rank = calloc(r->base->job.o->workers, sizeof(*r->snapshot.rank));
	mst_reporting_forget(r);
	return r->snapshot.rank != NULL ? 0 : -ENOMEM;
}

void mst_reporting_fini(struct mst_reporting *r)
{
	free(r->snapshot.rank);
	r->snapshot.rank = NULL;
}

void mst_reporting_forget(struct mst_reporting *r)
{
	r->snapshot.status = (struct mst_status){ MST_STATUS_NOTHING };
}

/* Anybody may ask for the status: new peers, workers and servers. */
void mst_reporting_ask(struct mst_reporting *r, struct mst_conn *c, bool watches, uint64_t now_ns)
{
	if (c->role == MST_CONN_NEW && !mst_frontend_admit_watcher(&r->base->front, c, now_ns)) {
		mst_frontend_error(&r->base->front, c, -EBUSY,
				   "too many ask for the status at once", now_ns);
		return;
	}
	c->heard_ns = now_ns;
	c->asks_status = r->asked = true;
	c->watches |= watches;
}

/* ---- answers ---- */

static enum mst_server_state state_of(const struct mst_reporting *r, uint32_t server)
{
	static const enum mst_server_state states[MST_FOLLOWER_PLACE_STATES] = {
		[MST_FOLLOWER_PLACE_AWAITED] = MST_SERVER_AWAITED,
		[MST_FOLLOWER_PLACE_JOINED] = MST_SERVER_JOINED,
		[MST_FOLLOWER_PLACE_APPOINTED] = MST_SERVER_JOINED,
		[MST_FOLLOWER_PLACE_LINKED] = MST_SERVER_JOINED,
		[MST_FOLLOWER_PLACE_READY] = MST_SERVER_READY,
		[MST_FOLLOWER_PLACE_GONE] = MST_SERVER_GONE,
	};

	if (server == 0)
		return r->base->job.listener != NULL ? MST_SERVER_READY : MST_SERVER_JOINED;
	return states[r->followers->place[server].state];
}

/* @over: NULL: there has been no link. */
static void fill_link(const struct mst_reporting *r, const struct mst_transport *over,
		      struct mst_status_link *out)
{
	*out = (struct mst_status_link){ .encrypted = 0 };
	if (over == NULL)
		return;
	(void)snprintf(out->network, sizeof(out->network), "%s", over->scheme);
	out->encrypted = over->encrypts && r->base->job.terms.fabric.encrypted;
}

static void fill_server(const struct mst_reporting *r, uint32_t server,
			struct mst_status_server *out)
{
	const struct mst_link_listener *own = r->base->job.listener;
	const char *listener = own != NULL ? own->address : "";

	if (r->base->job.plan.vector.elems != 0)
		mst_job_part(&r->base->job, server, &out->first, &out->count);
	if (server > 0) {
		listener = r->followers->place[server].listener;
		fill_link(r, r->followers->place[server].over, &out->link);
	}
	snprintf(out->listener, sizeof(out->listener), "%s", listener);
	out->state = state_of(r, server);
}

static void fill_status(const struct mst_reporting *r, struct mst_status *s)
{
	const struct mst_job *j = &r->base->job;

	snprintf(s->job, sizeof(s->job), "%s", j->o->job);
	mst_job_policies_fill(&j->policies, s);
	snprintf(s->why, sizeof(s->why), "%s", j->why.text);
	s->state = (uint32_t)j->state;
	s->goes_on = mst_job_goes_on_elsewhere(j);
	mst_generation_tell(&j->generation, s);
	mst_checkpointing_tell(&r->base->checkpointing, s);
	s->access = r->access;
	s->workers = j->o->workers;
	s->norm_limit = j->o->norm_limit;
	s->shards = j->server != NULL ? mst_server_shards(j->server) : 0;
	s->server_count = mst_job_servers(j);
	for (uint32_t i = 0; i < s->server_count; i++)
		fill_server(r, i, &s->server[i]);
	mst_metrics_tell(&j->metrics, s);
	s->goal = j->goal.version != 0 ? j->goal.version : MST_NOT_KNOWN;
	s->differences = j->differences;
	s->state_max = j->o->state_max;
	s->state_too_large = j->state_too_large;
	s->state_of = j->state_of;
	s->rank_count = j->server != NULL ? j->o->workers : 0;
}

static void send_rows(struct mst_reporting *r, struct mst_conn *c, uint32_t first)
{
	struct mst_message *m = mst_frontend_draft(&r->base->front, MST_MSG_STATUS_RANKS);
	uint32_t left = r->base->job.o->workers - first;

	m->ranks.count = left < MST_STATUS_RANKS_SENT ? left : MST_STATUS_RANKS_SENT;
	memcpy(m->ranks.row, r->snapshot.rank + first, m->ranks.count * sizeof(m->ranks.row[0]));
	for (uint32_t i = 0; i < m->ranks.count; i++)
		fill_link(r, r->base->sessions.over[first + i], &m->ranks.row[i].link);
	mst_frontend_send(&r->base->front, c, m);
}

static void send_status(struct mst_reporting *r, struct mst_conn *c)
{
	struct mst_message *m = mst_frontend_draft(&r->base->front, MST_MSG_STATUS);

	m->status = r->snapshot.status;
	fill_status(r, &m->status);
	uint32_t rows = m->status.rank_count;
	mst_frontend_send(&r->base->front, c, m);
	for (uint32_t first = 0; first < rows && c->stream != NULL; first += MST_STATUS_RANKS_SENT)
		send_rows(r, c, first);
}

static void answer_all(struct mst_reporting *r, bool final)
{
	struct mst_conn *c;

	for (uint32_t i = 0; (c = mst_frontend_next(&r->base->front, &i)) != NULL;) {
		if (!c->asks_status && !(final && c->watches))
			continue;
		c->asks_status = false;
		send_status(r, c);
	}
	r->asked = false;
	r->final_told |= final;
	if (final)
		r->base->job.metrics.changed = false;
}

/* A worker has reported after the end of the job. An observer that has not read the last status is
 * told when it has, so that no worker can fill its connection. */
static void tell_watchers(struct mst_reporting *r)
{
	struct mst_conn *c;
	bool waits = false;

	for (uint32_t i = 0; (c = mst_frontend_next(&r->base->front, &i)) != NULL;) {
		waits |= c->watches && c->out_have > 0;
		if (c->watches && c->out_have == 0)
			send_status(r, c);
	}
	r->base->job.metrics.changed = waits;
}

/* At the end of a job. */
static void log_counted(const struct mst_reporting *r)
{
	char line[MST_COUNTED_LEN];

	mst_counted_line(r->snapshot.rank, r->base->job.o->workers, line);
	if (line[0] != '\0')
		mst_info("job \"%s\" counted: %s", r->base->job.o->job, line);
}

/* Where workers own the parameters and have all left, each at a version of its own, they have not
 * ended with the same. */
static void log_leavers(const struct mst_reporting *r)
{
	char line[MST_LEAVERS_LEN];
	struct mst_job *j = &r->base->job;

	mst_leavers_line(r->snapshot.rank, j->o->workers, r->snapshot.status.version, line);
	if (line[0] == '\0')
		return;
	mst_info("job \"%s\": %s", j->o->job, line);
	if (j->all_left && j->o->owner == MUSTER_WORKERS_OWN && j->apart.text[0] == '\0')
		mst_reason_set(
			&j->apart,
			"the ranks have not ended with the same state: %s; they end together "
			"by --commits, by until=N of batches(), or when one of them finishes "
			"the job",
			line);
}

void mst_reporting_filled(struct mst_reporting *r)
{
	if (mst_job_is_over(&r->base->job) && !r->final_told) {
		log_counted(r);
		log_leavers(r);
	}
	r->lent = false;
	answer_all(r, mst_job_is_over(&r->base->job));
}

/* ---- questions ---- */

/* Looks at the connections only while one of them may ask: whoever has asked may have gone. */
static bool somebody_asks(struct mst_reporting *r)
{
	const struct mst_conn *c;

	if (!r->asked)
		return false;
	for (uint32_t i = 0; (c = mst_frontend_next(&r->base->front, &i)) != NULL;) {
		if (c->asks_status)
			return true;
	}
	r->asked = false;
	return false;
}

bool mst_reporting_waits(const struct mst_reporting *r)
{
	return r->asked && !r->lent;
}

/* Is it time for another answer? The last one, at the end of the job, is not held back. */
static bool is_due(struct mst_reporting *r, uint64_t now_ns)
{
	if (mst_job_is_over(&r->base->job) && !r->final_told)
		return true;
	if (now_ns < r->due_ns || !somebody_asks(r))
		return false;
	r->due_ns = now_ns + MST_REPORTING_GAP_NS;
	return true;
}

void mst_reporting_step(struct mst_reporting *r, uint64_t now_ns)
{
	struct mst_request request = { .kind = MST_REQ_SNAPSHOT, .snapshot = &r->snapshot };

	if (r->base->job.server == NULL) {
		bool final = r->base->job.state != MST_JOB_GATHERING;
		if (final || is_due(r, now_ns))
			answer_all(r, final);
		return;
	}
	if (!r->lent && is_due(r, now_ns))
		r->lent = mst_requests_offer(&r->base->job.requests, &request);
	if (!r->lent && mst_reporting_is_behind(r))
		tell_watchers(r);
}

bool mst_reporting_is_behind(const struct mst_reporting *r)
{
	return r->final_told && r->base->job.metrics.changed;
}
