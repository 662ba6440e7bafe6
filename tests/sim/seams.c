/* SPDX-License-Identifier: MIT */
/*
 * What the server and the client would take from the operating system, and in a simulated world get
 * from it: the linker is told to wrap these. What they are when no world runs is the real thing.
 */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "client/session/control.h"
#include "client/session/heartbeat.h"
#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/rand.h"
#include "common/transport/origins.h"
#include "common/transport/transport.h"
#include "server/control/connections/frontend.h"
#include "server/data/aggregator.h"
#include "server/data/shard.h"
#include "tests/sim/actors.h"
#include "tests/sim/log.h"
#include "tests/sim/net.h"
#include "tests/sim/observer.h"
#include "tests/sim/servers.h"
#include "tests/sim/world.h"

#define PID_FIRST 1000

uint64_t __wrap_mst_now_ns(void);
void __wrap_mst_log(enum mst_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void __wrap_mst_sleep_ns(uint64_t ns);
pid_t __real_getpid(void);
pid_t __wrap_getpid(void);
int __wrap_mst_rand_secret(void *out, unsigned len);
const struct mst_transport *__wrap_mst_transport_at(uint32_t index);
int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap___poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t bytes);
int __real_epoll_ctl(int epoll, int op, int fd, struct epoll_event *ev);
int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *ev);
int __wrap_mst_origins_own(const struct mst_fabric *fabric, struct mst_origins *out);
void __wrap_mst_control_sleep(struct mst_control *c, int wakeup, uint64_t until_ns);
int __wrap_mst_heartbeat_new(struct mst_control *control, const struct mst_heartbeat_next *next,
			     struct mst_heartbeat **out);
void __wrap_mst_heartbeat_ring(struct mst_heartbeat *h);
void __wrap_mst_heartbeat_free(struct mst_heartbeat *h);
void __wrap_mst_frontend_wake(struct mst_frontend *f);
void __wrap_mst_shard_wake(struct mst_shard *s);
void __real_mst_ledger_handle(struct mst_ledger *l, const struct mst_ledger_event *ev,
			      uint64_t now_ns);
void __wrap_mst_ledger_handle(struct mst_ledger *l, const struct mst_ledger_event *ev,
			      uint64_t now_ns);
void __real_mst_ledger_tick(struct mst_ledger *l, uint64_t now_ns);
void __wrap_mst_ledger_tick(struct mst_ledger *l, uint64_t now_ns);
bool __real_mst_ledger_next(struct mst_ledger *l, struct mst_decision *out);
bool __wrap_mst_ledger_next(struct mst_ledger *l, struct mst_decision *out);
void __real_mst_aggregator_execute(struct mst_aggregator *a, const struct mst_decision *d,
				   const struct mst_record *record);
void __wrap_mst_aggregator_execute(struct mst_aggregator *a, const struct mst_decision *d,
				   const struct mst_record *record);

/* ---- clock, chance and numbers ---- */

uint64_t __wrap_mst_now_ns(void)
{
	const struct sim_process *self = sim_self();

	return sim_now() + (self != NULL ? self->clock_offset : 0);
}

void __wrap_mst_sleep_ns(uint64_t ns)
{
	sim_sleep(ns);
}

int __wrap_mst_rand_secret(void *out, unsigned len)
{
	for (unsigned i = 0; i < len; i++)
		((unsigned char *)out)[i] = (unsigned char)sim_below(256);
	return 0;
}

/* It is said in lines of the log: no line differs from what the same world says another time. */
pid_t __wrap_getpid(void)
{
	const struct sim_process *self = sim_self();

	return self != NULL ? PID_FIRST + (pid_t)self->id : __real_getpid();
}

/* ---- log ---- */

void __wrap_mst_log(enum mst_log_level level, const char *fmt, ...)
{
	char line[1024];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	sim_say("%s", line);
	log_line(level, line);
}

/* ---- transports and streams ---- */

/* A worker may use them all. */
const struct mst_transport *__wrap_mst_transport_at(uint32_t index)
{
	static const struct mst_transport *const all[] = { &sim_near, &sim_far };

	return index < sizeof(all) / sizeof(all[0]) ? all[index] : NULL;
}

/* A server sleeps here that waits for links of several networks. */
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	if (count > 0 && sim_nets_has(fds[0].fd))
		return sim_nets_poll(fds, count, timeout_ms);
	return __real_poll(fds, count, timeout_ms);
}

/* What poll() is where the compiler checks sizes (_FORTIFY_SOURCE). */
int __wrap___poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t bytes)
{
	MST_ASSERT(count <= bytes / sizeof(*fds));
	return __wrap_poll(fds, count, timeout_ms);
}

/* A listener of this world has no descriptor. */
int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *ev)
{
	return fd >= 0 ? __real_epoll_ctl(epoll, op, fd, ev) : 0;
}

int __wrap_mst_origins_own(const struct mst_fabric *fabric, struct mst_origins *out)
{
	const struct sim_process *self = sim_self();

	(void)fabric;
	*out = (struct mst_origins){ 0 };
	if (self != NULL)
		out->at[out->count++] = sim_origin(self);
	return 0;
}

void __wrap_mst_control_sleep(struct mst_control *c, int wakeup, uint64_t until_ns)
{
	uint64_t now_ns = mst_now_ns();
	uint64_t left_ns = now_ns < until_ns ? until_ns - now_ns : 0;

	(void)c;
	(void)wakeup;
	(void)sim_wait(&sim_self()->control, left_ns < MST_SECOND ? left_ns : MST_SECOND);
}

/* ---- the heartbeat: a fiber instead of a thread, that starts when its worker is welcomed ---- */

struct mst_heartbeat {
	struct mst_control *control;
	struct mst_heartbeat_next next;
	struct sim_process *process;
	struct sim_wakeup ended;
	bool stop, done;
};

static void beat(const struct mst_heartbeat *h)
{
	while (!h->stop) {
		uint64_t due_ns = mst_control_step(h->control, mst_now_ns());
		if (due_ns == MST_NEVER && mst_control_over(h->control))
			break;
		mst_control_sleep(h->control, -1, due_ns);
	}
}

static void heartbeat_main(void *arg)
{
	struct mst_heartbeat *h = arg;

	while (h->control != NULL && !h->stop) {
		beat(h);
		if (!h->stop)
			h->control = h->next.seek(h->next.ctx, h->control);
	}
	h->done = true;
	sim_ring(&h->ended);
}

int __wrap_mst_heartbeat_new(struct mst_control *control, const struct mst_heartbeat_next *next,
			     struct mst_heartbeat **out)
{
	struct mst_heartbeat *h = sim_alloc(sizeof(*h));

	h->control = control;
	h->next = *next;
	h->process = sim_self();
	actors_owner(h->process)->welcomed_ns = sim_now();
	sim_spawn(h->process, heartbeat_main, h);
	*out = h;
	return 0;
}

void __wrap_mst_heartbeat_ring(struct mst_heartbeat *h)
{
	sim_ring(&h->process->control);
}

void __wrap_mst_heartbeat_free(struct mst_heartbeat *h)
{
	if (h == NULL)
		return;
	h->stop = true;
	while (!h->done) {
		sim_ring(&h->process->control);
		(void)sim_wait(&h->ended, MST_SECOND);
	}
}

/* ---- a server's threads ---- */

void __wrap_mst_frontend_wake(struct mst_frontend *f)
{
	(void)f;
	sim_ring(&sim_self()->control);
}

void __wrap_mst_shard_wake(struct mst_shard *s)
{
	(void)s;
	servers_ring_shards(sim_self());
}

/* ---- the stream of decisions: the observer sees it before anybody acts on it ---- */

static void tell_moment(uint32_t server, const struct mst_decision *d)
{
	if (d->kind == MST_DO_VERDICT)
		faults_moment((int)d->who.rank, server, MST_IMM_VERDICT);
	else if (d->kind == MST_DO_REGRANT)
		faults_moment((int)d->who.rank, server, MST_IMM_GRANT);
	else if (d->kind == MST_DO_COMMIT)
		faults_moment(SIM_NOBODY, server, SIM_MOMENT_COMMIT);
}

void __wrap_mst_ledger_handle(struct mst_ledger *l, const struct mst_ledger_event *ev,
			      uint64_t now_ns)
{
	if (servers_counts(sim_self()))
		obs_event(ev, now_ns);
	__real_mst_ledger_handle(l, ev, now_ns);
}

void __wrap_mst_ledger_tick(struct mst_ledger *l, uint64_t now_ns)
{
	if (servers_counts(sim_self()))
		obs_tick(now_ns);
	__real_mst_ledger_tick(l, now_ns);
}

bool __wrap_mst_ledger_next(struct mst_ledger *l, struct mst_decision *out)
{
	bool any = __real_mst_ledger_next(l, out);

	if (!servers_counts(sim_self()))
		return any;
	if (!any)
		obs_settled();
	else if (out->kind == MST_DO_POLICY && out->policy.adapts)
		obs_adapts(mst_ledger_rule(l));
	return any;
}

void __wrap_mst_aggregator_execute(struct mst_aggregator *a, const struct mst_decision *d,
				   const struct mst_record *record)
{
	uint32_t server = (uint32_t)servers_number(sim_self());

	if (!servers_counts(sim_self())) {
		if (d->kind == MST_DO_COMMIT && server == 0 && !sim_self()->dead)
			obs_commits_beside(servers_generation(sim_self()), record);
		__real_mst_aggregator_execute(a, d, record);
		return;
	}
	if (server == 0)
		obs_decided(d, record);
	else
		obs_executed(server, d, record);
	tell_moment(server, d);
	if (d->kind == MST_DO_SAVE) { /* the control thread knows of what was decided before */
		sim_interrupt();
		sim_preempt();
	}
	__real_mst_aggregator_execute(a, d, record);
}
