/* SPDX-License-Identifier: MIT */
/*
 * The sockets of a listener, which listen at all its addresses, at one port.
 *
 * A port that is asked for by number is held from the start of a server on, by sockets that listen
 * although nobody accepts from them yet. A listener that is opened later listens by copies of them.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/host/descriptors.h"
#include "common/transport/origins.h"
#include "common/transport/tcp/tcp.h"

#define BACKLOG 1024
#define PORT_TRIES 16

static_assert(MST_PORTS_MAX >= MST_ENDPOINTS_MAX, "a socket for each address");

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

struct opening {
	const struct mst_fabric *fabric;
	const struct mst_ports *held; /* NULL: none are */
	struct mst_ports *out;
};

static bool is_at(int fd, const union mst_endpoint *at)
{
	union mst_endpoint bound = { 0 };
	socklen_t len = sizeof(bound);

	if (getsockname(fd, &bound.any, &len) != 0 || bound.any.sa_family != at->any.sa_family)
		return false;
	if (at->any.sa_family == AF_INET)
		return bound.v4.sin_port == at->v4.sin_port &&
		       bound.v4.sin_addr.s_addr == at->v4.sin_addr.s_addr;
	return bound.v6.sin6_port == at->v6.sin6_port &&
	       bound.v6.sin6_scope_id == at->v6.sin6_scope_id &&
	       IN6_ARE_ADDR_EQUAL(&bound.v6.sin6_addr, &at->v6.sin6_addr);
}

/* Return: a descriptor of a socket that listens there already; -1: there is none. */
static int copy_of_held(const struct opening *o, const union mst_endpoint *at)
{
	for (uint32_t i = 0; o->held != NULL && i < o->held->count; i++)
		if (is_at(o->held->socket[i], at))
			return mst_descriptor_lift(fcntl(o->held->socket[i], F_DUPFD_CLOEXEC, 0));
	return -1;
}

/* @at: its port becomes that which it is bound to. 0 or -errno. */
static int listen_at(struct opening *o, union mst_endpoint *at)
{
	socklen_t len = sizeof(*at);
	int off = 0, on = 1, rc = 0, fd = copy_of_held(o, at);

	if (fd >= 0) {
		o->out->socket[o->out->count++] = fd;
		return 0;
	}
	fd = mst_descriptor_lift(
		socket(at->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return -errno;
	o->out->socket[o->out->count++] = fd;
	/* A server that is started again has its port at once. Where the kernel refuses that,
	 * bind() says so. */
	if (o->fabric->data_port != 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	/* The wildcard of IPv6 takes both families. */
	if (at->any.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&at->v6.sin6_addr))
		rc = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (rc != 0 || bind(fd, &at->any, mst_endpoint_bytes(at)) != 0 ||
	    listen(fd, BACKLOG) != 0 || getsockname(fd, &at->any, &len) != 0)
		return -errno;
	return 0;
}

static int unlistened(uint16_t port, const union mst_endpoint *at, int rc, struct mst_reason *why)
{
	char text[MST_ENDPOINT_TEXT_LEN];

	mst_endpoint_text(&at->any, text);
	if (rc == -EADDRINUSE && port != 0)
		return mst_reason_fail(
			why, rc,
			"port %u is taken at %s, by another process or by this server's --listen: "
			"choose another one with --data-port (ss -ltnp shows who has it)",
			port, text);
	if (rc == -EACCES && port != 0)
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
static int listen_at_all(struct opening *o, struct mst_endpoints *all, struct mst_reason *why)
{
	uint16_t port = o->fabric->data_port;
	uint32_t i = 0;
	int rc = -EADDRINUSE;

	for (int tries = 0; tries < (port != 0 ? 1 : PORT_TRIES) && rc == -EADDRINUSE; tries++) {
		mst_ports_close(o->out);
		mst_endpoint_set_port(&all->at[0], htons(port));
		for (i = 0, rc = 0; i < all->count && rc == 0; i++) {
			if (i > 0)
				mst_endpoint_set_port(&all->at[i], mst_endpoint_port(&all->at[0]));
			rc = listen_at(o, &all->at[i]);
		}
	}
	return rc == 0 ? 0 : unlistened(port, &all->at[i - 1], rc, why);
}

/* At the wildcard of IPv6, or of IPv4 where this host has no other; told are the host's own. */
static int listen_anywhere(struct opening *o, struct mst_endpoints *told, struct mst_reason *why)
{
	struct mst_endpoints any = { .count = 1 };
	int rc = list_host(told);

	if (rc != 0)
		return mst_reason_fail(why, rc, "cannot list the addresses of this host: %s",
				       strerror(-rc));
	any.at[0].v6.sin6_family = AF_INET6;
	rc = listen_at_all(o, &any, why);
	if (rc != 0 && rc != -EADDRINUSE && rc != -EACCES) {
		any.at[0] = (union mst_endpoint){ 0 };
		any.at[0].v4.sin_family = AF_INET;
		mst_reason_clear(why);
		rc = listen_at_all(o, &any, why);
	}
	for (uint32_t i = 0; i < told->count; i++)
		mst_endpoint_set_port(&told->at[i], mst_endpoint_port(&any.at[0]));
	told->called_port = mst_endpoint_port(&any.at[0]);
	return rc;
}

static int listen_near(struct opening *o, struct mst_endpoints *told, struct mst_reason *why)
{
	static const char *const near[] = { "127.0.0.1", "::1" };
	int rc = -EADDRNOTAVAIL;

	for (size_t i = 0; i < sizeof(near) / sizeof(near[0]) && rc != 0; i++) {
		mst_reason_clear(why);
		rc = mst_endpoints_list(near[i], told, why);
		if (rc == 0)
			rc = listen_at_all(o, told, why);
		if (rc == -EADDRINUSE || rc == -EACCES)
			break; /* of the port, which the next has no more than this */
	}
	return rc;
}

int mst_tcp_sockets_open(const struct mst_fabric *fabric, const struct mst_ports *held,
			 struct mst_ports *out, struct mst_endpoints *told, struct mst_reason *why)
{
	struct opening o = { fabric, held, out };

	*out = (struct mst_ports){ 0 };
	if (mst_tcp_is_near(fabric))
		return listen_near(&o, told, why);
	if (fabric->addresses == NULL)
		return listen_anywhere(&o, told, why);
	int rc = mst_endpoints_list(fabric->addresses, told, why);
	mst_endpoints_drop_repeated(told);
	return rc == 0 ? listen_at_all(&o, told, why) : rc;
}
