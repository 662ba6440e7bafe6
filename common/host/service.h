/* SPDX-License-Identifier: MIT */
/*
 * What a program tells the service manager that has started it: the protocol of sd_notify(3), in
 * which each message is a datagram of lines such as READY=1. No call blocks.
 */
#ifndef MST_HOST_SERVICE_H
#define MST_HOST_SERVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/base/reason.h"

struct mst_service {
	int fd; /* -1: no service manager listens */
	struct sockaddr_un at;
	socklen_t at_len;
	uint64_t watchdog_ns; /* without a beat for this time the process is killed; 0: never */
};

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID from the environment. Without NOTIFY_SOCKET
 * there is nobody to tell, and no watchdog.
 * @why: a sentence that names the variable.
 * Return: 0, or -errno: nobody can be told; mst_service_close() may still be called. */
int mst_service_open(struct mst_service *s, struct mst_reason *why);
void mst_service_close(struct mst_service *s);

/* Sends a message.
 * Return: false: it could not be sent now; try again later. true also where nobody listens. */
bool mst_service_tell(const struct mst_service *s, const char *message);

#endif
