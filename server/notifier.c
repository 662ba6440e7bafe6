/* SPDX-License-Identifier: MIT */
#include "server/notifier.h"

#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/reason.h"

/* Beats in the time after which the service manager takes the server for dead. */
#define BEATS 4u

void mst_notifier_open(struct mst_notifier *n, uint64_t now_ns)
{
	struct mst_reason why;

	*n = (struct mst_notifier){ .next_ns = now_ns };
	if (mst_service_open(&n->service, &why) != 0)
		mst_warn("the service manager is told nothing: %s", why.text);
	if (n->service.watchdog_ns == 0)
		return;
	n->every_ns = n->service.watchdog_ns / BEATS;
	n->overdue_ns = now_ns + n->service.watchdog_ns / 2;
	if (n->service.watchdog_ns < MST_NOTIFIER_WATCHDOG_MIN_NS)
		mst_warn("the service manager's watchdog bites after %.3g s (WATCHDOG_USEC), and "
			 "threads without work are heard of once a second: give it %.3g s or more",
			 (double)n->service.watchdog_ns / (double)MST_SECOND,
			 (double)MST_NOTIFIER_WATCHDOG_MIN_NS / (double)MST_SECOND);
}

void mst_notifier_close(struct mst_notifier *n)
{
	mst_service_close(&n->service);
}

static void send_news(struct mst_notifier *n)
{
	if (n->news[0] != '\0' && mst_service_tell(&n->service, n->news))
		n->news[0] = '\0';
}

void mst_notifier_ready(struct mst_notifier *n, const char *status)
{
	(void)snprintf(n->news, sizeof(n->news), "READY=1\nSTATUS=%s\n", status);
	send_news(n);
}

void mst_notifier_stopping(struct mst_notifier *n, const char *status)
{
	(void)snprintf(n->news, sizeof(n->news), "STOPPING=1\nSTATUS=%s\n", status);
	send_news(n);
}

/* The service manager kills the server soon; who looks for the reason finds it here. */
static void say_stuck(struct mst_notifier *n, const char *stuck, uint64_t now_ns)
{
	double seconds = (double)(now_ns + n->every_ns - n->next_ns) / (double)MST_SECOND;

	if (n->says_stuck || now_ns < n->overdue_ns || n->news[0] != '\0')
		return;
	mst_error("%s has not passed its loop for %.3g s: without that the watchdog of the service "
		  "manager gets no beat, and ends this server",
		  stuck, seconds);
	(void)snprintf(n->news, sizeof(n->news), "STATUS=%s is stuck\n", stuck);
	n->says_stuck = true;
}

static void beat(struct mst_notifier *n, uint64_t now_ns)
{
	if (!mst_service_tell(&n->service,
			      n->says_stuck ? "WATCHDOG=1\nSTATUS=goes on\n" : "WATCHDOG=1\n"))
		return; /* in the next step */
	if (n->says_stuck)
		mst_info("all threads pass their loops again");
	n->says_stuck = false;
	n->next_ns = now_ns + n->every_ns;
	n->overdue_ns = now_ns + n->service.watchdog_ns / 2;
}

void mst_notifier_step(struct mst_notifier *n, struct mst_worker_threads *threads, uint64_t now_ns)
{
	char stuck[48];

	send_news(n);
	if (n->every_ns == 0 || now_ns < n->next_ns)
		return;
	if (mst_worker_threads_moved(threads, stuck, sizeof(stuck)))
		beat(n, now_ns);
	else
		say_stuck(n, stuck, now_ns);
}
