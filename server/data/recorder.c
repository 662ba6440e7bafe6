/* SPDX-License-Identifier: MIT */
#include "server/data/recorder.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/assert.h"
#include "common/base/clock.h"

struct rank_clock {
	uint64_t given;    /* the last version that the rank was given; MST_VERSION_NONE */
	uint64_t since_ns; /* when it was given that version, or handed in its last gradient */
	uint64_t given_up; /* as the present session has reported it */
	uint32_t incarnation;
};

struct mst_recorder {
	struct mst_recording *to;
	uint64_t started_ns;
	uint32_t workers;
	bool ended;
	struct rank_clock rank[];
};

uint64_t mst_recorder_bytes(uint32_t workers)
{
	return sizeof(struct mst_recorder) + workers * (uint64_t)sizeof(struct rank_clock);
}

int mst_recorder_new(uint32_t workers, struct mst_recording *to, struct mst_recorder **out)
{
	struct mst_recorder *r = calloc(1, mst_recorder_bytes(workers));

	if (r == NULL)
		return -ENOMEM;
	r->to = to;
	r->workers = workers;
	for (uint32_t i = 0; i < workers; i++)
		r->rank[i].given = MST_VERSION_NONE;
	*out = r;
	return 0;
}

void mst_recorder_free(struct mst_recorder *r)
{
	free(r);
}

static void put(struct mst_recorder *r, uint32_t rank, uint64_t version, uint32_t end,
		uint64_t now_ns)
{
	const struct rank_clock *c = &r->rank[rank];
	struct mst_recorded row = {
		.version = version,
		.start_ns = MST_NEVER,
		.end_ns = now_ns - r->started_ns,
		.rank = rank,
		.end = end,
	};

	if (c->given != MST_VERSION_NONE && c->given == version)
		row.start_ns = c->since_ns - r->started_ns;
	mst_recording_put(r->to, &row);
}

/* More gradients than this nobody gives up between two asks: the worker says what cannot be. */
#define MISSED_MAX (UINT64_C(1) << 20)

/* The session has given up so many gradients so far, of which the last is on its present
 * version. */
static void put_given_up(struct mst_recorder *r, uint32_t rank, uint64_t so_far, uint64_t now_ns)
{
	struct rank_clock *c = &r->rank[rank];
	uint64_t more = so_far > c->given_up ? so_far - c->given_up : 0;
	uint64_t rows = more < MST_RECORDER_GIVEN_UP_MAX ? more : MST_RECORDER_GIVEN_UP_MAX;

	if (more == 0 || c->given == MST_VERSION_NONE)
		return;
	c->given_up = so_far;
	for (uint64_t i = 0; i < rows; i++)
		put(r, rank, c->given, MST_RECORDED_GIVEN_UP, now_ns);
	if (more > rows && more - rows <= MISSED_MAX)
		mst_recording_miss(r->to, more - rows);
}

void mst_recorder_event(struct mst_recorder *r, const struct mst_ledger_event *ev, uint64_t now_ns)
{
	/* A gradient that is given up because the job has ended has missed no step. */
	if (ev->kind != MST_EV_ASK || r->ended || ev->who.rank >= r->workers ||
	    ev->who.incarnation != r->rank[ev->who.rank].incarnation)
		return;
	put_given_up(r, ev->who.rank, ev->given_up, now_ns);
}

void mst_recorder_decided(struct mst_recorder *r, const struct mst_decision *d, uint64_t now_ns)
{
	struct rank_clock *c = &r->rank[d->who.rank];

	MST_ASSERT(d->who.rank < r->workers);
	switch (d->kind) {
	case MST_DO_ADMIT:
		*c = (struct rank_clock){ .given = MST_VERSION_NONE,
					  .incarnation = d->who.incarnation };
		break;
	case MST_DO_START:
		r->started_ns = now_ns;
		break;
	case MST_DO_RELEASE:
		c->given = d->answer.version;
		c->since_ns = now_ns;
		break;
	case MST_DO_VERDICT:
		put(r, d->who.rank, d->verdict.tag, (uint32_t)d->verdict.verdict, now_ns);
		c->since_ns = now_ns;
		break;
	case MST_DO_FINISH:
		r->ended = true;
		break;
	default:
		break;
	}
}
