/* SPDX-License-Identifier: MIT */
/*
 * A worker of servers that own. It goes on when they are lost and others go on from a checkpoint:
 *
 *	withdraws LOG [elems=N] [pace_us=US] [any]
 *
 * It is the loop of muster_train(), and writes to LOG.RANK a line for each thing that happens:
 * "version V DIGEST GENERATION" for each result that it is given, "withdrawn N V" when the last N
 * versions are void and the job goes on from version V, "cancelled TICKET", "error RC SENTENCE",
 * "wrong WHAT at version V", and at last "end V DIGEST counted N void N cancelled N withdrawn N".
 *
 * With "any" the policy is one that does without some ranks: a rank may miss versions.
 *
 * A gradient depends on the version and the rank alone, and is of small integers.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "muster/muster.h"

enum { VERSIONS_MAX = 1 << 16 };

static struct {
	uint64_t elems, pace_us;
	bool any;
	struct muster *muster;
	FILE *out;
	uint32_t rank;
	uint64_t version, generation;
	uint64_t first; /* the version that it has begun with */
	uint64_t counted, void_counted, cancelled, withdrawn;
	/* How often this process counts in a version, as far as that is not void. */
	uint8_t told[VERSIONS_MAX];
} self = { .elems = 1000 };

static int wrong(const char *what, uint64_t version)
{
	(void)fprintf(self.out, "wrong %s at version %" PRIu64 "\n", what, version);
	return -EBADMSG;
}

static int compute(void *ctx, void *grad, struct muster_contribution *c)
{
	struct timespec t = { 0, (long)self.pace_us * 1000 };
	float *gradient = grad;

	(void)ctx;
	for (uint64_t i = 0; i < self.elems; i++)
		gradient[i] = (float)((self.version * 31 + self.rank * 7 + i) % 100);
	if (self.pace_us > 0)
		(void)nanosleep(&t, NULL);
	c->weight = 1;
	c->full = true;
	return 0;
}

static int judged(void *ctx, const struct muster_outcome *o)
{
	(void)ctx;
	if (o->verdict == MUSTER_CANCELLED) {
		self.cancelled += o->ticket != 0;
		(void)fprintf(self.out, "cancelled %" PRIu64 "\n", o->ticket);
		return 0;
	}
	if (o->verdict == MUSTER_LATE && self.any)
		return 0;
	if (o->verdict != MUSTER_COUNTED)
		return wrong("verdict", o->version);
	if (o->counted_in > o->version || o->counted_in >= VERSIONS_MAX)
		return wrong("COUNTED of a version to come", o->counted_in);
	self.told[o->counted_in]++;
	self.counted++;
	return 0;
}

static int withdrawn(void *ctx, const struct muster_outcome *o)
{
	(void)ctx;
	if (o->withdrawn > self.version)
		return wrong("number of void versions", o->version);
	uint64_t stands = self.version - o->withdrawn;
	if (self.any ? o->version < stands : o->version != stands)
		return wrong("version that stands", o->version);
	if (o->generation <= self.generation)
		return wrong("generation that withdraws", o->version);
	for (uint64_t v = stands + 1; v <= self.version; v++) {
		self.void_counted += self.told[v];
		self.told[v] = 0;
	}
	self.version = stands;
	self.withdrawn += o->withdrawn;
	(void)fprintf(self.out, "withdrawn %" PRIu64 " %" PRIu64 "\n", o->withdrawn, stands);
	return 0;
}

static uint64_t digest(const void *result)
{
	return muster_digest(0, result, self.elems * sizeof(float));
}

/* Where versions are void, withdrawn() has gone back to the one that comes now. */
static int apply(void *ctx, const struct muster_outcome *o)
{
	bool back = o->generation != self.generation && o->version == self.version;

	(void)ctx;
	if (self.any ? o->version < self.version : o->version != self.version + 1 && !back)
		return wrong("order of versions", o->version);
	self.version = o->version;
	self.generation = o->generation;
	(void)fprintf(self.out, "version %" PRIu64 " %08" PRIx64 " %" PRIu64 "\n", o->version,
		      digest(o->result), o->generation);
	return 0;
}

static const struct muster_hooks hooks = { .size = sizeof(struct muster_hooks),
					   .compute = compute,
					   .apply = apply,
					   .judged = judged,
					   .withdrawn = withdrawn };

static int read_word(const char *word)
{
	if (strncmp(word, "elems=", 6) == 0)
		self.elems = strtoull(word + 6, NULL, 10);
	else if (strncmp(word, "pace_us=", 8) == 0)
		self.pace_us = strtoull(word + 8, NULL, 10);
	else if (strcmp(word, "any") == 0)
		self.any = true;
	else
		return -1;
	return 0;
}

static int open_log(const char *log)
{
	char path[4096];

	self.rank = muster_job(self.muster)->rank;
	(void)snprintf(path, sizeof(path), "%s.%" PRIu32, log, self.rank);
	self.out = fopen(path, "wx");
	if (self.out == NULL)
		return -1;
	(void)setvbuf(self.out, NULL, _IOLBF, 0);
	return 0;
}

static int run(void)
{
	struct muster_outcome o = MUSTER_OUTCOME;
	float *start = calloc(self.elems, sizeof(*start));
	int rc;

	do
		rc = start != NULL ? muster_start(self.muster, start, &o) : -ENOMEM;
	while (rc == -EINTR);
	free(start);
	self.generation = o.generation;
	self.first = self.version = o.version;
	if (rc == 0)
		do
			rc = muster_train(self.muster, &hooks);
		while (rc == -ETIMEDOUT || rc == -EINTR);
	if (rc < 0)
		(void)fprintf(self.out, "error %d %s\n", rc, muster_error(self.muster));
	return rc;
}

/* Under bsp each version that is not void is made of one contribution of each rank, and under other
 * policies of one at most. */
static int account(void)
{
	int rc = 0;

	for (uint64_t v = self.first + 1; v <= self.version; v++) {
		if (self.told[v] != 1 && !(self.any && self.told[v] == 0))
			rc = wrong("number of contributions that were told", v);
	}
	(void)fprintf(self.out,
		      "end %" PRIu64 " %08" PRIx64 " counted %" PRIu64 " void %" PRIu64
		      " cancelled %" PRIu64 " withdrawn %" PRIu64 "\n",
		      self.version, digest(muster_parameters(self.muster)), self.counted,
		      self.void_counted, self.cancelled, self.withdrawn);
	return rc;
}

int main(int argc, char **argv)
{
	struct muster_options opt = MUSTER_OPTIONS;

	for (int i = 2; i < argc; i++) {
		if (read_word(argv[i]) != 0)
			return 2;
	}
	opt.elems = self.elems;
	opt.owner = MUSTER_SERVERS_OWN;
	if (argc < 2 || muster_open(&opt, &self.muster) != 0) {
		(void)fprintf(stderr, "withdraws: %s\n", muster_error(NULL));
		return 1;
	}
	int rc = open_log(argv[1]);
	if (rc == 0)
		rc = run();
	if (rc == 0)
		rc = account();
	muster_close(self.muster);
	return rc == 0 ? 0 : 3;
}
