/* SPDX-License-Identifier: MIT */
#include "tools/sim/learn/own.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "tools/sim/learn/versions.h"

static int allocate(struct mst_sim_own *o, uint64_t elems)
{
	if (o->parameters != NULL)
		return 0;
	o->parameters = mst_sim_vector_new(elems);
	o->sum = mst_sim_vector_new(elems);
	o->gradient = mst_sim_vector_new(elems);
	if (o->parameters != NULL && o->sum != NULL && o->gradient != NULL)
		return 0;
	mst_sim_own_fini(o);
	return -ENOMEM;
}

int mst_sim_own_begin(struct mst_sim_own *o, const float *version, uint64_t elems, bool accrues)
{
	int rc = allocate(o, elems);

	if (rc != 0)
		return rc;
	mst_sim_own_reset(o);
	o->begun = true;
	o->accrues = accrues;
	mst_sim_own_take(o, version, elems);
	return 0;
}

void mst_sim_own_fini(struct mst_sim_own *o)
{
	free(o->parameters);
	free(o->sum);
	free(o->gradient);
	*o = (struct mst_sim_own){ .begun = false };
}

void mst_sim_own_reset(struct mst_sim_own *o)
{
	o->begun = false;
	o->batches = 0;
	o->loss = 0;
}

void mst_sim_own_take(struct mst_sim_own *o, const float *version, uint64_t elems)
{
	memcpy(o->parameters, version, elems * sizeof(float));
}

void mst_sim_own_step(struct mst_sim_own *o, double loss, double lr, uint64_t elems)
{
	float rate = (float)lr;

	for (uint64_t i = 0; i < elems; i++)
		o->parameters[i] -= rate * o->gradient[i];
	for (uint64_t i = 0; o->accrues && i < elems; i++)
		o->sum[i] = o->batches > 0 ? o->sum[i] + o->gradient[i] : o->gradient[i];
	o->batches++;
	o->loss += loss;
}

/* Zhang, Choromanska, LeCun 2015, algorithm 1. */
static void write_elastic(struct mst_sim_own *o, const float *centre, float alpha, uint64_t elems,
			  float *out)
{
	for (uint64_t i = 0; i < elems; i++) {
		out[i] = alpha * (o->parameters[i] - centre[i]);
		o->parameters[i] -= out[i];
	}
}

double mst_sim_own_push(struct mst_sim_own *o, const float *version, double alpha, uint64_t elems,
			float *out)
{
	double loss = o->loss / (double)o->batches;

	MST_ASSERT(o->batches > 0);
	if (o->accrues)
		memcpy(out, o->sum, elems * sizeof(float));
	else if (alpha > 0)
		write_elastic(o, version, (float)alpha, elems, out);
	else
		for (uint64_t i = 0; i < elems; i++)
			out[i] = o->parameters[i] - version[i];
	o->batches = 0;
	o->loss = 0;
	return loss;
}
