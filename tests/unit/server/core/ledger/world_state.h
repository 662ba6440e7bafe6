/* SPDX-License-Identifier: MIT */
/*
 * What the files of a simulated world share: its state, what it draws, and how its workers speak.
 * Private to ledger_world.c and world_worker.c.
 */
#ifndef MST_TESTS_UNIT_SERVER_CORE_LEDGER_WORLD_STATE_H
#define MST_TESTS_UNIT_SERVER_CORE_LEDGER_WORLD_STATE_H

#include <string.h>

#include "common/base/rand.h"
#include "tests/unit/server/core/ledger/ledger_channel.h"
#include "tests/unit/server/core/ledger/ledger_world.h"

#define CHANNELS_MAX 5u /* control, and shards */

enum world_worker_state {
	PEER_AWAY,
	PEER_REQUESTING, /* its JOIN is on the way */
	PEER_IN,
	PEER_GOING, /* it has said that it leaves, or is dead: only an eviction is still to come */
};

struct world_worker {
	enum world_worker_state state;
	struct mst_identity who;
	bool silent; /* no heartbeat, no action */
	bool far;
	bool asking, running;
	bool kept; /* it has pushed without asking since it asked last */
	uint64_t asks, have, seq;
	uint64_t judged; /* the newest ticket with a verdict, which it has heard or will hear */
	uint64_t heard;  /* so far */
	uint64_t epoch[MST_SLOTS_MAX];
	bool granted[MST_SLOTS_MAX];
	uint64_t beat_ns;
	uint64_t busy_ns; /* it computes until then */
	uint64_t wanted;  /* what is finished of a contribution on this version is asked for */
	struct channel channel[CHANNELS_MAX];
};

struct ledger_world {
	struct ledger_world_cfg cfg;
	struct mst_rand rand;
	uint64_t now_ns, ticked_ns;
	uint64_t heard_ns, deaf_until; /* all was read then; nothing is, until then */
	uint64_t newest;
	bool calm, born, wronged;
	/* A few at 1. Among many, time passes more slowly, so that all can be heard within a lease,
	 * and each has fewer adventures, so that not all time is spent on them. */
	uint32_t many;
	uint32_t turn; /* until a job of many is born they act in turn, or that would not happen */
	struct world_worker *worker;
	uint32_t worker_count; /* one more than there are ranks */
	struct channel stray;  /* responses to sessions that have ended */
	struct channel done;   /* what shards say of their work: settled, spoilt */
	struct channel slow;   /* start states, and answers being copied, that take their time */
};

static inline uint32_t world_below(struct ledger_world *w, uint32_t bound)
{
	return (uint32_t)mst_rand_below(&w->rand, bound);
}

/* Once in so many times. */
static inline bool world_rarely(struct ledger_world *w, uint32_t times)
{
	return world_below(w, times) == 0;
}

/* Nothing unusual happens now. */
static inline bool world_is_spared(struct ledger_world *w)
{
	if (w->calm || w->many == 1)
		return w->calm;
	return !world_rarely(w, w->born ? 1 + w->many / 8 : 8 * w->many);
}

static inline struct channel *world_control(struct world_worker *p)
{
	return &p->channel[0];
}

static inline struct mst_ledger_event world_event(const struct world_worker *p,
						  enum mst_ledger_event_kind kind)
{
	struct mst_ledger_event ev;

	memset(&ev, 0, sizeof(ev));
	ev.kind = kind;
	ev.who = p->who;
	return ev;
}

#endif
