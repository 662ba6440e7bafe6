/* SPDX-License-Identifier: MIT */
#include "tools/sim/batch.h"

#include "common/base/clock.h"

/* The time of the first @count micro-batches. The quotient is exact, and does not overflow. */
static uint64_t time_of(const struct mst_sim_batch *b, uint32_t count)
{
	return b->length_ns / b->micro * count + b->length_ns % b->micro * count / b->micro;
}

/* Micro-batches that are finished: the double may be one too many or too few. */
static uint32_t finished(const struct mst_sim_batch *b, uint64_t now_ns)
{
	uint64_t elapsed_ns = now_ns - b->begin_ns;

	if (elapsed_ns >= b->length_ns)
		return b->micro;
	uint32_t count = (uint32_t)((double)elapsed_ns / (double)b->length_ns * b->micro);
	while (count > 0 && time_of(b, count) > elapsed_ns)
		count--;
	while (count < b->micro && time_of(b, count + 1) <= elapsed_ns)
		count++;
	return count;
}

void mst_sim_batch_begin(struct mst_sim_batch *b, uint64_t length_ns, uint64_t now_ns)
{
	if (!b->open) {
		b->open = true;
		b->taken = 0;
		b->length_ns = length_ns;
	}
	b->begin_ns = now_ns - time_of(b, b->taken);
}

uint64_t mst_sim_batch_end_ns(const struct mst_sim_batch *b)
{
	return b->length_ns < MST_NEVER / 2 - b->begin_ns ? b->begin_ns + b->length_ns : MST_NEVER;
}

uint64_t mst_sim_batch_bound_ns(const struct mst_sim_batch *b, uint64_t now_ns)
{
	uint32_t count = finished(b, now_ns);

	if (count == b->micro || b->begin_ns + time_of(b, count) == now_ns)
		return now_ns;
	return b->begin_ns + time_of(b, count + 1);
}

uint64_t mst_sim_batch_spent_ns(const struct mst_sim_batch *b, uint64_t now_ns)
{
	return b->open ? now_ns - b->begin_ns - time_of(b, b->taken) : 0;
}

uint32_t mst_sim_batch_take(struct mst_sim_batch *b, uint64_t now_ns, uint64_t *spent_ns)
{
	uint32_t count = finished(b, now_ns), added = count - b->taken;

	*spent_ns += time_of(b, count) - time_of(b, b->taken);
	b->taken = count;
	b->open = count < b->micro;
	return added;
}
