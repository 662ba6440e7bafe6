/* SPDX-License-Identifier: MIT */
/* A private copy of the last result, from the loss of a session until the next result: the program
 * may read it, and the worker may give it to the next servers. What the servers that are lost still
 * write, one that wakes up for example, never reaches it. */
#ifndef MST_CLIENT_LOCAL_RESULT_COPY_H
#define MST_CLIENT_LOCAL_RESULT_COPY_H

#include <stddef.h>

#include "client/local/contiguous.h"

struct mst_result_copy {
	void *data; /* NULL: there is none */
	size_t bytes;
};

/* Copies what is held, if it is whole; to be called while there are links. Takes the place of what
 * was copied before only if there is something to copy. Without memory there is no copy. */
void mst_result_copy_take(struct mst_result_copy *s, const struct mst_contiguous *v,
			  const struct mst_held *held);
void mst_result_copy_drop(struct mst_result_copy *s); /* accepts none */

#endif
