/* SPDX-License-Identifier: MIT */
#include "server/control/job/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/base/log.h"

static struct mst_status_metric *find(struct mst_metrics *m, const char *name)
{
	for (uint32_t i = 0; i < m->count; i++)
		if (strcmp(m->row[i].newest.name, name) == 0)
			return &m->row[i];
	return NULL;
}

/* Return: NULL: there is no room for another name. */
static struct mst_status_metric *add(struct mst_metrics *m, uint32_t rank,
				     const struct mst_metric *said)
{
	if (m->count < MST_STATUS_METRICS) {
		mst_info("rank %" PRIu32 " reports \"%s\" for the first time: %g at version "
			 "%" PRIu64,
			 rank, said->name, said->value, said->version);
		return &m->row[m->count++];
	}
	if (!m->overflowed)
		mst_warn("rank %" PRIu32 " reports \"%s\", but %u other names have been reported "
			 "before, which is as many as are kept: it is dropped, and so is every "
			 "further name; report fewer names",
			 rank, said->name, MST_STATUS_METRICS);
	m->overflowed = true;
	return NULL;
}

const char *mst_metrics_wrong(const struct mst_metric *said)
{
	if (said->name[0] == '\0')
		return "broke the protocol: a metric without a name";
	if (!isfinite(said->value))
		return "broke the protocol: a metric that is infinite or NaN";
	return NULL;
}

void mst_metrics_take(struct mst_metrics *m, uint32_t rank, const struct mst_metric *said)
{
	struct mst_status_metric *row = find(m, said->name);
	if (row == NULL)
		row = add(m, rank, said);
	if (row == NULL)
		return;
	mst_debug("rank %" PRIu32 " reports \"%s\": %g at version %" PRIu64, rank, said->name,
		  said->value, said->version);
	row->reports++;
	if (row->reports == 1 || said->version >= row->newest.version) {
		row->newest = *said;
		row->rank = rank;
	}
	m->changed = true;
}

void mst_metrics_tell(const struct mst_metrics *m, struct mst_status *out)
{
	out->metric_count = m->count;
	memcpy(out->metric, m->row, m->count * sizeof(m->row[0]));
}
