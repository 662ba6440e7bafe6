/* SPDX-License-Identifier: MIT */
#include "server/core/ledger/verdicts.h"

#include "common/base/assert.h"

/* A cell of the ring has the verdict in its low bits, and counted_in above them. */
#define VERDICT_BITS 3u
#define VERDICT_MASK ((1u << VERDICT_BITS) - 1)

void mst_verdicts_begin(struct mst_verdicts *f, uint32_t incarnation)
{
	f->incarnation = incarnation;
	f->heard = f->judged = 0;
}

void mst_verdicts_resume(struct mst_verdicts *f, uint32_t incarnation, uint64_t heard)
{
	f->incarnation = incarnation;
	f->heard = f->judged = heard;
}

void mst_verdicts_add(struct mst_verdicts *f, uint64_t ticket, enum muster_verdict verdict,
		      uint64_t counted_in)
{
	MST_ASSERT(ticket > f->judged && ticket - f->heard <= MUSTER_TICKETS_MAX);
	while (f->judged + 1 < ticket)
		f->ring[++f->judged % MUSTER_TICKETS_MAX] = 0;
	f->ring[ticket % MUSTER_TICKETS_MAX] = counted_in << VERDICT_BITS | verdict;
	f->judged = ticket;
}

void mst_verdicts_heard(struct mst_verdicts *f, uint64_t ticket)
{
	MST_ASSERT(ticket <= f->judged);
	if (ticket > f->heard)
		f->heard = ticket;
}

uint32_t mst_verdicts_list(const struct mst_verdicts *f, struct muster_push_verdict *out)
{
	uint32_t count = 0;

	MST_ASSERT(f->heard <= f->judged);
	for (uint64_t ticket = f->heard + 1; ticket <= f->judged && count < MUSTER_TICKETS_MAX;
	     ticket++) {
		uint64_t cell = f->ring[ticket % MUSTER_TICKETS_MAX];
		if ((cell & VERDICT_MASK) == MUSTER_NONE)
			continue;
		out[count++] = (struct muster_push_verdict){
			.ticket = ticket,
			.incarnation = f->incarnation,
			.verdict = (enum muster_verdict)(cell & VERDICT_MASK),
			.counted_in = cell >> VERDICT_BITS,
		};
	}
	return count;
}
