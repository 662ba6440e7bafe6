/* SPDX-License-Identifier: MIT */
/*
 * For transports: a sleep in epoll that ends with -EINTR only where a signal's handler has run.
 *
 * epoll_wait() also ends with EINTR where a process was stopped and continued, or a debugger has
 * attached, and no handler has run; nothing tells the two apart afterwards. poll() the kernel goes
 * on with by itself unless a handler has run (signal(7)), and an epoll descriptor can be polled. So
 * poll() sleeps, and epoll_wait() then takes what there is; that costs half a microsecond a sleep.
 */
#ifndef MST_TRANSPORT_NAP_H
#define MST_TRANSPORT_NAP_H

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>

/* Return: how many events, 0 when the time is over or for once without a reason; -EINTR. */
static inline int mst_nap(int epoll, struct epoll_event *ev, int max, int timeout_ms)
{
	struct pollfd pfd = { .fd = epoll, .events = POLLIN };

	if (timeout_ms != 0) {
		int ready = poll(&pfd, 1, timeout_ms);
		if (ready <= 0)
			return ready < 0 && errno == EINTR ? -EINTR : 0;
	}
	int got = epoll_wait(epoll, ev, max, 0);
	return got > 0 ? got : 0;
}

#endif
