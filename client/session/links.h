/* SPDX-License-Identifier: MIT */
/*
 * The data links of a session: one to each server of the job, all over the same transport and all
 * polled by one net. Each server has a part of the vector, and its link moves that part alone.
 *
 * One thread; what may wake it is elsewhere (wakeup.h).
 */
#ifndef MST_CLIENT_SESSION_LINKS_H
#define MST_CLIENT_SESSION_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#include "client/local/settings.h"
#include "client/session/network_choice.h"
#include "client/session/wakeup.h"
#include "common/transport/transport.h"
#include "common/wire/lane.h"
#include "common/wire/message.h"
#include "common/wire/part.h"

/* A server's part of the vector, and the link to that server. */
struct mst_part {
	struct mst_link *link; /* whose `user` is the part */
	uint32_t number;       /* of the server; 0 leads */
	uint64_t first, count; /* elements */
	struct mst_lane_layout layout;
	size_t gradient_at[MST_SLOTS_MAX]; /* in the link's outbound region */
	size_t stride; /* bytes from one version to the next where the server publishes them */
	size_t marks;  /* where the marks of these versions begin */
	bool lost;     /* nothing more comes from the link */
};

struct mst_links {
	struct mst_reason *failure;
	struct mst_wakeup *wakeup; /* of this handle's thread */

	const struct mst_transport *transport; /* NULL before the welcome */
	struct mst_net *net;                   /* NULL: not open */
	struct mst_part part[MST_SERVERS_MAX]; /* 0 is the leader's */
	uint32_t count;                        /* 0 before the welcome */
	/* The part that this worker serves first; then the others in turn. Each rank begins with
	 * another server, so that not all workers turn to the same server at a time. */
	uint32_t first;
	uint32_t rank; /* of this worker */
	/* Bytes of gradients that were copied to the place that they are sent from. What put()
	 * copies, such as records, each link counts itself. */
	uint64_t copied;
	uint32_t moved; /* servers by whose links something has come, bit by bit */
	bool lost;      /* some link is lost */
	bool marked;    /* versions are marked before they are written: lane.h */
	bool detached;  /* this end has ended: all links are */
	/* Memory of the caller's that the servers write results to; NULL: none. */
	struct mst_region *result_into;
};

struct mst_links_cfg {
	const struct mst_settings *settings;
	const struct mst_welcome *welcome;
	struct mst_network_choice *choice;
	uint64_t deadline_ns;
	bool (*unwanted)(void *ctx); /* are the links not wanted any more? */
	void *ctx;
};

/* The net of the network that comes next by the choice. 0, or an error with its sentence. */
int mst_links_open(struct mst_links *l, const struct mst_links_cfg *cfg);
/* A link with each server of the welcome, over the open net. 0, or an error with its sentence; the
 * links that have been made by then stay. */
int mst_links_dial(struct mst_links *l, const struct mst_links_cfg *cfg);
/* The session has ended. Before the caller learns it, nothing may write to the caller's memory any
 * more. So if servers can write there, all links are detached. Return: whether this call has
 * detached them. */
bool mst_links_withdraw(struct mst_links *l);
/* Frees all links. @inherited: the handle is a copy in a child of fork(), in which the links have
 * been detached by mst_links_disown(). */
void mst_links_free(struct mst_links *l, bool inherited);
/* Call it after mst_links_free(). The links can then be opened again. */
void mst_links_close(struct mst_links *l);

/* In a child of fork(): closes the inherited descriptors, of which the parent notices nothing. */
void mst_links_disown(struct mst_links *l);

#define MST_LINKS_NAME_LEN 48u
/* Which server a part belongs to, for sentences: "the server", where there is only one. */
const char *mst_links_name(const struct mst_links *l, const struct mst_part *p, char *out);

/* The layout of a part is known: sets what follows from it and from the rank of this worker. */
void mst_part_place(struct mst_part *p, uint32_t rank);

#endif
