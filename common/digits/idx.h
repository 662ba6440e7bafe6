/* SPDX-License-Identifier: MIT */
/*
 * IDX files, the form MNIST comes in: a magic number that says what follows, the extent of each
 * dimension (big-endian), then the bytes themselves. Plain or gzip, whatever the name says.
 */
#ifndef MST_DIGITS_IDX_H
#define MST_DIGITS_IDX_H

#include <stdint.h>

#include "common/base/reason.h"

enum mst_idx_kind { MST_IDX_LABELS, MST_IDX_IMAGES };

/* More than this in one file is refused: the whole of MNIST is 47 MB. */
#define MST_IDX_BYTES_MAX (UINT64_C(1) << 30)

struct mst_idx {
	uint32_t count;
	uint32_t rows, columns; /* of one item; 1 x 1 for a label */
	uint8_t *bytes;         /* count x rows x columns; owned, mst_idx_fini() */
};

/**
 * mst_idx_init - read a whole file.
 * @out: written on success only.
 * @why: on failure a sentence that names the file and the numbers that are wrong.
 * Return: 0; -EINVAL not such a file, or cut short, or damaged; -EFBIG; -ENOMEM; the errno of a
 * file that cannot be read.
 */
int mst_idx_init(const char *path, enum mst_idx_kind kind, struct mst_idx *out,
		 struct mst_reason *why);
void mst_idx_fini(struct mst_idx *idx); /* fine after a failed init of a zeroed struct */

#endif
