/* SPDX-License-Identifier: MIT */
/* The table of functions of mst_tls, and how a client connects. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/reason.h"
#include "common/transport/tls/listener.h"
#include "common/transport/tls/stream.h"

/* Sleeps until the next step of the handshake may be made. A signal does not end it. */
static int await(const struct mst_stream *s, uint64_t until_ns)
{
	uint64_t now_ns = mst_now_ns();
	struct pollfd p = { .fd = mst_tls_stream_fd(s),
			    .events = mst_tls_stream_wants_room(s) ? POLLOUT : POLLIN };

	if (now_ns >= until_ns)
		return -ETIMEDOUT;
	uint64_t left_ms = (until_ns - now_ns + MST_MS - 1) / MST_MS;
	(void)poll(&p, 1, left_ms > 1000 ? 1000 : (int)left_ms);
	return 0;
}

static int shake(struct mst_stream *s, uint64_t until_ns)
{
	int rc;

	while ((rc = mst_tls_stream_shake(s)) == -EAGAIN) {
		rc = await(s, until_ns);
		if (rc != 0)
			break;
	}
	return rc;
}

static int tls_connect(const char *address, uint64_t timeout_ns, struct mst_proof *proof,
		       struct mst_stream **out)
{
	struct mst_tls_begin begin = { .peer = address };
	uint64_t now_ns = mst_now_ns();
	uint64_t until_ns = timeout_ns < MST_NEVER - now_ns ? now_ns + timeout_ns : MST_NEVER;
	struct mst_stream *s;

	MST_ASSERT(proof != NULL && proof->own != NULL);
	mst_reason_clear(&proof->why);
	begin.own = proof->own;
	int rc = mst_plain.connect(address, timeout_ns, proof, &begin.below);
	if (rc == 0)
		rc = mst_tls_stream_new(&begin, &s);
	if (rc != 0)
		return rc;
	rc = shake(s, until_ns);
	if (rc == 0) {
		*out = s;
		return 0;
	}
	if (rc == -ETIMEDOUT)
		mst_reason_set(&proof->why,
			       "the server at %s took the connection, but did not shake hands by "
			       "TLS in time",
			       address);
	else if (mst_tls_stream_why(s) != NULL)
		mst_reason_set(&proof->why, "%s", mst_tls_stream_why(s));
	mst_tls_stream_close(s);
	return rc;
}

const struct mst_stream_ops mst_tls = {
	.listen = mst_tls_listen,
	.accept = mst_tls_accept,
	.unlisten = mst_tls_unlisten,
	.connect = tls_connect,
	.send = mst_tls_stream_send,
	.receive = mst_tls_stream_receive,
	.buffered = mst_tls_stream_buffered,
	.why = mst_tls_stream_why,
	.close = mst_tls_stream_close,
	.principal = mst_tls_stream_principal,
	.stream_fd = mst_tls_stream_fd,
	.listener_fd = mst_tls_listener_fd,
};
