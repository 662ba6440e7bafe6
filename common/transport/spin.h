/* SPDX-License-Identifier: MIT */
/* For transports: how a waiting thread looks again and again before it sleeps. */
#ifndef MST_TRANSPORT_SPIN_H
#define MST_TRANSPORT_SPIN_H

#include <sched.h>

#include "common/base/clock.h"
#include "common/transport/transport.h"

#define MST_SPIN_PAUSES_PER_CLOCK 64u

static inline void mst_spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

/* Looks as often as @cfg says. True: something stirs, or the time is over. */
static inline bool mst_spin(const struct mst_net_cfg *cfg, uint64_t deadline_ns,
			    bool (*stirs)(void *net), void *net)
{
	for (uint32_t i = 0; i < cfg->spin_pauses; i++) {
		if (stirs(net) ||
		    (i % MST_SPIN_PAUSES_PER_CLOCK == 0 && mst_now_ns() >= deadline_ns))
			return true;
		mst_spin_pause();
	}
	for (uint32_t i = 0; i < cfg->spin_yields; i++) {
		if (stirs(net) || mst_now_ns() >= deadline_ns)
			return true;
		sched_yield();
	}
	return stirs(net) || mst_now_ns() >= deadline_ns;
}

#endif
