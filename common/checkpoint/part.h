/* SPDX-License-Identifier: MIT */
/*
 * Writes one part of a checkpoint: what one server holds of every vector, as a safetensors file.
 * docs/checkpoints.md has the format.
 */
#ifndef MST_COMMON_CHECKPOINT_PART_H
#define MST_COMMON_CHECKPOINT_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/checkpoint/manifest/manifest.h"

/* A piece of the caller's memory, with whole elements. It must not change until the call
 * returns. */
struct mst_checkpoint_piece {
	const void *base;
	uint64_t count; /* elements */
};

/* A server's part of one vector, in pieces that follow each other. */
struct mst_checkpoint_vector {
	const char *group; /* "parameters", "momentum"; of a-z, A-Z, 0-9, '.', '_' and '-' */
	enum mst_dtype type;
	const struct mst_checkpoint_piece *piece;
	uint32_t pieces;
};

/* How fast a file may be written, and for how long. */
struct mst_checkpoint_pace {
	uint64_t bytes_per_second; /* 0: as fast as the disk takes it */
	/* Asked before each block of MST_CHECKPOINT_BLOCK bytes, and ten times a second while the
	 * writer waits for the next one; true: stop. By the thread that writes. NULL: it is never
	 * stopped. */
	bool (*stops)(void *arg);
	void *arg;
};

#define MST_CHECKPOINT_BLOCK ((size_t)1 << 20)

struct mst_checkpoint_writing {
	const struct mst_checkpoint_id *id;
	uint32_t part, parts;  /* part counts from 0 */
	uint64_t first, count; /* elements of the vector that this part has; count > 0 */
	/* The tensors of the whole vector, which cover it in order; NULL: there is no table, and
	 * each vector becomes one tensor. A name that is NULL, empty or used twice is replaced or
	 * completed by the tensor's number. Scales are not read. */
	const struct muster_tensor *table;
	uint32_t tensors;
	const struct mst_checkpoint_vector *vector; /* at most MST_CHECKPOINT_GROUPS_MAX */
	uint32_t vectors;
	struct mst_checkpoint_pace pace;
};

/* Writes the file below @dir, which exists, and has it on the disk before it returns. Uses a file
 * of another name until it is complete; after a failure that one has been removed.
 * Blocks for as long as disk and pace take; when the last block has been written, it waits for
 * the disk, and does not stop any more. Allocates memory for the header, about 300 bytes a
 * tensor and vector.
 * @out: what the manifest says of this part.
 * Return: 0; -ECANCELED: stops() said so; -ENOSPC: the disk has not enough room, and @why says how
 * much is missing; -EINVAL: the arguments do not fit each other; -E2BIG: the names of the tensors
 * take more than 100 MB; or what the system says. @why is a sentence. Files of older checkpoints
 * have not been touched. */
int mst_checkpoint_part_write(const char *dir, const struct mst_checkpoint_writing *w,
			      struct mst_checkpoint_part *out, struct mst_reason *why);
/* What a manifest says of a part that another process has written to @dir.
 * Return: 0; -EBADMSG: it is missing, damaged, or of another save; or what the system says. @why
 * is a sentence. */
int mst_checkpoint_part_find(const char *dir, const struct mst_checkpoint_id *id, uint32_t part,
			     uint32_t parts, struct mst_checkpoint_part *out,
			     struct mst_reason *why);
/* The bytes of that file, for a budget of the disk; 0: no memory. */
uint64_t mst_checkpoint_part_bytes(const struct mst_checkpoint_writing *w);

#endif
