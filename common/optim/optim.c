/* SPDX-License-Identifier: MIT */
/* What a row and its parameters mean to the rest of the program. */
#include "common/optim/optim.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "common/kernels/select.h"

#define MOMENTUM "momentum"

uint32_t mst_optim_parameters(const struct mst_optim *row)
{
	uint32_t count = 0;

	while (count < MST_PARAMETERS_MAX && row->parameter[count].name != NULL)
		count++;
	return count;
}

bool mst_optimizer_keeps(const struct mst_optimizer *o, unsigned state)
{
	return o->row != NULL && o->row->state[state].name != NULL &&
	       o->parameter[o->row->state[state].parameter] != 0;
}

uint32_t mst_optimizer_states(const struct mst_optimizer *o)
{
	uint32_t count = 0;

	for (unsigned i = 0; i < MST_STATES_MAX; i++)
		count += mst_optimizer_keeps(o, i);
	return count;
}

bool mst_optimizer_reduces(const struct mst_optimizer *o)
{
	return mst_optimizer_trusts(o) ||
	       (o->row != NULL && o->row->factor != NULL && o->parameter[o->row->reduces] != 0);
}

void mst_optimizer_measure(struct mst_optimizer *o)
{
	if (o->row != NULL && o->row->factor != NULL && o->parameter[o->row->reduces] == 0)
		o->parameter[o->row->reduces] = (double)FLT_MAX;
}

/* Return: its index; -1: the row has none, or one of differences of parameters. */
static int momentum_of(const struct mst_optimizer *o)
{
	for (uint32_t i = 0; o->row != NULL && !o->row->deltas && i < mst_optim_parameters(o->row);
	     i++)
		if (strcmp(o->row->parameter[i].name, MOMENTUM) == 0)
			return (int)i;
	return -1;
}

double mst_optimizer_momentum(const struct mst_optimizer *o)
{
	int at = momentum_of(o);

	return at >= 0 ? o->parameter[at] : 0;
}

void mst_optimizer_leave_momentum(struct mst_optimizer *o, const char *text, double momentum)
{
	int at = momentum_of(o);
	bool needed = false;

	if (at < 0 || strstr(text, MOMENTUM "=") != NULL)
		return;
	for (uint32_t i = 0; i < mst_optim_parameters(o->row); i++) {
		const char *needs = o->row->parameter[i].needs;
		needed |= needs != NULL && strcmp(needs, MOMENTUM) == 0 && o->parameter[i] != 0;
	}
	if (!needed || momentum > 0)
		o->parameter[at] = momentum;
}

double mst_optimizer_rate(const struct mst_optimizer *o)
{
	return o->row != NULL && o->row->scalars != NULL ? o->parameter[0] : 0;
}

/* An optimiser that takes another direction than the mean keeps a state for it. The ones that do so
 * without a state have no `factor`: lars without momentum, and outer and add, which take
 * differences. */
bool mst_optimizer_is_plain(const struct mst_optimizer *o)
{
	return o->row != NULL && o->row->divides && o->row->factor != NULL &&
	       mst_optimizer_states(o) == 0;
}

bool mst_optimizer_trusts(const struct mst_optimizer *o)
{
	return o->row != NULL && o->row->trust != NULL;
}

float mst_optimizer_factor(const struct mst_optimizer *o, const struct mst_exact_sum *squares)
{
	double norm = sqrt(mst_exact_value(squares));

	if (o->row->factor == NULL || !isfinite(norm))
		return 1;
	return (float)o->row->factor(o->parameter[o->row->reduces], norm);
}

void mst_optimizer_add_block(const struct mst_optimizer *o, const struct mst_apply *block,
			     struct mst_squares *sum)
{
	const struct mst_isa *isa = mst_isa();
	mst_apply_fn *direction = o->row->direction[isa->index];

	if (direction != NULL)
		direction(block);
	mst_exact_add(&sum->theta, isa->squares(block->theta, block->count));
	mst_exact_add(&sum->direction,
		      isa->squares(direction != NULL ? block->next : block->mean, block->count));
}

float mst_optimizer_trust(const struct mst_optimizer *o, const struct mst_squares *squares,
			  float decay)
{
	struct mst_norms norms = { .theta = sqrt(mst_exact_value(&squares->theta)),
				   .direction = sqrt(mst_exact_value(&squares->direction)),
				   .decay = (double)decay };

	if (!isfinite(norms.theta) || !isfinite(norms.direction) || norms.theta == 0 ||
	    norms.direction == 0)
		return 1;
	float ratio = (float)o->row->trust(o->parameter, &norms);
	return isfinite(ratio) ? ratio : 1;
}

void mst_optimizer_scalars(const struct mst_optimizer *o, const struct mst_optim_version *v,
			   float *scalar)
{
	double exact[MST_SCALARS_MAX] = { 0 };

	if (o->row != NULL && o->row->scalars != NULL)
		o->row->scalars(o->parameter, v, exact);
	for (unsigned i = 0; i < MST_SCALARS_MAX; i++)
		scalar[i] = (float)exact[i];
}

void mst_optimizer_figures(const struct mst_optimizer *o, struct mst_figures *out)
{
	*out = (struct mst_figures){ 0 };
	for (unsigned i = 0; i < MST_PARAMETERS_MAX; i++)
		out->parameter[i] = (float)o->parameter[i];
}
