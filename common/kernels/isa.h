/* SPDX-License-Identifier: MIT */
/*
 * The kernels' loops, as a table per instruction set. isa_sum.c, isa_step.c, isa_store.c
 * and isa_copy.c are compiled once for each, with its flags and with MST_ISA its name, and isa.c
 * makes the table of them. select.c picks one of the tables at run time.
 *
 * All give the same bits but for the payload of a NaN, which store() settles. Lengths are elements
 * and may be 0. Pointers need the alignment of their elements, no more.
 */
#ifndef MST_KERNELS_ISA_H
#define MST_KERNELS_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "muster/muster.h"

#define MST_SUM_SOURCES 8

/* The instruction sets of this build, the best first: what X makes of each. */
#if defined(__x86_64__)
#define MST_ISAS(X, name) X(name, avx512) X(name, avx2) X(name, baseline)
#elif defined(__aarch64__)
#define MST_ISAS(X, name) X(name, neon)
#else
#define MST_ISAS(X, name) X(name, baseline)
#endif
#define MST_ISA_INDEX(name, isa) name##_##isa,
enum { MST_ISAS(MST_ISA_INDEX, MST_ISA_INDEX) MST_ISA_COUNT };

/* How the loops go through memory, which changes no bit. What is fast differs between processors:
 * see tune.h. */
struct mst_variant {
	uint32_t tile;   /* elements that are summed, updated and stored before the next are read */
	uint32_t lines;  /* lines of each source that are read in turn: 1, 2 or 4 */
	uint32_t ahead;  /* bytes by which what is read is asked for early; 0: not asked for */
	uint64_t stream; /* bytes: what is larger is written past the caches */
};

#define MST_TILE_MIN 64
#define MST_TILE_MAX 1024

/* Up to MST_SUM_SOURCES sources, which are added one after the other. */
struct mst_sum_step {
	enum muster_type type;
	bool begun;  /* they are added to what is there; else the sum begins with the first */
	bool scaled; /* a coefficient is not 1 */
	unsigned count;
	const void *source[MST_SUM_SOURCES]; /* type[] */
	float coefficient[MST_SUM_SOURCES];
};

struct mst_isa {
	const char *name;
	unsigned index; /* in tables that have one entry for each: MST_ISA_INDEX_avx2 */
	/* sum[i] = [sum[i] +] leaf(0)[first + i] + leaf(1)[first + i] ..., from the left; no source
	 * overlaps the sum. */
	void (*accumulate)(const struct mst_sum_step *step, const struct mst_variant *how,
			   float *sum, size_t first, size_t count);
	/* acc[i] = acc[i] / divisor */
	void (*divide)(float *acc, float divisor, size_t count);
	/* average[i] = rest * average[i] + (1 - rest) * value[i]; they are apart */
	void (*blend)(float *average, const float *value, float rest, size_t count);
	/* out = acc rounded; out may be acc where type is f32. Return: whether all of out is
	 * finite. */
	bool (*store)(void *out, enum muster_type type, const float *acc, size_t count);
	/* The same past the caches, where the processor can; out is apart. Others may read it after
	 * drain(). */
	bool (*stream)(void *out, enum muster_type type, const float *acc, size_t count);
	void (*drain)(void);
	/* to = from, the same bits; they are apart. Return: whether all of it is finite. */
	bool (*copy)(void *to, const void *from, enum muster_type type, size_t count);
	/* The same past the caches, where the processor can. Others may read it after drain(). */
	bool (*copy_past)(void *to, const void *from, enum muster_type type, size_t count);
	bool (*finite)(const void *from, enum muster_type type, size_t count);
	/* The sum of the squares, in double: one block of a norm. */
	double (*squares)(const float *from, size_t count);
	/* What was read or written is in no cache any more. Return: false: the processor cannot. */
	bool (*evict)(const void *from, size_t bytes);
};

/* The one in use: the best that this processor has, or what mst_kernels_select() said. */
const struct mst_isa *mst_isa(void);

/* The variant in use: the default, what was measured, or what was named. */
const struct mst_variant *mst_variant(void);

#define MST_ISA_PASTE(name, isa) name##_##isa
#define MST_ISA_EXPAND(name, isa) MST_ISA_PASTE(name, isa)
#define MST_ISA_NAME(name) MST_ISA_EXPAND(name, MST_ISA)

#endif
