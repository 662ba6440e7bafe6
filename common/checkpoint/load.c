/* SPDX-License-Identifier: MIT */
#include "common/checkpoint/load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/crc32c.h"
#include "common/checkpoint/part.h"
#include "common/checkpoint/part_file.h"

/* What is read of a checkpoint. */
struct loader {
	const char *dir;
	const struct mst_checkpoint_manifest *m;
	const struct mst_checkpoint_loading *what; /* NULL: everything, to be compared only */
	uint8_t *block;                            /* [block_bytes] */
	size_t block_bytes;
	struct mst_reason *why;
};

/* Copies what the caller wants of a block. @first: its first element; whole elements. */
static void copy(const struct mst_checkpoint_loading *what, uint64_t first, const uint8_t *block,
		 size_t bytes)
{
	size_t size = mst_dtype_bytes(what->type);
	uint64_t end = first + bytes / size, wanted_end = what->first + what->count;
	uint64_t from = first > what->first ? first : what->first;
	uint64_t to = end < wanted_end ? end : wanted_end;

	if (from < to)
		memcpy((uint8_t *)what->into + (from - what->first) * size,
		       block + (from - first) * size, (to - from) * size);
}

/* Reads a tensor to its end. */
static int load_tensor(const struct loader *l, const struct mst_part_file *f,
		       const struct mst_tensor_entry *t)
{
	size_t size = mst_dtype_bytes(t->type);
	uint32_t crc = 0;

	for (uint64_t at = t->begin; at < t->end;) {
		uint64_t left = t->end - at;
		size_t bytes = left < l->block_bytes ? (size_t)left : l->block_bytes;
		int rc = mst_part_file_read(f, f->header.data + at, l->block, bytes, l->why);
		if (rc != 0)
			return rc;
		crc = mst_crc32c(crc, l->block, bytes);
		if (l->what != NULL)
			copy(l->what, t->first + (at - t->begin) / size, l->block, bytes);
		at += bytes;
	}
	if (crc == t->crc)
		return 0;
	return mst_reason_fail(l->why, -EBADMSG,
			       "%s is damaged: the data of tensor \"%.80s\" have the checksum "
			       "%08" PRIx32 ", and were written with %08" PRIx32,
			       f->path, t->name, crc, t->crc);
}

static bool is_wanted(const struct mst_checkpoint_loading *what, const struct mst_tensor_entry *t)
{
	return what == NULL ||
	       (strcmp(what->group, t->group) == 0 && t->first < what->first + what->count &&
		what->first < t->first + t->count);
}

static int load_part(const struct loader *l, uint32_t part)
{
	struct mst_part_file f;
	int rc = mst_part_file_open(l->dir, l->m->part[part].file, &f, l->why);

	if (rc != 0)
		return rc;
	rc = mst_part_file_belongs(&f, l->m, part, l->why);
	for (uint32_t i = 0; i < f.header.tensors && rc == 0; i++)
		if (is_wanted(l->what, &f.header.tensor[i]))
			rc = load_tensor(l, &f, &f.header.tensor[i]);
	mst_part_file_close(&f);
	return rc;
}

static bool overlaps(const struct mst_checkpoint_loading *what, const struct mst_checkpoint_part *p)
{
	return what == NULL ||
	       (p->first < what->first + what->count && what->first < p->first + p->count);
}

/* Bytes of a block: whole elements of every type, and no more than the longest tensor can fill, so
 * that a small checkpoint takes little memory. A vector has an element or more. */
static size_t block_for(uint64_t elems)
{
	size_t most = MST_CHECKPOINT_BLOCK / sizeof(uint64_t);

	return (elems < most ? (size_t)elems : most) * sizeof(uint64_t);
}

static int load(struct loader *l)
{
	int rc = 0;

	l->block_bytes = block_for(l->m->id.elems);
	l->block = malloc(l->block_bytes);
	if (l->block == NULL)
		return mst_reason_fail(l->why, -ENOMEM, "no memory to read a checkpoint");
	for (uint32_t i = 0; i < l->m->parts && rc == 0; i++)
		if (overlaps(l->what, &l->m->part[i]))
			rc = load_part(l, i);
	free(l->block);
	return rc;
}

/* ---- from the outside ---- */

const struct mst_checkpoint_group *mst_checkpoint_group(const struct mst_checkpoint_manifest *m,
							const char *name)
{
	for (uint32_t i = 0; i < m->groups; i++)
		if (strcmp(m->group[i].name, name) == 0)
			return &m->group[i];
	return NULL;
}

static int check(const char *dir, const struct mst_checkpoint_manifest *m,
		 const struct mst_checkpoint_loading *what, struct mst_reason *why)
{
	const struct mst_checkpoint_group *group = mst_checkpoint_group(m, what->group);

	if (group == NULL)
		return mst_reason_fail(why, -ENOENT,
				       "the checkpoint of version %" PRIu64 " in %s has no vector "
				       "\"%.60s\"",
				       m->id.version, dir, what->group);
	if (group->type != what->type)
		return mst_reason_fail(why, -EINVAL,
				       "the vector %s of version %" PRIu64 " in %s is %s, and "
				       "%s was asked for",
				       group->name, m->id.version, dir, mst_dtype_name(group->type),
				       mst_dtype_name(what->type));
	if (what->first > m->id.elems || what->count > m->id.elems - what->first)
		return mst_reason_fail(why, -EINVAL,
				       "the vector of version %" PRIu64 " in %s has %" PRIu64
				       " elements, and %" PRIu64 " from %" PRIu64
				       " on were asked for",
				       m->id.version, dir, m->id.elems, what->count, what->first);
	return 0;
}

int mst_checkpoint_load(const char *dir, const struct mst_checkpoint_manifest *m,
			const struct mst_checkpoint_loading *what, struct mst_reason *why)
{
	struct loader l = { .dir = dir, .m = m, .what = what, .why = why };
	int rc = check(dir, m, what, why);

	return rc == 0 ? load(&l) : rc;
}

int mst_checkpoint_verify(const char *dir, const struct mst_checkpoint_manifest *m,
			  struct mst_reason *why)
{
	struct loader l = { .dir = dir, .m = m, .why = why };

	return load(&l);
}
