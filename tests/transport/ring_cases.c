/* SPDX-License-Identifier: MIT */
/*
 * A net is rung only while it sleeps, or has armed its descriptor: an end that is awake costs its
 * peers no system call with each put. The kernel counts what is written to descriptors, and no net
 * reads its own.
 */
#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/transport/joint/joint.h"
#include "common/transport/shm/shm.h"
#include "common/transport/tcp/tcp.h"
#include "tests/transport/world.h"

#define NAP (20 * MST_MS) /* a wait for so long does sleep */
#define PUTS 20
#define ROUNDS 3

static uint64_t count_of(int eventfd)
{
	char path[64], line[128];
	uint64_t count = 0;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", eventfd);
	FILE *f = fopen(path, "re");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	while (fgets(line, sizeof(line), f) != NULL)
		(void)sscanf(line, "eventfd-count: %" SCNx64, &count);
	fclose(f);
	return count;
}

static uint64_t rings_of_shm(const struct mst_shm_net *net)
{
	uint64_t rings = count_of(net->notify_fd);

	for (uint32_t i = 0; i < net->link_count; i++)
		rings += count_of(net->links[i]->wait_fd);
	return rings;
}

static uint64_t rings_of(const struct mst_net *net)
{
	uint64_t rings = 0;

	if (net->ops == &mst_shm)
		return rings_of_shm((const struct mst_shm_net *)net);
	if (net->ops == &mst_tcp)
		return count_of(((const struct mst_tcp_net *)net)->io[0].notify_fd);
	if (net->ops == &mst_joint)
		for (uint32_t i = 0; i < ((const struct mst_joint_net *)net)->count; i++)
			rings += rings_of(((const struct mst_joint_net *)net)->part[i]);
	return rings; /* over RDMA it is the device that notifies, and that once */
}

/* A thread that has seen the net asleep may ring it after it woke: one of each part. */
static uint64_t late_rings_of(const struct mst_net *net)
{
	return net->ops == &mst_joint ? ((const struct mst_joint_net *)net)->count : 1;
}

/* Polls and never waits: a net that waits may sleep, and is rung then. */
static bool stay_awake_for_one(struct world *w)
{
	uint64_t end_ns = mst_deadline_ns(PEER_WAIT_NS);
	struct mst_net_event ev;

	while (acceptor->poll(w->net, &ev, 1) != 1)
		if (mst_now_ns() >= end_ns)
			return false;
	return true;
}

/* Return: how often the net was rung, while it polled for one put after the other. */
static uint64_t rings_of_puts(struct world *w)
{
	struct peer_command up = { .order = PEER_PUT, .bytes = 8, .notify = true };
	uint64_t before = rings_of(w->net);

	for (int i = 0; i < PUTS; i++) {
		CU_ASSERT(peer_do(w->peer[0], &up).rc >= 0);
		CU_ASSERT(stay_awake_for_one(w));
	}
	return rings_of(w->net) - before;
}

static void nobody_rings_a_net_that_has_slept_and_is_awake(void)
{
	struct world w = world_of_one();

	for (int i = 0; i < ROUNDS; i++) {
		CU_ASSERT_EQUAL(acceptor->wait(w.net, NAP), 0);
		CU_ASSERT(rings_of_puts(&w) <= late_rings_of(w.net));
	}
	world_close(&w);
}

static void nobody_rings_a_net_once_it_is_disarmed(void)
{
	struct world w = world_of_one();

	for (int i = 0; i < ROUNDS && acceptor->arm != NULL; i++) {
		(void)acceptor->arm(w.net);
		uint64_t rings = rings_of_puts(&w);
		if (acceptor == &mst_shm)
			CU_ASSERT(rings >= PUTS); /* so that they are seen to count */
		if (i % 2 == 0)
			acceptor->disarm(w.net);
		else
			CU_ASSERT_EQUAL(acceptor->wait(w.net, 0), 0);
		CU_ASSERT(rings_of_puts(&w) <= late_rings_of(w.net));
	}
	world_close(&w);
}

CU_TestInfo ring_cases[] = {
	{ "nobody rings a net that has slept, and is awake",
	  nobody_rings_a_net_that_has_slept_and_is_awake },
	{ "nobody rings a net once it is disarmed", nobody_rings_a_net_once_it_is_disarmed },
	CU_TEST_INFO_NULL,
};
