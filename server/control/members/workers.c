/* SPDX-License-Identifier: MIT */
#include "server/control/members/workers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/kernels/finite.h"
#include "common/kernels/sum.h"
#include "server/control/job/sentences.h"
#include "server/control/transfer/start_state.h"

#define VALUES_IN_PERIOD 4u /* that a worker reports, and the policy hears of */

bool mst_workers_broken(struct mst_workers *w, struct mst_conn *c, const char *what,
			uint64_t now_ns)
{
	struct mst_ledger_event ev = { .kind = MST_EV_LOST, .who = c->who, .error = -EPROTO };
	struct mst_reason reason;

	if (!mst_requests_event(&w->base->job.requests, &ev))
		return false;
	c->left = true;
	mst_frontend_accuse(&w->base->front, c, what, &reason);
	mst_frontend_error(&w->base->front, c, -EPROTO, reason.text, now_ns);
	return true;
}

void mst_workers_agree(struct mst_workers *w, uint64_t now_ns)
{
	struct mst_conn *c = mst_agreement_stalled(&w->agreement, now_ns);

	if (c != NULL) /* without room in the ring it is ended in a later step */
		(void)mst_workers_broken(
			w, c,
			"was asked for the state that all begin with, and has sent "
			"nothing of it for a quarter of --patience",
			now_ns);
	mst_agreement_step(&w->agreement, now_ns);
}

/* ---- the start state ---- */

/* The first element of the piece that is infinite or NaN; the number of elements: none is. */
static uint64_t first_nonfinite(const struct mst_job *j, const struct mst_state_piece *piece)
{
	_Alignas(sizeof(float)) char block[4096]; /* data in a frame need not be aligned */
	uint64_t size = mst_type_bytes(j->plan.vector.result_type);

	for (uint64_t done = 0; done < piece->length; done += sizeof(block)) {
		uint64_t left = piece->length - done;
		uint64_t bytes = left < sizeof(block) ? left : sizeof(block);
		memcpy(block, (const char *)piece->data + done, bytes);
		uint64_t at = mst_first_nonfinite(block, j->plan.vector.result_type, bytes / size);
		if (at < bytes / size)
			return done / size + at;
	}
	return piece->length / size;
}

/* libmuster checks a state before it sends it, so a state that fails here comes from another
 * client. Every piece for every server passes here, so version 0 is finite wherever the guard is
 * on. */
static bool is_fit(const struct mst_job *j, const struct mst_state_piece *piece,
		   struct mst_reason *why)
{
	uint64_t size = mst_type_bytes(j->plan.vector.result_type);

	if (j->o->guard == MST_GUARD_OFF)
		return true;
	uint64_t at = first_nonfinite(j, piece);
	if (at == piece->length / size)
		return true;
	mst_reason_set(
		why,
		"broke the protocol: a start state that is infinite or NaN at element %" PRIu64
		" (--guard off lets it pass)",
		piece->offset / size + at);
	return false;
}

/* The part of a piece that belongs to this server is copied into the buffer of version 0. */
static void keep_state(struct mst_job *j, const struct mst_state_piece *piece)
{
	uint64_t own = mst_job_state_bytes(j, j->plan.count);
	uint64_t length = piece->length;

	if (piece->offset >= own)
		return;
	if (length > own - piece->offset)
		length = own - piece->offset;
	memcpy((char *)mst_server_start_buffer(j->server) + piece->offset, piece->data, length);
}

/* The tensor table comes right after the welcome, where the leader asks for it then; or else right
 * before the state. */
static bool take_tensors(struct mst_workers *w, struct mst_conn *c,
			 const struct mst_tensor_piece *piece, uint64_t now_ns)
{
	const char *wrong = "a table of tensors that nobody asked for";
	struct mst_reason why;

	if (!mst_start_state_room(&w->start_state))
		return false;
	if (c->sends_table || (c->sends_state && c->state_received == 0))
		wrong = mst_job_take_tensors(&w->base->job, piece);
	if (wrong != NULL) {
		mst_reason_set(&why, "broke the protocol: %s", wrong);
		return mst_workers_broken(w, c, why.text, now_ns);
	}
	mst_start_state_pass_tensors(&w->start_state, piece);
	c->sends_table &= mst_job_lacks_table(&w->base->job);
	return true;
}

/* The job keeps the table of its first hello. A worker without a table cannot be asked for it. */
static bool wants_tensors(const struct mst_job *j, const struct mst_conn *c)
{
	return j->tensors != NULL && c->table.tensors > 0;
}

static bool lacks_tensors(const struct mst_job *j, const struct mst_conn *c)
{
	return wants_tensors(j, c) ? !mst_tensor_table_is_whole(j->tensors)
				   : !mst_job_has_tensors(j);
}

static bool take_state(struct mst_workers *w, struct mst_conn *c,
		       const struct mst_state_piece *piece, uint64_t now_ns)
{
	uint64_t size = mst_type_bytes(w->base->job.plan.vector.result_type);
	uint64_t total = mst_job_state_bytes(&w->base->job, w->base->job.plan.vector.elems);
	struct mst_reason why;

	if (!c->sends_state || piece->offset != c->state_received || piece->total != total ||
	    piece->length % size != 0 || lacks_tensors(&w->base->job, c))
		return mst_workers_broken(
			w, c,
			"broke the protocol: a start state that nobody asked for, or with a gap, "
			"or before the table of tensors",
			now_ns);
	/* otherwise it would not have been decoded */
	MST_ASSERT(piece->length <= total - piece->offset);
	if (!mst_start_state_room(&w->start_state))
		return false;
	if (!is_fit(&w->base->job, piece, &why))
		return mst_workers_broken(w, c, why.text, now_ns);
	keep_state(&w->base->job, piece);
	mst_start_state_pass(&w->start_state, piece);
	c->state_received += piece->length;
	if (c->state_received < total)
		return true;
	c->sends_state = false;
	mst_start_state_ends(&w->start_state, c->who);
	return true;
}

void mst_workers_send_state(struct mst_workers *w, struct mst_identity who)
{
	struct mst_conn *c = mst_frontend_worker(&w->base->front, who);

	if (c == NULL)
		return; /* the worker is gone; the ledger will hear of it */
	c->sends_state = true;
	c->state_received = 0;
	mst_start_state_drop(&w->start_state);
	struct mst_message *m = mst_frontend_draft(&w->base->front, MST_MSG_SEND_STATE);
	m->wanted.tensors = wants_tensors(&w->base->job, c) && mst_job_lacks_table(&w->base->job);
	m->wanted.state = !mst_job_has_state(&w->base->job);
	mst_frontend_send(&w->base->front, c, m);
}

/* ---- what they say ---- */

/* From then on the job may start, and its table stays as it is. */
static bool take_start(struct mst_workers *w, struct mst_conn *c,
		       const struct mst_start_offer *said)
{
	struct mst_ledger_event ev = { .kind = MST_EV_START,
				       .who = c->who,
				       .offers = said->offers != 0,
				       .offered = said->version };

	if (!mst_requests_event(&w->base->job.requests, &ev))
		return false;
	w->base->job.present[c->who.rank] = true;
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

	return wrong == NULL ? taken : mst_workers_broken(w, c, wrong, now_ns);
}

static bool take_claim(struct mst_workers *w, struct mst_conn *c,
		       const struct mst_state_claim *claim, uint64_t now_ns)
{
	const char *wrong = mst_agreement_claim(&w->agreement, c, claim);

	return wrong == NULL ? true : mst_workers_broken(w, c, wrong, now_ns);
}

static bool take_agreed(struct mst_workers *w, struct mst_conn *c, const struct mst_handed *piece,
			uint64_t now_ns)
{
	const char *wrong = mst_agreement_piece(&w->agreement, c, piece);

	return wrong == NULL ? true : mst_workers_broken(w, c, wrong, now_ns);
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
	case MST_MSG_LEAVE:
		return take_leave(w, c, msg->seq);
	case MST_MSG_FINISH:
		return take_finish(w, c, msg, now_ns);
	case MST_MSG_REPORT:
		return take_report(w, c, &msg->metric, now_ns);
	case MST_MSG_CLAIM:
		return take_claim(w, c, &msg->claim, now_ns);
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

void mst_workers_started(struct mst_workers *w)
{
	struct mst_job *j = &w->base->job;
	struct mst_reason text;

	if (!mst_job_enter(&j->state, MST_JOB_STARTS))
		return; /* the server is being stopped */
	mst_agreement_begin(&w->agreement);
	const char *now = mst_job_policy(j)->now;
	mst_sentence_policy(&text, &j->terms.policy.rule, j->o->workers);
	mst_info("job \"%s\" starts: %s%s%s %s", j->o->job, j->o->policy,
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

/* The link with this server may be intact. Then the notice says which other server has lost its
 * link with the worker. */
static void why_evicted(const struct mst_workers *w, const struct mst_notice *notice,
			struct mst_reason *out)
{
	struct mst_eviction loss = { .rank = notice->who.rank,
				     .why = notice->evict.why,
				     .link = mst_sessions_link_reason(&w->base->sessions,
								      notice->who) };
	uint32_t server = notice->evict.server;
	struct mst_reason elsewhere;

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
	mst_agreement_lost(&w->agreement, who.rank);
	if (why == MST_EVICT_LEFT) {
		mst_debug("%s", reason.text);
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
	mst_frontend_error(&w->base->front, c, mst_evict_error(why), reason.text, now_ns);
}

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
void mst_workers_goal(struct mst_workers *w, const struct mst_notice *notice)
{
	struct mst_conn *c = mst_frontend_worker(&w->base->front, notice->who);
	struct mst_goal before = w->base->job.goal;
	struct mst_reason text;

	w->base->job.goal = notice->goal.of_job;
	if (say_goal(notice, &before, &text))
		mst_complain(&w->base->front.complaints, MST_COMPLAINT_GOAL, "%s", text.text);
	else if (before.version == 0)
		mst_info("%s", text.text);
	if (c == NULL)
		return;
	struct mst_message *m = mst_frontend_draft(&w->base->front, MST_MSG_DONE);
	(void)snprintf(m->why, sizeof(m->why), "%s", text.text);
	m->goal = notice->goal.of_job.version;
	mst_frontend_send(&w->base->front, c, m);
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

/* Names the worker that has not sent its start state, after all have started. */
static void name_state_sender(const struct mst_workers *w, struct mst_reason *why)
{
	const struct mst_conn *c;

	for (uint32_t i = 0; (c = mst_frontend_next(&w->base->front, &i)) != NULL;) {
		if (c->sends_state)
			mst_reason_set(why,
				       "rank %" PRIu32
				       " was asked for its start state and did not send it "
				       "within the join timeout",
				       c->who.rank);
	}
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

static void why_finished(const struct mst_workers *w, const struct mst_notice *notice,
			 struct mst_reason *why)
{
	enum mst_finish_why finish = notice->finish.why;
	const struct mst_job *j = &w->base->job;
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
	if (finish == MST_FINISH_JOIN_TIMEOUT) {
		/* The ledger knows no servers, and may judge the time before this thread does. */
		bool of_server = mst_leading_nobody_came(w->leading, why);
		if (!of_server && absent[0] == '\0')
			name_state_sender(w, why);
	}
	if (finish == MST_FINISH_LOSS || finish == MST_FINISH_TOO_FEW ||
	    finish == MST_FINISH_SERVER)
		add_loss(j, finish, why);
}

static void tell_failure(struct mst_workers *w, struct mst_conn *c, uint64_t now_ns)
{
	struct mst_ledger_event ev = { .kind = MST_EV_LOST, .who = c->who, .error = -EPIPE };

	c->left = true;
	mst_frontend_error(&w->base->front, c, w->base->job.error, w->base->job.why.text, now_ns);
	/* if there is no room, the lease ends the session */
	(void)mst_requests_event(&w->base->job.requests, &ev);
}

static void tell_end(struct mst_workers *w, uint64_t now_ns)
{
	struct mst_conn *c;

	for (uint32_t i = 0;
	     (c = mst_frontend_next_of(&w->base->front, MST_CONN_WORKER, &i)) != NULL;) {
		if (w->base->job.state == MST_JOB_FAILED) {
			tell_failure(w, c, now_ns);
			continue;
		}
		struct mst_message *m = mst_frontend_draft(&w->base->front, MST_MSG_FINISHED);
		mst_job_fill_end(&w->base->job, m);
		mst_frontend_send(&w->base->front, c, m);
	}
}

void mst_workers_finished(struct mst_workers *w, const struct mst_notice *notice, uint64_t now_ns)
{
	bool failed = mst_finish_failed(notice->finish.why);
	int error = mst_finish_error(notice->finish.why);
	struct mst_job *j = &w->base->job;
	struct mst_reason why;

	why_finished(w, notice, &why);
	if (judge_goal(j, notice, &why)) {
		failed = true;
		error = -EHOSTDOWN;
	}
	if (!mst_job_end(j, failed ? MST_JOB_FAILS : MST_JOB_ENDS, why.text, now_ns))
		return; /* the server is being stopped */
	j->error = error;
	if (failed)
		mst_error("job \"%s\" has failed: %s", j->o->job, j->why.text);
	else
		mst_info("job \"%s\" is finished at version %" PRIu64 ": %s", j->o->job,
			 notice->finish.version, j->why.text);
	tell_end(w, now_ns);
}

void mst_workers_stop(struct mst_workers *w, const char *why, uint64_t now_ns)
{
	struct mst_conn *c;

	mst_base_stop(w->base, why, now_ns);
	for (uint32_t i = 0; (c = mst_frontend_next(&w->base->front, &i)) != NULL;) {
		if (c->role == MST_CONN_WORKER || c->role == MST_CONN_JOINING) {
			c->left = true; /* the server ends the session, so it is no loss */
			mst_frontend_error(&w->base->front, c, -ENOTCONN, why, now_ns);
		}
	}
}
