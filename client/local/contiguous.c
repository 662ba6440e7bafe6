/* SPDX-License-Identifier: MIT */
#include "client/local/contiguous.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/assert.h"
#include "common/transport/pages.h"

static size_t whole_pages(size_t bytes)
{
	return (bytes + MST_PAGES_SMALL - 1) / MST_PAGES_SMALL * MST_PAGES_SMALL;
}

/* ---- reservations ---- */

/* Reserves @bytes, whole pages. The distance from the bound of a huge page is that of @like. */
static int reserve(struct mst_reservation *r, size_t bytes, const void *like)
{
	size_t all = bytes + MST_PAGES_HUGE;
	char *low = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (low == MAP_FAILED)
		return -ENOMEM;
	size_t skip = ((uintptr_t)like - (uintptr_t)low) % MST_PAGES_HUGE;
	if (skip > 0)
		munmap(low, skip);
	if (skip < MST_PAGES_HUGE)
		munmap(low + skip + bytes, MST_PAGES_HUGE - skip);
	*r = (struct mst_reservation){ low + skip, bytes };
	return 0;
}

static void release(struct mst_reservation *r)
{
	if (r->bytes > 0)
		munmap(r->at, r->bytes);
	*r = (struct mst_reservation){ NULL, 0 };
}

void mst_contiguous_unmap(struct mst_contiguous *v)
{
	for (uint32_t slot = 0; slot < MST_SLOTS_MAX; slot++)
		release(&v->gradient[slot]);
	release(&v->copied);
	release(&v->published);
	v->slots = v->versions = v->gathered = 0;
}

/* ---- mapping parts side by side ---- */

static int map_gradient(struct mst_contiguous *v, uint32_t slot)
{
	const struct mst_links *l = v->links;
	const char *like = (const char *)l->part[0].link->outbound + l->part[0].gradient_at[slot];
	int rc = reserve(&v->gradient[slot], whole_pages(mst_contiguous_gradient_bytes(v)), like);

	for (const struct mst_part *p = l->part; p < l->part + l->count && rc == 0; p++)
		rc = l->transport->view(p->link, MST_VIEW_OUTBOUND, p->gradient_at[slot],
					whole_pages(p->layout.slot_bytes),
					v->gradient[slot].at + p->first * v->type_size);
	return rc;
}

static int map_copied(struct mst_contiguous *v)
{
	const struct mst_links *l = v->links;
	const char *like = (const char *)l->part[0].link->inbound + l->part[0].layout.down_result;
	int rc = reserve(&v->copied, whole_pages(mst_contiguous_result_bytes(v)), like);

	for (const struct mst_part *p = l->part; p < l->part + l->count && rc == 0; p++)
		rc = l->transport->view(p->link, MST_VIEW_INBOUND, p->layout.down_result,
					whole_pages(p->layout.result_bytes),
					v->copied.at + p->first * v->result_type_size);
	return rc;
}

static int map_version(struct mst_contiguous *v, uint32_t buffer)
{
	const struct mst_links *l = v->links;
	char *at = v->published.at + buffer * v->stride;
	int rc = 0;

	for (const struct mst_part *p = l->part; p < l->part + l->count && rc == 0; p++)
		rc = l->transport->view(p->link, MST_VIEW_SHARED, buffer * p->stride, p->stride,
					at + p->first * v->result_type_size);
	return rc;
}

/* Address space costs nothing, so each large version begins on a huge page. */
static int map_published(struct mst_contiguous *v, uint32_t buffers)
{
	size_t bytes = mst_contiguous_result_bytes(v);
	size_t unit = bytes >= MST_PAGES_LARGE ? MST_PAGES_HUGE : MST_PAGES_SMALL;

	v->stride = (bytes + unit - 1) / unit * unit;
	int rc = reserve(&v->published, buffers * v->stride, v->links->part[0].link->shared);

	for (uint32_t b = 0; b < buffers && rc == 0; b++)
		rc = map_version(v, b);
	return rc;
}

int mst_contiguous_map(struct mst_contiguous *v, const struct mst_settings *s,
		       const struct mst_welcome *w)
{
	int rc = 0;

	v->result_into = s->result_into;
	v->elems = w->elems;
	v->type_size = mst_type_size(s->type);
	v->result_type_size = mst_type_size(s->result_type);
	v->slots = w->slots;
	v->versions = v->links->transport->maps ? w->buffers : 0;
	if (v->links->count == 1)
		return 0;
	for (uint32_t slot = 0; slot < w->slots && rc == 0; slot++)
		rc = map_gradient(v, slot);
	if (rc == 0 && v->links->result_into == NULL)
		rc = map_copied(v);
	if (rc == 0 && v->versions > 0)
		rc = map_published(v, v->versions);
	if (rc == 0)
		return 0;
	return mst_reason_fail(v->failure, rc,
			       "cannot map the parts of %" PRIu32
			       " servers side by side: %s; raise "
			       "vm.max_map_count, or have the job keep fewer --buffers",
			       v->links->count, strerror(-rc));
}

/* ---- where they are ---- */

char *mst_contiguous_gradient(const struct mst_contiguous *v, int slot)
{
	const struct mst_part *first = v->links->part;

	MST_ASSERT(slot >= 0 && slot < (int)MST_SLOTS_MAX);
	if (v->links->count > 1)
		return v->gradient[slot].at;
	return (char *)first->link->outbound + first->gradient_at[slot];
}

/* A slot that is never filled costs no memory, so huge pages wait for the first use of a slot. */
char *mst_contiguous_compose(struct mst_contiguous *v, int slot)
{
	const struct mst_links *l = v->links;

	if (!(v->gathered >> slot & 1u)) {
		v->gathered |= 1u << slot;
		for (const struct mst_part *p = l->part; p < l->part + l->count; p++)
			if (p->link->huge_pages)
				(void)mst_pages_gather((char *)p->link->outbound +
							       p->gradient_at[slot],
						       p->layout.slot_bytes);
	}
	return mst_contiguous_gradient(v, slot);
}

static const char *published(const struct mst_contiguous *v, uint32_t buffer)
{
	const struct mst_part *first = v->links->part;

	if (v->links->count > 1)
		return v->published.at + buffer * v->stride;
	return (const char *)first->link->shared + buffer * first->stride;
}

static const char *copied(const struct mst_contiguous *v)
{
	const struct mst_part *first = v->links->part;

	if (v->links->count > 1)
		return v->copied.at;
	return (const char *)first->link->inbound + first->layout.down_result;
}

const void *mst_contiguous_arrived(const struct mst_contiguous *v, const struct mst_held *held)
{
	if (held->taken)
		return NULL;
	switch (held->where) {
	case MST_WHERE_IN_PLACE:
		return published(v, held->buffer);
	case MST_WHERE_COPIED:
		return v->links->result_into == NULL ? copied(v) : NULL;
	default:
		return NULL;
	}
}

/* Where the links have it. */
static const char *arrived(const struct mst_contiguous *v, const struct mst_held *held)
{
	if (held->where == MST_WHERE_COPIED && v->links->result_into != NULL)
		return v->result_into;
	return mst_contiguous_arrived(v, held);
}

bool mst_contiguous_bring(const struct mst_contiguous *v, const struct mst_held *held)
{
	const char *from = arrived(v, held);

	if (v->result_into == NULL || from == NULL || from == v->result_into)
		return false;
	memcpy(v->result_into, from, mst_contiguous_result_bytes(v));
	return true;
}

const void *mst_contiguous_result(const struct mst_contiguous *v, const struct mst_held *held)
{
	const char *from = arrived(v, held);

	if (held->earlier)
		return v->result_into != NULL ? v->result_into : v->kept;
	return from != NULL && v->result_into != NULL ? v->result_into : from;
}

/* ---- is it whole? ---- */

static uint64_t mark_at(const void *words, uint32_t number)
{
	/* Another process writes it. The fence in mst_contiguous_whole() keeps this load after what
	 * the caller has read before. */
	return atomic_load_explicit((const _Atomic uint64_t *)words + number, memory_order_relaxed);
}

static bool is_whole_in_place(const struct mst_part *p, const struct mst_held *held)
{
	return mark_at((const char *)p->link->shared + p->marks, held->buffer) == held->version;
}

/* The word of a rail that has brought nothing yet is 0. */
static bool is_whole_copy(const struct mst_part *p, const struct mst_held *held)
{
	const char *words = (const char *)p->link->inbound + p->layout.down_mark;

	for (uint32_t i = 0; i < MST_MARK_WORDS; i++) {
		uint64_t mark = mark_at(words, i);
		if (mark != held->version && mark != 0)
			return false;
	}
	return !p->link->unordered;
}

static bool is_whole_part(const struct mst_part *p, const struct mst_held *held)
{
	return held->where == MST_WHERE_IN_PLACE ? is_whole_in_place(p, held)
						 : is_whole_copy(p, held);
}

bool mst_contiguous_whole(const struct mst_contiguous *v, const struct mst_held *held)
{
	const struct mst_links *l = v->links;

	if (!l->marked || mst_contiguous_arrived(v, held) == NULL)
		return false;
	atomic_thread_fence(memory_order_acquire);
	for (const struct mst_part *p = l->part; p < l->part + l->count; p++)
		if (!is_whole_part(p, held))
			return false;
	return true;
}

bool mst_contiguous_region(const struct mst_contiguous *v, uint32_t number,
			   struct muster_region *out)
{
	const char *result;

	if (v->slots == 0) /* there are no links */
		return false;
	if (number < v->slots) {
		*out = (struct muster_region){ .base = mst_contiguous_gradient(v, (int)number),
					       .bytes = mst_contiguous_gradient_bytes(v),
					       .writable = true };
		return true;
	}
	number -= v->slots;
	if (number > (v->result_into != NULL ? 0 : v->versions))
		return false;
	if (v->result_into != NULL)
		result = v->result_into;
	else
		result = number == 0 ? copied(v) : published(v, number - 1);
	*out = (struct muster_region){ .base = result, .bytes = mst_contiguous_result_bytes(v) };
	return true;
}
