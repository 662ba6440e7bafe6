/* SPDX-License-Identifier: MIT */
/*
 * Lives worlds through, one for each seed, and holds each against what muster promises.
 *
 *   test_sim [--seeds FIRST[-LAST]] [--transport near|far|mixed] [--jobs N]
 *            [--with KIND@WHO] [--without FAULT,FAULT...] [--commits N] [--plan] [--trace]
 *            [--short] [--lose-ranks]
 *
 * --with leaves out worlds whose plan lacks such a fault: "cut@follower", "hang@leader",
 * "kill@rank"; or in which no versions are saved: "saves". A world that fails is lived again with
 * fewer faults and fewer commits as long as it still fails; what is left is printed with the end of
 * its trace, and with the command that shows all of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/actors.h"

uint64_t __real_mst_now_ns(void);

#define JOBS_MAX 64u
#define HANG_S 20 /* of the processor's time, for one world: a busy host makes none hang */
#define TAIL_LINES 40

enum { EXIT_VIOLATED = 1, EXIT_USAGE = 2 };

static struct {
	uint64_t first, last;
	const char *transport;
	const char *with; /* NULL: all worlds */
	uint32_t jobs;
	uint32_t without; /* a bit for each fault */
	uint64_t commits; /* 0: as planned */
	bool plan, trace, no_tail;
} opt = { .first = 1, .last = 200, .jobs = 2 };

/* Written by the processes that run worlds, and read by the process that has started them. */
struct statistics {
	uint64_t seed; /* of the world that is run now */
	uint64_t worlds, commits, judged, steps, hash;
	char violation[512];
};

/* ---- one world ---- */

struct variant {
	uint64_t seed;
	uint32_t without;
	uint64_t commits;
};

static void make_plan(const struct variant *v, struct sim_plan *plan)
{
	(void)sim_plan_make(v->seed, opt.transport, plan); /* checked */
	for (uint32_t i = 0; i < plan->fault_count; i++)
		plan->fault[i].left_out = v->without >> i & 1;
	if (v->commits != 0)
		plan->commits = v->commits;
}

/* Its signal ends this process. 0: it comes no more. */
static void watch_the_processor(time_t seconds)
{
	struct itimerval timer = { .it_value.tv_sec = seconds };

	(void)setitimer(ITIMER_PROF, &timer, NULL);
}

/* Return: did it hold? If not, nothing of this process can be used any more. */
static bool live(const struct variant *v, struct statistics *t)
{
	static struct sim_plan plan;

	make_plan(v, &plan);
	if (opt.plan || opt.trace)
		sim_plan_print(&plan, stderr);
	t->seed = v->seed;
	watch_the_processor(HANG_S);
	bool held = actors_play(&plan);
	watch_the_processor(0);
	t->worlds++;
	t->commits += obs_commits();
	t->judged += obs_judged();
	t->steps += sim_steps();
	t->hash ^= sim_hash() * (2 * v->seed + 1);
	if (held)
		sim_end();
	else
		(void)snprintf(t->violation, sizeof(t->violation), "%s", obs_violation());
	return held;
}

static void *shared(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED) {
		perror("no shared memory");
		exit(EXIT_USAGE);
	}
	return at;
}

/* ---- a failure, shortened ---- */

static void note_signal(struct statistics *t, int signo)
{
	(void)snprintf(t->violation, sizeof(t->violation), "%s",
		       signo == SIGPROF ? "hangs" : strsignal(signo));
}

/* Its stderr goes to @fd; -1: nowhere. */
static bool fails(const struct variant *v, struct statistics *t, int fd)
{
	int status = 0;

	memset(t, 0, sizeof(*t));
	pid_t pid = fork();
	if (pid == 0) {
		dup2(fd >= 0 ? fd : open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
		sim_trace(fd >= 0);
		_exit(live(v, t) ? 0 : EXIT_VIOLATED);
	}
	waitpid(pid, &status, 0);
	if (WIFSIGNALED(status))
		note_signal(t, WTERMSIG(status));
	return status != 0;
}

static struct variant shorten(const struct variant *from, struct statistics *t)
{
	static struct sim_plan plan;
	struct variant v = *from;

	make_plan(&v, &plan);
	for (uint32_t i = 0; i < plan.fault_count; i++) {
		struct variant less = v;
		less.without |= 1u << i;
		if (less.without != v.without && fails(&less, t, -1))
			v = less;
	}
	for (uint64_t commits = plan.commits; commits > 1;) {
		struct variant less = v;
		less.commits = commits / 2;
		if (!fails(&less, t, -1))
			break;
		v = less;
		commits = less.commits;
	}
	return v;
}

static void print_tail(FILE *from)
{
	char lines[TAIL_LINES][512];
	uint32_t count = 0;

	rewind(from);
	while (fgets(lines[count % TAIL_LINES], sizeof(lines[0]), from) != NULL)
		count++;
	for (uint32_t i = count > TAIL_LINES ? count - TAIL_LINES : 0; i < count; i++)
		fputs(lines[i % TAIL_LINES], stdout);
}

static void print_command(const struct variant *v)
{
	const char *comma = "";

	printf("replay: test_sim --seeds %" PRIu64, v->seed);
	if (opt.with != NULL && strcmp(opt.with, "ranks") == 0)
		printf(" --lose-ranks");
	if (opt.transport != NULL)
		printf(" --transport %s", opt.transport);
	if (v->without != 0) {
		printf(" --without ");
		for (uint32_t i = 0; i < SIM_FAULTS_MAX; i++) {
			if (v->without >> i & 1) {
				printf("%s%" PRIu32, comma, i);
				comma = ",";
			}
		}
	}
	if (v->commits != 0)
		printf(" --commits %" PRIu64, v->commits);
	printf(" --trace\n");
}

static void report(const struct statistics *failed)
{
	struct variant v = { failed->seed, opt.without, opt.commits };
	struct statistics *t = shared(sizeof(*t));
	static struct sim_plan plan;
	FILE *trace = tmpfile();

	printf("seed %" PRIu64 " fails: %s\n", failed->seed, failed->violation);
	if (opt.no_tail || opt.trace || trace == NULL)
		return;
	v = shorten(&v, t);
	make_plan(&v, &plan);
	sim_plan_print(&plan, stdout);
	(void)fails(&v, t, fileno(trace));
	print_tail(trace);
	printf("shortened: %s\n", t->violation);
	print_command(&v);
	fclose(trace);
}

/* ---- many worlds ---- */

static bool is_wanted(const struct variant *v)
{
	static struct sim_plan plan;

	if (opt.with == NULL)
		return true;
	make_plan(v, &plan);
	return sim_plan_has(&plan, opt.with);
}

static void live_share(uint32_t index, struct statistics *t)
{
	for (uint64_t seed = opt.first + index; seed <= opt.last; seed += opt.jobs) {
		struct variant v = { seed, opt.without, opt.commits };
		if (is_wanted(&v) && !live(&v, t))
			_exit(EXIT_VIOLATED);
	}
	_exit(0);
}

/* Waits for all; the first that fails is the end of the others. Return: which; -1: none. */
static int await_all(const pid_t *pid, struct statistics *t)
{
	int failed = -1, status;

	for (uint32_t left = opt.jobs; left > 0; left--) {
		pid_t ended = wait(&status);
		if (status == 0 || failed >= 0)
			continue;
		for (uint32_t i = 0; i < opt.jobs; i++) {
			if (pid[i] == ended)
				failed = (int)i;
			else
				kill(pid[i], SIGKILL);
		}
		if (WIFSIGNALED(status))
			note_signal(&t[failed], WTERMSIG(status));
	}
	return failed;
}

static int live_all(void)
{
	struct statistics *t = shared(JOBS_MAX * sizeof(*t)), sum = { 0 };
	uint64_t begin_ns = __real_mst_now_ns();
	pid_t pid[JOBS_MAX];

	fflush(NULL);
	for (uint32_t i = 0; i < opt.jobs; i++) {
		pid[i] = fork();
		if (pid[i] == 0)
			live_share(i, &t[i]);
	}
	int failed = await_all(pid, t);
	for (uint32_t i = 0; i < opt.jobs; i++) {
		sum.worlds += t[i].worlds;
		sum.commits += t[i].commits;
		sum.judged += t[i].judged;
		sum.steps += t[i].steps;
		sum.hash ^= t[i].hash;
	}
	printf("%" PRIu64 " worlds, %" PRIu64 " versions, %" PRIu64
	       " contributions judged, %" PRIu64 " things happened, in %.1f s; hash %016" PRIx64
	       "\n",
	       sum.worlds, sum.commits, sum.judged, sum.steps,
	       (double)(__real_mst_now_ns() - begin_ns) / (double)MST_SECOND, sum.hash);
	if (failed >= 0)
		report(&t[failed]);
	return failed < 0 ? EXIT_SUCCESS : EXIT_VIOLATED;
}

/* ---- options ---- */

static void usage(void)
{
	fprintf(stderr, "usage: test_sim [--seeds FIRST[-LAST]] [--transport near|far|mixed]\n"
			"                [--jobs N] [--with KIND@rank|leader|follower] "
			"[--without FAULT,...]\n"
			"                [--commits N] [--plan] [--trace] [--short] "
			"[--lose-ranks]\n");
	exit(EXIT_USAGE);
}

static void read_seeds(const char *text)
{
	char *end;

	opt.first = opt.last = strtoull(text, &end, 10);
	if (*end == '-')
		opt.last = strtoull(end + 1, &end, 10);
	if (*end != '\0' || opt.last < opt.first)
		usage();
}

static void read_without(const char *text)
{
	char *end;

	do {
		unsigned long fault = strtoul(text, &end, 10);
		if (end == text || fault >= SIM_FAULTS_MAX)
			usage();
		opt.without |= 1u << fault;
		text = end + 1;
	} while (*end == ',');
}

static void read_options(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "seeds", 1, NULL, 's' }, { "transport", 1, NULL, 't' },
		{ "jobs", 1, NULL, 'j' },  { "without", 1, NULL, 'w' },
		{ "with", 1, NULL, 'W' },  { "commits", 1, NULL, 'c' },
		{ "plan", 0, NULL, 'p' },  { "trace", 0, NULL, 'T' },
		{ "short", 0, NULL, 'S' }, { "lose-ranks", 0, NULL, 'L' },
		{ NULL, 0, NULL, 0 },
	};
	static struct sim_plan plan;
	int o;

	while ((o = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (o) {
		case 's':
			read_seeds(optarg);
			break;
		case 't':
			opt.transport = optarg;
			break;
		case 'j':
			opt.jobs = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'W':
			opt.with = optarg;
			break;
		case 'w':
			read_without(optarg);
			break;
		case 'c':
			opt.commits = strtoull(optarg, NULL, 10);
			break;
		case 'p':
			opt.plan = true;
			break;
		case 'T':
			opt.trace = true;
			break;
		case 'S':
			opt.no_tail = true;
			break;
		case 'L':
			opt.with = "ranks";
			sim_plan_lose_ranks();
			break;
		default:
			usage();
		}
	}
	if (optind != argc || opt.jobs == 0 || opt.jobs > JOBS_MAX ||
	    !sim_plan_make(opt.first, opt.transport, &plan))
		usage();
}

int main(int argc, char **argv)
{
	read_options(argc, argv);
	sim_trace(opt.trace);
	if (opt.last - opt.first + 1 < opt.jobs)
		opt.jobs = (uint32_t)(opt.last - opt.first + 1);
	return live_all();
}
