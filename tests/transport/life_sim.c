/* SPDX-License-Identifier: MIT */
/* Peers in processes of a simulated world. Orders and reports travel by themselves, slower than any
 * put, so that what was put before a report has arrived with it. */
#include "tests/transport/life_sim.h"

#include <errno.h>

#include "common/base/assert.h"
#include "tests/sim/world.h"
#include "tests/transport/peer.h"

#define MAIL_MAX 8u
#define THAWED_NS (1000 * MST_SECOND)

struct peer {
	const struct mst_transport *transport;
	struct sim_process *process;
	struct sim_wakeup told, answered;
	struct peer_command order[MAIL_MAX];
	struct peer_report report[MAIL_MAX];
	uint64_t orders, taken, reports, heard; /* counted from the beginning */
	bool ends, ended;
	struct peer *next;
};

static struct {
	uint64_t world;
	struct peer *first;
	uint32_t count;
	bool late; /* a deed is to be done */
	void (*act)(void *arg);
	void *arg;
	struct sim_wakeup done;
} here;

static void travel(void)
{
	sim_sleep(sim_between(MST_MS, 2 * MST_MS));
}

static void live(void *arg)
{
	struct peer *p = arg;
	struct side side = { .t = p->transport };

	while (!p->ends && !p->process->dead) {
		if (p->taken == p->orders) {
			(void)sim_wait(&p->told, MST_SECOND);
			continue;
		}
		struct peer_report *r = &p->report[p->reports % MAIL_MAX];
		travel();
		*r = (struct peer_report){ 0 };
		r->rc = side_obey(&side, &p->order[p->taken++ % MAIL_MAX], r);
		p->reports++;
		sim_ring(&p->answered);
	}
	side_close(&side);
	p->ended = true;
	sim_ring(&p->answered);
}

struct peer *peer_start(const struct mst_transport *t, bool process)
{
	struct peer *p = sim_alloc(sizeof(*p));

	(void)process;
	if (here.world != sim_world()) {
		here.world = sim_world();
		here.first = NULL;
		here.late = false;
	}
	p->transport = t;
	p->process = sim_process_new("peer");
	p->next = here.first;
	here.first = p;
	sim_spawn(p->process, live, p);
	return p;
}

void peer_tell(struct peer *p, const struct peer_command *c)
{
	MST_ASSERT(p->orders - p->taken < MAIL_MAX);
	p->order[p->orders++ % MAIL_MAX] = *c;
	sim_ring(&p->told);
}

struct peer_report peer_hear(struct peer *p)
{
	uint64_t end_ns = sim_now() + PEER_PATIENCE_S * MST_SECOND;

	while (p->heard == p->reports && !p->ended && sim_now() < end_ns)
		(void)sim_wait(&p->answered, end_ns - sim_now());
	if (p->heard == p->reports)
		return (struct peer_report){ .rc = -ETIME };
	travel();
	return p->report[p->heard++ % MAIL_MAX];
}

struct peer_report peer_do(struct peer *p, const struct peer_command *c)
{
	peer_tell(p, c);
	return peer_hear(p);
}

void peer_kill(void *peer)
{
	sim_kill(((struct peer *)peer)->process, SIM_KILLED);
}

void peer_stop(struct peer *p)
{
	sim_freeze(p->process, THAWED_NS);
}

void peer_continue(struct peer *p)
{
	p->process->frozen_until = 0;
}

int peer_end(struct peer *p)
{
	p->ends = true;
	sim_ring(&p->told);
	while (!p->ended)
		(void)sim_wait(&p->answered, MST_SECOND);
	return 0;
}

void life_sim_end(void)
{
	for (struct peer *p = here.first; here.world == sim_world() && p != NULL; p = p->next)
		(void)peer_end(p);
}

/* ---- time ---- */

void await_caller(const struct mst_link_listener *listener)
{
	(void)listener;
	(void)sim_wait(&sim_self()->control, 100 * MST_MS);
}

static void do_now(void *unused, uint64_t unused_too)
{
	(void)unused;
	(void)unused_too;
	here.act(here.arg);
	here.late = false;
	sim_ring(&here.done);
}

void later(uint64_t after_ns, void (*act)(void *arg), void *arg)
{
	here.act = act;
	here.arg = arg;
	here.late = true;
	sim_after(after_ns, do_now, NULL, 0);
}

void later_end(void)
{
	while (here.late)
		(void)sim_wait(&here.done, MST_SECOND);
	here.done.rung = false;
}

/* Looking at the clock takes time; who does nothing else until it is late enough gets there. */
uint64_t __wrap_mst_now_ns(void);
void __wrap_mst_sleep_ns(uint64_t ns);

uint64_t __wrap_mst_now_ns(void)
{
	const struct sim_process *self = sim_self();

	if (self == NULL)
		return sim_now();
	if (!self->dead)
		sim_sleep(sim_between(50, 1000));
	return sim_now() + self->clock_offset;
}

void __wrap_mst_sleep_ns(uint64_t ns)
{
	sim_sleep(ns);
}
