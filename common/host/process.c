/* SPDX-License-Identifier: MIT */
#include "common/host/process.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Reads a number without a sign, after blanks. */
static bool read_number(const char *at, int base, uint64_t *out)
{
	char *end;

	at += strspn(at, " \t");
	if (!isxdigit((unsigned char)*at))
		return false;
	errno = 0;
	unsigned long long value = strtoull(at, &end, base);
	*out = value;
	return end != at && errno == 0;
}

/* The rest of the line that begins with @key; NULL: there is none. The first line is not searched:
 * it has the process's name, and in that a line feed is written as \n. */
static const char *line_of(const char *text, const char *key)
{
	for (const char *at = strchr(text, '\n'); at != NULL; at = strchr(at + 1, '\n'))
		if (strncmp(at + 1, key, strlen(key)) == 0)
			return at + 1 + strlen(key);
	return NULL;
}

static bool read_field(const char *status, const char *key, int base, uint64_t *out)
{
	const char *at = line_of(status, key);

	return at != NULL && read_number(at, base, out);
}

bool mst_process_read(const char *status, struct mst_process *out)
{
	struct mst_process p;
	uint64_t pinned;

	if (!read_field(status, "Uid:", 10, &p.uid) ||
	    !read_field(status, "Threads:", 10, &p.threads) ||
	    !read_field(status, "CapEff:", 16, &p.capabilities))
		return false;
	p.pinned_bytes = read_field(status, "VmPin:", 10, &pinned) ? 1024 * pinned : 0; /* kB */
	*out = p;
	return true;
}

uint64_t mst_process_limit(const char *limits, const char *name)
{
	const char *at = line_of(limits, name);
	uint64_t value;

	return at != NULL && read_number(at, 10, &value) ? value : MST_PROCESS_UNLIMITED;
}

uint64_t mst_process_all(const char *loadavg)
{
	const char *at = strchr(loadavg, '/');
	uint64_t value;

	return at != NULL && read_number(at + 1, 10, &value) ? value : MST_PROCESS_UNLIMITED;
}
