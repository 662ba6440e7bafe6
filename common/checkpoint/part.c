/* SPDX-License-Identifier: MIT */
#include "common/checkpoint/part.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/crc32c.h"
#include "common/checkpoint/layout.h"
#include "common/checkpoint/names.h"
#include "common/checkpoint/part_file.h"
#include "common/checkpoint/safe_file.h"

#define SLEEP_NS (100 * MST_MS)

/* A file while its data are written, in their order. */
struct part_writer {
	const struct mst_checkpoint_writing *w;
	struct mst_tensor_file header;
	struct mst_safe_file file;
	uint32_t tensor;  /* whose data come next */
	uint64_t written; /* bytes of data */
	uint64_t begun_ns;
};

/* ---- pace ---- */

static bool is_stopped(const struct mst_checkpoint_pace *pace)
{
	return pace->stops != NULL && pace->stops(pace->arg);
}

/* When so many bytes may have been written. */
static uint64_t due_ns(const struct part_writer *p)
{
	double seconds = (double)p->written / (double)p->w->pace.bytes_per_second;

	return p->begun_ns + (uint64_t)(seconds * (double)MST_SECOND);
}

/* Waits until the next block may be written. */
static int keep_pace(struct part_writer *p)
{
	const struct mst_checkpoint_pace *pace = &p->w->pace;
	bool stopped = is_stopped(pace);

	while (!stopped && pace->bytes_per_second > 0 && mst_left_ns(due_ns(p)) > 0) {
		uint64_t left_ns = mst_left_ns(due_ns(p));
		mst_sleep_ns(left_ns < SLEEP_NS ? left_ns : SLEEP_NS);
		stopped = is_stopped(pace);
	}
	if (!stopped)
		return 0;
	return mst_reason_fail(p->file.why, -ECANCELED,
			       "%s was not written to its end: the writer was told to stop after "
			       "%" PRIu64 " of %" PRIu64 " bytes",
			       p->file.path, p->written, p->header.bytes);
}

/* ---- data ---- */

/* Adds a block to the checksums of the tensors that it belongs to. */
static void add_to_checksums(struct part_writer *p, const uint8_t *bytes, size_t count)
{
	uint64_t at = p->written;

	while (count > 0) {
		struct mst_tensor_entry *t = &p->header.tensor[p->tensor];
		size_t here = t->end - at < count ? (size_t)(t->end - at) : count;
		t->crc = mst_crc32c(t->crc, bytes, here);
		bytes += here;
		at += here;
		count -= here;
		p->tensor += at == t->end;
	}
}

static int write_block(struct part_writer *p, const uint8_t *bytes, size_t count)
{
	int rc = keep_pace(p);

	if (rc != 0)
		return rc;
	add_to_checksums(p, bytes, count);
	rc = mst_safe_file_write(&p->file, p->header.data + p->written, bytes, count);
	p->written += count;
	return rc;
}

static int write_vector(struct part_writer *p, const struct mst_checkpoint_vector *v)
{
	for (uint32_t i = 0; i < v->pieces; i++) {
		const uint8_t *at = v->piece[i].base;
		uint64_t left = v->piece[i].count * mst_dtype_bytes(v->type);
		while (left > 0) {
			size_t count = left < MST_CHECKPOINT_BLOCK ? (size_t)left
								   : MST_CHECKPOINT_BLOCK;
			int rc = write_block(p, at, count);
			if (rc != 0)
				return rc;
			at += count;
			left -= count;
		}
	}
	return 0;
}

/* In the order of mst_checkpoint_layout(). */
static int write_data(struct part_writer *p)
{
	int rc = 0;

	for (size_t size = 8; size >= 2; size /= 2)
		for (uint32_t v = 0; v < p->w->vectors && rc == 0; v++)
			if (mst_dtype_bytes(p->w->vector[v].type) == size)
				rc = write_vector(p, &p->w->vector[v]);
	return rc;
}

/* ---- header ---- */

static int compose(struct part_writer *p, char **out, struct mst_reason *why)
{
	int rc = mst_tensor_file_compose(&p->header, out);

	if (rc == 0)
		return 0;
	return mst_reason_fail(why, rc,
			       rc == -ENOMEM ? "no memory for the names of the tensors"
					     : "the names of the tensors take more than a header "
					       "may have");
}

/* It has the checksums of the data, so it comes when they are written. */
static int write_header(struct part_writer *p)
{
	uint64_t data = p->header.data;
	char *header = NULL;
	int rc = compose(p, &header, p->file.why);

	if (rc != 0)
		return rc;
	MST_ASSERT(p->header.data == data);
	rc = mst_safe_file_write(&p->file, 0, header, data);
	free(header);
	return rc;
}

/* ---- the file ---- */

static int write_file(struct part_writer *p, const char *dir, const char *name,
		      struct mst_reason *why)
{
	int rc = mst_safe_file_open(&p->file, dir, name, p->header.bytes, why);

	p->begun_ns = mst_now_ns();
	if (rc == 0)
		rc = write_data(p);
	if (rc == 0)
		rc = write_header(p);
	if (rc == 0)
		rc = mst_safe_file_commit(&p->file);
	if (rc != 0)
		mst_safe_file_abandon(&p->file);
	return rc;
}

/* Knows the length of header and file; the checksums are missing. */
static int writer_init(struct part_writer *p, const struct mst_checkpoint_writing *w,
		       struct mst_reason *why)
{
	char *header = NULL;

	*p = (struct part_writer){ .w = w };
	int rc = mst_checkpoint_layout(w, &p->header, why);
	if (rc == 0)
		rc = compose(p, &header, why);
	free(header);
	return rc;
}

int mst_checkpoint_part_write(const char *dir, const struct mst_checkpoint_writing *w,
			      struct mst_checkpoint_part *out, struct mst_reason *why)
{
	struct mst_checkpoint_part part = { .first = w->first, .count = w->count };
	struct part_writer p;
	int rc = writer_init(&p, w, why);

	mst_checkpoint_part_name(w->id, w->part, w->parts, part.file);
	if (rc == 0)
		rc = write_file(&p, dir, part.file, why);
	part.bytes = p.header.bytes;
	part.header_crc = p.header.header_crc;
	mst_tensor_file_fini(&p.header);
	if (rc == 0)
		*out = part;
	return rc;
}

uint64_t mst_checkpoint_part_bytes(const struct mst_checkpoint_writing *w)
{
	struct part_writer p;
	struct mst_reason why;
	uint64_t bytes = writer_init(&p, w, &why) == 0 ? p.header.bytes : 0;

	mst_tensor_file_fini(&p.header);
	return bytes;
}

/* ---- finds the file of a part ---- */

int mst_checkpoint_part_find(const char *dir, const struct mst_checkpoint_id *id, uint32_t part,
			     uint32_t parts, struct mst_checkpoint_part *out,
			     struct mst_reason *why)
{
	struct mst_checkpoint_part found = { .bytes = 0 };
	struct mst_part_file file;

	mst_checkpoint_part_name(id, part, parts, found.file);
	int rc = mst_part_file_open(dir, found.file, &file, why);
	if (rc != 0)
		return rc;
	const struct mst_tensor_file *h = &file.header;
	if (strcmp(h->id.save, id->save) != 0 || h->id.version != id->version || h->part != part ||
	    h->parts != parts) {
		rc = mst_reason_fail(why, -EBADMSG, "%s is a part of another save", file.path);
	} else {
		found.bytes = h->bytes;
		found.first = h->first;
		found.count = h->count;
		found.header_crc = h->header_crc;
		*out = found;
	}
	mst_part_file_close(&file);
	return rc;
}
