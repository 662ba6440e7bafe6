/* SPDX-License-Identifier: MIT */
/*
 * Simulated workers around a ledger: they join, push, pull, abandon, hand in what they are asked
 * for, pass, compute for long, rest, leave, fall silent, die and come back, mostly by the rules.
 * What they say travels on a channel of its own per worker and shard, in order there and in any
 * order among them, so that every interleaving a real server can see may happen. All of it follows
 * from the seed and the decisions the world is told.
 */
#ifndef MST_TESTS_UNIT_SERVER_CORE_LEDGER_WORLD_H
#define MST_TESTS_UNIT_SERVER_CORE_LEDGER_WORLD_H

#include "server/core/ledger/ledger.h"

struct ledger_world_cfg {
	struct mst_ledger_cfg ledger;
	uint64_t seed;
	bool mischief; /* now and then somebody breaks the protocol */
	bool keeps;    /* many push without asking, and ask by themselves right after it */
	bool lags;   /* headers come late to all servers but the leader, and many have an old tag */
	bool passes; /* now and then somebody has nothing to give */
	bool sleeps; /* now and then the server does not run for a while */
	bool rests;  /* now and then somebody is told to rest, or to return */
	bool dawdles; /* most batches take long, unless what is finished of them is asked for */
	bool damages; /* now and then data are not what was pushed */
	bool spoils;  /* now and then a version is not finite */
	bool mixes;   /* some sessions are far: what they get is sent, mostly slowly */
	/* Other rules the job may be given on the way. */
	const struct mst_rule *rule;
	uint32_t rule_count;
};

struct ledger_world;

struct ledger_world *world_new(const struct ledger_world_cfg *cfg);
void world_free(struct ledger_world *w);

/* What happens next. Return: false if only time passes. */
bool world_next(struct ledger_world *w, struct mst_ledger_event *out);
uint64_t world_now(const struct ledger_world *w);
/* Is it time for a tick after this? */
bool world_ticks(struct ledger_world *w);
/* Return: false: a worker loses its lease that has never missed a heartbeat. */
bool world_told(struct ledger_world *w, const struct mst_decision *d);
/* From now on nobody dies, leaves or breaks anything; who is away comes back. */
void world_calm(struct ledger_world *w);

#endif
