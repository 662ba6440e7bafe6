/* SPDX-License-Identifier: MIT */
/*
 * The other end of a link under test, in a thread or in a process of its own, or in one of a
 * simulated world. It has one net and at most one link, and does one order at a time.
 */
#ifndef MST_TESTS_TRANSPORT_PEER_H
#define MST_TESTS_TRANSPORT_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/transport/transport.h"

enum peer_order {
	PEER_DIAL,     /* address, token, lanes, timeout_ns, wanted_ns: opens a net and dials */
	PEER_LISTEN,   /* opens a net and a listener; reports its address */
	PEER_ACCEPT,   /* waits for a caller and lets it in */
	PEER_PUT,      /* offset, bytes of pattern(seed), notify, imm, from_mapping */
	PEER_POLL,     /* until `count` events have come or timeout_ns is over; reports them */
	PEER_WAIT,     /* one wait of timeout_ns; reports how long it took */
	PEER_CHECK,    /* 0: pattern(seed) is at offset of the inbound region, or of the shared */
	PEER_SCRIBBLE, /* writes to the shared, by every means; the process should not survive */
	PEER_STORM,    /* storm(seed, count) */
	PEER_WORDS,    /* for timeout_ns: 8 equal bytes at offset 0; the last notifies */
	PEER_ECHO,     /* answers `count` arrivals, each after 0 to 3 us */
	PEER_VIEW,     /* maps view, offset, bytes once more, and looks or composes there */
	PEER_DETACH,   /* detaches the link, and clears what it has exported */
	PEER_CLOSE,    /* detaches and frees the link */
};

#define PEER_EVENTS 32
#define PEER_PATIENCE_S 120 /* then an order has failed */
/* For what comes unless something is broken. An emulated machine on a busy host takes seconds. */
#define PEER_WAIT_NS (60 * MST_SECOND)
/* For what a host that stands still does not make that late: well before PEER_LOOK_NS. */
#define PEER_SOON_NS (20 * MST_SECOND)
/* Sleepers look by themselves so seldom that a wake-up that is lost shows on a busy host, too. */
#define PEER_LOOK_NS (60 * MST_SECOND)
/* But devices may lose one: rxe_cq_post() of Linux 6.1 puts a completion into the queue, and looks
 * whether anybody wants to be notified after it has unlocked the queue, without a barrier. The look
 * of each second is there for that. A network without a device of its own loses none. */
#define PEER_LOOK_NS_OF(transport) ((transport)->pins ? MST_SECOND : PEER_LOOK_NS)

/* The options of networks that both ends open their nets with: the defaults, if main() has not set
 * others before the first peer starts. */
extern struct mst_fabric peer_fabric;
/* What they encrypt links with, where peer_fabric says so: of both ends. */
extern struct mst_channels peer_channels;

struct peer_command {
	enum peer_order order;
	char address[MST_ADDRESS_LEN];
	uint8_t token;
	struct mst_lanes lanes;
	uint64_t timeout_ns;
	uint64_t wanted_ns; /* for so long; 0: to the end */
	size_t offset, bytes;
	uint64_t seed, count;
	uint32_t imm;
	bool notify, from_mapping, shared, restless; /* restless: neither spins nor yields */
	bool views;                                  /* PEER_DIAL: there will be some */
	/* PEER_DIAL: `bytes` of a region, from PEER_OWN_FROM on, stand for those from `offset` on
	 * of the down lane. PEER_CHECK: pattern(seed) is there, and nothing beside it. */
	bool exported;
	enum mst_view view;
};

struct peer_report {
	int rc;
	char address[MST_ADDRESS_LEN];
	uint64_t took_ns;
	uint64_t copied; /* PEER_PUT: by all puts over this link */
	int count;
	struct {
		enum mst_net_event_kind kind;
		uint32_t imm;
		int error;
	} event[PEER_EVENTS];
};

struct peer;

/* Over a network where the processor of each end moves the bytes, an end that never polls may stand
 * still in the middle of a put. Then ends poll between orders, and so does a tester, its net, that
 * waits for a report; events they leave for later. */
extern bool peer_polls;
extern struct mst_net *peer_tester;

/* Aborts if it cannot: the test is worth nothing then. */
struct peer *peer_start(const struct mst_transport *t, bool process);
void peer_tell(struct peer *p, const struct peer_command *c);
/* Waits for the report of the last order; rc -ETIME: none came. */
struct peer_report peer_hear(struct peer *p);
struct peer_report peer_do(struct peer *p, const struct peer_command *c);
/* What becomes of a peer in a process. */
void peer_kill(void *peer);
void peer_stop(struct peer *p);
void peer_continue(struct peer *p);
/* Ends it and frees all; of a process, how it ended, as waitpid() tells. */
int peer_end(struct peer *p);

/* ---- time ---- */

/* Until somebody may be asking for a link, or a while is over. */
void await_caller(const struct mst_link_listener *listener);
/* Calls @act in so long, whatever the caller does meanwhile; one at a time. */
void later(uint64_t after_ns, void (*act)(void *arg), void *arg);
/* It has been called. */
void later_end(void);

/* ---- what a peer does ---- */

#define SIDE_VIEWS 4

/* Memory of a peer's own, a part of which it may export. */
#define PEER_OWN_BYTES ((size_t)1 << 20)
#define PEER_OWN_FROM ((size_t)5000)

struct side {
	const struct mst_transport *t;
	uint8_t *own; /* NULL: none yet */
	struct mst_region *region;
	struct mst_net *net;
	struct mst_link_listener *listener;
	struct mst_link *link;
	struct mst_reason why; /* what the last call of the transport said */
	bool detached;         /* the link is */
	struct {
		void *at;
		size_t bytes;
	} view[SIDE_VIEWS]; /* whose bytes are not 0 */
};
/* Return: as the report's rc. */
int side_obey(struct side *side, const struct peer_command *c, struct peer_report *r);
void side_close(struct side *side);

/* Bytes that depend on place and seed. */
void pattern(uint8_t *out, size_t bytes, uint64_t seed);
bool pattern_is(const void *at, size_t bytes, uint64_t seed);

/* Sends and receives @count messages of random sizes at once; 0, or what went wrong. Both ends run
 * it, each sending what the other's in_seed says. Message i goes to cell i modulo 3 * credits: what
 * is being checked (up to credits) and what is on its way (one more than credits) never meet. */
#define STORM_CELL 2048u
struct storm {
	struct mst_net *net;
	struct mst_link *link;
	uint64_t out_seed, in_seed, count;
};
int storm(const struct storm *s);

#endif
