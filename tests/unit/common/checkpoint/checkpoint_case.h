/* SPDX-License-Identifier: MIT */
/* Checkpoints of a made-up job, for the tests of common/checkpoint: every element of every vector
 * can be computed, so that what is read can be compared. */
#ifndef MST_TESTS_UNIT_COMMON_CHECKPOINT_CHECKPOINT_CASE_H
#define MST_TESTS_UNIT_COMMON_CHECKPOINT_CHECKPOINT_CASE_H

#include "common/checkpoint/find.h"
#include "common/checkpoint/load.h"
#include "common/checkpoint/manifest/manifest.h"
#include "common/checkpoint/part.h"

#define CHECKPOINT_ELEMS_MAX 4000u
#define CHECKPOINT_VECTORS 3u

/* What is to be written. Zeroed but for version and elems: one part, no table. */
struct checkpoint_case {
	const char *job; /* NULL: "night" */
	uint64_t version, elems;
	uint32_t parts; /* 0: one */
	const struct muster_tensor *table;
	uint32_t tensors;
	struct mst_checkpoint_pace pace;
};

/* The vectors: parameters (F32), momentum (F32) and average (BF16). Bits of an element. */
uint32_t checkpoint_element(uint64_t version, unsigned vector, uint64_t index);
extern const char *const checkpoint_groups[CHECKPOINT_VECTORS];
extern const enum mst_dtype checkpoint_types[CHECKPOINT_VECTORS];

/* Where part @k begins. */
uint64_t checkpoint_border(const struct checkpoint_case *c, uint32_t k);

/* Writes all parts and the manifest. Return: 0 or what failed, with @why. */
int checkpoint_write(const char *dir, const struct checkpoint_case *c, struct mst_reason *why);
/* The same without the manifest, which is filled in. */
int checkpoint_write_parts(const char *dir, const struct checkpoint_case *c,
			   struct mst_checkpoint_manifest *m, struct mst_reason *why);

/* Reads [first, first + count) of every vector and compares. Return: 0, what failed, or -EILSEQ: an
 * element is not what was written. */
int checkpoint_read(const char *dir, const struct mst_checkpoint_manifest *m, uint64_t first,
		    uint64_t count, struct mst_reason *why);

/* Is @part in the sentence? Prints the sentence if not. */
bool checkpoint_says(const char *why, const char *part);

#endif
