/* SPDX-License-Identifier: MIT */
#include "server/control/members/joining.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/transport/origins.h"
#include "server/control/generations/take_over.h"
#include "server/control/job/sentences.h"
#include "server/control/members/comparing.h"
#include "server/control/members/token.h"

/* ---- beginning and end ---- */

int mst_joining_init(struct mst_joining *j)
{
	return mst_rejoins_init(&j->rejoins, j->base->job.o->workers);
}

void mst_joining_fini(struct mst_joining *j)
{
	mst_rejoins_fini(&j->rejoins);
}

/* ---- hellos ---- */

/* Workers of an earlier generation come back within this time. */
#define RETURN_NS (10 * MST_SECOND)

static bool is_outside(const struct mst_job *j, const struct mst_hello *hello)
{
	return hello->rank >= 0 && (uint32_t)hello->rank >= j->o->workers;
}

/* A new worker may know the number of workers before this server begins anew with it, or before
 * those come that bring it. */
static bool may_be_more(const struct mst_joining *j, int32_t rank, uint64_t now_ns)
{
	const struct mst_job *job = &j->base->job;
	struct mst_workforce number = mst_workforce_now(&job->workforce);

	if (job->renews)
		return (uint32_t)rank < number.workers;
	return job->state == MST_JOB_GATHERING && job->generation.counts &&
	       now_ns - j->hello_ns < RETURN_NS;
}

static int check_hello(const struct mst_joining *of, const struct mst_hello *h, uint64_t now_ns,
		       struct mst_reason *why)
{
	const struct mst_job *j = &of->base->job;
	const char *job = j->o->job;

	if (strcmp(h->job, job) != 0) {
		mst_reason_set(why, "there is no job \"%s\" here, this server runs \"%s\"", h->job,
			       job);
		return -EINVAL;
	}
	/* The end of another run is not that of this worker's. */
	if (mst_job_is_over(j) && !mst_generation_is_another(&j->generation, h)) {
		mst_reason_set(why, "job \"%s\" is over: %s", job, j->why.text);
		return mst_job_over_word(j);
	}
	/* The ledger knows more of ranks that come back. */
	if (is_outside(j, h) && !mst_hello_returns(h)) {
		mst_sentence_refused(why, -ERANGE, h, j->o);
		return may_be_more(of, h->rank, now_ns) ? -EBUSY : -EINVAL;
	}
	if (h->owner != j->o->owner) {
		mst_reason_set(why,
			       "owner %s does not match job \"%s\" (%s): start the server with "
			       "--owner %s, "
			       "or set options.owner",
			       mst_owner_name((enum muster_owner)h->owner), job,
			       mst_owner_name((enum muster_owner)j->o->owner),
			       mst_owner_name((enum muster_owner)h->owner));
		return -EINVAL;
	}
	return 0;
}

/* Followers, and the ledger's limit for workers, have waited for the data side. */
static int take_data_side(struct mst_joining *j, struct mst_reason *why)
{
	struct mst_request gather = { .kind = MST_REQ_GATHER, .until_ns = j->leading->join_until };
	int rc = mst_job_take(&j->base->job, why);

	if (rc != 0)
		return rc;
	(void)mst_requests_offer(&j->base->job.requests, &gather); /* the first, so there is room */
	mst_leading_appoint_all(j->leading);
	return 0;
}

/* Fixes the figures, and has the data side made.
 * Return: 0: it is there, or being made; or -errno. */
static int fix_first(struct mst_joining *j, const struct mst_conn *c, const struct mst_hello *hello,
		     struct mst_reason *why)
{
	int rc = mst_job_lead(&j->base->job, hello, why);
	char giver[MST_GIVER_LEN];

	if (rc != 0)
		return rc;
	(void)mst_tables_giver(hello->rank, c->peer, hello->pid, giver);
	mst_tables_fix(&j->base->job.tables, &hello->table, giver, mst_job_norms(&j->base->job));
	j->first = c->id;
	mst_link_maker_do(j->base->linking.maker, mst_job_make, &j->base->job);
	return mst_link_maker_did(j->base->linking.maker) ? take_data_side(j, why) : 0;
}

/* A row of sessions is kept free for each worker that the ledger may still be deciding on. */
static int check_room(const struct mst_joining *j, const struct mst_hello *hello,
		      struct mst_reason *why)
{
	uint32_t sessions = j->base->sessions.count;

	if (sessions + j->base->job.o->workers > j->base->sessions.max) {
		mst_sentence_refused(why, -EBUSY, hello, j->base->job.o);
		return -EBUSY;
	}
	return mst_job_check_room(&j->base->job, sessions, why);
}

/* A worker that joins and leaves without end must not cost more than this. */
static int check_rejoins(const struct mst_joining *j, const struct mst_hello *hello,
			 uint64_t now_ns, struct mst_reason *why)
{
	uint64_t wait_ns = mst_rejoins_wait(&j->rejoins, hello->rank, now_ns);

	if (wait_ns == 0)
		return 0;
	mst_sentence_too_often(why, hello, wait_ns, j->base->job.o);
	return -EBUSY;
}

static void refuse(struct mst_joining *j, struct mst_conn *c, int error, const char *why,
		   uint64_t now_ns)
{
	j->leading->refused++;
	mst_reason_set(&j->leading->refusal, "%s", why);
	mst_complain(&j->base->front.complaints, MST_COMPLAINT_REFUSED, "%s refused: %s", c->peer,
		     why);
	mst_frontend_error(&j->base->front, c, error, why, now_ns);
}

static struct mst_conn *conn_of(const struct mst_joining *j, uint64_t id, enum mst_conn_role role)
{
	struct mst_conn *c;

	for (uint32_t i = 0; (c = mst_frontend_next_of(&j->base->front, role, &i)) != NULL;) {
		if (c->id == id)
			return c;
	}
	return NULL;
}

/* If the job has ended meanwhile, nobody needs the data side, and it is freed with the job. */
void mst_joining_step(struct mst_joining *j, uint64_t now_ns)
{
	struct mst_reason why;

	if (mst_job_is_over(&j->base->job) || !mst_link_maker_did(j->base->linking.maker))
		return;
	int rc = take_data_side(j, &why);
	if (rc == 0)
		return;
	struct mst_conn *c = conn_of(j, j->first, MST_CONN_NEW);
	if (c != NULL)
		refuse(j, c, rc, why.text, now_ns);
	else
		mst_error("%s", why.text); /* whoever said the hello has gone */
}

/* ---- another model ---- */

/* Begins to find the tensor in which the model of @c differs.
 * Return: as mst_joining_hello(). */
static bool compare(struct mst_joining *j, struct mst_conn *c, enum mst_comparing next,
		    uint64_t now_ns)
{
	c->deadline_ns = now_ns + MST_FRONTEND_GRACE_NS;
	if (next == MST_COMPARING_WAIT)
		return false;
	mst_frontend_send(&j->base->front, c,
			  mst_frontend_draft(&j->base->front, MST_MSG_SEND_TABLE));
	return true;
}

void mst_joining_table(struct mst_joining *j, struct mst_conn *c,
		       const struct mst_tensor_piece *piece, uint64_t now_ns)
{
	struct mst_reason why;
	struct mst_reason reason;
	int rc = mst_comparing_piece(&j->base->job, c, piece, &why);

	if (rc == -EPROTO) {
		mst_frontend_accuse(&j->base->front, c, why.text, &reason);
		mst_frontend_error(&j->base->front, c, rc, reason.text, now_ns);
	} else if (rc != 0) {
		refuse(j, c, rc, why.text, now_ns);
	}
}

/* ---- a hello ---- */

/* It is said at once, though the start waits: the directory may be the wrong one. */
static void warn_lacks(struct mst_joining *j, const struct mst_hello *hello)
{
	struct mst_job *job = &j->base->job;

	if (job->generation.told_absent || !mst_job_lacks_checkpoint(job))
		return;
	job->generation.told_absent = true;
	mst_warn(
		"rank %" PRId32 " comes back to job \"%s\" with version %" PRIu64
		", and there is no checkpoint in %.200s: the job cannot go on from there, and does "
		"not begin anew while a worker of it is left; is it the right --state?",
		hello->rank, job->o->job, hello->returning.version,
		mst_server_options_saves(job->o) ? job->o->state : "any --state DIR");
}

/* Before the start a worker may know of another number of workers than this server was started
 * with. Then all hellos wait, and are said again to the server that begins anew. */
static bool hears_number(struct mst_job *j, const struct mst_hello *hello)
{
	if (j->state != MST_JOB_GATHERING || !j->generation.counts || hello->rank < 0)
		return false;
	mst_workforce_hear(&j->workforce, (uint32_t)hello->rank, &hello->workforce);
	mst_workforce_names(&j->workforce, hello->returning.record_ranks);
	if (j->plan.vector.elems != 0)
		j->renews |= mst_job_record_ranks(j) > j->plan.server.ledger.record_ranks;
	j->renews |= mst_workforce_now(&j->workforce).workers != j->o->workers;
	return j->renews;
}

bool mst_joining_hello(struct mst_joining *j, struct mst_conn *c, const struct mst_hello *hello,
		       uint64_t now_ns)
{
	struct mst_ledger_event ev = { .kind = MST_EV_JOIN };
	enum mst_comparing next = MST_COMPARING_REFUSE;
	struct mst_reason why;

	if (j->hello_ns == 0)
		j->hello_ns = now_ns;
	int rc = check_hello(j, hello, now_ns, &why);
	if (rc == 0)
		rc = mst_generation_check(&j->base->job.generation, hello, j->base->job.o, &why);
	bool knows_job = rc == 0;
	if (knows_job && hears_number(&j->base->job, hello))
		return false;
	if (knows_job)
		rc = mst_comparing_hello(&j->base->job, c, hello, &why);
	if (knows_job && rc != 0)
		next = mst_comparing_begin(&j->leading->followers, c, hello, now_ns);
	if (next != MST_COMPARING_REFUSE)
		return compare(j, c, next, now_ns);
	if (rc == 0 && j->base->job.plan.vector.elems == 0)
		rc = fix_first(j, c, hello, &why);
	if (rc == 0 &&
	    (j->base->job.server == NULL || !mst_followers_are_ready(&j->leading->followers))) {
		/* this peer has said hello, so it is not closed for silence */
		c->deadline_ns = now_ns + MST_FRONTEND_GRACE_NS;
		return false;
	}
	if (rc == 0)
		rc = check_room(j, hello, &why);
	if (rc == 0 && !is_outside(&j->base->job, hello))
		rc = check_rejoins(j, hello, now_ns, &why);
	if (rc != 0) {
		refuse(j, c, rc, why.text, now_ns);
		return true;
	}
	if (hello->returning.number > 0)
		warn_lacks(j, hello);
	ev.join.cookie = c->id;
	ev.join.rank = hello->rank;
	ev.join.comes_back = hello->comes_back != 0;
	ev.join.claimed = mst_generation_claimed(hello);
	ev.join.incarnation = hello->returning.incarnation;
	if (!mst_requests_event(&j->base->job.requests, &ev))
		return false;
	mst_frontend_enter(&j->base->front, c, MST_CONN_HELLO);
	c->pid = hello->pid;
	c->table = hello->table;
	c->claimed = ev.join.claimed;
	c->in_force = hello->returning.in_force;
	c->comes_back = mst_hello_returns(hello);
	c->origins = hello->origins;
	mst_origins_add_peer(&c->origins, c->peer); /* also what a NAT makes of them */
	c->who.rank = (uint32_t)hello->rank;
	return true;
}

/* ---- what the ledger says ---- */

/* A rank that the job has no more tries on while the generation has not begun. */
static void refuse_by_ledger(struct mst_joining *j, struct mst_conn *c, int error, uint64_t now_ns)
{
	struct mst_hello hello = { .rank = (int32_t)c->who.rank };
	struct mst_reason why;

	mst_sentence_refused(&why, is_outside(&j->base->job, &hello) ? -EIDRM : error, &hello,
			     j->base->job.o);
	if (error == -ESHUTDOWN)
		error = mst_job_over_word(&j->base->job);
	refuse(j, c, error, why.text, now_ns);
}

void mst_joining_refused(struct mst_joining *j, const struct mst_notice *notice, uint64_t now_ns)
{
	struct mst_conn *c = conn_of(j, notice->join.cookie, MST_CONN_JOINING);

	if (c != NULL)
		refuse_by_ledger(j, c, notice->join.error, now_ns);
}

/* Takes the table of a worker that the ledger admits. Another worker may have been admitted, with
 * another table, since this worker's hello was checked.
 * Return: false: this worker is refused because of that. */
static bool take_table(struct mst_joining *j, struct mst_conn *c, struct mst_identity who,
		       uint64_t now_ns)
{
	char giver[MST_GIVER_LEN];
	struct mst_reason why;

	(void)mst_tables_giver(who.rank, c->peer, c->pid, giver);
	int rc = mst_tables_check(&j->base->job.tables, &c->table, giver, &why);
	if (rc == 0) {
		mst_tables_take(&j->base->job.tables, &c->table, giver);
		return true;
	}
	mst_requests_lose(&j->base->job.requests, who);
	refuse(j, c, rc, why.text, now_ns);
	return false;
}

void mst_joining_admitted(struct mst_joining *j, const struct mst_notice *notice, uint64_t now_ns)
{
	struct mst_conn *c = conn_of(j, notice->join.cookie, MST_CONN_JOINING);
	struct mst_pending_session *p = NULL;

	if (c != NULL && !take_table(j, c, notice->who, now_ns))
		return;
	if (c != NULL)
		p = mst_sessions_admit(&j->base->sessions, notice->who,
				       mst_followers_set(&j->leading->followers));
	if (p == NULL) {
		mst_requests_lose(&j->base->job.requests, notice->who);
		if (c != NULL)
			refuse_by_ledger(j, c, -EBUSY, now_ns);
		return;
	}
	mst_rejoins_count(&j->rejoins, (int32_t)c->who.rank, now_ns); /* that it has asked for */
	mst_frontend_admit(&j->base->front, c, notice->who);
	mst_take_over_joined(&j->base->job, notice->who.rank, c->comes_back ? &c->in_force : NULL);
	mst_info("rank %" PRIu32 " joined from %s, process %" PRIu32 "%s", c->who.rank, c->peer,
		 c->pid, c->who.incarnation > 1 ? ", again" : "");
	p->admitted = *notice;
	p->origins = c->origins;
	if (p->state == MST_PENDING_EXPECTED)
		mst_joining_welcome(j, p);
	else
		mst_followers_announce(&j->leading->followers, p);
}

/* ---- the welcome ---- */

/* Each of the servers accepts its token once. */
static void fill_servers(const struct mst_joining *j, const struct mst_pending_session *p,
			 struct mst_welcome *w)
{
	const struct mst_link_listener *listener = j->base->job.listener;

	static_assert(sizeof(w->server[0].address) == sizeof(listener->address), "any listener's");
	w->server_count = mst_job_servers(&j->base->job);
	for (uint32_t i = 0; i < w->server_count; i++) {
		struct mst_welcome_server *row = &w->server[i];
		memcpy(row->address,
		       i == 0 ? listener->address : j->leading->followers.place[i].listener,
		       sizeof(row->address));
		memcpy(row->token, p->token, sizeof(row->token));
		mst_token_of_server(row->token, i);
		mst_job_part(&j->base->job, i, &row->first, &row->count);
	}
}

static void fill_welcome(const struct mst_joining *j, const struct mst_pending_session *p,
			 const struct mst_claimed *claimed, struct mst_welcome *w)
{
	const struct mst_server_options *o = j->base->job.o;
	const struct mst_plan *plan = &j->base->job.plan;
	struct mst_workforce number = mst_workforce_now(&j->base->job.workforce);

	snprintf(w->job, sizeof(w->job), "%s", o->job);
	snprintf(w->policy, sizeof(w->policy), "%s", mst_job_policy(&j->base->job)->name);
	fill_servers(j, p, w);
	mst_fabric_tell(&j->base->job.terms.fabric, &w->path);
	w->rank = p->admitted.who.rank;
	w->incarnation = p->admitted.who.incarnation;
	w->workers = o->workers;
	w->workers_given = number.given;
	w->workers_change = number.change;
	w->record_ranks = mst_job_record_ranks(&j->base->job);
	w->slots = plan->layout.slots;
	w->elems = plan->vector.elems;
	w->type = (uint32_t)plan->vector.type;
	w->result_type = (uint32_t)plan->vector.result_type;
	w->owner = o->owner;
	w->buffers = mst_ledger_buffers(&plan->server.ledger);
	w->lease_ns = o->lease_ns;
	w->server_lease_ns = mst_server_options_server_lease(o);
	w->patience_ns = o->patience_ns;
	w->guard = o->guard;
	w->may_finish = o->finish == MST_FINISH_BY_WORKER;
	w->norms = mst_controller_by_norms(&j->base->job.terms.policy.controller);
	w->checks = o->checksum;
	w->state_max = o->state_max;
	w->averages = plan->server.aggregator.averages;
	w->generation = j->base->job.generation.now;
	w->stands = mst_generation_stands(&j->base->job.generation, claimed);
	w->start_number = j->base->job.generation.counts ? p->admitted.join.number : 0;
	w->server_patience_ns = o->server_patience_ns;
	w->history = plan->server.ledger.history;
	if (j->base->job.state != MST_JOB_GATHERING) /* else BEGINS says it, when all are there */
		w->in_force = j->base->job.in_force.now;
	w->first_version = mst_job_first_version(&j->base->job);
	w->first_samples = mst_job_first_samples(&j->base->job);
	w->verdict_count = mst_verdicts_list(p->admitted.join.verdicts, w->verdict);
}

/* The table of the first hello is kept, so that the refusal of another model can name a tensor. One
 * worker sends it, before it says that it is ready. */
static bool wants_table(const struct mst_joining *j, const struct mst_conn *c)
{
	const struct mst_conn *other;

	if (!mst_job_lacks_table(&j->base->job) || c->table.tensors == 0 ||
	    j->base->job.state != MST_JOB_GATHERING)
		return false;
	for (uint32_t i = 0;
	     (other = mst_frontend_next_of(&j->base->front, MST_CONN_WORKER, &i)) != NULL;)
		if (other->sends_table || other->sends_state)
			return false;
	return true;
}

/* Does the worker come from another generation than the one that runs? It hears of that as the
 * others did when it began: BEGINS says what has become of its gradients. */
static bool comes_later(const struct mst_joining *j, const struct mst_conn *c)
{
	const struct mst_generation *now = &j->base->job.generation.now;

	return now->number > 0 && c->claimed.number > 0 && c->claimed.number != now->number;
}

void mst_joining_welcome(struct mst_joining *j, const struct mst_pending_session *p)
{
	struct mst_conn *c = mst_frontend_worker(&j->base->front, p->session.who);

	if (c == NULL)
		return; /* the worker is gone; the ledger will hear of it */
	c->welcomed = true;
	if (wants_table(j, c)) {
		c->sends_table = true;
		mst_frontend_send(&j->base->front, c,
				  mst_frontend_draft(&j->base->front, MST_MSG_SEND_TABLE));
	}
	struct mst_message *m = mst_frontend_draft(&j->base->front, MST_MSG_WELCOME);
	fill_welcome(j, p, &c->claimed, &m->welcome);
	bool later = comes_later(j, c);
	if (later)
		m->welcome.generation.number = 0;
	mst_frontend_send(&j->base->front, c, m);
	if (!later)
		return;
	m = mst_frontend_draft(&j->base->front, MST_MSG_BEGINS);
	mst_job_begins(&j->base->job, c->who.rank, &c->claimed, &m->begins);
	mst_frontend_send(&j->base->front, c, m);
}
