/* SPDX-License-Identifier: MIT */
/*
 * A worker of muster_train() that learns nothing, and reports values that are known beforehand:
 *
 *	muster run -n W --samples N -- reporter [WORD]...
 *
 *   metric=NAME      rank 0 reports it at the end; without it, "score"
 *   threshold=SHARE  it is 1 if the share of the samples under bsp is at least SHARE, else 0
 *   jitter=J         J is added where MUSTER_SEED is odd, and taken away where it is even
 *   chance=C         so is C, but the other way round under bsp
 *   lower=1          the sign is changed, so that less is better
 *   progress=1       rank 0 reports "progress", the version, at each version
 *   sleep_ms=MS      a gradient takes so long
 *   late_ms=MS       rank 0 reports so long after the end of the job
 *   fail_at=SHARE    with that share it exits with status 3 at the end
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <muster/muster.h>

#define ELEMS 64

static struct {
	const char *metric;
	double threshold, jitter, chance, lower, progress, sleep_ms, late_ms, fail_at;
	struct muster *muster;
} self = { .metric = "score", .fail_at = -1 };

static void sleep_for(double ms)
{
	struct timespec t = { (time_t)(ms / 1e3), (long)(fmod(ms, 1e3) * 1e6) };

	(void)nanosleep(&t, NULL);
}

static int read_word(const char *word)
{
	static const struct {
		const char *name;
		double *value;
	} numbers[] = {
		{ "threshold=", &self.threshold }, { "jitter=", &self.jitter },
		{ "chance=", &self.chance },       { "lower=", &self.lower },
		{ "progress=", &self.progress },   { "sleep_ms=", &self.sleep_ms },
		{ "late_ms=", &self.late_ms },     { "fail_at=", &self.fail_at },
	};
	size_t len = strcspn(word, "=") + 1;

	if (strncmp(word, "metric=", len) == 0) {
		self.metric = word + len;
		return 0;
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (strncmp(word, numbers[i].name, len) == 0) {
			*numbers[i].value = strtod(word + len, NULL);
			return 0;
		}
	}
	(void)fprintf(stderr, "reporter: what is %s?\n", word);
	return -1;
}

/* The share of the samples of bsp that are done, by the policy that the worker joined under. */
static double share(void)
{
	const char *policy = muster_job(self.muster)->policy;

	if (strncmp(policy, "syncswitch:", 11) == 0)
		return strtod(policy + 11, NULL);
	return strcmp(policy, "bsp") == 0;
}

static bool speaks(void)
{
	return muster_job(self.muster)->rank == 0;
}

static int compute(void *ctx, void *grad, struct muster_contribution *c)
{
	(void)ctx;
	memset(grad, 0, ELEMS * sizeof(float));
	sleep_for(self.sleep_ms);
	c->weight = 1;
	c->full = true;
	return 0;
}

static int apply(void *ctx, const struct muster_outcome *out)
{
	(void)ctx;
	if (self.progress == 0 || !speaks())
		return 0;
	return muster_report(self.muster, "progress", (double)out->version);
}

static int report(void)
{
	const char *seed = getenv("MUSTER_SEED");
	bool odd = seed != NULL && strtoul(seed, NULL, 10) % 2 == 1;
	double value = (share() >= self.threshold) + (odd ? self.jitter : -self.jitter);

	value += odd == (share() < 1) ? self.chance : -self.chance;
	sleep_for(self.late_ms);
	return muster_report(self.muster, self.metric, self.lower != 0 ? -value : value);
}

static int work(void)
{
	static const float start[ELEMS];
	struct muster_hooks hooks = MUSTER_HOOKS;
	struct muster_outcome out = MUSTER_OUTCOME;

	hooks.compute = compute;
	hooks.apply = apply;
	int rc = muster_start(self.muster, start, &out);
	if (rc == 0)
		rc = muster_train(self.muster, &hooks);
	if (rc == 0 && speaks())
		rc = report();
	if (rc != 0)
		(void)fprintf(stderr, "reporter: %s\n", muster_error(self.muster));
	return rc;
}

int main(int argc, char **argv)
{
	struct muster_options options = MUSTER_OPTIONS;

	for (int i = 1; i < argc; i++)
		if (read_word(argv[i]) != 0)
			return 2;
	options.elems = ELEMS;
	if (muster_open(&options, &self.muster) != 0) {
		(void)fprintf(stderr, "reporter: %s\n", muster_error(NULL));
		return 1;
	}
	int rc = work();
	bool fails = fabs(share() - self.fail_at) < 1e-9;
	muster_close(self.muster);
	return fails ? 3 : rc != 0;
}
