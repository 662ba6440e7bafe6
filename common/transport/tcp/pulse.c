/* SPDX-License-Identifier: MIT */
/*
 * Whether the host at the other end is alive, by what the kernel knows of the connection
 * (TCP_INFO). It is asked eight times in the time after which a peer counts as dead.
 *
 * The kernel has two timers for a peer that is dead, and neither fits. TCP_USER_TIMEOUT ends a
 * connection, too, whose peer is alive but does not read: measured on Linux 6.18 over loopback with
 * 1.9 s, a peer that did not read was given up 2.4 s after its window was full. And keepalive asks
 * nothing while something is unacknowledged, and repeats nothing before its next second: two
 * packets that are lost one after the other, and the link is. So the kernel is asked what it knows,
 * and a peer that has nothing to acknowledge is sent a frame that says nothing. That frame is sent
 * again as all data are. The peer's kernel acknowledges it whether its process runs or not; and
 * where the window is full it acknowledges the probes for that.
 */
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <sys/ioctl.h>

#include "common/base/clock.h"
#include "common/transport/tcp/tcp.h"

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
	(void)ioctl(fd, SIOCOUTQNSD, &unsent); /* a peer that is asked too early takes no harm */
	if (info.tcpi_unacked > 0 || unsent > 0 || silent_ns < mst_tcp_look_ns(dead_ns))
		return MST_TCP_HEARD;
	return MST_TCP_QUIET;
}
