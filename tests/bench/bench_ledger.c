/* SPDX-License-Identifier: MIT */
/*
 * What it costs to decide: the ledger and the statistics that watch it, as on the deciding thread
 * of a server, but without servers, links or data. Workers that compute for no time push in random
 * order; a call is one event with all decisions that follow from it, and the question when the next
 * timer is due. For each policy and number of members it prints millions of calls a second, then
 * the time in which all members join and start, and what a commit of bsp takes for each member that
 * it counts and answers. Medians over rounds, of processor time. Every push must get one verdict,
 * and the job must make versions; the statistics must have seen both.
 *
 * usage: bench_ledger [--rounds N] [--calls N] [--workers N] [--policy TEXT]
 *
 *   --rounds N     of which medians are taken, 5
 *   --calls N      that are timed together, 200000
 *   --workers N    members, instead of 8, 64, 1000 and 10000
 *   --policy TEXT  calls of one policy, as musterd reads it, alone; else one of every kind
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/rand.h"
#include "server/core/ledger/ledger.h"
#include "server/core/policy/rule.h"
#include "server/core/statistics/statistics.h"
#include "tests/unit/common/optim/optim_case.h"

#define ROUNDS_MAX 101u
#define BEAT_EVERY 8u /* calls: in between some member's heartbeat comes */

/* A policy's numbers follow the number of members: %u is half of them. */
static const char *const policies[] = {
	"bsp",         "backup:%u",      "backup:-1",   "ksync:%u",      "kbatchsync:%u",
	"kasync:%u",   "kbatchasync:%u", "softsync:%u", "async",         "bounded:4",
	"ssp:3",       "nonblocking",    "anytime:1",   "deadline:1,%u", "local:8",
	"easgd:8,0.1", "downpour:4,4",
};
#define POLICIES (sizeof(policies) / sizeof(policies[0]))

static const uint32_t member_counts[] = { 8, 64, 1000, 10000 };
#define COUNTS (sizeof(member_counts) / sizeof(member_counts[0]))

struct ledger_worker {
	struct mst_identity who;
	uint64_t seq, asks, have, epoch;
	uint32_t at; /* among those that run, if it does */
};

struct bench_ledger_job {
	struct mst_ledger *ledger;
	struct mst_statistics *statistics;
	struct mst_ledger_cfg cfg;
	struct mst_rand rand;
	struct ledger_worker *worker;
	uint32_t *running; /* ranks that have a version and no ask out, in any order */
	uint32_t running_count;
	uint32_t *copied; /* ranks whose answers are copied: the shard has still to say it did */
	uint32_t copied_count;
	uint64_t now_ns, calls;
	uint64_t pushes, verdicts, versions;
};

struct options {
	unsigned rounds;
	uint64_t calls;
	uint32_t workers;
	const char *policy;
};

static void fail(const char *what)
{
	fprintf(stderr, "bench_ledger: %s\n", what);
	exit(EXIT_FAILURE);
}

static void *room(size_t count, size_t size)
{
	void *p = calloc(count, size);

	if (p == NULL)
		fail("no memory");
	return p;
}

static void run_on(struct bench_ledger_job *j, uint32_t rank)
{
	j->worker[rank].at = j->running_count;
	j->running[j->running_count++] = rank;
}

static void park(struct bench_ledger_job *j, uint32_t rank)
{
	uint32_t last = j->running[--j->running_count];

	j->running[j->worker[rank].at] = last;
	j->worker[last].at = j->worker[rank].at;
}

static void obey(struct bench_ledger_job *j, const struct mst_decision *d)
{
	struct ledger_worker *w = &j->worker[d->who.rank];

	if (d->kind == MST_DO_ADMIT) {
		*w = (struct ledger_worker){ .who = d->who, .epoch = 1, .have = MST_VERSION_NONE };
		w->asks = 1; /* START is the first */
	} else if (d->kind == MST_DO_VERDICT) {
		j->verdicts++;
	} else if (d->kind == MST_DO_REGRANT) {
		w->epoch = d->grant.epoch;
	} else if (d->kind == MST_DO_COMMIT) {
		j->versions++;
	} else if (d->kind == MST_DO_RELEASE) {
		w->have = d->answer.version;
		run_on(j, d->who.rank);
		if (d->answer.where == MST_WHERE_COPIED)
			j->copied[j->copied_count++] = d->who.rank;
	} else if (d->kind == MST_DO_EVICT || d->kind == MST_DO_FINISH) {
		fail("a session has ended that should not");
	}
}

static void obey_all(struct bench_ledger_job *j)
{
	struct mst_decision d;

	while (mst_ledger_next(j->ledger, &d)) {
		struct mst_statistics_decision of = { .decision = &d,
						      .rule = mst_ledger_rule(j->ledger) };
		if (d.kind == MST_DO_COMMIT)
			of.record = mst_ledger_record(j->ledger, d.commit.buffer);
		mst_statistics_decided(j->statistics, &of, j->now_ns);
		obey(j, &d);
	}
}

static void call(struct bench_ledger_job *j, const struct mst_ledger_event *ev)
{
	j->calls++;
	j->now_ns += 1000;
	mst_statistics_event(j->statistics, ev, j->now_ns);
	mst_ledger_handle(j->ledger, ev, j->now_ns);
	obey_all(j);
	if (mst_ledger_deadline(j->ledger) > j->now_ns)
		return;
	mst_ledger_tick(j->ledger, j->now_ns);
	obey_all(j);
}

static struct mst_ledger_event event(const struct bench_ledger_job *j,
				     enum mst_ledger_event_kind kind, uint32_t rank)
{
	struct mst_ledger_event ev = { .kind = kind, .who = j->worker[rank].who };

	return ev;
}

static void push(struct bench_ledger_job *j, uint32_t rank)
{
	struct ledger_worker *w = &j->worker[rank];
	struct mst_ledger_event ev = event(j, MST_EV_FULL, rank);

	park(j, rank);
	j->pushes++;
	ev.full.shard = 0;
	ev.full.header = (struct mst_lane_header){
		.seq = ++w->seq,
		.epoch = w->epoch,
		.tag = w->have,
		.weight = 1,
		.ask = { .number = ++w->asks, .have = w->have },
		.flags = MST_HEADER_FULL | MST_HEADER_ASK,
	};
	call(j, &ev);
}

static void say_copied(struct bench_ledger_job *j)
{
	uint32_t rank = j->copied[--j->copied_count];
	struct mst_ledger_event ev = event(j, MST_EV_ANSWERED, rank);

	ev.answered.shard = 0;
	ev.answered.number = j->worker[rank].asks;
	call(j, &ev);
}

/* One call, whatever comes next. */
static void step(struct bench_ledger_job *j)
{
	if (j->calls % BEAT_EVERY == 0) {
		uint32_t rank = (uint32_t)(j->calls / BEAT_EVERY % j->cfg.workers);
		struct mst_ledger_event ev = event(j, MST_EV_HEARTBEAT, rank);
		call(j, &ev);
	} else if (j->copied_count > 0) {
		say_copied(j);
	} else if (j->running_count > 0) {
		push(j, j->running[mst_rand_below(&j->rand, j->running_count)]);
	} else {
		fail("nobody runs");
	}
}

/* All join, are linked, and start; the first offers the start state, and sends it. */
static void bear(struct bench_ledger_job *j)
{
	struct mst_ledger_event ev = { .kind = MST_EV_JOIN, .join.rank = -1 };

	for (uint32_t rank = 0; rank < j->cfg.workers; rank++)
		call(j, &ev);
	for (uint32_t rank = 0; rank < j->cfg.workers; rank++) {
		ev = event(j, MST_EV_LINKED, rank);
		call(j, &ev);
		ev = event(j, MST_EV_START, rank);
		ev.offers = rank == 0;
		call(j, &ev);
	}
	ev = event(j, MST_EV_STATE, 0);
	call(j, &ev);
	if (j->running_count != j->cfg.workers)
		fail("not everybody has started");
}

static struct mst_ledger_cfg cfg_of(const char *policy, uint32_t workers)
{
	struct mst_ledger_cfg cfg = {
		.workers = workers,
		.shards = 1,
		.slots = 1,
		.buffers = 4,
		.in_place = true,
		.owner = MUSTER_SERVERS_OWN,
		.rule = { .divide = true, .patience_ns = 300 * MST_SECOND, .min_workers = 1 },
		.optimizer = optim_case_sgd(0.1, 0.9),
		.lease_ns = 10 * MST_SECOND,
		.join_until_ns = MST_NEVER,
	};
	const char *number = strstr(policy, "%u");
	char text[64];
	struct mst_reason why;

	(void)snprintf(text, sizeof(text), "%.*s", (int)strcspn(policy, "%"), policy);
	if (number != NULL)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%" PRIu32,
			       workers / 2 > 0 ? workers / 2 : 1);
	if (mst_rule_parse(text, &cfg.rule, &why) != 0)
		fail(why.text);
	cfg.slots = mst_rule_slots(&cfg.rule);
	return cfg;
}

static void job_open(struct bench_ledger_job *j, const char *policy, uint32_t workers)
{
	*j = (struct bench_ledger_job){ .cfg = cfg_of(policy, workers), .now_ns = MST_SECOND };
	mst_rand_seed(&j->rand, 1);
	j->worker = room(workers, sizeof(*j->worker));
	j->running = room(workers, sizeof(*j->running));
	j->copied = room(workers, sizeof(*j->copied));
	if (mst_ledger_new(&j->cfg, &j->ledger) != 0)
		fail("the ledger refuses these figures");
	if (mst_statistics_new(workers, &j->statistics) != 0)
		fail("no memory");
}

static void job_close(struct bench_ledger_job *j)
{
	mst_statistics_free(j->statistics);
	mst_ledger_free(j->ledger);
	free(j->worker);
	free(j->running);
	free(j->copied);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *value, unsigned count)
{
	qsort(value, count, sizeof(*value), ascending);
	return value[count / 2];
}

static double seconds(uint64_t begin_ns)
{
	return (double)(mst_thread_ns() - begin_ns) / (double)MST_SECOND;
}

/* Do the statistics know of all that the workers know of? */
static void check(const struct bench_ledger_job *j)
{
	struct mst_member_view view = { 0 };
	struct mst_status status;
	uint64_t verdicts = 0;

	for (uint32_t rank = 0; rank < j->cfg.workers; rank++) {
		struct mst_status_rank row = { .rank = rank };
		mst_statistics_rank(j->statistics, &view, j->now_ns, &row);
		verdicts += row.counted + row.late + row.stale + row.cancelled + row.refused;
	}
	mst_statistics_job(j->statistics, j->now_ns, &status);
	/* Under bounded some may wait for a gradient that is computed again. */
	uint64_t open = j->pushes - j->verdicts;
	uint64_t most = j->cfg.rule.late == MST_LATE_REJECT ? j->cfg.workers : 0;
	if (open > most || verdicts != j->verdicts || status.version != j->versions)
		fail("a push without its verdict, or statistics that have not seen all");
	if (j->versions == 0 && j->pushes >= 2 * (uint64_t)j->cfg.workers)
		fail("no version");
}

/* Millions of calls a second; the job is warm when everybody has pushed once, or the half of it. */
static double rate(const struct options *o, const char *policy, uint32_t workers)
{
	double round[ROUNDS_MAX];
	struct bench_ledger_job j;

	job_open(&j, policy, workers);
	bear(&j);
	for (uint32_t i = 0; i < workers && i < o->calls; i++)
		step(&j);
	for (unsigned r = 0; r < o->rounds; r++) {
		uint64_t begin_ns = mst_thread_ns(), first = j.calls;
		while (j.calls - first < o->calls)
			step(&j);
		round[r] = (double)o->calls / 1e6 / seconds(begin_ns);
	}
	check(&j);
	job_close(&j);
	return median(round, o->rounds);
}

/* Milliseconds until everybody runs. */
static double birth_ms(const struct options *o, uint32_t workers)
{
	double round[ROUNDS_MAX];

	for (unsigned r = 0; r < o->rounds; r++) {
		struct bench_ledger_job j;
		job_open(&j, "bsp", workers);
		uint64_t begin_ns = mst_thread_ns();
		bear(&j);
		round[r] = seconds(begin_ns) * 1e3;
		job_close(&j);
	}
	return median(round, o->rounds);
}

/* Nanoseconds a member of the call that commits a step of bsp, and so answers everybody. */
static double commit_ns(const struct options *o, uint32_t workers)
{
	double round[ROUNDS_MAX];
	struct bench_ledger_job j;

	job_open(&j, "bsp", workers);
	bear(&j);
	for (unsigned r = 0; r < o->rounds; r++) {
		while (j.running_count > 1)
			push(&j, j.running[mst_rand_below(&j.rand, j.running_count)]);
		uint64_t begin_ns = mst_thread_ns();
		push(&j, j.running[0]);
		round[r] = seconds(begin_ns) * 1e9 / workers;
		if (j.running_count != workers)
			fail("a commit has not answered everybody");
	}
	job_close(&j);
	return median(round, o->rounds);
}

static void print_row(const struct options *o, const char *name,
		      double (*measure)(const struct options *, uint32_t))
{
	printf("%-24s", name);
	for (size_t i = 0; i < COUNTS; i++) {
		if (o->workers == 0 || i == 0)
			printf(" %9.3f",
			       measure(o, o->workers != 0 ? o->workers : member_counts[i]));
	}
	printf("\n");
}

static void print_rates(const struct options *o, const char *policy)
{
	printf("%-24.*s", (int)strcspn(policy, "%"), policy);
	for (size_t i = 0; i < COUNTS; i++) {
		if (o->workers == 0 || i == 0)
			printf(" %9.3f",
			       rate(o, policy, o->workers != 0 ? o->workers : member_counts[i]));
		fflush(stdout);
	}
	printf("\n");
}

static uint64_t number(const char *option, uint64_t min, uint64_t max)
{
	char *end;
	uint64_t value = strtoull(optarg, &end, 10);

	if (*end != '\0' || value < min || value > max) {
		fprintf(stderr, "bench_ledger: --%s has to be %" PRIu64 " to %" PRIu64 "\n", option,
			min, max);
		exit(EXIT_FAILURE);
	}
	return value;
}

static void options_parse(struct options *o, int argc, char **argv)
{
	static const struct option options[] = {
		{ "rounds", required_argument, NULL, 'r' },
		{ "calls", required_argument, NULL, 'c' },
		{ "workers", required_argument, NULL, 'w' },
		{ "policy", required_argument, NULL, 'p' },
		{ NULL, 0, NULL, 0 },
	};

	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (option == 'r')
			o->rounds = (unsigned)number("rounds", 1, ROUNDS_MAX);
		else if (option == 'c')
			o->calls = number("calls", 1, UINT32_MAX);
		else if (option == 'w')
			o->workers = (uint32_t)number("workers", 1, 100000);
		else if (option == 'p')
			o->policy = optarg;
		else
			exit(EXIT_FAILURE);
	}
}

int main(int argc, char **argv)
{
	struct options o = { .rounds = 5, .calls = 200000 };

	options_parse(&o, argc, argv);
	printf("%-24s", "million calls a second");
	for (size_t i = 0; i < COUNTS; i++) {
		if (o.workers == 0 || i == 0)
			printf(" %9" PRIu32, o.workers != 0 ? o.workers : member_counts[i]);
	}
	printf("  members\n");
	if (o.policy != NULL)
		print_rates(&o, o.policy);
	for (size_t i = 0; i < POLICIES && o.policy == NULL; i++)
		print_rates(&o, policies[i]);
	if (o.policy == NULL) {
		print_row(&o, "birth, ms", birth_ms);
		print_row(&o, "commit, ns a member", commit_ns);
	}
	return EXIT_SUCCESS;
}
