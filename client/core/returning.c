/* SPDX-License-Identifier: MIT */
/* A session that is lost, and another one that goes on in its place. */
#include "client/core/worker_state.h"
#include "common/base/assert.h"

void mst_worker_go_adrift(struct mst_worker *w)
{
	if (w->phase != MST_WORKER_OVER && w->phase != MST_WORKER_FAILED)
		w->adrift = true;
}

/* What has arrived and no outcome has brought is of a session that is lost: another worker may not
 * have it, and nobody may have it any more. */
static void hold_given(struct mst_worker *w)
{
	const struct mst_held *given = mst_sets_go_back(&w->sets, w->given);

	if (given != NULL) {
		w->held = *given;
	} else {
		w->held.taken = true;
		w->held.version = w->given;
		w->held.share_count = 0;
		w->held.weight = 0;
		w->held.share = w->sets.share;
	}
	w->held.newest = w->given != MST_VERSION_NONE ? w->given : 0;
	w->held.where = MST_WHERE_NOWHERE;
	w->held.earlier = true;
}

void mst_worker_unlink(struct mst_worker *w)
{
	w->abandoned |= w->filling >= 0;
	mst_worker_stop_filling(w, MST_GRANT_FREE);
	hold_given(w);
	for (uint32_t i = 0; i < MST_SLOTS_MAX; i++)
		w->slot[i].state = MST_GRANT_SPENT;
	w->adrift = true;
}

static void begin_session(struct mst_worker *w)
{
	for (uint32_t i = 0; i < MST_SLOTS_MAX; i++)
		w->slot[i] = (struct mst_worker_slot){ .epoch = 1 };
	w->base = w->tickets.sent;
	w->headers = 0;
	w->asking = w->tickets.sent;
	w->ask = MST_ASK_NONE;
	w->answered = 0;
	w->record = NULL;
	w->renew = w->more = w->cut = w->incomplete = false;
	w->last = MST_VERSION_NONE;
	w->adrift = w->afresh = false;
	w->returned = true;
}

int mst_worker_go_on(struct mst_worker *w, const struct mst_worker_cfg *cfg)
{
	MST_ASSERT(cfg->elems == w->cfg.elems && cfg->workers > 0);
	MST_ASSERT(cfg->slots > 0 && cfg->slots <= MST_SLOTS_MAX);
	MST_ASSERT(cfg->servers > 0 && cfg->servers <= MST_SERVERS_MAX);
	int rc = mst_sets_fit(&w->sets, &(struct mst_sets_figures){ cfg->history, cfg->workers });

	if (rc != 0)
		return rc;
	mst_worker_enter(w, MST_WORKER_JOINED);
	w->cfg = *cfg;
	hold_given(w); /* its set lies elsewhere now */
	begin_session(w);
	return 0;
}
