/* SPDX-License-Identifier: MIT */
/*
 * Nothing in the file is believed before it has been seen: memory grows with the bytes that are
 * really there, so a header that lies costs no more than the file is long.
 */
#include "common/digits/idx.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define FIRST_READ ((uint64_t)64 * 1024)
#define HEADER_BYTES_MAX 16u

/* What the two kinds look like on disk. */
static const struct form {
	const char *noun;
	uint32_t magic; /* 0, 0, type 8 (unsigned bytes), number of dimensions */
	uint32_t header_bytes;
} forms[] = {
	[MST_IDX_LABELS] = { "labels", 0x801, 8 },
	[MST_IDX_IMAGES] = { "images", 0x803, 16 },
};

struct reader {
	gzFile file;
	const char *path;
	struct mst_reason *why;
};

__attribute__((format(printf, 3, 4))) static int fail(struct reader *r, int rc, const char *fmt,
						      ...)
{
	va_list args;

	mst_reason_set(r->why, "%s: ", r->path);
	va_start(args, fmt);
	mst_reason_vadd(r->why, fmt, args);
	va_end(args);
	return rc;
}

/* zlib reports its own failures and the system's through one call. */
static int fail_read(struct reader *r)
{
	int saved = errno;
	int code;
	const char *text = gzerror(r->file, &code);

	if (code == Z_ERRNO)
		return fail(r, saved ? -saved : -EIO, "cannot be read: %s", strerror(saved));
	if (code == Z_MEM_ERROR)
		return fail(r, -ENOMEM, "no memory to read it");
	return fail(r, -EINVAL, "the gzip data are damaged or cut short (zlib: %s)", text);
}

/* Reads up to @len bytes (below 2 GiB). Return: how many it read, or a negative errno. */
static int64_t read_some(struct reader *r, uint8_t *to, uint64_t len)
{
	errno = 0;
	int n = gzread(r->file, to, (unsigned)len);
	int code = Z_OK;

	if (n < 0)
		return fail_read(r);
	if ((uint64_t)n < len)
		gzerror(r->file, &code);
	/* If a gzip stream is cut, gzread() returns what there is, and gzerror() tells of the
	 * cut. */
	if (code == Z_BUF_ERROR)
		return fail_read(r);
	return n;
}

static uint32_t big_endian(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int read_header(struct reader *r, const struct form *form, struct mst_idx *idx)
{
	uint8_t header[HEADER_BYTES_MAX];
	int64_t got = read_some(r, header, form->header_bytes);

	if (got < 0)
		return (int)got;
	if (got < form->header_bytes)
		return fail(r, -EINVAL,
			    "ends after %" PRId64 " bytes; the header of an IDX file of %s has %u",
			    got, form->noun, form->header_bytes);
	if (big_endian(header) != form->magic)
		return fail(r, -EINVAL, "begins with 0x%08x; an IDX file of %s with 0x%08x",
			    big_endian(header), form->noun, form->magic);
	idx->count = big_endian(header + 4);
	idx->rows = form->header_bytes > 8 ? big_endian(header + 8) : 1;
	idx->columns = form->header_bytes > 8 ? big_endian(header + 12) : 1;
	return 0;
}

/* The length the header announces, or 0 where it is nothing that could be held. */
static uint64_t announced_bytes(const struct mst_idx *idx)
{
	uint64_t item_bytes = (uint64_t)idx->rows * idx->columns;

	if (item_bytes == 0 || item_bytes > MST_IDX_BYTES_MAX || idx->count == 0)
		return 0;
	return item_bytes * idx->count <= MST_IDX_BYTES_MAX ? item_bytes * idx->count : 0;
}

static int check_extent(struct reader *r, const struct form *form, const struct mst_idx *idx)
{
	if (announced_bytes(idx) > 0)
		return 0;
	bool empty = idx->count == 0 || idx->rows == 0 || idx->columns == 0;
	return fail(r, empty ? -EINVAL : -EFBIG,
		    "its header announces %" PRIu32 " %s of %" PRIu32 " x %" PRIu32 " bytes; %s",
		    idx->count, form->noun, idx->rows, idx->columns,
		    empty ? "there must be at least one byte" : "at most 1 GiB is read");
}

static int read_body(struct reader *r, struct mst_idx *idx)
{
	uint64_t total = announced_bytes(idx);
	uint64_t have = 0;

	while (have < total) {
		uint64_t room = have ? 2 * have : FIRST_READ;
		if (room > total)
			room = total;
		uint8_t *bytes = realloc(idx->bytes, room);
		if (bytes == NULL)
			return fail(r, -ENOMEM, "no memory for its %" PRIu64 " bytes", total);
		idx->bytes = bytes;
		int64_t got = read_some(r, bytes + have, room - have);
		if (got < 0)
			return (int)got;
		have += (uint64_t)got;
		if (have < room)
			return fail(r, -EINVAL,
				    "ends after %" PRIu64 " of the %" PRIu64
				    " bytes its header announces",
				    have, total);
	}
	return 0;
}

/* The read past the end is also what makes zlib compare its checksum. */
static int check_end(struct reader *r, const struct mst_idx *idx)
{
	uint8_t byte;
	int64_t got = read_some(r, &byte, 1);

	if (got > 0)
		return fail(r, -EINVAL, "goes on after the %" PRIu64 " bytes its header announces",
			    announced_bytes(idx));
	return (int)got;
}

int mst_idx_init(const char *path, enum mst_idx_kind kind, struct mst_idx *out,
		 struct mst_reason *why)
{
	struct reader r = { .path = path, .why = why };
	struct mst_idx idx = { 0 };

	errno = 0;
	r.file = gzopen(path, "rb");
	if (r.file == NULL) {
		int saved = errno ? errno : ENOMEM;
		return fail(&r, -saved, "cannot be opened: %s", strerror(saved));
	}
	int rc = read_header(&r, &forms[kind], &idx);
	if (rc == 0)
		rc = check_extent(&r, &forms[kind], &idx);
	if (rc == 0)
		rc = read_body(&r, &idx);
	if (rc == 0)
		rc = check_end(&r, &idx);
	gzclose(r.file);
	if (rc)
		mst_idx_fini(&idx);
	else
		*out = idx;
	return rc;
}

void mst_idx_fini(struct mst_idx *idx)
{
	free(idx->bytes);
	idx->bytes = NULL;
}
