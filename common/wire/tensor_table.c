/* SPDX-License-Identifier: MIT */
#include "common/wire/tensor_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mst_tensor_table {
	struct mst_table of;
	uint64_t elems; /* of the vector */
	char *names;    /* one after the other; each row points there */
	/* What has come: tensors, bytes of their names, and where the last tensor ends. */
	uint32_t have;
	uint64_t names_have, end;
	struct muster_tensor row[];
};

static size_t struct_bytes(const struct mst_table *of)
{
	return sizeof(struct mst_tensor_table) + of->tensors * sizeof(struct muster_tensor);
}

uint64_t mst_tensor_table_bytes(const struct mst_table *of)
{
	return of->tensors > 0 ? struct_bytes(of) + of->name_bytes : 0;
}

int mst_tensor_table_new(const struct mst_table *of, uint64_t elems, struct mst_tensor_table **out)
{
	*out = NULL;
	if (of->tensors == 0)
		return 0;
	struct mst_tensor_table *t = calloc(1, struct_bytes(of));
	char *names = malloc(of->name_bytes);
	if (t == NULL || names == NULL) {
		free(names);
		free(t);
		return -ENOMEM;
	}
	t->of = *of;
	t->elems = elems;
	t->names = names;
	*out = t;
	return 0;
}

void mst_tensor_table_free(struct mst_tensor_table *t)
{
	if (t == NULL)
		return;
	free(t->names);
	free(t);
}

/* ---- its pieces ---- */

static void begin(struct mst_tensor_table *t)
{
	t->have = 0;
	t->names_have = t->end = 0;
}

static const char *take_row(struct mst_tensor_table *t, const struct mst_tensor_row *row)
{
	size_t bytes = strnlen(row->name, MST_TENSOR_NAME_LEN - 1) + 1;

	if (row->count == 0 || row->count > t->elems - t->end)
		return "a table of tensors that are empty, or reach beyond the vector";
	if (!mst_scale_is_sane(row->lr_scale) || !mst_scale_is_sane(row->decay_scale))
		return "scales of tensors that are no numbers from 0 on";
	if (bytes > t->of.name_bytes - t->names_have)
		return "a table of tensors with longer names than the job has";
	char *name = t->names + t->names_have;
	(void)snprintf(name, bytes, "%s", row->name);
	t->row[t->have++] = (struct muster_tensor){ .name = name,
						    .first = t->end,
						    .count = row->count,
						    .lr_scale = row->lr_scale,
						    .decay_scale = row->decay_scale };
	t->names_have += bytes;
	t->end += row->count;
	return NULL;
}

/* In what does a table that has all its tensors differ from the one that was told of? */
static const char *difference(const struct mst_tensor_table *t)
{
	struct mst_table came;

	mst_table_of(t->row, t->have, &came);
	if (t->end != t->elems || came.places != t->of.places)
		return "a table of tensors with other borders than the job has";
	if (came.names != t->of.names || came.name_bytes != t->of.name_bytes)
		return "a table of tensors with other names than the job has";
	if (came.scales != t->of.scales || came.runs != t->of.runs)
		return "other scales of tensors than the job has";
	return NULL;
}

const char *mst_tensor_table_take(struct mst_tensor_table *t, const struct mst_tensor_piece *piece)
{
	const char *wrong = NULL;

	if (piece->at == 0)
		begin(t);
	if (piece->total != t->of.tensors || piece->at != t->have || piece->count == 0 ||
	    piece->count > t->of.tensors - t->have)
		wrong = "a table of tensors that are too many, or with a gap";
	for (uint32_t i = 0; wrong == NULL && i < piece->count; i++)
		wrong = take_row(t, &piece->row[i]);
	if (wrong == NULL && mst_tensor_table_is_whole(t))
		wrong = difference(t);
	if (wrong != NULL)
		begin(t);
	return wrong;
}

uint32_t mst_tensor_piece_of(const struct muster_tensor *tensor, uint32_t count, uint32_t at,
			     uint32_t max, struct mst_tensor_piece *piece)
{
	piece->at = at;
	piece->total = count;
	for (piece->count = 0; at < count && piece->count < max; at++) {
		struct mst_tensor_row *row = &piece->row[piece->count++];
		const char *name = tensor[at].name != NULL ? tensor[at].name : "";

		(void)snprintf(row->name, sizeof(row->name), "%s", name);
		row->count = tensor[at].count;
		row->lr_scale = tensor[at].lr_scale;
		row->decay_scale = tensor[at].decay_scale;
	}
	return at;
}

/* ---- a whole table ---- */

bool mst_tensor_table_is_whole(const struct mst_tensor_table *t)
{
	return t != NULL && t->have == t->of.tensors;
}

uint32_t mst_tensor_table_count(const struct mst_tensor_table *t)
{
	return mst_tensor_table_is_whole(t) ? t->have : 0;
}

const struct muster_tensor *mst_tensor_table_rows(const struct mst_tensor_table *t)
{
	return mst_tensor_table_is_whole(t) ? t->row : NULL;
}
