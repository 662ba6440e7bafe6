/* SPDX-License-Identifier: MIT */
/*
 * The control plane's own state; only its files include it:
 *
 *   admin.c          connections, sleeping, the step
 *   admin_hello.c    the first hello makes the job; hellos become sessions, doors open to them
 *   admin_message.c  what workers and watchers say
 *   admin_notice.c   what the data side says
 */
#ifndef MST_SERVER_ADMIN_STATE_H
#define MST_SERVER_ADMIN_STATE_H

#include "server/admin.h"
#include "server/conn.h"
#include "server/core/rule.h"

/* A session of the control side: from its welcome until the data side lets go of it. */
struct mst_guest {
	struct mst_session session;
	uint8_t token[MST_TOKEN_LEN];
	bool in_use, expected; /* expected: its token has not been used */
	bool handed_over;      /* the data side has it */
};

struct mst_admin {
	struct mst_admin_cfg cfg;
	const struct mst_server_options *o;
	struct mst_listener *listener;
	char address[64];
	int epoll, bell; /* bell: an eventfd that ends the wait */

	struct mst_conn *conn;
	uint32_t conn_max;
	uint64_t next_id;

	/* The job. */
	enum mst_job_state state;
	char why[MST_SENTENCE_LEN];   /* it ended */
	int error;                    /* FAILED: what workers are told */
	char asked[MST_SENTENCE_LEN]; /* a worker asked for the end, for this reason */
	struct mst_rule rule;
	struct mst_optimizer optimizer;
	struct mst_fabric fabric;
	uint64_t elems; /* 0: no valid hello yet */
	enum muster_type type, result_type;
	struct mst_lane_layout layout;
	uint64_t ended_ns;
	bool stopped; /* by mst_admin_stop(): sessions that end now are no loss */

	/* The data side. */
	struct mst_server *server;
	struct mst_door *door;
	struct mst_guest *guest;
	uint32_t guest_max;
	bool *present; /* by rank: it has started, and its session has not ended */
	struct {
		struct mst_identity who;
		char why[MST_WHY_LEN];
	} let_go; /* the last session that was freed, and why its link broke, if it did */
	char loss[MST_SENTENCE_LEN]; /* of the last worker that was lost */

	struct mst_snapshot snapshot;
	bool snapshot_lent, final_told;
	bool deaf;        /* connections wait in the backlog until there is room */
	bool door_broken; /* its device is gone; said once */
	bool lingered;    /* whoever has not left by now is not waited for */

	struct mst_message message; /* the one at hand: too large for a stack */
};

/* A rank's present session, and ended ones whose slots are still to be read. */
#define MST_ADMIN_GUESTS_PER_RANK 4u
/* Connections that may look at the status at a time. */
#define MST_ADMIN_WATCHERS 32u
/* Long enough for an honest peer's first frame, and for the last ones to be read. */
#define MST_ADMIN_GRACE_NS (5 * MST_SECOND)

/* admin.c */
void mst_admin_error(struct mst_admin *a, struct mst_conn *c, int code, const char *sentence,
		     uint64_t now_ns);
/* The same for whoever breaks the protocol; a worker's session ends. Return: false: later, the ring
 * is full. */
bool mst_admin_broken(struct mst_admin *a, struct mst_conn *c, const char *sentence,
		      uint64_t now_ns);
void mst_admin_send(struct mst_admin *a, struct mst_conn *c, const struct mst_message *msg);
/* A session is lost to the ledger, if it has not ended. */
void mst_admin_lose(struct mst_admin *a, struct mst_identity who);
/* Closes; a worker that has not left is lost to the ledger. */
void mst_admin_hang_up(struct mst_admin *a, struct mst_conn *c);
struct mst_conn *mst_admin_conn_of(struct mst_admin *a, struct mst_identity who);
/* Wakes for whoever knocks. 0 or -errno. */
int mst_admin_watch_door(struct mst_admin *a);
/* An event for the ledger. Return: false if the ring is full: try again. */
bool mst_admin_event(struct mst_admin *a, const struct mst_ledger_event *ev);

/* What workers' links over this layout ask for. */
static inline struct mst_lanes mst_admin_lanes(const struct mst_lane_layout *l)
{
	return (struct mst_lanes){ l->up_bytes, l->down_bytes, l->up_credits, l->down_credits };
}
/* admin_hello.c */
uint32_t mst_admin_slots(const struct mst_admin *a);
/* Return: false: later, the ring is full. */
bool mst_admin_hello(struct mst_admin *a, struct mst_conn *c, const struct mst_hello *hello,
		     uint64_t now_ns);
void mst_admin_welcome(struct mst_admin *a, const struct mst_notice *notice, uint64_t now_ns);
void mst_admin_doors(struct mst_admin *a, uint64_t now_ns);
void mst_admin_guest_free(struct mst_admin *a, struct mst_guest *g);
/* Its session was ended before the data side had it. */
void mst_admin_guest_forget(struct mst_admin *a, struct mst_identity who);
uint32_t mst_admin_guests(const struct mst_admin *a);

/* admin_message.c. Return: false: later, the ring is full. */
bool mst_admin_message(struct mst_admin *a, struct mst_conn *c, const struct mst_message *msg,
		       uint64_t now_ns);
/* Answers everybody who asked for the status from the filled snapshot. */
void mst_admin_status(struct mst_admin *a, bool final);
/* Asks the data side for a snapshot if somebody waits for one. */
void mst_admin_want_snapshot(struct mst_admin *a);

/* admin_notice.c */
void mst_admin_notices(struct mst_admin *a, uint64_t now_ns);

#endif
