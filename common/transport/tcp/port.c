/* SPDX-License-Identifier: MIT */
/*
 * The port of a listener: where callers come, from its sockets (sockets.c).
 *
 * Where data are encrypted a caller has to prove itself first, to a thread of the channels', which
 * has the sockets then, and bounds of its own (channel.h); only then it is taken here.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/host/descriptors.h"
#include "common/host/limits.h"
#include "common/transport/tcp/tcp.h"

/* ---- opening ---- */

static int refused(const char *call, struct mst_reason *why)
{
	int error = -errno;

	(void)mst_limit_refused(call, error, why);
	return error;
}

/* Gives the sockets to the secure listener: strangers have to prove themselves to its thread. */
static int make_secure(struct mst_tcp_port *port, struct mst_reason *why)
{
	const struct mst_channels *channels = &port->net->cfg.channels;
	struct mst_tcp_answer no = { .version = MST_TCP_VERSION, .error = MST_TCP_WANTS_TLS };
	struct mst_channel_port how = { .own = channels->own,
					.sockets = port->sockets.count,
					.refusal = port->refusal,
					.refusal_bytes = sizeof(port->refusal) };
	struct epoll_event ev = { .events = EPOLLIN };

	mst_tcp_answer_encode(&no, port->refusal);
	for (uint32_t i = 0; i < port->sockets.count; i++)
		how.socket[i] = port->sockets.socket[i];
	port->sockets.count = 0;
	int rc = channels->ops->listen(&how, &port->secure);
	if (rc != 0)
		return mst_reason_fail(why, rc, "cannot listen for callers by TLS: %s",
				       strerror(-rc));
	if (epoll_ctl(port->epoll, EPOLL_CTL_ADD, channels->ops->stream->listener_fd(port->secure),
		      &ev) != 0)
		return refused("epoll_ctl", why);
	return 0;
}

static int watch_sockets(struct mst_tcp_port *port, struct mst_reason *why)
{
	struct epoll_event ev = { .events = EPOLLIN };

	for (uint32_t i = 0; i < port->sockets.count; i++)
		if (epoll_ctl(port->epoll, EPOLL_CTL_ADD, port->sockets.socket[i], &ev) != 0)
			return refused("epoll_ctl", why);
	return 0;
}

int mst_tcp_port_open(struct mst_tcp_port *port, struct mst_tcp_net *net,
		      char address[MST_ADDRESS_LEN], struct mst_reason *why)
{
	struct mst_endpoints told = { 0 };

	*port = (struct mst_tcp_port){ .net = net };
	port->epoll = mst_descriptor_lift(epoll_create1(EPOLL_CLOEXEC));
	if (port->epoll < 0)
		return refused("epoll_create1", why);
	int rc = mst_tcp_sockets_open(&net->fabric, net->cfg.ports, &port->sockets, &told, why);
	if (rc == 0)
		rc = net->fabric.encrypted ? make_secure(port, why) : watch_sockets(port, why);
	if (rc == 0)
		rc = mst_endpoints_print(&told, mst_tcp.prefix, address, MST_ADDRESS_LEN);
	return rc;
}

void mst_tcp_port_close(struct mst_tcp_port *port)
{
	mst_ports_close(&port->sockets);
	if (port->secure != NULL)
		port->net->cfg.channels.ops->stream->unlisten(port->secure);
	if (port->epoll >= 0)
		close(port->epoll);
}

/* ---- callers ---- */

uint32_t mst_tcp_port_queues(const struct mst_tcp_port *port)
{
	return port->secure != NULL ? 1 : port->sockets.count;
}

/* One that has proven who it is. */
static int take_proven(struct mst_tcp_port *port, struct mst_tcp_conn *out, union mst_endpoint *at)
{
	const struct mst_channel_ops *ops = port->net->cfg.channels.ops;
	char peer[MST_ENDPOINT_TEXT_LEN];
	socklen_t len = sizeof(*at);
	struct mst_stream *stream;
	int rc = ops->stream->accept(port->secure, &stream, peer, sizeof(peer));

	if (rc != 0)
		return rc;
	*out = (struct mst_tcp_conn){ ops->stream->stream_fd(stream), ops, stream };
	if (getpeername(out->fd, &at->any, &len) == 0)
		return 0;
	mst_tcp_hang_up(out);
	return 1;
}

int mst_tcp_port_take(struct mst_tcp_port *port, uint32_t queue, struct mst_tcp_conn *out,
		      union mst_endpoint *at)
{
	socklen_t len = sizeof(*at);

	if (port->secure != NULL)
		return take_proven(port, out, at);
	*out = MST_TCP_NO_CONN;
	out->fd = mst_descriptor_lift(
		accept4(port->sockets.socket[queue], &at->any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC));
	if (out->fd >= 0)
		return 0;
	return errno == EINTR || errno == ECONNABORTED || errno == EPROTO ? 1 : -errno;
}
