/* SPDX-License-Identifier: MIT */
#include "server/recording_tail.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longer than a header, a remark, and any row. */
#define LINE_BYTES 256u

/* Return: is the next line of @f whole, and of these words and perhaps more? */
static bool next_begins(FILE *f, const char *words)
{
	char line[LINE_BYTES];

	return fgets(line, sizeof(line), f) != NULL && strchr(line, '\n') != NULL &&
	       strncmp(line, words, strlen(words)) == 0;
}

static bool is_of_run(FILE *f, const char *header, const struct mst_recorded_generation *now)
{
	char line[LINE_BYTES], run[MST_RUN_LEN];
	uint64_t first;

	(void)snprintf(line, sizeof(line), "%s\n", header);
	if (!next_begins(f, line) || fgets(line, sizeof(line), f) == NULL)
		return false;
	return sscanf(line, "# generation %" SCNu64 " of run %16s", &first, run) == 2 &&
	       first < now->number && strcmp(run, now->run) == 0;
}

/* Return: the length of the file up to its last whole line; 0: it cannot be read. */
static uint64_t whole_bytes(FILE *f)
{
	char last[LINE_BYTES];
	long length, from;

	if (fseek(f, 0, SEEK_END) != 0 || (length = ftell(f)) < 0)
		return 0;
	from = length > (long)sizeof(last) ? length - (long)sizeof(last) : 0;
	if (fseek(f, from, SEEK_SET) != 0)
		return 0;
	size_t got = fread(last, 1, sizeof(last), f);
	while (got > 0 && last[got - 1] != '\n')
		got--;
	return got > 0 ? (uint64_t)from + got : 0;
}

bool mst_recording_tail_find(const char *path, const char *header,
			     const struct mst_recorded_generation *now, uint64_t *end)
{
	FILE *f = fopen(path, "re");

	*end = f != NULL && is_of_run(f, header, now) ? whole_bytes(f) : 0;
	if (f != NULL)
		(void)fclose(f);
	return *end > 0;
}
