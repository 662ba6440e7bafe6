/* SPDX-License-Identifier: MIT */
#include "client/local/mapped.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A line of /proc/self/maps: what is mapped from @from on, before @end. */
struct mapping {
	uintptr_t from, end;
	bool may[2]; /* by enum mst_mapped_use: may it be used so? */
};

static bool next_mapping(FILE *maps, struct mapping *out)
{
	char mode[5];

	if (fscanf(maps, "%" SCNxPTR "-%" SCNxPTR " %4s%*[^\n]", &out->from, &out->end, mode) != 3)
		return false;
	out->may[MST_MAPPED_FOR_READING] = mode[0] == 'r';
	out->may[MST_MAPPED_FOR_WRITING] = mode[1] == 'w';
	return true;
}

static int fail(struct mst_mapped *out, int error, uintptr_t at, const char *what)
{
	out->error = error;
	mst_reason_set(&out->why, "the bytes from 0x%" PRIxPTR " on %s", at, what);
	return error;
}

/* The mappings come in the order of their addresses. */
static int look(FILE *maps, uintptr_t at, uintptr_t last, enum mst_mapped_use use,
		struct mst_mapped *out)
{
	static const char *const may_not[] = { "may not be read by this process",
					       "may not be written by this process" };
	struct mapping m;
	bool covered = false;
	int rc = 0;

	while (rc == 0 && !covered && next_mapping(maps, &m)) {
		if (m.end <= at)
			continue;
		if (m.from > at)
			break;
		if (!m.may[use])
			rc = fail(out, -EFAULT, at, may_not[use]);
		covered = m.end - 1 >= last;
		at = m.end;
	}
	return rc == 0 && !covered ? fail(out, -EFAULT, at, "are not mapped") : rc;
}

int mst_mapped_check(const void *at, size_t bytes, enum mst_mapped_use use, struct mst_mapped *out)
{
	uintptr_t first = (uintptr_t)at;

	if (bytes - 1 > UINTPTR_MAX - first)
		return fail(out, -EINVAL, first, "reach beyond the end of memory");
	FILE *maps = fopen("/proc/self/maps", "re");
	if (maps == NULL)
		return 0;
	int rc = look(maps, first, first + (bytes - 1), use, out);
	fclose(maps);
	return rc;
}
