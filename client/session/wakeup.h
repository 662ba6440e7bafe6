/* SPDX-License-Identifier: MIT */
/*
 * How others wake the thread of a handle: muster_wake(), and whoever hears the leader. That thread
 * sleeps in its net, or in a poll() of the program, on the descriptor of muster_fd(). Nets come and
 * go meanwhile: the descriptor stays the same, and no net is woken that has been closed.
 *
 * The descriptor is an epoll descriptor. It has an eventfd of its own, and watches the net's
 * descriptor while there is a net that has one.
 */
#ifndef MST_CLIENT_SESSION_WAKEUP_H
#define MST_CLIENT_SESSION_WAKEUP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/transport/transport.h"

struct mst_wakeup {
	int epoll;                        /* muster_fd(); -1: nobody has asked for it */
	_Atomic int notify_fd;            /* an eventfd; -1 likewise */
	const struct mst_transport *type; /* of the net */
	_Atomic(struct mst_net *) net;    /* NULL: there is none */
	_Atomic uint32_t ringing;         /* threads and handlers that may be using the net */
	int watched;                      /* the descriptor of the net; -1: none is watched */
};

void mst_wakeup_init(struct mst_wakeup *w);
/* In a child of fork(): closes the inherited descriptors, of which the parent notices nothing. */
void mst_wakeup_disown(struct mst_wakeup *w);
/* No net is watched any more, and nobody rings. */
void mst_wakeup_fini(struct mst_wakeup *w);

/* The descriptor, the same each time; the first call makes it. Return: it; -errno. */
int mst_wakeup_fd(struct mst_wakeup *w);
static inline bool mst_wakeup_has_fd(const struct mst_wakeup *w)
{
	return w->epoll >= 0;
}

/* The net has been opened: from now on it is woken, too, and watched. Return: 0; -errno: it is
 * woken and not watched, and the descriptor stays readable instead. */
int mst_wakeup_watch(struct mst_wakeup *w, const struct mst_transport *type, struct mst_net *net);
/* The net may be closed when this call has returned. Without a net it does nothing. */
void mst_wakeup_let_go(struct mst_wakeup *w);

/* Ends the present or the next wait on the net, and makes the descriptor readable. Any thread, also
 * a signal's handler. What the thread is to find must be there before. */
void mst_wakeup_ring(struct mst_wakeup *w);
/* The descriptor becomes readable for what comes after this call has begun. Look after it. */
void mst_wakeup_arm(struct mst_wakeup *w);

#endif
