/* SPDX-License-Identifier: MIT */
/*
 * At a member: its connection to the lead, which appoints it, tells it of workers, and brings its
 * part of the start state. Where nobody leads any more, the member ends its sessions and goes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/kernels/sum.h"
#include "server/admin_state.h"
#include "server/sentence.h"

/* A try to connect, and the pause between two. The control thread has nothing else to do yet. */
#define CONNECT_NS (500 * MST_MS)
#define REDIAL_NS (50 * MST_MS)

static struct mst_conn *lead_conn(struct mst_admin *a)
{
	return a->conn[0].stream != NULL && a->conn[0].role == MST_CONN_LEAD ? &a->conn[0] : NULL;
}

static void tell(struct mst_admin *a, enum mst_message_kind kind)
{
	struct mst_conn *c = lead_conn(a);

	memset(&a->message, 0, sizeof(a->message));
	a->message.kind = kind;
	if (kind == MST_MSG_READY)
		memcpy(a->message.door, a->door->address, sizeof(a->message.door));
	if (kind == MST_MSG_RELINK)
		memcpy(a->message.token, a->lead.token, sizeof(a->message.token));
	if (c != NULL)
		mst_admin_send(a, c, &a->message);
}

/* Nobody leads: what workers read here now is of no job. */
static void cut_off(struct mst_admin *a, const char *why, uint64_t now_ns)
{
	a->lead.cut_off = true;
	if (!mst_admin_is_over(a))
		mst_admin_fail(a, -ENOTCONN, why, now_ns);
}

/* ---- joining ---- */

static void say_serve(struct mst_admin *a, struct mst_stream *stream, uint64_t now_ns)
{
	struct mst_conn *c = &a->conn[0];

	snprintf(c->peer, sizeof(c->peer), "%.60s", a->o->join);
	mst_conn_open(c, a->cfg.stream, stream, a->next_id++);
	c->role = MST_CONN_LEAD;
	a->lead.heard_ns = now_ns;
	if (mst_admin_watch(a, c->ops->stream_fd(stream)) != 0)
		mst_warn("the connection to the lead is looked at now and then only");
	memset(&a->message, 0, sizeof(a->message));
	a->message.kind = MST_MSG_SERVE;
	snprintf(a->message.serve.job, sizeof(a->message.serve.job), "%s", a->o->job);
	snprintf(a->message.serve.scheme, sizeof(a->message.serve.scheme), "%s",
		 a->cfg.transport->scheme);
	a->message.serve.pid = (uint32_t)getpid();
	mst_admin_send(a, c, &a->message);
}

static void connect_lead(struct mst_admin *a, uint64_t now_ns)
{
	char why[MST_SENTENCE_LEN];
	struct mst_stream *stream;

	if (a->lead.connect_until == 0)
		a->lead.connect_until = now_ns + a->o->join_timeout_ns;
	int rc = a->cfg.stream->connect(a->o->join, CONNECT_NS, &stream);
	if (rc == 0) {
		say_serve(a, stream, now_ns);
		return;
	}
	if (rc != -EINVAL && rc != -ENOENT && now_ns < a->lead.connect_until)
		return;
	snprintf(why, sizeof(why), "no lead answered at %.100s within %.3g s (--join-timeout): %s",
		 a->o->join, (double)a->o->join_timeout_ns / (double)MST_SECOND, strerror(-rc));
	cut_off(a, why, now_ns);
}

/* What no lead of this release can have meant. */
static const char *absurdity(const struct mst_appoint *p)
{
	if (p->servers < 2 || p->index == 0 || p->index >= p->servers)
		return "a place among servers that cannot be";
	if (p->elems == 0 || p->elems > MST_ELEMS_MAX || p->count == 0 || p->first > p->elems ||
	    p->count > p->elems - p->first || p->first % MST_PART_ELEMS_MIN != 0)
		return "a part of the vector that cannot be";
	if (p->workers == 0 || p->slots == 0 || p->buffers < 3 || p->buffers > UINT16_MAX ||
	    p->group == 0 || p->group > MST_WORKERS_MAX || p->folds > MST_WORKERS_MAX ||
	    p->entries < p->workers || p->entries > UINT32_MAX / 2)
		return "figures of a job that cannot be";
	if (p->ack_timeout == 0 || p->pkey < -1 || p->pkey > UINT16_MAX)
		return "a timer or a partition key that cannot be";
	if (p->lease_ns < MST_MS || p->address[0] == '\0')
		return "no lease, or no door";
	return NULL;
}

void mst_admin_take_options(struct mst_admin *a)
{
	const struct mst_appoint *p = &a->lead.appoint;

	a->own = *a->cfg.options;
	a->own.workers = p->workers;
	a->own.slots = p->slots;
	a->own.owner = p->owner;
	a->own.servers = p->servers;
	a->own.lease_ns = p->lease_ns;
	a->own.patience_ns = p->patience_ns;
	a->own.job = a->lead.appoint.job;
	a->fabric.ack_timeout = (uint8_t)p->ack_timeout;
	a->fabric.retries = (uint8_t)p->retries;
	a->fabric.traffic_class = (uint8_t)p->traffic_class;
	a->fabric.service_level = (uint8_t)p->service_level;
	a->fabric.pkey = p->pkey;
	a->o = &a->own;
	a->beat_ns = 0; /* the next heartbeat by the lead's lease, not by one's own */
}

static bool dial(struct mst_admin *a, const uint8_t *token)
{
	struct mst_request request = { .kind = MST_REQ_DIAL };

	memcpy(request.token, token, sizeof(request.token));
	if (!mst_server_request(a->server, &request))
		return false;
	memcpy(a->lead.token, token, sizeof(a->lead.token));
	a->lead.dials++;
	a->lead.redial_ns = MST_NEVER;
	return true;
}

static int set_up(struct mst_admin *a, char *why, size_t len)
{
	const struct mst_appoint *p = &a->lead.appoint;
	const char *wrong = absurdity(p);

	if (wrong != NULL) {
		snprintf(why, len, "the lead at %.100s appoints to %s", a->o->join, wrong);
		return -EPROTO;
	}
	mst_admin_take_options(a);
	int rc = mst_admin_tables(a);
	if (rc != 0)
		snprintf(why, len, "no memory for %" PRIu32 " workers", p->workers);
	else
		rc = mst_admin_fix_part(a, why, len);
	if (rc != 0)
		return rc;
	a->lead.appointed = true;
	a->final_told = true;    /* the lead has the status */
	(void)dial(a, p->token); /* the first: there is room */
	mst_info("server %" PRIu32 " of %" PRIu32 " of job \"%s\": elements %" PRIu64 " to %" PRIu64
		 " of %" PRIu64 ", %s, results of %s",
		 p->index, p->servers, p->job, p->first, p->first + p->count - 1, p->elems,
		 mst_type_name(a->type), mst_type_name(a->result_type));
	return 0;
}

static void appointed(struct mst_admin *a, struct mst_conn *c, uint64_t now_ns)
{
	char why[MST_SENTENCE_LEN];
	int rc = set_up(a, why, sizeof(why));

	if (rc == 0)
		return;
	mst_admin_error(a, c, rc, why, now_ns);
	cut_off(a, why, now_ns);
}

/* ---- what the lead says ---- */

/* While too many ended sessions are still to be read, the next waits. */
static bool expect(struct mst_admin *a, struct mst_conn *c, const struct mst_expect *e)
{
	struct mst_identity who = { e->rank, e->incarnation };

	if (e->rank >= a->o->workers || e->incarnation == 0)
		return true;
	struct mst_guest *g = mst_admin_guest_new(a, who);
	if (g == NULL)
		return false;
	memcpy(g->token, e->token, sizeof(g->token));
	a->message.kind = MST_MSG_EXPECT;
	mst_admin_send(a, c, &a->message);
	return true;
}

/* A piece that begins anew is of another worker, the one before did not live. */
static bool take_state(struct mst_admin *a, struct mst_conn *c, const struct mst_state_piece *piece,
		       uint64_t now_ns)
{
	uint64_t total = a->count * mst_type_bytes(a->result_type);

	if (piece->offset == 0)
		a->lead.state_have = 0;
	if (piece->offset != a->lead.state_have || piece->total != total) {
		char why[MST_SENTENCE_LEN];
		snprintf(why, sizeof(why), "the lead's start state has a gap, or another length");
		mst_admin_error(a, c, -EPROTO, why, now_ns);
		cut_off(a, why, now_ns);
		return true;
	}
	memcpy((char *)mst_server_start_buffer(a->server) + piece->offset, piece->data,
	       piece->length);
	a->lead.state_have += piece->length;
	if (a->lead.state_have == total) {
		mst_server_state_filled(a->server);
		tell(a, MST_MSG_STATE_DONE);
	}
	return true;
}

/* The end, as the lead tells it; the data side hears of it too, and lets go of its sessions. */
static void ended(struct mst_admin *a, enum mst_job_state state, const char *why, uint64_t now_ns)
{
	if (mst_admin_is_over(a))
		return;
	a->state = state;
	a->ended_ns = now_ns;
	snprintf(a->why, sizeof(a->why), "%s", why);
	if (state == MST_JOB_FAILED)
		mst_error("the lead has ended the job: %s", a->why);
	else
		mst_info("job \"%s\" is finished: %s", a->o->job, a->why);
}

/* What only an appointed member is told. */
static bool told_member(struct mst_admin *a, struct mst_conn *c, const struct mst_message *msg,
			uint64_t now_ns)
{
	switch (msg->kind) {
	case MST_MSG_EXPECT:
		return expect(a, c, &msg->expect);
	case MST_MSG_FORGET:
		mst_admin_guest_forget(
			a, (struct mst_identity){ msg->expect.rank, msg->expect.incarnation });
		return true;
	case MST_MSG_STATE:
		return take_state(a, c, &msg->state, now_ns);
	case MST_MSG_RELINK:
		return dial(a, msg->token);
	default:
		mst_warn("the lead says what a member does not understand");
		return true;
	}
}

static bool lead_says(struct mst_admin *a, struct mst_conn *c, const struct mst_message *msg,
		      uint64_t now_ns)
{
	switch (msg->kind) {
	case MST_MSG_HEARTBEAT:
		return true;
	case MST_MSG_FINISHED:
		ended(a, MST_JOB_FINISHED, msg->why, now_ns);
		return true;
	case MST_MSG_ERROR:
		ended(a, MST_JOB_FAILED, msg->error.sentence, now_ns);
		return true;
	case MST_MSG_APPOINT:
		if (a->lead.appointed || mst_admin_is_over(a))
			return true;
		a->lead.appoint = msg->appoint;
		appointed(a, c, now_ns);
		return true;
	default:
		return a->lead.appointed ? told_member(a, c, msg, now_ns) : true;
	}
}

/* What waits to be taken is no sign of life. */
bool mst_admin_lead_message(struct mst_admin *a, struct mst_conn *c, const struct mst_message *msg,
			    uint64_t now_ns)
{
	bool taken = lead_says(a, c, msg, now_ns);

	if (taken)
		a->lead.heard_ns = now_ns;
	return taken;
}

void mst_admin_lead_lost(struct mst_admin *a, const char *why, uint64_t now_ns)
{
	if (a->lead.finish != MST_JOB_GATHERING)
		ended(a, a->lead.finish, "the lead has ended it", now_ns);
	cut_off(a, why, now_ns);
}

/* By its other connection the lead may be there, and tells everybody. */
static void give_up(struct mst_admin *a, const char *why, uint64_t now_ns)
{
	struct mst_conn *c = lead_conn(a);

	if (c != NULL && !mst_admin_is_over(a))
		mst_admin_error(a, c, -ENOTCONN, why, now_ns);
	cut_off(a, why, now_ns);
}

/* ---- what the data side says ---- */

/* The lead tells the worker, and its own log; how this link broke is known here alone. */
static void evicted(const struct mst_admin *a, const struct mst_notice *notice)
{
	const char *why = mst_admin_link_reason(a, notice->who);

	if (notice->evict.why == MST_EVICT_LOST && why[0] != '\0' && !mst_admin_is_over(a))
		mst_warn("rank %" PRIu32 " is gone: %s", notice->who.rank, why);
}

void mst_admin_member_notice(struct mst_admin *a, const struct mst_notice *notice, uint64_t now_ns)
{
	switch (notice->kind) {
	case MST_NOTE_PEER_LINKED:
		if (!a->lead.ready)
			tell(a, MST_MSG_READY);
		else
			mst_info("linked with the lead again");
		a->lead.ready = true;
		break;
	case MST_NOTE_PEER_LOST:
		if (notice->peer.number == a->lead.dials) /* else another is being dialled */
			a->lead.redial_ns = now_ns + REDIAL_NS;
		break;
	case MST_NOTE_PEER_GONE:
		give_up(a,
			notice->peer.error == -EPROTO
				? "the lead broke the protocol on its link with this server"
				: "there was no link with the lead for its lease",
			now_ns);
		break;
	case MST_NOTE_EVICTED:
		evicted(a, notice);
		break;
	case MST_NOTE_FINISHED: /* the lead says so by its connection too, and why */
		a->lead.finish = mst_finish_failed(notice->finish.why) ? MST_JOB_FAILED
								       : MST_JOB_FINISHED;
		break;
	default:
		break;
	}
}

/* ---- time ---- */

/* What it has said meanwhile has been read. Until the job is set up a lease means nothing, and is
 * not even known. */
void mst_admin_member_judge(struct mst_admin *a, uint64_t now_ns)
{
	bool ready = a->lead.ready;
	uint64_t most_ns = ready ? a->o->lease_ns : a->o->join_timeout_ns;
	char why[128];

	if (lead_conn(a) == NULL || mst_admin_is_over(a) || now_ns - a->lead.heard_ns < most_ns)
		return;
	snprintf(why, sizeof(why), "the lead was silent for %s of %.3g s: stopped, or cut off",
		 ready ? "the lease" : "the --join-timeout", (double)most_ns / (double)MST_SECOND);
	cut_off(a, why, now_ns);
}

void mst_admin_member_step(struct mst_admin *a, uint64_t now_ns)
{
	if (!mst_admin_is_over(a) && lead_conn(a) == NULL && a->lead.heard_ns == 0)
		connect_lead(a, now_ns);
	if (lead_conn(a) == NULL)
		return;
	if (now_ns >= a->beat_ns) {
		a->beat_ns = now_ns + a->o->lease_ns / MST_ADMIN_BEATS_PER_LEASE;
		tell(a, MST_MSG_HEARTBEAT);
	}
	if (a->lead.redial_ns != 0 && now_ns >= a->lead.redial_ns) {
		a->lead.redial_ns = MST_NEVER;
		tell(a, MST_MSG_RELINK);
	}
}

/* With a lead that is there, when its workers have gone; else at once. */
bool mst_admin_member_over(const struct mst_admin *a)
{
	if (!mst_admin_is_over(a))
		return false;
	return a->lead.cut_off || a->stopped || a->lingered || mst_admin_guests(a) == 0;
}
