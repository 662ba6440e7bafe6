/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/phases/reduce.h"

#include <math.h>
#include <string.h>

#include "common/base/assert.h"

/* How many sums the optimiser needs from each shard. */
static uint32_t norms_of(const struct mst_ledger *l)
{
	if (!mst_optimizer_reduces(&l->cfg.optimizer))
		return 0;
	return mst_optimizer_trusts(&l->cfg.optimizer) ? MST_EDGE_SUMS : 1;
}

/* How many sums each shard reports. The sum of the distance comes last. */
static uint32_t sums_of(const struct mst_ledger *l)
{
	return norms_of(l) + (l->cfg.distance > 0);
}

bool mst_reduce_is_due(const struct mst_ledger *l)
{
	return sums_of(l) > 0 && l->store.newest != MST_VERSION_NONE &&
	       l->reduction.applied != l->store.newest;
}

static void add_edge(struct mst_ledger *l, const struct mst_ledger_event *ev)
{
	uint32_t shard = ev->reduced.shard, sum = ev->reduced.sum;
	struct mst_border *border = l->reduction.border;
	bool right = mst_edge_is_right(sum);

	/* the first shard has no border at its left, the last none at its right */
	if (right ? shard + 1 == l->cfg.shards : shard == 0)
		return;
	border += right ? shard : shard - 1;
	mst_exact_join(mst_edge_of(&border->squares, sum), &ev->reduced.squares);
	if (right)
		border->decay = ev->reduced.decay;
	if (right && shard > 0)
		l->reduction.border[shard - 1].joins = ev->reduced.spans;
}

static void fill_trust(const struct mst_ledger *l, float *trust)
{
	const struct mst_border *border = l->reduction.border;
	uint32_t borders = l->cfg.shards - 1;

	for (uint32_t at = 0; at < borders;) {
		struct mst_squares squares = border[at].squares;
		uint32_t end = at + 1;

		for (; end < borders && border[end - 1].joins; end++)
			mst_squares_join(&squares, &border[end].squares);
		float ratio = mst_optimizer_trust(&l->cfg.optimizer, &squares,
						  border[end - 1].decay);
		for (; at < end; at++)
			trust[at] = ratio;
	}
}

/* A version is made of c g / D for each gradient: the share p times the gradient of a sample, also
 * if the data are a sum over samples. */
static bool sum_norms(const struct mst_record *r, struct mst_commit_norms *out)
{
	double base = 0;

	for (uint32_t i = 0; i < r->entry_count; i++)
		base += r->entry[i].base;
	for (uint32_t i = 0; i < r->entry_count; i++) {
		const struct mst_entry *e = &r->entry[i];
		double p = e->base / base, norm = e->norm * (double)e->coefficient / e->base;
		out->square += p * norm * norm;
		out->concentration += p * p;
	}
	return base > 0 && isfinite(out->square);
}

static void tell_norms(struct mst_ledger *l, uint64_t version, float factor)
{
	const struct mst_record *r = mst_record_of(l, version);

	l->norms = (struct mst_commit_norms){
		.mean_square = mst_exact_value(&l->reduction.squares),
		.factor = (double)factor,
	};
	l->norms.known = r != NULL && sum_norms(r, &l->norms) && isfinite(l->norms.mean_square);
}

/* The distance is known now, and with it the rate of the version. */
static void set_rate(struct mst_ledger *l, uint64_t version, float scalar[MST_SCALARS_MAX])
{
	uint32_t buffer;
	bool found = mst_store_find(&l->store, version, &buffer);

	MST_ASSERT(found); /* it is the newest: none is committed before it is applied */
	struct mst_record *r = &l->record[buffer];
	r->rate.square = mst_exact_value(&l->reduction.distance);
	r->lr_scale = mst_lr_scale(&r->rate);
	mst_optimizer_scalars(&l->cfg.optimizer,
			      &(struct mst_optim_version){ version, r->lr_scale }, r->scalar);
	memcpy(scalar, r->scalar, sizeof(r->scalar));
}

static void apply(struct mst_ledger *l)
{
	struct mst_decision *d = mst_decide(l, MST_DO_APPLY, NULL);
	const struct mst_optimizer *o = &l->cfg.optimizer;
	uint64_t version = l->reduction.applied + 1;

	d->apply.version = version;
	d->apply.factor = norms_of(l) > 0 ? mst_optimizer_factor(o, &l->reduction.squares) : 1;
	if (mst_optimizer_trusts(o))
		fill_trust(l, d->apply.trust);
	else if (norms_of(l) > 0)
		tell_norms(l, version, d->apply.factor);
	if (l->cfg.distance > 0)
		set_rate(l, version, d->apply.scalar);
	l->reduction = (struct mst_reduction){ .applied = version };
}

/* Versions are reduced one after the other, because each shard has memory for one mean. A report
 * that cannot be true now comes from a server that breaks the protocol, and changes nothing. */
void mst_reduce_reported(struct mst_ledger *l, const struct mst_ledger_event *ev)
{
	uint64_t version = ev->reduced.version, all = UINT64_MAX >> (64 - l->cfg.shards);
	struct mst_reduction *r = &l->reduction;
	uint32_t shard = ev->reduced.shard;

	MST_ASSERT(shard < l->cfg.shards && l->cfg.shards <= MST_SERVERS_MAX);
	if (sums_of(l) == 0 || l->phase != MST_PHASE_RUNNING || version != r->applied + 1 ||
	    version > l->store.newest || r->sums[shard] == sums_of(l) ||
	    ev->reduced.sum != r->sums[shard])
		return;
	if (ev->reduced.sum == norms_of(l))
		mst_exact_join(&r->distance, &ev->reduced.squares);
	else if (mst_optimizer_trusts(&l->cfg.optimizer))
		add_edge(l, ev);
	else
		mst_exact_join(&r->squares, &ev->reduced.squares);
	if (++r->sums[shard] == sums_of(l))
		r->reported |= UINT64_C(1) << shard;
	if (r->reported == all)
		apply(l);
}
