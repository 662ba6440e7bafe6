/* SPDX-License-Identifier: MIT */
#include "common/transport/transport.h"

#include <string.h>

static const struct mst_transport *const transports[] = { &mst_shm };

const struct mst_transport *mst_transport_find(const char *scheme)
{
	for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++)
		if (strcmp(transports[i]->scheme, scheme) == 0)
			return transports[i];
	return NULL;
}
