/* SPDX-License-Identifier: MIT */
/*
 * A member is all that the ledger knows of one rank. The rank stays for the whole job; its sessions
 * come and go, and each session has an incarnation of its own. Pure bookkeeping: the ledger decides
 * what follows from it.
 */
#ifndef MST_SERVER_CORE_LEDGER_MEMBER_H
#define MST_SERVER_CORE_LEDGER_MEMBER_H

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire/lane.h"
#include "muster/muster.h"
#include "server/core/ledger/decision.h"
#include "server/core/ledger/verdicts.h"

enum mst_member_state {
	MST_MEMBER_ABSENT, /* no session */
	MST_MEMBER_JOINED, /* admitted; links and start are still to come */
	/* every shard is linked, and the worker has called start: it takes part */
	MST_MEMBER_STARTED,
	MST_MEMBER_LEAVING, /* the worker has left; its last headers are still to be judged */
};

/* What the answer to an ask waits for. */
enum mst_wait {
	MST_WAIT_ITSELF, /* a change of the member or of the job's phase; or there is no ask */
	MST_WAIT_TRIAL,  /* nothing that is known: the ask is to be tried */
	MST_WAIT_COMMIT, /* the commit of the open step */
	MST_WAIT_LATE,   /* the same, for the worker's contribution was late; see state/late.h */
	MST_WAIT_CLOCK,  /* the slowest members: the clock bound holds the ask back */
	MST_WAIT_ROOM,   /* two version buffers that nobody holds for long; of far members alone */
	MST_WAITS
};

/* How a member comes back that lacks versions which are gone (state/behind.h). All but UP_TO_DATE
 * are left out of the steps. */
enum mst_behind {
	MST_UP_TO_DATE,
	MST_BEHIND_WAITS,   /* for a state of another worker */
	MST_BEHIND_TAKES,   /* is being sent a state */
	MST_BEHIND_CATCHES, /* has a state, and is given the versions after it */
};

/* What shards have reported of a slot since it was last granted. */
struct mst_pending_header {
	uint32_t full_count; /* shards that have reported the slot full; 0: none */
	uint32_t abandoned_count;
	uint64_t full, abandoned; /* which shards, as sets */
	uint64_t epoch;           /* of the grant */
	uint64_t since_ns;        /* the first shard's report */
	/* as the first shard reported it; all others must report the same */
	struct mst_lane_header header;
	double squares; /* of its data, in what has been reported */
	bool damaged;   /* a shard has not what was pushed */
};

/* Sums over the contributions of the rank to the open step, in the order in which they are judged,
 * which is that of (incarnation, seq). Sums over ranks follow in the order of ranks. So the figures
 * of a version do not depend on who came first (PROTOCOL 5). */
struct mst_step_sums {
	double base; /* of base weights */
	/* The losses, by mst_loss_share(), and the samples of which they are the loss. */
	double loss, loss_samples;
};

/* A cache line: of ten thousand members hardly anything else is in a cache when its event comes. */
#define MST_MEMBER_LINE 64

/* The fields that most events read stand first, in two cache lines. */
struct mst_member {
	alignas(MST_MEMBER_LINE) uint32_t rank;

	/* The session. */
	enum mst_member_state state;
	uint32_t incarnation;
	/* On the roster: the open step waits for the member, or has its contribution. A worker that
	 * joins a running job enters the roster when the step that is open has been committed, and
	 * is not given a version before. */
	bool rostered;
	bool owes;        /* something was counted since the last answer: the clock bound applies */
	bool passed;      /* the rank gives nothing to the open step */
	bool asks;        /* the member has an ask open */
	bool late;        /* the ask came with a contribution that was late */
	bool rests;       /* the job goes on without the member until it returns */
	bool rejected;    /* what was judged last is to be computed again */
	bool recomputes;  /* it has been answered since, and what it computes is waited for */
	bool until_asked; /* what it computes on its version grows until it is asked for */
	bool far;         /* it is linked over a network that does not map memory */
	uint64_t lease_until;
	uint64_t told;   /* seq of the last header that shard MST_SHARD_LEAD has read */
	uint64_t judged; /* seq of the last judged header */

	/* The member's part in the job, and the rank's part in the open step, over all its
	 * incarnations. */
	uint64_t clock;
	double step_samples;
	uint32_t step_count;

	/* The member's ask, and the buffers that are held for it. */
	enum mst_wait waits; /* what the ask waits for; only waits.c writes it */
	struct mst_lane_ask ask;
	uint64_t ask_after; /* the last header that the worker had sent when it asked */
	uint64_t given;     /* the version of the last answer; MST_VERSION_NONE: there was none */
	uint64_t asked_ns; /* since when the ask waits and all headers before it have been judged */
	uint32_t reads;    /* buffer held because the worker reads it in place; MST_BUFFER_NONE */
	uint32_t copies;   /* buffer held because it is being copied; MST_BUFFER_NONE */

	/* The verdicts of this session if it has started or pushed, otherwise those of the last
	 * session that had started or pushed. */
	struct mst_verdicts *verdicts;

	/* By slot. */
	struct mst_pending_header pending[MST_SLOTS_MAX];

	struct mst_step_sums step_sums;

	/* The samples that this session has handed over of the batch at hand, and those of its last
	 * batch that has ended; infinite: none has. */
	double batch_samples, batch_full;

	/* The copy in `copies`. */
	uint64_t copy_number; /* the ask that the copy answers */
	uint64_t copied;      /* which shards have sent all of the copy, as a set */
	uint32_t copy_count;

	/* Buffer held because a gradient on it will be compared with what it moves; or
	 * MST_BUFFER_NONE. */
	uint32_t keeps;

	/* The header for which it was excused when patience was over, or 0, and the newest version
	 * then: if that header is no contribution to the same step, its time is over. */
	uint64_t excused;
	uint64_t excused_in;

	/* How the session begins and ends. */
	uint32_t link_count;
	uint64_t linked; /* which shards, as a set */
	/* which shards will report nothing more, as a set: their links with it are gone */
	uint64_t unlinked;
	bool start_called, offers, stateless, sends_state;
	uint64_t offered;           /* the version of the start state that it offers */
	bool comes_late;            /* the job was running when it joined */
	uint64_t joined_ns;         /* when it did */
	struct mst_claimed claimed; /* what it has of an earlier generation */
	uint64_t leave_seq;

	/* Where workers own: how the session gives and takes states (phases/transfer.h). */
	bool comes_back; /* it gives and takes them */
	bool took;   /* its version came with a state: it has neither its record nor its bytes */
	bool strays; /* its state is not the others': it gives it to nobody, and takes another */
	enum mst_behind behind;
	uint32_t outrun;    /* how many states in a row were of no use to it */
	uint64_t asked_in;  /* the last round in which it was asked for its state */
	uint64_t behind_ns; /* since when it waits, or takes */
};
static_assert(offsetof(struct mst_member, pending) <= 2 * MST_MEMBER_LINE,
	      "most events read two lines of a member");

/* @verdicts must be all zero, and belongs to the member from now on. */
void mst_member_init(struct mst_member *m, uint32_t rank, struct mst_verdicts *verdicts);

static inline bool mst_member_is(const struct mst_member *m, uint32_t incarnation)
{
	return m->state != MST_MEMBER_ABSENT && m->incarnation == incarnation;
}
/* Does the member take part in the job? A worker that has left does until all its headers have been
 * judged. */
static inline bool mst_member_takes_part(const struct mst_member *m)
{
	return m->state == MST_MEMBER_STARTED || m->state == MST_MEMBER_LEAVING;
}
/* Has the worker left, and has all been judged that it announced then? */
static inline bool mst_member_has_left(const struct mst_member *m)
{
	return m->state == MST_MEMBER_LEAVING && m->judged >= m->leave_seq;
}
/* Is there an ask, and has everything been judged that the worker pushed before it? Until then some
 * servers have not reported yet, and it is not known what the ask may be answered with. */
static inline bool mst_member_awaits_answer(const struct mst_member *m)
{
	return m->asks && m->judged >= m->ask_after;
}
/* Does the open step wait for the member? */
static inline bool mst_member_missing(const struct mst_member *m)
{
	return m->rostered && m->step_count == 0 && !m->passed;
}

/* Begins a session with the next incarnation; every slot is granted with epoch 1. */
void mst_member_admit(struct mst_member *m, uint64_t lease_until);
/* Changes the state; asserts that the change is legal. No other function assigns it. */
void mst_member_enter(struct mst_member *m, enum mst_member_state next);
/* Begins the verdicts of this session, when it starts or first pushes: the worker has then been
 * told the verdicts of the session before. */
void mst_member_begin_verdicts(struct mst_member *m);
/* Ends the session. It must not hold a buffer any more. */
void mst_member_end(struct mst_member *m);

/* Notes that the links with @shard are up.
 * Return: true if those with all @shards are. */
bool mst_member_link(struct mst_member *m, uint32_t shard, uint32_t shards);

/* Notes that @shard has reported a slot full, or abandoned.
 * Return: false if the worker has broken the protocol: the report is repeated, differs from what
 * other shards reported, has a seq or an acknowledgement that is impossible, comes to the leader's
 * shard out of order, or says both full and abandoned. */
bool mst_member_report_full(struct mst_member *m, uint32_t shard, uint32_t slots,
			    const struct mst_lane_header *h);
bool mst_member_report_abandoned(struct mst_member *m, uint32_t shard, uint32_t slot,
				 uint64_t epoch);

/* The header that is to be judged next, if all @shards have reported it; NULL: not yet. */
struct mst_pending_header *mst_member_next(struct mst_member *m, uint32_t slots, uint32_t shards);
/* The header with this seq, if at least one shard has reported it; NULL: none has. */
struct mst_pending_header *mst_member_pending(struct mst_member *m, uint32_t slots, uint64_t seq);
/* The last header that all @shards have reported, with all before it: its seq. */
uint64_t mst_member_came(struct mst_member *m, uint32_t slots, uint32_t shards);
/* Will the header that is to be judged next never come, because a shard that has not reported it
 * has lost its link? Over a link all comes in the order in which it was put. So what a shard has
 * not reported when its link is gone never comes. */
bool mst_member_is_cut_off(struct mst_member *m, uint32_t slots);
/* Grants the slot again, with the next epoch; no shard has reported anything of it yet. */
void mst_member_regrant(struct mst_member *m, uint32_t slot);

#endif
