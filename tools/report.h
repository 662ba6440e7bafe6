/* SPDX-License-Identifier: MIT */
/* A job's figures as JSON: the fields that `muster run` and `muster status` have in common. */
#ifndef MST_TOOLS_REPORT_H
#define MST_TOOLS_REPORT_H

#include <jansson.h>
#include <stdbool.h>

#include "tools/watch.h"

/* "gathering", "running", "finished", "failed"; "absent", "joined", "live", "left", "lost". */
const char *mst_report_job_state(uint32_t state);
const char *mst_report_rank_state(uint32_t state);
const char *mst_report_server_state(uint32_t state);

/* "; not waiting for the late saved at least 1.20 s"; nothing where it is not known, or nothing. */
struct mst_report_words {
	char text[80];
};
struct mst_report_words mst_report_saved(const struct mst_status *job);

/* The job without its ranks, and one rank. Return: a new object, or NULL if memory is short. */
json_t *mst_report_job(const struct mst_status *job);
json_t *mst_report_server(const struct mst_status_server *server);
json_t *mst_report_rank(const struct mst_status_rank *row);

/* Could figures be written to @path (NULL: nowhere)? Better known before a long run than after it.
 * Leaves no file behind that was not there. errno says why not. */
bool mst_report_may_write(const char *path);

/* Writes @doc to @path ("-": standard output). Logs why it could not, which includes a @doc that is
 * NULL; a file that could not be written whole is removed. Return: 0 or -errno. */
int mst_report_write(const json_t *doc, const char *path);

#endif
