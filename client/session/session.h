/* SPDX-License-Identifier: MIT */
/*
 * A worker's session with the leader: the control connection, hello and welcome, heartbeats, and
 * all that the leader has said since. Joining runs against one deadline; whatever fails says to
 * whom and with which figures.
 */
#ifndef MST_CLIENT_SESSION_SESSION_H
#define MST_CLIENT_SESSION_SESSION_H

#include "client/local/settings.h"
#include "client/session/control.h"
#include "client/session/heartbeat.h"
#include "client/session/links.h"
#include "common/base/clock.h"

/* A link usually reports the end of a session before the control connection says why. This is how
 * long a call waits for the reason, unless the control connection breaks before it brings one. */
#define MST_LAST_WORDS_NS (2 * MST_SECOND)

struct mst_client_session {
	const struct mst_settings *settings;
	struct mst_reason *failure;
	struct mst_links *links; /* whose net is woken when the leader has said something */
	const struct mst_stream_ops *stream;
	struct mst_origins origins; /* from where its links may be dialled; found once */

	struct mst_control *control;     /* NULL: not connected */
	struct mst_heartbeat *heartbeat; /* NULL: not started */
	struct mst_told told;            /* as last looked at */
	uint32_t table_sent;             /* tensors of the table that the leader wants */
	struct mst_welcome welcome;      /* checked */
	struct muster_job job;           /* what of it the user is told */
	/* Why links do not go over the networks that come before theirs; "": none do. */
	struct mst_reason passed;

	/* A session that comes back ends its joining where this becomes true; NULL: it is the
	 * first. What it claims, and which rank it has. */
	const _Atomic bool *unwanted;
	struct mst_returning returning;
	struct mst_workforce workforce;
	int32_t rank;
};

/* Finds the leader, says hello, checks the welcome. 0, or an error with its sentence. */
int mst_client_session_join(struct mst_client_session *s, uint64_t deadline_ns);
/* Starts the heartbeat's thread: from the welcome on the lease counts. @next: what that thread
 * does when the session has ended. 0, or an error with its sentence. */
int mst_client_session_beat(struct mst_client_session *s, const struct mst_heartbeat_next *next);
/* The same of the session of a thread that beats already. */
void mst_client_session_beat_on(struct mst_client_session *s);
/* @next has been joined in place of the session that is lost, whose connection is closed. What the
 * job began with stays as it was told first. Nobody uses the old connection any more. */
void mst_client_session_adopt(struct mst_client_session *s, struct mst_client_session *next);
/* Ends the thread and closes the connection. Accepts a session at any stage of joining. */
void mst_client_session_fini(struct mst_client_session *s);
/* In a child of fork(): closes the inherited descriptors, of which the parent notices nothing. */
void mst_client_session_disown(struct mst_client_session *s);

/* A step of joining has failed with @error and has its sentence. If the leader has ended the
 * session or the job meanwhile, that is the reason and takes the sentence's place. Where a listener
 * has sent this end away, or is gone, the leader's words may still be on their way: they are waited
 * for as long as MST_LAST_WORDS_NS. */
int mst_client_session_reason(struct mst_client_session *s, int error);

/* Queues a control message. As mst_control_send(). */
int mst_client_session_tell(struct mst_client_session *s, const struct mst_message *msg);

/* Sends a state. As mst_control_give(). */
int mst_client_session_give(struct mst_client_session *s, const struct mst_gift *gift);

/* Does the worker wait for another server when one is lost? */
static inline bool mst_client_session_returns(const struct mst_client_session *s)
{
	return s->welcome.server_patience_ns != 0;
}

/* The handle's thread: looks at what the leader has said since, and at the policy in force. */
void mst_client_session_look(struct mst_client_session *s);

/* Is it known which generation the session is of? Else the leader has still to say it. */
static inline bool mst_client_session_has_begun(const struct mst_client_session *s)
{
	return !mst_client_session_returns(s) || s->welcome.generation.number > 0 || s->told.begun;
}

/* How long it may take until nobody waits for this worker any more: a step waits for a patience,
 * and the worker's silence is noticed after a lease. */
static inline uint64_t mst_client_session_patience(const struct mst_client_session *s)
{
	uint64_t patience_ns = s->welcome.patience_ns, lease_ns = s->welcome.lease_ns;

	return patience_ns < MST_NEVER - lease_ns ? patience_ns + lease_ns : MST_NEVER;
}

#endif
