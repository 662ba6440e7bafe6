/* SPDX-License-Identifier: MIT */
/*
 * Workers' sessions at the control thread, from the ledger's admission until the data thread lets
 * go. At first a session is pending: its worker has a token and no link yet.
 *
 * Control thread only; a session that is LENT is changed by the data thread alone.
 */
#ifndef MST_SERVER_CONTROL_MEMBERS_SESSIONS_H
#define MST_SERVER_CONTROL_MEMBERS_SESSIONS_H

#include "common/base/listening.h"
#include "common/base/reason.h"
#include "common/wire/message.h"
#include "server/core/ranks.h"
#include "server/data/exchange.h"
#include "server/data/session.h"

enum mst_pending_state {
	MST_PENDING_FREE, /* the row has no session */
	/* at the leader: some followers have not confirmed yet that they know the session */
	MST_PENDING_ANNOUNCED,
	MST_PENDING_EXPECTED, /* the worker may use its token */
	/* the token has been used: the link is being made, or there will be none */
	MST_PENDING_LINKING,
	MST_PENDING_LENT, /* the data thread uses the session */
	MST_PENDING_STATES
};

enum mst_pending_event {
	/* the ledger has admitted the worker, and followers must be told first */
	MST_PENDING_ANNOUNCE,
	MST_PENDING_EXPECT,  /* admitted, and all followers know it */
	MST_PENDING_REQUEST, /* the worker asks for a link */
	MST_PENDING_LEND,    /* the link is up */
	MST_PENDING_END,
	MST_PENDING_EVENTS
};

/* As mst_job_enter(). */
bool mst_pending_enter(enum mst_pending_state *state, enum mst_pending_event event);

struct mst_pending_session {
	struct mst_session session;
	enum mst_pending_state state;
	uint8_t token[MST_TOKEN_LEN];
	/* Its worker may show the token from these. */
	struct mst_origins origins;
	uint64_t expected_ns; /* EXPECTED since then, by the clock `answering` */
	/* At the leader: */
	struct mst_notice admitted; /* the welcome is made from this */
	uint32_t unready; /* ANNOUNCED: the followers that do not know the session, as a set */
	uint32_t older;   /* the row of the same rank's session before this one, or MST_RANK_NONE */
};

struct mst_sessions {
	struct mst_pending_session *row;
	uint32_t max;
	uint32_t count;        /* rows that are not FREE */
	struct mst_ranks free; /* the indices of those that are */
	/* Runs while all requests for links are answered: it measures how long workers wait before
	 * they ask. */
	struct mst_listening answering;
	uint32_t workers;
	uint32_t *newest; /* by rank: the row of its newest session, or MST_RANK_NONE */
	const struct mst_transport **over; /* by rank: of its newest link; NULL: it has had none */
	struct {
		struct mst_identity who;
		struct mst_reason why;
	} let_go; /* the last session that was freed, and why its link broke */
};

/* @max: rows, for all ranks together. A rank may have several while the data thread still reads an
 * ended session.
 * Return: 0 or -ENOMEM. */
int mst_sessions_init(struct mst_sessions *s, uint32_t workers, uint32_t max);
uint64_t mst_sessions_bytes(uint32_t workers,
			    uint32_t max); /* that mst_sessions_init() allocates */
/* Accepts zeroed memory. */
void mst_sessions_fini(struct mst_sessions *s);

/* Begins a session, with a secret token and without origins, which are the caller's to set.
 * @unready: the followers that must know it before its
 * worker is welcomed.
 * Return: NULL: all rows are taken, or there are no random bytes. */
struct mst_pending_session *mst_sessions_admit(struct mst_sessions *s, struct mst_identity who,
					       uint32_t unready);
/* The follower @server knows the session.
 * Return: true if it was the last, so that the worker may be welcomed now. */
bool mst_sessions_confirm(struct mst_sessions *s, struct mst_pending_session *p, uint32_t server);
/* Ends a session, and frees its link. The data thread must not use it any more. */
void mst_sessions_end(struct mst_sessions *s, struct mst_pending_session *p);
/* Ends the session of that worker, unless the data thread uses it. */
void mst_sessions_forget(struct mst_sessions *s, struct mst_identity who);
/* The data thread lets go of @session: ends it. */
void mst_sessions_let_go(struct mst_sessions *s, const struct mst_session *session);
/* Ends all sessions. To be called after mst_job_hang_up(). */
void mst_sessions_end_all(struct mst_sessions *s);

/* Brings the clock to @now_ns, less the time in which requests for links had to wait; and notes
 * that all that had come by @now_ns have been answered. */
void mst_sessions_look(struct mst_sessions *s, uint64_t now_ns);
void mst_sessions_answered(struct mst_sessions *s, uint64_t now_ns);
/* How long a session has waited for its worker's request, by that clock. */
uint64_t mst_sessions_waited(const struct mst_sessions *s, const struct mst_pending_session *p);
/* How long ago the clock has shown @then_ns, by that clock. */
uint64_t mst_sessions_since(const struct mst_sessions *s, uint64_t then_ns);

/* Spends the token of @request: finds the session that it is of, whose worker has not shown it yet.
 * A token is spent by its first use at this server, also if it is too old or the request is refused
 * for its figures: what is refused once may have been read by somebody on the way. But a request
 * from an address that the worker has not announced spends nothing (token.h says why).
 * Return: the session, which is LINKING now; NULL: no session expects this token from there. */
struct mst_pending_session *mst_sessions_spend(struct mst_sessions *s,
					       const struct mst_link_request *request);

/* Find a session; NULL: there is none. */
struct mst_pending_session *mst_sessions_of(const struct mst_sessions *s, struct mst_identity who);
/* The session that expects this token, from wherever. */
const struct mst_pending_session *mst_sessions_expecting(const struct mst_sessions *s,
							 const uint8_t *token);
/* The session whose link is being made for a request with this token. */
struct mst_pending_session *mst_sessions_linking(const struct mst_sessions *s,
						 const uint8_t *token);
/* What the transport said of this worker's lost link; "": nothing. */
const char *mst_sessions_link_reason(const struct mst_sessions *s, struct mst_identity who);

#endif
