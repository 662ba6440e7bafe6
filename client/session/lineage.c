/* SPDX-License-Identifier: MIT */
#include "client/session/lineage.h"

#include <string.h>

/* The word. */
#define HAS 1u    /* an outcome has been given */
#define FROZEN 2u /* the claim has been taken */
#define PLACE 4u  /* the last outcome is in the second place */
#define START 8u  /* START has been said, or is about to be */

void mst_lineage_init(struct mst_lineage *l, bool in_order)
{
	*l = (struct mst_lineage){ .in_order = in_order };
}

struct mst_workforce mst_lineage_workforce_of(const struct mst_welcome *welcome)
{
	return (struct mst_workforce){ .workers = welcome->workers,
				       .given = welcome->workers_given,
				       .change = welcome->workers_change };
}

void mst_lineage_workforce(struct mst_lineage *l, const struct mst_workforce *told)
{
	if (told->workers > 0 && told->change >= l->workforce.change)
		l->workforce = *told;
}

/* What the worker knows of, when the word is this. */
static void note_seen(const struct mst_lineage *l, uint64_t word, struct mst_returning *out)
{
	bool last = (word & START) != 0;

	out->seen = last ? l->number : l->seen;
	out->seen_id = last ? l->id : l->seen_id;
}

void mst_lineage_session(struct mst_lineage *l, const struct mst_welcome *welcome)
{
	struct mst_workforce told = mst_lineage_workforce_of(welcome);
	struct mst_returning had;

	note_seen(l, atomic_load(&l->word), &had);
	l->seen = had.seen;
	l->seen_id = had.seen_id;
	l->of = welcome->generation;
	l->number = welcome->start_number;
	l->id = welcome->generation.id;
	l->incarnation = welcome->incarnation;
	l->workers = welcome->workers;
	l->record_ranks = welcome->record_ranks;
	mst_lineage_workforce(l, &told);
	(void)atomic_fetch_and(&l->word, ~(uint64_t)(FROZEN | START));
}

bool mst_lineage_start(struct mst_lineage *l)
{
	uint64_t word = atomic_load(&l->word);

	while (!(word & FROZEN) && !atomic_compare_exchange_weak(&l->word, &word, word | START))
		;
	return !(word & FROZEN);
}

void mst_lineage_begins(struct mst_lineage *l, const struct mst_generation *of)
{
	l->of = *of;
}

static const struct mst_returning *last(const struct mst_lineage *l)
{
	uint64_t word = atomic_load(&l->word);

	return word & HAS ? &l->mark[(word & PLACE) != 0] : NULL;
}

static uint64_t remembered(const struct mst_lineage *l, uint64_t version)
{
	const struct mst_lineage_made *cell = &l->made[version % MST_COUNTED_MAX];

	return cell->version == version ? cell->made : 0;
}

/* A generation has made what comes after the version that it began with, and has been told who has
 * made that one, and the one before. What is older the worker knows by itself. */
uint64_t mst_lineage_maker(const struct mst_lineage *l, uint64_t version)
{
	if (l->of.number == 0) /* a start is under way: what is known is of the last generation */
		return remembered(l, version);
	if (version > l->of.began)
		return l->of.id;
	if (version == l->of.began && l->of.made != 0)
		return l->of.made;
	if (version + 1 == l->of.began && l->of.made_before != 0)
		return l->of.made_before;
	return remembered(l, version);
}

void mst_lineage_counted(struct mst_lineage *l, uint64_t version, uint64_t made)
{
	l->made[version % MST_COUNTED_MAX] = (struct mst_lineage_made){ version, made };
}

bool mst_lineage_has_counted(const struct mst_lineage *l, uint64_t version, uint64_t made)
{
	return made != 0 && remembered(l, version) == made;
}

static bool is_made_by_another(const struct mst_lineage *l, uint64_t version, uint64_t maker)
{
	const struct mst_lineage_made *cell = &l->made[version % MST_COUNTED_MAX];

	return cell->version == version && cell->made != maker;
}

uint64_t mst_lineage_shared(const struct mst_lineage *l, const struct mst_generation *next,
			    uint64_t have)
{
	uint64_t shared = have < next->began ? have : next->began;

	if (!l->in_order)
		return shared; /* of a checkpoint nobody knows who has made it */
	if (shared > 0 && shared == next->began && is_made_by_another(l, shared, next->made))
		shared--;
	if (shared > 0 && shared + 1 == next->began && next->made_before != 0 &&
	    is_made_by_another(l, shared, next->made_before))
		shared--;
	return shared;
}

static void mark(struct mst_lineage *l, uint64_t version, double samples, struct mst_returning *out)
{
	*out = (struct mst_returning){ .number = l->of.number,
				       .workers = l->workers,
				       .record_ranks = l->record_ranks,
				       .version = version,
				       .made = mst_lineage_maker(l, version),
				       .samples = samples };
	memcpy(out->run, l->of.run, sizeof(out->run));
	if (version > 0 && l->in_order)
		out->made_before = mst_lineage_maker(l, version - 1);
	l->made[version % MST_COUNTED_MAX] = (struct mst_lineage_made){ version, out->made };
}

static bool enter(struct mst_lineage *l, uint64_t version, double samples, bool taken)
{
	uint64_t word = atomic_load(&l->word);
	const struct mst_returning *had = last(l);
	bool same = had != NULL && had->version == version && had->number == l->of.number;

	if ((word & FROZEN) || l->of.number == 0 || same)
		return !(word & FROZEN);
	mark(l, version, samples, &l->mark[(word & PLACE) == 0]);
	l->mark[(word & PLACE) == 0].taken = taken;
	return atomic_compare_exchange_strong(&l->word, &word, (word ^ PLACE) | HAS);
}

bool mst_lineage_outcome(struct mst_lineage *l, uint64_t version, double samples)
{
	return enter(l, version, samples, false);
}

bool mst_lineage_taken(struct mst_lineage *l, uint64_t version, double samples)
{
	return enter(l, version, samples, true);
}

/* Without an outcome. The number of the generation may be above the one of the WELCOME. */
static void note_was_in(const struct mst_lineage *l, struct mst_returning *out)
{
	memcpy(out->run, l->was_in.run, sizeof(out->run));
	out->workers = l->workers;
	out->record_ranks = l->record_ranks;
	if (out->seen < l->was_in.number) {
		out->seen = l->was_in.number;
		out->seen_id = l->was_in.id;
	}
}

bool mst_lineage_claim(struct mst_lineage *l, const struct mst_generation *begun,
		       struct mst_returning *out)
{
	uint64_t word = atomic_fetch_or(&l->word, FROZEN);

	*out = (struct mst_returning){ .number = 0 };
	if ((word & START) && begun->number > 0)
		l->was_in = *begun;
	if (word & HAS)
		*out = l->mark[(word & PLACE) != 0];
	else if (l->was_in.number == 0)
		return false;
	note_seen(l, word, out);
	if (!(word & HAS))
		note_was_in(l, out);
	out->incarnation = l->incarnation;
	return true;
}
