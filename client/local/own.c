/* SPDX-License-Identifier: MIT */
#include "client/local/own.h"

#include <errno.h>
#include <stdlib.h>

int mst_own_allocate(struct mst_own *own, uint64_t elems)
{
	if (own->parameters == NULL)
		own->parameters = calloc(elems, sizeof(float));
	if (own->grad == NULL)
		own->grad = calloc(elems, sizeof(float));
	return own->parameters != NULL && own->grad != NULL ? 0 : -ENOMEM;
}

void mst_own_fini(struct mst_own *own)
{
	free(own->parameters);
	free(own->grad);
}
