/* SPDX-License-Identifier: MIT */
/* The last failure of a handle in words: what muster_error() gives. */
#ifndef MST_CLIENT_LOCAL_FAILURE_H
#define MST_CLIENT_LOCAL_FAILURE_H

#include "common/transport/transport.h"
#include "common/wire/message.h"

struct mst_failure {
	char text[MST_REASON_LEN + MST_WHY_LEN]; /* the leader's words, and the link's */
};

/* Keeps the sentence. Return: @error, so that a caller can pass it up. */
int mst_client_fail(struct mst_failure *f, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
