/* SPDX-License-Identifier: MIT */
/*
 * Memory of the caller's that is registered with the handle. Over a transport that does not map,
 * gradients are sent from there as they lie, and the memory is lent meanwhile; over one that maps
 * they are copied, once, to the slot that the server reads.
 *
 * What is registered stays so as long as the handle, whatever becomes of its net: the memory is
 * registered again with each net that is opened. While there is none, nothing is pinned.
 *
 * To register allocates and may take seconds; to look a source up does neither.
 */
#ifndef MST_CLIENT_LOCAL_SOURCES_H
#define MST_CLIENT_LOCAL_SOURCES_H

#include "client/local/contiguous.h"

/* Memory that a range of a gradient is sent from where it lies. */
struct mst_source {
	const char *at;
	struct mst_region *region;
};

struct mst_registered {
	struct mst_region *memory; /* as the caller has registered it */
	struct mst_region *region; /* the same, of the net's domain; NULL: there is no net */
};

struct mst_sources {
	const struct mst_links *links;
	const struct mst_contiguous *contiguous;
	struct mst_reason *failure;

	struct mst_domain registered; /* of no net: what the caller has registered */
	struct mst_registered *list;  /* by their addresses */
	uint32_t count, room;
};

void mst_sources_fini(struct mst_sources *s);

/* Return: 0; or, with a sentence, the errors of mst_region_register(), and -EINVAL for memory that
 * the handle itself has given out. */
int mst_sources_register(struct mst_sources *s, void *base, size_t bytes);
/* Return: 0; or, with a sentence, -EINVAL: no region begins there; -EBUSY: the region is lent. */
int mst_sources_unregister(struct mst_sources *s, const void *base);

/* The net is about to be closed, and its links are freed: nothing is lent any more. */
void mst_sources_let_go(struct mst_sources *s);
/* Another net has been opened, perhaps of another network. Return: 0; or, with a sentence, the
 * errors of mst_region_register(): then some memory is registered with this net, and all stays the
 * caller's to unregister. */
int mst_sources_renew(struct mst_sources *s);

/* Finds the region that has all of [at, at + bytes). *out: NULL if no region has any of it, or if
 * there is no net. Return: 0; or, with a sentence, -EINVAL: a region has only a part of it. */
int mst_sources_find(const struct mst_sources *s, const void *at, size_t bytes,
		     struct mst_region **out);

#endif
