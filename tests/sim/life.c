/* SPDX-License-Identifier: MIT */
/* A worker's life: the loop of muster.h, with all the ways a user may go through it. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/actors.h"
#include "tests/sim/servers.h"

/* Beyond what a call is promised to take: it looks again now and then, hears last words, and others
 * have the processor in between. */
#define SLACK_NS (3 * MST_SECOND)
#define TRIES_MAX 40u
/* How long a write may be late. */
#define LATE_NS (50 * MST_MS)

static const struct sim_plan *the_plan;

void life_begin(const struct sim_plan *plan)
{
	the_plan = plan;
}

/* Versions tell the pace until the next one. */
static void hear(struct sim_worker *w, const struct muster_outcome *out)
{
	obs_outcome(&w->seen, out);
	obs_policy_told(&w->seen, muster_job(w->m)->policy);
	if (out->fresh)
		w->pace = out->orders;
}

static bool chance(double probability)
{
	return probability > 0 && sim_chance(probability);
}

/* ---- calls, each watched ---- */

/* A worker knows the lease from its welcome on. Until then the join time alone bounds its open. */
static uint64_t lease_counts_from(const struct sim_worker *w, const char *call, uint64_t began_ns)
{
	if (strcmp(call, "open") != 0)
		return began_ns;
	return w->welcomed_ns != 0 ? w->welcomed_ns : sim_now();
}

static void took(const struct sim_worker *w, const char *call, uint64_t began_ns, uint64_t most_ns)
{
	/* A server that stands still is given up after three leases; one more until it is seen, and
	 * one for the leader to be the first. Only a close has some seconds of its own. */
	uint64_t slack_ns = strcmp(call, "close") == 0 ? SLACK_NS : 100 * MST_MS;
	uint64_t hung_most_ns = 5 * the_plan->lease_ns + w->frozen_ns + slack_ns;

	if (w->process->dead)
		return;
	obs_took(&w->seen, call, sim_now() - began_ns, most_ns + w->frozen_ns + SLACK_NS);
	if (servers_hung_ns(lease_counts_from(w, call, began_ns)) > hung_most_ns)
		obs_violated("rank %" PRIu32 ": %s waits for a server that stands still",
			     w->seen.rank, call);
}

/* Return: rc. */
static int told(const struct sim_worker *w, const char *call, int rc)
{
	if (rc < 0 && !w->process->dead)
		obs_error(&w->seen, call, rc, muster_error(w->m));
	else if (!w->process->dead)
		obs_success(&w->seen, call);
	return rc;
}

static uint64_t wait_most_ns(void)
{
	return the_plan->patience_ns + the_plan->lease_ns + the_plan->generations.patience_ns;
}

/* ---- states ---- */

/* To one that comes back. What is in a state is who had which version. Return: 0; or the error that
 * ended the session. */
static int give_if_wanted(struct sim_worker *w)
{
	if (!the_plan->generations.ranks || w->process->dead || muster_state_wanted(w->m) != 1)
		return 0;
	w->gives = (struct sim_state){ w->seen.last_version, w->seen.last_of };
	int rc = muster_give_state(w->m, &w->gives, sizeof(w->gives));
	return rc == -EAGAIN ? 0 : told(w, "give_state", rc);
}

/* Return: 0, also if a wait tells what has become of the job; or the error that ended the
 * session. */
static int take_state(struct sim_worker *w)
{
	unsigned tries = 0;
	uint64_t version;
	const void *state;
	size_t bytes;
	int rc;

	do {
		uint64_t began_ns = sim_now();
		rc = muster_take_state(w->m, &state, &bytes, &version);
		took(w, "take_state", began_ns, wait_most_ns());
	} while ((rc == -ETIMEDOUT || rc == -EINTR) && ++tries < TRIES_MAX);
	if (w->process->dead)
		return -EPIPE;
	if (rc != 0)
		return rc == -ESHUTDOWN ? 0 : told(w, "take_state", rc);
	struct sim_state taken;
	if (bytes != sizeof(taken)) {
		obs_violated("rank %" PRIu32 " takes a state of %zu bytes", w->seen.rank, bytes);
		return -EPROTO;
	}
	memcpy(&taken, state, sizeof(taken));
	if (taken.version != version)
		obs_violated("rank %" PRIu32 " takes a state of version %" PRIu64
			     " as one of version %" PRIu64,
			     w->seen.rank, taken.version, version);
	obs_takes(&w->seen, version, taken.of);
	return 0;
}

/* ---- joining ---- */

static int try_open(struct sim_worker *w)
{
	struct muster_tensor *tensor = calloc(the_plan->tensors + 1u, sizeof(*tensor));
	struct muster_options opt = MUSTER_OPTIONS;
	uint64_t began_ns = sim_now();

	if (tensor == NULL)
		return told(w, "open", -ENOMEM);
	opt.server = "127.0.0.1:17077";
	opt.job = "sim";
	opt.rank = (int32_t)w->seen.rank;
	opt.elems = the_plan->elems;
	opt.type = the_plan->type;
	opt.result_type = the_plan->result_type;
	opt.owner = the_plan->owner;
	opt.result_into = w->into;
	opt.comes_back = the_plan->generations.ranks;
	opt.join_ms = (uint32_t)(the_plan->join_ns / MST_MS);
	opt.tensor_count = the_plan->tensors;
	for (uint32_t i = 0; i < the_plan->tensors; i++)
		tensor[i] = sim_plan_tensor(the_plan, i);
	opt.tensors = tensor;
	w->welcomed_ns = 0;
	int rc = muster_open(&opt, &w->m);
	free(tensor);
	took(w, "open", began_ns, the_plan->join_ns);
	return rc;
}

/* Not the process's: what is on its way may be written after its death. */
static void make_room_for_results(struct sim_worker *w)
{
	size_t type_bytes = the_plan->result_type == MUSTER_F32 ? 4 : 2;

	w->into = w->manners->into ? sim_alloc(the_plan->elems * type_bytes) : NULL;
}

/* One that comes again may meet what is left of the one before. */
static int open_job(struct sim_worker *w)
{
	make_room_for_results(w);
	int rc = try_open(w);

	for (unsigned i = 0; w->comes_again && (rc == -EEXIST || rc == -EBUSY) && i < TRIES_MAX;
	     i++) {
		sim_sleep(the_plan->lease_ns / 8);
		rc = try_open(w);
	}
	if (rc != 0)
		return told(w, "open", rc);
	w->seen.incarnation = muster_job(w->m)->incarnation;
	obs_verdicts(&w->seen, muster_job(w->m)->verdicts, muster_job(w->m)->verdict_count);
	return 0;
}

static int start(struct sim_worker *w, struct muster_outcome *out)
{
	float *own = NULL;
	int rc = -ETIMEDOUT;

	if (the_plan->owner == MUSTER_SERVERS_OWN) {
		own = malloc(the_plan->elems * sizeof(*own));
		for (uint64_t i = 0; own != NULL && i < the_plan->elems; i++)
			own[i] = obs_start_value(w->seen.rank, i);
	}
	for (unsigned i = 0; i < TRIES_MAX && (rc == -ETIMEDOUT || rc == -EINTR); i++) {
		uint64_t began_ns = sim_now();
		rc = muster_start(w->m, own, out);
		took(w, "start", began_ns, the_plan->join_ns + the_plan->generations.patience_ns);
	}
	free(own);
	w->begins_late = rc == -ESTALE && the_plan->generations.ranks;
	if (w->begins_late)
		return take_state(w);
	if (rc == 0 && !w->process->dead)
		hear(w, out);
	return told(w, "start", rc);
}

/* ---- memory of its own ---- */

static size_t vector_bytes(void)
{
	return the_plan->elems * (the_plan->type == MUSTER_F32 ? 4 : 2);
}

/* Not the process's: what is on its way may be read after its death. */
static int register_own(struct sim_worker *w)
{
	w->own = NULL;
	w->own_state = OWN_FREE;
	if (!w->manners->registers)
		return 0;
	w->own = sim_alloc(vector_bytes());
	return told(w, "register", muster_register(w->m, w->own, vector_bytes()));
}

/* It is the worker's again: a server that still reads it reads rubbish from now on. */
static void own_is_back(struct sim_worker *w)
{
	memset(w->own, 0xa5, vector_bytes());
	w->own_state = OWN_FREE;
}

/* May it compute there? */
static bool has_own(struct sim_worker *w)
{
	if (w->own == NULL)
		return false;
	if (w->own_state != OWN_FREE && muster_released(w->m, 0) == 1)
		own_is_back(w);
	return w->own_state == OWN_FREE;
}

/* A wait has returned: what was pushed before is back by that alone, unless a link was lost, which
 * only the end of the job forgives. After a state that was taken in place of a start the first wait
 * is for what the start has asked for, and what was pushed since then may be on its way. */
static void waited(struct sim_worker *w, bool finished)
{
	bool back = !w->begins_late || muster_released(w->m, 0) == 1;

	if (w->own_state == OWN_PUSHED && !finished && back)
		own_is_back(w);
	w->begins_late = false;
}

static void unregister_own(struct sim_worker *w)
{
	bool back = w->own != NULL && muster_released(w->m, 0) == 1;
	int rc = w->own != NULL ? muster_unregister(w->m, w->own) : 0;

	if (!w->process->dead && rc != 0 && (rc != -EBUSY || back))
		obs_violated("rank %" PRIu32 ": unregister says %d: %s", w->seen.rank, rc,
			     muster_error(w->m));
	if (rc == 0 && w->own != NULL)
		own_is_back(w);
}

/* ---- computing ---- */

static void write_values(const struct sim_worker *w, void *grad, uint64_t first, uint64_t end)
{
	for (uint64_t i = first; i < end; i++) {
		float value = obs_value(w->seen.content, i);
		uint32_t bits;
		memcpy(&bits, &value, sizeof(bits));
		if (the_plan->type == MUSTER_F32)
			memcpy((char *)grad + 4 * i, &bits, 4);
		else
			memcpy((char *)grad + 2 * i, (char *)&bits + 2, 2);
	}
}

/* In the first element. */
static void write_nan(void *grad)
{
	if (the_plan->type == MUSTER_F32)
		memcpy(grad, &(float){ NAN }, sizeof(float));
	else
		memcpy(grad, &(uint16_t){ 0x7fc0 }, sizeof(uint16_t)); /* of bf16 */
}

static int push_piece(struct sim_worker *w, const void *own, uint64_t first, uint64_t end)
{
	size_t at = first * (vector_bytes() / the_plan->elems);
	const void *src = own != NULL ? (const char *)own + at : NULL;

	if (own != NULL)
		w->own_state = OWN_PUSHED;
	return told(w, "push_range", muster_push_range(w->m, first, end - first, src));
}

/* What becomes of a gradient. */
enum gradient { GRADIENT_GIVEN_UP, GRADIENT_DONE, GRADIENT_PARTIAL };

/* In the slot, or in memory of its own, of which every piece is lent. A worker that is asked to
 * hand in writes the rest at once: it is the gradient of fewer samples; or it has none.
 * Return: enum gradient; a negative errno: the session has ended. */
static int compute(struct sim_worker *w, void *slot)
{
	const struct sim_manners *m = w->manners;
	void *own = has_own(w) ? w->own : NULL, *grad = own != NULL ? own : slot;
	uint64_t span_ns = sim_between(m->compute_min_ns, m->compute_max_ns);

	w->seen.content = (uint64_t)w->process->id << 32 | ++w->contents;
	/* What is lent is looked at, and not sent. */
	w->seen.spoils = own == NULL && the_plan->nan_chance > 0 && chance(the_plan->nan_chance);
	bool hands_in = false;
	for (uint32_t piece = 0; piece < m->pieces; piece++) {
		hands_in |= muster_check(w->m) == MUSTER_HAND_IN;
		if (hands_in && piece == 0)
			return GRADIENT_GIVEN_UP;
		uint64_t first = the_plan->elems * piece / m->pieces;
		uint64_t end = the_plan->elems * (piece + 1) / m->pieces;
		if (!hands_in)
			sim_sleep(span_ns / m->pieces + w->dawdle_ns);
		w->dawdle_ns = 0;
		write_values(w, grad, first, end);
		if (w->seen.spoils && piece == 0 && end > first)
			write_nan(grad);
		if (end > first && (own != NULL || chance(m->range_chance))) {
			int rc = push_piece(w, own, first, end);
			if (rc != 0)
				return rc;
		}
		if (muster_check(w->m) == MUSTER_GIVE_UP && chance(0.7))
			return GRADIENT_GIVEN_UP;
	}
	if (chance(m->abandon_chance))
		return GRADIENT_GIVEN_UP;
	return hands_in ? GRADIENT_PARTIAL : GRADIENT_DONE;
}

/* ---- going round ---- */

static void let_go(struct sim_worker *w)
{
	if (!w->process->dead && w->seen.result != NULL)
		obs_lets_go(&w->seen);
}

/* All outcomes that are ready. 0; or the error that ended the session. */
static int wait_for_all(struct sim_worker *w, struct muster_outcome *out)
{
	unsigned tries = 0;
	bool again;
	int rc;

	let_go(w);
	do {
		uint64_t began_ns = sim_now();
		rc = muster_wait(w->m, out);
		took(w, "wait", began_ns, wait_most_ns());
		if (w->process->dead)
			return -EPIPE;
		if (rc >= 0)
			hear(w, out);
		if (rc >= 0)
			waited(w, out->finished);
		if (rc == 1)
			let_go(w);
		bool stale = rc == -ESTALE && the_plan->generations.ranks;
		int took_rc = stale ? take_state(w) : 0;
		if (took_rc != 0)
			return took_rc;
		again = stale || (rc == 1 && !out->finished);
	} while (again || ((rc == -ETIMEDOUT || rc == -EINTR) && ++tries < TRIES_MAX));
	rc = told(w, "wait", rc);
	return rc == 0 ? give_if_wanted(w) : rc;
}

static int push(struct sim_worker *w, bool full, bool *keep)
{
	const struct muster_orders *pace = &w->pace;
	/* it hands over micro-batches, or whole batches, as if it did not know that it might */
	bool part = pace->by_micro && w->manners->pieces > 1 &&
		    ++w->batches % w->manners->pieces != 0;
	struct muster_contribution c = { .size = sizeof(c),
					 .weight = (double)sim_between(1, 1000),
					 .loss = 1,
					 .has_loss = true,
					 .full = full && !part,
					 .part = part,
					 .sum = chance(w->manners->sum_chance),
					 .keep = chance(w->manners->keep_chance) };
	/* Elastic averaging and Downpour ask when they fetch; local steps at each push. */
	if (pace->local_steps > 0 || pace->push_every > 0)
		c.keep = pace->alpha > 0 || pace->push_every > 0;
	c.sum &= pace->local_steps == 0;
	c.loss = c.weight > 500 ? 1 : 64;
	uint64_t ticket;

	*keep = c.keep;
	if (!c.keep)
		let_go(w);
	return told(w, "push", muster_push(w->m, &c, &ticket));
}

static int fetch(struct sim_worker *w, struct muster_outcome *out)
{
	let_go(w);
	int rc = told(w, "pull", muster_pull(w->m));
	return rc != 0 ? rc : wait_for_all(w, out);
}

/* Return: 0, also if it is still on its way; or the error that ended the session. What comes after
 * the end of the job may be lost with its leader. */
static int read_average(struct sim_worker *w)
{
	uint64_t version, began_ns = sim_now();
	const float *average;

	if (!w->average_comes)
		w->seen.average_from = w->seen.last_version;
	int rc = muster_average(w->m, &average, &version);
	w->average_comes = rc == -ETIMEDOUT || rc == -EINTR;
	took(w, "average", began_ns, wait_most_ns());
	if (w->process->dead)
		return -EPIPE;
	if (rc == 0)
		obs_average(&w->seen, average, version);
	return w->average_comes ? 0 : told(w, "average", rc);
}

/* Steps on parameters of the worker's own, and what is asked for before it contributes. What it
 * contributes is made up, as everywhere here. Return: 1: it contributes now. */
static int follow_pace(struct sim_worker *w, struct muster_outcome *out)
{
	struct muster_orders pace = w->pace;
	const struct sim_manners *m = w->manners;

	for (uint32_t i = 1; i < pace.local_steps; i++)
		sim_sleep(sim_between(m->compute_min_ns, m->compute_max_ns) / pace.local_steps);
	if (pace.local_steps > 0 && pace.alpha > 0) {
		int rc = fetch(w, out);
		return rc != 0 || out->finished ? rc : 1;
	}
	if (pace.push_every == 0)
		return 1;
	if (++w->batches % pace.fetch_every == 0) {
		int rc = fetch(w, out);
		if (rc != 0 || out->finished)
			return rc;
	}
	if (w->batches % pace.push_every == 0)
		return 1;
	sim_sleep(sim_between(m->compute_min_ns, m->compute_max_ns));
	return 0;
}

/* One gradient, or none. 0; or the error that ended the session. */
static int go_round(struct sim_worker *w, struct muster_outcome *out)
{
	int rc = follow_pace(w, out);
	if (rc != 1)
		return rc;
	void *grad = muster_gradient(w->m);
	bool keep = false;

	if (grad == NULL) /* all are in flight, or the session has ended: a wait tells */
		return wait_for_all(w, out);
	rc = compute(w, grad);
	if (rc < 0)
		return rc;
	if (rc == GRADIENT_GIVEN_UP && w->own_state == OWN_PUSHED)
		w->own_state = OWN_GIVEN_UP;
	if (rc == GRADIENT_GIVEN_UP) {
		let_go(w); /* a worker asked to hand in passes by it, and a pass is an ask */
		rc = told(w, "abandon", muster_abandon(w->m));
	} else {
		rc = push(w, rc == GRADIENT_DONE, &keep);
	}
	if (rc != 0 || (keep && !chance(w->manners->wait_chance)))
		return rc;
	if (chance(w->manners->pull_chance)) {
		let_go(w);
		rc = told(w, "pull", muster_pull(w->m));
	}
	rc = rc != 0 ? rc : wait_for_all(w, out);
	if (rc != 0 || out->finished || !chance(w->manners->average_chance))
		return rc;
	return read_average(w);
}

/* ---- muster_train() instead ---- */

/* A contribution grows from call to call: the same values, of more samples. */
static int train_compute(void *ctx, void *grad, struct muster_contribution *c)
{
	struct sim_worker *w = ctx;
	const struct sim_manners *m = w->manners;
	uint64_t span_ns = sim_between(m->compute_min_ns, m->compute_max_ns);

	let_go(w);
	if (w->leaves || w->process->dead)
		return -ECANCELED;
	if (c->weight == 0)
		w->seen.content = (uint64_t)w->process->id << 32 | ++w->contents;
	sim_sleep(span_ns / m->pieces + w->dawdle_ns);
	w->dawdle_ns = 0;
	write_values(w, grad, 0, the_plan->elems);
	c->weight += (double)sim_between(1, 300);
	w->batches++;
	c->full = w->batches % m->pieces == 0;
	return 0;
}

static int train_judged(void *ctx, const struct muster_outcome *out)
{
	hear(ctx, out);
	return 0;
}

/* What has a verdict too has been heard of. Return: 1: the job is to end. */
static int train_apply(void *ctx, const struct muster_outcome *out)
{
	struct sim_worker *w = ctx;

	if (out->verdict == MUSTER_NONE)
		hear(w, out);
	if (!w->finishes)
		return 0;
	obs_end_asked();
	return 1;
}

/* 0: the job is over, or the worker leaves. */
static int train(struct sim_worker *w)
{
	struct muster_hooks hooks = MUSTER_HOOKS;
	unsigned tries = 0;
	int rc;

	hooks.ctx = w;
	hooks.compute = train_compute;
	hooks.judged = train_judged;
	hooks.apply = train_apply;
	do {
		rc = muster_train(w->m, &hooks);
	} while ((rc == -ETIMEDOUT || rc == -EINTR) && ++tries < TRIES_MAX);
	return rc == -ECANCELED ? 0 : told(w, "train", rc);
}

static void finish(struct sim_worker *w)
{
	w->finishes = false;
	obs_end_asked();
	(void)told(w, "finish", muster_finish(w->m, "enough"));
}

/* A worker that has heard of the end, or closed the handle, may use the memory for something
 * else. */
static void expect_no_result(const struct sim_worker *w, const char *since)
{
	size_t bytes = the_plan->elems * (the_plan->result_type == MUSTER_F32 ? 4 : 2);

	if (w->into == NULL || w->process->dead)
		return;
	memset(w->into, 0x5a, bytes);
	sim_sleep(LATE_NS);
	for (size_t i = 0; i < bytes && !w->process->dead; i++) {
		if (((const uint8_t *)w->into)[i] == 0x5a)
			continue;
		obs_violated("rank %" PRIu32 ": byte %zu of its result_into is written after %s",
			     w->seen.rank, i, since);
		return;
	}
}

static bool ends_session(int rc)
{
	return rc == -ENOTCONN || rc == -EHOSTDOWN || rc == -ESTALE || rc == -EPROTO;
}

void life_main(void *arg)
{
	struct muster_outcome out = MUSTER_OUTCOME;
	struct sim_worker *w = arg;

	if (!w->comes_again)
		sim_sleep(w->manners->arrives_ns);
	int rc = open_job(w);
	if (rc == 0)
		rc = register_own(w);
	if (rc == 0)
		rc = start(w, &out);
	if (rc == 0 && !out.finished && w->manners->trains) {
		rc = train(w);
		out.finished = true;
	}
	while (rc == 0 && !out.finished && !w->leaves && !w->process->dead) {
		if (w->talks_rubbish)
			faults_rubbish(w);
		if (w->finishes)
			finish(w);
		rc = go_round(w, &out);
	}
	if (w->m != NULL)
		unregister_own(w);
	if (w->m != NULL && ends_session(rc))
		expect_no_result(w, "the end of its session");
	uint64_t began_ns = sim_now();
	struct muster *m = w->m;
	w->scribbles = false;
	w->m = NULL;
	muster_close(m);
	took(w, "close", began_ns, 5 * MST_SECOND);
	expect_no_result(w, "muster_close()");
}
