/* SPDX-License-Identifier: MIT */
#include "client/api/returning.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/base/log.h"

/* A server that stands still holds up a call no longer than this. */
#define LINK_NS (10 * MST_SECOND)
/* While there is no net to sleep on. */
#define NAP_NS (5 * MST_MS)

/* ---- the session that is lost ---- */

/* A link has been lost, and the leader has not said why. The words may be on their way, and may be
 * that nobody is to come back. */
static int end_session(struct muster *m)
{
	struct mst_reason why;

	if (m->returning.heard_until_ns == 0)
		m->returning.heard_until_ns = mst_deadline_ns(MST_LAST_WORDS_NS);
	if (mst_left_ns(m->returning.heard_until_ns) > 0)
		return -EAGAIN;
	mst_reason_set(&why, "the link to a server is lost, and the leader at %s says nothing",
		       m->settings.server);
	mst_control_give_up(m->session.control, why.text);
	mst_heartbeat_ring(m->session.heartbeat);
	return -EAGAIN;
}

/* Its link was lost, and then its leader has said that the job has ended: nobody is sought. */
static int miss_end(struct muster *m)
{
	mst_engine_fail(&m->engine, -ENOTCONN);
	mst_engine_withdraw(&m->engine);
	return mst_engine_missed_end(&m->engine);
}

static void close_links(struct muster *m);

/* It cannot be put in the place of the last: it is lost again. */
static int lose_again(struct muster *m)
{
	close_links(m);
	mst_control_give_up(m->session.control, m->failure.text);
	mst_heartbeat_ring(m->session.heartbeat);
	return -EAGAIN;
}

/* Every later call gives the same error, in place of what the leader that is lost has said. */
static int over(struct muster *m, const struct mst_reason *why)
{
	struct mst_told *told = &m->session.told;
	uint64_t lost_ns, left_ns;

	mst_reconnect_times(&m->reconnect, &lost_ns, &left_ns);
	told->again = false;
	told->error = m->reconnect.error;
	if (told->error == -EIDRM)
		told->reason = *why;
	else
		mst_reason_set(
			&told->reason,
			"its server was lost, and no other has let it come back within %.3g s "
			"(--server-patience %.3g s): %s",
			(double)lost_ns / (double)MST_SECOND,
			(double)m->session.welcome.server_patience_ns / (double)MST_SECOND,
			why->text);
	mst_engine_fail(&m->engine, told->error);
	mst_engine_withdraw(&m->engine);
	return mst_end_cause_tell(&m->cause);
}

/* ---- the next session ---- */

/* What the program may still read, and what the next servers may ask for. */
static void keep_result(struct muster *m)
{
	const struct mst_worker *w = &m->worker;

	if (m->returning.linked && w->held.version == w->given && w->given != MST_VERSION_NONE &&
	    !w->held.earlier)
		mst_result_copy_take(&m->snapshot, &m->contiguous, &w->held);
	m->contiguous.kept = m->snapshot.data;
}

/* Where a session has been lost again before its links were made, there are none. */
static void close_links(struct muster *m)
{
	mst_hint_suspend(&m->hint);
	mst_sources_let_go(&m->sources);
	mst_links_free(&m->links, false);
	mst_contiguous_unmap(&m->contiguous);
	mst_process_hold(); /* a child must not find a net that is being closed */
	mst_links_close(&m->links);
	mst_process_release();
	mst_worker_unlink(&m->worker);
	m->returning.linked = false;
}

static void remember(struct muster *m)
{
	struct mst_returning_handle *r = &m->returning;

	if (r->unsettled)
		return; /* nothing has been pushed since */
	r->unsettled = true;
	r->base = m->worker.base;
	r->sent = m->worker.base + m->worker.headers;
	r->incarnation = m->session.job.incarnation;
	r->generation = m->lineage.of.id;
}

/* The program reads its version in the memory of a server that has ended its session. Has the
 * server begun to write there? Then what the program has read is void, as with any session that
 * ends. */
static bool is_read_torn(const struct muster *m)
{
	const struct mst_worker *w = &m->worker;

	return m->returning.linked && m->links.marked && w->ask == MST_ASK_NONE &&
	       w->held.where == MST_WHERE_IN_PLACE && !w->held.earlier &&
	       w->held.version == w->given && !mst_contiguous_whole(&m->contiguous, &w->held);
}

static int read_torn(struct muster *m)
{
	mst_engine_fail(&m->engine, -ENOTCONN);
	mst_reconnect_end(&m->reconnect);
	mst_heartbeat_ring(m->session.heartbeat);
	return mst_reason_fail(
		&m->failure, -ENOTCONN,
		"rank %" PRIu32 " in job \"%s\": its session had ended while it read "
		"version %" PRIu64 ", and the server has written over that: what was "
		"applied since the last outcome is void",
		m->session.job.rank, m->session.job.name, m->worker.given);
}

static void forget_calls(struct muster *m)
{
	m->inbound.ended_by = m->inbound.odd = NULL;
	m->cause.waited = false;
	m->returning.heard_until_ns = 0;
	m->transfer.answered = m->transfer.overcome = 0;
	m->average_asked = false;
	m->goals_told = 0;
	m->goal_told = false;
	m->differences = 0;
	m->try_watch = (struct mst_engine_watch){ 0 };
}

static int link_again(struct muster *m)
{
	struct mst_network_choice *choice = &m->returning.choice;
	uint64_t most_ns = m->settings.join_ns < LINK_NS ? m->settings.join_ns : LINK_NS;
	uint64_t deadline_ns = mst_deadline_ns(most_ns);

	if (!m->returning.chooses)
		mst_network_choice_init(choice, &m->settings.networks);
	m->returning.chooses = true;
	struct mst_links_cfg cfg = { .settings = &m->settings,
				     .welcome = &m->session.welcome,
				     .choice = choice,
				     .deadline_ns = deadline_ns,
				     .unwanted = mst_handle_is_unwanted,
				     .ctx = &m->session };
	int rc = mst_links_open(&m->links, &cfg);
	if (rc == 0)
		rc = mst_links_dial(&m->links, &cfg);
	/* The next try is over another network, if there is one. */
	if (rc != 0 && (m->links.transport == NULL ||
			!mst_network_choice_pass(choice, m->links.transport, m->failure.text)))
		m->returning.chooses = false;
	if (rc == 0)
		rc = mst_sources_renew(&m->sources);
	return rc;
}

static int tell_finish(struct muster *m, uint64_t goal)
{
	struct mst_message *msg = calloc(1, sizeof(*msg));

	if (msg == NULL)
		return -ENOMEM;
	msg->kind = MST_MSG_FINISH;
	msg->goal = goal;
	int rc = mst_client_session_tell(&m->session, msg);
	free(msg);
	return rc;
}

/* What the leader of the last session knew of this worker. Without memory for it another worker may
 * have told the same. */
static void tell_again(struct muster *m)
{
	if (m->goal_given != 0 && tell_finish(m, m->goal_given) == 0)
		m->goals_told++;
	m->returning.owes_end = m->worker.finishing;
}

void mst_return_tell_end(struct muster *m)
{
	if (!m->returning.owes_end || m->worker.phase != MST_WORKER_WORKING)
		return;
	int rc = tell_finish(m, 0);
	m->returning.owes_end = rc == -EAGAIN || rc == -ENOMEM; /* the next look tries again */
}

static int swap(struct muster *m)
{
	mst_return_settle(m); /* by what has been heard of the session that is lost */
	if (is_read_torn(m))
		return read_torn(m);
	keep_result(m);
	remember(m);
	close_links(m);
	mst_process_hold();
	bool there = mst_reconnect_take(&m->reconnect, &m->session);
	mst_process_release();
	if (!there)
		return -EAGAIN;
	forget_calls(m);
	int rc = link_again(m);
	if (rc == 0)
		rc = mst_handle_go_on(m);
	if (rc != 0)
		return lose_again(m);
	m->returning.linked = m->returning.first = true;
	m->returning.chooses = false;
	mst_return_settle(m); /* the welcome may have the verdicts, which START has forgotten */
	mst_starting_again(&m->starting, m->snapshot.data);
	tell_again(m);
	return 0;
}

int mst_return_step(struct muster *m)
{
	struct mst_reason why;

	switch (mst_reconnect_look(&m->reconnect, &why)) {
	case MST_RECONNECT_NONE:
		if (m->session.told.finished)
			return miss_end(m);
		return mst_control_lost(m->session.control) ? -EAGAIN : end_session(m);
	case MST_RECONNECT_SEEKS:
		return -EAGAIN;
	case MST_RECONNECT_OVER:
		return over(m, &why);
	default:
		return swap(m);
	}
}

/* Without a word: the connection has closed, or a server is there that has not begun. */
static const char *why_lost(const struct muster *m)
{
	if (m->session.told.reason.text[0] != '\0')
		return m->session.told.reason.text;
	return mst_control_lost(m->session.control) ? "its connection has closed"
						    : "a server there waits for other ranks";
}

static int time_is_over(struct muster *m)
{
	uint64_t lost_ns, left_ns;

	mst_reconnect_times(&m->reconnect, &lost_ns, &left_ns);
	return mst_reason_fail(&m->failure, -ETIMEDOUT,
			       "rank %" PRIu32 ": a server of job \"%s\" at %s has been lost for "
			       "%.3g s (%.200s), and no other has taken its place yet; nothing is "
			       "lost, wait again (for %.3g s more, --server-patience)",
			       m->session.job.rank, m->session.job.name, m->settings.server,
			       (double)lost_ns / (double)MST_SECOND, why_lost(m),
			       (double)left_ns / (double)MST_SECOND);
}

static int sleep_for(struct muster *m, uint64_t deadline_ns)
{
	uint64_t left_ns = mst_left_ns(deadline_ns);

	if (m->links.net != NULL && !m->links.lost)
		return mst_engine_sleep(&m->engine, deadline_ns);
	if (left_ns == 0)
		return -ETIMEDOUT;
	mst_sleep_ns(left_ns < NAP_NS ? left_ns : NAP_NS);
	return 0;
}

int mst_return_await(struct muster *m, uint64_t deadline_ns)
{
	int slept = 0;

	for (;;) {
		int rc = mst_engine_take(&m->engine);
		if (rc == 0)
			rc = mst_return_step(m);
		if (rc != -EAGAIN)
			return rc;
		if (slept == -ETIMEDOUT)
			return time_is_over(m);
		rc = mst_engine_interrupted(&m->engine, slept);
		if (rc != 0)
			return rc;
		slept = sleep_for(m, deadline_ns);
	}
}

/* ---- verdicts of what was pushed in the last session ---- */

/* It is the same generation, or servers own: its ledger knows, by itself or from the checkpoint. */
static void judge_by_welcome(struct muster *m)
{
	const struct mst_returning_handle *r = &m->returning;
	const struct mst_welcome *w = &m->session.welcome;

	for (uint32_t i = 0; i < w->verdict_count; i++) {
		const struct muster_push_verdict *v = &w->verdict[i];
		struct mst_ticket ticket = { .number = r->base + v->ticket,
					     .counted_in = v->counted_in,
					     .verdict = v->verdict };
		if (v->incarnation == r->incarnation && ticket.number > m->worker.tickets.judged)
			(void)mst_tickets_judge(&m->worker.tickets, &ticket);
	}
}

/* The last version of this worker, which has @given, that the generation goes on from. */
static uint64_t shared_with(const struct muster *m, uint64_t given)
{
	const struct mst_welcome *w = &m->session.welcome;

	if (m->session.job.owner == MUSTER_WORKERS_OWN)
		return mst_lineage_shared(&m->lineage, &w->generation, given);
	return w->stands < given ? w->stands : given; /* the server knows */
}

/* What the worker has after the version that the generation goes on from is void. It is told with
 * the next outcome, which may come from yet another generation. */
static void note_withdrawn(struct muster *m)
{
	struct mst_returning_handle *r = &m->returning;
	const struct mst_generation *g = &m->session.welcome.generation;
	uint64_t given = m->worker.given;

	if (given == MST_VERSION_NONE || r->number == 0 || r->number == g->number ||
	    r->noted == g->number)
		return;
	r->noted = g->number;
	r->shared = shared_with(m, given);
	if (given == r->had)
		r->withdrawn = 0; /* what was said of the same before does not count */
	r->had = given;
	r->withdrawn += given - r->shared;
}

/* Did a push of this worker count in this version, in the generation of its last session, or in an
 * earlier one, of which it has not been told yet? */
static bool counted_in(const struct muster *m, const struct mst_counted_row *row)
{
	return row->made == m->returning.generation ||
	       mst_lineage_has_counted(&m->lineage, row->version, row->made);
}

/* The last version that the next generation goes on from, and in which a push of this worker
 * counted; or one before in which none did. */
static uint64_t last_that_counts(const struct muster *m)
{
	const struct mst_returning_handle *r = &m->returning;
	const struct mst_begins *b = &m->session.told.begins;
	const struct mst_generation *g = &b->generation;
	uint64_t last = r->shared;

	if (m->worker.given == MST_VERSION_NONE)
		return g->began;
	if (last < m->worker.given)
		return last;
	if (g->made == r->generation)
		return g->began;
	if (g->made_before == r->generation && last < g->began)
		last = g->began - 1;
	for (uint32_t i = 0; i < b->counted.count; i++) {
		const struct mst_counted_row *row = &b->counted.row[i];
		if (counted_in(m, row) && row->version > last)
			last = row->version;
	}
	return last;
}

/* The sets know. A set names a rank, and so a ticket only if it was pushed in the generation that
 * made the version. */
static void judge_by_sets(struct muster *m)
{
	const struct mst_begins *b = &m->session.told.begins;

	mst_tickets_withdraw(&m->worker.tickets, last_that_counts(m));
	for (uint32_t i = 0; i < b->counted.count; i++) {
		const struct mst_counted_row *row = &b->counted.row[i];
		struct mst_tickets_part part = { .version = row->version,
						 .count = row->count,
						 .window = row->window,
						 .sent = m->returning.sent };
		if (row->made == m->returning.generation && row->version > 0)
			mst_tickets_counted(&m->worker.tickets, &part);
		if (counted_in(m, row))
			mst_lineage_counted(&m->lineage, row->version, row->made);
	}
}

void mst_return_settle(struct muster *m)
{
	struct mst_client_session *s = &m->session;

	if (!mst_client_session_returns(s))
		return;
	if (!mst_client_session_has_begun(s)) {
		if (s->told.finished && m->returning.unsettled) { /* nobody tells any more */
			m->returning.unsettled = false;
			mst_tickets_cancel_rest(&m->worker.tickets);
		}
		return;
	}
	if (s->told.begun) {
		s->welcome.generation = s->told.begins.generation;
		s->welcome.stands = s->told.begins.stands;
	}
	note_withdrawn(m);
	mst_lineage_begins(&m->lineage, &s->welcome.generation);
	if (!m->returning.unsettled)
		return;
	m->returning.unsettled = false;
	bool same = s->welcome.generation.id == m->returning.generation;
	/* A version that is saved stands, though no outcome of this worker had it: the welcome has
	 * its verdict again. */
	if (s->job.owner == MUSTER_SERVERS_OWN && !same)
		mst_tickets_reopen(&m->worker.tickets, s->welcome.stands);
	if (same || s->job.owner == MUSTER_SERVERS_OWN)
		judge_by_welcome(m);
	else if (s->told.begun)
		judge_by_sets(m);
	mst_tickets_cancel_rest(&m->worker.tickets);
}

void mst_return_drop_copy(struct muster *m)
{
	if (m->snapshot.data == NULL)
		return;
	m->contiguous.kept = NULL;
	m->starting.brings = NULL;
	mst_result_copy_drop(&m->snapshot);
}

void mst_return_done(struct muster *m, struct muster_outcome *out)
{
	uint64_t lost_ns = mst_reconnect_settle(&m->reconnect);

	m->returning.first = false;
	out->withdrawn = m->returning.withdrawn;
	m->returning.withdrawn = 0;
	m->returning.had = MST_VERSION_NONE;
	m->returning.number = m->session.welcome.generation.number;

	if (lost_ns != 0)
		mst_info("rank %" PRIu32 " has come back to job \"%s\" of %s with version %" PRIu64
			 ", generation %" PRIu64 ", after %.3g s",
			 m->session.job.rank, m->session.job.name, m->settings.server,
			 m->worker.given, m->session.welcome.generation.number,
			 (double)lost_ns / (double)MST_SECOND);
}
