/* SPDX-License-Identifier: MIT */
#include "tests/unit/client/train_case.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "client/api/handle.h"
#include "common/base/clock.h"
#include "tests/ut.h"

struct train_plan train_plan;
struct train_push train_push[TRAIN_PUSHES];
struct train_seen train_seen;
struct muster_hooks train_hooks;

static unsigned batches_wanted;
static _Atomic unsigned headers, timeouts; /* of the server; of the worker */

/* ---- the server ---- */

static struct {
	float parameters[FAKE_ELEMS];
	uint64_t version;
	unsigned answers;
	uint64_t owed; /* the epoch of a grant that is still to come; 0: none */
} server;

static const char *inbound(const struct fake_leader *f, size_t at)
{
	return (const char *)f->server[0].link->inbound + at;
}

static void move(float by)
{
	for (unsigned i = 0; i < FAKE_ELEMS; i++)
		server.parameters[i] += by;
	server.version++;
}

/* A worker that is to time out first waits here for the next of its timeouts. */
static bool await_timeout(struct fake_leader *f)
{
	while (train_plan.slow && atomic_load(&timeouts) < server.answers) {
		if (atomic_load(&f->released))
			return false;
		fake_turn(f);
	}
	return true;
}

static bool grant(struct fake_leader *f, uint64_t epoch)
{
	struct mst_lane_grant g = { epoch };

	return fake_put(f, f->layout.down_grant[0], &g, sizeof(g),
			mst_imm(MST_IMM_GRANT, 0, epoch));
}

static bool grant_owed(struct fake_leader *f)
{
	uint64_t epoch = server.owed;

	server.owed = 0;
	return epoch == 0 || grant(f, epoch);
}

static bool end(struct fake_leader *f)
{
	struct mst_lane_session word = { .state = MST_SESSION_FINISHED, .version = server.version };

	return fake_put(f, f->layout.down_session[MST_SESSION_OF_JOB], &word, sizeof(word),
			mst_imm(MST_IMM_SESSION, MST_SESSION_OF_JOB, 0));
}

static bool answer(struct fake_leader *f, uint64_t number)
{
	if (!await_timeout(f))
		return false;
	if (!grant_owed(f) || (server.answers + 1 == train_plan.ends_at && !end(f)))
		return false;
	if (server.answers++ > 0 && train_plan.drift != 0)
		move(train_plan.drift);
	uint64_t v = server.version < TRAIN_VERSIONS ? server.version : TRAIN_VERSIONS - 1;
	struct mst_pace pace = train_plan.pace[v];
	struct mst_lane_record record = {
		.version = server.version,
		.alpha = pace.alpha,
		.local_steps = pace.local_steps,
		.push_every = pace.push_every,
		.fetch_every = pace.fetch_every,
		.window = 100,
		.flags = train_plan.until_asked[v] ? MST_RECORD_UNTIL_ASKED : 0,
		.size = MST_RECORD_SIZE,
		.by_micro = train_plan.by_micro[v],
	};
	struct mst_lane_answer a = { number, server.version, server.version, MST_WHERE_COPIED, 0 };

	return fake_put(f, f->layout.down_record, &record, sizeof(record), 0) &&
	       fake_put(f, f->layout.down_result, server.parameters, sizeof(server.parameters),
			0) &&
	       fake_put(f, f->layout.down_answer, &a, sizeof(a), mst_imm(MST_IMM_ANSWER, 0, 0));
}

static float value_of(const struct fake_leader *f)
{
	float g[FAKE_ELEMS];

	memcpy(g, inbound(f, mst_lane_gradient(&f->layout, 0, f->welcome.rank)), sizeof(g));
	for (unsigned i = 1; i < FAKE_ELEMS; i++)
		if (g[i] != g[0])
			return NAN;
	return g[0];
}

static bool judge(struct fake_leader *f, const struct train_push *p, enum muster_verdict verdict)
{
	struct mst_lane_verdict v = { .ticket = p->header.seq, .verdict = (uint32_t)verdict };

	if (verdict == MUSTER_COUNTED) {
		move(train_plan.factor * p->value);
		v.counted_in = server.version;
	}
	return fake_put(f, f->layout.down_verdict[0], &v, sizeof(v),
			mst_imm(MST_IMM_VERDICT, 0, 0));
}

static bool hear_header(struct fake_leader *f)
{
	unsigned n = atomic_load(&headers);

	if (n == TRAIN_PUSHES)
		return false;
	struct train_push *p = &train_push[n];
	memcpy(&p->header, inbound(f, f->layout.up_header[0]), sizeof(p->header));
	bool passes = p->header.flags & MST_HEADER_PASS;
	p->value = passes ? 0 : value_of(f);
	enum muster_verdict verdict = train_plan.verdict[n];
	bool well = passes || judge(f, p, verdict == MUSTER_NONE ? MUSTER_COUNTED : verdict);
	server.owed = p->header.epoch + 1;
	if (!train_plan.lazy)
		well = well && grant_owed(f);
	atomic_store(&headers, n + 1);
	return well && (!(p->header.flags & MST_HEADER_ASK) || answer(f, p->header.ask.number));
}

static bool hear_ask(struct fake_leader *f)
{
	struct mst_lane_lone_ask lone;

	memcpy(&lone, inbound(f, f->layout.up_ask), sizeof(lone));
	return answer(f, lone.ask.number);
}

static bool serve(struct fake_leader *f)
{
	bool well = fake_link(f) && fake_hear(f, MST_MSG_START) && answer(f, 1);
	uint32_t imm;

	while (well && fake_arrival(f, &imm))
		well = mst_imm_kind(imm) == MST_IMM_HEADER ? hear_header(f) : hear_ask(f);
	return well;
}

/* ---- the worker ---- */

static int compute(void *ctx, void *grad, struct muster_contribution *c)
{
	const float *parameters = muster_parameters(client_handle);
	float *g = grad;

	(void)ctx;
	if (train_seen.computed == batches_wanted)
		return -ECANCELED;
	train_seen.parameters[train_seen.computed++] = parameters[FAKE_ELEMS - 1];
	for (unsigned i = 0; i < FAKE_ELEMS; i++)
		g[i] = (float)train_seen.computed;
	c->weight += 1;
	c->loss = 10 * train_seen.computed;
	c->has_loss = c->full = true;
	return 0;
}

static int local(void *ctx, void *grad)
{
	float *x = muster_parameters(client_handle);
	const float *g = grad;

	(void)ctx;
	for (unsigned i = 0; i < FAKE_ELEMS; i++)
		x[i] -= g[i] / 2;
	return 0;
}

static int apply(void *ctx, const struct muster_outcome *out)
{
	(void)ctx;
	train_seen.result[train_seen.applied++] = ((const float *)out->result)[FAKE_ELEMS - 1];
	return 0;
}

static int judged(void *ctx, const struct muster_outcome *out)
{
	(void)ctx;
	train_seen.ticket[train_seen.judged] = out->ticket;
	train_seen.verdict[train_seen.judged++] = out->verdict;
	return 0;
}

void train_prepare(void)
{
	train_plan = (struct train_plan){ .factor = 1 };
	train_seen = (struct train_seen){ 0 };
	train_hooks = (struct muster_hooks)MUSTER_HOOKS;
	train_hooks.compute = compute;
	train_hooks.local = local;
	train_hooks.apply = apply;
	train_hooks.judged = judged;
	batches_wanted = TRAIN_CALLS;
	server.version = server.answers = 0;
	server.owed = 0;
	for (unsigned i = 0; i < FAKE_ELEMS; i++)
		server.parameters[i] = TRAIN_START;
	atomic_store(&headers, 0);
	atomic_store(&timeouts, 0);
}

void train_open(void)
{
	CU_ASSERT_EQUAL_FATAL(client_open(serve, CLIENT_LONG_MS), 0);
}

void train_begin(void)
{
	client_begin(serve);
}

int train_run(void)
{
	int rc;

	do {
		rc = muster_train(client_handle, &train_hooks);
		train_seen.timeouts += rc == -ETIMEDOUT;
		atomic_store(&timeouts, train_seen.timeouts);
	} while (rc == -ETIMEDOUT && client_took_ms() < CLIENT_LONG_MS);
	return rc;
}

void train_batches(unsigned batches)
{
	batches_wanted = batches;
	CU_ASSERT_EQUAL(train_run(), -ECANCELED);
	CU_ASSERT_EQUAL(train_seen.computed, batches);
}

void train_await(unsigned wanted)
{
	uint64_t until_ns = mst_now_ns() + CLIENT_LONG_MS * MST_MS;

	while (atomic_load(&headers) < wanted && mst_now_ns() < until_ns)
		mst_sleep_ns(MST_MS);
	CU_ASSERT_EQUAL(atomic_load(&headers), wanted);
}

void train_hint(uint64_t version, bool hand_in)
{
	/* The word lies in memory that the server puts to. */
	_Atomic uint64_t *word = (_Atomic uint64_t *)(uintptr_t)client_handle->hint.word;

	atomic_store(word, mst_hint_word(version, hand_in));
}
