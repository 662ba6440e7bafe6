/* SPDX-License-Identifier: MIT */
/*
 * Registers memory with a network, so that links can send from it without a copy. A domain is that
 * half of a net which any thread may call: it registers regions, memory of the caller's that the
 * net's links may send from without a copy. To register pins the memory and may take seconds; the
 * net's own thread goes on meanwhile.
 *
 * A region gives peers no right by itself: it is only read, for puts of this end. A link may export
 * a part of one to its peer when it is dialled (struct mst_export). Then that peer may write this
 * part, and nobody else may. What a peer may write besides is the inbound memory of its own link.
 *
 * Threads: any, at the same time. But a put names a region only after the registering call has
 * returned, and none is begun once unregistering has been called.
 *
 * Fork: the memory stays the caller's, in the child, too. Where the kernel would take it away from
 * the child while a device has it pinned, it is not registered (-ENOTSUP). In a child the domain is
 * of no use: it registers nothing (-EPERM), and unregistering does nothing. To free memory before
 * it is unregistered is undefined.
 */
#ifndef MST_TRANSPORT_DOMAIN_H
#define MST_TRANSPORT_DOMAIN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/reason.h"

#define MST_DEVICES_MAX 8u /* that a net's links go over at a time */

struct mst_domain_ops;
struct mst_region;

/* A part of its net. One that is zeroed pins nothing. */
struct mst_domain {
	const struct mst_domain_ops *ops; /* NULL: nothing is pinned */
	void *ctx;
	pthread_mutex_t lock; /* of the list, and of what is pinned */
	struct mst_region *regions;
	bool inherited; /* by fork(): the lock may be held by a thread that is not in the child */
};

struct mst_region {
	struct mst_domain *domain;
	uint8_t *base;
	size_t bytes;
	/* Puts from it that have not completed yet, and those of lost links that are not freed. */
	_Atomic uint32_t lent;
	bool target; /* only exported: nothing is sent from it, and only exports pin it */
	void *pin[MST_DEVICES_MAX]; /* the network's, one for each of its devices */
	struct mst_region *next;    /* the domain's others */
};

/* Makes [base, base + bytes) a region of the domain. It is registered with every device that the
 * net has, and with those that it opens later. Over memory that peers map it costs nothing.
 * Return: 0; with a sentence in @why: -EINVAL 0 bytes, or beyond the end of memory; -EEXIST a
 * part of it is registered already; -ENOTSUP see above; -EFAULT not all of it is mapped, or it is
 * mapped so that it cannot be pinned; -ENOMEM beyond what this process may lock, or the device has
 * no region left; -EPERM in a forked child. */
int mst_region_register(struct mst_domain *d, void *base, size_t bytes, struct mst_region **out,
			struct mst_reason *why);
/* Registers memory that is only exported: the links that export it pin it, and no put names it. */
int mst_region_register_target(struct mst_domain *d, void *base, size_t bytes,
			       struct mst_region **out, struct mst_reason *why);
/* 0; -EBUSY, with a sentence: puts from it are on their way, see MST_SENT, and it stays registered.
 * Accepts NULL. */
int mst_region_unregister(struct mst_region *r, struct mst_reason *why);

/* ---- for transports ---- */

/* What a network does for its domain; @ctx is its own. The domain is locked meanwhile. */
struct mst_domain_ops {
	/* Pins the region for every device there is, or for none; a target for none. 0, or -errno
	 * with a sentence. */
	int (*pin)(void *ctx, struct mst_region *r, struct mst_reason *why);
	void (*unpin)(void *ctx, struct mst_region *r);
};

/* Regions that are still registered are unregistered, and their records freed. No link is left that
 * could read them. */
void mst_domain_fini(struct mst_domain *d);
/* In a forked child: what is pinned is the parent's. */
void mst_domain_disown(struct mst_domain *d);

/* While a device is added: nobody registers in between. */
void mst_domain_lock(struct mst_domain *d);
void mst_domain_unlock(struct mst_domain *d);
/* All regions, while it is locked; NULL: there are no more. */
struct mst_region *mst_domain_next(const struct mst_domain *d, const struct mst_region *after);

/* Does [at, at + bytes) lie in it? */
static inline bool mst_region_has(const struct mst_region *r, const void *at, size_t bytes)
{
	uintptr_t from = (uintptr_t)at - (uintptr_t)r->base;

	return (uintptr_t)at >= (uintptr_t)r->base && from <= r->bytes && bytes <= r->bytes - from;
}

/* May a link with such a lane export this? */
struct mst_export;
bool mst_region_may_export(const struct mst_export *e, size_t lane_bytes);

static inline void mst_region_lend(struct mst_region *r)
{
	atomic_fetch_add_explicit(&r->lent, 1, memory_order_relaxed);
}

static inline void mst_region_take_back(struct mst_region *r)
{
	/* Release: pairs with the acquire in mst_region_unregister(); the reading is over. */
	atomic_fetch_sub_explicit(&r->lent, 1, memory_order_release);
}

#endif
