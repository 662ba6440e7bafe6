/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a connection, and whether its other end is alive.
 *
 * The kernel has two timers for a peer that is dead, and neither fits. TCP_USER_TIMEOUT ends a
 * connection, too, whose peer is alive but does not read: measured on Linux 6.18 over loopback with
 * 1.9 s, a peer that did not read was given up 2.4 s after its window was full. And keepalive asks
 * nothing while something is unacknowledged, and repeats nothing before its next second: two
 * packets that are lost one after the other, and the link is. So the kernel is asked what it knows
 * (TCP_INFO), eight times in the time after which a peer counts as dead, and a peer that has
 * nothing to acknowledge is sent a frame that says nothing. That frame is sent again as all data
 * are. The peer's kernel acknowledges it whether its process runs or not; and where the window is
 * full it acknowledges the probes for that.
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

/* What the kernel holds that it has not sent: beyond that it waits in the queue of puts. */
#define UNSENT_BYTES (256 << 10)

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
	int on = 1, unsent = UNSENT_BYTES;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
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

/* ---- is the other end alive? ---- */

/* A kernel answers the probes of a full window no more often than every 500 ms
 * (tcp_invalid_ratelimit), and the probe after one that it has left out comes twice as late.
 * Measured over loopback, with a peer that stood still for 8 s: 1.1 s without an answer, and never
 * more. */
#define PROBE_NS (MST_SECOND / 2 * 3)

/* One probe or its answer may be lost on the way. Two in a row may, too, but on a kernel that waits
 * twice as long for each the third comes late. */
#define PROBES 3
#define PROBES_LATE 2
#define LATE 4 /* times the time */

static uint64_t ns_of_ms(uint32_t ms)
{
	return (uint64_t)ms * MST_MS;
}

/* Something was sent after the last that was heard, or with it, as far as milliseconds tell; or it
 * was to be sent again, which counts as sent nowhere if this host's own card is down; or a full
 * window was probed, and no answer is here. */
static bool is_unanswered(const struct tcp_info *info)
{
	if (info->tcpi_probes > 0)
		return true;
	return info->tcpi_unacked > 0 && (info->tcpi_retransmits > 0 ||
					  info->tcpi_last_data_sent <= info->tcpi_last_ack_recv);
}

static bool is_dead(const struct tcp_info *info, uint64_t unanswered_ns, uint64_t dead_ns)
{
	uint64_t most_ns = dead_ns - dead_ns / 4;

	if (info->tcpi_probes == 0)
		return unanswered_ns >= most_ns;
	if (most_ns < PROBE_NS)
		most_ns = PROBE_NS;
	return (info->tcpi_probes >= PROBES && unanswered_ns >= most_ns) ||
	       (info->tcpi_probes >= PROBES_LATE && unanswered_ns >= LATE * most_ns);
}

/* Time in which nobody looked is not the peer's: this process or its whole host stood still, and
 * what has come meanwhile the kernel may not have read yet. */
static void leave_out_gap(struct mst_tcp_pulse *p, uint64_t now_ns, uint64_t dead_ns)
{
	uint64_t gap_ns = now_ns - p->looked_ns, look_ns = mst_tcp_look_ns(dead_ns);

	if (p->looked_ns != 0 && p->asked_ns != 0 && gap_ns > 2 * look_ns)
		p->asked_ns += gap_ns - look_ns;
	p->looked_ns = now_ns;
}

enum mst_tcp_life mst_tcp_pulse_look(struct mst_tcp_pulse *p, int fd, uint64_t now_ns,
				     uint64_t dead_ns)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	int unsent = 0;

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
		return MST_TCP_HEARD; /* the socket itself will tell what is wrong */
	uint64_t silent_ns = ns_of_ms(info.tcpi_last_ack_recv);
	leave_out_gap(p, now_ns, dead_ns);
	if (is_unanswered(&info)) {
		/* What was heard since the look before counts, whatever it has acknowledged. */
		if (p->asked_ns == 0 || now_ns - p->asked_ns > silent_ns)
			p->asked_ns = now_ns;
		return is_dead(&info, now_ns - p->asked_ns, dead_ns) ? MST_TCP_DEAD : MST_TCP_ASKED;
	}
	p->asked_ns = 0;
	(void)ioctl(fd, SIOCOUTQNSD, &unsent);
	if (info.tcpi_unacked > 0 || unsent > 0 || silent_ns < mst_tcp_look_ns(dead_ns))
		return MST_TCP_HEARD;
	return MST_TCP_QUIET;
}
