/* SPDX-License-Identifier: MIT */
#include "tools/run_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"

#define ROWS_MAX 128u

static const struct mst_option own_table[] = {
	{ .name = "workers",
	  .letter = 'n',
	  .kind = MST_OPTION_U32,
	  .offset = offsetof(struct mst_run_options, server.workers),
	  .min = 1,
	  .max = 4096,
	  .value = "W",
	  .help = "workers to start, and as many the server waits for" },
	{ .name = "listen",
	  .kind = MST_OPTION_STRING,
	  .offset = offsetof(struct mst_run_options, server.listen),
	  .fallback = MST_RUN_LISTEN,
	  .value = "HOST:PORT",
	  .help = "control address of the server; if the default is taken another free port is" },
	{ .name = "json",
	  .kind = MST_OPTION_STRING,
	  .offset = offsetof(struct mst_run_options, json),
	  .value = "FILE",
	  .help = "write the summary's figures there as JSON; - is standard output, and what the "
		  "workers print there then goes to standard error" },
	{ .name = "grace",
	  .kind = MST_OPTION_DURATION,
	  .offset = offsetof(struct mst_run_options, grace_ns),
	  .fallback = "10s",
	  .help = "how long workers may take to exit at the end before they are made to" },
	{ .name = "quiet",
	  .letter = 'q',
	  .kind = MST_OPTION_FLAG,
	  .offset = offsetof(struct mst_run_options, quiet),
	  .typed_only = true,
	  .help = "no progress and no summary; warnings and errors only" },
	{ .name = "help",
	  .letter = 'h',
	  .kind = MST_OPTION_FLAG,
	  .offset = offsetof(struct mst_run_options, help),
	  .typed_only = true,
	  .help = "print this and exit" },
	{ .name = NULL },
};

/* Own rows, then those of the server whose names are not among them. Made once; tools have one
 * thread. */
static struct mst_option table[ROWS_MAX];
static unsigned own_count;

static bool is_own(const char *name)
{
	for (const struct mst_option *row = own_table; row->name != NULL; row++)
		if (strcmp(row->name, name) == 0)
			return true;
	return false;
}

static void compose_table(void)
{
	unsigned count = 0;

	while (own_table[count].name != NULL) {
		table[count] = own_table[count];
		count++;
	}
	own_count = count;
	for (const struct mst_option *row = mst_server_table; row->name != NULL; row++) {
		if (is_own(row->name))
			continue;
		MST_ASSERT(count + 1 < ROWS_MAX);
		table[count] = *row;
		table[count].offset += offsetof(struct mst_run_options, server);
		count++;
	}
}

const struct mst_option *mst_run_table(void)
{
	if (table[0].name == NULL)
		compose_table();
	return table;
}

const struct mst_option *mst_run_own_table(void)
{
	return own_table;
}

const struct mst_option *mst_run_server_table(void)
{
	return mst_run_table() + own_count;
}

/* The row that a flag names; it has been parsed before, so that there is one. */
static const struct mst_option *row_of(const char *flag)
{
	const struct mst_option *row = mst_run_table();
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

/* Copies those of argv[1..@end) that are the server's. */
static int collect_flags(struct mst_run_line *line, char **argv, int end)
{
	char **out = line->flags = calloc((size_t)end + 1, sizeof(out[0]));

	if (out == NULL)
		return -ENOMEM;
	for (int i = 1; i < end && strcmp(argv[i], "--") != 0; i++) {
		const struct mst_option *row = row_of(argv[i]);
		int last = i + value_follows(row, argv[i]);

		if (is_own(row->name)) {
			i = last;
			continue;
		}
		*out++ = argv[i];
		if (last > i)
			*out++ = argv[++i];
	}
	return 0;
}

/* Reads -c FILE as musterd will, and argv over it once more: flags win. */
static int read_file(struct mst_run_line *line, int argc, char **argv)
{
	int operand;
	int rc = mst_options_init(&line->file, mst_server_table, &line->from_file);

	if (rc == 0)
		rc = mst_options_file(&line->file, line->options.server.config);
	if (rc < 0)
		return rc;
	line->options.server = line->from_file;
	return mst_options_argv(&line->parsed, argc, argv, &operand);
}

static int explain(int rc, const char *sentence, char *why, size_t why_len)
{
	if (rc < 0)
		(void)snprintf(why, why_len, "%s", rc == -ENOMEM ? "no memory" : sentence);
	return rc;
}

int mst_run_line_init(struct mst_run_line *line, int argc, char **argv, char *why, size_t why_len)
{
	int operand = argc;

	*line = (struct mst_run_line){ .program = &argv[argc] };
	int rc = mst_options_init(&line->parsed, mst_run_table(), &line->options);
	if (rc == 0)
		rc = mst_options_argv(&line->parsed, argc, argv, &operand);
	if (rc < 0)
		return explain(rc, line->parsed.why, why, why_len);
	line->program = &argv[operand];
	if (line->options.server.config != NULL) {
		rc = read_file(line, argc, argv);
		if (rc < 0)
			return explain(rc, line->file.why, why, why_len);
	}
	return explain(collect_flags(line, argv, operand), "", why, why_len);
}

void mst_run_line_fini(struct mst_run_line *line)
{
	free(line->flags);
	mst_options_free(&line->parsed);
	mst_options_free(&line->file);
}

bool mst_run_prints_json(const struct mst_run_options *options)
{
	return options->json != NULL && strcmp(options->json, "-") == 0;
}
