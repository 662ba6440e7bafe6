/* SPDX-License-Identifier: MIT */
/*
 * Links over RDMA verbs: InfiniBand, RoCE, soft-RoCE.
 *
 *   connector                                    acceptor
 *   outbound --- up lane: writes, then immediate ---> inbound region
 *   inbound region <----------------- down lane --- outbound
 *
 * Each lane is a queue pair per rail. An inbound one lives in a protection domain of its own, whose
 * only region is the inbound region, writable from afar and nothing else; an outbound one in the
 * device's shared domain, whose regions are all local and which grants the peer nothing. So each
 * peer can write to exactly one region, and no other peer can write to that region.
 *
 *   inbound region:   what the peer puts                             | tail
 *   outbound region:  what is composed for the peer, at equal offsets | tail
 *   tail:             region exchanges[rails] | credit word            (a page)
 *
 * A connection request carries token, figures and the number of one more queue pair, the answer
 * the acceptor's address and key. The connector's address and key follow by the first write of each
 * rail, the region exchange. Neither end tells its address and key before the token has been
 * checked.
 *
 * Order, rails and credits are those of the queue of puts (common/transport/queue.h): an immediate
 * needs a posted receive, so there are as many receives as credits.
 */
#ifndef MST_TRANSPORT_VERBS_VERBS_H
#define MST_TRANSPORT_VERBS_VERBS_H

#include <assert.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/transport/endpoint.h"
#include "common/transport/queue.h"
#include "common/transport/spin.h"
#include "common/transport/transport.h"

#define MST_VERBS_PAGE ((size_t)4096)
#define MST_VERBS_BYTES_MAX ((size_t)1 << 44)
#define MST_VERBS_CREDITS_MAX (1u << 14)
#define MST_VERBS_LIST 16u /* work requests posted at a time */
#define MST_VERBS_SEND_MAX 4096u
#define MST_VERBS_MESSAGE ((size_t)128 << 10) /* a put is cut into work requests of this */

/* rdma_cm leaves the timer at 0, which stands for 655 ms; 12 is 0.64 ms. Receives are posted before
 * the peer may use them, so that the retry is for a peer that breaks the rules. */
#define MST_VERBS_RNR_TIMER 12
#define MST_VERBS_RNR_RETRIES 3

static inline size_t mst_verbs_round(size_t bytes)
{
	return (bytes + MST_VERBS_PAGE - 1) / MST_VERBS_PAGE * MST_VERBS_PAGE;
}

/* ---- memory.c: what is registered ---- */

struct mst_verbs_memory {
	uint8_t *base;
	size_t bytes;
	void *mapping; /* what munmap() takes: base may be aligned within it */
	size_t mapped;
};

/* Zeroed, not shared with children's writes. 0 or -ENOMEM, with a sentence. */
int mst_verbs_memory_new(size_t bytes, bool huge_pages, struct mst_verbs_memory *out,
			 struct mst_reason *why);
/* The same, of which there can be views: mst_verbs_memory_gather() brings it huge pages. */
int mst_verbs_memory_new_viewed(size_t bytes, struct mst_verbs_memory *out, struct mst_reason *why);
/* Before it is registered, and once it is known where it belongs. */
void mst_verbs_memory_gather(const struct mst_verbs_memory *m);
void mst_verbs_memory_free(struct mst_verbs_memory *m); /* of zeroed, too */
/* Pages that are not there yet come from the node of the device, if it has one. */
void mst_verbs_memory_near(const struct mst_verbs_memory *m, const struct ibv_context *device);

/* What is to be registered, and for what. */
struct mst_verbs_registration {
	struct ibv_pd *pd;
	uint8_t *base;
	size_t bytes;
	unsigned access;  /* IBV_ACCESS_* */
	const char *what; /* lies there, for sentences */
};

/* 0, or -ENOMEM and the like, with a sentence that knows of the lock limit. */
int mst_verbs_register(const struct mst_verbs_registration *how, struct ibv_mr **out,
		       struct mst_reason *why);

struct mst_verbs_device;

/* Makes a region readable for what is sent over the device, once. As above. */
int mst_verbs_pin(struct mst_verbs_device *d, struct mst_region *r, const char *what,
		  struct mst_reason *why);
/* The same of memory that belongs to the program, and so to its children. */
int mst_verbs_pin_own(struct mst_verbs_device *d, struct mst_region *r, struct mst_reason *why);
void mst_verbs_unpin(struct mst_region *r); /* from all devices */
/* What regions of a net's domain are pinned by; its context is the net. */
extern const struct mst_domain_ops mst_verbs_domain;

/* The memory of a lane's inbound or outbound region of @bytes: a page follows it, see above. */
static inline size_t mst_verbs_memory_of(size_t bytes)
{
	return mst_verbs_round(bytes) + MST_VERBS_PAGE;
}

/* ---- address.c: where rails begin and end ---- */

/* This host's, as the fabric says: the addresses named, or one of each device named, or the first
 * there is. @like, where not NULL, asks for its family. -ENODEV, -EINVAL with a sentence. */
int mst_verbs_address_own(const struct mst_fabric *fabric, const struct sockaddr *like,
			  struct mst_endpoints *out, struct mst_reason *why);
/* This host's on the way to @far, as its routes say; "" if there is none. */
const char *mst_verbs_address_toward(const struct sockaddr *far, char out[MST_ENDPOINT_TEXT_LEN]);

/* ---- device.c: what links of a net over one device share ---- */

struct mst_verbs_device {
	struct ibv_context *context;
	struct ibv_device_attr limits;
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd; /* of outbound queue pairs: nothing in it can be reached from afar */
	uint32_t index;    /* in its net, and so of what a region has pinned for it */
	bool gone;         /* removed while in use */
};

struct mst_verbs_net;

/* The net's device of that name, if it is open. */
struct mst_verbs_device *mst_verbs_device_known(struct mst_verbs_net *net, const char *name);
/* The device of this name, which is opened if it is not open yet. Call it in the net's thread, or
 * before that thread polls. 0, or an error with a sentence. */
int mst_verbs_device_of(struct mst_verbs_net *net, const char *name, struct mst_verbs_device **out,
			struct mst_reason *why);
void mst_verbs_device_close(struct mst_verbs_device *d);

/* ---- limits.c: what a device must have for the links to come ---- */

/* What is put one way. */
struct mst_verbs_lane {
	size_t bytes;
	uint32_t credits, rails;
};
uint32_t mst_verbs_send_depth(const struct mst_verbs_lane *lane, const struct ibv_device_attr *has);

struct mst_verbs_need {
	uint32_t links;
	uint32_t rails, here; /* of a link; of them on this device */
	struct mst_lanes lanes;
};
/* As transport.h has it. */
void mst_verbs_claim(const struct mst_net_cfg *cfg, const struct mst_lanes *lanes, bool accepts,
		     struct mst_claim *out);
/* How a device waits for acknowledgements. */
struct mst_verbs_tries {
	uint8_t timer;   /* a try waits 4.096 us x 2^this; 1 to 31 */
	uint8_t retries; /* tries after the first, at most 6 */
};
/* All tries together take at most @link_timeout_ns, and of that as much as can be: more than 4/5,
 * where it is 33 us and more. */
struct mst_verbs_tries mst_verbs_tries(uint64_t link_timeout_ns);
/* Does the device have what is needed? 0; -ENOSPC, with the figure that does not fit. */
int mst_verbs_limits_check(const char *device, const struct ibv_device_attr *has,
			   const struct mst_verbs_need *need, struct mst_reason *why);
/* 0; -ENETDOWN: nothing goes through the port, with a sentence. */
int mst_verbs_port_check(struct ibv_context *device, uint8_t port, const char *address,
			 struct mst_reason *why);

/* ---- rail.c: the two queue pairs that a link has on a device ---- */

struct mst_verbs_link;

enum mst_verbs_cm_state {
	MST_VERBS_CM_NONE,
	MST_VERBS_CM_ADDRESS,  /* the peer's address is resolved: the device is known */
	MST_VERBS_CM_ROUTE,    /* so is the way there */
	MST_VERBS_CM_ANSWERED, /* the acceptor has answered: `answer` is what it says */
	MST_VERBS_CM_FAILED,   /* the attempt is over: link->error, and link.why tells */
	MST_VERBS_CM_GONE,     /* it was up, and the peer has ended it */
};

/* Private data. Little-endian, as all of muster; 56 bytes are what a request over IP may carry. */
struct mst_verbs_request {
	uint32_t magic;
	uint8_t version, rail, rails, mtu; /* enum ibv_mtu of the connector's port */
	uint8_t token[MST_TOKEN_LEN];
	uint64_t up_bytes, down_bytes;
	uint32_t up_credits, down_credits;
	uint32_t down_qpn, down_psn; /* of the connector's inbound queue pair */
};

struct mst_verbs_answer {
	uint32_t magic;
	uint8_t version, mtu;
	uint16_t pad;
	int32_t error;               /* a refusal's; negative errno */
	uint32_t down_qpn, down_psn; /* of the acceptor's outbound queue pair */
	uint32_t rkey;
	uint64_t inbound;
};

#define MST_VERBS_MAGIC 0x7262766du
#define MST_VERBS_VERSION 2u

/* Where the connector's inbound region is: the first write of each rail. */
struct mst_verbs_region_exchange {
	uint32_t magic, rkey;
	uint64_t inbound;
	/* What lies elsewhere of it; bytes 0: nothing does. The same on every rail, but the key. */
	uint64_t at, bytes, base;
	uint32_t base_rkey, pad;
};

static_assert(sizeof(struct mst_verbs_request) == 56, "what a request over IP has room for");
static_assert(sizeof(struct mst_verbs_answer) == 32, "on the wire: no padding");
static_assert(sizeof(struct mst_verbs_region_exchange) == 48, "on the wire: no padding");

#define MST_VERBS_REGION_EXCHANGE_LINE 64u
#define MST_VERBS_CREDIT_AT 2048u /* in the tail */

/* Writes that are to be posted. */
struct mst_verbs_list {
	uint32_t count;
	struct ibv_send_wr wr[MST_VERBS_LIST];
	struct ibv_sge sge[MST_VERBS_LIST];
};

struct mst_verbs_rail {
	struct mst_verbs_link *link;
	uint32_t index;
	struct mst_verbs_device *device;

	struct rdma_cm_id *id;
	enum mst_verbs_cm_state cm;
	bool silent; /* the connection manager has given up to wait for an answer */
	char peer[MST_ENDPOINT_TEXT_LEN]; /* for sentences, as is this end's: */
	char own[MST_ENDPOINT_TEXT_LEN];
	struct mst_verbs_answer answer; /* connector */
	size_t answer_bytes;

	struct ibv_pd *pd; /* of the inbound queue pair */
	struct ibv_cq *cq;
	struct ibv_qp *in, *out;
	struct ibv_mr *inbound, *exported;
	uint32_t in_psn, out_psn;
	uint32_t inline_max;
	bool armed; /* the completion queue rings its channel */

	bool open; /* it is known where the peer's inbound region is: */
	uint64_t remote;
	/* The part of it that lies elsewhere, from `from` to `end`; end 0: none does. */
	struct {
		size_t from, end;
		uint64_t remote;
		uint32_t rkey;
	} apart;
	uint32_t rkey;

	struct mst_verbs_list list; /* what is composed, and not posted yet */
};

/* Lets the peer write what the link exports, over this rail. 0, or an error with a sentence. */
int mst_verbs_export(struct mst_verbs_rail *r, unsigned access, struct mst_reason *why);
/* Resources of one rail of a link whose memory is there, over the device of r->device; receives
 * are posted. 0, or an error with a sentence. */
int mst_verbs_rail_make(struct mst_verbs_rail *r, struct mst_reason *why);
/* The link has been detached. After this call the peer can write nothing any more over the inbound
 * queue pair, and nothing of what the link exports. */
void mst_verbs_rail_revoke(struct mst_verbs_rail *r);
void mst_verbs_rail_destroy(struct mst_verbs_rail *r); /* of whatever has been made */

/* The peer's half of both queue pairs. */
struct mst_verbs_far {
	uint32_t qpn, psn; /* of the queue pair that the connection manager does not know */
	uint8_t mtu;
};
/* From INIT to ready to send, with timers of our own. 0, or an error with a sentence; @why is
 * emptied first. */
int mst_verbs_rail_connect(struct mst_verbs_rail *r, const struct mst_verbs_far *far,
			   struct mst_reason *why);
void mst_verbs_rail_error(struct mst_verbs_rail *r); /* both to the error state */
static inline const char *mst_verbs_rail_device(const struct mst_verbs_rail *r)
{
	return ibv_get_device_name(r->device->context->device);
}
/* The device may have been removed, or have lost its address, and its event not been read yet: then
 * whatever broke broke of that. 0; -ENODEV, -EADDRNOTAVAIL. */
int mst_verbs_rail_check_device(const struct mst_verbs_rail *r);
/* What this port can do. */
uint8_t mst_verbs_rail_mtu(const struct mst_verbs_rail *r);
int mst_verbs_rail_post_receives(struct mst_verbs_rail *r, uint32_t count);

/* ---- out.c: puts on their way ---- */

extern const struct mst_queue_ops mst_verbs_queue;
/* Connector: tells the acceptor where the inbound region is. */
int mst_verbs_send_region_exchange(struct mst_verbs_rail *r);

/* ---- link.c: one end of a session ---- */

struct mst_verbs_link {
	struct mst_link link;
	struct mst_verbs_net *home; /* whose devices it uses */
	struct mst_verbs_net *net;  /* it is attached to */
	uint32_t index;             /* in net->links */
	bool connector;
	_Atomic bool gone; /* acceptor, before it is attached: the peer has gone already */
	int error;         /* what has ended the attempt to dial it */
	bool views;        /* there can be some of both: */
	struct mst_verbs_memory inbound, outbound;
	/* Connector: what of the inbound region lies in a region of the program's. */
	struct mst_export export;
	struct mst_region composed; /* the outbound region; in no domain: it is this link's own */
	struct mst_queue queue;
	uint32_t rail_count;
	struct mst_verbs_rail rail[MST_RAILS_MAX];
};

/* What an end is to be. */
struct mst_verbs_link_cfg {
	bool connector;
	uint32_t rails;
	struct mst_lanes lanes;
};

/* An end with its memory, its rails still empty. 0, or -ENOMEM with a sentence. */
int mst_verbs_link_new(struct mst_verbs_net *net, const struct mst_verbs_link_cfg *cfg,
		       struct mst_verbs_link **out, struct mst_reason *why);
void mst_verbs_link_free(struct mst_link *link);
int mst_verbs_link_view(struct mst_link *link, enum mst_view what, size_t offset, size_t bytes,
			void *at);
/* 0; -EINVAL: more than any real lane. */
int mst_verbs_lanes_check(const struct mst_lanes *lanes);

static inline uint8_t *mst_verbs_tail(const struct mst_verbs_memory *m)
{
	return m->base + m->bytes - MST_VERBS_PAGE;
}
/* Where the peer's tail begins in its inbound region. */
static inline size_t mst_verbs_peer_tail(const struct mst_verbs_link *l)
{
	return mst_verbs_round(l->queue.peer_bytes);
}

/* Takes completions in, of a LIVE link. */
void mst_verbs_link_gather(struct mst_verbs_link *l);
/* Takes completions of a link that is not attached yet. -EPIPE, -EPROTO: it broke, link.why
 * tells. */
int mst_verbs_link_take_completions(struct mst_verbs_link *l);
int mst_verbs_link_poll(struct mst_verbs_link *l, struct mst_net_event *ev, int max);
/* Ends a LIVE link, for the reason that is in link.why by now. -EPIPE: what came before still
 * arrives. -EPROTO: nothing does. */
void mst_verbs_link_end(struct mst_verbs_link *l, int error);
/* Ends it because a request was refused, with that errno. */
void mst_verbs_link_break(struct mst_verbs_rail *r, int error);

/* ---- reason.c ---- */

/* A failed completion: fills link.why unless a reason is there already. Return: -EPIPE, -EPROTO. */
int mst_verbs_reason_completion(struct mst_verbs_rail *r, const struct ibv_wc *wc);
/* The device of this end is no more. */
void mst_verbs_reason_removed(struct mst_verbs_rail *r);
/* An event of the connection manager that ends a link that was up. */
void mst_verbs_reason_gone(struct mst_verbs_rail *r, const struct rdma_cm_event *event);
/* An event that ends an attempt to dial: fills link->error and link.why, unless a reason is there
 * already. Of a link that is not being dialled it says nothing. */
void mst_verbs_reason_dial(struct mst_verbs_rail *r, const struct rdma_cm_event *event);
/* An attempt for which nothing has come back for @waited_ns, at the step that r->cm tells. Return:
 * @error. */
int mst_verbs_reason_silent(const struct mst_verbs_rail *r, int error, uint64_t waited_ns,
			    struct mst_reason *why);

/* ---- cm.c: the connection manager ---- */

/* A channel that does not block. 0, or an error with a sentence. */
int mst_verbs_cm_open(struct rdma_event_channel **out, struct mst_reason *why);
/* Takes in all events of the net's links. */
void mst_verbs_cm_step(struct mst_verbs_net *net);
/* What one event means for the rail it is of. */
void mst_verbs_cm_event(struct mst_verbs_rail *r, struct rdma_cm_event *event);

/* ---- net.c, listener.c, dial.c ---- */

struct mst_verbs_net {
	struct mst_net net;
	struct mst_net_cfg cfg;
	struct mst_spin spin;
	struct mst_fabric fabric;
	struct mst_verbs_memory published;
	struct mst_region versions; /* the same, as what it is sent from */
	struct rdma_event_channel *cm;
	int epoll;      /* completion channels, asynchronous events, the connection manager, and */
	int notify_fd;  /* an eventfd that wake() rings */
	bool inherited; /* by fork(): what the kernel has of it is the parent's */
	_Atomic bool woken, asleep;
	uint32_t polls;
	uint64_t listened_ns;
	struct mst_verbs_device device[MST_RAILS_MAX];
	uint32_t device_count;
	uint32_t first; /* link that the next poll begins with */
	uint32_t link_count;
	struct mst_verbs_link *links[]; /* cfg.links_max */
};

int mst_verbs_attach(struct mst_net *net, struct mst_link *link, struct mst_reason *why);
/* The device is no more: every link over it has ended. */
void mst_verbs_net_lose(struct mst_verbs_net *net, struct mst_verbs_device *d);
int mst_verbs_watch(const struct mst_verbs_net *net, int fd);
int mst_verbs_reaches(const char *address, struct mst_reason *why);
int mst_verbs_dial(struct mst_net *net, const struct mst_dial *dial, struct mst_link **out,
		   struct mst_reason *why);

extern const struct mst_link_listener_ops mst_verbs_listener;

#endif
