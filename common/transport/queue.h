/* SPDX-License-Identifier: MIT */
/*
 * Puts on their way over a network whose peers do not map each other's memory: what such networks
 * have in common. A network brings the writes of one rail (struct mst_queue_ops), and tells which
 * of them have completed and which immediates have come; the queue decides what is written where,
 * in which order, and when.
 *
 * Large puts are cut into messages, of a size that the network sets, and dealt over the rails. The
 * peer need not know the size. A notifying put ends with one immediate on every rail, and has
 * arrived when all rails have brought it. A rail delivers in order, so that what was put before is
 * in memory then. Data is never looked for in memory.
 *
 * Immediates need a receive that the peer has posted, so there are as many as credits. What was
 * polled is counted in the peer's credit word by a plain write: when half of the credits are used
 * up, with the next put if there is one, and in any case when this end comes to rest. It is a
 * monotone counter that guards nothing of this end.
 *
 * Invariant: the writes of one rail complete in order, so a counter says all: `completed` is the
 * number of the last that is known to have completed.
 */
#ifndef MST_TRANSPORT_QUEUE_H
#define MST_TRANSPORT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/transport/transport.h"

#define MST_QUEUE_MESSAGE_MIN ((size_t)8) /* an aligned word is always in one piece */
#define MST_QUEUE_REPORT_EVERY 16u        /* writes, of which one reports its completion */
#define MST_QUEUE_SENDS_MIN 64u           /* what a rail has room for: a few lists at least */

static inline uint32_t mst_queue_pow2_above(uint64_t n)
{
	uint32_t size = 1;

	while (size < n)
		size *= 2;
	return size;
}

/* One write into the peer's inbound region, over one rail. */
struct mst_queue_write {
	uint64_t number; /* of this write on its rail: what mst_queue_completed() is told */
	const uint8_t *src;
	size_t bytes; /* 0: only the immediate */
	size_t offset;
	const struct mst_region *region; /* that the bytes lie in */
	bool notify, report;             /* with an immediate; its completion is to be told */
	uint32_t imm;
};

struct mst_queue;

/* What a network does for its queue. No member is NULL. */
struct mst_queue_ops {
	/* Adds a write to what is composed for a rail, which may be posted on the way. There is
	 * room: no more than the rail's `sends` are ever on their way. */
	void (*write)(struct mst_queue *q, uint32_t rail, const struct mst_queue_write *w);
	/* Hands what is composed to the network. */
	void (*post)(struct mst_queue *q, uint32_t rail);
	/* Takes in what has completed and arrived: mst_queue_completed(), mst_queue_arrived(). May
	 * end the link: mst_queue_end(). */
	void (*gather)(struct mst_queue *q);
};

struct mst_queue_rail {
	uint32_t sends;  /* that may be on their way */
	uint32_t silent; /* since the last that reports */
	uint64_t posted, completed;
	/* Immediates that have arrived, in order. One rail may be ahead of the others. Head and
	 * tail are counters, not indices. */
	uint32_t *imm;
	uint32_t imm_mask, imm_head, imm_tail;
};

struct mst_queue_entry {
	const uint8_t *src;
	size_t offset, bytes;
	size_t done; /* bytes that are posted */
	uint32_t imm;
	bool notify, signal;
	bool every_rail; /* a word, of which each rail brings one */
	bool lent;       /* by the caller: the region is given back when this has completed */
	struct mst_region *region;
	uint64_t cookie;
};

/* A put that is posted and whose end is to be told, or whose source is to be given back. */
struct mst_queue_pending {
	uint64_t cookie;
	bool signal;
	struct mst_region *lent;       /* NULL: nothing is */
	uint64_t until[MST_RAILS_MAX]; /* completed on each rail; 0: it has none of it */
};

/* How far the link is whose queue it is. */
enum mst_queue_state {
	MST_QUEUE_IDLE,   /* attached to no net: not yet, or no more */
	MST_QUEUE_LIVE,   /* attached */
	MST_QUEUE_ENDING, /* it has ended; poll() has not said so yet */
	MST_QUEUE_LOST,   /* it has */
};

struct mst_queue {
	const struct mst_queue_ops *ops;
	struct mst_link *link;
	/* What is composed in, and what the net publishes (base NULL: nothing). */
	struct mst_region *outbound, *published;
	size_t own_bytes, peer_bytes; /* of this end's inbound region, and of the peer's */
	/* A put is cut at multiples of this in the peer's inbound region, into pieces of at most so
	 * many bytes: a power of two, MST_QUEUE_MESSAGE_MIN or more. */
	size_t message;
	uint32_t in_credits, out_credits;
	/* Credit words: what the peer writes here, what is composed for it, and where in its
	 * inbound region that goes. */
	_Atomic uint64_t *in_word, *out_word;
	size_t word_at;
	size_t cut[2]; /* no piece goes across these places of the peer's memory; 0: none */
	bool ordered;  /* plain writes of a rail are in the peer's memory in their order */
	bool rides;    /* with a put the credit word costs next to nothing: each brings it along */
	bool open;     /* it is known on all rails where the peer's inbound region is */

	enum mst_queue_state state; /* the network sets IDLE and LIVE, the queue what follows */
	int error;                  /* what has ended it */
	bool torn;     /* the rails did not agree on what has arrived: the peer breaks the rules */
	uint32_t idle; /* polls in a row that found nothing */

	uint32_t rail_count;
	struct mst_queue_rail rail[MST_RAILS_MAX];

	struct mst_queue_entry *entry; /* entry[i & mask]; head and tail are counters */
	uint32_t mask, head, tail;
	struct mst_queue_pending *pending;
	uint32_t pending_mask, pending_head, pending_tail;
	uint64_t notified;     /* notifying puts taken */
	uint64_t returned;     /* of those, polled by the peer, as it says */
	uint64_t polled, told; /* immediates of the peer; told: by the credit word */
	uint64_t told_twice;   /* credits, as of the last time that this end came to rest */
	bool owing;            /* credits are to be returned, however few */
	bool dirty;            /* there may be something to post */
};

/* What follows from the lanes of a link: credits both ways, and the bytes of inbound regions. */
void mst_queue_set_lanes(struct mst_queue *q, const struct mst_lanes *lanes, bool connector);
/* Bytes of the outbound region of a link's end. @max: outbound_max of its net. */
size_t mst_queue_outbound(const struct mst_lanes *lanes, bool connector, size_t max);
/* The transport's view(), of a link whose regions are shared memory. Nothing of the peer's is
 * mapped here: MST_VIEW_SHARED is -EINVAL. */
int mst_queue_view(const struct mst_queue *q, enum mst_view what, size_t offset, size_t bytes,
		   void *at);
/* Before anything is made: how many immediates and writes a rail must have room for is known. */
int mst_queue_rail_init(struct mst_queue *q, uint32_t rail, uint32_t sends);
/* Call it when all rails are set, and the size of a message. Return: 0 or -ENOMEM. */
int mst_queue_init(struct mst_queue *q);
void mst_queue_fini(struct mst_queue *q); /* of zeroed, and half made ones, too */

/* Puts, as the contract in transport.h says. */
int mst_queue_put(struct mst_queue *q, const struct mst_put *put);

/* ---- for the network, whose link it is ---- */

/* The number of a write that the network makes by itself; it counts as posted. */
uint64_t mst_queue_number(struct mst_queue *q, uint32_t rail);
/* All writes of the rail up to @number have completed. */
void mst_queue_completed(struct mst_queue *q, uint32_t rail, uint64_t number);
/* The peer's immediates come on each rail; there are never more than credits. */
void mst_queue_arrived(struct mst_queue *q, uint32_t rail, uint32_t imm);
/* Drops arrivals that have not been polled yet, and all that would come later. */
void mst_queue_forget_arrivals(struct mst_queue *q);
/* All rails have brought one. */
bool mst_queue_has_arrival(const struct mst_queue *q);
/* Takes it. 0; -EPROTO: the rails do not agree on what it is. */
int mst_queue_take_arrival(struct mst_queue *q, uint32_t *imm);

/* Posts what is waiting, as far as there is room. */
void mst_queue_flush(struct mst_queue *q);
/* Tells the peer how many of its immediates have been polled: in any case, or if they are many. */
void mst_queue_return(struct mst_queue *q);
void mst_queue_settle(struct mst_queue *q);
/* Can the end of a put be told? The next one. */
bool mst_queue_has_sent(const struct mst_queue *q);
bool mst_queue_take_sent(struct mst_queue *q, uint64_t *cookie);
/* Is everything that was posted completed? */
bool mst_queue_is_idle(const struct mst_queue *q);
/* Posts a last write on each rail that reports: when it has, all before it have. */
void mst_queue_mark(struct mst_queue *q);

/* ---- queue_events.c: what poll() tells of the link ----
 *
 * A network's poll of one link takes in what there is, then calls mst_queue_take_events(), frees
 * what arrivals took up, such as receives, and calls mst_queue_finish_poll(). */

/* The link has ended; nothing of one that is not LIVE. -EPIPE: what has arrived is still told.
 * -EPROTO: it is not. The sentence is in link.why. */
void mst_queue_end(struct mst_queue *q, int error);
/* Has poll() something to tell? */
bool mst_queue_has_events(const struct mst_queue *q);
/* Ends of puts, then arrivals, @max at most; `polled` counts the latter. Return: how many. If
 * `torn` is set then, the network has to end the link. */
int mst_queue_take_events(struct mst_queue *q, struct mst_net_event *ev, int max);
/* @got of @max events have been taken: posts what waits, and gives credits back, now or when
 * nothing has come for a while; or tells that the link is lost, once nothing else of it is to be
 * told. Return: how many events there are now. */
int mst_queue_finish_poll(struct mst_queue *q, struct mst_net_event *ev, int got, int max);

#endif
