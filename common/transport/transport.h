/* SPDX-License-Identifier: MIT */
/*
 * How bytes move: one-sided puts with an immediate, one-way lanes, completion events.
 *
 * A link is one end of a session between a connector (the worker that dials) and an acceptor (the
 * shard that answers). It joins two one-way lanes, each ending in a landing region that exactly one
 * peer may write: `up` ends at the acceptor, `down` at the connector. Over verbs a lane is a queue
 * pair; over shared memory it is a range of a memfd that both ends map. Lanes of length 0 are fine.
 *
 * The data path knows nothing of what is moved: no grants, no versions, no quorum. Over every
 * transport the tests of tests/transport/ hold:
 *   - the bytes of a put are readable at the landing when its own or a later arrival on that lane
 *     is polled; arrivals on a lane come in the order of their puts, once each, with their
 *     immediate;
 *   - an aligned put of 8 bytes is never seen torn;
 *   - a put outside the peer's landing is -EINVAL here and writes nothing there;
 *   - at most `credits` immediates may be unpolled on a lane; one more is -EAGAIN and writes
 *     nothing. Nobody is woken when credits come back;
 *   - a peer that dies or closes is reported lost once, after what it had put; one that breaks the
 *     rules is reported lost at once; then nothing more of its link arrives;
 *   - what is published is readable by every peer and writable by none;
 *   - what is written through a view is read through the memory it is a view of, and the other way
 *     round.
 *
 * Threads: a net and its attached links belong to one thread, but mst_net_wake() may come from any.
 * A door belongs to one thread, perhaps another: accepting maps or registers memory, and that must
 * not stall a step. A link it accepts is handed over and attached; a detached link may be freed by
 * any one thread.
 */
#ifndef MST_TRANSPORT_TRANSPORT_H
#define MST_TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MST_ADDRESS_LEN 512u /* with its NUL */
#define MST_TOKEN_LEN 16u
#define MST_WHY_LEN 400u /* a sentence, with its NUL */

struct mst_transport;

/* Landing regions and credits of a link. Both ends must ask for the same. */
struct mst_lanes {
	size_t up_bytes, down_bytes;
	uint32_t up_credits, down_credits;
};

/* What one thread polls. A transport's own struct begins with it. */
struct mst_net {
	const struct mst_transport *ops;
	void *published; /* own published memory, writable here; NULL: none */
	size_t published_bytes;
};

/* Where links knock. Begins a transport's own struct. */
struct mst_door {
	const struct mst_transport *ops;
	char address[MST_ADDRESS_LEN]; /* what a connector dials */
};

/* One end of a session. Begins a transport's own struct; `user` is the owner's to set. */
struct mst_link {
	const struct mst_transport *ops;
	void *user;
	struct mst_lanes lanes;
	void *landing; /* what the peer writes here: up_bytes at the acceptor, else down_bytes */
	/* The peer's landing where this end maps it, else NULL. */
	void *window;
	/* Memory of outbox_bytes that mirrors the peer's landing from its beginning. Compute in it:
	 * what is put from where it lies in it is not copied, and what lies elsewhere is copied to
	 * it first. The window where there is one, else memory of this end. */
	void *outbox;
	size_t outbox_bytes;
	/* A large part of the outbox is to be had in huge pages: mst_pages_gather() before it is
	 * first written. */
	bool huge_pages;
	/* Connector: what the acceptor's net published, in place; NULL: nothing, or not mapped. */
	const void *shared;
	size_t shared_bytes;
	char why[MST_WHY_LEN]; /* from MST_LOST on: what happened, to whom, and what to do */
};

/* What only some transports have: devices, paths, timers. Strings are the caller's, and stay. */
struct mst_fabric {
	const char *addresses; /* of this host, "10.0.0.1,fd00::1", one a rail; NULL: found */
	const char *devices;   /* "mlx5_0,mlx5_1:2": only these, one a rail; NULL: any */
	int gid_index;         /* -1: as the address asks for */
	int32_t pkey;          /* partition key, 0xffff; -1: the path's own */
	uint8_t traffic_class, service_level;
	uint8_t ack_timeout; /* a try waits 4.096 us x 2^this for its acknowledgement */
	uint8_t retries;     /* then so many more, at most 6: 7 is for ever on some devices */
	bool relaxed_ordering;
	bool huge_pages; /* for what is large, where they can be had; an acceptor's say */
};

#define MST_FABRIC_DEFAULT                                                                         \
	{                                                                                          \
		.gid_index = -1, .pkey = -1, .ack_timeout = 16, .retries = 6, .huge_pages = true   \
	}

struct mst_net_cfg {
	size_t published_bytes; /* memory every peer may read in place; 0: none */
	/* An acceptor's outbox covers no more of its connector's landing than this: beyond it lies
	 * only what is put from published memory. 0: all of it. */
	size_t outbox_max;
	const struct mst_fabric *fabric; /* copied; NULL: MST_FABRIC_DEFAULT */
	uint32_t links_max;              /* attached at a time */
	bool views;                      /* of links dialled here there will be views: view() */
	struct mst_lanes lanes; /* an acceptor's links will ask for these; 0: not known yet */
	uint32_t spin_pauses;   /* wait(): at most so many pauses, */
	uint32_t spin_yields;   /* then at most so many yields, then sleep */
};

/* What of a link can be mapped a second time. */
enum mst_view {
	MST_VIEW_OUTBOX,
	MST_VIEW_LANDING,
	MST_VIEW_SHARED, /* readable only */
};

/* What is taken of a device; nothing where peers map each other's memory. */
struct mst_claim {
	uint32_t queue_pairs;
	uint64_t bytes; /* registered, and so pinned: counted once for each rail */
};

struct mst_dial {
	const char *address;
	uint8_t token[MST_TOKEN_LEN]; /* single-use, from the welcome */
	struct mst_lanes lanes;
	uint64_t timeout_ns;
	/* Of that: so long the acceptor may be busy making others' links before it answers. */
	uint64_t busy_ns;
	/* Is the link not wanted any more? Asked now and then while dial() waits; NULL: it is. */
	bool (*unwanted)(void *ctx);
	void *ctx;
};

/* Somebody at the door, not yet let in. */
struct mst_knock {
	uint8_t token[MST_TOKEN_LEN];
	struct mst_lanes lanes; /* as the connector claims; its memory is checked to fit */
	void *caller;           /* the transport's */
};

struct mst_put {
	size_t offset; /* in the peer's landing */
	/* outbox + offset, or in published memory: read where it lies, until MST_SENT. Anywhere
	 * else: copied to the outbox before the call returns. */
	const void *src;
	size_t bytes; /* 0 is fine */
	bool notify;  /* raise MST_ARRIVED with `imm` at the peer, after all earlier puts */
	uint32_t imm;
	bool more;   /* another put to this link, or poll() of its net, follows at once */
	bool signal; /* report MST_SENT with `cookie` if put() returns 0 */
	uint64_t cookie;
};

enum mst_net_event_kind {
	MST_ARRIVED, /* imm: a notifying put of the peer, and all before it, are in the landing */
	/* cookie: the source of that put may be used again; of a link in the order of its puts */
	MST_SENT,
	MST_LOST, /* error: the peer is gone or broke the rules; nothing more of it comes */
};

struct mst_net_event {
	enum mst_net_event_kind kind;
	struct mst_link *link;
	uint32_t imm;
	int error; /* negative errno: -EPIPE gone, -EPROTO broke the rules */
	uint64_t cookie;
};

/* How links come in. No member is NULL. Failures are negative errno. */
struct mst_door_ops {
	/* Opens a door whose links will be attached to @net: they see what it publishes. */
	int (*open)(struct mst_net *net, struct mst_door **out);
	/* Refuses who is not answered yet. Accepts NULL. */
	void (*close)(struct mst_door *door);
	/* A descriptor that polls readable when somebody may be knocking. */
	int (*fd)(const struct mst_door *door);
	/* Next caller, read and checked. 0; -EAGAIN nobody now; -EMFILE and the like: callers wait,
	 * but cannot be taken. A caller that sends rubbish or goes silent is dropped here and never
	 * seen. Several may be shown before the first is answered. Never blocks. */
	int (*knock)(struct mst_door *door, struct mst_knock *out);
	/* Lets the caller in (*out, to be attached), or sends it away (out NULL). -EPIPE it has
	 * gone; -ENOMEM. The knock is used up in any case. */
	int (*answer)(struct mst_door *door, const struct mst_knock *knock, struct mst_link **out);
};

/* One table per transport: no member but claim is NULL. Failures are negative errno; mst_why()
 * tells more. */
struct mst_transport {
	const char *scheme; /* "shm" */
	/* Peers map what is published, and landings: put() is done when it returns. Else `shared`
	 * and `window` are NULL. */
	bool maps;
	const struct mst_door_ops *door;

	/* Opens a poller; publishes cfg->published_bytes of zeroed memory. Allocates all it will
	 * need. */
	int (*net_open)(const struct mst_net_cfg *cfg, struct mst_net **out);
	/* No link may be attached any more. Accepts NULL. */
	void (*net_close)(struct mst_net *net);

	/* Dials; the link is attached to @net. Blocks at most dial->timeout_ns. -ECONNREFUSED
	 * nobody there; -EACCES sent away; -ETIMEDOUT; -EHOSTUNREACH the way there is silent for
	 * longer than its own timers allow; -ECANCELED unwanted; -EINVAL no such address, or lanes
	 * beyond reason; -EPROTONOSUPPORT another version of the transport; -ENOSPC links_max;
	 * -ENOMEM. */
	int (*dial)(struct mst_net *net, const struct mst_dial *dial, struct mst_link **out);

	/* From now on events of @link come from @net. -ENOSPC: links_max. */
	int (*attach)(struct mst_net *net, struct mst_link *link);
	/* No more events; its landing may still be read. The peer may see it lost from now on. */
	void (*detach)(struct mst_link *link);
	/* Frees a link that is not attached, and its memory. Accepts NULL. */
	void (*link_free)(struct mst_link *link);

	/* Writes to the peer's landing, over an attached link. 1: done, src is the caller's again;
	 * 0: it is on its way, MST_SENT follows if asked for; -EAGAIN no credit, or as much is on
	 * its way as can be; -EINVAL outside; -EPIPE the link is lost. Never blocks. */
	int (*put)(struct mst_link *link, const struct mst_put *put);
	/* Up to @max events. Returns how many. Never blocks. */
	int (*poll)(struct mst_net *net, struct mst_net_event *ev, int max);
	/* Returns when poll() may have something, wake() was called, or the time is over (in whole
	 * milliseconds once it sleeps); may return early, and does after a second. Spins first
	 * where that has paid of late, then sleeps. 0, or -EINTR: a signal's handler ended the
	 * sleep. */
	int (*wait)(struct mst_net *net, uint64_t timeout_ns);
	/* Ends the present or the next wait. Any thread, also a signal handler's. */
	void (*wake)(struct mst_net *net);

	/* Maps [offset, offset + bytes) of what this end has, a second time, at @at: over whatever
	 * the caller has reserved there. So parts of several links come to lie side by side. All
	 * are multiples of 4096; the last page may reach beyond the end. It is to be unmapped by
	 * the caller, once the link is freed. 0; -EINVAL no multiples, or there is not so much;
	 * -ENOTSUP the net was opened without views; -ENOMEM. */
	int (*view)(struct mst_link *link, enum mst_view what, size_t offset, size_t bytes,
		    void *at);

	/* What a link with these lanes takes at this end, the acceptor's or the connector's, over a
	 * net of this @cfg; @lanes NULL: what the net itself takes, for what it publishes. At most:
	 * rails over one device share the latter. NULL: nothing is taken. */
	void (*claim)(const struct mst_net_cfg *cfg, const struct mst_lanes *lanes, bool accepts,
		      struct mst_claim *out);
};

extern const struct mst_transport mst_shm, mst_verbs;

/* By scheme; NULL: no such transport in this build. */
const struct mst_transport *mst_transport_find(const char *scheme);
/* By a door's address; NULL: of no transport here. */
const struct mst_transport *mst_transport_of(const char *address);

/* What went wrong in this thread's last call that failed, as a sentence without a full stop that
 * says what happened, with which figures, and what to do. "" where there is no more to say than the
 * error number does. Valid until this thread's next call. */
const char *mst_why(void);

#endif
