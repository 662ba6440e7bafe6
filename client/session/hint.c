/* SPDX-License-Identifier: MIT */
#include "client/session/hint.h"

void mst_hint_publish(struct mst_hint *h)
{
	const struct mst_worker *w = h->worker;
	bool over = w->phase == MST_WORKER_FAILED || w->last != MST_VERSION_NONE;

	/* Relaxed: muster_check() gives hints, nothing is read on the strength of them. */
	atomic_store_explicit(&h->computes_on, mst_worker_computes_on(w), memory_order_relaxed);
	atomic_store_explicit(&h->over, over, memory_order_relaxed);
}

void mst_hint_end(struct mst_hint *h)
{
	atomic_store_explicit(&h->over, true, memory_order_relaxed);
}

enum muster_hint mst_hint_read(const struct mst_hint *h)
{
	/* Relaxed: hints, of which each stands for itself. The partner of `word` is the leader's
	 * plain put of eight aligned bytes, which is never seen torn. In a child of fork(), whose
	 * handle is over, there may be no memory any more. */
	if (atomic_load_explicit(&h->over, memory_order_relaxed) || mst_control_over(h->control))
		return MUSTER_GIVE_UP;
	uint64_t word = atomic_load_explicit(h->word, memory_order_relaxed);
	uint64_t computes_on = atomic_load_explicit(&h->computes_on, memory_order_relaxed);

	if (computes_on < mst_hint_version(word))
		return MUSTER_GIVE_UP;
	if (computes_on == mst_hint_version(word) && mst_hint_wants(word))
		return MUSTER_HAND_IN;
	return MUSTER_GO_ON;
}
