/* SPDX-License-Identifier: MIT */
/*
 * The plain control stream: bytes over TCP as they are. Everything is non-blocking but connect,
 * which waits as long as it is told to. A few messages a second travel here, never a gradient.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/host/descriptors.h"
#include "common/transport/hostport.h"
#include "common/transport/reach.h"
#include "common/transport/stream.h"

/* Callers that wait to be accepted; the kernel takes no more than net.core.somaxconn. All workers
 * of a job may call at once, and a caller that finds no room calls again only a second later. */
#define BACKLOG 4096

struct mst_stream {
	int fd;
};

struct mst_listener {
	int fd;
};

/* ---- addresses ---- */

/* Each interface of a host has link-local addresses of the same network, fe80::/10: which is meant,
 * the kernel is told by the scope, and says EINVAL without. */
static bool lacks_scope(const struct addrinfo *list)
{
	for (const struct addrinfo *ai = list; ai != NULL; ai = ai->ai_next) {
		const struct sockaddr_in6 *v6 = (const void *)ai->ai_addr;
		if (ai->ai_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) &&
		    v6->sin6_scope_id == 0)
			return true;
	}
	return false;
}

/* A list to be freed by freeaddrinfo(). A name may take as long as the resolver does. */
static int resolve(const char *address, int flags, struct addrinfo **out)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV };
	struct mst_hostport at;
	struct mst_reason unused;
	int rc = mst_hostport_read(address, &at, &unused);

	if (rc != 0)
		return rc;
	switch (getaddrinfo(at.host, at.port, &hints, out)) {
	case 0:
		if (!lacks_scope(*out))
			return 0;
		freeaddrinfo(*out);
		return -EDESTADDRREQ;
	case EAI_MEMORY:
		return -ENOMEM;
	case EAI_NONAME:
	case EAI_NODATA:
		return -ENOENT;
	default:
		return -EHOSTUNREACH;
	}
}

/* 127.0.0.0/8, also as an IPv6 address, or ::1. */
static bool is_loopback(const struct sockaddr *sa)
{
	const struct sockaddr_in *v4 = (const void *)sa;
	const struct sockaddr_in6 *v6 = (const void *)sa;

	if (sa->sa_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	if (sa->sa_family != AF_INET6)
		return false;
	return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ||
	       (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) && v6->sin6_addr.s6_addr[12] == 127);
}

enum mst_reach mst_reach_of(const char *address)
{
	enum mst_reach reach = MST_REACH_LOOPBACK;
	struct addrinfo *list = NULL;

	int rc = resolve(address, AI_PASSIVE, &list);
	/* A resolver that does not answer now may do so when the server connects. */
	if (rc != 0)
		return rc == -EINVAL || rc == -ENOENT ? MST_REACH_UNKNOWN : MST_REACH_BEYOND;
	for (const struct addrinfo *ai = list; ai != NULL; ai = ai->ai_next) {
		if (!is_loopback(ai->ai_addr))
			reach = MST_REACH_BEYOND;
	}
	freeaddrinfo(list);
	return reach;
}

/* A socket that listens at [::] has its IPv4 callers at addresses of IPv6; people know them by
 * their own. Return: @sa, or @v4. */
static const struct sockaddr *unmapped(const struct sockaddr *sa, struct sockaddr_in *v4)
{
	const struct sockaddr_in6 *v6 = (const void *)sa;

	if (sa->sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
		return sa;
	*v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = v6->sin6_port };
	memcpy(&v4->sin_addr, &v6->sin6_addr.s6_addr[12], sizeof(v4->sin_addr));
	return (const void *)v4;
}

/* Return: false: there was no memory for it, and it is "?". */
static bool format(const struct sockaddr *sa, socklen_t len, char *out, size_t out_len)
{
	char host[NI_MAXHOST], port[NI_MAXSERV];
	struct sockaddr_in v4;
	const struct sockaddr *given = sa;

	sa = unmapped(given, &v4);
	len = sa == given ? len : sizeof(v4);
	bool known = getnameinfo(sa, len, host, sizeof(host), port, sizeof(port),
				 NI_NUMERICHOST | NI_NUMERICSERV) == 0;

	if (out_len == 0)
		return known;
	if (!known)
		snprintf(out, out_len, "?");
	else if (sa->sa_family == AF_INET6)
		snprintf(out, out_len, "[%s]:%s", host, port);
	else
		snprintf(out, out_len, "%s:%s", host, port);
	return known;
}

static int open_socket(int family)
{
	int fd = mst_descriptor_lift(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));

	return fd < 0 ? -errno : fd;
}

/* ---- listening ---- */

static int listen_at(const struct addrinfo *ai)
{
	int fd = open_socket(ai->ai_family), on = 1, rc;

	if (fd < 0)
		return fd;
	/* A server that is started again must not wait for the connections of the one before. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	    bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

static int plain_listen(const char *address, struct mst_credentials *unused,
			struct mst_listener **out, char *bound, size_t bound_len)
{
	struct sockaddr_storage own;
	socklen_t own_len = sizeof(own);
	struct addrinfo *list = NULL;
	int fd, rc = resolve(address, AI_PASSIVE, &list);

	(void)unused;
	if (rc != 0)
		return rc;
	fd = listen_at(list);
	freeaddrinfo(list);
	if (fd < 0)
		return fd;
	/* Nobody could be told of a port that is not known. */
	if (getsockname(fd, (struct sockaddr *)&own, &own_len) != 0) {
		rc = -errno;
		close(fd);
		return rc;
	}

	struct mst_listener *l = malloc(sizeof(*l));
	if (l == NULL || !format((struct sockaddr *)&own, own_len, bound, bound_len)) {
		free(l);
		close(fd);
		return -ENOMEM;
	}
	l->fd = fd;
	*out = l;
	return 0;
}

static void plain_unlisten(struct mst_listener *l)
{
	if (l == NULL)
		return;
	close(l->fd);
	free(l);
}

/* ---- streams ---- */

/* Takes @fd over, also when it fails. */
static int stream_new(int fd, struct mst_stream **out)
{
	struct mst_stream *s = malloc(sizeof(*s));
	int on = 1;

	if (s == NULL) {
		close(fd);
		return -ENOMEM;
	}
	/* Messages are small and waited for; a kernel that refuses this merely delays them. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	s->fd = fd;
	*out = s;
	return 0;
}

int mst_plain_stream_of(int fd, struct mst_stream **out)
{
	return stream_new(fd, out);
}

int mst_plain_listener_of(int fd, struct mst_listener **out)
{
	struct mst_listener *l = malloc(sizeof(*l));

	if (l == NULL) {
		close(fd);
		return -ENOMEM;
	}
	l->fd = fd;
	*out = l;
	return 0;
}

/* Has this caller gone before it was let in? Then the next may be waiting behind it. */
static bool is_gone(int error)
{
	return error == EINTR || error == ECONNABORTED || error == EPROTO;
}

static int plain_accept(struct mst_listener *l, struct mst_stream **out, char *peer,
			size_t peer_len)
{
	struct sockaddr_storage from;
	socklen_t from_len;
	int fd, rc;

	do {
		from_len = sizeof(from);
		fd = accept4(l->fd, (struct sockaddr *)&from, &from_len,
			     SOCK_NONBLOCK | SOCK_CLOEXEC);
	} while (fd < 0 && is_gone(errno));
	if (fd < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	rc = stream_new(fd, out);
	if (rc == 0)
		(void)format((struct sockaddr *)&from, from_len, peer, peer_len);
	return rc;
}

/* Waits for a connect in progress. A signal does not end it: nothing would be gained. */
static int await_connect(int fd, uint64_t until_ns)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	int error = 0, ready;
	socklen_t len = sizeof(error);

	do {
		uint64_t now_ns = mst_now_ns();
		uint64_t left_ms = now_ns < until_ns ? (until_ns - now_ns + MST_MS - 1) / MST_MS
						     : 0;
		ready = poll(&p, 1, left_ms > 60000 ? 60000 : (int)left_ms);
	} while (ready == 0 ? mst_now_ns() < until_ns : ready < 0 && errno == EINTR);
	if (ready == 0)
		return -ETIMEDOUT;
	if (ready < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
		return -errno;
	return -error;
}

/* Where nobody listens on a port of the range that the kernel gives to connecting sockets, it may
 * give just that one, and the socket is connected to itself. */
static bool is_echo(int fd)
{
	struct sockaddr_storage own = { 0 }, peer = { 0 };
	socklen_t own_len = sizeof(own), peer_len = sizeof(peer);

	return getsockname(fd, (struct sockaddr *)&own, &own_len) == 0 &&
	       getpeername(fd, (struct sockaddr *)&peer, &peer_len) == 0 && own_len == peer_len &&
	       memcmp(&own, &peer, own_len) == 0;
}

/* Return: a connected descriptor, or a negative errno. */
static int connect_to(const struct addrinfo *ai, uint64_t until_ns)
{
	int fd = open_socket(ai->ai_family), rc = 0;

	if (fd < 0)
		return fd;
	if (connect(fd, ai->ai_addr, ai->ai_addrlen) != 0)
		rc = errno == EINPROGRESS || errno == EINTR ? await_connect(fd, until_ns) : -errno;
	if (rc == 0 && is_echo(fd))
		rc = -ECONNREFUSED;
	if (rc == 0)
		return fd;
	close(fd);
	return rc == -ENETUNREACH ? -EHOSTUNREACH : rc;
}

static int plain_connect(const char *address, uint64_t timeout_ns, struct mst_proof *proof,
			 struct mst_stream **out)
{
	uint64_t now_ns = mst_now_ns();
	uint64_t until_ns = timeout_ns < MST_NEVER - now_ns ? now_ns + timeout_ns : MST_NEVER;
	struct addrinfo *list = NULL;
	int fd = -EHOSTUNREACH, rc = resolve(address, 0, &list);

	if (proof != NULL && rc == -EHOSTUNREACH)
		mst_reason_set(&proof->why,
			       "the name in \"%s\" could not be looked up; can this host reach "
			       "its name server (/etc/resolv.conf)?",
			       address);
	else if (proof != NULL && rc == -EDESTADDRREQ)
		mst_reason_set(&proof->why,
			       "the address in \"%s\" is of one link, and lacks the interface: "
			       "[fe80::1%%eth0]:PORT (ip address shows the interfaces)",
			       address);
	else if (proof != NULL)
		mst_reason_clear(&proof->why);
	if (rc != 0)
		return rc == -EDESTADDRREQ ? -EINVAL : rc;
	for (const struct addrinfo *ai = list; ai != NULL && fd < 0; ai = ai->ai_next)
		fd = connect_to(ai, until_ns);
	freeaddrinfo(list);
	if (fd == -EPERM && proof != NULL)
		mst_reason_set(&proof->why,
			       "socket or connect to %s: %s: a rule of this host's firewall, or a "
			       "filter of system calls (seccomp, of a container, a systemd unit or "
			       "a sandbox), forbids it",
			       address, strerror(EPERM));
	return fd < 0 ? fd : stream_new(fd, out);
}

static ssize_t plain_send(struct mst_stream *s, const void *data, size_t len)
{
	ssize_t done;

	do {
		done = send(s->fd, data, len, MSG_NOSIGNAL);
	} while (done < 0 && errno == EINTR);
	if (done >= 0)
		return done;
	if (errno == EWOULDBLOCK)
		return -EAGAIN;
	return errno == ECONNRESET ? -EPIPE : -errno;
}

static ssize_t plain_receive(struct mst_stream *s, void *data, size_t len)
{
	ssize_t done;

	do {
		done = recv(s->fd, data, len, 0);
	} while (done < 0 && errno == EINTR);
	if (done >= 0)
		return done;
	return errno == EWOULDBLOCK ? -EAGAIN : -errno;
}

static void plain_close(struct mst_stream *s)
{
	if (s == NULL)
		return;
	close(s->fd);
	free(s);
}

static int plain_stream_fd(const struct mst_stream *s)
{
	return s->fd;
}

static int plain_listener_fd(const struct mst_listener *l)
{
	return l->fd;
}

const struct mst_stream_ops mst_plain = {
	.listen = plain_listen,
	.accept = plain_accept,
	.unlisten = plain_unlisten,
	.connect = plain_connect,
	.send = plain_send,
	.receive = plain_receive,
	.close = plain_close,
	.buffered = mst_stream_unbuffered,
	.why = mst_stream_no_why,
	.principal = mst_stream_unproven,
	.stream_fd = plain_stream_fd,
	.listener_fd = plain_listener_fd,
};
