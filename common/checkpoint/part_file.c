/* SPDX-License-Identifier: MIT */
#include "common/checkpoint/part_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int mst_part_file_read(const struct mst_part_file *f, uint64_t at, void *into, size_t count,
		       struct mst_reason *why)
{
	uint8_t *byte = into;

	while (count > 0) {
		ssize_t got = pread(f->fd, byte, count, (off_t)at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return mst_reason_fail(why, -errno, "cannot read %s: %s", f->path,
					       strerror(errno));
		if (got == 0)
			return mst_reason_fail(why, -EBADMSG,
					       "%s ends after %" PRIu64 " bytes, and %zu more are "
					       "missing",
					       f->path, at, count);
		byte += got;
		at += (uint64_t)got;
		count -= (size_t)got;
	}
	return 0;
}

/* Return: 0; the length of the header with its prefix is in @out. */
static int read_length(const struct mst_part_file *f, uint64_t bytes, uint64_t *out,
		       struct mst_reason *why)
{
	uint8_t prefix[MST_TENSORS_PREFIX];
	uint64_t length = 0;
	int rc = mst_part_file_read(f, 0, prefix, sizeof(prefix), why);

	if (rc != 0)
		return rc;
	for (unsigned i = MST_TENSORS_PREFIX; i-- > 0;)
		length = length << 8 | prefix[i];
	if (length > MST_TENSORS_HEADER_MAX || length > bytes - MST_TENSORS_PREFIX)
		return mst_reason_fail(why, -EBADMSG,
				       "%s is damaged: its header would have %" PRIu64
				       " bytes, and the file has %" PRIu64,
				       f->path, length, bytes);
	*out = length + MST_TENSORS_PREFIX;
	return 0;
}

static int read_header(struct mst_part_file *f, uint64_t bytes, struct mst_reason *why)
{
	uint64_t length = 0;
	int rc = read_length(f, bytes, &length, why);

	if (rc != 0)
		return rc;
	char *header = malloc(length);
	if (header == NULL)
		return mst_reason_fail(why, -ENOMEM, "no memory for the header of %s", f->path);
	rc = mst_part_file_read(f, 0, header, length, why);
	if (rc == 0) {
		rc = mst_tensor_file_parse(header, length, bytes, &f->header, why);
		if (rc != 0)
			(void)mst_reason_fail(why, rc, "%s cannot be used: %s", f->path, why->text);
	}
	free(header);
	return rc;
}

static int read_file(struct mst_part_file *f, struct mst_reason *why)
{
	struct stat st;

	if (fstat(f->fd, &st) != 0)
		return mst_reason_fail(why, -errno, "cannot read %s: %s", f->path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return mst_reason_fail(why, -EBADMSG, "%s is not a file", f->path);
	return read_header(f, (uint64_t)st.st_size, why);
}

int mst_part_file_open(const char *dir, const char *name, struct mst_part_file *out,
		       struct mst_reason *why)
{
	*out = (struct mst_part_file){ 0 };
	int path = snprintf(out->path, sizeof(out->path), "%s/%s", dir, name);
	if (path < 0 || (size_t)path >= sizeof(out->path))
		return mst_reason_fail(why, -ENAMETOOLONG, "the name %.80s... is too long", dir);
	/* Nonblocking: a pipe of this name must not hold anybody up. */
	out->fd = open(out->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (out->fd < 0 && errno == ENOENT)
		return mst_reason_fail(why, -EBADMSG, "%s is missing", out->path);
	if (out->fd < 0)
		return mst_reason_fail(why, -errno, "cannot open %s: %s", out->path,
				       strerror(errno));
	int rc = read_file(out, why);
	if (rc != 0)
		mst_part_file_close(out);
	return rc;
}

void mst_part_file_close(struct mst_part_file *f)
{
	(void)close(f->fd);
	f->fd = -1;
	mst_tensor_file_fini(&f->header);
}

/* ---- what the manifest says ---- */

static bool same_id(const struct mst_checkpoint_id *a, const struct mst_checkpoint_id *b)
{
	return strcmp(a->save, b->save) == 0 && strcmp(a->job, b->job) == 0 &&
	       a->version == b->version && a->elems == b->elems;
}

/* How many groups the file has that the manifest names, with their types. */
static uint32_t groups_of(const struct mst_tensor_file *f, const struct mst_checkpoint_manifest *m)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < f->tensors; i++) {
		const struct mst_tensor_entry *t = &f->tensor[i];
		if (i > 0 && strcmp(t->group, t[-1].group) == 0)
			continue;
		for (uint32_t g = 0; g < m->groups; g++)
			found += strcmp(t->group, m->group[g].name) == 0 &&
				 t->type == m->group[g].type;
	}
	return found;
}

int mst_part_file_belongs(const struct mst_part_file *f, const struct mst_checkpoint_manifest *m,
			  uint32_t part, struct mst_reason *why)
{
	const struct mst_checkpoint_part *wanted = &m->part[part];
	const struct mst_tensor_file *h = &f->header;
	const char *wrong = NULL;

	if (h->bytes != wanted->bytes)
		return mst_reason_fail(why, -EBADMSG,
				       "%s has %" PRIu64 " bytes, and its manifest says %" PRIu64,
				       f->path, h->bytes, wanted->bytes);
	if (!same_id(&h->id, &m->id))
		wrong = "it was written by another save, or for another job";
	else if (h->part != part || h->parts != m->parts || h->first != wanted->first ||
		 h->count != wanted->count)
		wrong = "it is another part";
	else if (h->header_crc != wanted->header_crc)
		wrong = "its header has another checksum";
	else if (groups_of(h, m) != m->groups)
		wrong = "it lacks a vector";
	if (wrong == NULL)
		return 0;
	return mst_reason_fail(why, -EBADMSG, "%s is not what its manifest says: %s", f->path,
			       wrong);
}
