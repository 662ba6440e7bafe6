/* SPDX-License-Identifier: MIT */
/* What a program that starts a server knows of its process: the exit status, and how many threads
 * it needs at least. */
#ifndef MST_SERVER_OPTIONS_PROCESS_H
#define MST_SERVER_OPTIONS_PROCESS_H

#include "common/transport/transport.h"

enum mst_server_exit {
	MST_SERVER_EXIT_DONE = 0,
	MST_SERVER_EXIT_FAILED = 1,
	MST_SERVER_EXIT_USAGE = 2,
	/* Another process listens on --listen, and nothing else is wrong. */
	MST_SERVER_EXIT_PORT_TAKEN = 3,
	MST_SERVER_EXIT_BY_SIGNAL = 128 /* plus the number of the signal */
};

/* The threads of a server that has a job: control, log, link makers, and at least one for data. */
#define MST_SERVER_THREADS_MIN (3u + MST_ANSWERS_MAX)

#endif
