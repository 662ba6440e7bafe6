/* SPDX-License-Identifier: MIT */
/*
 * One worker's side of a session: what it has pushed, asked and been told, and so what it may do
 * and what a wait still misses. Pure: no clock, no transport, no allocation while a session lasts.
 * The shell hands in what arrives and sends what comes out.
 *
 * Several servers have a part of the vector each. Number 0 leads: verdicts, records and the job's
 * end are its word alone. A slot is granted, and an answer there, once all of them have said the
 * same.
 *
 * A worker whose session is lost, and may come back, is adrift: it fills and pushes on, and nothing
 * of that is sent. Another session then goes on in its place, with the version that it was given
 * and with the numbers of its tickets.
 *
 * Invariants: at most one ask is out; what a wait has handed out stays readable until the next
 * ask goes out; each ticket gets exactly one verdict, and they are handed out in the order of
 * tickets; a version is seen when every server has it.
 */
#ifndef MST_CLIENT_CORE_WORKER_H
#define MST_CLIENT_CORE_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "client/core/ranges.h"
#include "client/core/sets.h"
#include "client/core/tickets.h"
#include "common/wire/lane.h"
#include "common/wire/part.h"
#include "muster/muster.h"

enum mst_worker_phase {
	MST_WORKER_JOINED,   /* linked; has asked for nothing yet */
	MST_WORKER_STARTING, /* its first ask is out */
	MST_WORKER_WORKING,  /* has had its first outcome */
	MST_WORKER_OVER,     /* the job has ended, and the last outcome has been handed out */
	MST_WORKER_FAILED,   /* the session has ended with an error */
};

enum mst_ask_state {
	MST_ASK_NONE,     /* nothing is asked, nothing undelivered */
	MST_ASK_OUT,      /* the result area is the server's */
	MST_ASK_ANSWERED, /* an answer is here that no outcome has brought yet */
};

enum mst_grant_state {
	MST_GRANT_FREE,  /* granted; to be filled once nothing is being sent from it any more */
	MST_GRANT_SPENT, /* its header or ABANDON is sent; the server's until granted anew */
};

struct mst_worker_slot {
	enum mst_grant_state state;
	uint64_t epoch;
	uint32_t granted;       /* SPENT: by these servers, as a set, */
	uint64_t granted_epoch; /* with this epoch */
	uint64_t ticket;        /* of the push that spent it last */
	uint32_t sends;  /* puts of its data that are on their way, and still read the data */
	uint32_t lent;   /* of these puts, the ones that read memory of the caller's */
	uint64_t lender; /* ticket of the push whose data these are; 0: it has none yet */
	bool posted;     /* while it is filled: there was a put of its data */
	bool passed;     /* SPENT: by a pass */
};

/* The version this worker holds, as its record tells it. */
struct mst_held {
	uint64_t version; /* MST_VERSION_NONE: none yet */
	uint64_t newest;  /* the newest version known to be decided */
	enum mst_where where;
	uint32_t buffer; /* IN_PLACE */
	double weight, lr_scale;
	double samples; /* in all versions up to this one; 0: the server has not said */
	/* What the worker needs of the rule for the step that this version opens. */
	uint32_t window;
	bool until_asked; /* contributions grow until they are asked for */
	bool by_micro;    /* every micro-batch is a contribution */
	struct mst_pace pace;
	uint32_t workers; /* of the job when it was made; 0: not known */
	uint32_t share_count;
	struct muster_share *share; /* in the ring of sets */
	bool taken; /* it came with the state of another worker: there is no record of it */
	/* It is of an earlier session: these servers do not know its set, and tell of it no more
	 * than the rule of the step that it opens. */
	bool earlier;
};

struct mst_worker_cfg {
	uint64_t elems;
	uint32_t slots, workers, buffers;
	uint32_t servers;
	bool norms;     /* the norm of each contribution is told */
	bool withholds; /* no verdict says counted before the version is given that it counts in */
	bool in_order;  /* workers own: every version is handed out, one by one */
	uint64_t first; /* the version that the job began with */
	uint32_t history; /* records of so many versions that it was given are kept; 0: one */
};

struct mst_worker {
	struct mst_worker_cfg cfg;
	enum mst_worker_phase phase;
	int error; /* FAILED: negative errno */

	struct mst_worker_slot slot[MST_SLOTS_MAX];
	int filling;              /* the slot of the contribution at hand; -1: there is none */
	struct mst_ranges ranges; /* of the contribution being filled */
	uint64_t tag;             /* likewise */
	double squares;           /* likewise: of its data that have been handed over, if told */
	struct mst_tickets tickets;
	uint64_t base;    /* the last ticket of earlier sessions: headers are numbered from there */
	uint64_t headers; /* number of the last header sent: what LEAVE tells */
	uint64_t asking;  /* newest ticket that was asked with or after: waited for until judged */
	bool abandoned;   /* an abandoned contribution is still to be told of */
	uint64_t refused; /* contributions that were not finite, since the last that counted */

	bool adrift;   /* the session is lost, and the worker may come back */
	bool returned; /* it has come back, and has neither answer nor state in this session */
	bool afresh;   /* what that answer has brought no outcome has had, whatever its number */

	enum mst_ask_state ask;
	uint64_t ask_number;
	uint32_t answered;             /* OUT: by these servers, as a set, */
	struct mst_lane_answer answer; /* with this, */
	const void *record;            /* and this of number 0, where it put it */
	bool renew; /* asked for while an ask was out, or its answer in hand: ask again */

	struct mst_held held;
	struct mst_sets sets; /* also of versions before */
	uint64_t given;       /* version of the last outcome; MST_VERSION_NONE: none yet */
	bool more;            /* that outcome left verdicts behind, which need no new ask */
	bool finishing;       /* this worker has asked for the end of the job: wait for it */
	bool cut;      /* a link is lost: of what it has been lent nothing comes back by itself */
	uint64_t last; /* the job has ended with this version; MST_VERSION_NONE: it has not */
	/* Workers own: the job has ended, and versions that this worker lacks are gone, so that
	 * the one that it holds is its last. */
	bool incomplete;
};

/* @cfg: 1 to MST_SERVERS_MAX servers. 0 or -ENOMEM. */
int mst_worker_init(struct mst_worker *w, const struct mst_worker_cfg *cfg);
void mst_worker_fini(struct mst_worker *w); /* of a zeroed struct too */

/* The session is lost, and the worker may come back: from now on nothing is sent, and nothing that
 * still arrives is looked at. Not after its end. */
void mst_worker_go_adrift(struct mst_worker *w);
/* Its links have been freed, and there may be no others for a while: nothing can be filled, and the
 * version of its last outcome lies nowhere. What was being filled is given up, and the next outcome
 * says so. */
void mst_worker_unlink(struct mst_worker *w);
/* After mst_worker_unlink(): another session, with a vector of the same length, takes the place of
 * the one that is lost. The worker is JOINED again, with all slots granted, and has the version of
 * its last outcome. Before the next outcome each open ticket needs its verdict:
 * mst_tickets_counted(), mst_tickets_cancel_rest(). If the user has asked for the end of the job
 * (`finishing`), the servers of this session have still to be told. Return: 0; -ENOMEM, and nothing
 * has changed. */
int mst_worker_go_on(struct mst_worker *w, const struct mst_worker_cfg *cfg);
/* Has there been a first outcome, in this session or an earlier one? */
static inline bool mst_worker_has_begun(const struct mst_worker *w)
{
	return w->given != MST_VERSION_NONE;
}

/* ---- what the user does ---- */

/* JOINED: the START message is the first ask. */
void mst_worker_start(struct mst_worker *w);

/* The slot to fill; fixes the tag if nothing is being filled yet. -EAGAIN: all are in flight, or it
 * is too early or too late. */
int mst_worker_fill(struct mst_worker *w);

/* A range of the contribution being filled has been handed over. As mst_ranges_add(). */
int mst_worker_range(struct mst_worker *w, uint64_t first, uint64_t count);

/* The sum of the squares of a range that is handed over, for the norm; it is finite. */
void mst_worker_squares(struct mst_worker *w, double squares);

/* What is still to be handed over of the contribution being filled before its header goes, from
 * element @from on. False: nothing is left; or it is outside the window, the job has ended, or the
 * worker is adrift, and its data stay here. */
bool mst_worker_rest(const struct mst_worker *w, uint64_t from, struct mst_range *out);

/* A put of data of the contribution being filled is on its way, until mst_worker_sent(). */
void mst_worker_posted(struct mst_worker *w);
/* The put that was posted last reads memory of the caller's, which is lent meanwhile. */
void mst_worker_lent(struct mst_worker *w);
/* A put of data of this slot has been sent; any phase. */
void mst_worker_sent(struct mst_worker *w, uint32_t slot);
/* The put that has been sent gives the caller's memory back. */
void mst_worker_returned(struct mst_worker *w, uint32_t slot);
/* A link has been lost; any phase. */
void mst_worker_cut(struct mst_worker *w);
/* Has all memory been given back that was lent to the push with this @ticket? 0: to any push. */
bool mst_worker_released(const struct mst_worker *w, uint64_t ticket);

/* Hands the contribution in. 1: *header is to be sent; 0: the job has ended, or the worker is
 * adrift, and nothing is; -EAGAIN. The weight must have been checked. @ticket: of this push. */
int mst_worker_push(struct mst_worker *w, const struct muster_contribution *c,
		    struct mst_lane_header *header, uint64_t *ticket);

/* Hands in nothing: the servers have asked for what is finished, and nothing is. Ranges that were
 * handed over of the contribution being filled are given up. A pass never asks: the caller may read
 * the result until it waits. Return: true: *header is to be sent; false: no slot is free, the job
 * has ended, or the worker is adrift. */
bool mst_worker_pass(struct mst_worker *w, struct mst_lane_header *header);

/* Gives the contribution being filled up. Return: the slot that ABANDON is to be sent for, because
 * data of it have been; -1: the server knows nothing of it, nor need it. */
int mst_worker_abandon(struct mst_worker *w);

/* True: *ask is to be sent. False: what is out or in hand will do. */
bool mst_worker_pull(struct mst_worker *w, struct mst_lane_ask *ask);

/* ---- what arrives; -EPROTO: a server that keeps to the protocol would not have sent it ---- */

/* Each with the number of the server that says it. */
int mst_worker_granted(struct mst_worker *w, uint32_t server, uint32_t slot, uint64_t epoch);
int mst_worker_judged(struct mst_worker *w, uint32_t server, uint32_t slot,
		      const struct mst_lane_verdict *v);
/* @record: of server 0, in memory that it can write; stays until all have answered, and is copied
 * once then. Others have none. */
int mst_worker_answered(struct mst_worker *w, uint32_t server, const struct mst_lane_answer *a,
			const void *record);
/* Has this server answered the ask that is out? */
static inline bool mst_worker_has_part(const struct mst_worker *w, uint32_t server)
{
	return w->answered >> server & 1u;
}
/* The job has ended well, with version @last, as server 0 says. */
int mst_worker_ended(struct mst_worker *w, uint64_t last);
/* Versions that this worker lacks are gone, so that the ask that is out has no answer. It has the
 * state of another worker now, of @version, and goes on from there. -EPROTO: no ask is out, or the
 * worker has a newer version, and not from an earlier session. */
int mst_worker_took(struct mst_worker *w, uint64_t version);
/* The session has ended with an error. After the last outcome nothing is an error any more. */
void mst_worker_fail(struct mst_worker *w, int error);

/* ---- waiting ---- */

/* What a wait still misses, as a set; 0: an outcome is ready. */
enum mst_misses {
	MST_MISSES_ANSWER = 1,
	MST_MISSES_VERDICT = 2,
	MST_MISSES_SLOT = 4,
	MST_MISSES_END = 8,
	MST_MISSES_SOURCE = 16, /* memory that was lent to pushes up to the last ask */
};
unsigned mst_worker_misses(const struct mst_worker *w);

/* Does @misses contain something that only a server can say? If not, there is nothing to ask
 * for. */
static inline bool mst_misses_words(unsigned misses)
{
	return (misses & ~(unsigned)MST_MISSES_SOURCE) != 0;
}

static inline bool mst_worker_misses_words(const struct mst_worker *w)
{
	return mst_misses_words(mst_worker_misses(w));
}

/* The record of a version that an outcome has brought, one of the last cfg.history; NULL: there is
 * none, or this worker had that version with the state of another. */
const struct mst_held *mst_worker_set_of(const struct mst_worker *w, uint64_t version);

/* Is something on its way, or in hand, that no outcome has brought yet? */
bool mst_worker_awaits(const struct mst_worker *w);

/* Must a wait ask now? True: *ask is to be sent. */
bool mst_worker_wait_asks(struct mst_worker *w, struct mst_lane_ask *ask);

/* Will the next outcome bring another version than the last? */
static inline bool mst_worker_is_fresh(const struct mst_worker *w)
{
	return w->given != w->held.version || w->afresh;
}

/* The next outcome, ready as mst_worker_misses() says; `result`, `generation` and `size` are left
 * to the shell. 1: more are ready. In OVER: the last one again. */
int mst_worker_take(struct mst_worker *w, struct muster_outcome *out);

/* The version that what is being computed now is or will be tagged with. */
static inline uint64_t mst_worker_computes_on(const struct mst_worker *w)
{
	return w->filling >= 0 ? w->tag : w->given;
}

#endif
