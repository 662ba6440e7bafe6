/* SPDX-License-Identifier: MIT */
#include "client/api/handle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"

/* Between the loss of a server and the first call of the next one. */
#define RETRY_NS (50 * MST_MS)

int mst_handle_serve(struct muster *m)
{
	if (m->worker.phase != MST_WORKER_STARTING)
		return 0;
	return mst_starting_serve(&m->starting, NULL);
}

static int serve(void *ctx)
{
	return mst_handle_serve(ctx);
}

void mst_handle_init(struct muster *m)
{
	struct mst_reason *failure = &m->failure;

	m->pid = getpid();
	mst_wakeup_init(&m->wakeup);
	m->links.failure = failure;
	m->links.wakeup = &m->wakeup;
	m->contiguous.links = &m->links;
	m->contiguous.failure = failure;
	m->sources = (struct mst_sources){ .links = &m->links,
					   .contiguous = &m->contiguous,
					   .failure = failure };
	m->session.settings = &m->settings;
	m->session.failure = failure;
	m->session.links = &m->links;
	m->session.stream = &mst_plain; /* until the settings have been read */
	m->inbound.links = &m->links;
	m->inbound.worker = &m->worker;
	m->hint.worker = &m->worker;
	m->hint.readers = &m->readers;
	m->cause = (struct mst_end_cause){ .session = &m->session,
					   .links = &m->links,
					   .inbound = &m->inbound,
					   .worker = &m->worker,
					   .failure = failure };
	m->engine = (struct mst_engine){ .last_words_ns = MST_LAST_WORDS_NS,
					 .session = &m->session,
					 .links = &m->links,
					 .inbound = &m->inbound,
					 .worker = &m->worker,
					 .hint = &m->hint,
					 .failure = failure,
					 .cause = &m->cause };
	m->guard = (struct mst_client_guard){ .session = &m->session,
					      .worker = &m->worker,
					      .failure = failure };
	m->transfer = (struct mst_client_transfer){ .session = &m->session,
						    .worker = &m->worker,
						    .engine = &m->engine,
						    .failure = failure,
						    .serve = serve,
						    .ctx = m };
	m->outbound.links = &m->links;
	m->outbound.worker = &m->worker;
	m->outbound.engine = &m->engine;
	m->starting = (struct mst_starting){ .session = &m->session,
					     .worker = &m->worker,
					     .engine = &m->engine,
					     .guard = &m->guard,
					     .transfer = &m->transfer,
					     .failure = failure };
}

int mst_handle_disowned(struct muster *m)
{
	return mst_reason_fail(
		&m->failure, -ECHILD,
		"rank %" PRIu32 " in job \"%s\": process %d opened this handle, and this "
		"is a child that it forked: only muster_close() may be called with the "
		"handle here; open another one in this process",
		m->session.job.rank, m->session.job.name, m->pid);
}

/* ---- joining ---- */

bool mst_handle_is_unwanted(void *ctx)
{
	return mst_control_over(((struct mst_client_session *)ctx)->control);
}

static int make_links(struct muster *m, struct mst_network_choice *choice, uint64_t deadline_ns)
{
	struct mst_links_cfg cfg = { .settings = &m->settings,
				     .welcome = &m->session.welcome,
				     .choice = choice,
				     .deadline_ns = deadline_ns,
				     .unwanted = mst_handle_is_unwanted,
				     .ctx = &m->session };
	const struct mst_heartbeat_next next = { mst_reconnect_seek, &m->reconnect };
	int rc = mst_links_open(&m->links, &cfg);

	/* The lease counts from the welcome on, so heartbeats begin before the links are made. */
	if (rc == 0)
		rc = mst_client_session_beat(&m->session, &next);
	if (rc != 0)
		return rc;
	rc = mst_links_dial(&m->links, &cfg);
	return rc == 0 ? 0 : mst_client_session_reason(&m->session, rc);
}

static const _Atomic uint64_t *preemption_hint(const struct muster *m)
{
	const struct mst_part *leader = &m->links.part[0];
	const char *inbound = leader->link->inbound;

	return (const _Atomic uint64_t *)(const void *)(inbound + leader->layout.down_hint);
}

static void worker_cfg(const struct muster *m, struct mst_worker_cfg *out)
{
	const struct mst_welcome *w = &m->session.welcome;

	*out = (struct mst_worker_cfg){
		.elems = w->elems,
		.slots = w->slots,
		.workers = w->record_ranks,
		.servers = w->server_count,
		/* 0: nothing can be read in place. */
		.buffers = m->links.transport->maps ? w->buffers : 0,
		.history = mst_client_session_returns(&m->session) ? w->history : 0,
		.norms = w->norms != 0,
		.in_order = w->owner == MUSTER_WORKERS_OWN,
		.withholds = mst_client_session_returns(&m->session),
		.first = w->first_version,
	};
}

static int no_memory(struct muster *m)
{
	return mst_reason_fail(&m->failure, -ENOMEM,
			       "no memory for %" PRIu32 " workers' shares, or for a bit for each "
			       "4096 elements",
			       m->session.welcome.workers);
}

/* How long a wait may take. Where the job outlives its servers, a wait may find one lost. */
static uint64_t wait_ns(const struct muster *m)
{
	uint64_t usual_ns = mst_client_session_patience(&m->session);
	uint64_t more_ns = m->session.welcome.server_patience_ns;

	if (m->settings.wait_ns != 0)
		return m->settings.wait_ns;
	return more_ns < MST_NEVER - usual_ns ? usual_ns + more_ns : MST_NEVER;
}

/* What the links and the welcome say. */
static void settle_in(struct muster *m)
{
	const struct mst_welcome *w = &m->session.welcome;

	m->outbound.type_size = mst_type_size(m->settings.type);
	m->outbound.checks = w->checks != 0;
	m->inbound.returns = mst_client_session_returns(&m->session);
	m->wait_ns = wait_ns(m);
	m->hint.control = m->session.control;
	m->hint.word = preemption_hint(m);
	mst_hint_publish(&m->hint);
}

int mst_handle_begin(struct muster *m)
{
	const struct mst_welcome *w = &m->session.welcome;
	struct mst_worker_cfg cfg;
	int rc = mst_contiguous_map(&m->contiguous, &m->settings, w);

	if (rc != 0)
		return rc;
	worker_cfg(m, &cfg);
	if (mst_clip_init(&m->clip, m->settings.clip, w->elems, m->settings.type) != 0 ||
	    mst_worker_init(&m->worker, &cfg) != 0)
		return no_memory(m);
	mst_lineage_init(&m->lineage, cfg.in_order);
	mst_lineage_session(&m->lineage, w);
	m->starting.lineage = &m->lineage;
	m->returning.linked = m->returning.first = true;
	settle_in(m);
	return 0;
}

int mst_handle_go_on(struct muster *m)
{
	struct mst_worker_cfg cfg;
	int rc = mst_contiguous_map(&m->contiguous, &m->settings, &m->session.welcome);

	if (rc != 0)
		return rc;
	worker_cfg(m, &cfg);
	if (mst_worker_go_on(&m->worker, &cfg) != 0)
		return no_memory(m);
	mst_outbound_begin(&m->outbound);
	settle_in(m);
	return 0;
}

static void leave(struct muster *m)
{
	mst_client_session_fini(&m->session);
	m->session.told = (struct mst_told){ 0 };
	mst_reconnect_forbid(&m->reconnect);
	mst_links_free(&m->links, false);
	mst_links_close(&m->links);
}

/* Links could not be made over the network that came next. If another is left, this worker joins
 * anew, because a token of the welcome may be used up; the leader takes it for one that has come
 * back. Not if the leader has ended the session. */
static bool may_join_again(struct muster *m, struct mst_network_choice *choice,
			   uint64_t deadline_ns)
{
	const struct mst_transport *failed = m->links.transport;
	const struct mst_told *told = &m->session.told;

	if (failed == NULL || told->error != 0 || told->finished || told->closed)
		return false;
	if (!mst_network_choice_pass(choice, failed, m->failure.text) ||
	    mst_left_ns(deadline_ns) == 0)
		return false;
	leave(m);
	return true;
}

/* The server was lost after its welcome, and another one takes its place. That one may be reached
 * over networks over which the lost one could not be any more. */
static bool may_try_next(struct muster *m, struct mst_network_choice *choice, uint64_t deadline_ns)
{
	if (!m->session.told.again || !mst_client_session_returns(&m->session) ||
	    mst_left_ns(deadline_ns) == 0)
		return false;
	leave(m);
	mst_contiguous_unmap(&m->contiguous);
	mst_worker_fini(&m->worker);
	mst_clip_fini(&m->clip);
	mst_network_choice_init(choice, &m->settings.networks);
	mst_sleep_ns(RETRY_NS);
	return true;
}

/* Over shared memory, as jobs of one host are, it goes without saying. */
static void tell_joined(const struct muster *m)
{
	const struct mst_transport *over = m->links.transport;
	const char *passed = m->session.passed.text;
	const struct muster_job *job = &m->session.job;

	mst_log(over->maps && passed[0] == '\0' ? MST_LOG_DEBUG : MST_LOG_INFO,
		"rank %" PRIu32 " of %" PRIu32 " in job \"%s\" of %s, over %s, %s%s%s", job->rank,
		job->workers, job->name, m->settings.server, over->scheme,
		mst_transport_privacy(over, m->session.welcome.path.encrypted != 0),
		passed[0] != '\0' ? "; " : "", passed);
}

/* From now on another server is looked for if this one is lost. */
static int be_open(struct muster *m)
{
	if (mst_reconnect_allow(&m->reconnect) || !mst_client_session_returns(&m->session))
		return 0;
	mst_control_look(m->session.control, &m->session.told);
	return mst_reason_fail(&m->failure, m->session.told.error, "%s",
			       m->session.told.reason.text);
}

static int join_once(struct muster *m, struct mst_network_choice *choice, uint64_t deadline_ns)
{
	int rc = mst_client_session_join(&m->session, deadline_ns);

	if (rc == 0)
		rc = make_links(m, choice, deadline_ns);
	if (rc == 0)
		rc = mst_handle_begin(m);
	return rc == 0 ? be_open(m) : rc;
}

int mst_handle_join(struct muster *m)
{
	uint64_t deadline_ns = mst_deadline_ns(m->settings.join_ns);
	struct mst_network_choice choice;
	int rc;

	m->session.stream = mst_stream_of(m->settings.credentials);
	mst_reconnect_init(&m->reconnect, &m->lineage, &m->session);
	mst_network_choice_init(&choice, &m->settings.networks);
	do {
		rc = join_once(m, &choice, deadline_ns);
	} while (rc != 0 && (may_join_again(m, &choice, deadline_ns) ||
			     may_try_next(m, &choice, deadline_ns)));
	m->session.passed = choice.passed;
	if (rc == 0)
		tell_joined(m);
	return rc;
}

void mst_handle_free(struct muster *m)
{
	atomic_store_explicit(&m->reconnect.stop, true, memory_order_release);
	mst_client_session_fini(&m->session);
	mst_reconnect_fini(&m->reconnect);
	mst_links_free(&m->links, m->inherited);
	/* Memory that a device reaches is not in a child at all: what lies at its addresses there
	 * is somebody else's. */
	if (!m->inherited || m->links.transport == NULL || !m->links.transport->pins)
		mst_contiguous_unmap(&m->contiguous);
	mst_links_close(&m->links);
	mst_result_copy_drop(&m->snapshot);
	mst_wakeup_fini(&m->wakeup);
	mst_sources_fini(&m->sources);
	mst_own_fini(&m->own);
	mst_client_transfer_fini(&m->transfer);
	mst_agreeing_let_go(&m->agreeing);
	free(m->average);
	mst_clip_fini(&m->clip);
	mst_worker_fini(&m->worker);
	mst_settings_fini(&m->settings);
	free(m);
}

int mst_handle_enter(struct muster *m, int early, const char *call)
{
	if (m->inherited)
		return mst_handle_disowned(m);
	if (m->worker.phase == MST_WORKER_OVER)
		return MST_ENTRY_OVER;
	int rc = mst_engine_update(&m->engine);
	if (rc != 0)
		return rc;
	if (m->worker.phase < MST_WORKER_WORKING && !mst_worker_has_begun(&m->worker))
		return mst_reason_fail(&m->failure, early, "call muster_start() before %s", call);
	return MST_ENTRY_OPEN;
}
