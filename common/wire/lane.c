/* SPDX-License-Identifier: MIT */
/*
 * Where things lie in the two inbound regions. Each end computes this once per session; both must
 * get the same offsets, so they depend on nothing but the figures.
 *
 * Every record has a cache line of its own, so that two writers never share one. Large things begin
 * on a page, or a few lines into one.
 */
#include "common/wire/lane.h"

#include <string.h>

#include "common/base/assert.h"
#include "muster/muster.h"

#define LINE 64u
#define PAGE 4096u
#define HUGE_PAGE ((size_t)2 << 20)
/* A commit reads the gradients of all ranks together. If all began on a page they would compete for
 * the same sets of the caches. So each begins some lines further in than the gradient of the rank
 * before. Steps of 3 to 13 lines were equally fast; an odd step gives 64 ranks different places.
 * Large gradients may lie in huge pages, and then also compete for the banks of the memory: 16 of
 * them took 1.5 times as long. */
#define COLOURS (PAGE / LINE)
#define COLOUR_STEP 5u
#define LARGE ((size_t)4 << 20)
#define BANKS 16u
#define BANK_STEP (2 * PAGE)
/* More credits than the protocol needs. The receiver must report now and then what it has polled;
 * over RDMA such a report costs as much as a record does. */
#define CREDITS_MIN 32u

/* Reserves @bytes at the next multiple of @align.
 * Return: their offset. */
static size_t place(size_t *end, size_t bytes, size_t align)
{
	size_t at = (*end + align - 1) / align * align;

	MST_ASSERT(at >= *end && at + bytes >= at);
	*end = at + bytes;
	return at;
}

static size_t bank_step(const struct mst_lane_layout *l)
{
	return l->slot_bytes >= LARGE ? BANK_STEP : 0;
}

/* Large parts have the same distance from the beginning of a huge page in every slot of every
 * server, so that they can also lie in huge pages when a worker maps them side by side. */
static size_t place_gradient(size_t *end, const struct mst_lane_layout *l)
{
	size_t first = l->up_gradient[0]; /* 0: this is the first */
	size_t colours = (COLOURS - 1) * LINE + (BANKS - 1) * bank_step(l);

	if (!l->parted)
		return place(end, l->slot_bytes + colours, PAGE);
	if (first != 0 && l->slot_bytes >= HUGE_PAGE)
		*end = first + (*end - first + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	return place(end, l->slot_bytes, PAGE);
}

static void up_layout(struct mst_lane_layout *out)
{
	size_t end = 0;

	out->up_ask = place(&end, sizeof(struct mst_lane_lone_ask), LINE);
	for (uint32_t i = 0; i < out->slots; i++)
		out->up_header[i] = place(&end, sizeof(struct mst_lane_header), LINE);
	for (uint32_t i = 0; i < out->slots; i++)
		out->up_gradient[i] = place_gradient(&end, out);
	out->up_bytes = place(&end, 0, PAGE);
}

static void down_layout(uint32_t workers, struct mst_lane_layout *out)
{
	size_t shares = workers * sizeof(struct mst_lane_share);
	size_t end = 0;

	for (uint32_t i = 0; i < MST_SESSION_WORDS; i++)
		out->down_session[i] = place(&end, sizeof(struct mst_lane_session), LINE);
	out->down_hint = place(&end, sizeof(uint64_t), LINE);
	out->down_mark = place(&end, MST_MARK_WORDS * sizeof(uint64_t), LINE);
	for (uint32_t i = out->slots; i-- > 0;) {
		out->down_verdict[i] = place(&end, sizeof(struct mst_lane_verdict), LINE);
		out->down_grant[i] = place(&end, sizeof(struct mst_lane_grant), LINE);
	}
	out->down_answer = place(&end, sizeof(struct mst_lane_answer), LINE);
	out->down_record = place(&end, sizeof(struct mst_lane_record) + shares, LINE);
	out->down_result = place(&end, out->result_bytes, PAGE);
	out->down_bytes = place(&end, 0, PAGE);
}

static uint32_t credits(uint32_t needed)
{
	return needed > CREDITS_MIN ? needed : CREDITS_MIN;
}

static bool is_element(uint32_t bytes)
{
	return bytes == 2 || bytes == 4;
}

void mst_lane_layout(const struct mst_lane_figures *f, struct mst_lane_layout *out)
{
	MST_ASSERT(f->elems > 0 && f->elems <= MST_ELEMS_MAX);
	MST_ASSERT(is_element(f->type_bytes) && is_element(f->result_type_bytes));
	MST_ASSERT(f->slots > 0 && f->slots <= MST_SLOTS_MAX);
	MST_ASSERT(f->workers > 0 && f->workers <= MST_WORKERS_MAX);

	*out = (struct mst_lane_layout){
		.slots = f->slots,
		.parted = f->parted,
		.slot_bytes = f->elems * f->type_bytes,
		.result_bytes = f->elems * f->result_type_bytes,
		/* After the header or ABANDON of a slot nothing of that slot follows until its
		 * grant answers it. The same holds for the one ask that may be unanswered. */
		.up_credits = credits(2 * f->slots + 1),
		/* Session, answer, and for each slot a verdict and a grant; twice that, since a
		 * server may grant again before the worker has polled the last grant. */
		.down_credits = credits(2 * (2 + 2 * f->slots)),
	};
	up_layout(out);
	down_layout(f->workers, out);
}

size_t mst_lane_gradient(const struct mst_lane_layout *l, uint32_t slot, uint32_t rank)
{
	MST_ASSERT(slot < l->slots);
	if (l->parted)
		return l->up_gradient[slot];
	return l->up_gradient[slot] + (size_t)(rank * COLOUR_STEP % COLOURS) * LINE +
	       rank % BANKS * bank_step(l);
}

/* ---- marks ---- */

bool mst_lane_marks(uint32_t owner, uint64_t server_patience_ns)
{
	return owner == MUSTER_WORKERS_OWN && server_patience_ns > 0;
}

size_t mst_lane_marks_bytes(uint32_t buffers)
{
	size_t end = 0;

	(void)place(&end, buffers * sizeof(uint64_t), PAGE);
	return place(&end, 0, PAGE);
}

/* ---- what a peer has filled ---- */

/* Zeroes the bytes of @copy after those that are both filled and known. Return: how many are. */
static uint32_t trim(void *copy, size_t bytes, uint32_t filled, uint32_t known)
{
	uint32_t used = filled < known ? filled : known;

	memset((uint8_t *)copy + used, 0, bytes - used);
	return used;
}

bool mst_lane_header_trim(struct mst_lane_header *copy)
{
	if (copy->size < MST_HEADER_SIZE_MIN)
		return false;
	copy->size = trim(copy, sizeof(*copy), copy->size, MST_HEADER_SIZE);
	return true;
}

bool mst_lane_record_trim(struct mst_lane_record *copy)
{
	if (copy->size < MST_RECORD_SIZE_MIN)
		return false;
	copy->size = trim(copy, sizeof(*copy), copy->size, MST_RECORD_SIZE);
	return true;
}
