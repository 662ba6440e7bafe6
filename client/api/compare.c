/* SPDX-License-Identifier: MIT */
/* The calls by which workers that own the parameters find that they have different ones. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/api/handle.h"
#include "client/local/parts.h"
#include "client/local/sized.h"
#include "common/base/crc32c.h"

static const struct mst_sized sized_comparison = { "comparison", "MUSTER_COMPARISON",
						   sizeof(struct muster_comparison) };
static const struct mst_sized sized_difference = { "difference", "MUSTER_DIFFERENCE",
						   sizeof(struct muster_difference) };

static int check_tensors(struct muster *m, const struct muster_comparison *mine)
{
	bool none = mine->tensors == NULL && mine->tensor_count > 0;

	if (none || mine->tensor_count > MUSTER_COMPARE_MAX)
		return mst_reason_fail(&m->failure, -EINVAL,
				       "muster_compare() takes at most %u digests of tensors, and "
				       "was given %zu",
				       MUSTER_COMPARE_MAX, mine->tensor_count);
	if (mine->each == 0 || mine->each > MUSTER_TENSORS_MAX || mine->first > MUSTER_TENSORS_MAX)
		return mst_reason_fail(&m->failure, -EINVAL,
				       "muster_compare() has digests of 1 to %u tensors each, not "
				       "of %u from number %u on",
				       MUSTER_TENSORS_MAX, mine->each, mine->first);
	return 0;
}

static int check(struct muster *m, const struct muster_comparison *mine)
{
	if (m->session.job.owner != MUSTER_WORKERS_OWN)
		return mst_reason_fail(&m->failure, -EINVAL,
				       "muster_compare() is for jobs whose workers own the "
				       "parameters (musterd --owner workers)");
	if (m->worker.given == MST_VERSION_NONE)
		return mst_reason_fail(&m->failure, -EINVAL,
				       "muster_compare() comes after an outcome");
	int rc = check_tensors(m, mine);
	return rc != 0 ? rc
		       : mst_parts_check(&m->failure, "muster_compare()", mine->parts,
					 mine->part_count);
}

static int send(struct muster *m, const struct muster_comparison *mine, struct mst_message *msg)
{
	msg->kind = MST_MSG_COMPARE;
	msg->comparison.version = m->worker.given;
	msg->comparison.takes = mine->takes;
	msg->comparison.last = mine->last;
	int rc = mst_client_session_tell(&m->session, msg);
	if (rc == -EAGAIN)
		return mst_reason_fail(&m->failure, rc,
				       "the control connection is busy; try again");
	return 0; /* if the connection is over, the next look tells why */
}

static int send_parts(struct muster *m, const struct muster_comparison *mine,
		      struct mst_message *msg)
{
	msg->comparison = (struct mst_comparison){ .each = 1,
						   .part_count = (uint32_t)mine->part_count };
	mst_parts_fill(mine->parts, mine->part_count, msg->comparison.part);
	return send(m, mine, msg);
}

static int send_tensors(struct muster *m, const struct muster_comparison *mine,
			struct mst_message *msg)
{
	msg->comparison = (struct mst_comparison){ .first = mine->first,
						   .each = mine->each,
						   .section = mine->section,
						   .count = (uint32_t)mine->tensor_count };
	memcpy(msg->comparison.digest, mine->tensors,
	       mine->tensor_count * sizeof(mine->tensors[0]));
	return send(m, mine, msg);
}

/* If there is room for the first message alone, the caller says it again, and the leader keeps what
 * it had. */
static int tell(struct muster *m, const struct muster_comparison *mine)
{
	struct mst_message *msg = calloc(1, sizeof(*msg));
	int rc = 0;

	if (msg == NULL)
		return mst_reason_fail(&m->failure, -ENOMEM, "no memory for a message");
	if (mine->part_count > 0)
		rc = send_parts(m, mine, msg);
	if (rc == 0 && mine->tensor_count > 0)
		rc = send_tensors(m, mine, msg);
	free(msg);
	return rc;
}

int muster_compare(struct muster *m, const struct muster_comparison *mine)
{
	struct muster_comparison read = MUSTER_COMPARISON;
	int rc = mst_handle_enter(m, -EINVAL, "muster_compare()");

	if (rc < 0) /* also after the last outcome */
		return rc;
	if (mine == NULL)
		return mst_reason_fail(&m->failure, -EINVAL, "muster_compare() needs a comparison");
	rc = mst_sized_read(&sized_comparison, mine, &read, &m->failure);
	if (rc == 0)
		rc = check(m, &read);
	return rc == 0 ? tell(m, &read) : rc;
}

int muster_difference(struct muster *m, struct muster_difference *out)
{
	int rc = mst_handle_enter(m, -EINVAL, "muster_difference()");

	if (rc < 0)
		return rc;
	if (out == NULL)
		return mst_reason_fail(&m->failure, -EINVAL,
				       "muster_difference() needs somewhere to write to");
	rc = mst_sized_check(&sized_difference, out, &m->failure);
	if (rc != 0 || m->session.told.differences == m->differences)
		return rc;
	m->differences = m->session.told.differences;
	m->difference = m->session.told.differs;
	struct muster_difference told = { .version = m->difference.version,
					  .why = m->difference.why,
					  .from = m->difference.from,
					  .kernels_differ = m->difference.kernels != 0 };
	mst_sized_write(&sized_difference, &told, out);
	return 1;
}

uint64_t muster_digest(uint64_t before, const void *data, size_t bytes)
{
	return mst_crc32c((uint32_t)before, data, bytes);
}
