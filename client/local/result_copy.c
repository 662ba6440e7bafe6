/* SPDX-License-Identifier: MIT */
#include "client/local/result_copy.h"

#include <stdlib.h>
#include <string.h>

/* The marks are looked at after the copy: a server that begins to write meanwhile marks first. */
void mst_result_copy_take(struct mst_result_copy *s, const struct mst_contiguous *v,
			  const struct mst_held *held)
{
	const void *from = mst_contiguous_arrived(v, held);
	size_t bytes = mst_contiguous_result_bytes(v);
	void *copy = from != NULL ? malloc(bytes) : NULL;

	if (copy == NULL)
		return;
	memcpy(copy, from, bytes);
	if (!mst_contiguous_whole(v, held)) {
		free(copy);
		return;
	}
	mst_result_copy_drop(s);
	*s = (struct mst_result_copy){ copy, bytes };
}

void mst_result_copy_drop(struct mst_result_copy *s)
{
	free(s->data);
	*s = (struct mst_result_copy){ NULL, 0 };
}
