/* SPDX-License-Identifier: MIT */
/* What /proc tells of a process, read from text. Pure: nothing here opens a file. */
#ifndef MST_HOST_PROCESS_H
#define MST_HOST_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#define MST_PROCESS_UNLIMITED UINT64_MAX

struct mst_process {
	uint64_t uid; /* the real one, as seen from this process's user namespace */
	uint64_t threads;
	uint64_t capabilities; /* effective: a bit each */
	uint64_t pinned_bytes; /* for devices; 0 where the kernel does not tell */
};

/* The text of a /proc/PID/status. Return: false: it lacks a line, or that holds no number. */
bool mst_process_read(const char *status, struct mst_process *out);

/* The soft limit of the line "@name SOFT HARD UNIT" in the text of a /proc/PID/limits:
 * "Max processes". MST_PROCESS_UNLIMITED also where there is no such line. */
uint64_t mst_process_limit(const char *limits, const char *name);

/* The tasks of the whole host, by the text of /proc/loadavg: "0.1 0.1 0.1 RUNNING/ALL PID".
 * MST_PROCESS_UNLIMITED: it does not say. */
uint64_t mst_process_all(const char *loadavg);

#endif
