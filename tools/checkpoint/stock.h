/* SPDX-License-Identifier: MIT */
/* What a directory of checkpoints has, what of it is in order, and how that is told. */
#ifndef MST_TOOLS_CHECKPOINT_STOCK_H
#define MST_TOOLS_CHECKPOINT_STOCK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/checkpoint/manifest/manifest.h"
#include "common/checkpoint/manifest/tensors.h"

/* One checkpoint. */
struct mst_stock_row {
	uint64_t version;
	bool known;                       /* the manifest could be read */
	bool fine;                        /* and all that was looked at is in order */
	struct mst_checkpoint_manifest m; /* if it is known */
	struct mst_reason why;            /* if it is not fine */
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
int mst_stock_take(const char *dir, bool verify, bool tensors, struct mst_stock *out,
		   struct mst_reason *why);
void mst_stock_free(struct mst_stock *s);

/* The bytes of all parts. */
uint64_t mst_stock_bytes(const struct mst_checkpoint_manifest *m);
/* "damaged", "complete" or "verified". */
const char *mst_stock_state(const struct mst_stock *s, const struct mst_stock_row *row);

/* What a directory of checkpoints has, for people and as JSON. */
void mst_stock_print(const struct mst_stock *s, FILE *out);
/* Return: a new object, or NULL if memory is short. */
json_t *mst_stock_json(const struct mst_stock *s);

#endif
