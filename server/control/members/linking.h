/* SPDX-License-Identifier: MIT */
/*
 * Answers requests for links at this server's listener: a caller with a valid token gets a link,
 * which other threads make. Workers show the tokens of their sessions. At a leader, followers show
 * tokens too.
 *
 * Control thread only. mst_linking_fini() waits. No other function blocks if links, and the data
 * side, are made aside.
 */
#ifndef MST_SERVER_CONTROL_MEMBERS_LINKING_H
#define MST_SERVER_CONTROL_MEMBERS_LINKING_H

#include "server/control/connections/frontend.h"
#include "server/control/job/job.h"
#include "server/control/members/link_maker.h"
#include "server/control/members/sessions.h"

/* The links of servers, at a leader. Servers are numbered from 1 on; 0 is none. */
struct mst_linking_ops {
	/* Which server has been offered this token, and has not used it?
	 * @announced: set to the addresses that the server has announced. */
	uint32_t (*expecting)(void *ctx, const uint8_t *token,
			      const struct mst_origins **announced);
	/* Spends the token of @request. @age_ns: set to the time since it was offered.
	 * Return: the server whose token it was. */
	uint32_t (*spend)(void *ctx, const struct mst_link_request *request, uint64_t *age_ns);
	/* The link of the token that the server has spent is being made. */
	void (*begins)(void *ctx, uint32_t server);
	/* A link has been made, or could not be made. The link is the callee's.
	 * Return: false: it is no server's; nothing was done. */
	bool (*made)(void *ctx, const struct mst_link_made *made);
};

struct mst_linking {
	struct mst_job *job;
	struct mst_frontend *front;
	struct mst_sessions *sessions;
	const struct mst_linking_ops *servers; /* NULL at a follower */
	void *ctx;

	struct mst_link_maker *maker; /* makes the data side too */
	bool listener_broken;         /* the listener's device is gone; this is logged once */
};

/* @aside: links and the data side are made by threads of their own; else by the step that is asked
 * for them.
 * Return: 0 or -errno. */
int mst_linking_init(struct mst_linking *l, bool aside);
/* Waits for the links and the data side that are being made. To be called before the data side is
 * closed. Accepts zeroed memory. */
void mst_linking_fini(struct mst_linking *l);
/* To be called after mst_job_forget(): the next data side has another listener. */
void mst_linking_forget(struct mst_linking *l);

/* Answers several requests for links. The others are answered in later steps. */
void mst_linking_step(struct mst_linking *l, uint64_t now_ns);
/* Are links being made? */
bool mst_linking_is_busy(const struct mst_linking *l);

#endif
