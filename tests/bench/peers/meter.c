/* SPDX-License-Identifier: MIT */
/* One file, mapped by all workers of a run: where they meet, and a row of times per step. */
#include "tests/bench/peers/meter.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"

#define STEPS_MIN 5u
#define SPINS 64u
#define MARK_STRIDE 1024u          /* an element of each 4 KiB, */
#define MARKS_MIN 16u              /* but so many in any case */
#define LEAVE_NS (20 * MST_SECOND) /* how long rank 0 waits for the others at the end */
/* Divisible by 1 to 8: means of so many are whole numbers. */
#define UNIT 840

struct shared {
	_Atomic uint32_t arrived;
	_Atomic uint32_t meetings; /* its release publishes `go` and what the others have noted */
	_Atomic uint32_t left;
	_Atomic uint64_t wrong, checked;
	_Atomic uint64_t workers_cpu_ns; /* of all workers, between calls and results that count */
	uint32_t go;                     /* written by the last to arrive */
	uint64_t begun_ns;               /* of the first step that counts; likewise */
	pid_t server;                    /* the process whose name was given; 0: none is found */
	uint64_t server_cpu_ns[2]; /* of its own, when the first step that counts begins, and now */
	uint64_t ns[];             /* [step][worker] */
};

struct meter {
	struct meter_course course;
	struct shared *shared;
	size_t len;
	uint32_t rank, step;
	uint64_t begun_ns, cpu_ns;
};

/* --- the command line ----------------------------------------------------------------------- */

static const struct option options[] = {
	{ "file", required_argument, NULL, 'f' },
	{ "peer", required_argument, NULL, 'p' },
	{ "buffers", required_argument, NULL, 'b' },
	{ "workers", required_argument, NULL, 'n' },
	{ "steps", required_argument, NULL, 's' },
	{ "warmup", required_argument, NULL, 'w' },
	{ "elems", required_argument, NULL, 'e' },
	{ "seconds", required_argument, NULL, 't' },
	{ "delay-ms", required_argument, NULL, 'd' },
	{ "fill", required_argument, NULL, 'l' },
	{ "server", required_argument, NULL, 'v' },
	{ "owner", required_argument, NULL, 'o' },
	{ NULL, 0, NULL, 0 },
};

static bool take(struct meter_course *c, int letter)
{
	switch (letter) {
	case 'f':
		c->file = optarg;
		return true;
	case 'p':
		c->peer = optarg;
		return true;
	case 'b':
		c->buffers = optarg;
		return true;
	case 'n':
		c->workers = (uint32_t)strtoul(optarg, NULL, 10);
		return true;
	case 's':
		c->steps = (uint32_t)strtoul(optarg, NULL, 10);
		return true;
	case 'w':
		c->warmup = (uint32_t)strtoul(optarg, NULL, 10);
		return true;
	case 'e':
		c->elems = strtoull(optarg, NULL, 10);
		return true;
	case 't':
		c->seconds = strtod(optarg, NULL);
		return true;
	case 'l':
		c->fill = optarg;
		return true;
	case 'v':
		c->server = optarg;
		return true;
	case 'o':
		c->owner = optarg;
		return true;
	case 'd':
		c->delay_ms = (uint32_t)strtoul(optarg, NULL, 10);
		return true;
	default:
		return false;
	}
}

static bool is_sound(const struct meter_course *c)
{
	return c->file != NULL && c->workers >= 1 && c->workers <= METER_WORKERS_MAX &&
	       c->elems > 0 && c->steps > 0 &&
	       (strcmp(c->fill, "all") == 0 || strcmp(c->fill, "marks") == 0) &&
	       !(c->delay_ms > 0 && c->workers < 2);
}

struct meter *meter_open(int argc, char **argv)
{
	struct meter *m = calloc(1, sizeof(*m));
	bool good = m != NULL;
	int letter;

	if (m != NULL)
		m->course = (struct meter_course){
			.peer = "?", .buffers = "own", .fill = "all", .seconds = 1e9
		};
	optind = 1; /* there may have been another meter */
	while (good && (letter = getopt_long(argc, argv, "", options, NULL)) != -1)
		good = take(&m->course, letter);
	if (good && m->course.owner == NULL)
		m->course.owner = m->course.delay_ms > 0 ? "servers" : "workers";
	if (good && is_sound(&m->course))
		return m;
	fprintf(stderr, "usage: --file FILE --workers 1..64 --elems N --steps N [--warmup N]"
			" [--seconds S] [--delay-ms MS] [--peer NAME]"
			" [--buffers slot|own] [--fill all|marks] [--server NAME]"
			" [--owner servers|workers]\n");
	free(m);
	return NULL;
}

const struct meter_course *meter_course(const struct meter *m)
{
	return &m->course;
}

int meter_join(struct meter *m, uint32_t rank)
{
	const struct meter_course *c = &m->course;
	int fd = open(c->file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	m->rank = rank;
	m->len = sizeof(*m->shared) + sizeof(m->shared->ns[0]) * c->steps * c->workers;
	/* Each sets the same length, so that nobody has to be first. */
	if (fd < 0 || ftruncate(fd, (off_t)m->len) != 0)
		goto err;
	m->shared = mmap(NULL, m->len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (m->shared == MAP_FAILED)
		goto err;
	close(fd);
	return 0;

err:;
	int rc = -errno;
	fprintf(stderr, "meter: %s: %s\n", c->file, strerror(-rc));
	m->shared = NULL;
	if (fd >= 0)
		close(fd);
	return rc;
}

/* --- filling and checking ------------------------------------------------------------------- */

/* 0..63, and another one for nearly every neighbour: what is moved to a wrong place shows. */
static inline float noise(uint64_t i)
{
	return (float)(int32_t)(((uint32_t)i * UINT32_C(2654435761)) >> 26);
}

/* A rank's gradient is noise(i) * slope + offset, so any sum of them is of that form too. Signs
 * alternate with the step, or parameters that are the sum of all steps would grow out of what a
 * float holds exactly. */
struct line {
	float slope, offset;
};

static struct line line_of(uint32_t rank, uint64_t tag)
{
	int sign = tag % 2 == 0 ? 1 : -1;
	int slope = (int)(rank + tag / 2) % 8 + 1;
	int offset = (int)(3 * rank + 5 * (tag / 2)) % 32;

	return (struct line){ (float)(sign * slope * UNIT), (float)(sign * offset * UNIT) };
}

static struct line line_of_set(const struct meter *m, uint64_t tag, uint64_t set)
{
	struct line sum = { 0, 0 };

	for (uint32_t r = 0; r < m->course.workers; r++) {
		if ((set >> r & 1) == 0)
			continue;
		struct line one = line_of(r, tag);
		sum.slope += one.slope;
		sum.offset += one.offset;
	}
	return sum;
}

/* Every element while the step warms up, so that all of memory is touched and checked once. Not 1:
 * the last element is a mark besides. */
static uint64_t stride_of(const struct meter *m, uint32_t step)
{
	uint64_t stride = m->course.elems / MARKS_MIN;

	if (step < m->course.warmup || strcmp(m->course.fill, "all") == 0 || stride < 2)
		return 1;
	return stride < MARK_STRIDE ? stride : MARK_STRIDE;
}

void meter_fill(const struct meter *m, float *gradient, uint64_t tag)
{
	struct line l = line_of(m->rank, tag);
	uint64_t stride = stride_of(m, m->step), elems = m->course.elems;

	for (uint64_t i = 0; stride == 1 && i < elems; i++)
		gradient[i] = noise(i) * l.slope + l.offset;
	for (uint64_t i = 0; stride > 1 && i < elems; i += stride)
		gradient[i] = noise(i) * l.slope + l.offset;
	gradient[elems - 1] = noise(elems - 1) * l.slope + l.offset;
}

static void note_check(struct meter *m, uint64_t wrong)
{
	atomic_fetch_add_explicit(&m->shared->wrong, wrong, memory_order_relaxed);
	atomic_fetch_add_explicit(&m->shared->checked, 1, memory_order_relaxed);
}

/* A missing rank or a stale step changes an element by UNIT / divisor or more; 1 is rounding. A
 * NaN is wrong as well. */
static bool is_wrong(float found, uint64_t i, struct line expected)
{
	return !(fabsf(found - (noise(i) * expected.slope + expected.offset)) <= 1);
}

static struct line mean_of_set(const struct meter *m, uint64_t tag, uint64_t set, double divisor)
{
	struct line l = line_of_set(m, tag, set);

	return (struct line){ (float)(l.slope / divisor), (float)(l.offset / divisor) };
}

void meter_check(struct meter *m, const float *result, uint64_t tag, uint64_t set, double divisor)
{
	struct line l = mean_of_set(m, tag, set, divisor);
	uint64_t stride = stride_of(m, m->step - 1), elems = m->course.elems, wrong = 0;

	for (uint64_t i = 0; stride == 1 && i < elems; i++)
		wrong += is_wrong(result[i], i, l);
	for (uint64_t i = 0; stride > 1 && i < elems; i += stride)
		wrong += is_wrong(result[i], i, l);
	if (stride > 1)
		wrong += is_wrong(result[elems - 1], elems - 1, l);
	note_check(m, wrong);
}

void meter_check_step(struct meter *m, const float *result, const float *before, uint64_t tag,
		      uint64_t set)
{
	struct line l = mean_of_set(m, tag, set, __builtin_popcountll(set));
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < m->course.elems; i++)
		wrong += is_wrong(before[i] - result[i], i, l);
	note_check(m, wrong);
}

uint64_t meter_wrong(const struct meter *m)
{
	return atomic_load_explicit(&m->shared->wrong, memory_order_relaxed);
}

/* --- processor time -------------------------------------------------------------------------- */

static uint64_t cpu_of(clockid_t clock)
{
	struct timespec t = { 0 };

	(void)clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * MST_SECOND + (uint64_t)t.tv_nsec;
}

static bool is_called(const char *pid, const char *name)
{
	char path[64], comm[64] = "";

	snprintf(path, sizeof(path), "/proc/%.20s/comm", pid);
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return false;
	(void)!fgets(comm, sizeof(comm), file);
	fclose(file);
	comm[strcspn(comm, "\n")] = '\0';
	return strcmp(comm, name) == 0;
}

/* In this session, which is one run of the comparison. */
static pid_t find_server(const char *name)
{
	DIR *proc = name != NULL ? opendir("/proc") : NULL;
	pid_t found = 0;

	for (struct dirent *e; proc != NULL && found == 0 && (e = readdir(proc)) != NULL;) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
		if (pid > 0 && getsid(pid) == getsid(0) && is_called(e->d_name, name))
			found = pid;
	}
	if (proc != NULL)
		closedir(proc);
	return found;
}

static void note_server(const struct meter *m)
{
	struct shared *s = m->shared;
	bool first = m->step <= m->course.warmup;
	clockid_t clock;

	if (first && s->server == 0)
		s->server = find_server(m->course.server);
	if (s->server == 0 || clock_getcpuclockid(s->server, &clock) != 0)
		return;
	s->server_cpu_ns[1] = cpu_of(clock);
	if (first)
		s->server_cpu_ns[0] = s->server_cpu_ns[1];
}

/* --- steps ---------------------------------------------------------------------------------- */

static bool is_delayed(const struct meter *m)
{
	return m->course.delay_ms > 0 && m->rank == m->course.workers - 1;
}

static uint32_t measured_workers(const struct meter *m)
{
	return m->course.workers - (m->course.delay_ms > 0);
}

static bool is_enough(const struct meter *m, uint64_t now)
{
	const struct meter_course *c = &m->course;

	if (m->step >= c->warmup + c->steps)
		return true;
	return c->delay_ms == 0 && m->step >= c->warmup + STEPS_MIN &&
	       (double)(now - m->shared->begun_ns) > c->seconds * 1e9;
}

static void decide_to_go(const struct meter *m)
{
	uint64_t now = mst_now_ns();

	if (m->step <= m->course.warmup)
		m->shared->begun_ns = now;
	note_server(m);
	m->shared->go = !is_enough(m, now);
}

static void decide_nothing(const struct meter *m)
{
	(void)m;
}

/* Blocks until all who are measured are here. The last of them calls @decide for all. */
static void meet(struct meter *m, void (*decide)(const struct meter *m))
{
	struct shared *s = m->shared;
	uint32_t meeting = atomic_load_explicit(&s->meetings, memory_order_relaxed);

	/* Acquires what the others have noted, and releases what this one has. */
	if (atomic_fetch_add_explicit(&s->arrived, 1, memory_order_acq_rel) + 1 ==
	    measured_workers(m)) {
		decide(m);
		atomic_store_explicit(&s->arrived, 0, memory_order_relaxed);
		atomic_store_explicit(&s->meetings, meeting + 1, memory_order_release);
		return;
	}
	for (unsigned i = 0; atomic_load_explicit(&s->meetings, memory_order_acquire) == meeting;
	     i++)
		if (i >= SPINS)
			sched_yield();
}

bool meter_next(struct meter *m)
{
	const struct meter_course *c = &m->course;
	bool go;

	if (is_delayed(m)) {
		go = m->step < c->warmup + c->steps;
		if (go)
			mst_sleep_ns(c->delay_ms * MST_MS);
	} else {
		meet(m, decide_to_go);
		go = m->shared->go;
	}
	m->cpu_ns = cpu_of(CLOCK_PROCESS_CPUTIME_ID);
	m->begun_ns = mst_now_ns();
	return go;
}

void meter_done(struct meter *m)
{
	const struct meter_course *c = &m->course;
	uint64_t took = mst_now_ns() - m->begun_ns;

	if (!is_delayed(m) && m->step >= c->warmup) {
		uint64_t cpu_ns = cpu_of(CLOCK_PROCESS_CPUTIME_ID) - m->cpu_ns;
		m->shared->ns[(size_t)(m->step - c->warmup) * c->workers + m->rank] = took;
		atomic_fetch_add_explicit(&m->shared->workers_cpu_ns, cpu_ns, memory_order_relaxed);
	}
	m->step++;
}

void meter_meet(struct meter *m)
{
	if (!is_delayed(m))
		meet(m, decide_nothing);
}

/* --- figures -------------------------------------------------------------------------------- */

static int compare_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Makes the rows of times one time per step, sorted, at the front. */
static void reduce(struct meter *m, uint32_t steps)
{
	uint32_t width = m->course.workers;
	uint64_t *ns = m->shared->ns;

	for (uint32_t i = 0; i < steps; i++) {
		uint64_t slowest = 0;
		for (uint32_t r = 0; r < measured_workers(m); r++)
			if (ns[(size_t)i * width + r] > slowest)
				slowest = ns[(size_t)i * width + r];
		ns[i] = slowest;
	}
	qsort(ns, steps, sizeof(ns[0]), compare_ns);
}

/* The smallest time that at least so many per cent of the steps kept within. */
static double quantile_us(const struct meter *m, uint32_t steps, unsigned percent)
{
	uint64_t rank = ((uint64_t)steps * percent + 99) / 100;

	return (double)m->shared->ns[rank > 0 ? rank - 1 : 0] / 1e3;
}

static int cpu_count(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
}

static void print(struct meter *m)
{
	const struct meter_course *c = &m->course;
	uint32_t steps = m->step - c->warmup;

	reduce(m, steps);
	printf("{\"peer\":\"%s\",\"buffers\":\"%s\",\"workers\":%" PRIu32 ",\"size_bytes\":%" PRIu64
	       ",\"delay_ms\":%" PRIu32 ",\"samples\":%" PRIu32,
	       c->peer, c->buffers, c->workers, c->elems * sizeof(float), c->delay_ms, steps);
	printf(",\"min_us\":%.3f,\"p50_us\":%.3f,\"p99_us\":%.3f,\"max_us\":%.3f",
	       quantile_us(m, steps, 0), quantile_us(m, steps, 50), quantile_us(m, steps, 99),
	       quantile_us(m, steps, 100));
	printf(",\"workers_cpu_us\":%.3f,\"server_cpu_us\":%.3f",
	       (double)atomic_load(&m->shared->workers_cpu_ns) / 1e3 / steps,
	       (double)(m->shared->server_cpu_ns[1] - m->shared->server_cpu_ns[0]) / 1e3 / steps);
	printf(",\"checked\":%" PRIu64 ",\"wrong\":%" PRIu64 ",\"cpus\":%d}\n",
	       atomic_load(&m->shared->checked), meter_wrong(m), cpu_count());
	fflush(stdout);
}

/* Did all leave in time? The straggler checks its last result when the others are done. */
static bool wait_for_others(const struct meter *m)
{
	uint64_t until = mst_now_ns() + LEAVE_NS;

	/* Acquire: pairs with the release of leaving; their counts are in. */
	while (atomic_load_explicit(&m->shared->left, memory_order_acquire) <
	       m->course.workers - 1) {
		if (mst_now_ns() > until)
			return false;
		mst_sleep_ns(MST_MS);
	}
	return true;
}

int meter_close(struct meter *m)
{
	int status = EXIT_SUCCESS;

	if (m->shared == NULL || (!is_delayed(m) && m->step <= m->course.warmup))
		status = EXIT_FAILURE;
	else if (m->rank != 0)
		atomic_fetch_add_explicit(&m->shared->left, 1, memory_order_release);
	else if (wait_for_others(m))
		print(m);
	else
		status = EXIT_FAILURE;
	if (m->shared != NULL)
		munmap(m->shared, m->len);
	free(m);
	return status;
}
