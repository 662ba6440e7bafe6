/* SPDX-License-Identifier: MIT */
/*
 * What the files of both simulated transports share. Everything lies in the world's own memory, so
 * whatever happens later finds what it is about, also when its owner has freed it long since.
 *
 * A link has two ends and two lanes. Whatever one end tells the other goes along its lane, in
 * order: puts, credits of the other lane, and that it hangs up. Over sim_near the bytes are there
 * when put() returns, and what goes along the lane is only the notice of it.
 */
#ifndef MST_TESTS_SIM_NET_STATE_H
#define MST_TESTS_SIM_NET_STATE_H

#include "tests/sim/net.h"

#define SIM_RUBBISH 0xdb
#define SIM_BYTES_MAX ((size_t)1 << 30) /* of an inbound region; more is beyond reason */
#define SIM_CREDITS_MAX (1u << 20)

struct sim_end;

/* ---- lane.c ---- */

enum sim_entry_kind {
	SIM_ENTRY_PUT,
	SIM_ENTRY_CREDIT,  /* so many immediates of the other lane have been polled */
	SIM_ENTRY_HANG_UP, /* nothing follows */
};

struct sim_entry {
	enum sim_entry_kind kind;
	size_t offset, bytes, done;
	const uint8_t *src;
	bool notify, signal;
	uint32_t imm;
	uint64_t polled; /* CREDIT */
	uint64_t cookie;
	uint64_t put_ns, sent_ns;
	uint64_t sum;            /* signal, lent: of its bytes when it was put */
	struct mst_region *lent; /* NULL: nothing is */
	struct sim_entry *next;
};

struct sim_queue {
	struct sim_entry *head, *tail;
	uint32_t count;
};

struct sim_lane {
	struct sim_end *from, *to;
	uint8_t *inbound; /* the end `to` owns it, all but what it exports: */
	struct mst_export export;
	bool revoked; /* nothing lands there any more */
	size_t bytes;
	bool freed; /* nothing lands any more */

	/* Credits: `returned` is what `from` knows of `polled`, `told` what `to` has told of it. */
	uint32_t credits;
	uint64_t notified, returned, polled, told;
	uint32_t *imm; /* arrived and not polled: a ring of `credits` */
	uint32_t first, arrived;

	struct sim_queue way;  /* oldest first; of them */
	uint32_t to_go;        /* so many may go: those after them have `more` to follow */
	uint32_t travelling;   /* and so many are puts */
	struct sim_queue acks; /* landed, to be reported sent */
	struct sim_queue sent; /* to be told by poll() */
	struct sim_entry *spare;
	size_t piece; /* that lands next */
	bool moving;
	uint64_t due_ns, ack_due_ns;
	uint64_t progress_ns; /* something landed, or was acknowledged */
};

void sim_lane_init(struct sim_lane *lane, struct sim_end *from, struct sim_end *to);
int sim_lane_put_near(struct mst_link *link, const struct mst_put *put);
int sim_lane_put_far(struct mst_link *link, const struct mst_put *put);
/* What waits for more to follow goes. */
void sim_lane_flush(struct sim_lane *lane);
/* The receiving end returns all credits that it has not told of yet. */
void sim_lane_tell(struct sim_lane *in);
void sim_lane_hang_up(struct sim_lane *lane);
/* The sending end lets go of its sources. @all: what is on its way arrives; else some of it may,
 * perhaps in part. */
void sim_lane_sever(struct sim_lane *lane, bool all);
/* Its sender is freed, and the regions that it has lent end with their domain. */
void sim_lane_take_back(struct sim_lane *lane);
/* Forgets what was to be told of puts that were sent. */
void sim_lane_forget_sent(struct sim_lane *lane);
/* The oldest, which there is: its immediate, its cookie. */
uint32_t sim_lane_take_arrival(struct sim_lane *lane);
uint64_t sim_lane_take_sent(struct sim_lane *lane);
void sim_lane_write(struct sim_lane *lane, size_t offset, const void *src, size_t bytes);

/* ---- link.c ---- */

enum sim_end_state {
	SIM_END_IDLE,   /* not attached yet */
	SIM_END_LIVE,   /* attached */
	SIM_END_ENDING, /* attached; poll() has not said yet that it is lost */
	SIM_END_LOST,   /* attached; it has */
	SIM_END_GONE,   /* detached */
};

struct sim_net;

/* A part of the remote mapping that its owner has mapped a second time. */
struct sim_mapping_view {
	size_t offset, bytes;
	void *at;
	struct sim_mapping_view *next;
};

struct sim_end {
	struct mst_link link;
	enum sim_end_state state;
	int error; /* not 0: it is lost, or will be once attached */
	bool connector;
	bool hung;         /* it has said that nothing follows, or never will */
	bool deaf;         /* it acknowledges nothing, and the other end is not told */
	bool freed;        /* by its owner */
	uint32_t last_imm; /* of the last put that notified */
	uint32_t room;
	struct sim_process *owner;
	struct sim_net *net; /* attached to it */
	uint32_t index;
	struct sim_lane *in, *out;
	struct sim_session *session;
	struct sim_mapping_view *views;
};

struct sim_session {
	uint32_t number;
	bool near;
	struct sim_lane up, down;
	struct sim_end connector, acceptor;
	struct sim_session *next;
};

struct sim_session_cfg {
	const struct mst_transport *ops;
	struct mst_lanes lanes;
	struct sim_process *connector, *acceptor;
	struct sim_net *home; /* the acceptor's */
};

struct sim_session *sim_session_new(const struct sim_session_cfg *cfg);
void sim_end_lose(struct sim_end *e, int error, const char *why);
void sim_end_hang_up(struct sim_end *e);
/* Its process has died. */
void sim_end_die(struct sim_end *e);
void sim_end_free(struct mst_link *link);
int sim_end_view(struct mst_link *link, enum mst_view what, size_t offset, size_t bytes, void *at);
/* Events of this end, in an order that the contract allows. */
int sim_end_poll(struct sim_end *e, struct mst_net_event *ev, int max);
bool sim_end_has_work(const struct sim_end *e);

/* ---- net.c ---- */

struct sim_net {
	struct mst_net net;
	struct mst_net_cfg cfg;
	struct sim_process *process;
	struct sim_wakeup wakeup;
	struct sim_wakeup *poller; /* of a fiber that sleeps for several nets; NULL: none does */
	int fd;                    /* that arm() returns */
	bool woken;
	struct sim_net *next;
	uint32_t first, link_count, idle_polls;
	struct sim_end *link[];
};

/* What there is of this world. */
struct sim_nets {
	uint64_t world;
	uint32_t numbers;  /* given to listeners and sessions */
	uint64_t arrivals; /* at listeners */
	struct sim_net *all;
	int last_fd;
	struct sim_session *sessions, **sessions_end;
	struct sim_listener *listeners, **listeners_end;
	struct sim_call *calls, **calls_end;
	struct sim_path *paths;
};
struct sim_nets *sim_nets(void);
const struct sim_net_watch *sim_nets_watch(void);

/* Ends the sleep of who waits for this net. */
void sim_net_ring(struct sim_net *net);
/* When does the path between these two move again? 0: it does. @q may be NULL: nobody. */
uint64_t sim_path_free_at(const struct sim_process *p, const struct sim_process *q);
int sim_net_attach(struct mst_net *net, struct mst_link *link, struct mst_reason *why);

/* ---- listener.c ---- */

extern const struct mst_link_listener_ops sim_near_listener, sim_far_listener;
/* Is the listener of this address on the host of the process that runs? */
int sim_listener_reaches(const char *address, struct mst_reason *why);
int sim_listener_dial(struct mst_net *net, const struct mst_dial *dial, struct mst_link **out,
		      struct mst_reason *why);
void sim_listeners_die(struct sim_process *p);

#endif
