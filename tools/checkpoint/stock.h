/* SPDX-License-Identifier: MIT */
/* Lists the checkpoints of a directory, and tells which are in order. */
#ifndef MST_TOOLS_CHECKPOINT_STOCK_H
#define MST_TOOLS_CHECKPOINT_STOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/checkpoint/manifest/manifest.h"
#include "common/checkpoint/manifest/tensors.h"

/* One checkpoint. */
struct mst_stock_row {
	uint64_t version;
	bool known;                       /* the manifest could be read */
	bool fine;                        /* and all that was looked at is in order */
	struct mst_checkpoint_manifest m; /* if it is known */
	char why[MST_CHECKPOINT_WHY_LEN]; /* if it is not fine */
	uint32_t files;                   /* whose tensors are listed; 0: they are not */
	struct mst_tensor_file *file;     /* [files], a header of each part */
};

struct mst_stock {
	const char *dir;
	bool verified; /* data were read, too */
	uint32_t rows, fine;
	struct mst_stock_row *row; /* the newest version first */
};

/* Looks at every checkpoint below @dir. @verify: read the data. @tensors: keep the headers of the
 * newest one that is fine.
 * Return: 0; or -errno with @why: the directory cannot be listed, or there is no memory. */
int mst_stock_take(const char *dir, bool verify, bool tensors, struct mst_stock *out, char *why,
		   size_t len);
void mst_stock_free(struct mst_stock *s);

/* The bytes of all parts. */
uint64_t mst_stock_bytes(const struct mst_checkpoint_manifest *m);
/* "damaged", "complete" or "verified". */
const char *mst_stock_state(const struct mst_stock *s, const struct mst_stock_row *row);

#endif
