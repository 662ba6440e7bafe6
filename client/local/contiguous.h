/* SPDX-License-Identifier: MIT */
/*
 * The contiguous view: a gradient is composed, and a result read, in one piece, however many
 * servers have parts of the vector. With one server that piece is where the link has it. With
 * several servers each link has a part; the parts are mapped a second time, side by side, in
 * address space that is reserved for a whole vector.
 *
 * Parts begin on pages, which makes this possible. Large parts also begin as far from the bound of
 * a huge page here as where their links have them, so that huge pages can be used here, too.
 */
#ifndef MST_CLIENT_LOCAL_CONTIGUOUS_H
#define MST_CLIENT_LOCAL_CONTIGUOUS_H

#include "client/core/worker.h"
#include "client/session/links.h"
#include "common/base/reason.h"

/* Reserved address space. */
struct mst_reservation {
	char *at;
	size_t bytes; /* 0: none */
};

struct mst_contiguous {
	const struct mst_links *links;
	struct mst_reason *failure;

	/* A private copy of the version that is held, of an earlier session; NULL: none. */
	const char *kept;
	char *result_into; /* the caller's own, where all results are read; NULL: there is none */
	uint64_t elems;
	uint32_t type_size, result_type_size; /* bytes of an element */
	/* Several servers: a gradient for each slot, the result that was copied to this worker, and
	 * the versions that servers publish. */
	struct mst_reservation gradient[MST_SLOTS_MAX], copied, published;
	size_t stride;            /* from one published version to the next */
	uint32_t slots, versions; /* the number of gradients, and of published versions */
	uint32_t gathered;        /* a set of slots, which lie in huge pages if there are any */
};

/* Maps the parts of all servers next to each other. The links have been dialled. Return: 0, or a
 * negative errno with its sentence in *v->failure. */
int mst_contiguous_map(struct mst_contiguous *v, const struct mst_settings *s,
		       const struct mst_welcome *w);
/* Call it after mst_links_free(). */
void mst_contiguous_unmap(struct mst_contiguous *v);

/* The gradient of a slot. */
char *mst_contiguous_gradient(const struct mst_contiguous *v, int slot);
/* The same, to be written: the first time it takes as long as huge pages take to come. */
char *mst_contiguous_compose(struct mst_contiguous *v, int slot);
/* All of them by number, gradients first, then the places of results: the caller's own, or else the
 * result that is copied and then published versions. Where they are does not change. False: there
 * are no more. */
bool mst_contiguous_region(const struct mst_contiguous *v, uint32_t number,
			   struct muster_region *out);
/* Copies the version that is held to the caller's own memory, if results are read there and no
 * server has written it there. True: it has. */
bool mst_contiguous_bring(const struct mst_contiguous *v, const struct mst_held *held);
/* The version that is held, once it has been brought; NULL: that version has no data. */
const void *mst_contiguous_result(const struct mst_contiguous *v, const struct mst_held *held);

/* The version that is held, where servers have put it and the program cannot write. NULL: that
 * version has no data, came with another worker's state, or servers write it to the caller's own
 * memory, which is the program's from one outcome until the next ask. */
const void *mst_contiguous_arrived(const struct mst_contiguous *v, const struct mst_held *held);
/* Is it whole there, as far as a worker can tell that hears nothing of its servers any more? Or has
 * one of them begun to write another version over it? To be asked after it has been read, while
 * there are links. False if that cannot be known: in a job without marks, and of what was put over
 * a link that is `unordered`. */
bool mst_contiguous_whole(const struct mst_contiguous *v, const struct mst_held *held);

static inline size_t mst_contiguous_gradient_bytes(const struct mst_contiguous *v)
{
	return v->elems * v->type_size;
}

static inline size_t mst_contiguous_result_bytes(const struct mst_contiguous *v)
{
	return v->elems * v->result_type_size;
}

#endif
