/* SPDX-License-Identifier: MIT */
#include "common/wire/table.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* FNV-1a of 64 bits. Numbers go in as they lie in memory, which is little-endian (lane.h). */
#define DIGEST_OFFSET UINT64_C(0xcbf29ce484222325)
#define DIGEST_PRIME UINT64_C(0x100000001b3)

static uint64_t digest(uint64_t so_far, const void *bytes, size_t count)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < count; i++)
		so_far = (so_far ^ at[i]) * DIGEST_PRIME;
	return so_far;
}

/* With the NUL after it, so that two names do not read as one. */
static void digest_name(const char *name, struct mst_table *out)
{
	size_t bytes = name != NULL ? strlen(name) + 1 : 1;

	out->names = digest(out->names, name != NULL ? name : "", bytes);
	out->name_bytes += bytes;
}

static uint64_t digest_place(uint64_t so_far, uint64_t first, uint64_t count)
{
	return digest(digest(so_far, &first, sizeof(first)), &count, sizeof(count));
}

static uint64_t digest_run(uint64_t so_far, const struct mst_run *run)
{
	so_far = digest_place(so_far, run->first, run->count);
	so_far = digest(so_far, &run->lr_scale, sizeof(run->lr_scale));
	return digest(so_far, &run->decay_scale, sizeof(run->decay_scale));
}

/* ---- the table ---- */

/* A sum with 0 is never -0, which has other bits than 0 and means the same. */
uint32_t mst_run_of(const struct muster_tensor *tensor, uint32_t count, uint32_t at,
		    struct mst_run *out)
{
	const struct muster_tensor *first = &tensor[at];

	*out = (struct mst_run){ first->first, 0, first->lr_scale + 0, first->decay_scale + 0 };
	for (; at < count && tensor[at].lr_scale == first->lr_scale &&
	       tensor[at].decay_scale == first->decay_scale;
	     at++)
		out->count += tensor[at].count;
	return at;
}

static void digest_runs(const struct muster_tensor *tensor, uint32_t count, struct mst_table *out)
{
	struct mst_run run;

	out->scales = DIGEST_OFFSET;
	for (uint32_t at = 0; at < count; out->runs++) {
		at = mst_run_of(tensor, count, at, &run);
		out->scales = digest_run(out->scales, &run);
	}
	if (out->runs == 1 && run.lr_scale == 1 && run.decay_scale == 1)
		out->runs = 0, out->scales = 0;
}

void mst_table_of(const struct muster_tensor *tensor, uint32_t count, struct mst_table *out)
{
	*out = (struct mst_table){ .tensors = count };
	if (count == 0)
		return;
	out->names = out->places = DIGEST_OFFSET;
	for (uint32_t i = 0; i < count; i++) {
		digest_name(tensor[i].name, out);
		out->places = digest_place(out->places, tensor[i].first, tensor[i].count);
	}
	digest_runs(tensor, count, out);
}

bool mst_table_is_sane(const struct mst_table *table, uint64_t elems)
{
	if (table->tensors > elems || table->runs > table->tensors ||
	    table->name_bytes < table->tensors ||
	    table->name_bytes > (uint64_t)table->tensors * MST_TENSOR_NAME_LEN)
		return false;
	return table->runs > 0 || table->scales == 0;
}

bool mst_scale_is_sane(float scale)
{
	return isfinite(scale) && scale >= 0;
}
