/* SPDX-License-Identifier: MIT */
#include "tools/run/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/passthrough.h"

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

/* The run starts the followers itself, and it is a run. */
/* All of such a job is on this host and of this user, whose own streams are plain. */
static const char *const without[] = { "join",     "budget",  "user", "tls-ca",
				       "tls-cert", "tls-key", NULL };

static const struct mst_passthrough passthrough = {
	.own = own_table,
	.without = without,
	.server_offset = offsetof(struct mst_run_options, server),
};

/* Made once; tools have one thread. */
static struct mst_option table[MST_PASSTHROUGH_ROWS];
static unsigned own_count;

const struct mst_option *mst_run_table(void)
{
	if (table[0].name == NULL)
		own_count = mst_passthrough_compose(&passthrough, table);
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

static int explain(int rc, const char *reason, char *why, size_t why_len)
{
	if (rc < 0)
		(void)snprintf(why, why_len, "%s", rc == -ENOMEM ? "no memory" : reason);
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
	rc = mst_passthrough_collect(&passthrough, mst_run_table(), argv, operand, &line->flags);
	return explain(rc, "", why, why_len);
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
