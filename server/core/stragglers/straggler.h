/* SPDX-License-Identifier: MIT */
/* What the judge says of one rank, and of how long it has been so. Pure. */
#ifndef MST_SERVER_CORE_STRAGGLERS_STRAGGLER_H
#define MST_SERVER_CORE_STRAGGLERS_STRAGGLER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/message.h"

struct mst_straggler {
	/* What it is now, or, if it is no straggler, what it was last; NONE: it never was one. */
	enum mst_straggler_kind kind;
	bool now;
	bool sure; /* it was found by a look: else it is only at its present gradient for long */
	/* How long its gradients take, measured by those of the fast ranks: those that came. */
	double ratio;
	uint64_t since_ns; /* now: when the first gradient began that says so */
	uint64_t total_ns; /* how long it was a straggler in all, before since_ns */
	uint64_t until_ns; /* not now: when it was one last; 0: it never was */
	/* How long steps waited for it during that time; under rules by which workers go on before
	 * the commit no step waits. */
	uint64_t waited_ns;
};

/* How long it was a straggler in all, until now. */
static inline uint64_t mst_straggler_total(const struct mst_straggler *s, uint64_t now_ns)
{
	return s->total_ns + (s->now ? now_ns - s->since_ns : 0);
}

/* Its verdict is @kind from now on. @since_ns, @waited_ns: of the evidence for it; they are read if
 * it was no straggler before. */
static inline void mst_straggler_begin(struct mst_straggler *s, enum mst_straggler_kind kind,
				       uint64_t since_ns, uint64_t waited_ns)
{
	s->kind = kind;
	if (s->now)
		return;
	s->now = s->sure = true;
	s->since_ns = since_ns > s->until_ns ? since_ns : s->until_ns; /* no time counts twice */
	s->waited_ns += waited_ns;
}

static inline void mst_straggler_end(struct mst_straggler *s, uint64_t now_ns)
{
	s->total_ns = mst_straggler_total(s, now_ns);
	s->until_ns = now_ns;
	s->now = false;
}

#endif
