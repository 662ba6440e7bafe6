/* SPDX-License-Identifier: MIT */
/* The calls of include/muster/muster.h, but for muster_train() and those of agree.c, beside.c,
 * report.c and give_state.c. A reader who follows a gradient from muster_push() to muster_wait()
 * begins here, and goes forward: each call enters, which looks whether the session still stands;
 * then the core decides, and the parts of client/api/handle.h act. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/api/handle.h"
#include "client/api/returning.h"
#include "client/local/clip.h"
#include "client/local/sized.h"

/* How long muster_close() gives the server to judge what was pushed last. A server on a busy host
 * may stand still for a while; one that is gone ends the wait at once. */
#define FAREWELL_NS (5 * MST_SECOND)

static _Thread_local struct mst_reason open_failure;

/* ---- beginning and end ---- */

/* The sentence is kept last: simulated workers share a thread, and while the handle of one is freed
 * another one may open its own. */
static int give_up(struct muster *m, int error)
{
	struct mst_reason said = m->failure;

	mst_handle_free(m);
	open_failure = said;
	return error;
}

int muster_open(const struct muster_options *opt, struct muster **out)
{
	struct muster *m;
	int rc;

	mst_reason_clear(&open_failure);
	if (out == NULL)
		return mst_reason_fail(&open_failure, -EINVAL,
				       "muster_open() needs somewhere to put the handle");
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return mst_reason_fail(&open_failure, -ENOMEM, "no memory for a handle");
	mst_handle_init(m);
	rc = mst_settings_read(opt, &m->settings, &m->failure);
	if (rc == 0)
		rc = mst_handle_join(m);
	if (rc == 0 && mst_process_add(m) != 0)
		rc = mst_reason_fail(&m->failure, -ENOMEM, "no memory to be told of fork()");
	if (rc != 0)
		return give_up(m, rc);
	*out = m;
	return 0;
}

/* Leaves, and waits until the server has ended the session in turn: then it has judged all that was
 * pushed, and the link may go. */
static void leave(struct muster *m)
{
	uint64_t deadline_ns = mst_deadline_ns(FAREWELL_NS);
	struct mst_message *msg = calloc(1, sizeof(*msg));
	bool told = false;

	mst_reconnect_end(&m->reconnect); /* the end of its session is no loss */
	if (msg != NULL) {
		msg->kind = MST_MSG_LEAVE;
		msg->seq = m->worker.headers;
		told = mst_client_session_tell(&m->session, msg) == 0;
		free(msg);
	}
	while (told && m->inbound.ended_by == NULL && !m->links.lost && !m->links.detached &&
	       !m->session.told.closed && mst_engine_sleep(&m->engine, deadline_ns) != -ETIMEDOUT)
		(void)mst_engine_take(&m->engine);
}

void muster_close(struct muster *m)
{
	if (m == NULL)
		return;
	if (!m->inherited && mst_engine_take(&m->engine) == 0)
		leave(m);
	mst_process_remove(m);
	mst_handle_free(m);
}

const char *muster_error(const struct muster *m)
{
	return m != NULL ? m->failure.text : open_failure.text;
}

const struct muster_job *muster_job(const struct muster *m)
{
	return &m->session.job;
}

/* ---- outcomes ---- */

static const struct mst_sized sized_outcome = { "outcome", "MUSTER_OUTCOME",
						sizeof(struct muster_outcome) };

/* Before anything is waited for: can an outcome be written there? 0; -EINVAL with its sentence. */
static int check_outcome(struct muster *m, const struct muster_outcome *out, const char *call)
{
	if (out == NULL)
		return mst_reason_fail(&m->failure, -EINVAL, "%s needs an outcome to write to",
				       call);
	return mst_sized_check(&sized_outcome, out, &m->failure);
}

/* Writes the next outcome to the caller, who has been checked. What has been copied was read in
 * place, and was sound only if the session had not ended by then. Return: as muster_wait(). */
static int give_outcome(struct muster *m, struct muster_outcome *out)
{
	struct mst_worker *w = &m->worker;
	struct muster_outcome outcome;

	if (mst_worker_is_fresh(w) && mst_contiguous_bring(&m->contiguous, &w->held)) {
		int rc = mst_engine_update(&m->engine);
		if (rc != 0 || mst_return_is_due(m))
			return rc != 0 ? rc : MST_AGAIN;
	}
	if (!mst_lineage_outcome(&m->lineage, w->held.version, w->held.samples)) {
		mst_worker_go_adrift(w);
		return MST_AGAIN;
	}
	if (w->held.version != w->given)
		m->lineage.stateless = w->held.where == MST_WHERE_NOWHERE && !w->incomplete;
	int more = mst_worker_take(w, &outcome);

	if (outcome.fresh)
		mst_return_drop_copy(m);
	outcome.result = mst_contiguous_result(&m->contiguous, &w->held);
	if (m->returning.first)
		mst_return_done(m, &outcome);
	outcome.generation = m->session.welcome.generation.number;
	mst_sized_write(&sized_outcome, &outcome, out);
	mst_hint_publish(&m->hint);
	return more;
}

/* ---- starting ---- */

/* A policy of differences stays one as long as the job. */
static int check_clip(struct muster *m)
{
	if (m->clip.limit == 0 || m->worker.held.pace.local_steps == 0)
		return 0;
	return mst_reason_fail(&m->failure, -ENOTSUP,
			       "rank %" PRIu32
			       ": options.clip (or MUSTER_CLIP) is %g, which limits "
			       "gradients, and under policy %s workers contribute differences of "
			       "parameters: leave it out, and clip the gradient of each step",
			       m->session.job.rank, m->clip.limit, m->session.job.policy);
}

/* Also where the server is lost meanwhile. */
static int start(struct muster *m, const void *own)
{
	uint64_t deadline_ns = mst_deadline_ns(m->settings.join_ns);
	int rc = mst_starting_run(&m->starting, own);

	while (rc == MST_AGAIN) {
		rc = mst_return_await(m, deadline_ns);
		if (rc == 0)
			rc = mst_starting_run(&m->starting, own);
	}
	mst_return_settle(m);
	return rc;
}

int muster_start(struct muster *m, const void *own, struct muster_outcome *out)
{
	if (m->inherited)
		return mst_handle_disowned(m);
	int rc = check_outcome(m, out, "muster_start()");
	if (rc != 0)
		return rc;
	if (m->worker.phase == MST_WORKER_WORKING || m->worker.phase == MST_WORKER_OVER)
		return mst_reason_fail(&m->failure, -EINVAL, "this handle has started already");
	do {
		rc = start(m, own);
		if (rc == 0)
			rc = give_outcome(m, out);
	} while (rc == MST_AGAIN);
	return rc < 0 ? rc : check_clip(m); /* that more may be ready already, a wait tells */
}

/* ---- filling ---- */

static int no_buffer(struct muster *m)
{
	if (mst_tickets_full(&m->worker.tickets))
		return mst_reason_fail(&m->failure, -EAGAIN,
				       "%u pushes have no outcome yet; call muster_wait()",
				       MUSTER_TICKETS_MAX);
	return mst_reason_fail(&m->failure, -EAGAIN,
			       "all %" PRIu32 " gradient buffers are in flight; call muster_wait()",
			       m->session.job.slots);
}

void *muster_gradient(struct muster *m)
{
	if (mst_handle_enter(m, -EAGAIN, "muster_gradient()") != MST_ENTRY_OPEN)
		return NULL;
	int slot = mst_worker_fill(&m->worker);
	if (slot < 0) {
		(void)no_buffer(m);
		return NULL;
	}
	mst_hint_publish(&m->hint);
	return mst_contiguous_compose(&m->contiguous, slot);
}

/* ---- pushing ---- */

static int bad_range(struct muster *m, int rc, uint64_t first, uint64_t count)
{
	const struct mst_ranges *ranges = &m->worker.ranges;
	struct mst_range given;

	switch (rc) {
	case -ERANGE:
		return mst_reason_fail(&m->failure, -EINVAL,
				       "%" PRIu64 " elements from element %" PRIu64
				       " on reach beyond the vector, which has %" PRIu64,
				       count, first, m->session.job.elems);
	case -EEXIST:
		given = mst_ranges_given(ranges, first);
		return mst_reason_fail(&m->failure, -EINVAL,
				       "elements %" PRIu64 " to %" PRIu64
				       " cannot be given: %" PRIu64 " to %" PRIu64
				       " of this contribution were given before",
				       first, first + count - 1, given.begin, given.end - 1);
	default:
		return mst_reason_fail(
			&m->failure, -EINVAL,
			"%" PRIu32 " separate ranges of this contribution were given, more "
			"are not kept apart; give neighbouring ones one after the other",
			ranges->count);
	}
}

/* What the guard has said of the contribution at hand: one that does not pass is given up. */
static int guarded(struct muster *m, int rc)
{
	if (rc != -EDOM)
		return rc;
	m->worker.refused++;
	rc = mst_outbound_abandon(&m->outbound);
	return rc != 0 ? rc : -EDOM;
}

/* Is it memory that is registered? 0; -EINVAL with its sentence: a part of it is. */
static int look_up(struct muster *m, uint64_t count, const void *src, struct mst_source *out)
{
	*out = (struct mst_source){ .at = src };
	if (src == NULL || count > m->session.job.elems) /* such a range is refused as a whole */
		return 0;
	return mst_sources_find(&m->sources, src, count * m->outbound.type_size, &out->region);
}

/* Counts a range in the norm of the contribution, where the servers want to know that. It lies at
 * @data. */
static void measure(struct muster *m, const struct mst_range *range, const void *data)
{
	if (m->worker.cfg.norms)
		mst_worker_squares(&m->worker, mst_client_squares(data, m->session.job.type,
								  range->end - range->begin));
}

static void clip_begin_if_new(struct muster *m)
{
	if (m->clip.limit != 0 && m->worker.ranges.count == 0)
		mst_clip_begin(&m->clip);
}

/* What is lent may be the caller's again before the norm is known. */
static void clip_source(struct muster *m, int slot, const struct mst_range *range, const void *data,
			bool lends)
{
	if (m->clip.limit == 0)
		return;
	mst_clip_range(&m->clip, range, data);
	if (lends)
		m->links.copied += mst_clip_keep(&m->clip, range, data,
						 mst_contiguous_compose(&m->contiguous, slot));
}

/* Where peers map the slot, a copy to it is all that a source needs, registered or not. A source
 * that lies there already needs none. */
static int hand_over(struct muster *m, int slot, const struct mst_range *range,
		     const struct mst_source *source)
{
	const char *gradient = mst_contiguous_gradient(&m->contiguous, slot);
	const char *place = gradient + range->begin * m->outbound.type_size;
	bool lends = source->region != NULL && !m->links.transport->maps;
	int rc;

	clip_source(m, slot, range, source->at != NULL ? source->at : place, lends);
	if (source->at == NULL) {
		rc = mst_client_guard_look(&m->guard, gradient, range);
	} else if (lends || source->at == place) {
		rc = mst_client_guard_source(&m->guard, range, source->at);
	} else {
		rc = mst_client_guard_copy(&m->guard, mst_contiguous_compose(&m->contiguous, slot),
					   range, source->at);
		m->links.copied += (range->end - range->begin) * m->outbound.type_size;
	}
	rc = guarded(m, rc);
	if (rc != 0)
		return rc;
	measure(m, range, lends ? source->at : place);
	return lends ? mst_outbound_lend(&m->outbound, slot, range, source)
		     : mst_outbound_data(&m->outbound, slot, range, false);
}

static int push_piece(struct muster *m, const struct muster_piece *piece)
{
	struct mst_range range = { piece->first, piece->first + piece->count };
	struct mst_source source;
	int rc = look_up(m, piece->count, piece->src, &source);

	if (rc != 0)
		return rc;
	int slot = mst_worker_fill(&m->worker);
	if (slot < 0)
		return no_buffer(m);
	mst_hint_publish(&m->hint);
	clip_begin_if_new(m);
	rc = mst_worker_range(&m->worker, piece->first, piece->count);
	if (rc != 0)
		return bad_range(m, rc, piece->first, piece->count);
	return hand_over(m, slot, &range, &source);
}

int muster_push_range(struct muster *m, uint64_t first, uint64_t count, const void *src)
{
	struct muster_piece piece = { first, count, src };
	int rc = mst_handle_enter(m, -EINVAL, "muster_push_range()");

	if (rc != MST_ENTRY_OPEN)
		return rc == MST_ENTRY_OVER ? 0 : rc;
	return push_piece(m, &piece);
}

int muster_push_ranges(struct muster *m, const struct muster_piece *pieces, uint32_t count)
{
	int rc = mst_handle_enter(m, -EINVAL, "muster_push_ranges()");

	if (rc != MST_ENTRY_OPEN)
		return rc == MST_ENTRY_OVER ? 0 : rc;
	if (pieces == NULL && count > 0)
		return mst_reason_fail(&m->failure, -EINVAL,
				       "muster_push_ranges() needs the %" PRIu32 " pieces", count);
	for (uint32_t i = 0; i < count && rc == 0; i++)
		rc = push_piece(m, &pieces[i]);
	return rc;
}

static int read_contribution(struct muster *m, const struct muster_contribution *theirs,
			     struct muster_contribution *out)
{
	static const struct mst_sized sized = { "contribution", "MUSTER_CONTRIBUTION",
						sizeof(struct muster_contribution) };

	if (theirs == NULL)
		return mst_reason_fail(&m->failure, -EINVAL, "muster_push() needs a contribution");
	*out = (struct muster_contribution)MUSTER_CONTRIBUTION;
	int rc = mst_sized_read(&sized, theirs, out, &m->failure);
	if (rc != 0)
		return rc;
	if (!(out->weight >= MST_WEIGHT_MIN && out->weight <= MST_WEIGHT_MAX))
		return mst_reason_fail(
			&m->failure, -EINVAL,
			"a contribution's weight is %g; it is the number of samples, from "
			"2^-53 to 2^53, which floats can divide by",
			out->weight);
	return 0;
}

/* Sends the data that no range has covered. */
static int send_rest(struct muster *m, int slot, const char *gradient)
{
	struct mst_range rest = { 0, 0 };
	int rc = 0;

	while (rc == 0 && rest.end < m->session.job.elems &&
	       mst_worker_rest(&m->worker, rest.end, &rest)) {
		rc = guarded(m, mst_client_guard_look(&m->guard, gradient, &rest));
		if (rc == 0) {
			measure(m, &rest, gradient + rest.begin * m->outbound.type_size);
			rc = mst_outbound_data(&m->outbound, slot, &rest, true);
		}
	}
	return rc;
}

/* The rest of the data, and after it the header. */
static int hand_in(struct muster *m, const struct muster_contribution *c, uint64_t *ticket)
{
	struct mst_lane_header header;
	int slot = mst_worker_fill(&m->worker);

	if (slot < 0)
		return no_buffer(m);
	const char *gradient = mst_contiguous_gradient(&m->contiguous, slot);
	clip_begin_if_new(m);
	int rc = guarded(m, mst_client_guard_loss(&m->guard, c));
	if (rc == 0)
		rc = send_rest(m, slot, gradient);
	if (rc == 0)
		rc = mst_worker_push(&m->worker, c, &header, ticket);
	if (rc <= 0)
		return rc;
	if (m->clip.limit != 0)
		mst_clip_end(&m->clip, gradient, &header);
	return mst_outbound_header(&m->outbound, &header);
}

int muster_push(struct muster *m, const struct muster_contribution *c, uint64_t *ticket)
{
	struct muster_contribution read;
	uint64_t number = 0;
	int rc = mst_handle_enter(m, -EINVAL, "muster_push()");

	if (rc == MST_ENTRY_OPEN) {
		rc = read_contribution(m, c, &read);
		if (rc != 0)
			return rc;
		rc = hand_in(m, &read, &number);
		mst_hint_publish(&m->hint);
	}
	if (rc < 0)
		return rc;
	if (ticket != NULL)
		*ticket = number;
	return 0;
}

int muster_abandon(struct muster *m)
{
	int rc = mst_handle_enter(m, -EINVAL, "muster_abandon()");

	if (rc != MST_ENTRY_OPEN)
		return rc == MST_ENTRY_OVER ? 0 : rc;
	enum muster_hint hint = mst_hint_read(&m->hint);
	m->outbound.given_up += hint == MUSTER_GIVE_UP;
	return hint == MUSTER_HAND_IN ? mst_outbound_pass(&m->outbound)
				      : mst_outbound_abandon(&m->outbound);
}

/* ---- asking and waiting ---- */

int muster_pull(struct muster *m)
{
	struct mst_lane_ask ask;
	int rc = mst_handle_enter(m, -EINVAL, "muster_pull()");

	if (rc != MST_ENTRY_OPEN)
		return rc == MST_ENTRY_OVER ? 0 : rc;
	return mst_worker_pull(&m->worker, &ask) ? mst_outbound_ask(&m->outbound, &ask) : 0;
}

static int time_is_over(struct muster *m)
{
	unsigned misses = mst_worker_misses(&m->worker);

	return mst_reason_fail(&m->failure, -ETIMEDOUT,
			       "rank %" PRIu32
			       ": after %.3g s there is still missing:%s%s%s%s%s; nothing "
			       "is lost, wait again",
			       m->session.job.rank, (double)m->wait_ns / (double)MST_SECOND,
			       misses & MST_MISSES_ANSWER ? " an answer" : "",
			       misses & MST_MISSES_VERDICT ? " a verdict" : "",
			       misses & MST_MISSES_SLOT ? " a free gradient buffer" : "",
			       misses & MST_MISSES_SOURCE ? " registered memory that is lent" : "",
			       misses & MST_MISSES_END ? " the end of the job" : "");
}

/* Processes what has arrived. @misses: what an outcome still lacks after that. Return: 0, or an
 * error; MST_AGAIN: the session is lost, and the handle may come back. */
static int look_once(struct muster *m, unsigned *misses)
{
	int rc = mst_engine_update(&m->engine);

	if (rc == 0 && mst_return_is_due(m))
		rc = MST_AGAIN;
	if (rc == 0 && (m->worker.phase == MST_WORKER_STARTING || m->lineage.of.number == 0))
		mst_return_settle(m);
	if (rc == 0)
		mst_return_tell_end(m);
	*misses = mst_worker_misses(&m->worker);
	if (!mst_client_session_has_begun(&m->session))
		*misses |= MST_MISSES_ANSWER;
	if (rc == 0 && mst_client_transfer_is_behind(&m->transfer) && mst_misses_words(*misses))
		rc = mst_client_transfer_tell(&m->transfer);
	return rc;
}

static int await_outcome(struct muster *m)
{
	uint64_t deadline_ns = mst_deadline_ns(m->wait_ns);
	struct mst_engine_watch watch = { 0 };
	struct mst_lane_ask ask;
	unsigned misses;
	int slept = 0;

	for (;;) {
		int rc = look_once(m, &misses);
		if (rc == MST_AGAIN) {
			rc = mst_return_await(m, deadline_ns);
			if (rc == 0)
				continue;
		}
		if (rc != 0 || misses == 0)
			return rc;
		if (slept == -ETIMEDOUT)
			return time_is_over(m);
		rc = mst_handle_serve(m);
		if (rc == 0)
			rc = mst_engine_watch(&m->engine, &watch);
		if (rc == 0)
			rc = mst_engine_interrupted(&m->engine, slept);
		if (rc == 0 && mst_worker_wait_asks(&m->worker, &ask))
			rc = mst_outbound_ask(&m->outbound, &ask);
		if (rc == 0)
			rc = mst_engine_cut_off(&m->engine);
		if (rc < 0)
			return rc;
		if (rc == 0)
			slept = mst_engine_sleep(&m->engine, deadline_ns);
	}
}

/* One look, which asks where a wait would ask. 0: an outcome is ready; -EAGAIN: not yet. */
static int look_for_outcome(struct muster *m)
{
	struct mst_lane_ask ask;
	unsigned misses;
	int rc = look_once(m, &misses);

	if (rc == MST_AGAIN) {
		rc = mst_return_step(m);
		if (rc == 0)
			rc = look_once(m, &misses);
		rc = rc == MST_AGAIN ? -EAGAIN : rc;
	}
	if (rc != 0 || misses == 0)
		return rc;
	rc = mst_handle_serve(m);
	if (rc == 0 && mst_worker_wait_asks(&m->worker, &ask))
		rc = mst_outbound_ask(&m->outbound, &ask);
	if (rc == 0)
		rc = mst_engine_cut_off(&m->engine);
	if (rc > 0 &&
	    mst_worker_misses(&m->worker) == 0) /* the words have come; memory may be lent */
		return 0;
	return rc >= 0 ? -EAGAIN : rc;
}

/* What arrives after the descriptor has been armed makes it readable. So the look that counts is
 * the one after the arming. */
static int try_outcome(struct muster *m)
{
	int rc = look_for_outcome(m);

	if (rc == -EAGAIN && mst_wakeup_has_fd(&m->wakeup)) {
		mst_wakeup_arm(&m->wakeup);
		rc = look_for_outcome(m);
	}
	if (rc != -EAGAIN) {
		m->try_watch = (struct mst_engine_watch){ 0 };
		return rc;
	}
	m->try_watch.goes_on = true; /* a try does not wait, and so has no time that is over */
	rc = mst_engine_watch(&m->engine, &m->try_watch);
	if (rc == 0)
		rc = mst_engine_interrupted(&m->engine, 0);
	return rc != 0 ? rc : mst_reason_fail(&m->failure, -EAGAIN, "no outcome is ready yet");
}

/* @await: waits for an outcome, or looks for one. */
static int next_outcome(struct muster *m, struct muster_outcome *out, int (*await)(struct muster *),
			const char *call)
{
	if (m->inherited)
		return mst_handle_disowned(m);
	int rc = check_outcome(m, out, call);
	if (rc != 0)
		return rc;
	if (m->worker.phase == MST_WORKER_OVER)
		return give_outcome(m, out);
	if (m->worker.phase < MST_WORKER_WORKING && !mst_worker_has_begun(&m->worker))
		return mst_reason_fail(&m->failure, -EINVAL, "call muster_start() before %s", call);
	if (m->transfer.state != NULL) /* else a wait makes no call of the allocator */
		mst_client_transfer_let_go(&m->transfer);
	if (m->agreeing.taken.data != NULL)
		mst_agreeing_let_go(&m->agreeing);
	do {
		rc = await(m);
		if (rc == 0)
			rc = give_outcome(m, out);
	} while (rc == MST_AGAIN);
	return rc;
}

int muster_wait(struct muster *m, struct muster_outcome *out)
{
	return next_outcome(m, out, await_outcome, "muster_wait()");
}

int muster_try_wait(struct muster *m, struct muster_outcome *out)
{
	return next_outcome(m, out, try_outcome, "muster_try_wait()");
}

/* ---- registered memory ---- */

int muster_register(struct muster *m, void *base, size_t bytes)
{
	if (m->inherited)
		return mst_handle_disowned(m);
	return mst_sources_register(&m->sources, base, bytes);
}

int muster_unregister(struct muster *m, const void *base)
{
	if (m->inherited)
		return mst_handle_disowned(m);
	/* What has been sent by now is back. How the session stands does not matter. */
	(void)mst_engine_take(&m->engine);
	return mst_sources_unregister(&m->sources, base);
}

int muster_released(struct muster *m, uint64_t ticket)
{
	if (m->inherited)
		return mst_handle_disowned(m);
	if (ticket > m->worker.tickets.sent)
		return mst_reason_fail(&m->failure, -EINVAL,
				       "there is no ticket %" PRIu64 " yet: the newest is %" PRIu64,
				       ticket, m->worker.tickets.sent);
	if (mst_worker_released(&m->worker, ticket))
		return 1;
	int rc = mst_engine_update(&m->engine);
	if (mst_worker_released(&m->worker, ticket))
		return 1;
	if (rc == 0 && m->worker.cut)
		rc = mst_reason_fail(&m->failure, -ENOTCONN,
				     "rank %" PRIu32 ": a link has been lost over which registered "
				     "memory was still being sent: muster_close() gives it back",
				     m->session.job.rank);
	return rc;
}

/* ---- the end of the job ---- */

int muster_finish(struct muster *m, const char *why)
{
	int rc = mst_handle_enter(m, -EINVAL, "muster_finish()");

	if (rc != MST_ENTRY_OPEN)
		return rc == MST_ENTRY_OVER ? 0 : rc;
	if (m->worker.finishing)
		return 0;
	if (m->session.welcome.may_finish == 0)
		return mst_reason_fail(
			&m->failure, -EACCES,
			"only an operator may finish job \"%s\", with muster finish: "
			"its server has --finish operator",
			m->session.welcome.job);

	struct mst_message *msg = calloc(1, sizeof(*msg));
	if (msg == NULL)
		return mst_reason_fail(&m->failure, -ENOMEM, "no memory for a message");
	msg->kind = MST_MSG_FINISH;
	(void)snprintf(msg->why, sizeof(msg->why), "%s", why != NULL ? why : "");
	rc = mst_client_session_tell(&m->session, msg);
	free(msg);
	if (rc == -EAGAIN)
		return mst_reason_fail(&m->failure, rc,
				       "the control connection is busy; try again");
	/* -EPIPE: the connection is over, and the next look tells why. */
	m->worker.finishing = true;
	m->returning.owes_end = m->worker.phase != MST_WORKER_WORKING;
	return 0;
}
