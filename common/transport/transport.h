/* SPDX-License-Identifier: MIT */
/*
 * How bytes move: one-sided puts with an immediate, one-way lanes, completion events.
 *
 * A link is one end of a session between a connector (the worker that dials) and an acceptor (the
 * shard that answers). It joins two one-way lanes, each ending in an inbound region that exactly
 * one peer may write: `up` ends at the acceptor, `down` at the connector. Over verbs a lane is a
 * queue pair; over shared memory it is a range of a memfd that both ends map. Lanes of length 0 are
 * fine.
 *
 * The data path knows nothing of what is moved: no grants, no versions, no quorum. Over every
 * transport the tests of tests/transport/ hold:
 *   - the bytes of a put are readable at the inbound region when its own or a later arrival on that
 *     lane is polled; arrivals on a lane come in the order of their puts, once each, with their
 *     immediate;
 *   - an aligned put of 8 bytes is never seen torn;
 *   - a put outside the peer's inbound region is -EINVAL here and writes nothing there;
 *   - at most `credits` immediates may be unpolled on a lane; one more is -EAGAIN and writes
 *     nothing. Nobody is woken when credits come back;
 *   - a peer that dies or closes is reported lost once, after what it had put; one that breaks the
 *     rules is reported lost at once; then nothing more of its link arrives;
 *   - what is published is readable by every peer and writable by none;
 *   - registered memory (domain.h) is read for the puts that name it, and written by the peer of
 *     the link that exports it, within what is exported; nobody else reaches it;
 *   - what is written through a view is read through the memory it is a view of, and the other way
 *     round.
 *
 * Threads: a net and its attached links belong to one thread, but mst_net_wake() may come from any.
 * A listener belongs to one thread at a time, perhaps another; but callers are answered on any
 * thread. To accept one maps or registers memory, and that must stall neither a step nor whoever
 * hears heartbeats. A link that is accepted is handed over and attached; a detached link may be
 * freed by any one thread.
 */
#ifndef MST_TRANSPORT_TRANSPORT_H
#define MST_TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/transport/channel.h"
#include "common/transport/domain.h"
#include "common/transport/fabric.h"
#include "common/wire/origins.h"

#define MST_ADDRESS_LEN 1024u /* of a listener, or of those of several networks, with its NUL */
#define MST_NETWORKS_MAX 3u
#define MST_TOKEN_LEN 16u
#define MST_RAILS_MAX 8u   /* that the data of a link are dealt over */
#define MST_ANSWERS_MAX 4u /* callers of one listener that are answered at a time */

struct mst_transport;

/* Inbound regions and credits of a link. Both ends must ask for the same. */
struct mst_lanes {
	size_t up_bytes, down_bytes;
	uint32_t up_credits, down_credits;
};

/* What one thread polls. A transport's own struct begins with it. */
struct mst_net {
	const struct mst_transport *ops;
	struct mst_domain domain; /* registers memory that its links send from, on any thread */
	void *published;          /* own published memory, writable here; NULL: none */
	size_t published_bytes;
};

/* Is a link with this token expected from there? A listener whose network has addresses asks for
 * the connection request of each rail, inside next_request() and before it keeps anything of it;
 * one that is not expected is refused as if the owner had sent it away. */
struct mst_link_filter {
	bool (*expects)(void *ctx, const uint8_t token[MST_TOKEN_LEN],
			const struct mst_origin *from);
	void *ctx;
};

/* Where links are asked for. Begins a transport's own struct. */
struct mst_link_listener {
	const struct mst_transport *ops;
	struct mst_link_filter filter; /* the owner's to set; without expects() all are shown */
	/* What a connector dials; a '*' in it is the host that it has called (called.h). */
	char address[MST_ADDRESS_LEN];
};

/* One end of a session. Begins a transport's own struct; `user` is the owner's to set. */
struct mst_link {
	const struct mst_transport *ops;
	void *user;
	struct mst_lanes lanes;
	void *inbound; /* what the peer writes here: up_bytes at the acceptor, else down_bytes */
	/* The peer's inbound region where this end maps it, else NULL. */
	void *remote_mapping;
	/* Memory of outbound_bytes that mirrors the peer's inbound region from its beginning.
	 * Compute in it: what is put from where it lies in it is not copied, and what lies
	 * elsewhere is copied to it first. The remote mapping where there is one, else
	 * memory of this end. */
	void *outbound;
	size_t outbound_bytes;
	/* A large part of the outbound region is to be had in huge pages: mst_pages_gather() before
	 * it is first written. */
	bool huge_pages;
	/* Bytes of sources that put() has copied. What is put from where it lies is not counted,
	 * nor is a put that was refused. It belongs to the thread that puts. */
	uint64_t copied;
	/* Connector: what the acceptor's net published, in place; NULL: nothing, or not mapped. */
	const void *shared;
	size_t shared_bytes;
	/* What is put without `notify` may get into the inbound region of this end in another order
	 * than it was put, so that nothing can be told from one word about the bytes after it. */
	bool unordered;
	struct mst_reason why; /* from MST_LOST on: what happened, to whom, and what to do */
};

/* Networks, in the order in which a worker tries them. */
struct mst_networks {
	uint32_t count;
	const struct mst_transport *item[MST_NETWORKS_MAX];
	bool optional; /* one that does not open is left out, and the log says why */
};

/* Sockets that listen at a port that was asked for by number, so that no other process takes it
 * while this one has no listener. */
#define MST_PORTS_MAX 8u
struct mst_ports {
	uint32_t count;
	int socket[MST_PORTS_MAX];
};

struct mst_net_cfg {
	size_t published_bytes; /* memory every peer may read in place; 0: none */
	/* Memory for that which another net of this process has published, and which stays longer
	 * than this net; NULL: the net makes it. Where peers map it the net has to make it. */
	void *published;
	/* The parts of mst_joint, each with arm(), disarm(), links() and ready(); else NULL. */
	const struct mst_networks *networks;
	/* An acceptor's outbound region covers no more of its connector's inbound region than this:
	 * beyond it lies only what is put from published memory. 0: all of it. */
	size_t outbound_max;
	const struct mst_fabric *fabric; /* copied; NULL: MST_FABRIC_DEFAULT */
	struct mst_channels channels;    /* what is needed where `encrypted` is set there */
	const struct mst_ports *ports;   /* held for listeners of this net; NULL: none are */
	uint32_t links_max;              /* attached at a time */
	bool views;                      /* of links dialled here there will be views: view() */
	struct mst_lanes lanes; /* an acceptor's links will ask for these; 0: not known yet */
	uint32_t spin_pauses;   /* wait(): pauses, at most, */
	uint32_t spin_yields;   /* then yields, at most, then sleep */
	uint64_t look_ns;       /* a sleeper looks again then, even if no peer rings; 0: 1 s */
};

/* What of a link can be mapped a second time. */
enum mst_view {
	MST_VIEW_OUTBOUND,
	MST_VIEW_INBOUND,
	MST_VIEW_SHARED, /* readable only */
};

/* What is taken: of this process file descriptors and threads; of a device the rest, which is
 * nothing where peers map each other's memory. */
struct mst_claim {
	uint32_t descriptors;
	uint32_t threads;
	uint32_t queue_pairs;
	uint64_t bytes; /* registered, and so pinned: counted once for each rail */
};

/* A link's right to write a part of a region: what the peer puts to [at, at + bytes) of the lane
 * lands there, from @offset of the region on, and not in `inbound`. Elsewhere in the region it can
 * write nothing. */
struct mst_export {
	struct mst_region *region; /* of the net's domain, and writable; NULL: none is exported */
	size_t offset, bytes, at;
};

struct mst_dial {
	const char *address;
	uint8_t token[MST_TOKEN_LEN]; /* single-use, from the welcome */
	struct mst_lanes lanes;
	uint64_t timeout_ns;
	/* The part of that time in which the acceptor may make others' links before it answers. */
	uint64_t busy_ns;
	/* A region of the down lane, so that results need not be copied. The region is lent until
	 * the link is freed; until it is detached the peer may write it, and its contents are the
	 * peer's. Where peers map what they write (`maps`) there can be none: -ENOTSUP. */
	struct mst_export export;
	/* Is the link not wanted any more? Asked now and then while dial() waits; NULL: it is. */
	bool (*unwanted)(void *ctx);
	void *ctx;
};

/* Somebody at the listener, not yet let in. */
struct mst_link_request {
	uint8_t token[MST_TOKEN_LEN];
	struct mst_lanes lanes; /* as the connector claims; its memory is checked to fit */
	/* The peer's address of each rail, as the network's connection manager gives it. Empty
	 * where the network has none: then the caller is of this host. */
	struct mst_origins from;
	void *caller;  /* the transport's */
	uint32_t part; /* of mst_joint: the listener's part that has shown it */
};

struct mst_put {
	size_t offset; /* in the peer's inbound region */
	/* In @region, at outbound + offset, or in published memory: read where it lies, until
	 * MST_SENT. Anywhere else: copied to the outbound region before the call returns. */
	const void *src;
	/* A region of this net's domain that all of the source lies in; NULL: none. It is lent
	 * until the put has completed, told (signal) or not. Where peers map the inbound region the
	 * source is copied there once, and is the caller's again at once. */
	struct mst_region *region;
	size_t bytes; /* 0 is fine */
	bool notify;  /* raise MST_ARRIVED with `imm` at the peer, after all earlier puts */
	uint32_t imm;
	/* A word that may pass earlier puts which are on their way: 8 bytes at a place that is
	 * aligned in both memories, without `notify`. Of a link it is always the same place, to
	 * which nothing else is put. The last such word is the one that stays. */
	bool urgent;
	/* A word of 8 bytes that nothing which is put after it overtakes: where a link has several
	 * rails, rail i brings it to `offset` + 8 i, and 8 * MST_RAILS_MAX bytes there are for it.
	 * A peer that finds the old word in all of these has nothing of what was put later, but for
	 * one whose end is `unordered`. Aligned as `urgent`; neither `notify` nor `signal`. */
	bool every_rail;
	bool more;   /* another put to this link, or poll() of its net, follows at once */
	bool signal; /* report MST_SENT with `cookie` if put() returns 0 */
	uint64_t cookie;
};

enum mst_net_event_kind {
	/* imm: a notifying put of the peer, and all before it, are in the inbound region */
	MST_ARRIVED,
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

/* How links come in. No member but hold is NULL. Failures are negative errno; for @why see
 * struct mst_transport. */
struct mst_link_listener_ops {
	/* Opens a listener whose links will be attached to @net: they see what it publishes. */
	int (*open)(struct mst_net *net, struct mst_link_listener **out, struct mst_reason *why);
	/* Refuses who is not answered yet. No answer() is under way. Accepts NULL. */
	void (*close)(struct mst_link_listener *listener);
	/* Listens at the port that @fabric asks for by number, if it asks for one, until
	 * mst_ports_close(); whoever calls there waits for a listener. The listeners of a net with
	 * these `ports` take it over. NULL: the network has no ports. */
	int (*hold)(const struct mst_fabric *fabric, struct mst_ports *out, struct mst_reason *why);
	/* A descriptor that polls readable when somebody may be asking for a link. */
	int (*fd)(const struct mst_link_listener *listener);
	/* Next caller, read and checked. 0; -EAGAIN nobody now, or a step's worth of callers was
	 * dropped, and fd() is readable if there are more; -EMFILE and the like: callers wait, but
	 * cannot be taken. A caller that sends invalid data, goes silent, or is not expected by the
	 * filter is dropped here and never seen. Several may be shown before the first is answered.
	 * Never blocks. */
	int (*next_request)(struct mst_link_listener *listener, struct mst_link_request *out,
			    struct mst_reason *why);
	/* Lets the caller in (*out, to be attached), or sends it away (out NULL). -EPIPE it has
	 * gone; -ENOMEM. The request is used up in any case. Any thread, at most MST_ANSWERS_MAX at
	 * a time, while the listener's own thread goes on with next_request(). */
	int (*answer)(struct mst_link_listener *listener, const struct mst_link_request *request,
		      struct mst_link **out, struct mst_reason *why);
};

/* One table per transport: no member but reaches, disown, arm, disarm, links, ready and claim
 * is NULL.
 * Failures are negative errno.
 *
 * An operation that takes @why, which is never NULL, empties it first. If the operation fails @why
 * then has a sentence without a full stop that says what happened, to whom, with which figures, and
 * what to do; or it is still empty, where there is no more to say than the error number does. So a
 * caller tells mst_reason_or_errno(). */
struct mst_transport {
	const char *scheme; /* "shm" */
	const char *prefix; /* of its listeners' addresses: "/", "verbs:" */
	const char *medium; /* what gradients travel over, for sentences: "shared memory" */
	/* Peers map what is published, and inbound regions: put() is done when it returns, and both
	 * ends are on one host. Else `shared` and `remote_mapping` are NULL. */
	bool maps;
	/* Devices reach the memory of links and nets, which is pinned: it counts against a limit,
	 * and a forked child does not have it. */
	bool pins;
	/* Its links are encrypted if the fabric says so, and the net has channels. */
	bool encrypts;
	const struct mst_link_listener_ops *listener;

	/* Opens a poller; publishes cfg->published_bytes of zeroed memory. Allocates all it will
	 * need. */
	int (*net_open)(const struct mst_net_cfg *cfg, struct mst_net **out,
			struct mst_reason *why);
	/* No link may be attached any more. Accepts NULL. */
	void (*net_close)(struct mst_net *net);

	/* Can there be a link with the listener at @address, as far as this host can tell without
	 * asking anybody? Return: 0; negative errno, with a sentence: there cannot. NULL: it cannot
	 * tell. */
	int (*reaches)(const char *address, struct mst_reason *why);
	/* Dials; the link is attached to @net. Blocks at most dial->timeout_ns. -ECONNREFUSED
	 * nobody there; -EACCES sent away; -ETIMEDOUT; -EHOSTUNREACH the way there is silent for
	 * longer than its own timers allow; -ECANCELED unwanted; -EINVAL no such address, or lanes
	 * beyond reason; -EPROTONOSUPPORT another version of the transport; -ENOSPC links_max;
	 * -ENOMEM. */
	int (*dial)(struct mst_net *net, const struct mst_dial *dial, struct mst_link **out,
		    struct mst_reason *why);

	/* From now on events of @link come from @net. -ENOSPC: links_max. */
	int (*attach)(struct mst_net *net, struct mst_link *link, struct mst_reason *why);
	/* No more events; its inbound region may still be read, and written for a while, but what
	 * it exports is written no more. The peer may see it lost from now on. */
	void (*detach)(struct mst_link *link);
	/* Frees a link that is not attached, and its memory. Accepts NULL. */
	void (*link_free)(struct mst_link *link);

	/* In a child of the process that opened @net, while fork() runs: closes what descriptors of
	 * the net and of its attached links the child has inherited, of which the parent and its
	 * peers notice nothing. Afterwards the links are detached; freeing them and closing the net
	 * does nothing to what is the parent's. NULL: nothing is inherited. */
	void (*disown)(struct mst_net *net);

	/* Writes to the peer's inbound region, over an attached link. 1: done, src is the caller's
	 * again; 0: it is on its way, MST_SENT follows if asked for; -EAGAIN no credit, or as much
	 * is on its way as can be; -EINVAL outside of the inbound region, or of its region; -EPIPE
	 * the link is lost. Never blocks. */
	int (*put)(struct mst_link *link, const struct mst_put *put);
	/* Up to @max events. Returns how many. Never blocks. */
	int (*poll)(struct mst_net *net, struct mst_net_event *ev, int max);
	/* Returns when poll() may have something, wake() was called, or the time is over (in whole
	 * milliseconds once it sleeps); may return early, and does after a second. Spins first
	 * where that has paid of late, then sleeps. 0, or -EINTR: a signal's handler has run on
	 * this thread and ended the sleep. Being stopped and continued ends none. */
	int (*wait)(struct mst_net *net, uint64_t timeout_ns);
	/* Ends the present or the next wait. Any thread, also a signal handler's. */
	void (*wake)(struct mst_net *net);
	/* For a thread that sleeps elsewhere, in a poll() of its own. Returns the net's descriptor,
	 * the same each time, which polls readable once poll() may have something that it did not
	 * have when this call began, or wake() is called after that. Look with poll() after this
	 * call. The descriptor may also become readable for nothing. Never blocks. NULL: the net
	 * has no such descriptor, and is no part of a joint net. */
	int (*arm)(struct mst_net *net);
	/* From now on the descriptor tells of nothing, and peers need not ring it: for a thread
	 * that is awake again. wait() begins with this. Never blocks. NULL, as arm(). */
	void (*disarm)(struct mst_net *net);

	/* How many links are attached to the net. And: may poll() have something, or has wake()
	 * been called since the last wait()? The net's thread; they never block. NULL: the net is
	 * no part of a joint net. */
	uint32_t (*links)(const struct mst_net *net);
	bool (*ready)(struct mst_net *net);

	/* Maps [offset, offset + bytes) of what this end has, a second time, at @at: over whatever
	 * the caller has reserved there. So parts of several links come to lie side by side. All
	 * are multiples of 4096; the last page may reach beyond the end. It is to be unmapped by
	 * the caller, once the link is freed. 0; -EINVAL no multiples, or beyond the end;
	 * -ENOTSUP the net was opened without views; -ENOMEM. */
	int (*view)(struct mst_link *link, enum mst_view what, size_t offset, size_t bytes,
		    void *at);

	/* What a link with these lanes takes at this end, the acceptor's or the connector's, over a
	 * net of this @cfg; @lanes NULL: what the net itself takes, for what it publishes, and with
	 * @accepts its listener. At most: rails over one device share the latter. NULL: nothing is
	 * taken. */
	void (*claim)(const struct mst_net_cfg *cfg, const struct mst_lanes *lanes, bool accepts,
		      struct mst_claim *out);
};

/* For listeners: asks the owner's filter. */
static inline bool mst_link_expected(const struct mst_link_listener *listener,
				     const uint8_t token[MST_TOKEN_LEN],
				     const struct mst_origin *from)
{
	const struct mst_link_filter *filter = &listener->filter;

	return filter->expects == NULL || filter->expects(filter->ctx, token, from);
}

/* What becomes of what it carries on the way, where the fabric says @encrypted or not; for
 * sentences. */
static inline const char *mst_transport_privacy(const struct mst_transport *t, bool encrypted)
{
	return t->encrypts && encrypted ? "encrypted (TLS 1.3)" : "not encrypted";
}

extern const struct mst_transport mst_shm, mst_verbs, mst_tcp;
/* Several of them as one, for a server whose workers come over different networks. */
extern const struct mst_transport mst_joint;

/* The schemes of all transports, as the choices of an option; the first is the usual one. */
#define MST_TRANSPORT_SCHEMES "shm|verbs|tcp"
/* The transports, in that order, each of which can be a part of a joint net; NULL: there are no
 * more. */
const struct mst_transport *mst_transport_at(uint32_t index);
/* By a listener's address; NULL: of no transport here. */
const struct mst_transport *mst_transport_of(const char *address);

/* ---- several networks ---- */

/* Reads "tcp" or "shm,tcp"; "auto": all there are, each optional. The order is that of
 * MST_TRANSPORT_SCHEMES. Return: 0; -EINVAL, with a sentence that names the choices. */
int mst_networks_read(const char *text, struct mst_networks *out, struct mst_reason *why);
/* Leaves those of @n that have an address in a listener's, which may be the addresses of several
 * networks with "|" between them. */
void mst_networks_keep(struct mst_networks *n, const char *address);
/* The log says over what gradients may leave this host, and whether they are encrypted. */
void mst_networks_tell(const struct mst_networks *n, bool encrypted);
/* Is one of them named in "shm,tcp"? */
bool mst_networks_share(const struct mst_networks *n, const char *schemes);
/* Does one of them map? */
bool mst_networks_map(const struct mst_networks *n);
/* The transport to open: that network, or mst_joint. NULL: there is none. */
const struct mst_transport *mst_networks_transport(const struct mst_networks *n);

#define MST_NETWORKS_TEXT_LEN 32u
/* "shm,tcp". Return: @out. */
const char *mst_networks_text(const struct mst_networks *n, char out[MST_NETWORKS_TEXT_LEN]);

/* What other hosts call of a listener, for people: "10.0.0.1:4711, [fd00::1]:4711", each once and
 * without the place that stands for wherever the server is called. Where there is no such address,
 * @address as it is, such as the path of a socket. Return: @out. */
const char *mst_networks_places(const char *address, char out[MST_ADDRESS_LEN]);

/* Holds the port that @fabric asks for, for the first of the networks that has ports. Return: 0, or
 * -errno, with a sentence. */
int mst_networks_hold(const struct mst_networks *n, const struct mst_fabric *fabric,
		      struct mst_ports *out, struct mst_reason *why);
/* Closes what is held. Accepts zeroed memory. */
void mst_ports_close(struct mst_ports *ports);

/* The address of one network in a listener's. Return: there is one. */
bool mst_transport_address(const struct mst_transport *t, const char *list,
			   char out[MST_ADDRESS_LEN]);

#endif
