/* SPDX-License-Identifier: MIT */
/* For transports: the sentence that mst_why() returns. */
#ifndef MST_TRANSPORT_WHY_H
#define MST_TRANSPORT_WHY_H

/* A call that may fail begins with this, so that an old sentence is never taken for its own. */
void mst_why_clear(void);

/* Keeps the sentence. Return: @error, so that a caller can pass it up. */
int mst_fail(int error, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
