/* SPDX-License-Identifier: MIT */
#include "tools/run/options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/config/shared_rows.h"
#include "server/options/paths.h"

/* How long workers wait for a server, where muster run starts one again and what it needs is kept;
 * and what the field has before anybody has given a value. */
#define SERVER_PATIENCE_NS (600 * MST_SECOND)
#define NOT_GIVEN UINT64_MAX

#define FIELD(name) .offset = offsetof(struct mst_run_options, name)

static const struct mst_option own_table[] = {
	MST_WORKERS_ROW(FIELD(server.workers), 4096,
			"workers to start, and as many the server waits for"),
	{ .name = "listen",
	  .kind = MST_OPTION_STRING,
	  FIELD(server.listen),
	  .fallback = MST_RUN_LISTEN,
	  .value = "HOST:PORT",
	  .help = "control address of the server; if the default is taken another free port is, "
		  "which a warning names" },
	MST_FILE_ROW("json", FIELD(json),
		     "write the summary's figures there as JSON; - is standard output, and what "
		     "the workers print there then goes to standard error"),
	{ .name = "grace",
	  .kind = MST_OPTION_DURATION,
	  FIELD(grace_ns),
	  .fallback = "auto",
	  .min = 1e6,
	  .max = INFINITY,
	  .automatic = "auto",
	  .help = "how long workers may take to exit at the end before they are made to; auto is "
		  "10min after a job that has ended well, for a last evaluation or save, and 10s "
		  "after any other" },
	{ .name = "restarts",
	  .kind = MST_OPTION_U32,
	  FIELD(restarts),
	  .fallback = "0",
	  .max = 1e6,
	  .value = "N",
	  .help = "start a rank again, N times at most, when a signal has ended its process while "
		  "the job goes on" },
	MST_QUIET_ROW(FIELD(quiet), "no progress and no summary; warnings and errors only"),
	MST_HELP_ROW(FIELD(help)),
	{ .name = NULL },
};

/* The run starts the followers itself, and it is a run. */
/* All of such a job is on this host and of this user, whose own streams are plain. */
static const char *const without[] = { "join",     "budget",  "user", "tls-ca",
				       "tls-cert", "tls-key", NULL };

struct mst_passthrough mst_run_passthrough = {
	.own = own_table,
	.without = without,
	.server_offset = offsetof(struct mst_run_options, server),
};

/* Reads -c FILE as musterd will, and argv over it once more: flags win. */
static int read_file(struct mst_run_line *line, int argc, char **argv)
{
	int operand;
	int rc = mst_options_init(&line->file, mst_server_table, &line->from_file);

	line->from_file.server_patience_ns = NOT_GIVEN;
	if (rc == 0)
		rc = mst_options_file(&line->file, line->options.server.config);
	if (rc < 0)
		return rc;
	line->options.server = line->from_file;
	return mst_options_argv(&line->parsed, argc, argv, &operand);
}

static int explain(int rc, const char *reason, struct mst_reason *why)
{
	if (rc < 0)
		mst_reason_set(why, "%s", rc == -ENOMEM ? "no memory" : reason);
	return rc;
}

/* A server that is started again has nothing where servers own and nothing is saved. One that would
 * go back to another checkpoint than the newest of --state is refused. */
static void choose_server_patience(struct mst_run_options *o)
{
	struct mst_server_options *server = &o->server;
	bool elsewhere = server->resume != NULL && mst_server_options_saves(server) &&
			 !mst_server_paths_same(server->resume, server->state);
	bool kept = server->owner == MUSTER_WORKERS_OWN ||
		    (mst_server_options_saves(server) && !elsewhere);

	o->chose_patience = server->server_patience_ns == NOT_GIVEN;
	if (o->chose_patience)
		server->server_patience_ns = kept ? SERVER_PATIENCE_NS : 0;
}

int mst_run_line_init(struct mst_run_line *line, int argc, char **argv, struct mst_reason *why)
{
	int operand = argc;

	*line = (struct mst_run_line){ .program = &argv[argc] };
	int rc = mst_options_init(&line->parsed, mst_passthrough_table(&mst_run_passthrough),
				  &line->options);
	line->options.server.server_patience_ns = NOT_GIVEN;
	if (rc == 0)
		rc = mst_options_argv(&line->parsed, argc, argv, &operand);
	if (rc < 0)
		return explain(rc, line->parsed.why.text, why);
	line->program = &argv[operand];
	if (line->options.server.config != NULL) {
		rc = read_file(line, argc, argv);
		if (rc < 0)
			return explain(rc, line->file.why.text, why);
	}
	choose_server_patience(&line->options);
	rc = mst_passthrough_collect(&mst_run_passthrough, argv, operand, &line->flags);
	return explain(rc, "", why);
}

void mst_run_line_fini(struct mst_run_line *line)
{
	free(line->flags);
	mst_options_free(&line->parsed);
	mst_options_free(&line->file);
}

static bool is_option(const char *arg)
{
	size_t len = strcspn(arg, "=");

	if (strncmp(arg, "--", 2) != 0)
		return false;
	for (const struct mst_option *row = mst_passthrough_table(&mst_run_passthrough);
	     row->name != NULL; row++)
		if (strlen(row->name) == len - 2 && strncmp(row->name, arg + 2, len - 2) == 0)
			return true;
	return false;
}

const char *mst_run_line_late(const struct mst_run_line *line)
{
	for (char **arg = line->program; *arg != NULL && arg[1] != NULL; arg++)
		if (is_option(arg[1]))
			return arg[1];
	return NULL;
}

bool mst_run_prints_json(const struct mst_run_options *options)
{
	return options->json != NULL && strcmp(options->json, "-") == 0;
}
