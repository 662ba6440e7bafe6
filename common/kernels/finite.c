/* SPDX-License-Identifier: MIT */
/* Blocks are looked at as a whole; only in the one that has such an element it is searched for. */
#include "common/kernels/finite.h"

#include <stdint.h>
#include <string.h>

#include "common/kernels/isa.h"
#include "common/kernels/sum.h"

#define BLOCK_BYTES 16384

static bool overlap(const void *a, const void *b, size_t bytes)
{
	uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

	return x < y ? y - x < bytes : x - y < bytes;
}

bool mst_copy_finite(void *to, const void *from, enum muster_type type, size_t count, bool streams)
{
	const struct mst_isa *isa = mst_isa();
	size_t bytes = count * mst_type_bytes(type);
	bool finite;

	if (overlap(to, from, bytes)) {
		memmove(to, from, bytes);
		return isa->finite(to, type, count);
	}
	if (!streams)
		return isa->copy(to, from, type, count);
	finite = isa->copy_past(to, from, type, count);
	isa->drain();
	return finite;
}

size_t mst_first_nonfinite(const void *from, enum muster_type type, size_t count)
{
	const struct mst_isa *isa = mst_isa();
	size_t size = mst_type_bytes(type), done = 0, part = BLOCK_BYTES / size;
	const char *at = from;

	for (; done < count; done += part) {
		part = part < count - done ? part : count - done;
		if (!isa->finite(at + done * size, type, part))
			break;
	}
	while (done < count && isa->finite(at + done * size, type, 1))
		done++;
	return done;
}
