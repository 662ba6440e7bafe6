/* SPDX-License-Identifier: MIT */
#include "common/checkpoint/listing.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY_FIRST 64u

struct listing {
	struct mst_checkpoint_file *file;
	uint32_t count, capacity;
};

static int by_version(const void *a, const void *b)
{
	const struct mst_checkpoint_file *x = a, *y = b;

	if (x->version != y->version)
		return x->version > y->version ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int add(struct listing *l, const char *name)
{
	struct mst_checkpoint_file file;
	size_t size = strlen(name) + 1;

	if (size > sizeof(file.name) || !mst_checkpoint_name_parse(name, &file.kind, &file.version))
		return 0;
	if (l->count == l->capacity) {
		uint32_t capacity = l->capacity > 0 ? 2 * l->capacity : CAPACITY_FIRST;
		struct mst_checkpoint_file *more = realloc(l->file, capacity * sizeof(*more));
		if (more == NULL)
			return -ENOMEM;
		l->file = more;
		l->capacity = capacity;
	}
	memcpy(file.name, name, size);
	l->file[l->count++] = file;
	return 0;
}

static int read_names(DIR *d, struct listing *l)
{
	const struct dirent *entry;
	int rc = 0;

	do {
		errno = 0;
		entry = readdir(d);
		if (entry != NULL)
			rc = add(l, entry->d_name);
		else
			rc = -errno;
	} while (entry != NULL && rc == 0);
	return rc;
}

int mst_checkpoint_list(const char *dir, struct mst_checkpoint_file **out, uint32_t *count,
			struct mst_reason *why)
{
	struct listing l = { 0 };
	DIR *d = opendir(dir);
	int rc = d != NULL ? read_names(d, &l) : -errno;

	if (d != NULL)
		(void)closedir(d);
	if (rc != 0) {
		free(l.file);
		return mst_reason_fail(why, rc,
				       rc == -ENOMEM   ? "no memory to list the directory %s%s"
				       : rc == -ENOENT ? "there is no directory %s%s"
						       : "cannot list the directory %s: %s",
				       dir, rc == -ENOMEM || rc == -ENOENT ? "" : strerror(-rc));
	}
	if (l.count > 0)
		qsort(l.file, l.count, sizeof(*l.file), by_version);
	*out = l.file;
	*count = l.count;
	return 0;
}
