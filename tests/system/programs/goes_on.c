/* SPDX-License-Identifier: MIT */
/*
 * A worker that owns its parameters, and goes on when its servers are lost and others take their
 * place:
 *
 *	goes_on LOG [WORD]...
 *
 * It writes to LOG.RANK.N, N being the number of the process at this rank, a line for each thing
 * that happens: "began V DIGEST" at the start, "version V DIGEST RANK..." when it has applied a
 * version of these ranks, "cancelled TICKET" and "late TICKET", "took V DIGEST", "withdrawn N",
 * "error RC SENTENCE", "wrong WHAT", and at last "end V DIGEST pushed N counted N cancelled N late
 * N".
 *
 *   elems=N      the vector
 *   pace_us=US   a gradient takes so long
 *   offers=1     it offers a start state of its own, and begins with the one that it is given
 *   comes_back=1 it gives its state, and takes that of others
 *   into=1       results are written to memory of its own
 *   check=1      another thread asks all the time what to do
 *   fork_at=V    when it has version V, it waits until its server is lost, and forks
 *   wait_ms=MS   as in struct muster_options
 *
 * A gradient depends on the version, the rank and the parameters, and is of small integers. So each
 * rank knows what all others have pushed, and checks that a mean is that of the set named with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "muster/muster.h"

enum { VERSIONS_MAX = 1 << 16, LOOKED_AT = 997 };

struct worker_state {
	uint64_t version;
	float parameter[];
};

static struct {
	const char *log;
	uint64_t elems, pace_us, offers, comes_back, into, check, fork_at, wait_ms;
	struct muster *muster;
	struct worker_state *state;
	size_t bytes;
	FILE *out;
	uint32_t rank;
	uint64_t pushed, counted, cancelled, late;
	/* How often this process was told that it counts in a version, and how often the set of the
	 * version says so, or -1. */
	int told[VERSIONS_MAX], named[VERSIONS_MAX];
	uint64_t had; /* the version of the last outcome */
	atomic_bool over;
} self = { .elems = 1000 };

static void nap(uint64_t us)
{
	struct timespec t = { (time_t)(us / 1000000), (long)(us % 1000000) * 1000 };

	(void)nanosleep(&t, NULL);
}

static uint64_t digest(void)
{
	return muster_digest(0, self.state->parameter, self.elems * sizeof(float));
}

static int complain(int rc)
{
	(void)fprintf(self.out, "error %d %s\n", rc, muster_error(self.muster));
	return rc;
}

static int wrong(const char *what, uint64_t version)
{
	(void)fprintf(self.out, "wrong %s at version %" PRIu64 "\n", what, version);
	return -EBADMSG;
}

static int read_word(const char *word)
{
	static const struct {
		const char *name;
		uint64_t *number;
	} words[] = {
		{ "elems=", &self.elems },           { "pace_us=", &self.pace_us },
		{ "comes_back=", &self.comes_back }, { "into=", &self.into },
		{ "check=", &self.check },           { "fork_at=", &self.fork_at },
		{ "wait_ms=", &self.wait_ms },       { "offers=", &self.offers },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t len = strlen(words[i].name);
		if (strncmp(word, words[i].name, len) != 0)
			continue;
		*words[i].number = strtoull(word + len, NULL, 10);
		return 0;
	}
	(void)fprintf(stderr, "goes_on: what is %s?\n", word);
	return -1;
}

/* What this rank pushes with the parameters of this process. */
static float element(uint32_t rank, uint64_t i)
{
	uint32_t bits;

	memcpy(&bits, &self.state->parameter[i], sizeof(bits));
	return (float)((self.state->version * 31 + rank * 7 + i + bits % 13) % 1000);
}

/* ---- states ---- */

static int give(void)
{
	if (!self.comes_back || muster_state_wanted(self.muster) != 1)
		return 0;
	int rc = muster_give_state(self.muster, self.state, self.bytes);
	return rc == 0 || rc == -EAGAIN ? 0 : complain(rc);
}

static int take(void)
{
	const void *state;
	size_t bytes;
	uint64_t version;
	int rc;

	do
		rc = muster_take_state(self.muster, &state, &bytes, &version);
	while (rc == -ETIMEDOUT || rc == -EINTR);
	if (rc == -ESHUTDOWN) /* muster_wait() brings the last outcome */
		return 0;
	if (rc != 0)
		return complain(rc);
	if (bytes != self.bytes)
		return wrong("length of a state", version);
	memcpy(self.state, state, bytes);
	if (self.state->version != version)
		return wrong("version of a state", version);
	(void)fprintf(self.out, "took %" PRIu64 " %08" PRIx64 "\n", version, digest());
	return 0;
}

/* ---- outcomes ---- */

/* Its last versions do not count, and what it was told of them neither. */
static void withdraw(const struct muster_outcome *o)
{
	(void)fprintf(self.out, "withdrawn %" PRIu64 "\n", o->withdrawn);
	for (uint64_t v = self.had; v > self.had - o->withdrawn; v--) {
		self.counted -= (uint64_t)self.told[v % VERSIONS_MAX];
		self.cancelled += (uint64_t)self.told[v % VERSIONS_MAX];
		self.told[v % VERSIONS_MAX] = 0;
		self.named[v % VERSIONS_MAX] = -1;
	}
}

static int judge(const struct muster_outcome *o)
{
	if (o->withdrawn > self.had)
		return wrong("number of versions that are withdrawn", self.had);
	if (o->withdrawn > 0)
		withdraw(o);
	self.had = o->version;
	if (o->verdict == MUSTER_NONE)
		return 0;
	if (o->verdict == MUSTER_COUNTED) {
		if (o->counted_in > o->version)
			return wrong("COUNTED of a version to come", o->counted_in);
		self.counted++;
		self.told[o->counted_in % VERSIONS_MAX]++;
		return 0;
	}
	if (o->verdict != MUSTER_CANCELLED && o->verdict != MUSTER_LATE)
		return wrong("verdict", o->version);
	bool late = o->verdict == MUSTER_LATE;
	*(late ? &self.late : &self.cancelled) += o->ticket != 0;
	(void)fprintf(self.out, "%s %" PRIu64 "\n", late ? "late" : "cancelled", o->ticket);
	return 0;
}

static bool is_mean(const struct muster_outcome *o)
{
	const float *mean = o->result;
	uint64_t step = self.elems < LOOKED_AT ? 1 : self.elems / LOOKED_AT;

	for (uint64_t i = 0; i < self.elems; i += step) {
		double sum = 0;
		for (uint32_t s = 0; s < o->set_len; s++)
			sum += o->set[s].count * (double)element(o->set[s].rank, i);
		if (fabs(mean[i] * o->weight - sum) > 0.01)
			return false;
	}
	return true;
}

static int apply(const struct muster_outcome *o)
{
	const float *mean = o->result;

	if (o->version != self.state->version + 1 || mean == NULL)
		return wrong("order of versions", o->version);
	if (!is_mean(o))
		return wrong("mean", o->version);
	self.named[o->version % VERSIONS_MAX] = 0;
	for (uint32_t s = 0; s < o->set_len; s++) {
		if (o->set[s].rank == self.rank)
			self.named[o->version % VERSIONS_MAX] = (int)o->set[s].count;
	}
	for (uint64_t i = 0; i < self.elems; i++)
		self.state->parameter[i] -= 0.001f * mean[i];
	self.state->version = o->version;
	(void)fprintf(self.out, "version %" PRIu64 " %08" PRIx64, o->version, digest());
	for (uint32_t s = 0; s < o->set_len; s++)
		(void)fprintf(self.out, " %" PRIu32, o->set[s].rank);
	(void)fputc('\n', self.out);
	return 0;
}

static int next(struct muster_outcome *o)
{
	int rc;

	do {
		rc = muster_wait(self.muster, o);
		if (rc == -ETIMEDOUT) /* what it says of a server that is lost */
			(void)complain(rc);
		if (rc == -ESTALE && self.comes_back)
			rc = take() == 0 ? -EAGAIN : -ESTALE;
		int judged = rc >= 0 ? judge(o) : 0;
		if (judged == 0 && rc >= 0 && o->fresh && o->version != self.state->version)
			judged = apply(o);
		if (judged != 0)
			return judged;
	} while (rc == 1 || rc == -EAGAIN || rc == -ETIMEDOUT || rc == -EINTR);
	return rc < 0 ? complain(rc) : give();
}

/* ---- contributions ---- */

/* The child's copy is closed while the parent has no server. */
static int fork_adrift(void)
{
	int status = 1;

	while (muster_check(self.muster) != MUSTER_GIVE_UP)
		nap(1000);
	pid_t child = fork();
	if (child == 0) {
		struct muster_outcome o = MUSTER_OUTCOME;
		int rc = muster_wait(self.muster, &o);
		muster_close(self.muster);
		_exit(rc == -ECHILD ? 0 : 1);
	}
	self.fork_at = 0;
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		return wrong("end of a child", self.state->version);
	(void)fprintf(self.out, "forked\n");
	return 0;
}

static int push(void)
{
	struct muster_contribution c = MUSTER_CONTRIBUTION;
	float *gradient = muster_gradient(self.muster);

	if (gradient == NULL)
		return 0;
	for (uint64_t i = 0; i < self.elems; i++)
		gradient[i] = element(self.rank, i);
	if (self.pace_us > 0)
		nap(self.pace_us);
	if (self.fork_at > 0 && self.state->version >= self.fork_at && fork_adrift() != 0)
		return -ECHILD;
	c.weight = 1;
	uint64_t ticket;
	int rc = muster_push(self.muster, &c, &ticket);
	self.pushed += rc == 0 && ticket != 0;
	return rc == 0 ? 0 : complain(rc);
}

static int begin(struct muster_outcome *o)
{
	float *own = self.offers ? self.state->parameter : NULL;
	int rc;

	for (uint64_t i = 0; i < self.elems && own != NULL; i++)
		own[i] = (float)(self.rank + 1) + (float)(i % 11);
	do
		rc = muster_start(self.muster, own, o);
	while (rc == -EINTR);
	if (rc == -ESTALE && self.comes_back)
		return take();
	if (rc == 0 && own != NULL && o->result == NULL)
		return wrong("start state", o->version);
	if (rc == 0 && own != NULL)
		memcpy(own, o->result, self.elems * sizeof(float));
	if (rc < 0)
		return complain(rc);
	(void)fprintf(self.out, "began %" PRIu64 " %08" PRIx64 "\n", o->version, digest());
	return 0;
}

static int run(void)
{
	struct muster_outcome o = MUSTER_OUTCOME;
	int rc = begin(&o);

	while (rc == 0 && !o.finished) {
		rc = push();
		if (rc == 0)
			rc = next(&o);
	}
	return rc;
}

/* What it was told of its contributions is what the sets of its versions say. */
static int account(void)
{
	int rc = 0;

	for (uint64_t v = 0; v < VERSIONS_MAX; v++) {
		if (self.named[v] >= 0 && self.told[v] != self.named[v])
			rc = wrong("number of contributions that were told", v);
	}
	if (self.pushed != self.counted + self.cancelled + self.late)
		rc = wrong("number of verdicts", self.state->version);
	(void)fprintf(self.out,
		      "end %" PRIu64 " %08" PRIx64 " pushed %" PRIu64 " counted %" PRIu64
		      " cancelled %" PRIu64 " late %" PRIu64 "\n",
		      self.state->version, digest(), self.pushed, self.counted, self.cancelled,
		      self.late);
	return rc;
}

/* ---- the process ---- */

static void *ask_all_the_time(void *unused)
{
	while (!atomic_load(&self.over)) {
		(void)muster_check(self.muster);
		nap(50);
	}
	return unused;
}

static int open_log(void)
{
	char path[4096];
	int fd = -1;

	for (int number = 1; fd < 0 && number < 100; number++) {
		(void)snprintf(path, sizeof(path), "%s.%" PRIu32 ".%d", self.log, self.rank,
			       number);
		fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	}
	self.out = fd < 0 ? NULL : fdopen(fd, "w");
	if (self.out == NULL)
		return -1;
	(void)setvbuf(self.out, NULL, _IOLBF, 0);
	return 0;
}

static int join(void)
{
	struct muster_options opt = MUSTER_OPTIONS;

	opt.elems = self.elems;
	opt.owner = MUSTER_WORKERS_OWN;
	opt.comes_back = self.comes_back;
	opt.wait_ms = (uint32_t)self.wait_ms;
	opt.result_into = self.into ? calloc(self.elems, sizeof(float)) : NULL;
	if (muster_open(&opt, &self.muster) != 0) {
		(void)fprintf(stderr, "goes_on: %s\n", muster_error(NULL));
		return -1;
	}
	self.rank = muster_job(self.muster)->rank;
	return open_log();
}

int main(int argc, char **argv)
{
	pthread_t asks;

	for (int i = 2; i < argc; i++)
		if (read_word(argv[i]) != 0)
			return 2;
	if (argc < 2)
		return 2;
	self.log = argv[1];
	self.bytes = sizeof(struct worker_state) + self.elems * sizeof(float);
	self.state = calloc(1, self.bytes);
	memset(self.named, -1, sizeof(self.named));
	if (self.state == NULL || join() != 0)
		return 1;
	if (self.check && pthread_create(&asks, NULL, ask_all_the_time, NULL) != 0)
		return 1;
	int rc = run();
	if (rc == 0)
		rc = account();
	atomic_store(&self.over, true);
	if (self.check)
		(void)pthread_join(asks, NULL);
	muster_close(self.muster);
	(void)fclose(self.out);
	free(self.state);
	return rc == 0 ? 0 : 3;
}
