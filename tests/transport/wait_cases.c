/* SPDX-License-Identifier: MIT */
/* Sleeping, and what ends it. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/transport/world.h"

#define NAP (150 * MST_MS) /* long enough to have fallen asleep */
#define SOON PEER_SOON_NS

static uint64_t wait_took_ns(struct world *w, uint64_t timeout_ns, int *rc)
{
	uint64_t begin = mst_now_ns();

	*rc = acceptor->wait(w->net, timeout_ns);
	return mst_now_ns() - begin;
}

/* What ends a wait comes NAP after @began_ns, when it was asked for: not sooner, and not only when
 * a sleeper looks by itself. */
static bool ended_in_time(uint64_t began_ns)
{
	uint64_t took = mst_now_ns() - began_ns;

	return took > NAP / 2 && took < SOON;
}

static void wait_keeps_its_time(void)
{
	struct world w = world_of_one();
	struct peer_command c = { .order = PEER_WAIT, .timeout_ns = 60 * MST_MS };
	int rc;

	CU_ASSERT(wait_took_ns(&w, 0, &rc) < SOON);
	uint64_t took = wait_took_ns(&w, 60 * MST_MS, &rc);
	CU_ASSERT_EQUAL(rc, 0);
	CU_ASSERT(took >= 60 * MST_MS && took < SOON);
	struct peer_report r = peer_do(w.peer[0], &c);
	CU_ASSERT_EQUAL(r.rc, 0);
	CU_ASSERT(r.took_ns >= 60 * MST_MS && r.took_ns < SOON);
	world_close(&w);
}

static void wait_returns_at_once_if_something_is_there(void)
{
	struct world w = world_of_one();
	struct peer_command up = { .order = PEER_PUT, .notify = true };
	int rc;

	CU_ASSERT_EQUAL(peer_do(w.peer[0], &up).rc, 1);
	CU_ASSERT(wait_took_ns(&w, MST_NEVER, &rc) < SOON);
	world_close(&w);
}

static void put_wakes_the_acceptor(void)
{
	struct world w = world_of_one();
	struct peer_command c = { .order = PEER_WAIT, .timeout_ns = NAP };
	struct peer_command up = { .order = PEER_PUT, .notify = true };
	struct mst_net_event ev;
	int rc;

	for (int i = 0; i < 3; i++) {
		uint64_t began_ns = mst_now_ns();
		peer_tell(w.peer[0], &c);
		peer_tell(w.peer[0], &up);
		rc = acceptor->wait(w.net, MST_NEVER);
		CU_ASSERT(rc == 0 && ended_in_time(began_ns));
		CU_ASSERT_EQUAL(acceptor->poll(w.net, &ev, 1), 1);
		peer_hear(w.peer[0]);
		CU_ASSERT_EQUAL(peer_hear(w.peer[0]).rc, 1);
	}
	world_close(&w);
}

static void put_wakes_the_connector(void)
{
	struct world w = world_of_one();
	struct peer_command c = { .order = PEER_WAIT, .timeout_ns = MST_NEVER };
	struct peer_command look = { .order = PEER_POLL, .count = 1, .timeout_ns = PEER_WAIT_NS };

	for (uint32_t i = 0; i < 3; i++) {
		peer_tell(w.peer[0], &c);
		mst_sleep_ns(NAP);
		CU_ASSERT_EQUAL(world_notify(&w, 0, 8, i, i), 1);
		CU_ASSERT(peer_hear(w.peer[0]).took_ns < SOON);
		CU_ASSERT_EQUAL(peer_do(w.peer[0], &look).count, 1);
	}
	world_close(&w);
}

static void no_wake_up_is_lost(void)
{
	struct world w = world_open(&(struct world_cfg){ .peers = 1, .restless = true });
	struct peer_command echo = { .order = PEER_ECHO, .count = 20000 / haste };
	struct mst_put put = { .notify = true };
	struct mst_net_event ev;
	uint64_t late = 0, late_ns = transport->pins ? 700 * MST_MS : SOON;

	w.restless = false; /* the peer spins, and so is quick */
	CU_ASSERT_TRUE_FATAL(world_join(&w, 0, &usual_lanes));
	peer_tell(w.peer[0], &echo);
	for (uint64_t i = 0; i < echo.count; i++) {
		uint64_t begin = mst_now_ns();
		CU_ASSERT_EQUAL_FATAL(transport->put(w.link[0], &put), 1);
		while (acceptor->poll(w.net, &ev, 1) == 0)
			acceptor->wait(w.net, MST_NEVER);
		CU_ASSERT_EQUAL_FATAL(ev.kind, MST_ARRIVED);
		late += mst_now_ns() - begin >= late_ns;
	}
	CU_ASSERT(late <= (transport->pins ? echo.count / 1000 : 0)); /* see PEER_LOOK_NS_OF() */
	CU_ASSERT_EQUAL(peer_hear(w.peer[0]).rc, 0);
	world_close(&w);
}

static void wake(void *net)
{
	acceptor->wake(net);
}

static void wake_ends_the_present_wait(void)
{
	struct world w = world_of_one();
	uint64_t began_ns = mst_now_ns();

	later(NAP, wake, w.net);
	CU_ASSERT_EQUAL(acceptor->wait(w.net, MST_NEVER), 0);
	CU_ASSERT(ended_in_time(began_ns));
	later_end();
	world_close(&w);
}

static void wake_ends_the_next_wait_only(void)
{
	struct world w = world_of_one();
	int rc;

	acceptor->wake(w.net);
	acceptor->wake(w.net);
	CU_ASSERT(wait_took_ns(&w, MST_NEVER, &rc) < SOON);
	CU_ASSERT(wait_took_ns(&w, 60 * MST_MS, &rc) >= 60 * MST_MS);
	world_close(&w);
}

static struct mst_net *net_to_wake; /* by the handler; NULL: it does nothing */

static void on_alarm(int signal_number)
{
	(void)signal_number;
	if (net_to_wake != NULL)
		acceptor->wake(net_to_wake);
}

/* Lets SIGALRM come every NAP: the first may come before a busy host begins the wait. */
static void set_alarm(struct mst_net *net)
{
	struct sigaction act = { .sa_handler = on_alarm };

	net_to_wake = net;
	sigaction(SIGALRM, &act, NULL);
	ualarm((useconds_t)(NAP / 1000), (useconds_t)(NAP / 1000));
}

static void signal_ends_a_wait(void)
{
	struct world w = world_of_one();
	uint64_t began_ns = mst_now_ns();

	set_alarm(NULL);
	CU_ASSERT_EQUAL(acceptor->wait(w.net, PEER_LOOK_NS), -EINTR);
	ualarm(0, 0);
	CU_ASSERT(ended_in_time(began_ns));
	world_close(&w);
}

static void handler_that_goes_ends_a_wait(void)
{
	struct sigaction once = { .sa_handler = on_alarm, .sa_flags = (int)SA_RESETHAND };
	struct world w = world_of_one();
	int rc = 0;

	net_to_wake = NULL;
	/* One alarm, which may come before a busy host begins the wait: then it is nobody's. */
	for (int tries = 0; tries < 8 && rc != -EINTR; tries++) {
		ualarm(0, 0);
		sigaction(SIGALRM, &once, NULL);
		ualarm((useconds_t)(NAP / 1000), 0);
		rc = acceptor->wait(w.net, 4 * MST_SECOND);
		CU_ASSERT(rc == 0 || rc == -EINTR);
	}
	CU_ASSERT_EQUAL(rc, -EINTR);
	world_close(&w);
}

/* Being stopped and continued ends no wait, even if the process has a handler for a signal. */
static void stop_ends_no_wait(void)
{
	struct sigaction act = { .sa_handler = on_alarm };
	struct world w = world_of_one();
	pid_t pid = getpid();
	int rc;

	sigaction(SIGALRM, &act, NULL);
	pid_t stopper = fork();
	if (stopper == 0) {
		mst_sleep_ns(NAP);
		kill(pid, SIGSTOP);
		mst_sleep_ns(NAP / 3);
		kill(pid, SIGCONT);
		_exit(0);
	}
	uint64_t took = wait_took_ns(&w, MST_SECOND / 10 * 9, &rc);
	CU_ASSERT_EQUAL(rc, 0);
	CU_ASSERT(took >= MST_SECOND / 10 * 9);
	waitpid(stopper, NULL, 0);
	world_close(&w);
}

static void handler_may_wake(void)
{
	struct world w = world_of_one();
	int rc;

	set_alarm(w.net);
	CU_ASSERT(wait_took_ns(&w, MST_NEVER, &rc) < SOON);
	ualarm(0, 0);
	CU_ASSERT(rc == 0 || rc == -EINTR);
	world_close(&w);
}

static void net_sleeps_for_links_of_both_kinds(void)
{
	/* Peer 0 dials this net; this net dials peer 1. */
	struct world w = world_open(&(struct world_cfg){ .peers = 2 });
	struct peer_command nap = { .order = PEER_WAIT, .timeout_ns = NAP };
	struct peer_command put = { .order = PEER_PUT, .notify = true };
	struct peer_command at = { .order = PEER_LISTEN };
	struct peer_command let = { .order = PEER_ACCEPT };
	struct mst_net_event ev;

	CU_ASSERT_TRUE_FATAL(world_join(&w, 0, &usual_lanes));
	struct peer_report r = peer_do(w.peer[1], &at);
	struct mst_dial dial = { .address = r.address,
				 .lanes = usual_lanes,
				 .timeout_ns = PEER_WAIT_NS };
	peer_tell(w.peer[1], &let);
	CU_ASSERT_EQUAL_FATAL(acceptor->dial(w.net, &dial, &w.link[1], UT_UNREAD), 0);
	CU_ASSERT_EQUAL(peer_hear(w.peer[1]).rc, 0);
	for (int i = 0; i < 4; i++) {
		struct peer *p = w.peer[i % 2];
		uint64_t began_ns = mst_now_ns();
		peer_tell(p, &nap);
		peer_tell(p, &put);
		CU_ASSERT_EQUAL(acceptor->wait(w.net, MST_NEVER), 0);
		CU_ASSERT(ended_in_time(began_ns));
		CU_ASSERT_EQUAL(acceptor->poll(w.net, &ev, 1), 1);
		CU_ASSERT_PTR_EQUAL(ev.link, w.link[i % 2]);
		peer_hear(p);
		CU_ASSERT_EQUAL(peer_hear(p).rc, 1);
	}
	world_close(&w);
}

CU_TestInfo wait_cases[] = {
	{ "a wait lasts no longer than its time", wait_keeps_its_time },
	{ "a wait returns at once if something is there",
	  wait_returns_at_once_if_something_is_there },
	{ "a put wakes a sleeping acceptor", put_wakes_the_acceptor },
	{ "a put wakes a sleeping connector", put_wakes_the_connector },
	{ "no wake-up is lost by one that sleeps at every chance", no_wake_up_is_lost },
	{ "wake ends the present wait", wake_ends_the_present_wait },
	{ "wake ends the next wait, and no more", wake_ends_the_next_wait_only },
	{ "a signal ends a wait with -EINTR", signal_ends_a_wait },
	{ "so does one whose handler is gone by then", handler_that_goes_ends_a_wait },
	{ "a stop ends no wait", stop_ends_no_wait },
	{ "a signal's handler may wake", handler_may_wake },
	{ "a net sleeps for links of both kinds", net_sleeps_for_links_of_both_kinds },
	CU_TEST_INFO_NULL,
};
