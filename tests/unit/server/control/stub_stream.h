/* SPDX-License-Identifier: MIT */
/* A stream that is no socket, for tests of the control side: nothing waits for it. The test itself
 * says what send() and receive() do. */
#ifndef MST_TESTS_CONTROL_STUB_STREAM_H
#define MST_TESTS_CONTROL_STUB_STREAM_H

#include "common/transport/stream.h"

void stub_stream_close(struct mst_stream *s);
int stub_stream_fd(const struct mst_stream *s);
/* The test has no listener: fails if there is one. */
void stub_stream_unlisten(struct mst_listener *l);

/* All calls that a test need not write; it adds send, receive and close. */
#define STUB_STREAM                                                                                \
	.buffered = mst_stream_unbuffered, .why = mst_stream_no_why,                               \
	.principal = mst_stream_unproven, .stream_fd = stub_stream_fd,                             \
	.unlisten = stub_stream_unlisten

#endif
