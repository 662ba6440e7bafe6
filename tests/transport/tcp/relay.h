/* SPDX-License-Identifier: MIT */
/*
 * Somebody on the path between the two ends of a link: passes bytes on, up to a place in one
 * direction, where it cuts the connection or changes a bit.
 */
#ifndef MST_TESTS_TRANSPORT_TCP_RELAY_H
#define MST_TESTS_TRANSPORT_TCP_RELAY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/transport/transport.h"

enum relay_way {
	RELAY_UP,   /* from the connector */
	RELAY_DOWN, /* to it */
};

struct relay {
	char address[MST_ADDRESS_LEN]; /* what the connector dials */
	/* From the @at'th byte on in that direction. SIZE_MAX: never. */
	enum relay_way way;
	_Atomic size_t at;
	bool changes;             /* a bit; else the connection is cut */
	_Atomic size_t passed[2]; /* bytes */
	atomic_bool stops;
	int socket, end[2]; /* to the connector, to the acceptor */
	struct sockaddr_storage *far;
	pthread_t thread;
};

/* To the listener at @address, for one connection. */
void relay_open(struct relay *r, const char *address);
void relay_close(struct relay *r);

#endif
