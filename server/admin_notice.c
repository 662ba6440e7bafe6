/* SPDX-License-Identifier: MIT */
/* What the data side says: sessions that begin and end, and the end of the job. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "server/admin_state.h"
#include "server/sentence.h"

static void send_state_wanted(struct mst_admin *a, struct mst_identity who)
{
	struct mst_conn *c = mst_admin_conn_of(a, who);

	if (c == NULL)
		return; /* it is gone; the ledger will hear so */
	c->sends_state = true;
	c->state_received = 0;
	a->passes_state = false; /* another's before it is of no use any more */
	memset(&a->message, 0, sizeof(a->message));
	a->message.kind = MST_MSG_SEND_STATE;
	mst_admin_send(a, c, &a->message);
}

static void started(struct mst_admin *a)
{
	char text[128];

	if (a->state != MST_JOB_GATHERING)
		return; /* the server is being stopped */
	a->state = MST_JOB_RUNNING;
	mst_sentence_policy(text, sizeof(text), &a->rule, a->o->workers);
	mst_info("job \"%s\" starts: %s %s", a->o->job, a->o->policy, text);
}

static bool is_same(struct mst_identity a, struct mst_identity b)
{
	return a.rank == b.rank && a.incarnation == b.incarnation;
}

/* What the transport said of a link that the data side reported lost: it has written it before, and
 * nobody does any more. */
static const char *link_reason(const struct mst_session *session)
{
	return session->lost && session->link != NULL ? session->link->why : "";
}

/* An ended session may have been let go just now, or be read for a while yet. */
const char *mst_admin_link_reason(const struct mst_admin *a, struct mst_identity who)
{
	for (uint32_t i = 0; i < a->guest_max; i++) {
		const struct mst_guest *g = &a->guest[i];
		if (g->in_use && g->handed_over && is_same(g->session.who, who))
			return link_reason(&g->session);
	}
	return is_same(a->let_go.who, who) ? a->let_go.why : "";
}

/* The link here may be whole: then what is known is who lost another. */
static void why_evicted(const struct mst_admin *a, const struct mst_notice *notice, char *out,
			size_t len)
{
	struct mst_eviction loss = { .rank = notice->who.rank,
				     .why = notice->evict.why,
				     .link = mst_admin_link_reason(a, notice->who) };
	uint32_t server = notice->evict.server;
	char elsewhere[MST_SENTENCE_LEN];

	if (loss.link[0] == '\0' && server != 0) {
		snprintf(elsewhere, sizeof(elsewhere),
			 "%s server %" PRIu32 " of %" PRIu32 " (%.64s)%s",
			 loss.why == MST_EVICT_LOST ? "its link with" : "towards", server,
			 mst_admin_servers(a), a->seat[server].peer,
			 loss.why == MST_EVICT_LOST ? " is lost" : "");
		loss.link = elsewhere;
	}
	mst_sentence_evicted(out, len, &loss, a->o);
}

static void evicted(struct mst_admin *a, const struct mst_notice *notice, uint64_t now_ns)
{
	struct mst_identity who = notice->who;
	enum mst_evict_why why = notice->evict.why;
	struct mst_conn *c = mst_admin_conn_of(a, who);
	char sentence[MST_SENTENCE_LEN];

	why_evicted(a, notice, sentence, sizeof(sentence));
	mst_admin_guest_forget(a, who);
	mst_admin_forget(a, who);
	a->present[who.rank] = false;
	if (why == MST_EVICT_LEFT) {
		mst_debug("%s", sentence);
		if (c != NULL) { /* it closes its connection itself, or soon we do */
			c->role = MST_CONN_CLOSING;
			c->deadline_ns = now_ns + MST_ADMIN_GRACE_NS;
		}
		return;
	}
	if (!a->stopped) {
		mst_warn("%s", sentence);
		snprintf(a->loss, sizeof(a->loss), "%s", sentence);
	}
	if (c == NULL)
		return;
	c->left = true;
	mst_admin_error(a, c, mst_evict_error(why), sentence, now_ns);
}

/* "1, 4": ranks that have not started, or whose session has ended. */
static void absent_ranks(const struct mst_admin *a, char *out, size_t len)
{
	size_t used = 0;

	out[0] = '\0';
	for (uint32_t rank = 0; rank < a->o->workers && used + 16 < len; rank++) {
		if (!a->present[rank])
			used += (size_t)snprintf(out + used, len - used, "%s%" PRIu32,
						 used > 0 ? ", " : "", rank);
	}
}

static void tell_servers(struct mst_admin *a)
{
	memset(&a->message, 0, sizeof(a->message));
	if (a->state == MST_JOB_FAILED) {
		a->message.kind = MST_MSG_ERROR;
		a->message.error.code = a->error;
		snprintf(a->message.error.sentence, sizeof(a->message.error.sentence), "%s",
			 a->why);
	} else {
		a->message.kind = MST_MSG_FINISHED;
		snprintf(a->message.why, sizeof(a->message.why), "%s", a->why);
	}
	mst_admin_servers_told(a, &a->message);
}

static void tell_end(struct mst_admin *a, uint64_t now_ns)
{
	tell_servers(a);
	for (uint32_t i = 0; i < a->conn_max; i++) {
		struct mst_conn *c = &a->conn[i];
		if (c->stream == NULL || c->role != MST_CONN_WORKER)
			continue;
		if (a->state == MST_JOB_FAILED) {
			struct mst_ledger_event ev = { .kind = MST_EV_LOST,
						       .who = c->who,
						       .error = -EPIPE };
			c->left = true;
			mst_admin_error(a, c, a->error, a->why, now_ns);
			(void)mst_admin_event(a, &ev); /* else its lease ends the session */
			continue;
		}
		memset(&a->message, 0, sizeof(a->message));
		a->message.kind = MST_MSG_FINISHED;
		snprintf(a->message.why, sizeof(a->message.why), "%s", a->why);
		mst_admin_send(a, c, &a->message);
	}
}

/* All have started, but the start state has not come. */
static void name_state_sender(struct mst_admin *a)
{
	for (uint32_t i = 0; i < a->conn_max; i++) {
		const struct mst_conn *c = &a->conn[i];
		if (c->stream != NULL && c->sends_state)
			snprintf(a->why, sizeof(a->why),
				 "rank %" PRIu32
				 " was asked for its start state and did not send it "
				 "within the join timeout",
				 c->who.rank);
	}
}

/* The last loss is the one that was too much. */
static void add_loss(struct mst_admin *a)
{
	size_t used = strlen(a->why);

	if (a->loss[0] != '\0')
		snprintf(a->why + used, sizeof(a->why) - used, " (%s)", a->loss);
}

static void finished(struct mst_admin *a, const struct mst_notice *notice, uint64_t now_ns)
{
	enum mst_finish_why why = notice->finish.why;
	char absent[256];

	if (a->state == MST_JOB_FINISHED || a->state == MST_JOB_FAILED)
		return; /* the server is being stopped */
	absent_ranks(a, absent, sizeof(absent));
	if (why == MST_FINISH_ASKED && a->asked[0] != '\0')
		snprintf(a->why, sizeof(a->why), "%s", a->asked);
	else
		mst_sentence_finished(a->why, sizeof(a->why), why, absent, a->o);
	if (why == MST_FINISH_JOIN_TIMEOUT && absent[0] == '\0')
		name_state_sender(a);
	if (why == MST_FINISH_LOSS || why == MST_FINISH_TOO_FEW || why == MST_FINISH_SERVER)
		add_loss(a);
	a->state = mst_finish_failed(why) ? MST_JOB_FAILED : MST_JOB_FINISHED;
	a->error = mst_finish_error(why);
	a->ended_ns = now_ns;
	if (a->state == MST_JOB_FAILED)
		mst_error("job \"%s\" has failed: %s", a->o->job, a->why);
	else
		mst_info("job \"%s\" is finished at version %" PRIu64 ": %s", a->o->job,
			 notice->finish.version, a->why);
	tell_end(a, now_ns);
}

static void session_over(struct mst_admin *a, struct mst_session *session)
{
	a->let_go.who = session->who;
	snprintf(a->let_go.why, sizeof(a->let_go.why), "%s", link_reason(session));
	for (uint32_t i = 0; i < a->guest_max; i++) {
		if (&a->guest[i].session == session)
			mst_admin_guest_free(a, &a->guest[i]);
	}
}

static void handle(struct mst_admin *a, const struct mst_notice *notice, uint64_t now_ns)
{
	switch (notice->kind) {
	case MST_NOTE_ADMITTED:
	case MST_NOTE_REFUSED:
		mst_admin_welcome(a, notice, now_ns);
		break;
	case MST_NOTE_SEND_STATE:
		send_state_wanted(a, notice->who);
		break;
	case MST_NOTE_STARTED:
		started(a);
		break;
	case MST_NOTE_EVICTED:
		evicted(a, notice, now_ns);
		break;
	case MST_NOTE_OVER:
		session_over(a, notice->session);
		break;
	case MST_NOTE_SNAPSHOT:
		a->snapshot_lent = false;
		mst_admin_status(a, a->state == MST_JOB_FINISHED || a->state == MST_JOB_FAILED);
		break;
	case MST_NOTE_FINISHED:
		finished(a, notice, now_ns);
		break;
	case MST_NOTE_PEER_LOST:
		mst_admin_peer_lost(a, notice->peer.server, notice->peer.number);
		break;
	case MST_NOTE_PEER_GONE:
		mst_admin_peer_gone(a, notice, now_ns);
		break;
	case MST_NOTE_PEER_LINKED:
		break; /* a member's */
	}
}

void mst_admin_notices(struct mst_admin *a, uint64_t now_ns)
{
	struct mst_notice notice;

	while (mst_server_notice(a->server, &notice)) {
		if (mst_admin_is_member(a) && notice.kind != MST_NOTE_OVER)
			mst_admin_member_notice(a, &notice, now_ns);
		else
			handle(a, &notice, now_ns);
	}
}
