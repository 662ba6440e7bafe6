/* SPDX-License-Identifier: MIT */
#include "client/local/guard.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/local/tensors.h"
#include "common/kernels/finite.h"
#include "common/kernels/select.h"
#include "common/kernels/sum.h"

static int refuse(const struct mst_client_guard *g, const char *what)
{
	return mst_reason_fail(g->failure, -EDOM,
			       "rank %" PRIu32
			       ": %s; the contribution, computed on version %" PRIu64
			       ", is abandoned and nothing of it counts: go on with another batch "
			       "(musterd --guard off lets such values pass)",
			       g->session->job.rank, what, g->worker->tag);
}

static const char *name_of(float value)
{
	if (isnan(value))
		return "NaN";
	return value > 0 ? "infinite" : "minus infinite";
}

#define WHAT_LEN 320u

/* "element 5 of the gradient, which is element 1 of tensor "b", is NaN". */
static const char *describe(const struct mst_client_guard *g, const char *of, uint64_t at,
			    float value, char what[WHAT_LEN])
{
	const struct mst_tensors *tensors = g->session->settings->tensors;
	char place[160];

	(void)snprintf(what, WHAT_LEN, "element %" PRIu64 " of the %s%s is %s", at, of,
		       mst_tensors_place(tensors, at, place, sizeof(place)), name_of(value));
	return what;
}

/* Some element of the range, which lies at @data, is not finite: finds the first. */
static int refuse_range(const struct mst_client_guard *g, const char *data,
			const struct mst_range *range)
{
	const struct muster_job *job = &g->session->job;
	uint64_t count = range->end - range->begin;
	uint64_t at = mst_first_nonfinite(data, job->type, count);
	char what[WHAT_LEN];
	float value = NAN;

	if (at < count)
		mst_sum_load(&value, data + at * mst_type_size(job->type), job->type, 1);
	return refuse(g, describe(g, "gradient", range->begin + at, value, what));
}

static bool overlaps(const char *to, const char *from, size_t bytes)
{
	return (uintptr_t)to < (uintptr_t)from + bytes && (uintptr_t)from < (uintptr_t)to + bytes;
}

int mst_client_guard_copy(const struct mst_client_guard *g, char *gradient,
			  const struct mst_range *range, const void *src)
{
	const struct muster_job *job = &g->session->job;
	uint32_t size = mst_type_size(job->type);
	uint64_t count = range->end - range->begin;
	char *to = gradient + range->begin * size;
	bool finite = true;

	if (overlaps(to, src, count * size)) {
		memmove(to, src, count * size);
		finite = mst_first_nonfinite(to, job->type, count) == count;
	} else {
		finite = mst_copy_finite(to, src, job->type, count,
					 mst_kernels_streams(job->elems * size));
	}
	if (finite || g->session->welcome.guard == MST_GUARD_OFF)
		return 0;
	return refuse_range(g, to, range);
}

int mst_client_guard_source(const struct mst_client_guard *g, const struct mst_range *range,
			    const void *src)
{
	uint64_t count = range->end - range->begin;

	if (g->session->welcome.guard == MST_GUARD_OFF ||
	    mst_first_nonfinite(src, g->session->job.type, count) == count)
		return 0;
	return refuse_range(g, src, range);
}

int mst_client_guard_look(const struct mst_client_guard *g, const char *gradient,
			  const struct mst_range *range)
{
	const struct muster_job *job = &g->session->job;
	uint64_t count = range->end - range->begin;

	if (g->session->welcome.guard != MST_GUARD_FULL)
		return 0;
	const char *data = gradient + range->begin * mst_type_size(job->type);
	if (mst_first_nonfinite(data, job->type, count) == count)
		return 0;
	return refuse_range(g, data, range);
}

int mst_client_guard_loss(const struct mst_client_guard *g, const struct muster_contribution *c)
{
	if (g->session->welcome.guard == MST_GUARD_OFF || !c->has_loss || isfinite(c->loss))
		return 0;
	return refuse(g, isnan(c->loss) ? "the loss that is told is NaN"
					: "the loss that is told is infinite");
}

int mst_client_guard_state(const struct mst_client_guard *g, const void *own)
{
	const struct muster_job *job = &g->session->job;
	char what[WHAT_LEN];
	float value;

	if (g->session->welcome.guard == MST_GUARD_OFF)
		return 0;
	uint64_t at = mst_first_nonfinite(own, job->result_type, job->elems);
	if (at == job->elems)
		return 0;
	mst_sum_load(&value, (const char *)own + at * mst_type_size(job->result_type),
		     job->result_type, 1);
	return mst_reason_fail(g->failure, -EDOM,
			       "rank %" PRIu32
			       ": %s; none of it is sent: call muster_start() again with "
			       "a state that is finite (musterd --guard off lets such values pass)",
			       job->rank, describe(g, "start state", at, value, what));
}
