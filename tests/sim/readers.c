/* SPDX-License-Identifier: MIT */
/* What holds the buffers of versions: workers that read in place, copies that shards make for near
 * workers, and copies that are sent to far ones. So it is known for what a commit or an answer may
 * wait (PROTOCOL 7), typed once more. Who is far is seen of links, and not asked of the ledger. */
#include <inttypes.h>

#include "tests/sim/observer_state.h"

void obs_linked(uint32_t rank, bool far)
{
	obs.far[rank] = far;
}

static void let_go_of_copy(struct obs_session *s)
{
	s->copies = 0;
	s->copied = 0;
}

void obs_readers_ask(struct obs_session *s)
{
	s->asks = true;
	let_go_of_copy(s);
}

/* From now on near workers are copied to, if it is far. */
static void linked(struct obs_session *s)
{
	s->far = obs.far[s->rank];
}

static void sent(struct obs_session *s, uint32_t shard, uint64_t number)
{
	if (s->copies == 0 || number != s->copies)
		return;
	s->copied |= 1u << shard;
	if (s->copied == (1u << obs.plan->servers) - 1)
		let_go_of_copy(s);
}

void obs_readers_event(struct obs_session *s, const struct mst_ledger_event *ev)
{
	if (ev->kind == MST_EV_LINKED && ev->shard == MST_SHARD_LEAD)
		linked(s);
	else if (ev->kind == MST_EV_ANSWERED)
		sent(s, ev->answered.shard, ev->answered.number);
}

static bool anybody_is_far(void)
{
	for (const struct obs_session *s = obs.sessions; s != NULL; s = s->next) {
		if (s->live && s->far)
			return true;
	}
	return false;
}

void obs_readers_answered(struct obs_session *s, const struct mst_decision *d)
{
	let_go_of_copy(s);
	if (d->answer.where == MST_WHERE_KEEP)
		return;
	s->reads = 0;
	if (d->answer.where == MST_WHERE_COPIED)
		s->copies = d->answer.number;
	if (d->answer.where != MST_WHERE_IN_PLACE)
		return;
	s->reads = d->answer.version + 1;
	if (anybody_is_far())
		obs_violated("rank %" PRIu32 " reads version %" PRIu64
			     " in place, though a worker is far",
			     s->rank, d->answer.version);
}

bool obs_shards_copy(void)
{
	for (const struct obs_session *s = obs.sessions; s != NULL; s = s->next) {
		if (s->live && !s->far && s->copies != 0)
			return true;
	}
	return false;
}

/* A worker that asks with an old version has let go of it. */
static bool holds_for_long(const struct obs_session *s)
{
	bool reads = s->reads != 0 && !(s->asks && s->reads != obs.commits + 1);

	return s->live && (reads || (s->far && s->copies != 0));
}

bool obs_may_lack_room(const struct obs_session *of)
{
	for (const struct obs_session *s = obs.sessions; s != NULL; s = s->next) {
		if (s != of && of->far && holds_for_long(s))
			return true;
	}
	return false;
}
