/* SPDX-License-Identifier: MIT */
#include "client/session/reconnect.h"

#include <errno.h>
#include <inttypes.h>

#include "common/base/log.h"
#include "common/base/rand.h"

/* A server that has taken the connection may be one that stands still. */
#define TRY_NS (10 * MST_SECOND)
/* All workers of a job lose their server at once, and not all come back in the same moment. */
#define SPREAD_NS (500 * MST_MS)
#define SPREAD_OF_WORKER_NS (MST_MS / 8)
#define NAP_NS (20 * MST_MS)     /* how often it is looked whether the handle is closed */
#define TELL_NS (5 * MST_SECOND) /* so long a worker looks for a server in silence */

void mst_reconnect_init(struct mst_reconnect *c, struct mst_lineage *lineage,
			const struct mst_client_session *first)
{
	c->lineage = lineage;
	pthread_mutex_init(&c->lock, NULL);
	c->next = (struct mst_client_session){ .settings = first->settings,
					       .failure = &c->why,
					       .links = first->links,
					       .stream = first->stream,
					       .unwanted = &c->stop };
}

void mst_reconnect_fini(struct mst_reconnect *c)
{
	if (c->lineage == NULL)
		return;
	if (c->next.control != NULL)
		mst_control_free(c->next.control);
	pthread_mutex_destroy(&c->lock);
}

void mst_reconnect_disown(struct mst_reconnect *c)
{
	if (c->next.control != NULL)
		mst_control_disown(c->next.control);
}

/* ---- the heartbeat's thread ---- */

static bool is_stopped(const struct mst_reconnect *c)
{
	return atomic_load_explicit(&c->stop, memory_order_acquire);
}

static void nap(const struct mst_reconnect *c, uint64_t ns)
{
	uint64_t deadline_ns = mst_deadline_ns(ns), left_ns;

	while (!is_stopped(c) && (left_ns = mst_left_ns(deadline_ns)) > 0)
		mst_sleep_ns(left_ns < NAP_NS ? left_ns : NAP_NS);
}

/* The generation of the session, as far as the leader has told of it. */
static const struct mst_generation *begun(const struct mst_told *told)
{
	return told->begun ? &told->begins.generation : &told->welcome.generation;
}

/* From now on the old session gives no outcome any more. */
static void begin(struct mst_reconnect *c)
{
	const struct mst_told *told = &c->last;
	struct mst_workforce welcomed = mst_lineage_workforce_of(&told->welcome);
	uint64_t now_ns = mst_now_ns();

	if (c->state == MST_RECONNECT_WELCOMED) { /* nobody has taken it */
		struct mst_control *old = c->next.control;
		c->next.control = NULL;
		mst_control_free(old);
	} else {
		(void)mst_lineage_claim(c->lineage, begun(told), &c->next.returning);
		c->next.rank = (int32_t)told->welcome.rank;
	}
	if (told->knows)
		c->in_force = told->in_force;
	if (c->next.returning.run[0] != '\0')
		c->next.returning.in_force = c->in_force;
	if (c->until_ns == 0) {
		c->lost_ns = now_ns;
		c->until_ns = told->welcome.server_patience_ns < MST_NEVER - now_ns
				      ? now_ns + told->welcome.server_patience_ns
				      : MST_NEVER;
	}
	mst_lineage_workforce(c->lineage, &welcomed);
	mst_lineage_workforce(c->lineage, &told->workforce);
	c->next.workforce = c->lineage->workforce;
	c->state = MST_RECONNECT_SEEKS;
	c->why = told->reason;
	c->refused = false;
}

/* What the job says to this worker, and no other server would say otherwise. Any other refusal may
 * be that of a stranger at the address, or of a server that was started with the wrong options: the
 * right one may still come, and workers have the only copy of what they have learnt. */
static bool is_final(int error)
{
	return error == -ESTALE || error == -ESHUTDOWN || error == -EPERM || error == -EIDRM;
}

/* What answers does not take the place of the lost server: another job, a server with other
 * options or another certificate, or no server at all. It may go, or be put right. */
static bool is_strange(int error)
{
	return error == -EINVAL || error == -EPROTO || error == -EACCES;
}

static bool is_allowed(struct mst_reconnect *c)
{
	pthread_mutex_lock(&c->lock);
	bool may = c->may;
	c->missed |= !may;
	pthread_mutex_unlock(&c->lock);
	return may;
}

/* A program that waits for minutes without a word looks like one that hangs. */
static void tell_waiting(const struct mst_reconnect *c, uint64_t *tell_ns)
{
	bool told = *tell_ns == MST_NEVER;

	if (told || (mst_left_ns(*tell_ns) > 0 && !c->strange))
		return;
	*tell_ns = MST_NEVER;
	mst_warn("rank %" PRIu32
		 " in job \"%s\" has lost its server, and no other lets it come back "
		 "yet: %s; it tries on for %.3g s (--server-patience)",
		 c->last.welcome.rank, c->next.settings->job, c->why.text,
		 (double)mst_left_ns(c->until_ns) / (double)MST_SECOND);
}

static int try(struct mst_reconnect *c)
{
	struct mst_client_session *s = &c->next;
	uint64_t left_ns = mst_left_ns(c->until_ns);
	struct mst_reason before = c->why;

	s->told = (struct mst_told){ 0 };
	int rc = mst_client_session_join(s, mst_deadline_ns(left_ns < TRY_NS ? left_ns : TRY_NS));
	if (rc == 0) {
		mst_client_session_beat_on(s);
		return 0;
	}
	/* A try that the end of patience cuts short tells less than the refusal before it. */
	if (rc == -ETIMEDOUT && c->refused && mst_left_ns(c->until_ns) == 0)
		c->why = before;
	c->refused = rc != -ETIMEDOUT;
	bool again = s->told.again;
	c->strange = is_strange(rc) && !again;
	struct mst_control *old = s->control;
	s->control = NULL;
	mst_control_free(old);
	return is_final(rc) && !again ? rc : -EAGAIN;
}

static void enter(struct mst_reconnect *c, enum mst_reconnect_state state, int error)
{
	pthread_mutex_lock(&c->lock);
	c->error = error;
	c->state = state;
	pthread_mutex_unlock(&c->lock);
	mst_wakeup_ring(c->next.links->wakeup);
}

static uint64_t drawn(struct mst_rand *rand, uint64_t at_most_ns)
{
	return at_most_ns > 0 ? mst_rand_below(rand, at_most_ns) : 0;
}

static uint64_t first_spread(const struct mst_reconnect *c)
{
	uint64_t ns = c->last.welcome.workers * SPREAD_OF_WORKER_NS;

	return ns < SPREAD_NS ? ns : SPREAD_NS;
}

/* The handle is over, or being closed: the session that nobody has taken ends, too. */
static struct mst_control *drop_next(struct mst_reconnect *c)
{
	pthread_mutex_lock(&c->lock);
	struct mst_control *old = c->state == MST_RECONNECT_WELCOMED ? c->next.control : NULL;
	if (old != NULL) {
		c->next.control = NULL;
		c->state = MST_RECONNECT_NONE;
	}
	pthread_mutex_unlock(&c->lock);
	mst_control_free(old);
	return NULL;
}

/* Between two tries. A stranger's server is not to be called ten times in a second. */
static uint64_t pause_of(const struct mst_reconnect *c, struct mst_rand *rand)
{
	uint64_t ns = c->strange ? SPREAD_NS / 2 + drawn(rand, SPREAD_NS)
				 : SPREAD_NS / 10 + drawn(rand, SPREAD_NS / 5);
	uint64_t left_ns = mst_left_ns(c->until_ns);

	return ns < left_ns ? ns : left_ns;
}

struct mst_control *mst_reconnect_seek(void *reconnect, struct mst_control *lost)
{
	struct mst_reconnect *c = reconnect;
	uint64_t tell_ns = mst_deadline_ns(TELL_NS);
	struct mst_rand rand;
	int rc = -EAGAIN;

	if (is_stopped(c))
		return drop_next(c);
	mst_control_peek(lost, &c->last);
	if (!is_allowed(c) || !c->last.again || c->last.welcome.server_patience_ns == 0)
		return NULL;
	pthread_mutex_lock(&c->lock);
	begin(c);
	pthread_mutex_unlock(&c->lock);
	mst_rand_seed(&rand, mst_now_ns() ^ (uint64_t)c->next.rank << 48);
	mst_wakeup_ring(c->next.links->wakeup); /* a wait may look at the state */
	nap(c, drawn(&rand, first_spread(c)));
	while (!is_stopped(c) && (rc = try(c)) == -EAGAIN && mst_left_ns(c->until_ns) > 0) {
		tell_waiting(c, &tell_ns);
		nap(c, pause_of(c, &rand));
	}
	if (is_stopped(c))
		return NULL;
	struct mst_control *next = c->next.control; /* once it is told, the other thread takes it */
	enter(c, rc == 0 ? MST_RECONNECT_WELCOMED : MST_RECONNECT_OVER,
	      rc == -EAGAIN ? -ENOTCONN : rc);
	return rc == 0 ? next : NULL;
}

/* ---- the handle's thread ---- */

bool mst_reconnect_allow(struct mst_reconnect *c)
{
	pthread_mutex_lock(&c->lock);
	c->may = !c->missed;
	bool may = c->may;
	pthread_mutex_unlock(&c->lock);
	return may;
}

void mst_reconnect_forbid(struct mst_reconnect *c)
{
	pthread_mutex_lock(&c->lock);
	c->may = c->missed = false;
	pthread_mutex_unlock(&c->lock);
}

void mst_reconnect_end(struct mst_reconnect *c)
{
	atomic_store_explicit(&c->stop, true, memory_order_release);
	pthread_mutex_lock(&c->lock);
	if (c->state == MST_RECONNECT_WELCOMED)
		mst_control_give_up(c->next.control, "the handle of this worker is over");
	pthread_mutex_unlock(&c->lock);
}

enum mst_reconnect_state mst_reconnect_look(struct mst_reconnect *c, struct mst_reason *why)
{
	pthread_mutex_lock(&c->lock);
	enum mst_reconnect_state state = c->state;
	if (state == MST_RECONNECT_OVER)
		*why = c->why;
	pthread_mutex_unlock(&c->lock);
	return state;
}

bool mst_reconnect_take(struct mst_reconnect *c, struct mst_client_session *out)
{
	pthread_mutex_lock(&c->lock);
	bool there = c->state == MST_RECONNECT_WELCOMED;
	if (there) {
		mst_client_session_adopt(out, &c->next);
		mst_lineage_session(c->lineage, &out->welcome);
		c->state = MST_RECONNECT_NONE;
	}
	pthread_mutex_unlock(&c->lock);
	return there;
}

uint64_t mst_reconnect_settle(struct mst_reconnect *c)
{
	pthread_mutex_lock(&c->lock);
	uint64_t lost_ns = c->until_ns != 0 ? mst_now_ns() - c->lost_ns : 0;
	c->until_ns = 0;
	pthread_mutex_unlock(&c->lock);
	return lost_ns;
}

void mst_reconnect_times(struct mst_reconnect *c, uint64_t *lost_ns, uint64_t *left_ns)
{
	pthread_mutex_lock(&c->lock);
	*lost_ns = c->until_ns != 0 ? mst_now_ns() - c->lost_ns : 0;
	*left_ns = c->until_ns != 0 ? mst_left_ns(c->until_ns) : 0;
	pthread_mutex_unlock(&c->lock);
}
