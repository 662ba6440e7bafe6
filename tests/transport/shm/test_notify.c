/* SPDX-License-Identifier: MIT */
/*
 * No wake-up is lost between a thread that falls asleep and one that puts, or wakes, at the same
 * moment. Each writes one word and then reads the other's; a full fence between the two keeps both
 * from reading the old value. Here the two threads meet thousands of times, as closely as can be:
 * without any one of the fences a wake-up was lost within 2000 rounds, on a loaded machine too.
 *
 * No clock decides. The linker puts a stand-in before poll(), in which a net sleeps: a thread that
 * would sleep now waits there until the other has put, and then looks whether anything would have
 * woken it.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <sys/epoll.h>

#include "common/base/clock.h"
#include "common/transport/shm/shm.h"
#include "tests/ut.h"

#define ROUNDS_MAX 40000u
#define TIME_MAX (3 * MST_SECOND) /* for a machine on which the two threads share a core */
#define PUT_TURNS 200u            /* of dawdle(), before a put */
#define TURNS_MAX (10 * PUT_TURNS)
#define LOOKS_PER_YIELD 4096u

int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);

static struct {
	struct mst_net *net[2]; /* of the acceptor and of the connector */
	struct mst_link *link[2];
	unsigned sleeper;                   /* whose net sleeps; the other thread puts to it */
	const _Atomic uint32_t *asleep;     /* what the sleeper says */
	bool wakes;                         /* wakes that net instead */
	alignas(64) _Atomic uint32_t begun; /* rounds, by the sleeper */
	alignas(64) _Atomic uint32_t put;   /* rounds in which the other has put */
	alignas(64) uint32_t slept, lost;
} meeting;
static cpu_set_t cores;

/* Return: the word, once it is not less than @value. */
static uint32_t await(const _Atomic uint32_t *word, uint32_t value)
{
	uint32_t now;

	for (uint32_t looks = 1; (now = atomic_load_explicit(word, memory_order_acquire)) < value;
	     looks++)
		if (looks % LOOKS_PER_YIELD == 0)
			sched_yield();
	return now;
}

static int epoll_of(const struct mst_net *net)
{
	return ((const struct mst_shm_net *)net)->epoll;
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	if (fds->fd != epoll_of(meeting.net[meeting.sleeper])) /* one that dials */
		return __real_poll(fds, count, timeout_ms);
	await(&meeting.put, atomic_load_explicit(&meeting.begun, memory_order_relaxed));
	int heard = __real_poll(fds, count, 0);
	meeting.slept++;
	meeting.lost += heard == 0;
	return heard;
}

/* Keeps the words that matter in this core's cache meanwhile: then a read of them takes no time and
 * a write takes long, which is the worst case. */
static void dawdle(uint32_t turns)
{
	const struct mst_shm_net *net = (const struct mst_shm_net *)meeting.net[meeting.sleeper];

	while (turns-- > 0) {
		(void)atomic_load_explicit(meeting.asleep, memory_order_relaxed);
		(void)atomic_load_explicit(&net->woken, memory_order_relaxed);
	}
}

/* The n-th of those that there were in the beginning: two threads on one core meet nowhere. */
static void take_core(int n)
{
	cpu_set_t one;
	size_t core = 0;

	if (n >= CPU_COUNT(&cores))
		return;
	while (!CPU_ISSET(core, &cores) || n-- > 0)
		core++;
	CPU_ZERO(&one);
	CPU_SET(core, &one);
	pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
}

static void *put_each_round(void *arg)
{
	struct mst_link *link = meeting.link[1 - meeting.sleeper];
	struct mst_net *sleeper = meeting.net[meeting.sleeper];
	struct mst_put put = { .notify = true };

	take_core(1);
	for (uint32_t round = 1; await(&meeting.begun, round) < UINT32_MAX; round++) {
		dawdle(PUT_TURNS);
		if (meeting.wakes)
			mst_shm.wake(sleeper);
		else if (mst_shm.put(link, &put) != 1)
			break;
		atomic_store_explicit(&meeting.put, round, memory_order_release);
	}
	atomic_store_explicit(&meeting.put, UINT32_MAX, memory_order_release); /* no more comes */
	return arg;
}

/* A notify descriptor that was rung for one who was awake would wake the sleeper of the next
 * round. */
static void silence(struct mst_net *net)
{
	struct epoll_event ev[4];

	while (epoll_wait(epoll_of(net), ev, 4, 0) > 0)
		;
}

static void sleep_each_round(void)
{
	struct mst_net *net = meeting.net[meeting.sleeper];
	struct mst_net_event ev;
	uint32_t round = 0, turns = PUT_TURNS;

	take_core(0);
	uint64_t began_ns = mst_now_ns();
	while (meeting.lost == 0 && ++round < ROUNDS_MAX && mst_now_ns() - began_ns < TIME_MAX) {
		atomic_store_explicit(&meeting.begun, round, memory_order_release);
		uint32_t slept = meeting.slept;
		dawdle(turns);
		CU_ASSERT_EQUAL(mst_shm.wait(net, MST_NEVER), 0);
		turns = meeting.slept > slept ? (turns + 1) % TURNS_MAX : turns - (turns > 0);
		await(&meeting.put, round);
		CU_ASSERT_EQUAL_FATAL(mst_shm.poll(net, &ev, 1), meeting.wakes ? 0 : 1);
		silence(net);
	}
	atomic_store_explicit(&meeting.begun, UINT32_MAX, memory_order_release);
}

static const struct mst_lanes lanes = { 4096, 4096, 4, 4 };

static void *dial(void *address)
{
	struct mst_dial how = { .address = address, .lanes = lanes, .timeout_ns = 60 * MST_SECOND };
	int rc = mst_shm.dial(meeting.net[1], &how, &meeting.link[1], UT_UNREAD);

	return rc == 0 ? address : NULL;
}

static void link_both(void)
{
	struct mst_net_cfg cfg = { .links_max = 1 };
	struct mst_link_listener *listener;
	struct mst_link_request request;
	pthread_t dialler;
	void *linked;

	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL_FATAL(mst_shm.net_open(&cfg, &meeting.net[i], UT_UNREAD), 0);
	CU_ASSERT_EQUAL_FATAL(mst_shm.listener->open(meeting.net[0], &listener, UT_UNREAD), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&dialler, NULL, dial, listener->address), 0);
	while (mst_shm.listener->next_request(listener, &request, UT_UNREAD) != 0)
		sched_yield();
	CU_ASSERT_EQUAL_FATAL(
		mst_shm.listener->answer(listener, &request, &meeting.link[0], UT_UNREAD), 0);
	CU_ASSERT_EQUAL_FATAL(mst_shm.attach(meeting.net[0], meeting.link[0], UT_UNREAD), 0);
	pthread_join(dialler, &linked);
	CU_ASSERT_PTR_NOT_NULL_FATAL(linked);
	mst_shm.listener->close(listener);
}

static void meet(unsigned sleeper, bool wakes)
{
	pthread_t other;

	meeting.sleeper = sleeper;
	meeting.wakes = wakes;
	meeting.begun = meeting.put = meeting.slept = meeting.lost = 0;
	link_both();
	meeting.asleep = ((struct mst_shm_link *)meeting.link[1 - sleeper])->peer_asleep;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&other, NULL, put_each_round, NULL), 0);
	sleep_each_round();
	pthread_join(other, NULL);
	CU_ASSERT_EQUAL(meeting.lost, 0);
	for (int i = 0; i < 2; i++) {
		mst_shm.detach(meeting.link[i]);
		mst_shm.link_free(meeting.link[i]);
		mst_shm.net_close(meeting.net[i]);
	}
}

static void put_always_wakes_the_acceptor(void)
{
	meet(0, false);
}

static void put_always_wakes_the_connector(void)
{
	meet(1, false);
}

static void wake_always_wakes(void)
{
	meet(0, true);
}

static CU_TestInfo cases[] = {
	{ "a put always wakes the acceptor that falls asleep", put_always_wakes_the_acceptor },
	{ "a put always wakes the connector that falls asleep", put_always_wakes_the_connector },
	{ "wake() always wakes who falls asleep", wake_always_wakes },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	CPU_ZERO(&cores);
	sched_getaffinity(0, sizeof(cores), &cores);
	return ut_main("shm notify descriptor", cases);
}
