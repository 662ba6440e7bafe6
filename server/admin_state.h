/* SPDX-License-Identifier: MIT */
/*
 * The control plane's own state; only its files include it:
 *
 *   admin.c          connections, sleeping, the step
 *   admin_hello.c    hellos become sessions, doors open to them
 *   admin_job.c      the job's figures, its memory, its data side
 *   admin_servers.c  at the lead: the members of the job
 *   admin_member.c   at a member: the lead
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
	/* At the lead: its welcome, until all members expect it. */
	struct mst_notice admitted;
	uint32_t unready; /* set of members, bit by bit */
};

/* At the lead: a member of the job. */
struct mst_seat {
	bool taken;     /* somebody serves */
	bool appointed; /* it has been told the job */
	bool linked;    /* its link with this server was up, once or more */
	bool ready;     /* that, and its door is open */
	bool gone;      /* for good; said once */
	char peer[64];
	char door[MST_DOOR_LEN];
	/* The last link it was offered: its token, whether that may still be used, and its number,
	 * from 1. */
	uint8_t token[MST_TOKEN_LEN];
	bool expected;
	uint64_t offers;
	uint64_t heard_ns;
	/* Start states that were passed on to its end, and that it says are there. */
	uint64_t states_sent, states_done;
};

/* At a member: what it knows of the lead. */
struct mst_membership {
	uint64_t connect_until; /* 0: not tried yet */
	bool appointed, ready;
	uint64_t heard_ns;
	struct mst_appoint appoint;
	uint64_t state_have;          /* bytes of the start state */
	uint64_t redial_ns;           /* another link is asked for then; MST_NEVER: it is not */
	uint8_t token[MST_TOKEN_LEN]; /* of the last dial */
	uint64_t dials;
	/* The data side has heard how the job ended; GATHERING: not yet. */
	enum mst_job_state finish;
	bool cut_off; /* nobody leads any more */
};

struct mst_admin {
	struct mst_admin_cfg cfg;
	const struct mst_server_options *o;
	struct mst_server_options own; /* a member: what @o is, with what its lead has said */
	struct mst_listener *listener; /* NULL: a member */
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
	uint64_t elems; /* of the whole vector; 0: no valid hello yet */
	uint32_t weights[MST_SERVERS_MAX];
	uint64_t first, count; /* this server's part */
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

	/* The lead: */
	struct mst_seat seat[MST_SERVERS_MAX]; /* from 1 on */
	uint64_t beat_ns;                      /* the next heartbeat; a member's too */
	uint64_t gather_until;                 /* the first hello waits for members; 0: none does */
	bool passes_state;                     /* a start state is whole here, not yet everywhere */
	struct mst_identity state_of;
	uint64_t part_until; /* how long members may take to part; 0: not yet */
	/* A member: */
	struct mst_membership lead;

	struct mst_snapshot snapshot;
	bool snapshot_lent, final_told;
	bool deaf;        /* connections wait in the backlog until there is room */
	bool door_broken; /* its device is gone; said once */
	bool lingered;    /* whoever has not left by now is not waited for */

	struct mst_message message; /* the one at hand: too large for a stack */
	struct mst_message passed;  /* another, that goes on to a member */
};

/* A rank's present session, and ended ones whose slots are still to be read. */
#define MST_ADMIN_GUESTS_PER_RANK 4u
/* Connections that may look at the status at a time. */
#define MST_ADMIN_WATCHERS 32u
/* Long enough for an honest peer's first frame, and for the last ones to be read. */
#define MST_ADMIN_GRACE_NS (5 * MST_SECOND)

/* Servers beat for each other so often in a lease. */
#define MST_ADMIN_BEATS_PER_LEASE 4u

static inline bool mst_admin_is_over(const struct mst_admin *a)
{
	return a->state == MST_JOB_FINISHED || a->state == MST_JOB_FAILED;
}

/* admin.c */
void mst_admin_error(struct mst_admin *a, struct mst_conn *c, int code, const char *sentence,
		     uint64_t now_ns);
/* The same for whoever breaks the protocol, by @what; a worker's session ends, and so does what the
 * job has of a server. Return: false: later, the ring is full. */
bool mst_admin_broken(struct mst_admin *a, struct mst_conn *c, const char *what, uint64_t now_ns);
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
/* Everything that is told once, and ends the job. */
void mst_admin_fail(struct mst_admin *a, int error, const char *why, uint64_t now_ns);
/* What the options' texts stand for. 0 or -EINVAL. */
int mst_admin_read_options(struct mst_admin *a, char *why, size_t why_len);
/* Tables by worker. 0 or -ENOMEM. */
int mst_admin_tables(struct mst_admin *a);
int mst_admin_watch(struct mst_admin *a, int fd);

/* admin_job.c */
uint32_t mst_admin_slots(const struct mst_admin *a);
/* The first valid hello fixes length and types, and makes the data side. @why: a sentence. */
int mst_admin_fix_job(struct mst_admin *a, const struct mst_hello *h, char *why, size_t len);
/* What it is made with: nothing is made, nothing taken. */
int mst_admin_plan_job(struct mst_admin *a, const struct mst_hello *h, struct mst_server_cfg *out,
		       char *why, size_t len);
/* Bytes that it may take; 0: not known. */
uint64_t mst_admin_memory(const struct mst_admin *a);
/* At a member the appointment does. */
void mst_admin_plan_part(struct mst_admin *a, struct mst_server_cfg *out);
int mst_admin_fix_part(struct mst_admin *a, char *why, size_t len);
/* What the lead's data side is made with, for members; the rest of it is the caller's. */
void mst_admin_fill_appoint(const struct mst_admin *a, uint32_t server, struct mst_appoint *out);
void mst_admin_part(const struct mst_admin *a, uint32_t server, uint64_t *first, uint64_t *count);

/* admin_servers.c: nothing is there to do where a job has one server. */
static inline uint32_t mst_admin_servers(const struct mst_admin *a)
{
	return a->o->servers;
}
/* Return, each: false: later. */
bool mst_admin_serve(struct mst_admin *a, struct mst_conn *c, const struct mst_serve *serve,
		     uint64_t now_ns);
bool mst_admin_server_message(struct mst_admin *a, struct mst_conn *c,
			      const struct mst_message *msg, uint64_t now_ns);
/* Are all there and linked? */
bool mst_admin_servers_ready(const struct mst_admin *a);
/* The job is fixed: every member is told, now or when it comes. */
void mst_admin_appoint_all(struct mst_admin *a, uint64_t now_ns);
/* Has every member heard of this guest? Else its welcome waits. */
void mst_admin_expect(struct mst_admin *a, struct mst_guest *g);
void mst_admin_forget(struct mst_admin *a, struct mst_identity who);
/* Can another piece be passed on? And: it is. */
bool mst_admin_state_room(struct mst_admin *a);
void mst_admin_state_pass(struct mst_admin *a, const struct mst_state_piece *piece);
void mst_admin_servers_step(struct mst_admin *a, uint64_t now_ns);
/* Of no more use: its connection, or what it said there. @what: "is gone: ...", a sentence. */
void mst_admin_server_lost(struct mst_admin *a, const struct mst_conn *c, const char *what);
/* The data side has lost that link, or gives its member up. */
void mst_admin_peer_gone(struct mst_admin *a, const struct mst_notice *notice, uint64_t now_ns);
void mst_admin_peer_lost(struct mst_admin *a, uint32_t server, uint64_t number);
/* Whose token it is; 0: nobody's. */
uint32_t mst_admin_seat_of(const struct mst_admin *a, const uint8_t *token);
void mst_admin_servers_told(struct mst_admin *a, const struct mst_message *end);
/* Have all members parted, or had time to? */
bool mst_admin_servers_parted(const struct mst_admin *a);

/* admin_member.c */
/* What the appointment says holds from now on, whatever was typed. */
void mst_admin_take_options(struct mst_admin *a);
static inline bool mst_admin_is_member(const struct mst_admin *a)
{
	return a->o->join != NULL;
}
void mst_admin_member_step(struct mst_admin *a, uint64_t now_ns);
void mst_admin_member_judge(struct mst_admin *a, uint64_t now_ns);
bool mst_admin_lead_message(struct mst_admin *a, struct mst_conn *c, const struct mst_message *msg,
			    uint64_t now_ns);
void mst_admin_lead_lost(struct mst_admin *a, const char *why, uint64_t now_ns);
void mst_admin_member_notice(struct mst_admin *a, const struct mst_notice *notice, uint64_t now_ns);
bool mst_admin_member_over(const struct mst_admin *a);

/* admin_hello.c */
struct mst_guest *mst_admin_guest_new(struct mst_admin *a, struct mst_identity who);
/* All servers expect this guest. */
void mst_admin_send_welcome(struct mst_admin *a, const struct mst_guest *g);
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
/* What the transport said of a lost link of this worker's here; "": nothing. */
const char *mst_admin_link_reason(const struct mst_admin *a, struct mst_identity who);
void mst_admin_notices(struct mst_admin *a, uint64_t now_ns);

#endif
