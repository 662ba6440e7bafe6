/* SPDX-License-Identifier: MIT */
#include "server/control/members/following.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/kernels/sum.h"
#include "common/transport/called.h"
#include "common/transport/hostport.h"
#include "common/transport/origins.h"
#include "server/control/job/appointment.h"
#include "server/control/job/sentences.h"
#include "server/control/members/token.h"

/* How long one attempt to connect may take, and the pause before another link is asked for. */
#define CONNECT_NS (500 * MST_MS)
#define REDIAL_NS (50 * MST_MS)
/* The pause before a leader that is about to end, or whatever comes after it, is asked again. */
#define RETRY_NS (100 * MST_MS)
/* So long this server waits in silence. */
#define TELL_NS (5 * MST_SECOND)

/* ---- states ---- */

#define NEVER (-1)
#define SEEKS MST_FOLLOWING_SEEKS
#define ASKED MST_FOLLOWING_ASKED
#define APPOINTED MST_FOLLOWING_APPOINTED
#define READY MST_FOLLOWING_READY
#define CUT_OFF MST_FOLLOWING_CUT_OFF

static const int after[MST_FOLLOWING_STATES][MST_FOLLOWING_EVENTS] = {
	/*              CONNECT APPOINT    LINK   RETRY  CUT */
	[SEEKS] = { ASKED, NEVER, NEVER, NEVER, CUT_OFF },
	[ASKED] = { NEVER, APPOINTED, NEVER, SEEKS, CUT_OFF },
	[APPOINTED] = { NEVER, NEVER, READY, NEVER, CUT_OFF },
	[READY] = { NEVER, NEVER, READY, NEVER, CUT_OFF },
	[CUT_OFF] = { NEVER, NEVER, NEVER, NEVER, CUT_OFF },
};

bool mst_following_enter(enum mst_following_state *state, enum mst_following_event event)
{
	int next = after[*state][event];

	if (next == NEVER)
		return false;
	*state = (enum mst_following_state)next;
	return true;
}

/* ---- its connection ---- */

struct mst_conn *mst_following_conn(const struct mst_following *f)
{
	uint32_t i = 0;

	return mst_frontend_next_of(&f->base->front, MST_CONN_LEAD, &i);
}

static void tell(struct mst_following *f, enum mst_message_kind kind)
{
	struct mst_message *m = mst_frontend_draft(&f->base->front, kind);
	struct mst_conn *c = mst_following_conn(f);

	if (kind == MST_MSG_BEAT) {
		m->beat.count = 1;
		m->beat.server[0].passes = mst_job_passes(&f->base->job);
	}
	if (kind == MST_MSG_READY)
		memcpy(m->listener, f->base->job.listener->address, sizeof(m->listener));
	if (kind == MST_MSG_RELINK)
		memcpy(m->token, f->token, sizeof(m->token));
	if (c != NULL)
		mst_frontend_send(&f->base->front, c, m);
}

static bool takes_part(const struct mst_following *f)
{
	return f->state == APPOINTED || f->state == READY;
}

static bool goes_on(const struct mst_following *f)
{
	return mst_server_options_goes_on(f->base->job.o);
}

/* The job may go on with others, so nothing is said of it but that this server has no part in it.
 * @error: MST_AGAIN: it may have one when it is started again. @why: a sentence. */
static void stay_out(struct mst_following *f, int error, const char *why, uint64_t now_ns)
{
	if (!mst_job_end(&f->base->job, MST_JOB_FAILS, why, now_ns))
		return;
	f->base->job.error = error;
	mst_error("this server takes no part in job \"%s\": %s", f->base->job.o->job,
		  f->base->job.why.text);
}

/* There is no leader any more, or this server cannot be its follower. For a server that had a part
 * in the job, the job has failed; or it goes on at other servers. */
static void part(struct mst_following *f, int error, const char *why, uint64_t now_ns)
{
	bool took_part = takes_part(f);

	(void)mst_following_enter(&f->state, MST_FOLLOWING_CUT);
	if (took_part)
		mst_job_fail(&f->base->job, error, why, now_ns);
	else
		stay_out(f, error, why, now_ns);
}

/* There is no leader any more. */
static void cut_off(struct mst_following *f, const char *why, uint64_t now_ns)
{
	struct mst_reason text;
	uint64_t ns = mst_hearing_stood(&f->base->hearing, f->base->job.o->lease_ns, now_ns);

	mst_reason_set(&text, "%s", why);
	if (goes_on(f) && ns != 0)
		mst_reason_add(&text, "; before that this server stood still for %.3g s",
			       (double)ns / (double)MST_SECOND);
	part(f, goes_on(f) ? MST_AGAIN : -ENOTCONN, text.text, now_ns);
}

/* ---- joining ---- */

static void find_origins(const struct mst_following *f, struct mst_origins *out)
{
	int rc = mst_origins_own(&f->base->job.terms.fabric, out);

	if (rc != 0)
		mst_warn("cannot list the addresses of this host (%s): over RDMA and TCP the "
			 "leader lets in links from that of the control connection alone; name "
			 "those of the data network with --data-address",
			 strerror(-rc));
}

static void say_serve(struct mst_following *f, struct mst_stream *stream, uint64_t now_ns)
{
	struct mst_conn *c = mst_frontend_adopt(&f->base->front, stream, f->base->job.o->join,
						MST_CONN_LEADS);
	struct mst_message *m = mst_frontend_draft(&f->base->front, MST_MSG_SERVE);

	if (c == NULL) {
		part(f, -ENOTCONN, "no descriptors for the connection with the leader", now_ns);
		return;
	}
	(void)mst_following_enter(&f->state, MST_FOLLOWING_CONNECT);
	f->heard_ns = mst_hearing_now(&f->base->hearing);
	f->tell_ns = now_ns + TELL_NS;
	snprintf(m->serve.job, sizeof(m->serve.job), "%s", f->base->job.o->job);
	(void)mst_networks_text(&f->base->job.networks, m->serve.schemes);
	m->serve.pid = (uint32_t)getpid();
	find_origins(f, &m->serve.origins);
	mst_frontend_send(&f->base->front, c, m);
}

static bool is_to_tell(struct mst_following *f, uint64_t now_ns)
{
	bool due = now_ns >= f->tell_ns;

	if (due)
		f->tell_ns = MST_NEVER;
	return due;
}

/* Why nobody has answered, and what to do about it. */
static void unanswered(const struct mst_following *f, int error, const struct mst_reason *why,
		       struct mst_reason *out)
{
	struct mst_reason advice;

	if (error == -ENOENT)
		mst_reason_set(out, "there is no host of this name");
	else if (why->text[0] != '\0')
		*out = *why;
	else
		mst_reason_set(out, "%s; %s", strerror(-error),
			       mst_hostport_advice(f->base->job.o->join, error, &advice));
}

/* A host whose server is replaced may lose its name for a while. */
static bool tries_again(const struct mst_following *f, int error)
{
	return error != -EINVAL && (error != -ENOENT || goes_on(f));
}

static void connect_leader(struct mst_following *f, uint64_t now_ns)
{
	const struct mst_server_options *o = f->base->job.o;
	struct mst_proof proof = { .own = f->credentials };
	struct mst_reason why, cause;
	struct mst_stream *stream;

	if (now_ns < f->connect_ns)
		return;
	if (f->connect_until == 0) {
		f->connect_until = mst_server_options_join_until(o, now_ns);
		f->tell_ns = now_ns + TELL_NS;
	}
	int rc = f->stream->connect(o->join, CONNECT_NS, &proof, &stream);
	if (rc == 0) {
		say_serve(f, stream, now_ns);
		return;
	}
	/* Without a sentence it is connect(2) that may not. */
	if ((rc == -EACCES || rc == -EPROTO) && proof.why.text[0] != '\0') {
		f->refused = true;
		mst_reason_set(&why, "%s", proof.why.text);
		part(f, -ENOTCONN, why.text, now_ns);
		return;
	}
	bool tries = tries_again(f, rc) && now_ns < f->connect_until;
	if (tries && !is_to_tell(f, now_ns))
		return;
	unanswered(f, rc, &proof.why, &cause);
	if (tries) {
		mst_warn("no leader answers at %.100s, trying again: %s", o->join, cause.text);
		return;
	}
	mst_reason_set(&why,
		       "no leader answered at %.100s within %.3g s (--join-timeout): "
		       "%s",
		       o->join, (double)o->join_timeout_ns / (double)MST_SECOND, cause.text);
	cut_off(f, why.text, now_ns);
}

/* ---- the appointment ---- */

/* From now on the figures of the appointment hold, whatever options this server was given. */
static void take_options(struct mst_following *f)
{
	const struct mst_appoint *p = &f->appoint;

	f->options = *f->base->job.o;
	f->options.workers = p->workers;
	f->options.slots = p->slots;
	f->options.owner = p->owner;
	f->options.servers = p->servers;
	f->options.lease_ns = p->lease_ns;
	f->options.server_lease_ns = p->server_lease_ns;
	f->options.patience_ns = p->patience_ns;
	f->options.server_patience_ns = p->server_patience_ns;
	f->options.job = f->appoint.job;
	mst_fabric_follow(&f->base->job.terms.fabric, &p->path);
	f->base->job.o = &f->options;
	/* the next heartbeat follows the leader's lease, not this server's option */
	f->beat_ns = 0;
}

/* The job has the networks of its leader, and this server those of them that it may have. */
static int take_networks(struct mst_following *f, struct mst_reason *why)
{
	struct mst_networks *own = &f->base->job.networks;
	char text[MST_NETWORKS_TEXT_LEN], theirs[MST_NETWORKS_TEXT_LEN];
	struct mst_networks offered;

	(void)mst_networks_read("auto", &offered, why);
	mst_networks_keep(&offered, f->appoint.address);
	(void)mst_networks_text(own, text);
	mst_networks_keep(own, f->appoint.address);
	if (own->count > 0)
		return 0;
	return mst_reason_fail(
		why, -EINVAL,
		"the leader at %.100s offers links over %s, and this server's --transport is "
		"%s: give both the same",
		f->base->job.o->join, mst_networks_text(&offered, theirs), text);
}

static bool dial(struct mst_following *f, const uint8_t *token)
{
	struct mst_request request = { .kind = MST_REQ_DIAL };

	memcpy(request.token, token, sizeof(request.token));
	if (!mst_requests_offer(&f->base->job.requests, &request))
		return false;
	memcpy(f->token, token, sizeof(f->token));
	f->dials++;
	f->redial_ns = MST_NEVER;
	return true;
}

static int set_up(struct mst_following *f, struct mst_reason *why)
{
	const struct mst_appoint *p = &f->appoint;
	int rc = mst_appointment_check(p, f->base->job.o->join, why);

	if (rc != 0)
		return rc;
	if (p->saves[0] != '\0' && !mst_server_options_saves(f->base->job.o)) {
		mst_reason_set(
			why,
			"the leader at %.100s saves versions: start this server with --state and "
			"its directory, which all servers must see",
			f->base->job.o->join);
		return -EINVAL;
	}
	take_options(f);
	rc = take_networks(f, why);
	if (rc == 0)
		rc = mst_base_tables(f->base, why);
	if (rc == 0)
		rc = mst_job_follow(&f->base->job, p, why);
	if (rc == 0) {
		mst_job_make(&f->base->job);
		rc = mst_job_take(&f->base->job, why);
	}
	if (rc != 0)
		return rc;
	(void)mst_following_enter(&f->state, MST_FOLLOWING_APPOINT);
	(void)dial(f, p->token); /* this is the first request, so there is room */
	mst_info("server %" PRIu32 " of %" PRIu32 " of job \"%s\": elements %" PRIu64 " to %" PRIu64
		 " of %" PRIu64 ", %s, results of %s",
		 p->index, p->servers, p->job, p->first, p->first + p->count - 1, p->elems,
		 mst_type_name(f->base->job.plan.vector.type),
		 mst_type_name(f->base->job.plan.vector.result_type));
	mst_networks_tell(&f->base->job.networks, f->base->job.terms.fabric.encrypted);
	return 0;
}

static void appointed(struct mst_following *f, struct mst_conn *c, uint64_t now_ns)
{
	struct mst_reason why;
	char leader[MST_CALLED_LEN];

	mst_called_fill(f->appoint.address, sizeof(f->appoint.address),
			mst_called_host(c->ops->stream_fd(c->stream), leader));
	int rc = set_up(f, &why);
	if (rc == 0)
		return;
	mst_frontend_error(&f->base->front, c, rc, why.text, now_ns);
	part(f, -ENOTCONN, why.text, now_ns);
}

/* ---- what the leader says ---- */

/* The next session waits while too many ended sessions are still being read. */
static bool expect(struct mst_following *f, struct mst_conn *c, const struct mst_expect *e)
{
	struct mst_identity who = { e->rank, e->incarnation };

	if (e->rank >= f->base->job.o->workers || e->incarnation == 0)
		return true;
	struct mst_pending_session *p = mst_sessions_admit(&f->base->sessions, who, 0);
	if (p == NULL)
		return false;
	memcpy(p->token, e->token, sizeof(p->token));
	mst_token_of_server(p->token, f->appoint.index);
	p->origins = e->origins;
	struct mst_message *m = mst_frontend_draft(&f->base->front, MST_MSG_EXPECT);
	m->expect = *e;
	m->expect.origins.count = 0; /* the leader knows them */
	mst_frontend_send(&f->base->front, c, m);
	return true;
}

void mst_following_accuse(struct mst_following *f, struct mst_conn *c, const char *what,
			  uint64_t now_ns)
{
	struct mst_reason why;

	mst_reason_set(&why, "the leader sent %s", what);
	mst_frontend_error(&f->base->front, c, -EPROTO, why.text, now_ns);
	part(f, -ENOTCONN, why.text, now_ns);
}

static void take_tensors(struct mst_following *f, struct mst_conn *c,
			 const struct mst_tensor_piece *piece, uint64_t now_ns)
{
	const char *wrong = mst_job_take_tensors(&f->base->job, piece);

	if (wrong != NULL)
		mst_following_accuse(f, c, wrong, now_ns);
}

/* A piece at offset 0 comes from another worker: the one before died while it sent its state. */
static bool take_state(struct mst_following *f, struct mst_conn *c,
		       const struct mst_state_piece *piece, uint64_t now_ns)
{
	uint64_t total = mst_job_state_bytes(&f->base->job, f->base->job.plan.count);

	if (piece->offset == 0)
		f->state_have = 0;
	if (piece->offset != f->state_have || piece->total != total ||
	    !mst_job_has_tensors(&f->base->job)) {
		mst_following_accuse(
			f, c,
			"a start state with a gap, or of another length, or before the "
			"table of tensors",
			now_ns);
		return true;
	}
	memcpy((char *)mst_server_start_buffer(f->base->job.server) + piece->offset, piece->data,
	       piece->length);
	f->state_have += piece->length;
	if (f->state_have == total) {
		mst_server_state_filled(f->base->job.server);
		tell(f, MST_MSG_STATE_DONE);
	}
	return true;
}

/* May the leader that this server has asked be one that is about to end, so that the one after it
 * takes this server? It may also not have seen yet that the server in this one's place is gone. */
static bool may_be_old(const struct mst_following *f, int error)
{
	return error == MST_AGAIN || (goes_on(f) && (error == -ESHUTDOWN || error == -ENOSPC));
}

/* The leader that was asked is gone, or does not take this server now. From the time on that it
 * had this server in its job, the next one is looked for as long as the first was.
 * Return: false: that time is over. */
static bool asks_again(struct mst_following *f, uint64_t now_ns)
{
	if (f->taken)
		f->connect_until = 0;
	if (f->connect_until != 0 && now_ns >= f->connect_until)
		return false;
	f->taken = false;
	f->connect_ns = now_ns + RETRY_NS;
	return mst_following_enter(&f->state, MST_FOLLOWING_RETRY);
}

/* The leader refuses this server, or its job fails before this server has a part in it. */
static void sent_away(struct mst_following *f, struct mst_conn *c,
		      const struct mst_error_message *error, uint64_t now_ns)
{
	bool old = may_be_old(f, error->code);
	struct mst_reason why;

	f->refused |= f->state == ASKED && error->code == -EACCES;
	mst_reason_set(&why, "the leader at %.100s sends it away: %s", f->base->job.o->join,
		       error->reason);
	if (!old || f->state != ASKED || !asks_again(f, now_ns)) {
		stay_out(f, old ? MST_AGAIN : -ENOTCONN, why.text, now_ns);
		return;
	}
	if (is_to_tell(f, now_ns))
		mst_warn("%s; trying again", why.text);
	mst_frontend_hang_up(&f->base->front, c);
}

/* The job ends as the leader says. The data side hears of it too, and lets go of its sessions.
 * @error: what workers are told; 0: nothing is wrong. */
static void ended(struct mst_following *f, int error, const char *why, uint64_t now_ns)
{
	enum mst_job_event how = error != 0 ? MST_JOB_FAILS : MST_JOB_ENDS;

	if (!mst_job_end(&f->base->job, how, why, now_ns))
		return;
	f->base->job.error = error;
	if (how == MST_JOB_FAILS)
		mst_error("the leader has ended the job: %s", f->base->job.why.text);
	else
		mst_info("job \"%s\" is finished: %s", f->base->job.o->job, f->base->job.why.text);
}

/* Messages that only an appointed follower gets. */
static bool told_follower(struct mst_following *f, struct mst_conn *c,
			  const struct mst_message *msg, uint64_t now_ns)
{
	struct mst_identity who = { msg->expect.rank, msg->expect.incarnation };

	switch (msg->kind) {
	case MST_MSG_EXPECT:
		return expect(f, c, &msg->expect);
	case MST_MSG_FORGET:
		mst_sessions_forget(&f->base->sessions, who);
		return true;
	case MST_MSG_TENSORS:
		take_tensors(f, c, &msg->piece, now_ns);
		return true;
	case MST_MSG_STATE:
		return take_state(f, c, &msg->state, now_ns);
	case MST_MSG_RELINK:
		return dial(f, msg->token);
	case MST_MSG_WORKERS: /* its leader begins anew, and this server for it */
		f->base->job.renews = true;
		return true;
	default:
		mst_warn("the leader sent a message that a follower does not know");
		return true;
	}
}

static bool leader_says(struct mst_following *f, struct mst_conn *c, const struct mst_message *msg,
			uint64_t now_ns)
{
	switch (msg->kind) {
	case MST_MSG_HEARTBEAT:
		f->taken = true;
		return true;
	case MST_MSG_FINISHED:
		ended(f, 0, msg->why, now_ns);
		return true;
	case MST_MSG_ERROR:
		if (takes_part(f))
			ended(f, msg->error.code != 0 ? msg->error.code : -EPROTO,
			      msg->error.reason, now_ns);
		else
			sent_away(f, c, &msg->error, now_ns);
		return true;
	case MST_MSG_APPOINT:
		if (f->state != ASKED || mst_job_is_over(&f->base->job))
			return true;
		f->appoint = msg->appoint;
		appointed(f, c, now_ns);
		return true;
	default:
		return takes_part(f) ? told_follower(f, c, msg, now_ns) : true;
	}
}

/* A message that cannot be handled yet does not count as a sign of life. */
bool mst_following_message(struct mst_following *f, struct mst_conn *c,
			   const struct mst_message *msg, uint64_t now_ns)
{
	bool taken = leader_says(f, c, msg, now_ns);

	if (taken)
		f->heard_ns = mst_hearing_now(&f->base->hearing);
	return taken;
}

void mst_following_lost(struct mst_following *f, int error, const char *why, uint64_t now_ns)
{
	if (f->state == SEEKS)
		return; /* it has been hung up on */
	f->refused |= f->state == ASKED && error == -EACCES;
	if (f->finish != MST_JOB_GATHERING)
		ended(f, f->finish_error, "the leader has ended it", now_ns);
	if (f->state == ASKED && goes_on(f) && error == -ENOTCONN && asks_again(f, now_ns))
		mst_info("the leader at %.100s has ended: looking for the next one",
			 f->base->job.o->join);
	else if (error == -ENOTCONN)
		cut_off(f, why, now_ns);
	else
		part(f, -ENOTCONN, why, now_ns);
}

void mst_following_stop(struct mst_following *f, const char *why, uint64_t now_ns)
{
	struct mst_conn *c = mst_following_conn(f);

	if (c != NULL && !mst_job_is_over(&f->base->job))
		mst_frontend_error(&f->base->front, c, -ENOTCONN, why, now_ns);
}

/* The leader may still be there, and hear it by its control connection; then it tells all
 * others. */
static void give_up(struct mst_following *f, const char *why, uint64_t now_ns)
{
	mst_following_stop(f, why, now_ns);
	cut_off(f, why, now_ns);
}

/* ---- what the data side says ---- */

/* The leader tells the worker and logs the loss. Only this server knows how its own link broke, so
 * it logs that. */
static void evicted(const struct mst_following *f, const struct mst_notice *notice)
{
	const char *why = mst_sessions_link_reason(&f->base->sessions, notice->who);

	if (notice->evict.why == MST_EVICT_LOST && why[0] != '\0' &&
	    !mst_job_is_over(&f->base->job))
		mst_warn("rank %" PRIu32 " is gone: %s", notice->who.rank, why);
}

static void linked(struct mst_following *f)
{
	bool again = f->state == READY;

	if (!mst_following_enter(&f->state, MST_FOLLOWING_LINK))
		return;
	if (again)
		mst_info("linked with the leader again");
	else
		tell(f, MST_MSG_READY);
}

static void link_gone(struct mst_following *f, int error, uint64_t now_ns)
{
	uint64_t lease_ns = mst_server_options_server_lease(f->base->job.o);
	struct mst_reason why;

	if (error == -EPROTO)
		mst_reason_set(&why, "the leader broke the protocol on its link with this server");
	else
		mst_reason_set(&why,
			       "there was no link with the leader for %.3g s (--server-lease)",
			       (double)lease_ns / (double)MST_SECOND);
	give_up(f, why.text, now_ns);
}

void mst_following_notice(struct mst_following *f, const struct mst_notice *notice, uint64_t now_ns)
{
	switch (notice->kind) {
	case MST_NOTE_PEER_LINKED:
		linked(f);
		break;
	case MST_NOTE_PEER_LOST:
		/* otherwise another link is already being made */
		if (notice->peer.number == f->dials)
			f->redial_ns = now_ns + REDIAL_NS;
		break;
	case MST_NOTE_PEER_GONE:
		link_gone(f, notice->peer.error, now_ns);
		break;
	case MST_NOTE_EVICTED:
		evicted(f, notice);
		break;
	case MST_NOTE_FINISHED: /* the leader also says so, and why, by its control connection */
		f->finish_error = mst_job_finish_word(&f->base->job, notice->finish.why);
		f->finish = f->finish_error != 0 ? MST_JOB_FAILED : MST_JOB_FINISHED;
		break;
	default:
		break;
	}
}

/* ---- time ---- */

/* To be called after the leader's connection has been read. Before the link was up the follower
 * does not know the lease, or cannot rely on it; then the join timeout counts. */
void mst_following_judge(struct mst_following *f, uint64_t now_ns)
{
	const struct mst_server_options *o = f->base->job.o;
	bool ready = f->state == READY;
	const struct mst_conn *c = mst_following_conn(f);
	uint64_t join_until = mst_server_options_join_until(o, f->heard_ns);
	uint64_t lease_ns = mst_server_options_server_lease(o);
	struct mst_reason why;

	if (c == NULL || mst_job_is_over(&f->base->job) ||
	    (ready ? !mst_hearing_is_silent(&f->base->hearing, c, f->heard_ns, lease_ns)
		   : f->base->hearing.listening.read_ns < join_until))
		return;
	mst_reason_set(&why, "the leader was silent for %.3g s (%s): stopped, or cut off",
		       (double)(ready ? lease_ns : o->join_timeout_ns) / (double)MST_SECOND,
		       ready ? "--server-lease" : "--join-timeout");
	give_up(f, why.text, now_ns); /* the leader reads this when it goes on */
}

void mst_following_step(struct mst_following *f, uint64_t now_ns)
{
	if (f->state == SEEKS && !mst_job_is_over(&f->base->job))
		connect_leader(f, now_ns);
	if (mst_following_conn(f) == NULL)
		return;
	if (f->state == ASKED && is_to_tell(f, now_ns))
		mst_info("the leader at %.100s has taken this server, and gives it its part of the "
			 "vector when the first worker has come",
			 f->base->job.o->join);
	if (now_ns >= f->beat_ns) {
		f->beat_ns = now_ns + f->base->job.o->lease_ns / MST_BEATS_PER_LEASE;
		tell(f, MST_MSG_BEAT);
	}
	if (f->redial_ns != 0 && now_ns >= f->redial_ns) {
		f->redial_ns = MST_NEVER;
		tell(f, MST_MSG_RELINK);
	}
}
