/* SPDX-License-Identifier: MIT */
/* A job's figures as JSON: the fields that `muster run` and `muster status` have in common. */
#ifndef MST_TOOLS_REPORT_H
#define MST_TOOLS_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "tools/watch.h"

/* "gathering", "running", "finished", "failed"; "absent", "joined", "live", "left", "lost",
 * "evicted". */
const char *mst_report_job_state(uint32_t state);
const char *mst_report_rank_state(uint32_t state);
const char *mst_report_server_state(uint32_t state);

/* Which peers may join a job: a word, and what it means. @access: enum mst_access. */
const char *mst_report_access(uint32_t access);
const char *mst_report_access_means(uint32_t access);

/* "; not waiting for the late saved at least 1.20 s"; nothing where it is not known, or nothing. */
struct mst_report_words {
	char text[288];
};
struct mst_report_words mst_report_saved(const struct mst_status *job);

/* " of 1000": the version that the job ends with; nothing where there is none. */
struct mst_report_words mst_report_goal(const struct mst_status *job);

/* "backup:4"; "adasync:ksync, now ksync:3 (loss 2.3 -> 0.57, 4 live workers)". */
struct mst_report_words mst_report_policy(const struct mst_status *job);

/* "tcp+tls", "tcp"; "-": there has been no link. */
struct mst_report_words mst_report_network(const struct mst_status_link *link);

/* "live", or what a live rank does instead of taking part: "rests", or "held" until the next
 * commit. */
const char *mst_report_rank_now(const struct mst_status_rank *row);

/* How many gradients of a rank were late, and how many it pushed. */
struct mst_late_share {
	uint64_t late, pushed;
};
struct mst_late_share mst_report_late(const struct mst_status_rank *row);
/* The share that each rank would have if all were late equally often. */
struct mst_late_share mst_report_late_mean(const struct mst_job_snapshot *s);

/* As JSON, from 0 to 1; null: nothing was pushed. */
json_t *mst_report_share(struct mst_late_share share);

/* What happened under each of the job's last policies, a line for each. Nothing where the policy
 * has not changed. */
void mst_report_policies(const struct mst_status *job, FILE *out);
/* The norms of contributions, a line for each rank that has one or had something refused for its
 * data. Nothing where there is none: without --norm-limit and --checksum. */
void mst_report_norms(const struct mst_job_snapshot *s, FILE *out);
/* Which samples counted of those that were pushed, in a line. Nothing where none were pushed. */
void mst_report_counted(const struct mst_job_snapshot *s, FILE *out);
/* Which ranks left before the last version, in a line. Nothing where none did. */
void mst_report_leavers(const struct mst_job_snapshot *s, FILE *out);
/* Prints a line with the generation of the servers, and what the loss of one would cost now.
 * Nothing where none is counted. */
void mst_report_generation(const struct mst_status *job, FILE *out);
/* Prints a line with the rank whose state was larger than --state-max. Nothing where none was. */
void mst_report_state(const struct mst_status *job, FILE *out);
/* How many contributions the rank has pushed that have a verdict. */
uint64_t mst_report_pushed(const struct mst_status_rank *row);
/* What workers have reported, a line for each name. Nothing where they have not. */
void mst_report_metrics(const struct mst_status *job, FILE *out);

/* The job without its ranks, and one rank. Return: a new object, or NULL if memory is short. */
json_t *mst_report_job(const struct mst_status *job);
json_t *mst_report_server(const struct mst_status_server *server);
json_t *mst_report_rank(const struct mst_status_rank *row);

/* Could figures be written to @path (NULL: nowhere)? Better known before a long run than after it.
 * Leaves no file that was not there before. errno says why not. */
bool mst_report_may_write(const char *path);
/* The same of the path that an option names. Return: 0 or -EINVAL, with a sentence. */
int mst_report_check(const char *option, const char *path, struct mst_reason *why);

/* Writes @doc to @path ("-": standard output). Logs why it could not, which includes a @doc that is
 * NULL; a file that could not be written whole is removed. Return: 0 or -errno. */
int mst_report_write(const json_t *doc, const char *path);

#endif
