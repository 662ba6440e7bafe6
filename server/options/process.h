/* SPDX-License-Identifier: MIT */
/* What a program that starts a server knows of its process: the lines that it writes to descriptors
 * of its parent, and how many threads it needs at least. Exit statuses are those of all programs
 * (common/host/exit.h). */
#ifndef MST_SERVER_OPTIONS_PROCESS_H
#define MST_SERVER_OPTIONS_PROCESS_H

#include "common/transport/transport.h"

/* To the descriptor that MUSTER_READY_FD names, one of these: */
#define MST_READY_LISTENS "listening on " /* and the address of the control port */
#define MST_READY_TAKEN "port taken"      /* by another process; nothing else is wrong */
/* To the descriptor that MUSTER_END_FD names, at the end of the job, a line for each thing that was
 * asked for and is missing. Both may be the same descriptor. */
#define MST_END_MISSING "missing " /* and which: "the checkpoint of version 7: ..." */

/* The threads of a server that has a job: control, log, link makers, and at least one for data. */
#define MST_SERVER_THREADS_MIN (3u + MST_ANSWERS_MAX)

#endif
