/* SPDX-License-Identifier: MIT */
/*
 * The handles of this process, and what fork() means for them: the session belongs to the process
 * that opened it. A child closes the descriptors that it has inherited while fork() still runs, so
 * that the end of the parent shows at once whatever the child does, and marks the handles, so that
 * every call with one of them in the child is an error.
 *
 * Handles are found here from when they are whole to when they are taken apart. What a thread is
 * connecting or freeing at the moment of a fork cannot be told from a copy of its memory.
 */
#include "client/api/handle.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct muster *first; /* under the lock */
static int guarded;          /* what pthread_atfork() returned, negated */

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/* Another thread of the parent may have been inside the handle: only what does not change between
 * opening and closing is looked at, and no lock of the handle is taken. */
static void disown(struct muster *m)
{
	m->inherited = true;
	mst_client_session_disown(&m->session);
	mst_reconnect_disown(&m->reconnect);
	mst_links_disown(&m->links);
	mst_wakeup_disown(&m->wakeup);
	mst_hint_end(&m->hint);
}

static void in_child(void)
{
	for (struct muster *m = first; m != NULL; m = m->next)
		disown(m);
	first = NULL;
	pthread_mutex_unlock(&lock);
}

/* Once in the process's life. */
static void guard(void)
{
	guarded = -pthread_atfork(before_fork, in_parent, in_child);
}

int mst_process_add(struct muster *m)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, guard);
	if (guarded != 0)
		return guarded;
	pthread_mutex_lock(&lock);
	m->next = first;
	first = m;
	pthread_mutex_unlock(&lock);
	return 0;
}

void mst_process_remove(struct muster *m)
{
	pthread_mutex_lock(&lock);
	struct muster **at = &first;
	while (*at != NULL && *at != m)
		at = &(*at)->next;
	if (*at != NULL)
		*at = m->next;
	pthread_mutex_unlock(&lock);
}

void mst_process_hold(void)
{
	pthread_mutex_lock(&lock);
}

void mst_process_release(void)
{
	pthread_mutex_unlock(&lock);
}
