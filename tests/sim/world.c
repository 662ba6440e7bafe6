/* SPDX-License-Identifier: MIT */
/* What happens lies in a heap by time, and by number where times are equal; a fiber that is to run
 * is one of the things that happen. */
#include "tests/sim/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/assert.h"
#include "tests/sim/fiber.h"

#define CHUNK_BYTES ((size_t)4 << 20)
#define ALIGNMENT ((size_t)4096) /* of what is a page long; else 64 */
#define BEGIN_NS MST_SECOND
#define AT_DEATH_MAX 4

/* A wait of a ghost: it may wait for another ghost, that is still to have its turn. */
#define GHOST_NS 1000u

/* From a wakeup to the turn of whom it wakes. */
#define WAKE_NS_MIN 200u
#define WAKE_NS_MAX 20000u

struct chunk {
	struct chunk *next;
	size_t size, used;
};

struct happening {
	uint64_t at_ns, number;
	sim_act act;
	void *ctx;
	uint64_t arg;
};

struct sim_fiber {
	struct fiber *fiber;
	struct sim_process *process;
	uint32_t id;
	uint64_t turn; /* a wake-up from an earlier sleep comes too late */
	bool sleeps, ended;
	struct sim_fiber *next;
};

static struct {
	struct mst_rand chance;
	uint64_t now_ns, number, steps, hash;
	bool stopped, traced, interrupted;
	double preemption;
	struct chunk *chunks;
	struct happening *heap;
	size_t heap_count, heap_size;
	struct sim_process *processes;
	struct sim_fiber *fibers, *running;
	uint32_t process_count, fiber_count;
} sim;

static uint64_t worlds;
static void (*at_death[AT_DEATH_MAX])(struct sim_process *p);

/* ---- memory ---- */

static struct chunk *chunk_new(size_t bytes)
{
	size_t size = bytes + 2 * ALIGNMENT < CHUNK_BYTES ? CHUNK_BYTES : bytes + 2 * ALIGNMENT;
	struct chunk *c = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			       0);

	MST_ASSERT(c != MAP_FAILED);
	*c = (struct chunk){ .next = sim.chunks, .size = size, .used = sizeof(*c) };
	sim.chunks = c;
	return c;
}

void *sim_alloc(size_t bytes)
{
	size_t align = bytes >= ALIGNMENT ? ALIGNMENT : 64;
	struct chunk *c = sim.chunks;

	if (c == NULL || c->used + align + bytes > c->size)
		c = chunk_new(bytes);
	size_t at = (c->used + align - 1) / align * align;
	c->used = at + bytes;
	return (char *)c + at;
}

static void free_all(void)
{
	struct chunk *next;

	for (struct chunk *c = sim.chunks; c != NULL; c = next) {
		next = c->next;
		munmap(c, c->size);
	}
}

/* ---- chance ---- */

uint64_t sim_below(uint64_t bound)
{
	return mst_rand_below(&sim.chance, bound);
}

uint64_t sim_between(uint64_t low, uint64_t high)
{
	return low + sim_below(high - low + 1);
}

bool sim_chance(double probability)
{
	return mst_rand_unit(&sim.chance) < probability;
}

/* ---- the heap ---- */

static bool is_before(const struct happening *a, const struct happening *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->number < b->number;
}

static void swap(struct happening *a, struct happening *b)
{
	struct happening c = *a;

	*a = *b;
	*b = c;
}

static void heap_push(const struct happening *h)
{
	if (sim.heap_count == sim.heap_size) {
		size_t size = sim.heap_size > 0 ? 2 * sim.heap_size : 1024;
		struct happening *bigger = sim_alloc(size * sizeof(*bigger));
		if (sim.heap_count > 0)
			memcpy(bigger, sim.heap, sim.heap_count * sizeof(*bigger));
		sim.heap = bigger;
		sim.heap_size = size;
	}
	size_t i = sim.heap_count++;
	sim.heap[i] = *h;
	for (; i > 0 && is_before(&sim.heap[i], &sim.heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&sim.heap[i], &sim.heap[(i - 1) / 2]);
}

static struct happening heap_pop(void)
{
	struct happening top = sim.heap[0];
	size_t i = 0;

	sim.heap[0] = sim.heap[--sim.heap_count];
	for (;;) {
		size_t least = i;
		for (size_t child = 2 * i + 1; child <= 2 * i + 2; child++) {
			if (child < sim.heap_count && is_before(&sim.heap[child], &sim.heap[least]))
				least = child;
		}
		if (least == i)
			return top;
		swap(&sim.heap[i], &sim.heap[least]);
		i = least;
	}
}

void sim_after(uint64_t delay_ns, sim_act act, void *ctx, uint64_t arg)
{
	uint64_t at_ns = delay_ns < MST_NEVER - sim.now_ns ? sim.now_ns + delay_ns : MST_NEVER;

	heap_push(&(struct happening){ at_ns, sim.number++, act, ctx, arg });
}

/* ---- the world ---- */

void sim_begin(uint64_t seed)
{
	bool traced = sim.traced;

	worlds++;
	memset(&sim, 0, sizeof(sim));
	sim.traced = traced;
	sim.now_ns = BEGIN_NS;
	sim.preemption = 0.05;
	mst_rand_seed(&sim.chance, seed);
}

void sim_end(void)
{
	for (struct sim_fiber *f = sim.fibers; f != NULL; f = f->next) {
		MST_ASSERT(f->ended);
		fiber_free(f->fiber);
	}
	free_all();
	sim.chunks = NULL;
	sim.fibers = NULL;
}

void sim_run(uint64_t until_ns)
{
	while (!sim.stopped && sim.heap_count > 0 && sim.heap[0].at_ns <= until_ns) {
		struct happening h = heap_pop();
		sim.now_ns = h.at_ns;
		sim.steps++;
		sim_mix(h.at_ns ^ h.number << 40);
		h.act(h.ctx, h.arg);
	}
}

uint64_t sim_world(void)
{
	return worlds;
}

void sim_stop(void)
{
	sim.stopped = true;
}

uint64_t sim_now(void)
{
	return sim.now_ns;
}

uint64_t sim_steps(void)
{
	return sim.steps;
}

uint64_t sim_hash(void)
{
	return sim.hash;
}

void sim_mix(uint64_t fact)
{
	sim.hash = (sim.hash ^ fact) * UINT64_C(0x9e3779b97f4a7c15);
	sim.hash ^= sim.hash >> 29;
}

/* ---- fibers ---- */

static void run(void *ctx, uint64_t turn)
{
	struct sim_fiber *f = ctx;
	struct sim_process *p = f->process;

	if (f->ended || f->turn != turn)
		return;
	if (!p->dead && p->frozen_until > sim.now_ns) {
		sim_after(p->frozen_until - sim.now_ns, run, f, turn);
		return;
	}
	f->turn++;
	f->sleeps = false;
	sim.running = f;
	sim_mix(f->id);
	f->ended = fiber_run(f->fiber);
	sim.running = NULL;
	if (f->ended)
		p->fibers--;
}

void sim_spawn(struct sim_process *p, void (*main)(void *arg), void *arg)
{
	struct sim_fiber *f = sim_alloc(sizeof(*f));

	f->fiber = fiber_new(main, arg);
	f->process = p;
	f->id = ++sim.fiber_count;
	f->next = sim.fibers;
	sim.fibers = f;
	p->fibers++;
	sim_after(sim_between(WAKE_NS_MIN, WAKE_NS_MAX), run, f, f->turn);
}

static void pause_for(struct sim_fiber *f, uint64_t span_ns)
{
	if (f->process->dead) {
		f->process->clock_offset += span_ns < MST_SECOND ? span_ns : MST_SECOND;
		span_ns = GHOST_NS;
	}
	f->sleeps = true;
	if (span_ns < MST_NEVER - sim.now_ns)
		sim_after(span_ns, run, f, f->turn);
	fiber_pause();
}

bool sim_wait(struct sim_wakeup *wakeup, uint64_t timeout_ns)
{
	struct sim_fiber *f = sim.running;

	MST_ASSERT(f != NULL && wakeup->sleeper == NULL);
	if (!wakeup->rung && timeout_ns > 0) {
		wakeup->sleeper = f;
		pause_for(f, timeout_ns);
		wakeup->sleeper = NULL;
	}
	bool rung = wakeup->rung;
	wakeup->rung = false;
	return rung;
}

void sim_ring(struct sim_wakeup *wakeup)
{
	struct sim_fiber *f = wakeup->sleeper;

	if (!wakeup->rung && f != NULL)
		sim_after(sim_between(WAKE_NS_MIN, WAKE_NS_MAX), run, f, f->turn);
	wakeup->rung = true;
}

void sim_sleep(uint64_t ns)
{
	if (ns > 0)
		pause_for(sim.running, ns);
}

void sim_set_preemption(double chance)
{
	sim.preemption = chance;
}

void sim_interrupt(void)
{
	sim.interrupted = true;
}

/* Mostly as long as an interrupt takes, now and then as long as another's time slice. */
void sim_preempt(void)
{
	if (sim.running == NULL || sim.running->process->dead)
		return;
	if (!sim.interrupted && !sim_chance(sim.preemption))
		return;
	sim.interrupted = false;
	uint64_t span_ns = sim_between(100, 20000);
	if (sim_chance(0.03))
		span_ns = sim_between(MST_MS / 10, 6 * MST_MS);
	pause_for(sim.running, span_ns);
}

/* ---- processes ---- */

struct sim_process *sim_process_new(const char *name)
{
	struct sim_process *p = sim_alloc(sizeof(*p)), **end = &sim.processes;

	(void)snprintf(p->name, sizeof(p->name), "%s", name);
	p->id = ++sim.process_count;
	p->clock_offset = sim_below(1000 * MST_SECOND);
	while (*end != NULL)
		end = &(*end)->next;
	*end = p;
	return p;
}

bool sim_shares_host(const struct sim_process *p)
{
	for (const struct sim_process *other = sim.processes; other != NULL; other = other->next)
		if (other != p && other->host == p->host)
			return true;
	return false;
}

struct sim_process *sim_self(void)
{
	return sim.running != NULL ? sim.running->process : NULL;
}

void sim_at_death(void (*act)(struct sim_process *p))
{
	for (int i = 0; i < AT_DEATH_MAX; i++) {
		if (at_death[i] == act)
			return;
		if (at_death[i] == NULL) {
			at_death[i] = act;
			return;
		}
	}
	MST_ASSERT(false && "room for one more");
}

void sim_kill(struct sim_process *p, enum sim_death how)
{
	if (p->dead)
		return;
	sim_say("%s dies%s", p->name, how == SIM_POWER_OFF ? ": power off" : "");
	p->dead = true;
	p->death = how;
	for (int i = 0; i < AT_DEATH_MAX && at_death[i] != NULL; i++)
		at_death[i](p);
	for (struct sim_fiber *f = sim.fibers; f != NULL; f = f->next) {
		if (f->process == p && f->sleeps && !f->ended)
			sim_after(0, run, f, f->turn);
	}
}

void sim_freeze(struct sim_process *p, uint64_t span_ns)
{
	sim_say("%s freezes for %.3f s", p->name, (double)span_ns / (double)MST_SECOND);
	if (sim.now_ns + span_ns > p->frozen_until)
		p->frozen_until = sim.now_ns + span_ns;
}

/* ---- the trace ---- */

void sim_trace(bool on)
{
	sim.traced = on;
}

void sim_say(const char *fmt, ...)
{
	va_list args;

	if (!sim.traced)
		return;
	fprintf(stderr, "%12.6f  %-10s ", (double)sim.now_ns / (double)MST_SECOND,
		sim.running != NULL ? sim.running->process->name : "");
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
}
