/* SPDX-License-Identifier: MIT */
#include "server/data/recording.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "common/base/spsc.h"
#include "muster/muster.h"

static_assert(MST_RECORDED_GIVEN_UP == MUSTER_DAMAGED + 1, "no verdict has this number");

struct mst_recording {
	struct mst_spsc *rows;
	_Atomic uint64_t missing; /* only the data thread writes it */
	bool counts;
	struct mst_recorded_generation generation; /* to be read when it has begun, */
	_Atomic bool begun;                        /* which only the control thread says */
};

uint64_t mst_recording_bytes(void)
{
	return sizeof(struct mst_recording) +
	       MST_RECORDING_ROWS * (uint64_t)sizeof(struct mst_recorded) +
	       MST_RECORDING_TEXT_BYTES;
}

int mst_recording_new(struct mst_recording **out)
{
	struct mst_recording *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return -ENOMEM;
	r->rows = mst_spsc_new(MST_RECORDING_ROWS, sizeof(struct mst_recorded));
	if (r->rows == NULL) {
		free(r);
		return -ENOMEM;
	}
	*out = r;
	return 0;
}

void mst_recording_free(struct mst_recording *r)
{
	if (r == NULL)
		return;
	mst_spsc_free(r->rows);
	free(r);
}

void mst_recording_counts(struct mst_recording *r)
{
	r->counts = true;
}

bool mst_recording_is_counted(const struct mst_recording *r)
{
	return r->counts;
}

void mst_recording_begin(struct mst_recording *r, const struct mst_recorded_generation *g)
{
	r->generation = *g;
	/* Release: pairs with mst_recording_begun(). */
	atomic_store_explicit(&r->begun, true, memory_order_release);
}

const struct mst_recorded_generation *mst_recording_begun(const struct mst_recording *r)
{
	/* Acquire: pairs with mst_recording_begin(). */
	return atomic_load_explicit(&r->begun, memory_order_acquire) ? &r->generation : NULL;
}

void mst_recording_miss(struct mst_recording *r, uint64_t rows)
{
	/* Relaxed: the number orders nothing. */
	uint64_t so_far = atomic_load_explicit(&r->missing, memory_order_relaxed);

	atomic_store_explicit(&r->missing, so_far + rows, memory_order_relaxed);
}

void mst_recording_put(struct mst_recording *r, const struct mst_recorded *row)
{
	if (!mst_spsc_push(r->rows, row))
		mst_recording_miss(r, 1);
}

bool mst_recording_take(struct mst_recording *r, struct mst_recorded *out)
{
	return mst_spsc_pop(r->rows, out);
}

uint64_t mst_recording_missing(const struct mst_recording *r)
{
	/* Relaxed: as above. */
	return atomic_load_explicit(&r->missing, memory_order_relaxed);
}
