/* SPDX-License-Identifier: MIT */
/*
 * Closes the descriptors that callers have brought, on a thread of its own.
 *
 * A close() can sleep for as long as the maker of the file likes: a TCP socket with SO_LINGER waits
 * for its peer, a file of a FUSE server for that server. A UNIX socket is no better, for closing it
 * closes the descriptors that lie in its queue, whether anybody has received them or not. No thread
 * that listens, decides or commits may therefore close what a caller has passed, or the socket that
 * it has passed it over.
 *
 * The thread takes the common sting out first: it empties the queue of a socket, and has what it
 * finds there linger no more. A caller can still make this thread sleep. Then the listener takes
 * nobody in once MST_SHM_UNCLOSED_MAX callers wait for it; links that are up do not notice.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/transport/shm/shm.h"

/* More messages than a socket's queue can hold: each takes 768 bytes or more of its 416 KiB. */
#define MESSAGES_MAX 1024

struct mst_shm_closer {
	pthread_mutex_t lock;
	pthread_cond_t more; /* in the queue; or there is no user any more */
	struct mst_shm_foreign *first, *last;
	unsigned unclosed; /* handed in, the one being closed among them */
	unsigned users;    /* the listener, and what has not been handed in */
};

/* Its last close then sleeps for nobody. Where @fd is no socket this does nothing. */
static void forbid_linger(int fd)
{
	const struct linger none = { 0 };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
}

static void close_passed(struct mst_shm_fd_message *p)
{
	for (unsigned i = 0; i < p->fd_count; i++)
		forbid_linger(p->fd[i]);
	mst_shm_fd_message_close(p);
}

/* Takes the descriptors out that nobody has received. The peer can send no more. An empty message
 * looks like the end, and an error of the connection stands before the messages: so this looks as
 * often as there can be messages. */
static void empty_queue(int socket)
{
	char body;
	struct mst_shm_fd_message p = { .body = &body, .bytes = sizeof(body) };
	int rc = 0;

	for (int i = 0; i < MESSAGES_MAX && rc != -EAGAIN && rc != -ENOTCONN; i++) {
		rc = mst_shm_receive(socket, &p);
		close_passed(&p);
	}
}

static void close_one(struct mst_shm_foreign *f)
{
	mst_shm_memory_drop(f->memory); /* it may be large, and does not depend on the peer */
	close_passed(&f->passed);
	if (f->socket >= 0)
		empty_queue(f->socket);
	mst_shm_close(&f->socket);
	free(f);
}

/* NULL: there is nobody any more who could hand something in. */
static struct mst_shm_foreign *next_one(struct mst_shm_closer *c)
{
	pthread_mutex_lock(&c->lock);
	while (c->first == NULL && c->users > 0)
		pthread_cond_wait(&c->more, &c->lock);
	struct mst_shm_foreign *f = c->first;
	if (f != NULL)
		c->first = f->next;
	pthread_mutex_unlock(&c->lock);
	return f;
}

static void *work(void *arg)
{
	struct mst_shm_closer *c = arg;
	struct mst_shm_foreign *f;

	while ((f = next_one(c)) != NULL) {
		close_one(f);
		pthread_mutex_lock(&c->lock);
		c->unclosed--;
		pthread_mutex_unlock(&c->lock);
	}
	pthread_cond_destroy(&c->more);
	pthread_mutex_destroy(&c->lock);
	free(c);
	return NULL;
}

/* Nobody joins the thread: who did would wait for callers. */
static int start(struct mst_shm_closer *c)
{
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&thread, NULL, work, c);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		pthread_detach(thread);
	return -rc;
}

int mst_shm_closer_new(struct mst_shm_closer **out)
{
	struct mst_shm_closer *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->more, NULL);
	c->users = 1;
	int rc = start(c);
	if (rc < 0) {
		free(c);
		return rc;
	}
	*out = c;
	return 0;
}

void mst_shm_closer_drop(struct mst_shm_closer *c)
{
	if (c == NULL)
		return;
	pthread_mutex_lock(&c->lock);
	MST_ASSERT(c->users > 0);
	c->users--;
	pthread_cond_signal(&c->more);
	pthread_mutex_unlock(&c->lock);
}

bool mst_shm_closer_is_behind(struct mst_shm_closer *c)
{
	pthread_mutex_lock(&c->lock);
	bool behind = c->unclosed >= MST_SHM_UNCLOSED_MAX;
	pthread_mutex_unlock(&c->lock);
	return behind;
}

struct mst_shm_foreign *mst_shm_foreign_new(struct mst_shm_closer *c, int socket)
{
	struct mst_shm_foreign *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return NULL;
	f->socket = socket;
	f->closer = c;
	pthread_mutex_lock(&c->lock);
	c->users++;
	pthread_mutex_unlock(&c->lock);
	return f;
}

void mst_shm_foreign_close(struct mst_shm_foreign *f)
{
	if (f == NULL)
		return;
	struct mst_shm_closer *c = f->closer;
	if (f->socket >= 0) /* the peer sees the end now, and can send no more */
		(void)shutdown(f->socket, SHUT_RDWR);
	f->next = NULL;
	pthread_mutex_lock(&c->lock);
	if (c->first == NULL)
		c->first = f;
	else
		c->last->next = f;
	c->last = f;
	c->unclosed++;
	c->users--;
	pthread_cond_signal(&c->more);
	pthread_mutex_unlock(&c->lock);
}
