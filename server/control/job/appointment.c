/* SPDX-License-Identifier: MIT */
#include "server/control/job/appointment.h"

#include <errno.h>

#include "common/base/clock.h"
#include "common/optim/optim.h"
#include "common/transport/fabric.h"

/* Longer than any lease that can be given as an option, and short enough that times do not
 * overflow. */
#define SERVER_LEASE_MAX_NS (365 * UINT64_C(86400) * MST_SECOND)

/* What in the appointment is impossible; NULL: nothing. No leader of this release sends such
 * figures. */
static const char *absurdity(const struct mst_appoint *p)
{
	if (p->index == 0 || p->index >= p->servers)
		return "a place among servers that cannot be";
	if (p->elems > MST_ELEMS_MAX || p->count == 0 || p->first > p->elems ||
	    p->count > p->elems - p->first || p->first % MST_PART_ELEMS_MIN != 0 ||
	    (p->first + p->count == p->elems) != (p->index + 1 == p->servers))
		return "a part of the vector that cannot be";
	if (p->workers == 0 || p->slots == 0 || p->buffers < 3 || p->buffers > UINT16_MAX ||
	    p->group == 0 || p->group > MST_WORKERS_MAX || p->partials > MST_WORKERS_MAX ||
	    p->entries < p->workers || p->entries > UINT32_MAX / 2)
		return "figures of a job that cannot be";
	if (!mst_table_is_sane(&p->table, p->elems))
		return "a table of tensors that cannot be";
	if (p->table.runs > 0 && p->owner == MUSTER_WORKERS_OWN)
		return "scales of tensors that cannot be";
	if (p->averages != 0 && p->owner == MUSTER_WORKERS_OWN)
		return "an average of parameters that no server has";
	if (p->distances != 0 && p->owner == MUSTER_WORKERS_OWN)
		return "a distance of parameters that no server has";
	if (!mst_path_is_sane(&p->path))
		return "a timer or a partition key that cannot be";
	if (p->lease_ns < MST_MS || p->address[0] == '\0')
		return "no lease, or no listener";
	if (p->server_lease_ns < p->lease_ns || p->server_lease_ns > SERVER_LEASE_MAX_NS)
		return "a lease of servers that cannot be";
	return NULL;
}

/* The leader may be of another release, with other optimisers. */
static int check_optimizer(const struct mst_appoint *p, const char *leader, struct mst_reason *why)
{
	struct mst_optimizer optimizer;

	int rc = mst_optimizer_take(p->optimizer, p->parameter, p->parameter_count, &optimizer,
				    why);
	if (rc == 0 && p->table.runs > 0 && !optimizer.row->scales)
		mst_reason_set(why, "%s, for tensors with scales", optimizer.row->name);
	else if (rc == 0)
		return 0;
	return mst_reason_fail(
		why, -EPROTO,
		"the leader at %.100s appoints with an optimiser that cannot be here: %.300s; "
		"start servers of one release",
		leader, why->text);
}

int mst_appointment_check(const struct mst_appoint *p, const char *leader, struct mst_reason *why)
{
	const char *wrong = absurdity(p);

	if (wrong != NULL)
		return mst_reason_fail(why, -EPROTO,
				       "the leader at %.100s appoints this server to %s", leader,
				       wrong);
	return p->owner == MUSTER_SERVERS_OWN ? check_optimizer(p, leader, why) : 0;
}
