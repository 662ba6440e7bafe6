/* SPDX-License-Identifier: MIT */
/*
 * The kernels' loops, as a table per instruction set. isa_fold.c, isa_step.c and isa_store.c are
 * compiled once for each, with its flags and with MST_ISA its name, and isa.c makes the table of
 * them. select.c picks one of the tables at run time.
 *
 * All give the same bits but for the payload of a NaN, which store() settles. Lengths are elements
 * and may be 0. Pointers need the alignment of their elements, no more.
 */
#ifndef MST_KERNELS_ISA_H
#define MST_KERNELS_ISA_H

#include <stdbool.h>
#include <stddef.h>

#include "muster/muster.h"

#define MST_FOLD_SOURCES 8

/* So many sources, added up one after the other. */
struct mst_fold_step {
	enum muster_type type;
	bool begun;  /* they are added to what is there; else the sum begins with the first */
	bool scaled; /* a coefficient is not 1 */
	unsigned count;
	const void *source[MST_FOLD_SOURCES]; /* type[] */
	float coefficient[MST_FOLD_SOURCES];
};

struct mst_isa {
	const char *name;
	/* sum[i] = [sum[i] +] leaf(0)[first + i] + leaf(1)[first + i] ..., from the left; no source
	 * overlaps the sum. */
	void (*fold)(const struct mst_fold_step *step, float *sum, size_t first, size_t count);
	/* acc[i] = acc[i] / divisor */
	void (*divide)(float *acc, float divisor, size_t count);
	/* m = mu m + g */
	void (*accumulate)(float *m, const float *g, float mu, size_t count);
	/* next = theta - eta slope, nothing overlaps */
	void (*descend)(float *next, const float *theta, const float *slope, float eta,
			size_t count);
	/* next = theta + total, nothing overlaps */
	void (*ascend)(float *next, const float *theta, const float *total, size_t count);
	/* out = acc rounded; out may be acc where type is f32. */
	void (*store)(void *out, enum muster_type type, const float *acc, size_t count);
	/* The same past the caches, where the processor can; out is apart. Others may read it after
	 * drain(). */
	void (*stream)(void *out, enum muster_type type, const float *acc, size_t count);
	void (*drain)(void);
};

/* The one in use: the best that this processor has, or what mst_kernels_select() said. */
const struct mst_isa *mst_isa(void);

#define MST_ISA_PASTE(name, isa) name##_##isa
#define MST_ISA_EXPAND(name, isa) MST_ISA_PASTE(name, isa)
#define MST_ISA_NAME(name) MST_ISA_EXPAND(name, MST_ISA)

#endif
