/* SPDX-License-Identifier: MIT */
/*
 * A worker of the system tests. It pushes values that anybody can compute again from (rank,
 * incarnation, ticket, element), sleeps as it is told, and writes all it did and saw to a log of
 * lines; check_history.py proves from the logs of all workers that every version is what PROTOCOL 5
 * says over its set, and that every ticket got one verdict.
 *
 *   test_worker LOG ELEMS [key=value ...]
 *   type result_type f32|bf16|f16   owner servers|workers   rounds N   sleep_us N   sum 0|1
 *   weights 0|1 (vary with the ticket)   keep N (every N-th push keeps)   abandon N
 *   finish 1 (finish the job after the rounds instead of leaving)   start 0|1 (offer a state)
 *   ranges N (push in N ranges of own memory)   registered 1 (that memory is registered)
 *   into 1 (results go to memory of its own, which is also the state that it offers)
 *   die N (kill -9 itself after N pushes)       stop N (SIGSTOP itself after N pushes)
 *   clip C (options.clip)
 *   RANK:key=value (for that rank only)
 *   mute N (the first N pushes keep, and nothing waits for them)
 *   again 1 (it comes after a session that has ended: it waits for its rank, and does not die)
 *   loss N (it tells a loss, which is N / (1 + the version that it has))
 *   weight X, told X (each push has this weight; tells this loss)
 *   nan N, big N (push N has NaN; what no f16 can hold)
 *   damage N (a bit of push N is changed in the slot, after its ranges have been handed over)
 *   start_nan 1 (the first start state that it offers has NaN)
 *   until FILE (rounds go on until there is such a file)
 *   slow_while FILE, slow_us N (while there is such a file, it sleeps so long instead)
 *   sees late|stale (and until one of its pushes has had that verdict)
 *   tensors N (it gives a table of N tensors, t0, t1 ...)
 *   scales 1 (they have scales other than 1)   rename 1 (they have other names)
 *   by_version 1 (values are of the version that they are computed on, not of session and ticket:
 *   a job that is interrupted under bsp has the same as one that is not)
 *   average N (after every N-th round, and after the last outcome, it gets the average and appends
 *   it to LOG.average.RANK: the version as u64, and f32[elems]; 0: never)
 *   die_asking 1, stop_asking 1 (kill -9, SIGSTOP itself when it has asked for an average that has
 *   not come yet)
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/kernels/sum.h"
#include "muster/muster.h"
#include "tests/system/programs/history.h"
#include "tests/system/programs/values.h"

#define PATIENCE_MS 60000

struct logged_worker {
	struct history *log;
	uint64_t elems, rounds, sleep_us, slow_us, keep, abandon, ranges, die, stop, mute;
	uint64_t tensors, loss;
	uint64_t nan, big; /* the ticket whose gradient has such a value; 0: none */
	uint64_t damage;   /* the ticket whose gradient is changed on its way; 0: none */
	uint64_t average;  /* it gets the average every so many rounds; 0: never */
	bool die_asking, stop_asking;
	FILE *averages;
	enum muster_type type, result_type;
	enum muster_owner owner;
	bool sum, weights, finish, start, start_nan, again, registered, into, scales, rename;
	bool by_version;
	const char *until, *slow_while;
	enum muster_verdict sees;  /* the rounds go on until it has; MUSTER_NONE: at once */
	double clip, weight, told; /* 0: none */
	struct muster *m;
	float *values;
	void *own;     /* the gradient in its type, where ranges are pushed from own memory */
	void *results; /* options.result_into; NULL: none */
};

static int failed(const struct logged_worker *c, const char *call, int rc)
{
	history_error(c->log, call, rc);
	fprintf(stderr, "test_worker: %s: %s\n", call, muster_error(c->m));
	return rc;
}

/* Nothing is lost: what was waited for may still come. */
static bool may_wait_on(const struct logged_worker *c, const char *call, int rc)
{
	if (rc == -ETIMEDOUT)
		fprintf(stderr, "test_worker: %s: %s\n", call, muster_error(c->m));
	return rc == -ETIMEDOUT || rc == -EINTR;
}

/* Every outcome that is due. Return: 0, 1 finished, or what failed. */
static int take_outcomes(struct logged_worker *c, struct muster_outcome *out)
{
	int rc;

	do {
		do {
			rc = muster_wait(c->m, out);
		} while (may_wait_on(c, "wait", rc));
		if (rc < 0)
			return failed(c, "wait", rc);
		history_outcome(c->log, out);
		if (out->verdict == c->sees)
			c->sees = MUSTER_NONE;
		if (out->finished)
			return 1;
	} while (rc == 1);
	return 0;
}

static int push_ranges(const struct logged_worker *c)
{
	uint64_t step = (c->elems + c->ranges - 1) / c->ranges;

	for (uint64_t first = 0; first < c->elems; first += step) {
		uint64_t count = c->elems - first < step ? c->elems - first : step;
		const char *src = (const char *)c->own + first * mst_type_bytes(c->type);
		int rc = muster_push_range(c->m, first, count, src);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* As the first session's ticket would be under bsp. */
static void fill_by_version(const struct logged_worker *c, uint64_t version)
{
	values_fill(c->values, c->elems, muster_job(c->m)->rank, 1, version + 1);
}

/* The data of the ticket; one that is to be spoilt has NaN, or what no f16 holds, near its end. */
static void compute(const struct logged_worker *c, uint64_t tag, uint64_t ticket)
{
	const struct muster_job *job = muster_job(c->m);

	if (c->by_version)
		fill_by_version(c, tag);
	else
		values_fill(c->values, c->elems, job->rank, job->incarnation, ticket);
	if (c->nan == ticket)
		c->values[c->elems - 7] = NAN;
	if (c->big == ticket)
		c->values[c->elems - 7] = 1e6f;
}

/* The library has refused the data: nothing has been pushed, and this worker goes on. */
static int refused(struct logged_worker *c, uint64_t expect)
{
	fprintf(stderr, "test_worker: refused: %s\n", muster_error(c->m));
	history_void(c->log, expect);
	c->nan = 0;
	return 0;
}

/* Return: 1 pushed; 0 not, but what is next may be; or what failed. */
static int push(struct logged_worker *c, uint64_t tag, uint64_t expect)
{
	const struct muster_job *job = muster_job(c->m);
	struct muster_contribution say = {
		.size = sizeof(say), .weight = 1, .sum = c->sum, .full = true
	};
	uint64_t ticket = 0;
	int rc = 0;

	if (c->weights)
		say.weight = 1 + (double)((job->rank + expect) % 5);
	if (c->weight != 0)
		say.weight = c->weight;
	say.has_loss = c->loss != 0 || c->told != 0;
	say.loss = c->told != 0 ? c->told : (double)c->loss / (double)(1 + tag);
	say.keep = expect <= c->mute || (c->keep != 0 && expect % c->keep == 0);
	compute(c, tag, expect);
	void *gradient = muster_gradient(c->m);
	for (int i = 0; gradient == NULL && expect <= c->mute && i < PATIENCE_MS; i++) {
		usleep(1000);
		gradient = muster_gradient(c->m);
	}
	if (gradient == NULL)
		return failed(c, "gradient", -EAGAIN);
	mst_sum_store(c->ranges != 0 ? c->own : gradient, c->type, c->values, c->elems);
	if (c->ranges != 0)
		rc = push_ranges(c);
	history_push(c->log, expect, tag, &say);
	if (c->damage == expect)
		*(unsigned char *)gradient ^= 1;
	if (rc == 0)
		rc = muster_push(c->m, &say, &ticket);
	if (rc == -EDOM)
		return refused(c, expect);
	if (rc != 0)
		return failed(c, "push", rc);
	if (ticket == 0)
		history_void(c->log, expect);
	return ticket == expect || ticket == 0 ? 1 : failed(c, "ticket", -EPROTO);
}

/* Gets the average, if that is due, and writes it down. Return: 0, or what failed. */
static int get_average(struct logged_worker *c)
{
	const float *average;
	uint64_t version;
	int rc;

	do {
		rc = muster_average(c->m, &average, &version);
		if (rc == -ETIMEDOUT && c->die_asking)
			raise(SIGKILL);
		if (rc == -ETIMEDOUT && c->stop_asking)
			raise(SIGSTOP);
	} while (may_wait_on(c, "average", rc));
	if (rc != 0)
		return failed(c, "average", rc);
	bool written = fwrite(&version, sizeof(version), 1, c->averages) == 1 &&
		       fwrite(average, sizeof(float), c->elems, c->averages) == c->elems;
	return written && fflush(c->averages) == 0 ? 0 : failed(c, "average", -EIO);
}

static int round_of(struct logged_worker *c, uint64_t *next_ticket, struct muster_outcome *out)
{
	bool slow = c->slow_while != NULL && access(c->slow_while, F_OK) == 0;
	uint64_t sleep_us = slow ? c->slow_us : c->sleep_us;

	if (sleep_us > 0)
		usleep((useconds_t)sleep_us);
	if (c->abandon != 0 && *next_ticket % c->abandon == 0 && muster_gradient(c->m) != NULL) {
		int rc = muster_abandon(c->m);
		if (rc != 0)
			return failed(c, "abandon", rc);
		rc = take_outcomes(c, out);
		if (rc != 0)
			return rc;
	}
	int rc = push(c, out->version, *next_ticket);
	if (rc <= 0)
		return rc < 0 ? rc : take_outcomes(c, out);
	if (c->die != 0 && *next_ticket == c->die)
		raise(SIGKILL);
	if (c->stop != 0 && *next_ticket == c->stop)
		raise(SIGSTOP);
	return (*next_ticket)++ < c->mute ? 0 : take_outcomes(c, out);
}

/* The state that it offers; one that is refused is offered again, as it should be. */
static int start(struct logged_worker *c, struct muster_outcome *out)
{
	values_fill(c->values, c->elems, 999, 0, 0);
	if (c->start_nan)
		c->values[c->elems - 7] = NAN;
	void *state = c->results != NULL ? c->results : c->own;
	mst_sum_store(state, c->result_type, c->values, c->elems);
	int rc;

	do {
		rc = muster_start(c->m, c->start ? state : NULL, out);
	} while (may_wait_on(c, "start", rc));
	if (rc != -EDOM || !c->start_nan)
		return rc;
	fprintf(stderr, "test_worker: refused: %s\n", muster_error(c->m));
	c->start_nan = false;
	return start(c, out);
}

static bool goes_on(const struct logged_worker *c, uint64_t rounds)
{
	if (c->sees != MUSTER_NONE)
		return true;
	return (c->rounds == 0 || rounds < c->rounds) &&
	       (c->until == NULL || access(c->until, F_OK) != 0);
}

static int work(struct logged_worker *c)
{
	struct muster_outcome out = MUSTER_OUTCOME;
	uint64_t ticket = 1;
	int rc = start(c, &out);

	if (rc != 0)
		return failed(c, "start", rc);
	if (c->by_version && out.version != muster_job(c->m)->first_version)
		return failed(c, "the first version", -EPROTO);
	if (c->registered)
		rc = muster_register(c->m, c->own, c->elems * sizeof(float));
	if (rc != 0)
		return failed(c, "register", rc);
	history_outcome(c->log, &out);
	for (uint64_t i = 0; rc == 0 && goes_on(c, i); i++) {
		rc = round_of(c, &ticket, &out);
		if (rc == 0 && c->average != 0 && (i + 1) % c->average == 0)
			rc = get_average(c);
	}
	if (rc == 0 && c->finish) {
		rc = muster_finish(c->m, "rounds are done");
		if (rc != 0)
			return failed(c, "finish", rc);
		while (rc == 0)
			rc = take_outcomes(c, &out);
	}
	if (rc == 1 && c->average != 0)
		rc = get_average(c);
	return rc < 0 ? rc : 0;
}

static enum muster_type type_of(const char *name)
{
	return strcmp(name, "bf16") == 0  ? MUSTER_BF16
	       : strcmp(name, "f16") == 0 ? MUSTER_F16
					  : MUSTER_F32;
}

/* "key=value", or "RANK:key=value" for one rank. */
static void set(struct logged_worker *c, const char *text)
{
	const char *colon = strchr(text, ':');
	const char *rank = getenv("MUSTER_RANK");

	if (colon != NULL) {
		size_t len = (size_t)(colon - text);
		if (rank == NULL || strlen(rank) != len || strncmp(text, rank, len) != 0)
			return;
		text = colon + 1;
	}
	const char *value = strchr(text, '=');
	size_t len = value != NULL ? (size_t)(value++ - text) : 0;
	const struct {
		const char *name;
		uint64_t *field;
	} numbers[] = {
		{ "rounds", &c->rounds }, { "sleep_us", &c->sleep_us }, { "slow_us", &c->slow_us },
		{ "keep", &c->keep },     { "abandon", &c->abandon },   { "ranges", &c->ranges },
		{ "die", &c->die },       { "stop", &c->stop },         { "mute", &c->mute },
		{ "nan", &c->nan },       { "big", &c->big },           { "tensors", &c->tensors },
		{ "loss", &c->loss },     { "damage", &c->damage },     { "average", &c->average }
	};
	const struct {
		const char *name;
		bool *field;
	} flags[] = { { "sum", &c->sum },
		      { "weights", &c->weights },
		      { "finish", &c->finish },
		      { "start", &c->start },
		      { "start_nan", &c->start_nan },
		      { "again", &c->again },
		      { "registered", &c->registered },
		      { "into", &c->into },
		      { "scales", &c->scales },
		      { "rename", &c->rename },
		      { "by_version", &c->by_version },
		      { "die_asking", &c->die_asking },
		      { "stop_asking", &c->stop_asking } };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (strlen(numbers[i].name) == len && strncmp(text, numbers[i].name, len) == 0)
			*numbers[i].field = strtoull(value, NULL, 10);
	}
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (strlen(flags[i].name) == len && strncmp(text, flags[i].name, len) == 0)
			*flags[i].field = strcmp(value, "1") == 0;
	}
	if (strncmp(text, "type=", 5) == 0)
		c->type = type_of(value);
	if (strncmp(text, "result_type=", 12) == 0)
		c->result_type = type_of(value);
	if (strcmp(text, "owner=workers") == 0)
		c->owner = MUSTER_WORKERS_OWN;
	if (strncmp(text, "clip=", 5) == 0)
		c->clip = strtod(value, NULL);
	if (strncmp(text, "weight=", 7) == 0)
		c->weight = strtod(value, NULL);
	if (strncmp(text, "told=", 5) == 0)
		c->told = strtod(value, NULL);
	if (strncmp(text, "until=", 6) == 0)
		c->until = value;
	if (strncmp(text, "slow_while=", 11) == 0)
		c->slow_while = value;
	if (strncmp(text, "sees=", 5) == 0)
		c->sees = strcmp(value, "late") == 0 ? MUSTER_LATE : MUSTER_STALE;
}

#define NAME_LEN 24u

/* As the checker has them (history.py). */
static void scale(struct muster_tensor *tensor, uint64_t number)
{
	static const float lr[] = { 1, 0.5f, 0, 2 }, decay[] = { 1, 0, 3 };

	tensor->lr_scale = lr[number % 4];
	tensor->decay_scale = tensor->lr_scale == 0 ? 1 : decay[number % 3];
}

/* Tensors as long as each other, but for what is left over. */
static struct muster_tensor *tensors_of(const struct logged_worker *c)
{
	struct muster_tensor *table = calloc(c->tensors, sizeof(*table) + NAME_LEN);
	char *name = (char *)(table + c->tensors);

	for (uint64_t i = 0; table != NULL && i < c->tensors; i++, name += NAME_LEN) {
		uint64_t first = c->elems * i / c->tensors;
		uint64_t end = c->elems * (i + 1) / c->tensors;
		(void)snprintf(name, NAME_LEN, "%c%" PRIu64, c->rename ? 'u' : 't', i);
		table[i] = (struct muster_tensor){ name, first, end - first, 1, 1 };
		if (c->scales)
			scale(&table[i], i);
	}
	return table;
}

/* Tries for a while, where the rank may still be another session's. */
static int open_job(struct logged_worker *c)
{
	struct muster_tensor *table = tensors_of(c);
	struct muster_options opt = MUSTER_OPTIONS;

	opt.elems = c->elems;
	opt.type = c->type;
	opt.result_type = c->result_type;
	opt.owner = c->owner;
	opt.tensors = table;
	opt.tensor_count = (uint32_t)c->tensors;
	opt.clip = c->clip;
	if (c->die_asking || c->stop_asking)
		opt.wait_ms = 1;
	if (c->into)
		opt.result_into = c->results = malloc(c->elems * mst_type_bytes(c->result_type));
	int rc = muster_open(&opt, &c->m);
	for (int i = 0; c->again && (rc == -EEXIST || rc == -EBUSY) && i < PATIENCE_MS; i++) {
		usleep(1000);
		rc = muster_open(&opt, &c->m);
	}
	free(table);
	return rc;
}

int main(int argc, char **argv)
{
	struct logged_worker c = { .start = true };

	if (argc < 3) {
		fprintf(stderr, "usage: test_worker LOG ELEMS [key=value ...]\n");
		return 2;
	}
	c.elems = strtoull(argv[2], NULL, 10);
	for (int i = 3; i < argc; i++)
		set(&c, argv[i]);
	int rc = open_job(&c);
	if (c.again)
		c.mute = c.die = c.stop = 0;
	if (rc != 0) {
		fprintf(stderr, "test_worker: open: %s\n", muster_error(NULL));
		return 1;
	}
	const struct muster_job *job = muster_job(c.m);
	c.log = history_open(argv[1], job, 0);
	c.values = calloc(c.elems, sizeof(float));
	c.own = calloc(c.elems, sizeof(float));
	if (c.log == NULL || c.values == NULL || c.own == NULL)
		return 1;
	if (c.average != 0) {
		char path[4096];
		(void)snprintf(path, sizeof(path), "%s.average.%" PRIu32, argv[1], job->rank);
		c.averages = fopen(path, "wb");
		if (c.averages == NULL)
			return 1;
	}
	rc = work(&c);
	muster_close(c.m);
	history_end(c.log, rc);
	if (c.averages != NULL)
		(void)fclose(c.averages);
	free(c.values);
	free(c.own);
	free(c.results);
	return rc == 0 ? 0 : 1;
}
