/* SPDX-License-Identifier: MIT */
#include "tools/doctor/file.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE 1024

/* A path too long to be one names no file. */
static const char *path_of(char *path, const char *fmt, va_list args)
{
	int len = vsnprintf(path, MST_FILE_PATH, fmt, args);

	return len >= 0 && (unsigned)len < MST_FILE_PATH ? path : "";
}

static bool first_line(char *out, size_t len, const char *path)
{
	FILE *f = fopen(path, "re");
	bool got = f != NULL && fgets(out, (int)len, f) != NULL;

	if (f != NULL)
		(void)fclose(f);
	if (got)
		out[strcspn(out, "\n")] = '\0';
	else
		out[0] = '\0';
	return got;
}

bool mst_file_line(char *out, size_t len, const char *fmt, ...)
{
	char path[MST_FILE_PATH];
	va_list args;

	va_start(args, fmt);
	bool got = first_line(out, len, path_of(path, fmt, args));
	va_end(args);
	return got;
}

uint64_t mst_file_number(const char *fmt, ...)
{
	char path[MST_FILE_PATH], line[LINE];
	va_list args;

	va_start(args, fmt);
	(void)first_line(line, sizeof(line), path_of(path, fmt, args));
	va_end(args);
	return strtoull(line, NULL, 0);
}

bool mst_file_exists(const char *fmt, ...)
{
	char path[MST_FILE_PATH];
	va_list args;

	va_start(args, fmt);
	bool exists = access(path_of(path, fmt, args), F_OK) == 0;
	va_end(args);
	return exists;
}

bool mst_file_holds(const char *path, const char *word, char *line, size_t len)
{
	FILE *f = fopen(path, "re");
	char text[LINE];
	bool found = false;

	if (f == NULL)
		return false;
	while (!found && fgets(text, sizeof(text), f) != NULL)
		found = text[0] != '#' && strstr(text, word) != NULL;
	(void)fclose(f);
	if (found && line != NULL) {
		text[strcspn(text, "\n")] = '\0';
		(void)snprintf(line, len, "%s", text);
	}
	return found;
}

static int is_plain(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

uint32_t mst_file_names(struct mst_file_names *out, const char *fmt, ...)
{
	char path[MST_FILE_PATH];
	va_list args;

	va_start(args, fmt);
	int count = scandir(path_of(path, fmt, args), &out->entry, is_plain, alphasort);
	va_end(args);
	if (count < 0)
		out->entry = NULL;
	out->count = count < 0 ? 0 : (uint32_t)count;
	return out->count;
}

void mst_file_names_free(struct mst_file_names *n)
{
	for (uint32_t i = 0; i < n->count; i++)
		free(n->entry[i]);
	free(n->entry);
}
