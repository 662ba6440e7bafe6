/* SPDX-License-Identifier: MIT */
#include "client/session/engine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/base/reason.h"
#include "common/base/text.h"

/* The longest sleep: then the engine looks by itself whether something has come. */
#define NAP_NS MST_SECOND
/* How often in a lease a wait looks whether its servers are alive. */
#define LOOKS_PER_LEASE 8u
/* Sometimes the control connection is closed first. This is how long a call waits for the links. */
#define LINK_WORDS_NS (100 * MST_MS)
#define EVENTS 16
/* How long a sleep is while there is no net to sleep on. */
#define NO_NET_NAP_NS (5 * MST_MS)

/* ---- what muster_check() reads ---- */

void mst_hint_publish(struct mst_hint *h)
{
	const struct mst_worker *w = h->worker;
	bool over = w->phase == MST_WORKER_FAILED || w->adrift || w->last != MST_VERSION_NONE;

	/* Relaxed: muster_check() gives hints, nothing is read on the strength of them. Release:
	 * where a session has taken the place of another, a thread that finds it not over finds
	 * its control connection and its word. */
	atomic_store_explicit(&h->computes_on, mst_worker_computes_on(w), memory_order_relaxed);
	atomic_store_explicit(&h->over, over, memory_order_release);
}

void mst_hint_end(struct mst_hint *h)
{
	atomic_store_explicit(&h->over, true, memory_order_relaxed);
}

void mst_hint_suspend(struct mst_hint *h)
{
	atomic_store(&h->over, true);
	mst_readers_drain(h->readers);
}

static enum muster_hint read_hint(const struct mst_hint *h)
{
	/* Relaxed: hints, of which each stands for itself. The partner of `word` is the leader's
	 * plain put of eight aligned bytes, which is never seen torn. In a child of fork(), whose
	 * handle is over, there may be no memory any more. */
	if (atomic_load(&h->over) || mst_control_over(h->control))
		return MUSTER_GIVE_UP;
	uint64_t word = atomic_load_explicit(h->word, memory_order_relaxed);
	uint64_t computes_on = atomic_load_explicit(&h->computes_on, memory_order_relaxed);

	if (computes_on < mst_hint_version(word))
		return MUSTER_GIVE_UP;
	if (computes_on == mst_hint_version(word) && mst_hint_wants(word))
		return MUSTER_HAND_IN;
	return MUSTER_GO_ON;
}

enum muster_hint mst_hint_read(const struct mst_hint *h)
{
	mst_readers_enter(h->readers);
	enum muster_hint hint = read_hint(h);
	mst_readers_leave(h->readers);
	return hint;
}

/* ---- what has come ---- */

/* Takes in what has come on the links. Return: has anything? */
static bool take_links(struct mst_engine *e)
{
	struct mst_net_event ev[EVENTS];
	bool any = false;
	int count;

	do {
		count = e->links->transport->poll(e->links->net, ev, EVENTS);
		if (count > 0)
			mst_inbound_take(e->inbound, ev, count);
		any |= count > 0;
	} while (count == EVENTS);
	return any;
}

/* A worker that may come back does so in its next wait. */
static void lose(struct mst_engine *e, int error, bool again)
{
	if (again && mst_client_session_returns(e->session))
		mst_worker_go_adrift(e->worker);
	else
		mst_worker_fail(e->worker, error);
}

/* What has come may have ended the session; or another call has heard that of the leader. */
static void notice_end(struct mst_engine *e)
{
	const struct mst_told *told = &e->session->told;

	if (told->error != 0)
		lose(e, told->error, told->again);
	else if (e->links->lost && e->worker->last == MST_VERSION_NONE && !told->finished)
		lose(e, -ENOTCONN, true);
}

/* Every call of the user's takes such a look, and most looks find nothing. */
int mst_engine_take(struct mst_engine *e)
{
	struct mst_client_session *s = e->session;
	/* The control connection comes first. If it says that a server has closed it, then the
	 * links, which are read after it, have all that this server had put before. */
	bool news = mst_control_news(s->control);

	if (news)
		mst_client_session_look(s);
	/* A reader's fence, as of a sequence lock: what the user read in place before this call was
	 * read before the look that finds whether the session had ended. Pairs with the fence that
	 * the server's put of the session word makes before its buffers change. */
	atomic_thread_fence(memory_order_acquire);
	bool any = (e->links->net != NULL && take_links(e)) || news;

	notice_end(e);
	bool failed = e->worker->phase == MST_WORKER_FAILED;

	if (any || failed || e->worker->adrift)
		mst_hint_publish(e->hint);
	return failed ? mst_end_cause_tell(e->cause) : 0;
}

int mst_engine_sleep(struct mst_engine *e, uint64_t deadline_ns)
{
	uint64_t now_ns = mst_now_ns();

	if (now_ns >= deadline_ns)
		return -ETIMEDOUT;
	uint64_t left_ns = deadline_ns - now_ns;
	uint64_t nap_ns = e->session->welcome.lease_ns / LOOKS_PER_LEASE;
	if (nap_ns > NAP_NS)
		nap_ns = NAP_NS;
	if (e->links->net == NULL) { /* between two sessions */
		mst_sleep_ns(left_ns < NO_NET_NAP_NS ? left_ns : NO_NET_NAP_NS);
		return 0;
	}
	return e->links->transport->wait(e->links->net, left_ns < nap_ns ? left_ns : nap_ns);
}

/* Release: pairs with the exchange in mst_engine_interrupted(). The flag is raised before the net
 * is woken, so that a wait whose sleep this ends finds it. */
void mst_engine_wake(struct mst_engine *e)
{
	atomic_store_explicit(&e->woken, true, memory_order_release);
	mst_wakeup_ring(e->links->wakeup);
}

int mst_engine_interrupted(struct mst_engine *e, int slept)
{
	if (atomic_exchange_explicit(&e->woken, false, memory_order_acquire))
		return mst_reason_fail(e->failure, -EINTR,
				       "muster_wake() ended the wait; nothing is lost");
	if (slept == -EINTR)
		return mst_reason_fail(e->failure, -EINTR,
				       "a signal ended the wait; nothing is lost");
	return 0;
}

/* ---- the end ---- */

void mst_engine_withdraw(struct mst_engine *e)
{
	if (mst_links_withdraw(e->links))
		mst_worker_cut(e->worker);
}

/* Waits for the leader's last words, unless it has said them, or has closed the connection: after
 * FINISHED it does so without an error. */
static int learn_why(struct mst_engine *e)
{
	const struct mst_told *told = &e->session->told;
	uint64_t deadline_ns = mst_deadline_ns(e->last_words_ns);

	while (told->error == 0 && !told->closed && !e->cause->waited &&
	       mst_engine_sleep(e, deadline_ns) != -ETIMEDOUT)
		(void)mst_engine_take(e);
	e->cause->waited = true;
	mst_engine_withdraw(e);
	return mst_end_cause_tell(e->cause);
}

int mst_engine_update(struct mst_engine *e)
{
	return mst_engine_take(e) == 0 ? 0 : learn_why(e);
}

void mst_engine_fail(struct mst_engine *e, int error)
{
	mst_worker_fail(e->worker, error);
	mst_hint_publish(e->hint);
}

/* The last events of the link say why. They may not have been taken in yet. */
int mst_engine_refused(struct mst_engine *e)
{
	if (mst_engine_take(e) == 0)
		mst_engine_fail(e, -ENOTCONN);
	return learn_why(e);
}

/* Is a link lost whose answer is still missing? */
static bool misses_part(const struct mst_engine *e)
{
	for (uint32_t k = 0; k < e->links->count; k++)
		if (e->links->part[k].lost && !mst_worker_has_part(e->worker, k))
			return true;
	return false;
}

/* The control connection may be closed before everything that a server has put has arrived. */
static void hear_links_out(struct mst_engine *e)
{
	uint64_t deadline_ns = mst_deadline_ns(LINK_WORDS_NS);

	while (!misses_part(e) && e->worker->phase != MST_WORKER_FAILED &&
	       mst_worker_misses_words(e->worker) && mst_engine_sleep(e, deadline_ns) != -ETIMEDOUT)
		(void)mst_engine_take(e);
}

int mst_engine_missed_end(struct mst_engine *e)
{
	const struct mst_client_session *s = e->session;

	return mst_reason_fail(e->failure, -ENOTCONN,
			       "rank %" PRIu32
			       ": the job has ended (%.300s), and its server is gone "
			       "before this worker had the last version",
			       s->job.rank, s->told.reason.text);
}

int mst_engine_cut_off(struct mst_engine *e)
{
	const struct mst_client_session *s = e->session;
	bool ended = s->told.finished || e->worker->last != MST_VERSION_NONE;

	if (!ended || !mst_worker_misses_words(e->worker) || (!misses_part(e) && !s->told.closed))
		return 0;
	hear_links_out(e);
	if (e->worker->phase != MST_WORKER_FAILED && !mst_worker_misses_words(e->worker))
		return 1;
	mst_engine_withdraw(e);
	if (e->worker->phase == MST_WORKER_FAILED)
		return mst_end_cause_tell(e->cause);
	return mst_engine_missed_end(e);
}

/* ---- silent servers ---- */

static double seconds(uint64_t ns)
{
	return (double)ns / (double)MST_SECOND;
}

#define SILENT_LEN (MST_LINKS_NAME_LEN + 256u)

/* "server 1 (of 0 to 2) at shm:... has been silent for 5.2 s". The leader is known by the address
 * that the user has given. */
static const char *who_is_silent(const struct mst_engine *e, const struct mst_silent *silent,
				 char *out)
{
	const struct mst_client_session *s = e->session;
	const char *at = silent->server == 0 ? s->settings->server
					     : s->welcome.server[silent->server].address;
	char name[MST_LINKS_NAME_LEN];

	(void)mst_text_print(out, SILENT_LEN, "%s at %.200s has been silent for %.3g s",
			     mst_links_name(e->links, &e->links->part[silent->server], name), at,
			     seconds(silent->for_ns));
	return out;
}

static int give_servers_up(struct mst_engine *e, const struct mst_silent *silent)
{
	char who[SILENT_LEN];
	struct mst_reason why;

	mst_reason_set(&why,
		       "%s, longer than a server may be (--server-lease %.3g s): it stands still, "
		       "or is cut off",
		       who_is_silent(e, silent, who), seconds(e->session->welcome.server_lease_ns));
	mst_control_give_up(e->session->control, why.text);
	int rc = mst_engine_take(e);
	mst_engine_withdraw(e);
	return rc;
}

static int server_is_silent(struct mst_engine *e, const struct mst_silent *silent)
{
	char who[SILENT_LEN];

	return mst_reason_fail(e->failure, -ETIMEDOUT,
			       "rank %" PRIu32
			       ": %s: it stands still, or is cut off; nothing is lost "
			       "yet, wait again (the session ends after %.3g s, --server-lease)",
			       e->session->job.rank, who_is_silent(e, silent, who),
			       seconds(e->session->welcome.server_lease_ns));
}

/* The leader gives a silent follower up, tells all workers, and writes it to its log. So a worker
 * waits for a follower one lease longer than for the leader. */
static uint64_t given_up_after_ns(const struct mst_engine *e, uint32_t server)
{
	const struct mst_welcome *w = &e->session->welcome;

	return w->server_lease_ns + (server == 0 ? 0 : w->lease_ns);
}

/* A wait gives its servers a whole lease from its own beginning: what it waits for may still
 * come. */
int mst_engine_watch(struct mst_engine *e, struct mst_engine_watch *w)
{
	uint64_t now_ns = mst_now_ns(), lease_ns = e->session->welcome.lease_ns;
	struct mst_silent silent;

	if (w->began_ns == 0)
		w->began_ns = now_ns;
	else if (now_ns < w->next_ns)
		return 0;
	w->next_ns = now_ns + lease_ns / LOOKS_PER_LEASE;
	if (w->began_ns == now_ns)
		return 0;
	uint32_t moved = e->links->moved;
	e->links->moved = 0;
	if (!mst_control_silent(e->session->control, moved, lease_ns, &silent))
		return 0;
	if (silent.for_ns >= given_up_after_ns(e, silent.server))
		return give_servers_up(e, &silent);
	if (mst_client_session_returns(e->session))
		return 0;
	return !w->goes_on && now_ns - w->began_ns >= lease_ns ? server_is_silent(e, &silent) : 0;
}
