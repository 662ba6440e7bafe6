/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a connection, and what its socket is told.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/transport/tcp/tcp.h"

#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44
#endif

ssize_t mst_tcp_send(struct mst_tcp_conn *c, struct iovec *from, uint32_t count)
{
	struct msghdr m = { .msg_iov = from, .msg_iovlen = count };
	ssize_t done;

	if (c->channel != NULL)
		return c->channel->send(c->stream, from, count);
	do {
		done = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (done < 0 && errno == EINTR);
	return done >= 0 ? done : errno == EWOULDBLOCK ? -EAGAIN : -errno;
}

ssize_t mst_tcp_receive(struct mst_tcp_conn *c, struct iovec *to, uint32_t count)
{
	struct msghdr m = { .msg_iov = to, .msg_iovlen = count };
	ssize_t done;

	if (c->channel != NULL)
		return c->channel->receive(c->stream, to, count);
	do {
		done = recvmsg(c->fd, &m, MSG_DONTWAIT);
	} while (done < 0 && errno == EINTR);
	return done >= 0 ? done : errno == EWOULDBLOCK ? -EAGAIN : -errno;
}

bool mst_tcp_holds(const struct mst_tcp_conn *c)
{
	return c->channel != NULL && c->channel->holds(c->stream);
}

const char *mst_tcp_why(const struct mst_tcp_conn *c)
{
	return c->channel != NULL ? c->channel->stream->why(c->stream) : NULL;
}

void mst_tcp_hang_up(struct mst_tcp_conn *c)
{
	if (c->channel != NULL)
		c->channel->stream->close(c->stream);
	else if (c->fd >= 0)
		close(c->fd);
	*c = MST_TCP_NO_CONN;
}

void mst_tcp_cut(struct mst_tcp_conn *c)
{
	if (c->channel != NULL)
		c->channel->end(c->stream);
	if (c->fd >= 0)
		(void)shutdown(c->fd, SHUT_RDWR);
	mst_tcp_hang_up(c);
}

void mst_tcp_socket_prepare(int fd)
{
	int on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	mst_tcp_socket_hold(fd, MST_TCP_HELD_MIN);
}

void mst_tcp_socket_hold(int fd, uint32_t bytes)
{
	int unsent = (int)bytes;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
}

int mst_tcp_socket_wake_at(int fd, uint32_t bytes)
{
	int mark = (int)bytes;

	return setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof(mark)) == 0 ? 0 : -errno;
}

/* A kernel waits twice as long before each further probe of a full window, whether the peer answers
 * or not: after half a minute 14 s, in the end two minutes. From Linux 6.15 on it can be told the
 * most, a second at least. With an eighth of the time it does not itself end a connection before
 * the time is over: it repeats data 15 times. */
void mst_tcp_socket_hasten(int fd, uint64_t dead_ns)
{
	int most_ms = (int)(dead_ns / 8 / MST_MS);

	if (most_ms < 1000)
		most_ms = 1000;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, &most_ms, sizeof(most_ms));
}

bool mst_tcp_socket_is_empty(int fd)
{
	int waiting = 0;

	return ioctl(fd, SIOCOUTQ, &waiting) != 0 || waiting == 0;
}
