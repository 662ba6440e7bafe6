/* SPDX-License-Identifier: MIT */
#include "tools/sim/learn/trainer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/kernels/commit.h"
#include "server/core/policy/factor.h"
#include "tools/sim/learn/own.h"
#include "tools/sim/learn/pushes.h"
#include "tools/sim/learn/versions.h"
#include "tools/sim/paced.h"
#include "tools/sim/problem/problem.h"

#define GROUP 8u         /* ranks that are summed as a group: musterd's default of --group */
#define NORM_ELEMS 4096u /* whose squares are summed as a block, as by a server */
#define POINTS 20u       /* of a curve, where its distance is left to the trainer */
#define VECTORS 6u       /* the mean, the states, and versions besides those that are read */

/* The model of a worker, and what is known of the worker's reading. */
struct replica {
	uint32_t incarnation;          /* of the session that it is in */
	uint64_t answers;              /* the worker's answers up to its last act */
	struct mst_sim_version *on;    /* the version that the worker has read last */
	struct mst_sim_version *ahead; /* of the version that its ask was answered with */
	enum mst_sim_stage stage;      /* the worker's stage at its last act */
	uint64_t drawn;                /* gradients that were drawn so far */
	struct mst_sim_own own;
};

struct mst_sim_trainer {
	const struct mst_sim_cfg *cfg;
	struct mst_sim_problem *problem;
	struct mst_sim_versions versions;
	struct mst_sim_pushes pushes;
	struct replica *replica;
	float *state[MST_STATES_MAX];
	float *mean;  /* only where the optimiser has a reduce phase */
	float *moved; /* only where the rate depends on a distance: between two versions */
	struct mst_scale *scale; /* only where the optimiser wants norms of tensors: of each */
	struct mst_leaf *leaf;
	uint32_t leaf_room;
	struct mst_figures figures;
	uint64_t newest; /* version */
	double samples;  /* counted in it and in all before */
	/* For the curve. */
	struct mst_sim_curve *curve;
	struct mst_sim_every every;
	double next;        /* point */
	uint64_t start_ns;  /* of the job */
	double loss, since; /* the sum, and of how many samples, since the last point */
};

/* ---- birth and end ---- */

static uint32_t versions_kept(const struct mst_sim_cfg *cfg)
{
	uint32_t buffers = mst_ledger_buffers(&cfg->ledger), back = cfg->staleness + 1;

	return buffers > back ? buffers : back;
}

uint64_t mst_sim_trainer_bytes(const struct mst_sim_cfg *cfg)
{
	uint64_t workers = cfg->ledger.workers;
	uint64_t set = cfg->tickets > 0 ? cfg->tickets : mst_ledger_entries(&cfg->ledger);
	uint64_t vectors = VECTORS + versions_kept(cfg) + set + workers * (1 + cfg->ledger.slots);

	if (cfg->problem == NULL)
		return 0;
	if (cfg->paced)
		vectors += 3 * workers;
	if (cfg->ledger.distance > 0)
		vectors += 1 + set + workers * cfg->ledger.slots;
	return vectors * cfg->problem->elems * sizeof(float) + workers * sizeof(struct replica);
}

static int make_states(struct mst_sim_trainer *t)
{
	const struct mst_optimizer *o = &t->cfg->ledger.optimizer;
	uint64_t elems = t->problem->elems;

	for (unsigned i = 0; i < MST_STATES_MAX; i++) {
		if (!mst_optimizer_keeps(o, i))
			continue;
		t->state[i] = mst_sim_vector_new(elems);
		if (t->state[i] == NULL)
			return -ENOMEM;
		memset(t->state[i], 0, elems * sizeof(float));
	}
	bool compares = t->cfg->ledger.distance > 0;
	if (mst_optimizer_reduces(o))
		t->mean = mst_sim_vector_new(elems);
	if (compares)
		t->moved = mst_sim_vector_new(elems);
	return (mst_optimizer_reduces(o) && t->mean == NULL) || (compares && t->moved == NULL)
		       ? -ENOMEM
		       : 0;
}

static int make_scales(struct mst_sim_trainer *t)
{
	uint32_t tensors = t->problem->tensors;

	if (!mst_optimizer_trusts(&t->cfg->ledger.optimizer))
		return 0;
	t->scale = calloc(tensors, sizeof(*t->scale));
	if (t->scale == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < tensors; i++)
		t->scale[i] = (struct mst_scale){ t->problem->tensor_end[i], 1, 1, 1 };
	return 0;
}

static int make_parts(struct mst_sim_trainer *t)
{
	uint64_t elems = t->problem->elems;
	uint32_t workers = t->cfg->ledger.workers;
	int rc = mst_sim_versions_init(&t->versions, elems, versions_kept(t->cfg));

	if (rc == 0)
		rc = mst_sim_pushes_init(&t->pushes, &t->versions, workers);
	if (rc == 0)
		rc = make_states(t);
	if (rc == 0)
		rc = make_scales(t);
	t->replica = calloc(workers, sizeof(*t->replica));
	return t->replica != NULL ? rc : -ENOMEM;
}

/* POINTS of them, if the job comes to its end. */
static struct mst_sim_every usual(const struct mst_ledger_cfg *cfg)
{
	double commits = (double)cfg->commits_max / POINTS;

	if (cfg->commits_max > 0)
		return (struct mst_sim_every){ MST_SIM_EVERY_COMMITS, fmax(1, floor(commits)) };
	return (struct mst_sim_every){ MST_SIM_EVERY_SAMPLES, cfg->samples_max / POINTS };
}

int mst_sim_trainer_new(const struct mst_sim_cfg *cfg, struct mst_sim_curve *curve,
			struct mst_sim_trainer **out)
{
	struct mst_sim_trainer *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return -ENOMEM;
	t->cfg = cfg;
	t->problem = cfg->problem;
	t->curve = curve;
	t->every = cfg->every.distance > 0 ? cfg->every : usual(&cfg->ledger);
	mst_optimizer_figures(&cfg->ledger.optimizer, &t->figures);
	int rc = make_parts(t);
	if (rc != 0) {
		mst_sim_trainer_free(t);
		return rc;
	}
	*out = t;
	return 0;
}

static void replica_fini(struct mst_sim_trainer *t, struct replica *r)
{
	mst_sim_version_drop(&t->versions, r->on);
	mst_sim_version_drop(&t->versions, r->ahead);
	mst_sim_own_fini(&r->own);
}

void mst_sim_trainer_free(struct mst_sim_trainer *t)
{
	if (t == NULL)
		return;
	for (uint32_t rank = 0; t->replica != NULL && rank < t->cfg->ledger.workers; rank++)
		replica_fini(t, &t->replica[rank]);
	mst_sim_pushes_fini(&t->pushes);
	mst_sim_versions_fini(&t->versions);
	free(t->moved);
	free(t->scale);
	for (unsigned i = 0; i < MST_STATES_MAX; i++)
		free(t->state[i]);
	free(t->replica);
	free(t->mean);
	free(t->leaf);
	free(t);
}

/* ---- gradients ---- */

/* A seed of its own for every gradient: a bijection of the number, so that no two of a rank and a
 * seed share it (Steele, Lea, Flood 2014, the finaliser of splitmix64). */
static uint64_t mix(uint64_t seed, uint64_t number)
{
	uint64_t z = seed + (number + 1) * UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static double draw(struct mst_sim_trainer *t, uint32_t rank, const float *parameters,
		   uint64_t samples, float *gradient)
{
	struct mst_rand chance;

	mst_rand_seed(&chance, mix(mix(t->cfg->seed, rank), t->replica[rank].drawn++));
	return t->problem->ops->gradient(t->problem, parameters, &chance, samples, gradient);
}

/* ---- workers ---- */

/* The steps that the worker has made on parameters of its own, and that are not computed yet. */
static void make_own_steps(struct mst_sim_trainer *t, const struct mst_sim_worker *w,
			   uint64_t batches)
{
	struct mst_sim_own *own = &t->replica[w->who.rank].own;

	while (own->begun && own->batches < batches) {
		double loss = draw(t, w->who.rank, own->parameters, t->problem->batch,
				   own->gradient);
		mst_sim_own_step(own, loss, t->problem->lr, t->problem->elems);
	}
}

/* The parameters of a worker's own begin with the version that it has read, or become it: not under
 * elastic averaging, and not where it has only waited for a slot. */
static int read_own(struct mst_sim_trainer *t, struct replica *r, const struct mst_sim_worker *w)
{
	uint64_t elems = t->problem->elems;

	if (!mst_sim_paced_is(w))
		return 0;
	if (!r->own.begun)
		return mst_sim_own_begin(&r->own, r->on->at, elems, w->orders.pace.push_every > 0);
	if (r->stage == MST_SIM_STEP)
		mst_sim_own_take(&r->own, r->on->at, elems);
	return 0;
}

/* The worker may have had an answer since it acted last, or have begun a new session. */
static int follow(struct mst_sim_trainer *t, struct replica *r, const struct mst_sim_worker *w)
{
	if (w->who.incarnation != r->incarnation)
		mst_sim_own_reset(&r->own);
	r->incarnation = w->who.incarnation;
	if (w->answers == r->answers)
		return 0;
	r->answers = w->answers;
	MST_ASSERT(r->ahead != NULL);
	mst_sim_version_drop(&t->versions, r->on);
	r->on = r->ahead;
	r->ahead = NULL;
	return read_own(t, r, w);
}

static void tell_norm(const struct mst_sim_trainer *t, const struct mst_sim_push *p,
		      struct mst_lane_header *h)
{
	h->norm = sqrt(mst_isa()->squares(p->data, t->problem->elems));
	h->flags |= MST_HEADER_NORM;
}

static int push(struct mst_sim_trainer *t, const struct mst_sim_worker *w,
		struct mst_lane_header *h)
{
	struct replica *r = &t->replica[w->who.rank];
	struct mst_sim_push *p = mst_sim_pushes_add(&t->pushes, w->who, h->seq);

	if (p == NULL)
		return -ENOMEM;
	p->samples = h->weight;
	if (t->moved != NULL)
		p->read = mst_sim_version_hold(r->on);
	if (r->own.batches > 0)
		p->loss = mst_sim_own_push(&r->own, r->on->at, w->orders.pace.alpha,
					   t->problem->elems, p->data);
	else
		p->loss = draw(t, w->who.rank, r->on->at, (uint64_t)h->weight, p->data);
	if (mst_controller_by_norms(&t->cfg->ledger.controller))
		tell_norm(t, p, h);
	if (!isfinite(p->loss))
		return 0;
	h->loss = p->loss;
	h->flags |= MST_HEADER_LOSS;
	return 0;
}

int mst_sim_trainer_acted(struct mst_sim_trainer *t, const struct mst_sim_worker *w,
			  struct mst_sim_act *act)
{
	struct replica *r = &t->replica[w->who.rank];
	struct mst_lane_header *h = &act->event.full.header;
	bool pushes = act->sends && act->event.kind == MST_EV_FULL && !(h->flags & MST_HEADER_PASS);

	if (act->gave_up)
		mst_sim_own_reset(&r->own);
	if (pushes)
		make_own_steps(t, w, (uint64_t)(h->weight / (double)t->problem->batch + 0.5));
	else
		make_own_steps(t, w, w->micro / w->batch.micro);
	int rc = follow(t, r, w);
	if (rc == 0 && pushes)
		rc = push(t, w, h);
	if (!mst_sim_paced_is(w))
		mst_sim_own_reset(&r->own);
	r->stage = w->stage;
	return rc;
}

/* ---- the curve ---- */

static double reached(const struct mst_sim_trainer *t)
{
	return t->every.unit == MST_SIM_EVERY_COMMITS ? (double)t->newest : t->samples;
}

static int measure(struct mst_sim_trainer *t, uint64_t time_ns)
{
	const float *parameters = mst_sim_versions_at(&t->versions, t->newest)->at;
	struct mst_sim_point point = {
		.time_ns = time_ns,
		.commits = t->newest,
		.samples = t->samples,
		.error = t->problem->ops->error(t->problem, parameters),
		.loss = t->since > 0 ? t->loss / t->since : (double)NAN,
	};

	t->loss = t->since = 0;
	return mst_sim_curve_add(t->curve, &point);
}

/* The points in time that have passed, of the version that was the newest then. */
static int measure_until(struct mst_sim_trainer *t, uint64_t time_ns)
{
	int rc = 0;

	while (rc == 0 && t->every.unit == MST_SIM_EVERY_TIME && t->next < (double)time_ns) {
		struct mst_sim_point again = *mst_sim_curve_end(t->curve);
		bool same = again.commits == t->newest;
		again.time_ns = (uint64_t)t->next;
		again.loss = (double)NAN;
		rc = same ? mst_sim_curve_add(t->curve, &again) : measure(t, (uint64_t)t->next);
		t->next += t->every.distance;
	}
	return rc;
}

static int measure_commit(struct mst_sim_trainer *t, uint64_t time_ns)
{
	if (t->every.unit == MST_SIM_EVERY_TIME || reached(t) < t->next)
		return 0;
	while (t->next <= reached(t))
		t->next += t->every.distance;
	return measure(t, time_ns);
}

int mst_sim_trainer_end(struct mst_sim_trainer *t, uint64_t now_ns)
{
	if (t->curve->count == 0)
		return 0;
	int rc = measure_until(t, now_ns - t->start_ns);
	bool measured = mst_sim_curve_end(t->curve)->commits == t->newest;
	return rc != 0 || measured ? rc : measure(t, now_ns - t->start_ns);
}

/* ---- decisions ---- */

static int start(struct mst_sim_trainer *t, uint64_t now_ns)
{
	struct mst_sim_version *first = mst_sim_versions_add(&t->versions, 0);

	if (first == NULL)
		return -ENOMEM;
	t->problem->ops->start(t->problem, first->at);
	t->start_ns = now_ns;
	t->next = t->every.distance;
	return measure(t, 0);
}

/* How many commits ago the version was made that a worker computes on. In the serial simulation of
 * staleness it grows slowly, as stale gradients do most harm at the beginning. */
static uint64_t age(const struct mst_sim_cfg *cfg, uint64_t version)
{
	uint64_t grown = cfg->staleness_ramp > 0 ? version * cfg->staleness / cfg->staleness_ramp
						 : version;

	grown = grown < version ? grown : version;
	return grown < cfg->staleness ? grown : cfg->staleness;
}

static void answer(struct mst_sim_trainer *t, const struct mst_decision *d)
{
	struct replica *r = &t->replica[d->who.rank];
	uint64_t version = d->answer.version;

	mst_sim_version_drop(&t->versions, r->ahead);
	r->ahead = mst_sim_version_hold(
		mst_sim_versions_at(&t->versions, version - age(t->cfg, version)));
}

/* The rule of TensorFlow counts with a verdict. */
static int judge(struct mst_sim_trainer *t, const struct mst_decision *d)
{
	bool counted = d->verdict.verdict == MUSTER_COUNTED;

	if (!counted)
		mst_sim_pushes_drop(&t->pushes, d->who, d->verdict.seq);
	else if (t->cfg->tickets > 0)
		return mst_sim_pushes_count(&t->pushes, d->who, d->verdict.seq, 1);
	return 0;
}

int mst_sim_trainer_decided(struct mst_sim_trainer *t, const struct mst_decision *d,
			    uint64_t now_ns)
{
	switch (d->kind) {
	case MST_DO_START:
		return start(t, now_ns);
	case MST_DO_COUNT:
		return mst_sim_pushes_count(&t->pushes, d->who, d->count.seq, d->count.coefficient);
	case MST_DO_VERDICT:
		return judge(t, d);
	case MST_DO_RELEASE:
		answer(t, d);
		return 0;
	default:
		return 0;
	}
}

/* ---- commits ---- */

static int gather(struct mst_sim_trainer *t, struct mst_tree *tree)
{
	struct mst_sim_pushes *p = &t->pushes;

	MST_ASSERT(p->set_count > 0);
	if (p->set_count > t->leaf_room) {
		struct mst_leaf *leaf = realloc(t->leaf, p->set_room * sizeof(*leaf));
		if (leaf == NULL)
			return -ENOMEM;
		t->leaf = leaf;
		t->leaf_room = p->set_room;
	}
	mst_sim_pushes_sort(p);
	for (uint32_t i = 0; i < p->set_count; i++) {
		const struct mst_sim_push *of = p->set[i];
		t->leaf[i] = (struct mst_leaf){ of->who.rank, of->coefficient, false, of->data };
		t->loss += of->loss * of->samples;
		t->since += of->samples;
		t->samples += of->samples;
	}
	*tree = (struct mst_tree){ MUSTER_F32, GROUP, t->leaf, p->set_count };
	return 0;
}

/* What the ledger would say of a commit of equals. Return: the divisor. */
static float scalars_of_equals(struct mst_sim_trainer *t, uint64_t version)
{
	const struct mst_ledger_cfg *cfg = &t->cfg->ledger;
	double counted = 0;

	for (uint32_t i = 0; i < t->pushes.set_count; i++)
		counted += t->pushes.set[i]->samples;
	struct mst_lr_scale_of scale = { .linear = cfg->rule.linear,
					 .batch = cfg->rule.batch,
					 .counted = counted,
					 .schedule = &cfg->schedule,
					 .contributions = t->pushes.set_count,
					 .workers = cfg->workers,
					 .samples = t->samples };
	struct mst_optim_version v = { version, mst_lr_scale(&scale) };

	mst_optimizer_scalars(&cfg->optimizer, &v, t->figures.scalar);
	return (float)t->pushes.set_count;
}

/* Adds the squares of a vector in the order in which a server with one shard does. */
static void add_squares(const float *of, uint64_t elems, struct mst_exact_sum *sum)
{
	for (uint64_t at = 0; at < elems; at += NORM_ELEMS) {
		uint64_t left = elems - at;
		mst_exact_add(sum,
			      mst_isa()->squares(of + at, left < NORM_ELEMS ? left : NORM_ELEMS));
	}
}

/* The rate of a version, from how far the parameters have moved since its gradient was computed. */
static void compare(struct mst_sim_trainer *t, const struct mst_sim_version *from,
		    const struct mst_record *record, struct mst_sim_step *out)
{
	const float *read = t->pushes.set[0]->read->at;
	struct mst_lr_scale_of rate = record->rate;

	for (uint64_t i = 0; i < t->problem->elems; i++)
		t->moved[i] = from->at[i] - read[i];
	add_squares(t->moved, t->problem->elems, &out->distance);
	rate.square = mst_exact_value(&out->distance);
	struct mst_optim_version v = { record->version, mst_lr_scale(&rate) };
	mst_optimizer_scalars(&t->cfg->ledger.optimizer, &v, t->figures.scalar);
	out->compared = true;
}

/* As a server does: blocks are those of the whole vector, cut where a tensor ends. */
static void set_trust(struct mst_sim_trainer *t, const struct mst_commit *c)
{
	const struct mst_optimizer *o = &t->cfg->ledger.optimizer;
	float direction[NORM_ELEMS];
	uint64_t at = 0;

	for (uint32_t i = 0; i < t->problem->tensors; i++) {
		struct mst_squares squares = { 0 };
		while (at < t->scale[i].end) {
			uint64_t end = at + NORM_ELEMS - at % NORM_ELEMS;
			struct mst_apply block = { .next = direction,
						   .theta = c->theta + at,
						   .mean = t->mean + at,
						   .figures = &c->figures };
			end = end < t->scale[i].end ? end : t->scale[i].end;
			block.count = (size_t)(end - at);
			for (unsigned s = 0; s < MST_STATES_MAX; s++)
				block.state[s] = c->state[s] != NULL ? c->state[s] + at : NULL;
			mst_optimizer_add_block(o, &block, &squares);
			at = end;
		}
		t->scale[i].trust = mst_optimizer_trust(o, &squares,
							c->figures.parameter[o->row->decay]);
	}
}

/* The mean, whose norm decides by what it is multiplied; or the norms of tensors decide how far
 * each of them moves. */
static void reduce(struct mst_sim_trainer *t, struct mst_commit *c, struct mst_sim_step *out)
{
	uint64_t elems = t->problem->elems;

	c->out = t->mean;
	out->finite = mst_commit_range(c, 0, elems);
	if (t->scale != NULL)
		set_trust(t, c);
	else
		add_squares(t->mean, elems, &out->squares);
	t->leaf[0] = (struct mst_leaf){
		.coefficient = mst_optimizer_factor(&t->cfg->ledger.optimizer, &out->squares),
		.data = t->mean,
	};
	c->tree = (struct mst_tree){ MUSTER_F32, 1, t->leaf, 1 };
	c->divisor = 1;
}

static void step(struct mst_sim_trainer *t, const struct mst_sim_version *from,
		 const struct mst_sim_version *to, struct mst_commit *c, struct mst_sim_step *out)
{
	const struct mst_optimizer *o = &t->cfg->ledger.optimizer;

	out->finite = true;
	out->reduced = t->mean != NULL;
	c->theta = from->at;
	c->figures = t->figures;
	memcpy(c->state, t->state, sizeof(c->state));
	if (out->reduced)
		reduce(t, c, out);
	c->out = c->next = to->at;
	c->apply = o->row->apply;
	c->scale = t->scale;
	c->scales = t->problem->tensors;
	c->decay = o->row->decay;
	out->finite &= mst_commit_range(c, 0, t->problem->elems);
}

int mst_sim_trainer_commit(struct mst_sim_trainer *t, uint64_t version,
			   const struct mst_record *record, uint64_t now_ns,
			   struct mst_sim_step *out)
{
	struct mst_commit c = { .result_type = MUSTER_F32, .divisor = 1 };
	uint32_t points = t->curve->count;
	int rc = measure_until(t, now_ns - t->start_ns);

	if (rc == 0)
		rc = gather(t, &c.tree);
	if (rc != 0)
		return rc;
	c.divisor = record != NULL ? record->divisor : scalars_of_equals(t, version);
	if (record != NULL)
		memcpy(t->figures.scalar, record->scalar, sizeof(t->figures.scalar));
	struct mst_sim_version *from = mst_sim_version_hold(
		mst_sim_versions_at(&t->versions, version - 1));
	*out = (struct mst_sim_step){ .finite = true };
	if (t->moved != NULL)
		compare(t, from, record, out);
	struct mst_sim_version *to = mst_sim_versions_add(&t->versions, version);
	if (to != NULL)
		step(t, from, to, &c, out);
	mst_sim_version_drop(&t->versions, from);
	mst_sim_pushes_clear(&t->pushes);
	t->newest = version;
	rc = to != NULL ? measure_commit(t, now_ns - t->start_ns) : -ENOMEM;
	out->measured = t->curve->count > points;
	out->error = mst_sim_curve_end(t->curve)->error;
	return rc;
}
