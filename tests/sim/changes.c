/* SPDX-License-Identifier: MIT */
/* The policies that an operator asks for in a job that outlives its servers: which of them a later
 * generation has to begin under. Each is another one than all others of the world. */
#include <inttypes.h>

#include "server/core/policy/rule.h"
#include "tests/sim/observer_state.h"
#include "tests/sim/world.h"

#define NOBODY_ASKED UINT32_MAX

static bool is_same(const struct mst_rule *a, const struct mst_rule *b)
{
	return a->quorum == b->quorum && a->window == b->window && a->preempt == b->preempt;
}

/* Return: how many have been asked for when this one was; 0: it is that of the command line. */
static uint32_t number_of(const struct mst_rule *rule)
{
	const struct obs_changes *c = &obs.changes;

	for (uint32_t i = 0; i < c->count; i++) {
		if (is_same(&c->rule[i], rule))
			return i + 1;
	}
	return is_same(&obs.plan->rule, rule) ? 0 : NOBODY_ASKED;
}

void obs_changes_asked(const struct mst_rule *rule)
{
	if (obs.started && obs.plan->generations.wanted && number_of(rule) == NOBODY_ASKED)
		obs.changes.rule[obs.changes.count++] = *rule;
}

void obs_policy_told(const struct obs_worker *w, const char *policy)
{
	struct mst_reason why;
	struct mst_rule rule;

	if (!obs.plan->generations.wanted)
		return;
	int rc = mst_rule_parse(policy, &rule, &why);
	uint32_t number = rc == 0 ? number_of(&rule) : NOBODY_ASKED;
	if (number == NOBODY_ASKED)
		obs_violated("rank %" PRIu32 " is told of %s, which nobody has asked for", w->rank,
			     policy);
	else if (obs.started && number < obs.changes.begun)
		obs_violated("rank %" PRIu32 " is told of change %" PRIu32
			     " of the policy, and the generation has begun under change %" PRIu32,
			     w->rank, number, obs.changes.begun);
	else
		obs.changes.known[w->rank] = number;
}

/* One of two workers that claim something knows so many; of more, all but one. What one alone has
 * been told may be lost with the servers. */
static uint32_t known_to_most(void)
{
	uint32_t least = UINT32_MAX, second = UINT32_MAX, most = 0, claims = 0;

	for (uint32_t rank = 0; rank < obs.plan->workers; rank++) {
		if (!obs_claims(rank))
			continue;
		uint32_t known = obs.changes.known[rank];
		claims++;
		most = known > most ? known : most;
		if (known < least) {
			second = least;
			least = known;
		} else if (known < second) {
			second = known;
		}
	}
	return claims < 3 ? most : second;
}

void obs_changes_start(void)
{
	if (!obs.plan->generations.wanted)
		return;
	uint32_t number = number_of(&obs.rule), known = known_to_most();
	if (number == NOBODY_ASKED)
		obs_violated("generation %" PRIu32 " begins under a policy that nobody has asked "
			     "for",
			     obs.losses + 1);
	else if (number < known)
		obs_violated("generation %" PRIu32 " begins under change %" PRIu32
			     " of the policy, and the workers know change %" PRIu32,
			     obs.losses + 1, number, known);
	obs.changes.begun = number;
	sim_say("  generation %" PRIu32 " begins under change %" PRIu32 " of %" PRIu32,
		obs.losses + 1, number, obs.changes.count);
}
