/* SPDX-License-Identifier: MIT */
/* The line of versions of each generation: which of them has made which version. Two generations
 * may have made the same number, and a worker may have one that is on no line any more. */
#include <inttypes.h>

#include "common/base/assert.h"
#include "tests/sim/observer_state.h"
#include "tests/sim/world.h"

static struct obs_line *line_now(void)
{
	return obs.line[obs.losses];
}

void obs_line_begins(const struct obs_had *from, uint64_t version)
{
	struct obs_line *line = sim_alloc(sizeof(*line));

	for (uint64_t v = 1; from != NULL && v <= version; v++) {
		line->maker[v] = obs.line[from->generation]->maker[v];
		line->samples[v] = obs.line[from->generation]->samples[v];
	}
	line->newest = version;
	MST_ASSERT(obs.losses < EXPECT_GENERATIONS_MAX);
	obs.line[obs.losses] = line;
}

void obs_line_grows(void)
{
	struct obs_line *line = line_now();

	line->newest = obs.commits;
	line->maker[obs.commits] = obs.losses + 1;
	line->samples[obs.commits] = obs.samples;
}

/* All that the leader needs may lie in its slots already when its ranks go to another one. Without
 * those ranks it makes nothing more. */
void obs_commits_beside(uint32_t generation, const struct mst_record *record)
{
	struct obs_line *line = obs.line[generation];

	sim_say("  version %" PRIu64 " is made beside generation %" PRIu32, record->version,
		obs.losses + 1);
	obs.beside += obs.started;
	if (line == NULL || record->version != line->newest + 1 || obs.beside > 1)
		obs_violated("generation %" PRIu32 " makes version %" PRIu64
			     ", and generation %" PRIu32 " has started",
			     generation + 1, record->version, obs.losses + 1);
	if (line == NULL)
		return;
	line->newest = record->version;
	line->maker[record->version] = generation + 1;
	line->samples[record->version] = record->total;
}

uint32_t obs_generation(void)
{
	return obs.losses;
}

/* ---- what is on a line ---- */

bool obs_is_apart(const struct obs_worker *w)
{
	const struct obs_session *s = obs_find(w->rank, w->incarnation);

	bool later = obs.started || obs.plan->generations.apart;

	return later && s != NULL && s->born != obs.losses;
}

bool obs_is_void(const struct expect_item *item)
{
	const struct obs_line *line = line_now();

	if (!item->counted || item->of == obs.losses || line == NULL)
		return false;
	return item->version > line->newest || line->maker[item->version] != item->of + 1;
}

/* The last version up to @version that both lines have. */
static uint64_t shared(const struct obs_line *a, const struct obs_line *b, uint64_t version)
{
	uint64_t last = version < b->newest ? version : b->newest;

	while (last > 0 && a->maker[last] != b->maker[last])
		last--;
	return last;
}

void obs_line_moves(struct obs_worker *w)
{
	const struct obs_session *s = obs_find(w->rank, w->incarnation);

	if (s == NULL || s->born == w->last_of)
		return;
	for (uint32_t g = w->last_of + 1; g < s->born; g++)
		w->unsure |= obs.line[g] != NULL;
	if (w->last_version != UINT64_MAX) {
		uint64_t last = shared(obs.line[w->last_of], obs.line[s->born], w->last_version);
		w->voided += w->last_version - last;
		w->last_version = last;
	}
	w->last_of = s->born;
}

/* All are told the same number, and a later generation has a higher one. */
void obs_line_numbered(const struct obs_worker *w, uint64_t number)
{
	const struct obs_session *s = obs_find(w->rank, w->incarnation);
	struct obs_line *line = s != NULL ? obs.line[s->born] : NULL;

	if (line == NULL)
		return;
	if (line->number == 0)
		line->number = number;
	for (uint32_t g = 0; g < EXPECT_GENERATIONS_MAX; g++) {
		uint64_t other = obs.line[g] != NULL ? obs.line[g]->number : 0;
		if (other != 0 && (g < s->born) != (other < number) && g != s->born)
			obs_violated("the generation %" PRIu32 " has the number %" PRIu64
				     ", and %" PRIu32 " has %" PRIu64,
				     s->born + 1, number, g + 1, other);
	}
	if (number != line->number)
		obs_violated("rank %" PRIu32 " is told of generation %" PRIu64
			     ", and others of %" PRIu64,
			     w->rank, number, line->number);
}

/* A worker can know little of generations that came and went while it was away. */
void obs_line_withdrawn(struct obs_worker *w, uint64_t withdrawn)
{
	if (withdrawn > w->voided || (withdrawn < w->voided && !w->unsure))
		obs_violated("rank %" PRIu32 " is told that %" PRIu64
			     " of its versions are void, %" PRIu64 " are",
			     w->rank, withdrawn, w->voided);
	if (withdrawn > 0)
		sim_say("%" PRIu64 " versions of rank %" PRIu32 " are withdrawn", withdrawn,
			w->rank);
	w->voided = 0;
	w->unsure = false;
}

/* ---- what is claimed ---- */

static bool starts(uint32_t rank)
{
	for (const struct obs_session *s = obs.sessions; s != NULL; s = s->next) {
		if (s->rank == rank && s->live && s->started)
			return true;
	}
	return false;
}

bool obs_claims(uint32_t rank)
{
	return obs.had[rank].any && starts(rank);
}

static bool is_newer(const struct obs_had *a, const struct obs_had *b)
{
	return a->generation != b->generation ? a->generation > b->generation
					      : a->version > b->version;
}

const struct obs_had *obs_newest_had(void)
{
	const struct obs_had *newest = NULL;

	for (uint32_t rank = 0; rank < obs.plan->workers; rank++) {
		if (obs_claims(rank) && (newest == NULL || is_newer(&obs.had[rank], newest)))
			newest = &obs.had[rank];
	}
	return newest;
}
