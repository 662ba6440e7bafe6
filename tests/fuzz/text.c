/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/assert.h"

void fuzz_text_write(struct fuzz_text *t, const void *data, size_t size)
{
	MST_ASSERT(ftruncate(t->fd, 0) == 0);
	MST_ASSERT(pwrite(t->fd, data, size, 0) == (ssize_t)size);
}

bool fuzz_text_is_empty(const struct fuzz_text *t)
{
	struct stat status;

	MST_ASSERT(fstat(t->fd, &status) == 0);
	return status.st_size == 0;
}

/* Cuts t->lines at its line ends. Return: bytes up to the file. */
static size_t lines_cut(struct fuzz_text *t)
{
	char *at = t->lines;

	while (*at != '\0' && *at != '\n' && t->line_count < FUZZ_LINES_MAX) {
		size_t len = strcspn(at, "\n");
		t->line[t->line_count++] = at;
		if (at[len] == '\0')
			return (size_t)(at - t->lines) + len;
		at[len] = '\0';
		at += len + 1;
	}
	return (size_t)(at - t->lines) + (*at == '\n');
}

void fuzz_text_init(struct fuzz_text *t, const uint8_t *data, size_t size)
{
	*t = (struct fuzz_text){ .lines = malloc(size + 1),
				 .fd = memfd_create("input", MFD_CLOEXEC) };
	MST_ASSERT(t->lines != NULL && t->fd >= 0);
	if (size > 0)
		memcpy(t->lines, data, size);
	t->lines[size] = '\0';
	snprintf(t->path, sizeof(t->path), "/proc/self/fd/%d", t->fd);
	size_t head = lines_cut(t);
	fuzz_text_write(t, data + head, size - head);
}

void fuzz_text_fini(struct fuzz_text *t)
{
	close(t->fd);
	free(t->lines);
}
