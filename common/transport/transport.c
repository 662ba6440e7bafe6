/* SPDX-License-Identifier: MIT */
#include "common/transport/transport.h"

#include <assert.h>
#include <string.h>

/* In the order of MST_TRANSPORT_SCHEMES. */
static const struct mst_transport *const transports[] = { &mst_shm, &mst_verbs, &mst_tcp, NULL };
static_assert(sizeof(transports) / sizeof(transports[0]) == MST_NETWORKS_MAX + 1,
	      "a list of networks has room for all of them");

const struct mst_transport *mst_transport_at(uint32_t index)
{
	return index < sizeof(transports) / sizeof(transports[0]) ? transports[index] : NULL;
}

const struct mst_transport *mst_transport_of(const char *address)
{
	for (size_t i = 0; transports[i] != NULL; i++) {
		const char *prefix = transports[i]->prefix;
		if (strncmp(address, prefix, strlen(prefix)) == 0)
			return transports[i];
	}
	return NULL;
}
