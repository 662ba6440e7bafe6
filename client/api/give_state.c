/* SPDX-License-Identifier: MIT */
/* The calls by which workers give their states to others, and take theirs (state_transfer.h). */
#include <errno.h>

#include "client/api/handle.h"
#include "client/api/returning.h"

int muster_state_wanted(struct muster *m)
{
	int rc = mst_handle_enter(m, -EINVAL, "muster_state_wanted()");

	return rc == MST_ENTRY_OPEN   ? mst_client_transfer_wanted(&m->transfer)
	       : rc == MST_ENTRY_OVER ? 0
				      : rc;
}

int muster_give_state(struct muster *m, const void *state, size_t bytes)
{
	int rc = mst_handle_enter(m, -EINVAL, "muster_give_state()");

	return rc == MST_ENTRY_OPEN   ? mst_client_transfer_give(&m->transfer, state, bytes)
	       : rc == MST_ENTRY_OVER ? 0
				      : rc;
}

int muster_take_state(struct muster *m, const void **state, size_t *bytes, uint64_t *version)
{
	struct mst_gift gift;

	if (m->inherited)
		return mst_handle_disowned(m);
	if (state == NULL || bytes == NULL || version == NULL)
		return mst_reason_fail(&m->failure, -EINVAL,
				       "muster_take_state() needs somewhere to put the state, its "
				       "length and its version");
	mst_client_transfer_let_go(&m->transfer);
	uint64_t deadline_ns = mst_deadline_ns(m->wait_ns);
	int rc = mst_client_transfer_take(&m->transfer, m->wait_ns, &gift);
	while (rc == MST_AGAIN) { /* the server is lost: the next one has it taken again */
		rc = mst_return_await(m, deadline_ns);
		if (rc == 0)
			rc = mst_client_transfer_take(&m->transfer, mst_left_ns(deadline_ns),
						      &gift);
	}
	mst_return_settle(m); /* before the worker has the version of the state: it had another */
	if (rc == 0)
		rc = mst_client_transfer_accept(&m->transfer, &gift);
	mst_hint_publish(&m->hint);
	if (rc != 0)
		return rc;
	mst_return_drop_copy(m);
	m->lineage.stateless = false;
	(void)mst_lineage_taken(&m->lineage, gift.version, m->worker.held.samples);
	*state = gift.data;
	*bytes = gift.bytes;
	*version = gift.version;
	return 0;
}
