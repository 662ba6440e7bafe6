/* SPDX-License-Identifier: MIT */
/*
 * The port of a listener: the sockets that callers of this host's addresses come by.
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
#include "common/transport/origins.h"
#include "common/transport/tcp/tcp.h"

#define BACKLOG 1024
#define PORT_TRIES 16

/* ---- the addresses of this host ---- */

static void of_origin(const struct mst_origin *origin, union mst_endpoint *out)
{
	struct in6_addr v6;

	memcpy(&v6, origin->address, sizeof(v6));
	*out = (union mst_endpoint){ 0 };
	if (IN6_IS_ADDR_V4MAPPED(&v6)) {
		out->v4.sin_family = AF_INET;
		memcpy(&out->v4.sin_addr, origin->address + 12, sizeof(out->v4.sin_addr));
	} else {
		out->v6.sin6_family = AF_INET6;
		out->v6.sin6_addr = v6;
	}
}

/* The addresses that are good beyond this host; if there are none, that of loopback. 0 or
 * -errno. */
static int list_host(struct mst_endpoints *out)
{
	static const struct mst_fabric any = MST_FABRIC_DEFAULT;
	struct mst_origins own;
	int rc = mst_origins_own(&any, &own);

	*out = (struct mst_endpoints){ 0 };
	/* With that at which the server is called they are as many as can be read. */
	for (uint32_t i = 0; i < own.count && out->count + 1 < MST_ENDPOINTS_MAX; i++) {
		union mst_endpoint *one = &out->at[out->count];
		of_origin(&own.at[i], one);
		/* One of a link means nothing without an interface of the caller's. */
		out->count += one->any.sa_family == AF_INET ||
			      !IN6_IS_ADDR_LINKLOCAL(&one->v6.sin6_addr);
	}
	if (out->count == 0) {
		out->at[0] = (union mst_endpoint){ 0 };
		out->at[0].v4.sin_family = AF_INET;
		out->at[0].v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		out->count = 1;
	}
	return rc;
}

/* ---- opening ---- */

static int refused(const char *call, struct mst_reason *why)
{
	int error = -errno;

	(void)mst_limit_refused(call, error, why);
	return error;
}

/* @at: its port becomes that which it is bound to. 0 or -errno. */
static int listen_at(struct mst_tcp_port *port, union mst_endpoint *at)
{
	socklen_t len = sizeof(*at);
	int off = 0, on = 1, rc = 0;
	int fd = mst_descriptor_lift(
		socket(at->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));

	if (fd < 0)
		return -errno;
	port->socket[port->sockets++] = fd;
	/* A server that is started again has its port at once. Where the kernel refuses that,
	 * bind() says so. */
	if (port->net->fabric.data_port != 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	/* The wildcard of IPv6 takes both families. */
	if (at->any.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&at->v6.sin6_addr))
		rc = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (rc != 0 || bind(fd, &at->any, mst_endpoint_bytes(at)) != 0 ||
	    listen(fd, BACKLOG) != 0 || getsockname(fd, &at->any, &len) != 0)
		return -errno;
	struct epoll_event ev = { .events = EPOLLIN };
	return epoll_ctl(port->epoll, EPOLL_CTL_ADD, fd, &ev) != 0 ? -errno : 0;
}

static void close_sockets(struct mst_tcp_port *port)
{
	while (port->sockets > 0)
		close(port->socket[--port->sockets]);
}

static int unlistened(uint16_t number, const union mst_endpoint *at, int rc, struct mst_reason *why)
{
	char text[MST_ENDPOINT_TEXT_LEN];

	mst_endpoint_text(&at->any, text);
	if (rc == -EADDRINUSE && number != 0)
		return mst_reason_fail(
			why, rc,
			"port %u is taken at %s, by another process or by this server's --listen: "
			"choose another one with --data-port (ss -ltnp shows who has it)",
			number, text);
	if (rc == -EACCES && number != 0)
		return mst_reason_fail(
			why, rc,
			"this user may not listen at %s: %s; choose a port from 1024 on with "
			"--data-port",
			text, strerror(-rc));
	return mst_reason_fail(why, rc,
			       rc == -EADDRNOTAVAIL
				       ? "this host has no address %s (its port does not matter): "
					 "%s; ip address shows those that it has"
				       : "cannot listen at %s: %s",
			       text, strerror(-rc));
}

/* All of them at one port; if none is asked for, the kernel gives one to the first. */
static int listen_at_all(struct mst_tcp_port *port, struct mst_endpoints *all,
			 struct mst_reason *why)
{
	uint16_t number = port->net->fabric.data_port;
	uint32_t i = 0;
	int rc = -EADDRINUSE;

	for (int tries = 0; tries < (number != 0 ? 1 : PORT_TRIES) && rc == -EADDRINUSE; tries++) {
		close_sockets(port);
		mst_endpoint_set_port(&all->at[0], htons(number));
		for (i = 0, rc = 0; i < all->count && rc == 0; i++) {
			if (i > 0)
				mst_endpoint_set_port(&all->at[i], mst_endpoint_port(&all->at[0]));
			rc = listen_at(port, &all->at[i]);
		}
	}
	return rc == 0 ? 0 : unlistened(number, &all->at[i - 1], rc, why);
}

/* At the wildcard of IPv6, or of IPv4 where this host has no other; told are the host's own. */
static int listen_anywhere(struct mst_tcp_port *port, struct mst_endpoints *told,
			   struct mst_reason *why)
{
	struct mst_endpoints any = { .count = 1 };
	int rc = list_host(told);

	if (rc != 0)
		return mst_reason_fail(why, rc, "cannot list the addresses of this host: %s",
				       strerror(-rc));
	any.at[0].v6.sin6_family = AF_INET6;
	rc = listen_at_all(port, &any, why);
	if (rc != 0 && rc != -EADDRINUSE && rc != -EACCES) {
		any.at[0] = (union mst_endpoint){ 0 };
		any.at[0].v4.sin_family = AF_INET;
		mst_reason_clear(why);
		rc = listen_at_all(port, &any, why);
	}
	for (uint32_t i = 0; i < told->count; i++)
		mst_endpoint_set_port(&told->at[i], mst_endpoint_port(&any.at[0]));
	told->called_port = mst_endpoint_port(&any.at[0]);
	return rc;
}

/* At loopback all callers are of this host, as over shared memory. */
bool mst_tcp_port_is_near(const struct mst_tcp_port *port)
{
	return port->net->fabric.addresses == NULL && port->net->fabric.loopback;
}

static int listen_near(struct mst_tcp_port *port, struct mst_endpoints *told,
		       struct mst_reason *why)
{
	static const char *const near[] = { "127.0.0.1", "::1" };
	int rc = -EADDRNOTAVAIL;

	for (size_t i = 0; i < sizeof(near) / sizeof(near[0]) && rc != 0; i++) {
		mst_reason_clear(why);
		rc = mst_endpoints_list(near[i], told, why);
		if (rc == 0)
			rc = listen_at_all(port, told, why);
		if (rc == -EADDRINUSE || rc == -EACCES)
			break; /* of the port, which the next has no more than this */
	}
	return rc;
}

/* Gives the sockets to the secure listener: strangers have to prove themselves to its thread. */
static int make_secure(struct mst_tcp_port *port, struct mst_reason *why)
{
	const struct mst_channels *channels = &port->net->cfg.channels;
	struct mst_tcp_answer no = { .version = MST_TCP_VERSION, .error = MST_TCP_WANTS_TLS };
	struct mst_channel_port how = { .own = channels->own,
					.sockets = port->sockets,
					.refusal = port->refusal,
					.refusal_bytes = sizeof(port->refusal) };
	struct epoll_event ev = { .events = EPOLLIN };

	if (!port->net->fabric.encrypted)
		return 0;
	mst_tcp_answer_encode(&no, port->refusal);
	for (uint32_t i = 0; i < port->sockets; i++) {
		(void)epoll_ctl(port->epoll, EPOLL_CTL_DEL, port->socket[i], NULL);
		how.socket[i] = port->socket[i];
	}
	port->sockets = 0;
	int rc = channels->ops->listen(&how, &port->secure);
	if (rc != 0)
		return mst_reason_fail(why, rc, "cannot listen for callers by TLS: %s",
				       strerror(-rc));
	if (epoll_ctl(port->epoll, EPOLL_CTL_ADD, channels->ops->stream->listener_fd(port->secure),
		      &ev) != 0)
		return refused("epoll_ctl", why);
	return 0;
}

int mst_tcp_port_open(struct mst_tcp_port *port, struct mst_tcp_net *net,
		      char address[MST_ADDRESS_LEN], struct mst_reason *why)
{
	const struct mst_fabric *fabric = &net->fabric;
	struct mst_endpoints told = { 0 };
	int rc;

	*port = (struct mst_tcp_port){ .net = net };
	port->epoll = mst_descriptor_lift(epoll_create1(EPOLL_CLOEXEC));
	if (port->epoll < 0)
		return refused("epoll_create1", why);
	if (mst_tcp_port_is_near(port)) {
		rc = listen_near(port, &told, why);
	} else if (fabric->addresses == NULL) {
		rc = listen_anywhere(port, &told, why);
	} else {
		rc = mst_endpoints_list(fabric->addresses, &told, why);
		mst_endpoints_drop_repeated(&told);
		if (rc == 0)
			rc = listen_at_all(port, &told, why);
	}
	if (rc == 0)
		rc = make_secure(port, why);
	if (rc == 0)
		rc = mst_endpoints_print(&told, mst_tcp.prefix, address, MST_ADDRESS_LEN);
	return rc;
}

void mst_tcp_port_close(struct mst_tcp_port *port)
{
	close_sockets(port);
	if (port->secure != NULL)
		port->net->cfg.channels.ops->stream->unlisten(port->secure);
	if (port->epoll >= 0)
		close(port->epoll);
}

/* ---- callers ---- */

uint32_t mst_tcp_port_queues(const struct mst_tcp_port *port)
{
	return port->secure != NULL ? 1 : port->sockets;
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
		accept4(port->socket[queue], &at->any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC));
	if (out->fd >= 0)
		return 0;
	return errno == EINTR || errno == ECONNABORTED || errno == EPROTO ? 1 : -errno;
}
