/* SPDX-License-Identifier: MIT */
/*
 * Tells the service manager, where one has started this server, what becomes of it: that it
 * listens, that it lives, that it ends. It beats for the whole server: the control thread calls
 * mst_notifier_step() in its loop, and a beat is only sent when all threads that move data have
 * passed their loops since the last one. So a thread that is stuck ends in a restart.
 *
 * All calls are the control thread's, and none blocks.
 */
#ifndef MST_SERVER_NOTIFIER_H
#define MST_SERVER_NOTIFIER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/host/service.h"
#include "server/worker_threads.h"

/* A watchdog shorter than this would bite threads that only have nothing to do: they pass their
 * loops once a second. */
#define MST_NOTIFIER_WATCHDOG_MIN_NS (3 * MST_SECOND)

struct mst_notifier {
	struct mst_service service;
	char news[160];      /* a message that waits to be sent; empty: none */
	uint64_t every_ns;   /* time between two beats; 0: there is no watchdog */
	uint64_t next_ns;    /* when the next beat is due */
	uint64_t overdue_ns; /* when it is said that the server is stuck */
	bool says_stuck;
};

/* What is wrong with the environment is logged, and then nobody is told anything. */
void mst_notifier_open(struct mst_notifier *n, uint64_t now_ns);
void mst_notifier_close(struct mst_notifier *n);

/* The server is ready. @status: one line for people. */
void mst_notifier_ready(struct mst_notifier *n, const char *status);
/* The server ends. */
void mst_notifier_stopping(struct mst_notifier *n, const char *status);

/* Sends what is due.
 * @threads: NULL while none run. */
void mst_notifier_step(struct mst_notifier *n, struct mst_worker_threads *threads, uint64_t now_ns);

#endif
