/* SPDX-License-Identifier: MIT */
#include "tools/run/restarts.h"

/* A process that ends sooner has failed at its start. */
#define SOON_NS MST_SECOND
#define PAUSE_NS MST_SECOND

uint32_t mst_restarts_take(struct mst_restarts *r, uint64_t now_ns)
{
	uint32_t kept = r->count < MST_RESTARTS_MOST ? r->count : MST_RESTARTS_MOST;
	uint32_t lately = 0;

	for (uint32_t i = 0; i < kept; i++)
		lately += now_ns - r->at_ns[i] < MST_RESTARTS_SPAN_NS;
	if (lately == MST_RESTARTS_MOST)
		return 0;
	r->at_ns[r->count++ % MST_RESTARTS_MOST] = now_ns;
	return lately + 1;
}

uint64_t mst_restarts_pause(uint64_t lived_ns)
{
	return lived_ns < SOON_NS ? PAUSE_NS : 0;
}
