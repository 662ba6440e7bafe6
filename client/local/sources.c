/* SPDX-License-Identifier: MIT */
#include "client/local/sources.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/local/mapped.h"
#include "common/base/reason.h"

#define ROOM_MIN 16u

/* The regions of the net's domain are freed with the net. */
void mst_sources_fini(struct mst_sources *s)
{
	mst_domain_fini(&s->registered);
	free(s->list);
	s->list = NULL;
	s->count = s->room = 0;
}

/* Index of the first region that ends after @at. */
static uint32_t place_of(const struct mst_sources *s, uintptr_t at)
{
	uint32_t low = 0, high = s->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct mst_region *r = s->list[middle].memory;
		if ((uintptr_t)r->base + (r->bytes - 1) < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Do they have an element in common? Neither is empty. */
static bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
	return (uintptr_t)a <= (uintptr_t)b + (b_bytes - 1) &&
	       (uintptr_t)b <= (uintptr_t)a + (a_bytes - 1);
}

/* ---- registering ---- */

/* What a device sends from there already, it must not do a second time. */
static int check_own(const struct mst_sources *s, const void *base, size_t bytes)
{
	struct muster_region own;

	for (uint32_t i = 0; mst_contiguous_region(s->contiguous, i, &own); i++) {
		if (overlap(base, bytes, own.base, own.bytes))
			return mst_reason_fail(
				s->failure, -EINVAL,
				"%zu bytes at %p overlap memory of this handle, %zu bytes at %p: "
				"gradients in muster_gradient()'s buffer are sent without a copy "
				"as they are; only memory of the program's own is registered",
				bytes, base, own.bytes, own.base);
	}
	return 0;
}

/* Over every network: one that pins nothing would fail only when a gradient is copied. */
static int check(const struct mst_sources *s, const void *base, size_t bytes)
{
	struct mst_mapped found;

	if (base == NULL || bytes == 0 || bytes - 1 > UINTPTR_MAX - (uintptr_t)base)
		return 0; /* the domain says what is wrong with it */
	int rc = check_own(s, base, bytes);
	if (rc != 0 || mst_mapped_check(base, bytes, MST_MAPPED_FOR_READING, &found) == 0)
		return rc;
	return mst_reason_fail(s->failure, found.error,
			       "cannot register %zu bytes at %p: %s; register only memory that is "
			       "there, from its first byte to its last",
			       bytes, base, found.why.text);
}

static int make_room(struct mst_sources *s)
{
	if (s->count < s->room)
		return 0;
	uint32_t room = s->room == 0 ? ROOM_MIN : 2 * s->room;
	struct mst_registered *more = realloc(s->list, room * sizeof(*more));
	if (more == NULL)
		return mst_reason_fail(s->failure, -ENOMEM, "no memory for the record of a region");
	s->list = more;
	s->room = room;
	return 0;
}

/* With the net, if there is one now. */
static int pin(struct mst_sources *s, struct mst_registered *r, struct mst_reason *why)
{
	if (s->links->net == NULL || r->region != NULL)
		return 0;
	return mst_region_register(&s->links->net->domain, r->memory->base, r->memory->bytes,
				   &r->region, why);
}

static int enter(struct mst_sources *s, struct mst_registered *r, void *base, size_t bytes)
{
	int rc = mst_region_register(&s->registered, base, bytes, &r->memory, s->failure);

	if (rc != 0)
		return rc;
	rc = pin(s, r, s->failure);
	if (rc != 0)
		(void)mst_region_unregister(r->memory, s->failure); /* it is never lent */
	return rc;
}

int mst_sources_register(struct mst_sources *s, void *base, size_t bytes)
{
	struct mst_registered entry = { .region = NULL };
	int rc = check(s, base, bytes);

	if (rc == 0)
		rc = make_room(s);
	if (rc == 0)
		rc = enter(s, &entry, base, bytes);
	if (rc != 0)
		return rc;
	uint32_t at = place_of(s, (uintptr_t)base);
	memmove(&s->list[at + 1], &s->list[at], (s->count - at) * sizeof(entry));
	s->list[at] = entry;
	s->count++;
	return 0;
}

static int not_registered(const struct mst_sources *s, const void *base, const struct mst_region *r)
{
	if (r != NULL && mst_region_has(r, base, 1))
		return mst_reason_fail(s->failure, -EINVAL,
				       "no region begins at %p: it lies in the one of %zu bytes at "
				       "%p, which is unregistered by that address",
				       base, r->bytes, (const void *)r->base);
	return mst_reason_fail(s->failure, -EINVAL,
			       "no region of this handle begins at %p: each handle has only those "
			       "that were registered with it",
			       base);
}

int mst_sources_unregister(struct mst_sources *s, const void *base)
{
	uint32_t at = place_of(s, (uintptr_t)base);
	struct mst_registered *r = at < s->count ? &s->list[at] : NULL;

	if (r == NULL || (const void *)r->memory->base != base)
		return not_registered(s, base, r != NULL ? r->memory : NULL);
	size_t bytes = r->memory->bytes;
	int rc = mst_region_unregister(r->region, s->failure);
	if (rc == -EBUSY)
		return mst_reason_fail(
			s->failure, rc,
			"the %zu bytes at %p are lent: gradients are still being sent from there; "
			"unregister them once muster_released(m, 0) is 1%s",
			bytes, base,
			s->links->lost || s->links->detached
				? ", or close the handle: a link is lost"
				: "");
	if (rc != 0)
		return rc;
	(void)mst_region_unregister(r->memory, s->failure); /* it is never lent */
	s->count--;
	memmove(r, r + 1, (s->count - at) * sizeof(*r));
	return 0;
}

/* ---- another net ---- */

/* A region that could not be unregistered would end with its domain. */
void mst_sources_let_go(struct mst_sources *s)
{
	struct mst_reason unread;

	for (uint32_t i = 0; i < s->count; i++) {
		(void)mst_region_unregister(s->list[i].region, &unread);
		s->list[i].region = NULL;
	}
}

int mst_sources_renew(struct mst_sources *s)
{
	struct mst_reason why;
	int rc;

	for (uint32_t i = 0; i < s->count; i++) {
		struct mst_registered *r = &s->list[i];

		rc = pin(s, r, &why);
		if (rc != 0)
			return mst_reason_fail(
				s->failure, rc,
				"the %zu bytes at %p, which muster_register() was given, cannot be "
				"registered over %s with the servers that have come back: %s",
				r->memory->bytes, (const void *)r->memory->base,
				s->links->transport->scheme, why.text);
	}
	return 0;
}

/* ---- finding ---- */

int mst_sources_find(const struct mst_sources *s, const void *at, size_t bytes,
		     struct mst_region **out)
{
	*out = NULL;
	if (s->count == 0 || bytes == 0)
		return 0;
	uint32_t place = place_of(s, (uintptr_t)at);
	const struct mst_region *memory = place < s->count ? s->list[place].memory : NULL;
	if (memory == NULL || !overlap(at, bytes, memory->base, memory->bytes))
		return 0;
	if (!mst_region_has(memory, at, bytes))
		return mst_reason_fail(s->failure, -EINVAL,
				       "the source, %zu bytes at %p, lies only partly in the "
				       "registered %zu bytes at %p: register all of it as one "
				       "region, or hand the parts over as ranges of their own",
				       bytes, at, memory->bytes, (const void *)memory->base);
	*out = s->list[place].region;
	return 0;
}
