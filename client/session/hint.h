/* SPDX-License-Identifier: MIT */
/* The words that muster_check() reads, in any thread at any moment: the handle's thread publishes
 * some, and the leader puts the preemption hint. Each word stands for itself. */
#ifndef MST_CLIENT_SESSION_HINT_H
#define MST_CLIENT_SESSION_HINT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "client/core/worker.h"
#include "client/session/control.h"

struct mst_hint {
	const struct mst_worker *worker;
	const struct mst_control *control;
	const _Atomic uint64_t *word; /* as mst_hint_word() makes it */

	_Atomic uint64_t computes_on; /* version */
	_Atomic bool over;
};

/* The worker has changed: other threads may learn of it. */
void mst_hint_publish(struct mst_hint *h);
/* From now on there is nothing but to give up. Takes no lock; any thread. */
void mst_hint_end(struct mst_hint *h);
/* Any thread. */
enum muster_hint mst_hint_read(const struct mst_hint *h);

#endif
