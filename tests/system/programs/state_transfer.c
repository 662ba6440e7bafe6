/* SPDX-License-Identifier: MIT */
/*
 * A worker that owns its parameters and comes back:
 *
 *	state_transfer LOG [WORD]...
 *
 * It writes to LOG.RANK.INCARNATION a line for each thing that happens: "version V CHECKSUM" when
 * it has applied a version, "stale", "took V BYTES", "gave V in MS ms, MS ms of a processor",
 * "error RC SENTENCE", "finished V of LAST".
 *
 *   elems=N        the vector
 *   pad=BYTES      its state is so much longer
 *   pause_ms=MS    a gradient takes so long
 *   until=FILE     rank teller, 0 if not given, ends the job when FILE is there
 *   teller=RANK
 *   hold=FILE      when it has version hold_at, it stands still until FILE is there
 *   hold_at=V
 *   hold_take=FILE before it takes a state for the first time, it waits until FILE is there
 *   die_giving=FILE the first of all workers that gives a state with this FILE is killed then
 *   short=1        it gives one byte more than the server takes, at first
 *   silent=1       it never says that it gives a state
 *   plain=1        it does not come back
 *   none=1         it gives nothing when it is asked
 *   lag=FILE       before it takes a state for the n-th time, it waits until there is FILE.n
 *   misuse=1       it gives and takes where nothing is wanted, and tells what is said
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <muster/muster.h>

#include "common/base/clock.h"

struct own_state {
	uint64_t version;
	float value[]; /* parameters, and after them the momentum */
};

static struct {
	const char *log, *until, *hold, *hold_take, *die_giving, *lag;
	uint64_t elems, pad, hold_at, teller;
	uint64_t pause_ms, is_short, silent, none, plain, misuse;
	struct muster *muster;
	struct own_state *state;
	size_t bytes; /* of the state, without the pad */
	FILE *out;
} self = { .elems = 1000, .pause_ms = 5 };

static void nap(uint64_t ms)
{
	struct timespec t = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };

	(void)nanosleep(&t, NULL);
}

static double now_ms(void)
{
	return (double)mst_now_ns() / 1e6;
}

/* How long this thread has kept a processor busy. */
static double busy_ms(void)
{
	struct rusage u;

	(void)getrusage(RUSAGE_THREAD, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

static bool is_there(const char *file)
{
	return access(file, F_OK) == 0;
}

static int read_word(const char *word)
{
	static const struct {
		const char *name;
		uint64_t *number;
		const char **file;
	} words[] = {
		{ "elems=", &self.elems, NULL },
		{ "pad=", &self.pad, NULL },
		{ "teller=", &self.teller, NULL },
		{ "pause_ms=", &self.pause_ms, NULL },
		{ "hold_at=", &self.hold_at, NULL },
		{ "short=", &self.is_short, NULL },
		{ "silent=", &self.silent, NULL },
		{ "plain=", &self.plain, NULL },
		{ "misuse=", &self.misuse, NULL },
		{ "none=", &self.none, NULL },
		{ "lag=", NULL, &self.lag },
		{ "until=", NULL, &self.until },
		{ "hold=", NULL, &self.hold },
		{ "hold_take=", NULL, &self.hold_take },
		{ "die_giving=", NULL, &self.die_giving },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t len = strlen(words[i].name);
		if (strncmp(word, words[i].name, len) != 0)
			continue;
		if (words[i].number != NULL)
			*words[i].number = strtoull(word + len, NULL, 10);
		else
			*words[i].file = word + len;
		return 0;
	}
	(void)fprintf(stderr, "state_transfer: what is %s?\n", word);
	return -1;
}

static uint64_t checksum(void)
{
	const unsigned char *at = (const unsigned char *)self.state->value;
	uint64_t sum = 0xCBF29CE484222325;

	for (uint64_t i = 0; i < 2 * self.elems * sizeof(float); i++)
		sum = (sum ^ at[i]) * 0x100000001B3;
	return sum;
}

static void tell_version(void)
{
	(void)fprintf(self.out, "version %" PRIu64 " %016" PRIx64 "\n", self.state->version,
		      checksum());
}

static int complain(int rc)
{
	(void)fprintf(self.out, "error %d %s\n", rc, muster_error(self.muster));
	return rc;
}

/* What is said to a worker that calls where nothing is wanted. */
static void misuse(void)
{
	const void *state;
	size_t bytes;
	uint64_t version;

	(void)complain(muster_give_state(self.muster, self.state, self.bytes));
	(void)complain(muster_take_state(self.muster, &state, &bytes, &version));
	self.misuse = 0;
}

static int give(void)
{
	size_t bytes = self.bytes + self.pad;
	char *copy;

	if (self.misuse)
		misuse();
	if (self.silent || muster_state_wanted(self.muster) != 1)
		return 0;
	copy = malloc(bytes + self.is_short);
	if (copy == NULL)
		return complain(-ENOMEM);
	memset(copy, 1, bytes + self.is_short); /* all of it is there before it is given */
	memcpy(copy, self.state, self.bytes);
	double began = now_ms(), busy = busy_ms();
	int rc = muster_give_state(self.muster, copy, self.none ? 0 : bytes + self.is_short);
	double took = now_ms() - began;

	busy = busy_ms() - busy;
	free(copy);
	(void)fprintf(self.out, "gave %" PRIu64 " in %.3f ms, %.3f ms of a processor\n",
		      self.state->version, took, busy);
	if (self.die_giving != NULL &&
	    open(self.die_giving, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600) >= 0)
		(void)raise(SIGKILL);
	if (rc != 0)
		(void)complain(rc);
	return rc == -EMSGSIZE ? 0 : rc;
}

static void lag(void)
{
	static unsigned times;
	char file[256];

	(void)snprintf(file, sizeof(file), "%s.%u", self.lag, ++times);
	while (!is_there(file))
		nap(2);
}

static int come_back(void)
{
	const void *state;
	size_t bytes;
	uint64_t version;
	int rc;

	(void)fprintf(self.out, "stale\n");
	while (self.hold_take != NULL && !is_there(self.hold_take))
		nap(2);
	self.hold_take = NULL;
	if (self.lag != NULL)
		lag();
	do
		rc = muster_take_state(self.muster, &state, &bytes, &version);
	while (rc == -ETIMEDOUT || rc == -EINTR);
	if (rc == -ESHUTDOWN) { /* muster_wait() brings the last outcome */
		(void)complain(rc);
		return 0;
	}
	if (rc != 0)
		return complain(rc);
	if (bytes != self.bytes + self.pad) {
		(void)fprintf(self.out, "a state of %zu bytes\n", bytes);
		return -EINVAL;
	}
	memcpy(self.state, state, self.bytes);
	(void)fprintf(self.out, "took %" PRIu64 " %zu\n", version, bytes);
	if (version != self.state->version)
		return -EINVAL;
	tell_version();
	return 0;
}

static void apply(const struct muster_outcome *o)
{
	const float *mean = o->result;
	float *parameter = self.state->value, *momentum = parameter + self.elems;

	for (uint64_t i = 0; i < self.elems; i++) {
		momentum[i] = 0.9f * momentum[i] + mean[i];
		parameter[i] -= (float)o->orders.lr_scale * 0.1f * momentum[i];
	}
	self.state->version = o->version;
	tell_version();
}

/* Waits for an outcome, and for all that are ready then. A worker that is behind comes back. */
static int next(struct muster_outcome *o)
{
	int rc;

	do {
		rc = muster_wait(self.muster, o);
		if (rc == -ESTALE)
			rc = come_back() == 0 ? -EAGAIN : -ESTALE;
		if (rc >= 0 && o->fresh && o->version != self.state->version)
			apply(o);
	} while (rc == 1 || rc == -EAGAIN || rc == -ETIMEDOUT || rc == -EINTR);
	return rc < 0 ? complain(rc) : give();
}

static int push(uint32_t rank)
{
	struct muster_contribution c = MUSTER_CONTRIBUTION;
	float *gradient = muster_gradient(self.muster);

	if (gradient == NULL)
		return 0;
	for (uint64_t i = 0; i < self.elems; i++)
		gradient[i] = self.state->value[i] +
			      (float)((rank * 7 + i + self.state->version) % 11) - 5.0f;
	nap(self.pause_ms);
	while (self.hold != NULL && self.state->version >= self.hold_at && !is_there(self.hold))
		nap(2);
	if (muster_check(self.muster) == MUSTER_GIVE_UP)
		return muster_abandon(self.muster);
	c.weight = 1;
	return muster_push(self.muster, &c, NULL);
}

static int run(void)
{
	struct muster_outcome o = MUSTER_OUTCOME;
	uint32_t rank = muster_job(self.muster)->rank;
	int rc = muster_start(self.muster, NULL, &o);

	if (rc == -ESTALE)
		rc = come_back();
	if (rc < 0)
		return complain(rc);
	while (!o.finished) {
		rc = push(rank);
		rc = rc == 0 ? next(&o) : complain(rc);
		if (rc < 0)
			return rc;
		if (self.until != NULL && rank == self.teller && is_there(self.until))
			(void)muster_finish(self.muster, "enough");
	}
	(void)fprintf(self.out, "finished %" PRIu64 " of %" PRIu64 "%s\n", self.state->version,
		      o.newest, o.result == NULL ? ", without a result" : "");
	return 0;
}

static int join(void)
{
	struct muster_options opt = MUSTER_OPTIONS;
	char path[4096];
	int rc;

	opt.elems = self.elems;
	opt.owner = MUSTER_WORKERS_OWN;
	opt.comes_back = !self.plain;
	do /* the session before may not have ended yet */
		rc = muster_open(&opt, &self.muster);
	while ((rc == -EEXIST || rc == -EBUSY) && (nap(20), true));
	if (rc != 0) {
		(void)fprintf(stderr, "state_transfer: %s\n", muster_error(NULL));
		return rc;
	}
	(void)snprintf(path, sizeof(path), "%s.%" PRIu32 ".%" PRIu32, self.log,
		       muster_job(self.muster)->rank, muster_job(self.muster)->incarnation);
	self.out = fopen(path, "w");
	if (self.out == NULL)
		return -errno;
	(void)setvbuf(self.out, NULL, _IOLBF, 0);
	return 0;
}

int main(int argc, char **argv)
{
	for (int i = 2; i < argc; i++)
		if (read_word(argv[i]) != 0)
			return 2;
	if (argc < 2)
		return 2;
	self.log = argv[1];
	self.bytes = sizeof(struct own_state) + 2 * self.elems * sizeof(float);
	self.state = calloc(1, self.bytes);
	if (self.state == NULL || join() != 0)
		return 1;
	int rc = run();
	muster_close(self.muster);
	(void)fclose(self.out);
	free(self.state);
	return rc == 0 ? 0 : 3;
}
