/* SPDX-License-Identifier: MIT */
#include "common/transport/domain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/transport/transport.h"

void mst_domain_fini(struct mst_domain *d)
{
	while (d->regions != NULL) {
		struct mst_region *r = d->regions;
		d->regions = r->next;
		if (d->ops != NULL && !d->inherited)
			d->ops->unpin(d->ctx, r);
		free(r);
	}
}

void mst_domain_disown(struct mst_domain *d)
{
	d->inherited = true;
}

void mst_domain_lock(struct mst_domain *d)
{
	pthread_mutex_lock(&d->lock);
}

void mst_domain_unlock(struct mst_domain *d)
{
	pthread_mutex_unlock(&d->lock);
}

struct mst_region *mst_domain_next(const struct mst_domain *d, const struct mst_region *after)
{
	return after == NULL ? d->regions : after->next;
}

/* ---- regions ---- */

static const struct mst_region *overlapped(const struct mst_domain *d, const void *base,
					   size_t bytes)
{
	uintptr_t from = (uintptr_t)base, last = from + (bytes - 1);

	for (const struct mst_region *r = d->regions; r != NULL; r = r->next) {
		uintptr_t first = (uintptr_t)r->base;
		if (from <= first + (r->bytes - 1) && first <= last)
			return r;
	}
	return NULL;
}

static int check(const struct mst_domain *d, const void *base, size_t bytes, struct mst_reason *why)
{
	if (bytes == 0)
		return mst_reason_fail(why, -EINVAL, "a region of 0 bytes cannot be registered");
	if (base == NULL || bytes - 1 > UINTPTR_MAX - (uintptr_t)base)
		return mst_reason_fail(why, -EINVAL, "%zu bytes at %p are no memory", bytes, base);
	const struct mst_region *other = overlapped(d, base, bytes);
	if (other == NULL)
		return 0;
	return mst_reason_fail(
		why, -EEXIST,
		"%zu bytes at %p overlap a region that is registered already, %zu bytes at "
		"%p: unregister that first, or register both as one",
		bytes, base, other->bytes, (const void *)other->base);
}

static int add(struct mst_domain *d, struct mst_region *r, struct mst_reason *why)
{
	int rc = check(d, r->base, r->bytes, why);

	if (rc == 0 && d->ops != NULL)
		rc = d->ops->pin(d->ctx, r, why);
	if (rc != 0)
		return rc;
	r->next = d->regions;
	d->regions = r;
	return 0;
}

static int enter(struct mst_domain *d, const struct mst_region *what, struct mst_region **out,
		 struct mst_reason *why)
{
	if (d->inherited)
		return mst_reason_fail(why, -EPERM,
				       "a forked child registers no memory with the devices of "
				       "its parent: open a handle of its own");
	struct mst_region *r = calloc(1, sizeof(*r));
	if (r == NULL)
		return mst_reason_fail(why, -ENOMEM, "no memory for the record of a region");
	r->domain = d;
	r->base = what->base;
	r->bytes = what->bytes;
	r->target = what->target;
	pthread_mutex_lock(&d->lock);
	int rc = add(d, r, why);
	pthread_mutex_unlock(&d->lock);
	if (rc != 0) {
		free(r);
		return rc;
	}
	*out = r;
	return 0;
}

int mst_region_register(struct mst_domain *d, void *base, size_t bytes, struct mst_region **out,
			struct mst_reason *why)
{
	return enter(d, &(struct mst_region){ .base = base, .bytes = bytes }, out, why);
}

int mst_region_register_target(struct mst_domain *d, void *base, size_t bytes,
			       struct mst_region **out, struct mst_reason *why)
{
	return enter(d, &(struct mst_region){ .base = base, .bytes = bytes, .target = true }, out,
		     why);
}

static void drop(struct mst_domain *d, struct mst_region *r)
{
	struct mst_region **at = &d->regions;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	if (d->ops != NULL)
		d->ops->unpin(d->ctx, r);
}

int mst_region_unregister(struct mst_region *r, struct mst_reason *why)
{
	if (r == NULL)
		return 0;
	struct mst_domain *d = r->domain;
	/* Acquire: pairs with the release in mst_region_take_back(). */
	uint32_t lent = atomic_load_explicit(&r->lent, memory_order_acquire);
	if (lent > 0 && !d->inherited)
		return mst_reason_fail(why, -EBUSY,
				       "%" PRIu32
				       " puts from the %zu bytes at %p are still on their way: "
				       "wait until they are sent",
				       lent, r->bytes, (void *)r->base);
	if (d->inherited) /* the domain frees the record with its own */
		return 0;
	pthread_mutex_lock(&d->lock);
	drop(d, r);
	pthread_mutex_unlock(&d->lock);
	free(r);
	return 0;
}

bool mst_region_may_export(const struct mst_export *e, size_t lane_bytes)
{
	return e->bytes > 0 && e->offset <= e->region->bytes &&
	       e->bytes <= e->region->bytes - e->offset && e->at <= lane_bytes &&
	       e->bytes <= lane_bytes - e->at;
}
