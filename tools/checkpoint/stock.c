/* SPDX-License-Identifier: MIT */
#include "tools/checkpoint/stock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/checkpoint/find.h"
#include "common/checkpoint/load.h"
#include "common/checkpoint/manifest/manifest_fields.h"
#include "common/checkpoint/part_file.h"
#include "common/checkpoint/size.h"
#include "server/control/job/kept.h"

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
	struct mst_kept kept = { .rank = NULL };

	mst_checkpoint_manifest_init(&row->m);
	int rc = mst_checkpoint_manifest_read(s->dir, row->version, &row->m, &row->why);
	row->known = rc == 0;
	if (rc == 0)
		rc = mst_checkpoint_check(s->dir, &row->m, &row->why);
	if (rc == 0 && s->verified)
		rc = mst_checkpoint_verify(s->dir, &row->m, &row->why);
	if (rc == 0)
		rc = mst_kept_read(&row->m, s->dir, &kept, &row->why);
	free(kept.rank);
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
		row->fine = mst_part_file_open(s->dir, row->m.part[i].file, &f, &row->why) == 0;
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

int mst_stock_take(const char *dir, bool verify, bool tensors, struct mst_stock *out,
		   struct mst_reason *why)
{
	uint64_t *version = NULL;
	int count = mst_checkpoint_versions(dir, &version, why);

	*out = (struct mst_stock){ .dir = dir, .verified = verify };
	if (count < 0)
		return count;
	out->row = calloc((size_t)count + 1, sizeof(*out->row));
	out->rows = out->row != NULL ? (uint32_t)count : 0;
	int rc = out->row != NULL ? look_at_all(out, version, tensors) : -ENOMEM;
	free(version);
	if (rc != 0) {
		mst_reason_set(why, "no memory for what is in %s", dir);
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

/* ---- print ---- */

#define TIME_LEN 32u

/* In UTC, as "2026-11-24 12:58:01". */
static const char *time_text(int64_t ms, char out[TIME_LEN])
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;

	if (gmtime_r(&seconds, &tm) == NULL || strftime(out, TIME_LEN, "%F %T", &tm) == 0)
		(void)snprintf(out, TIME_LEN, "?");
	return out;
}

static void print_row(const struct mst_stock *s, const struct mst_stock_row *row, FILE *out)
{
	const struct mst_checkpoint_manifest *m = &row->m;
	char when[TIME_LEN], size[32];

	if (!row->known) {
		(void)fprintf(out, "%10" PRIu64 "  damaged: %s\n", row->version, row->why.text);
		return;
	}
	(void)fprintf(out, "%10" PRIu64 " %12" PRIu64 "  %s %6" PRIu32 " %12s  %-8s  %s, %s, %s\n",
		      row->version, m->samples, time_text(m->written_ms, when), m->parts,
		      mst_checkpoint_size(mst_stock_bytes(m), size), mst_stock_state(s, row),
		      m->id.job, m->policy, m->optimizer);
	if (!row->fine)
		(void)fprintf(out, "%10s  %s\n", "", row->why.text);
}

static void print_tensors(const struct mst_stock_row *row, FILE *out)
{
	(void)fprintf(out, "\nTensors of version %" PRIu64 ":\n%4s %-5s %14s %14s %14s  %s\n",
		      row->version, "part", "type", "elements", "from element", "of", "name");
	for (uint32_t i = 0; i < row->files; i++)
		for (uint32_t k = 0; k < row->file[i].tensors; k++) {
			const struct mst_tensor_entry *t = &row->file[i].tensor[k];
			(void)fprintf(
				out,
				"%4" PRIu32 " %-5s %14" PRIu64 " %14" PRIu64 " %14" PRIu64 "  %s\n",
				i, mst_dtype_name(t->type), t->count, t->offset, t->total, t->name);
		}
}

void mst_stock_print(const struct mst_stock *s, FILE *out)
{
	(void)fprintf(out, "%10s %12s  %-19s %6s %12s  %-8s  %s\n", "version", "samples",
		      "written (UTC)", "parts", "size", "state", "job, policy, optimizer");
	for (uint32_t i = 0; i < s->rows; i++)
		print_row(s, &s->row[i], out);
	for (uint32_t i = 0; i < s->rows; i++)
		if (s->row[i].files > 0)
			print_tensors(&s->row[i], out);
}

/* A directory of checkpoints as JSON. */

static json_t *tensor_json(const struct mst_tensor_entry *t, uint32_t part)
{
	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "name", t->name, "group",
			 t->group, "type", mst_dtype_name(t->type), "part", (json_int_t)part,
			 "elements", (json_int_t)t->count, "first", (json_int_t)t->first, "offset",
			 (json_int_t)t->offset, "of", (json_int_t)t->total);
}

static json_t *tensors_json(const struct mst_stock_row *row)
{
	json_t *out = json_array();
	int failed = out == NULL;

	for (uint32_t i = 0; i < row->files && !failed; i++)
		for (uint32_t k = 0; k < row->file[i].tensors && !failed; k++)
			failed = json_array_append_new(out,
						       tensor_json(&row->file[i].tensor[k], i));
	if (failed) {
		json_decref(out);
		return NULL;
	}
	return out;
}

static json_t *known_json(const struct mst_checkpoint_manifest *m)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}",
			 "samples", (json_int_t)m->samples, "written_ms", (json_int_t)m->written_ms,
			 "parts", (json_int_t)m->parts, "bytes", (json_int_t)mst_stock_bytes(m),
			 "elems", (json_int_t)m->id.elems, "workers", (json_int_t)m->workers, "job",
			 m->id.job, "save", m->id.save, "muster", m->muster, "policy", m->policy,
			 "optimizer", m->optimizer, "type", mst_manifest_type(m->type),
			 "result_type", mst_manifest_type(m->result_type), "owner",
			 mst_manifest_owner(m->owner));
}

static json_t *row_json(const struct mst_stock *s, const struct mst_stock_row *row)
{
	json_t *out = row->known ? known_json(&row->m) : json_object();

	if (json_object_set_new(out, "version", json_integer((json_int_t)row->version)) != 0 ||
	    json_object_set_new(out, "state", json_string(mst_stock_state(s, row))) != 0 ||
	    (!row->fine && json_object_set_new(out, "why", json_string(row->why.text)) != 0) ||
	    (row->files > 0 && json_object_set_new(out, "tensors", tensors_json(row)) != 0)) {
		json_decref(out);
		return NULL;
	}
	return out;
}

json_t *mst_stock_json(const struct mst_stock *s)
{
	json_t *rows = json_array();

	for (uint32_t i = 0; i < s->rows; i++)
		if (json_array_append_new(rows, row_json(s, &s->row[i])) != 0) {
			json_decref(rows);
			return NULL;
		}
	return json_pack("{s:s, s:o}", "directory", s->dir, "checkpoints", rows);
}
