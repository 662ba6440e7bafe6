/* SPDX-License-Identifier: MIT */
#include "tools/checkpoint/stock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/checkpoint/find.h"
#include "common/checkpoint/load.h"
#include "common/checkpoint/part_file.h"

uint64_t mst_stock_bytes(const struct mst_checkpoint_manifest *m)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < m->parts; i++)
		bytes += m->part[i].bytes;
	return bytes;
}

const char *mst_stock_state(const struct mst_stock *s, const struct mst_stock_row *row)
{
	return !row->fine ? "damaged" : s->verified ? "verified" : "complete";
}

/* ---- one checkpoint ---- */

static void look(const struct mst_stock *s, struct mst_stock_row *row)
{
	mst_checkpoint_manifest_init(&row->m);
	int rc = mst_checkpoint_manifest_read(s->dir, row->version, &row->m, row->why,
					      sizeof(row->why));
	row->known = rc == 0;
	if (rc == 0)
		rc = mst_checkpoint_check(s->dir, &row->m, row->why, sizeof(row->why));
	if (rc == 0 && s->verified)
		rc = mst_checkpoint_verify(s->dir, &row->m, row->why, sizeof(row->why));
	row->fine = rc == 0;
}

/* Keeps the headers of its parts. What cannot be read any more is not fine. */
static int keep_headers(const struct mst_stock *s, struct mst_stock_row *row)
{
	struct mst_part_file f;

	row->file = calloc(row->m.parts, sizeof(*row->file));
	if (row->file == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < row->m.parts && row->fine; i++) {
		row->fine = mst_part_file_open(s->dir, row->m.part[i].file, &f, row->why,
					       sizeof(row->why)) == 0;
		if (!row->fine)
			continue;
		row->file[row->files++] = f.header;
		f.header = (struct mst_tensor_file){ 0 }; /* it is the row's now */
		mst_part_file_close(&f);
	}
	return 0;
}

static void row_fini(struct mst_stock_row *row)
{
	for (uint32_t i = 0; i < row->files; i++)
		mst_tensor_file_fini(&row->file[i]);
	free(row->file);
	mst_checkpoint_manifest_fini(&row->m);
}

/* ---- all of them ---- */

static int look_at_all(struct mst_stock *s, const uint64_t *version, bool tensors)
{
	int rc = 0;

	for (uint32_t i = 0; i < s->rows && rc == 0; i++) {
		s->row[i].version = version[i];
		look(s, &s->row[i]);
		if (s->row[i].fine && tensors && s->fine == 0)
			rc = keep_headers(s, &s->row[i]);
		s->fine += s->row[i].fine;
	}
	return rc;
}

int mst_stock_take(const char *dir, bool verify, bool tensors, struct mst_stock *out, char *why,
		   size_t len)
{
	uint64_t *version = NULL;
	int count = mst_checkpoint_versions(dir, &version, why, len);

	*out = (struct mst_stock){ .dir = dir, .verified = verify };
	if (count < 0)
		return count;
	out->row = calloc((size_t)count + 1, sizeof(*out->row));
	out->rows = out->row != NULL ? (uint32_t)count : 0;
	int rc = out->row != NULL ? look_at_all(out, version, tensors) : -ENOMEM;
	free(version);
	if (rc != 0) {
		(void)snprintf(why, len, "no memory for what is in %s", dir);
		mst_stock_free(out);
	}
	return rc;
}

void mst_stock_free(struct mst_stock *s)
{
	for (uint32_t i = 0; i < s->rows; i++)
		row_fini(&s->row[i]);
	free(s->row);
	s->row = NULL;
	s->rows = 0;
}
