/* SPDX-License-Identifier: MIT */
#include "server/control/members/workers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "server/control/generations/take_over.h"
#include "server/control/job/sentences.h"
#include "server/control/transfer/start_sender.h"
#include "server/data/recording.h"

#define VALUES_IN_PERIOD 4u /* that a worker reports, and the policy hears of */

bool mst_workers_broken(struct mst_workers *w, struct mst_conn *c, const char *what,
			uint64_t now_ns)
{
	return mst_dismissal_make(&w->dismissal, c, -EPROTO, what, now_ns);
}

static void note_leaver(struct mst_workers *w, uint32_t rank, uint64_t now_ns)
{
	const struct mst_job *j = &w->base->job;

	if (j->o->owner == MUSTER_WORKERS_OWN && j->state == MST_JOB_RUNNING)
		mst_leaver_left(&w->leaver, rank, now_ns);
}

static void look_at_leaver(struct mst_workers *w, uint64_t now_ns)
{
	const struct mst_job *j = &w->base->job;
	bool has_end = j->goal.version != 0 || j->o->commits != 0 || j->o->samples > 0;

	if (j->state != MST_JOB_RUNNING || !mst_leaver_is_due(&w->leaver, now_ns))
		return;
	mst_warn("rank %" PRIu32 " has left job \"%s\", which goes on without it%s: it keeps the "
		 "parameters of its last version, and the others make further ones; ranks end "
		 "together by --commits, by until=N of batches(), or when one of them finishes the "
		 "job",
		 w->leaver.rank, j->o->job, has_end ? "" : ", and has no end");
}

void mst_workers_agree(struct mst_workers *w, uint64_t now_ns)
{
	struct mst_conn *c = mst_agreement_stalled(&w->agreement, now_ns);

	if (c != NULL) /* without room in the ring it is ended in a later step */
		(void)mst_dismissal_make(
			&w->dismissal, c, -ENOTCONN,
			"was asked for the state that all begin with, and has sent "
			"nothing of it for a quarter of --patience",
			now_ns);
	mst_agreement_step(&w->agreement, now_ns);
	mst_divergence_step(&w->divergence);
	look_at_leaver(w, now_ns);
}

/* ---- what they say ---- */

static bool take_tensors(struct mst_workers *w, struct mst_conn *c,
			 const struct mst_tensor_piece *piece, uint64_t now_ns)
{
	struct mst_reason why;
	int rc = mst_start_sender_tensors(&w->start_state, c, piece, &why);

	return rc == -EPROTO ? mst_workers_broken(w, c, why.text, now_ns) : rc == 0;
}

static bool take_state(struct mst_workers *w, struct mst_conn *c,
		       const struct mst_state_piece *piece, uint64_t now_ns)
{
	struct mst_reason why;
	int rc = mst_start_sender_state(&w->start_state, c, piece, &why);

	return rc == -EPROTO ? mst_workers_broken(w, c, why.text, now_ns) : rc == 0;
}

static bool take_set(struct mst_workers *w, struct mst_conn *c, const struct mst_set_piece *piece,
		     uint64_t now_ns)
{
	struct mst_reason why;
	int rc = mst_start_sender_set(&w->start_state, c, piece, &why);

	return rc == 0 || mst_workers_broken(w, c, why.text, now_ns);
}

/* From then on the job may start, and its table stays as it is. */
static bool take_start(struct mst_workers *w, struct mst_conn *c,
		       const struct mst_start_offer *said)
{
	struct mst_ledger_event ev = { .kind = MST_EV_START,
				       .who = c->who,
				       .offers = said->offers == MST_OFFER_STATE,
				       .stateless = said->offers == MST_OFFER_STATELESS,
				       .offered = said->version };

	if (!mst_take_over_settle(&w->base->job) ||
	    !mst_requests_event(&w->base->job.requests, &ev))
		return false;
	c->offers = said->offers == MST_OFFER_STATE;
	w->base->job.present[c->who.rank] = true;
	if (said->passed[0] != '\0')
		mst_info("rank %" PRIu32 " says why it did not come over another network: %s",
			 c->who.rank, said->passed);
	mst_leaver_joined(&w->leaver, c->who.rank);
	c->sends_table = false;
	return true;
}

/* Several in one step are told once, so that a flood does not fill the ring of requests with them:
 * it is to be found out by its messages, and others need the room. */
static bool take_heartbeat(struct mst_workers *w, struct mst_conn *c, uint64_t now_ns)
{
	struct mst_ledger_event ev = { .kind = MST_EV_HEARTBEAT, .who = c->who };

	if (c->heartbeat_ns == now_ns)
		return true;
	if (!mst_requests_event(&w->base->job.requests, &ev))
		return false;
	c->heartbeat_ns = now_ns;
	return true;
}

static bool take_leave(struct mst_workers *w, struct mst_conn *c, uint64_t seq)
{
	struct mst_ledger_event ev = { .kind = MST_EV_LEAVE, .who = c->who, .seq = seq };

	if (!mst_requests_event(&w->base->job.requests, &ev))
		return false;
	c->left = true;
	return true;
}

/* The welcome has said whether a worker may. */
static bool may_finish(const struct mst_workers *w)
{
	return w->base->job.o->finish != MST_FINISH_BY_OPERATOR;
}

static bool take_goal(struct mst_workers *w, struct mst_conn *c, uint64_t version)
{
	struct mst_ledger_event ev = { .kind = MST_EV_GOAL, .who = c->who, .goal = version };

	return mst_requests_event(&w->base->job.requests, &ev);
}

static bool take_finish(struct mst_workers *w, struct mst_conn *c, const struct mst_message *msg,
			uint64_t now_ns)
{
	struct mst_ledger_event ev = { .kind = MST_EV_FINISH, .who = c->who };
	struct mst_reason *asked = &w->base->job.asked;
	const char *why = msg->why;

	if (!may_finish(w))
		return mst_workers_broken(w, c,
					  "broke the protocol: it would finish a job that only an "
					  "operator may finish (--finish operator)",
					  now_ns);
	if (msg->goal != 0)
		return take_goal(w, c, msg->goal);
	if (!mst_requests_event(&w->base->job.requests, &ev))
		return false;
	if (asked->text[0] != '\0')
		return true;
	w->base->job.asked_by = c->who;
	mst_reason_set(asked, "rank %" PRIu32 " finished the job%s%s", c->who.rank,
		       why[0] != '\0' ? ": " : "", why);
	return true;
}

/* For the policy, if it follows this value. Of many in a period it is told the first ones, for the
 * same reason. */
static bool tell_value(struct mst_workers *w, struct mst_conn *c, const struct mst_metric *said,
		       uint64_t now_ns)
{
	struct mst_ledger_event ev = { .kind = MST_EV_METRIC, .who = c->who, .metric = *said };

	if (!mst_job_policies_follow(&w->base->job.policies, said->name))
		return true;
	if (now_ns - c->value_ns >= MST_FLOOD_PERIOD_NS) {
		c->value_ns = now_ns;
		c->values = 0;
	}
	if (c->values == VALUES_IN_PERIOD)
		return true;
	if (!mst_requests_event(&w->base->job.requests, &ev))
		return false;
	c->values++;
	return true;
}

static bool take_report(struct mst_workers *w, struct mst_conn *c, const struct mst_metric *said,
			uint64_t now_ns)
{
	const char *wrong = mst_metrics_wrong(said);

	if (wrong != NULL)
		return mst_workers_broken(w, c, wrong, now_ns);
	if (!tell_value(w, c, said, now_ns))
		return false;
	mst_metrics_take(&w->base->job.metrics, c->who.rank, said);
	return true;
}

static bool take_transfer(struct mst_workers *w, struct mst_conn *c, const struct mst_message *msg,
			  uint64_t now_ns)
{
	const char *wrong;
	bool taken = mst_state_transfer_message(w->state_transfer, c, msg, &wrong);

	if (msg->kind == MST_MSG_TOOK && taken && wrong == NULL)
		mst_divergence_took(&w->divergence, c->who.rank);
	return wrong == NULL ? taken : mst_workers_broken(w, c, wrong, now_ns);
}

static bool take_claim(struct mst_workers *w, struct mst_conn *c,
		       const struct mst_state_claim *claim, uint64_t now_ns)
{
	const char *what;
	int rc = mst_agreement_claim(&w->agreement, c, claim, &what);

	return rc == 0 || mst_dismissal_make(&w->dismissal, c, rc, what, now_ns);
}

static bool take_comparison(struct mst_workers *w, struct mst_conn *c,
			    const struct mst_comparison *said, uint64_t now_ns)
{
	const char *wrong = mst_divergence_compare(&w->divergence, c, said);

	return wrong == NULL ? true : mst_workers_broken(w, c, wrong, now_ns);
}

static bool take_agreed(struct mst_workers *w, struct mst_conn *c, const struct mst_handed *piece,
			uint64_t now_ns)
{
	const char *what;
	int rc = mst_agreement_piece(&w->agreement, c, piece, &what);

	return rc == 0 || mst_dismissal_make(&w->dismissal, c, rc, what, now_ns);
}

static bool take_average_ask(struct mst_workers *w, struct mst_conn *c, uint64_t number,
			     uint64_t now_ns)
{
	const char *wrong;
	bool taken = mst_lending_ask(w->lending, c, number, &wrong);

	return wrong == NULL ? taken : mst_workers_broken(w, c, wrong, now_ns);
}

bool mst_workers_message(struct mst_workers *w, struct mst_conn *c, const struct mst_message *msg,
			 uint64_t now_ns)
{
	switch (msg->kind) {
	case MST_MSG_START:
		return take_start(w, c, &msg->start);
	case MST_MSG_HEARTBEAT:
		return take_heartbeat(w, c, now_ns);
	case MST_MSG_TENSORS:
		return take_tensors(w, c, &msg->piece, now_ns);
	case MST_MSG_STATE:
		return take_state(w, c, &msg->state, now_ns);
	case MST_MSG_SET:
		return take_set(w, c, &msg->set, now_ns);
	case MST_MSG_LEAVE:
		return take_leave(w, c, msg->seq);
	case MST_MSG_FINISH:
		return take_finish(w, c, msg, now_ns);
	case MST_MSG_REPORT:
		return take_report(w, c, &msg->metric, now_ns);
	case MST_MSG_CLAIM:
		return take_claim(w, c, &msg->claim, now_ns);
	case MST_MSG_COMPARE:
		return take_comparison(w, c, &msg->comparison, now_ns);
	case MST_MSG_GIVE:
		if (msg->handed.number == MST_AGREED_GIFT)
			return take_agreed(w, c, &msg->handed, now_ns);
		return take_transfer(w, c, msg, now_ns);
	case MST_MSG_TOOK:
		return take_transfer(w, c, msg, now_ns);
	case MST_MSG_ASK_AVERAGE:
		return take_average_ask(w, c, msg->number, now_ns);
	default:
		return mst_workers_broken(
			w, c, "broke the protocol: a message that is not a worker's", now_ns);
	}
}

/* ---- what they hear ---- */

/* A worker that has not read the last message gets no heartbeat until it has, unless that is a
 * piece of a state or of the average, after which there is always more. */
void mst_workers_beat(struct mst_workers *w, uint64_t now_ns)
{
	struct mst_conn *c;

	if (now_ns < w->beat_ns)
		return;
	w->beat_ns = now_ns + w->base->job.o->lease_ns / MST_BEATS_PER_LEASE;
	struct mst_message *m = mst_frontend_draft(&w->base->front, MST_MSG_BEAT);
	mst_followers_fill_beat(&w->leading->followers, &m->beat);
	for (uint32_t i = 0;
	     (c = mst_frontend_next_of(&w->base->front, MST_CONN_WORKER, &i)) != NULL;) {
		bool more = c->takes != 0 || c->takes_agreed || c->average_turn != 0;
		if (c->welcomed && (c->out_have == 0 || more))
			mst_frontend_send(&w->base->front, c, m);
	}
}

/* Each worker is told, also one that joins later and was welcomed before. */
static void tell_generation(struct mst_workers *w)
{
	const struct mst_conn *other;
	struct mst_conn *c;

	for (uint32_t i = 0;
	     (other = mst_frontend_next_of(&w->base->front, MST_CONN_WORKER, &i)) != NULL;) {
		struct mst_message *m = mst_frontend_draft(&w->base->front, MST_MSG_BEGINS);
		c = mst_frontend_worker(&w->base->front, other->who);
		mst_job_begins(&w->base->job, other->who.rank, &other->claimed, &m->begins);
		if (c != NULL && c->welcomed)
			mst_frontend_send(&w->base->front, c, m);
	}
}

static void record_generation(struct mst_job *j)
{
	struct mst_recorded_generation g = { .number = j->generation.now.number,
					     .began = j->generation.now.began };

	snprintf(g.run, sizeof(g.run), "%s", j->generation.now.run);
	if (j->recording != NULL)
		mst_recording_begin(j->recording, &g);
}

static void begin_generation(struct mst_workers *w, const struct mst_generation_view *view)
{
	struct mst_job *j = &w->base->job;

	mst_generation_begins(&j->generation, view);
	if (!j->generation.counts)
		return;
	record_generation(j);
	mst_job_policies_begin(&j->policies, mst_job_first_version(j) + 1);
	if (view->number > 1)
		mst_info("job \"%s\" goes on from version %" PRIu64
			 ", which %s: generation %" PRIu64 " of run %s",
			 j->o->job, view->began,
			 j->o->owner == MUSTER_WORKERS_OWN ? "its workers have brought"
							   : "is its newest checkpoint",
			 view->number, j->generation.now.run);
	else
		mst_info("job \"%s\" begins: run %s; workers wait %.3g s for another server if "
			 "one is lost (--server-patience)",
			 j->o->job, j->generation.now.run,
			 (double)j->o->server_patience_ns / (double)MST_SECOND);
	mst_take_over_tell(j);
	tell_generation(w);
}

void mst_workers_started(struct mst_workers *w, const struct mst_generation_view *generation)
{
	struct mst_job *j = &w->base->job;
	struct mst_reason text;

	if (!mst_job_enter(&j->state, MST_JOB_STARTS))
		return; /* the server is being stopped */
	begin_generation(w, generation);
	mst_agreement_begin(&w->agreement);
	const char *now = mst_job_policy(j)->now;
	mst_sentence_policy(&text, &mst_job_policy(j)->rule, j->o->workers);
	mst_info("job \"%s\" starts: %s%s%s %s", j->o->job, mst_job_policy(j)->name,
		 now[0] != '\0' ? ", at first " : "", now, text.text);
	if (j->terms.schedule.count > 0)
		mst_info("job \"%s\": the rate follows %s, by samples that count", j->o->job,
			 j->o->lr_schedule);
	if (j->o->lr_distance > 0)
		mst_info("job \"%s\": the rate is at most %.9g over the square of the distance "
			 "that the parameters have moved since a worker read them",
			 j->o->job, j->o->lr_distance);
}

void mst_workers_refused(const struct mst_workers *w, const struct mst_notice *notice)
{
	mst_warn("job \"%s\": %" PRIu64 " gradients were refused since the last one that counted, "
		 "so version %" PRIu64
		 " is not made: they are not finite, too far from the median (--norm-limit), "
		 "damaged (--checksum), or have a weight that cannot be; muster status says how "
		 "many of each rank",
		 w->base->job.o->job, notice->refused.count, notice->refused.version);
}

/* ---- the end of a session ---- */

static bool is_alone(const struct mst_job *j, uint32_t rank)
{
	for (uint32_t other = 0; other < j->o->workers; other++) {
		if (other != rank && j->present[other])
			return false;
	}
	return true;
}

/* The link with this server may be intact. Then the notice says which other server has lost its
 * link with the worker. */
static void why_evicted(const struct mst_workers *w, const struct mst_notice *notice,
			struct mst_reason *out)
{
	struct mst_eviction loss = { .rank = notice->who.rank,
				     .why = notice->evict.why,
				     .announced = notice->evict.announced,
				     .came = notice->evict.came,
				     .link = mst_sessions_link_reason(&w->base->sessions,
								      notice->who),
				     .alone = is_alone(&w->base->job, notice->who.rank) };
	uint32_t server = notice->evict.server;
	const char *own = mst_dismissal_why(&w->dismissal, notice->who);
	struct mst_reason elsewhere;

	if (own != NULL)
		loss.link = own;
	if (loss.link[0] == '\0' && server != 0) {
		mst_reason_set(&elsewhere, "%s server %" PRIu32 " of %" PRIu32 " (%.64s)%s",
			       loss.why == MST_EVICT_LOST ? "its link with" : "towards", server,
			       mst_job_servers(&w->base->job),
			       w->leading->followers.place[server].peer,
			       loss.why == MST_EVICT_LOST ? " is lost" : "");
		loss.link = elsewhere.text;
	}
	mst_sentence_evicted(out, &loss, w->base->job.o);
}

/* The ledger may have ended the session before it read that the worker asks for the end of the job.
 * If another worker asks for the end later, the reason of this one must not be given. */
static void forget_asked(struct mst_job *j, struct mst_identity who)
{
	if (j->asked_by.rank == who.rank && j->asked_by.incarnation == who.incarnation)
		mst_reason_clear(&j->asked);
}

void mst_workers_evicted(struct mst_workers *w, const struct mst_notice *notice, uint64_t now_ns)
{
	struct mst_identity who = notice->who;
	enum mst_evict_why why = notice->evict.why;
	struct mst_conn *c = mst_frontend_worker(&w->base->front, who);
	struct mst_reason reason;

	why_evicted(w, notice, &reason);
	mst_sessions_forget(&w->base->sessions, who);
	mst_followers_forget(&w->leading->followers, who);
	w->base->job.present[who.rank] = false;
	mst_take_over_left(&w->base->job, who.rank);
	mst_agreement_lost(&w->agreement, who.rank);
	mst_divergence_lost(&w->divergence);
	if (why == MST_EVICT_LEFT) {
		mst_debug("%s", reason.text);
		note_leaver(w, who.rank, now_ns);
		if (c != NULL) /* the worker closes its connection, or the server does soon */
			mst_frontend_part(&w->base->front, c, now_ns);
		return;
	}
	forget_asked(&w->base->job, who);
	if (!w->base->job.stopped) {
		mst_warn("%s", reason.text);
		mst_reason_set(&w->base->job.worker_loss, "%s", reason.text);
	}
	if (c == NULL)
		return;
	c->left = true;
	mst_frontend_error(&w->base->front, c, mst_job_evict_word(&w->base->job, why), reason.text,
			   now_ns);
}
