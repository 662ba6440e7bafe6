/* SPDX-License-Identifier: MIT */
#include "server/control/members/link_maker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"

/* How many links are made at a time, each by one thread. */
#define MAKERS MST_ANSWERS_MAX
/* The place of the order that is no link. */
#define WORK MAKERS

enum order_state {
	ORDER_NONE,  /* the entry belongs to the owner of the maker */
	ORDER_GIVEN, /* any free thread may take it */
	ORDER_TAKEN, /* the entry belongs to the thread that took it */
	ORDER_DONE,  /* the link has been made; the entry belongs to the owner */
};

struct order {
	enum order_state state;
	void (*work)(void *arg); /* NULL: a link is to be made */
	void *arg;
	const struct mst_link_listener_ops *of;
	struct mst_link_listener *listener;
	struct mst_link_request request;
	struct mst_link_made made;
};

struct mst_link_maker {
	void (*wake)(void *ctx);
	void *ctx;
	pthread_t thread[MAKERS];
	uint32_t threads;
	uint32_t count; /* links whose orders are not NONE; used by the owner alone */
	bool works; /* there is other work, and the owner does not know that it is done; likewise */
	/* Protects `ends` and the state of each order. The state says which thread may use the rest
	 * of the order. */
	pthread_mutex_t lock;
	pthread_cond_t given;
	struct order order[MAKERS + 1];
	bool ends; /* threads end when no order is GIVEN */
};

static void enter(struct mst_link_maker *m, struct order *o, enum order_state state)
{
	pthread_mutex_lock(&m->lock);
	o->state = state;
	pthread_cond_signal(&m->given);
	pthread_mutex_unlock(&m->lock);
}

/* Finds one of the first @count orders in that state; NULL: there is none. The lock must be
 * held. */
static struct order *find(struct mst_link_maker *m, uint32_t count, enum order_state state)
{
	for (uint32_t i = 0; i < count; i++) {
		if (m->order[i].state == state)
			return &m->order[i];
	}
	return NULL;
}

static struct order *find_link(struct mst_link_maker *m, enum order_state state)
{
	pthread_mutex_lock(&m->lock);
	struct order *o = find(m, MAKERS, state);
	pthread_mutex_unlock(&m->lock);
	return o;
}

static void make_link(struct order *o)
{
	o->made = (struct mst_link_made){ 0 };
	memcpy(o->made.token, o->request.token, sizeof(o->made.token));
	o->made.error = o->of->answer(o->listener, &o->request, &o->made.link, &o->made.why);
	if (o->made.error != 0)
		o->made.link = NULL;
}

static void make(struct order *o)
{
	if (o->work != NULL)
		o->work(o->arg);
	else
		make_link(o);
}

/* Waits for an order; NULL: the thread is to end. */
static struct order *await_order(struct mst_link_maker *m)
{
	struct order *o;

	pthread_mutex_lock(&m->lock);
	while ((o = find(m, MAKERS + 1, ORDER_GIVEN)) == NULL && !m->ends)
		pthread_cond_wait(&m->given, &m->lock);
	if (o != NULL)
		o->state = ORDER_TAKEN;
	pthread_mutex_unlock(&m->lock);
	return o;
}

static void *run(void *arg)
{
	struct mst_link_maker *m = arg;
	struct order *o;

	while ((o = await_order(m)) != NULL) {
		make(o);
		enter(m, o, ORDER_DONE);
		m->wake(m->ctx);
	}
	return NULL;
}

static int start(struct mst_link_maker *m)
{
	sigset_t all, before;
	int rc = 0;

	sigfillset(&all); /* the control thread handles signals */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (rc == 0 && m->threads < MAKERS) {
		rc = pthread_create(&m->thread[m->threads], NULL, run, m);
		m->threads += rc == 0;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

int mst_link_maker_new(void (*wake)(void *ctx), void *ctx, struct mst_link_maker **out)
{
	struct mst_link_maker *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return -ENOMEM;
	m->wake = wake;
	m->ctx = ctx;
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->given, NULL);
	int rc = wake != NULL ? start(m) : 0;
	if (rc != 0) {
		mst_link_maker_free(m);
		return rc;
	}
	*out = m;
	return 0;
}

static void end_threads(struct mst_link_maker *m)
{
	pthread_mutex_lock(&m->lock);
	m->ends = true;
	pthread_cond_broadcast(&m->given);
	pthread_mutex_unlock(&m->lock);
	for (uint32_t i = 0; i < m->threads; i++)
		pthread_join(m->thread[i], NULL);
}

void mst_link_maker_free(struct mst_link_maker *m)
{
	struct mst_link_made made;

	if (m == NULL)
		return;
	end_threads(m);
	while (mst_link_maker_take(m, &made)) {
		if (made.link != NULL)
			made.link->ops->link_free(made.link);
	}
	pthread_cond_destroy(&m->given);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

uint32_t mst_link_maker_count(const struct mst_link_maker *m)
{
	return m->count;
}

bool mst_link_maker_has_room(const struct mst_link_maker *m)
{
	return m->count < MAKERS;
}

/* Without threads it is done at once. */
static void give(struct mst_link_maker *m, struct order *o)
{
	if (m->wake == NULL)
		make(o);
	enter(m, o, m->wake != NULL ? ORDER_GIVEN : ORDER_DONE);
}

void mst_link_maker_make(struct mst_link_maker *m, const struct mst_link_listener_ops *of,
			 struct mst_link_listener *listener, const struct mst_link_request *request)
{
	MST_ASSERT(mst_link_maker_has_room(m));
	struct order *o = find_link(m, ORDER_NONE);
	o->of = of;
	o->listener = listener;
	o->request = *request;
	m->count++;
	give(m, o);
}

bool mst_link_maker_take(struct mst_link_maker *m, struct mst_link_made *out)
{
	struct order *o = m->count > 0 ? find_link(m, ORDER_DONE) : NULL;

	if (o == NULL)
		return false;
	*out = o->made;
	m->count--;
	enter(m, o, ORDER_NONE);
	return true;
}

void mst_link_maker_do(struct mst_link_maker *m, void (*work)(void *arg), void *arg)
{
	struct order *o = &m->order[WORK];

	MST_ASSERT(!m->works);
	m->works = true;
	o->work = work;
	o->arg = arg;
	give(m, o);
}

bool mst_link_maker_did(struct mst_link_maker *m)
{
	struct order *o = &m->order[WORK];

	if (!m->works)
		return false;
	pthread_mutex_lock(&m->lock);
	m->works = o->state != ORDER_DONE;
	pthread_mutex_unlock(&m->lock);
	return !m->works;
}
