/* SPDX-License-Identifier: MIT */
/* The calls that do not look at what has arrived. */
#include <errno.h>
#include <inttypes.h>

#include "client/api/handle.h"
#include "common/host/limits.h"

const char *muster_version(void)
{
	return MST_VERSION;
}

void muster_wake(struct muster *m)
{
	if (!m->inherited)
		mst_engine_wake(&m->engine);
}

/* A child that is forked meanwhile finds the descriptor, and closes it. */
static int make_fd(struct muster *m)
{
	struct mst_reason why;

	mst_process_hold();
	int fd = mst_wakeup_fd(&m->wakeup);
	mst_process_release();
	if (fd < 0)
		return mst_reason_fail(&m->failure, fd, "muster_fd() gets no descriptor: %s",
				       mst_limit_failed(fd, 0, &why));
	return fd;
}

int muster_fd(struct muster *m)
{
	const struct mst_transport *transport = m->links.transport;

	if (m->inherited)
		return mst_handle_disowned(m);
	if (m->links.detached)
		return mst_reason_fail(&m->failure, -ENOTCONN, "the session has ended");
	if (transport != NULL && transport->arm == NULL)
		return mst_reason_fail(&m->failure, -ENOTSUP,
				       "gradients travel over %s here, whose waits have no "
				       "descriptor: use muster_wait() in a thread",
				       transport->medium);
	return make_fd(m);
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
