/* SPDX-License-Identifier: MIT */
/*
 * Between a worker of `muster bench` and its library (the linker's --wrap): results that are not
 * what the server made, so that a test sees whether the benchmark notices.
 *
 * SPOIL in the environment says how, in rank 1, and in version 3 of the job alone:
 *	bit	the lowest bit of one element in the middle is flipped
 *	old	it is the result of the version before
 *	shift	a page of it lies where the page before belongs
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "muster/muster.h"

#define RANK 1u
#define VERSION 3u
#define PAGE 4096u

int __real_muster_wait(struct muster *m, struct muster_outcome *out);
int __wrap_muster_wait(struct muster *m, struct muster_outcome *out);

static void spoil(const char *how, char *result, size_t bytes)
{
	if (strcmp(how, "bit") == 0)
		result[bytes / 8 * 4] ^= 1; /* little end of a float, or of a 16-bit element */
	else if (strcmp(how, "shift") == 0)
		memmove(result + PAGE, result, PAGE);
}

int __wrap_muster_wait(struct muster *m, struct muster_outcome *out)
{
	static char *copy; /* of the last result; the process's end frees it */
	const char *how = getenv("SPOIL");
	int rc = __real_muster_wait(m, out);

	if (how == NULL || rc < 0 || !out->fresh || muster_job(m)->rank != RANK)
		return rc;
	size_t bytes = muster_job(m)->elems * (muster_job(m)->type == MUSTER_F32 ? 4 : 2);
	if (copy == NULL)
		copy = malloc(bytes);
	if (copy == NULL)
		abort();
	if (out->version != VERSION || strcmp(how, "old") != 0)
		memcpy(copy, out->result, bytes);
	if (out->version == VERSION) {
		spoil(how, copy, bytes);
		out->result = copy;
	}
	return rc;
}
