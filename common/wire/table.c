/* SPDX-License-Identifier: MIT */
#include "common/wire/table.h"

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

/* With the NUL behind it, so that two names do not read as one. */
static uint64_t digest_name(uint64_t so_far, const char *name)
{
	return name != NULL ? digest(so_far, name, strlen(name) + 1) : digest(so_far, "", 1);
}

void mst_table_of(const struct muster_tensor *tensor, uint32_t count, struct mst_table *out)
{
	*out = (struct mst_table){ .tensors = count };
	if (count == 0)
		return;
	out->names = out->places = DIGEST_OFFSET;
	for (uint32_t i = 0; i < count; i++) {
		out->names = digest_name(out->names, tensor[i].name);
		out->places = digest(out->places, &tensor[i].first, sizeof(tensor[i].first));
		out->places = digest(out->places, &tensor[i].count, sizeof(tensor[i].count));
	}
}
