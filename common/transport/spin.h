/* SPDX-License-Identifier: MIT */
/*
 * For transports: how a waiting thread looks again and again before it sleeps.
 *
 * Between looks it pauses, then yields. A yield that comes back at once burns the time of an idle
 * core. A yield in which another thread has run costs next to nothing: where workers outnumber
 * cores it is how they take turns, and much cheaper than sleeping and being woken. This fails if
 * the thread that got the core keeps it: a sleeper is let in sooner than one that yields.
 *
 * So a spin ends when it has burnt MST_SPIN_BURN_NS, or has lost its core for MST_SPIN_LOST_NS.
 * Then the waits that follow sleep at once, until the time spent is a small part of what has
 * passed. Long steps burn next to nothing, and one that has become short is found out soon. It is
 * never a guess of how long a step is: threads that sleep make steps long for each other.
 */
#ifndef MST_TRANSPORT_SPIN_H
#define MST_TRANSPORT_SPIN_H

#include <sched.h>

#include "common/base/clock.h"
#include "common/transport/transport.h"

#define MST_SPIN_PAUSES_PER_CLOCK 64u
#define MST_SPIN_BURN_NS (MST_MS / 10)
#define MST_SPIN_YIELD_NS (MST_MS / 1000) /* time counted for a yield that hands the core over */
#define MST_SPIN_LOST_NS (MST_MS / 2)     /* in one yield: longer than a turn of a muster thread */
#define MST_SPIN_REST 32u                 /* a rest lasts so many times the time spent */
#define MST_SPIN_REST_MAX_NS (100 * MST_MS) /* a bound, as a thread may be stopped in a yield */

#define MST_SPIN_PAUSES 20u

/* How many pauses a wait begins with on a host where this process may use @processors (0: not
 * known) and @processes of its job run. If there are more processes than processors, a thread that
 * pauses keeps a processor from a process that it may be waiting for: then there are none. */
static inline uint32_t mst_spin_pauses_of(uint32_t processes, uint32_t processors)
{
	return processors != 0 && processes > processors ? 0 : MST_SPIN_PAUSES;
}

/* The state of one waiting thread; zeroed at first. */
struct mst_spin {
	uint64_t rest_until_ns; /* until then looking does not pay */
};

static inline void mst_spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

/* A spin, and what it looks at. */
struct mst_spinning {
	bool (*has_work)(void *net);
	void *net;
	uint64_t now_ns, deadline_ns, burnt_ns;
	bool lost; /* the core, for long */
};

/* Return: there is work. */
static inline bool mst_spin_pauses(struct mst_spinning *s, uint32_t count)
{
	uint64_t began_ns = s->now_ns;

	for (uint32_t i = 0; i < count && s->burnt_ns < MST_SPIN_BURN_NS; i++) {
		if (s->has_work(s->net))
			return true;
		mst_spin_pause();
		if (i % MST_SPIN_PAUSES_PER_CLOCK == MST_SPIN_PAUSES_PER_CLOCK - 1) {
			s->now_ns = mst_now_ns();
			s->burnt_ns = s->now_ns - began_ns;
		}
	}
	return false;
}

/* Return: there is work. */
static inline bool mst_spin_yields(struct mst_spinning *s, uint32_t count)
{
	for (uint32_t i = 0;
	     i < count && s->now_ns < s->deadline_ns && s->burnt_ns < MST_SPIN_BURN_NS && !s->lost;
	     i++) {
		if (s->has_work(s->net))
			return true;
		sched_yield();
		uint64_t now_ns = mst_now_ns(), took_ns = now_ns - s->now_ns;
		s->burnt_ns += took_ns < MST_SPIN_YIELD_NS ? took_ns : MST_SPIN_YIELD_NS;
		s->lost = took_ns >= MST_SPIN_LOST_NS;
		s->now_ns = now_ns;
	}
	return s->has_work(s->net);
}

/* How long a sleep may last at most. */
static inline uint64_t mst_spin_look_ns(const struct mst_net_cfg *cfg)
{
	return cfg->look_ns != 0 ? cfg->look_ns : MST_SECOND;
}

/* Looks for work as often as @cfg allows, and less often where that has not paid of late. Return:
 * there is work, or the deadline has passed. */
static inline bool mst_spin(struct mst_spin *spin, const struct mst_net_cfg *cfg,
			    uint64_t deadline_ns, bool (*has_work)(void *net), void *net)
{
	uint64_t began_ns = mst_now_ns();
	struct mst_spinning s = {
		.has_work = has_work, .net = net, .now_ns = began_ns, .deadline_ns = deadline_ns
	};
	bool rests = began_ns < spin->rest_until_ns;

	bool found = mst_spin_pauses(&s, rests ? 0 : cfg->spin_pauses) ||
		     mst_spin_yields(&s, rests ? 0 : cfg->spin_yields);
	uint64_t rest_ns = MST_SPIN_REST * (s.now_ns - began_ns);
	if (!rests && (!found || s.lost))
		spin->rest_until_ns = s.now_ns + (rest_ns < MST_SPIN_REST_MAX_NS
							  ? rest_ns
							  : MST_SPIN_REST_MAX_NS);
	return found || s.now_ns >= deadline_ns;
}

#endif
