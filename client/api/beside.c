/* SPDX-License-Identifier: MIT */
/* The calls that do not look at what has arrived. */
#include <errno.h>
#include <inttypes.h>

#include "client/api/handle.h"

const char *muster_version(void)
{
	return MST_VERSION;
}

void muster_wake(struct muster *m)
{
	if (!m->inherited)
		mst_engine_wake(&m->engine);
}

int muster_fd(struct muster *m)
{
	const struct mst_transport *transport = m->links.transport;

	if (m->inherited)
		return mst_handle_disowned(m);
	if (m->links.detached)
		return mst_reason_fail(&m->failure, -ENOTCONN, "the session has ended");
	if (transport->arm == NULL)
		return mst_reason_fail(&m->failure, -ENOTSUP,
				       "gradients travel over %s here, whose waits have no "
				       "descriptor: use muster_wait() in a thread",
				       transport->medium);
	m->watched = true;
	return transport->arm(m->links.net);
}

int muster_regions(struct muster *m, struct muster_region *out, uint32_t max)
{
	struct muster_region region;
	uint32_t count = 0;

	if (m->inherited)
		return mst_handle_disowned(m);
	if (out == NULL && max > 0)
		return mst_reason_fail(
			&m->failure, -EINVAL,
			"muster_regions() needs somewhere to put %" PRIu32 " regions", max);
	for (; mst_contiguous_region(&m->contiguous, count, &region); count++)
		if (count < max)
			out[count] = region;
	return (int)count;
}

void *muster_parameters(struct muster *m)
{
	if (m->inherited || m->worker.phase < MST_WORKER_WORKING)
		return NULL;
	if (m->own.begun)
		return m->own.parameters;
	return (void *)mst_contiguous_result(&m->contiguous, &m->worker.held);
}

enum muster_hint muster_check(const struct muster *m)
{
	return mst_hint_read(&m->hint);
}
