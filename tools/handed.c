/* SPDX-License-Identifier: MIT */
#include "tools/handed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "server/options.h"

static bool is_own(const struct mst_handed *h, const char *name)
{
	for (const struct mst_option *row = h->own; row->name != NULL; row++)
		if (strcmp(row->name, name) == 0)
			return true;
	return false;
}

static bool is_offered(const struct mst_handed *h, const char *name)
{
	for (unsigned i = 0; h->without != NULL && h->without[i] != NULL; i++)
		if (strcmp(h->without[i], name) == 0)
			return false;
	return !is_own(h, name);
}

unsigned mst_handed_compose(const struct mst_handed *h, struct mst_option *table)
{
	unsigned own = 0;

	for (; h->own[own].name != NULL; own++)
		table[own] = h->own[own];
	unsigned count = own;
	for (const struct mst_option *row = mst_server_table; row->name != NULL; row++) {
		if (!is_offered(h, row->name))
			continue;
		MST_ASSERT(count + 1 < MST_HANDED_ROWS);
		table[count] = *row;
		table[count].offset += h->server_offset;
		count++;
	}
	table[count] = (struct mst_option){ .name = NULL };
	return own;
}

/* The row that a flag names; it has been parsed before, so that there is one. */
static const struct mst_option *row_of(const struct mst_option *row, const char *flag)
{
	size_t len = strcspn(flag + 2, "=");

	for (; row->name != NULL; row++) {
		if (flag[1] != '-' && flag[1] == row->letter)
			break;
		if (flag[1] == '-' && strncmp(flag + 2, row->name, len) == 0 &&
		    row->name[len] == '\0')
			break;
	}
	MST_ASSERT(row->name != NULL);
	return row;
}

/* Does the value stand in the next argument? */
static bool value_follows(const struct mst_option *row, const char *flag)
{
	bool joined = flag[1] == '-' ? strchr(flag, '=') != NULL : flag[2] != '\0';

	return row->kind != MST_OPTION_FLAG && !joined;
}

int mst_handed_collect(const struct mst_handed *h, const struct mst_option *table, char **argv,
		       int end, char ***out)
{
	char **next = calloc((size_t)end + 1, sizeof(next[0]));

	if (next == NULL)
		return -ENOMEM;
	*out = next;
	for (int i = 1; i < end && strcmp(argv[i], "--") != 0; i++) {
		const struct mst_option *row = row_of(table, argv[i]);
		int last = i + value_follows(row, argv[i]);

		if (is_own(h, row->name)) {
			i = last;
			continue;
		}
		*next++ = argv[i];
		if (last > i)
			*next++ = argv[++i];
	}
	return 0;
}
