/* SPDX-License-Identifier: MIT */
#include "tools/passthrough.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "server/options/options.h"

static bool is_own(const struct mst_passthrough *p, const char *name)
{
	for (const struct mst_option *row = p->own; row->name != NULL; row++)
		if (strcmp(row->name, name) == 0)
			return true;
	return false;
}

static bool is_offered(const struct mst_passthrough *p, const char *name)
{
	for (unsigned i = 0; p->without != NULL && p->without[i] != NULL; i++)
		if (strcmp(p->without[i], name) == 0)
			return false;
	return !is_own(p, name);
}

const struct mst_option *mst_passthrough_table(struct mst_passthrough *p)
{
	unsigned count = 0;

	if (p->own_count > 0)
		return p->table;
	for (; p->own[count].name != NULL; count++)
		p->table[count] = p->own[count];
	p->own_count = count;
	for (const struct mst_option *row = mst_server_table; row->name != NULL; row++) {
		if (!is_offered(p, row->name))
			continue;
		MST_ASSERT(count + 1 < MST_PASSTHROUGH_ROWS); /* the last row has no name */
		p->table[count] = *row;
		p->table[count++].offset += p->server_offset;
	}
	return p->table;
}

void mst_passthrough_help(struct mst_passthrough *p, const char *receiver)
{
	mst_options_help(p->own, stdout);
	(void)printf("\nOptions of the server, passed on to %s:\n", receiver);
	mst_options_help(mst_passthrough_table(p) + p->own_count, stdout);
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

int mst_passthrough_collect(struct mst_passthrough *p, char **argv, int end, char ***out)
{
	char **next = calloc((size_t)end + 1, sizeof(next[0]));

	if (next == NULL)
		return -ENOMEM;
	*out = next;
	for (int i = 1; i < end && strcmp(argv[i], "--") != 0; i++) {
		const struct mst_option *row = row_of(mst_passthrough_table(p), argv[i]);
		int last = i + value_follows(row, argv[i]);

		if (is_own(p, row->name)) {
			i = last;
			continue;
		}
		*next++ = argv[i];
		if (last > i)
			*next++ = argv[++i];
	}
	return 0;
}
