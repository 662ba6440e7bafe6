/* SPDX-License-Identifier: MIT */
#include "common/host/file.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define BYTES_FIRST ((size_t)4 << 10)
#define BYTES_MAX ((size_t)8 << 20) /* a mountinfo of tens of thousands of lines */

/* The rest of @f, with a NUL after it. */
static char *read_all(FILE *f)
{
	size_t room = BYTES_FIRST, used = 0;
	char *text = malloc(room);

	while (text != NULL) {
		used += fread(text + used, 1, room - used - 1, f);
		if (used < room - 1)
			break;
		char *more = room < BYTES_MAX ? realloc(text, 2 * room) : NULL;
		if (more == NULL)
			goto err_free;
		text = more;
		room *= 2;
	}
	if (text == NULL || ferror(f))
		goto err_free;
	text[used] = '\0';
	return text;

err_free:
	free(text);
	return NULL;
}

char *mst_host_file(const char *fmt, ...)
{
	char path[MST_HOST_PATH];
	va_list args;

	va_start(args, fmt);
	int len = vsnprintf(path, sizeof(path), fmt, args);
	va_end(args);
	FILE *f = len > 0 && (size_t)len < sizeof(path) ? fopen(path, "re") : NULL;
	if (f == NULL)
		return NULL;
	char *text = read_all(f);
	(void)fclose(f);
	return text;
}

bool mst_host_figure(const char *root, const struct mst_cgroup *c, const char *file, uint64_t *out)
{
	char *text = mst_host_file("%s%s%s/%s", root, c->mount, c->group, file);
	bool got = text != NULL && mst_cgroup_number(text, out);

	free(text);
	return got;
}
