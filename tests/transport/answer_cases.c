/* SPDX-License-Identifier: MIT */
/* Callers that are answered on several threads at a time, while the listener's own goes on. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/transport/world.h"

struct answer {
	struct world *w;
	struct mst_link_request request;
	struct mst_link *link;
	pthread_t thread;
	pthread_barrier_t *together;
	int rc;
};

static void *work(void *arg)
{
	struct answer *a = arg;

	pthread_barrier_wait(a->together);
	a->rc = acceptor->listener->answer(a->w->listener, &a->request, &a->link, UT_UNREAD);
	return NULL;
}

/* Each by a thread, all at once; nobody else asks for a link meanwhile. */
static void answer_all(struct world *w, struct answer *a)
{
	pthread_barrier_t together;
	struct mst_link_request nobody;

	pthread_barrier_init(&together, NULL, WORLD_PEERS + 1);
	for (int i = 0; i < WORLD_PEERS; i++) {
		a[i].w = w;
		a[i].together = &together;
		CU_ASSERT_EQUAL_FATAL(pthread_create(&a[i].thread, NULL, work, &a[i]), 0);
	}
	pthread_barrier_wait(&together);
	for (int i = 0; i < 100; i++)
		CU_ASSERT_EQUAL(acceptor->listener->next_request(w->listener, &nobody, UT_UNREAD),
				-EAGAIN);
	for (int i = 0; i < WORLD_PEERS; i++)
		pthread_join(a[i].thread, NULL);
	pthread_barrier_destroy(&together);
}

/* Peer @i dials with its number for a token, and is seen at the listener. */
static void call(struct world *w, int i, uint64_t timeout_ns, struct answer *a)
{
	struct peer_command c = world_call(w, &usual_lanes);

	c.token = (uint8_t)i;
	c.timeout_ns = timeout_ns;
	peer_tell(w->peer[i], &c);
	CU_ASSERT_EQUAL_FATAL(world_next_request(w, &a->request), 0);
	CU_ASSERT_EQUAL(a->request.token[0], i);
}

/* Each peer has the link of its own request. */
static void use(struct world *w, int i, struct mst_link *link)
{
	struct peer_command put = { .order = PEER_PUT,
				    .bytes = 64,
				    .seed = (uint64_t)i,
				    .notify = true,
				    .imm = (uint32_t)i };
	struct mst_net_event ev;

	w->link[i] = link;
	CU_ASSERT_PTR_NOT_NULL_FATAL(link);
	CU_ASSERT_EQUAL_FATAL(acceptor->attach(w->net, link, UT_UNREAD), 0);
	CU_ASSERT_EQUAL(peer_hear(w->peer[i]).rc, 0);
	CU_ASSERT(peer_do(w->peer[i], &put).rc >= 0);
	CU_ASSERT_EQUAL(world_poll(w, &ev, 1, PEER_WAIT_NS), 1);
	CU_ASSERT(ev.kind == MST_ARRIVED && ev.link == link && ev.imm == (uint32_t)i);
	CU_ASSERT_TRUE(pattern_is(link->inbound, 64, (uint64_t)i));
}

static void all_come_in_at_once(void)
{
	struct world w = world_open(&(struct world_cfg){ .peers = WORLD_PEERS });

	for (int round = 0; round < 3; round++) {
		struct answer a[WORLD_PEERS] = { 0 };
		for (int i = 0; i < WORLD_PEERS; i++)
			call(&w, i, PEER_WAIT_NS, &a[i]);
		answer_all(&w, a);
		for (int i = 0; i < WORLD_PEERS; i++) {
			CU_ASSERT_EQUAL(a[i].rc, 0);
			use(&w, i, a[i].link);
		}
		for (int i = 0; i < WORLD_PEERS; i++) {
			struct peer_command end = { .order = PEER_CLOSE };
			transport->detach(w.link[i]);
			transport->link_free(w.link[i]);
			w.link[i] = NULL;
			CU_ASSERT_EQUAL(peer_do(w.peer[i], &end).rc, 0);
		}
	}
	world_close(&w);
}

static void one_who_has_gone_spoils_no_other(void)
{
	struct world w = world_open(&(struct world_cfg){ .peers = WORLD_PEERS });
	struct answer a[WORLD_PEERS] = { 0 };

	call(&w, 0, MST_SECOND, &a[0]);
	CU_ASSERT_EQUAL(peer_hear(w.peer[0]).rc, -ETIMEDOUT);
	for (int i = 1; i < WORLD_PEERS; i++)
		call(&w, i, PEER_WAIT_NS, &a[i]);
	answer_all(&w, a);
	CU_ASSERT_EQUAL(a[0].rc, -EPIPE);
	for (int i = 1; i < WORLD_PEERS; i++) {
		CU_ASSERT_EQUAL(a[i].rc, 0);
		use(&w, i, a[i].link);
	}
	world_close(&w);
}

CU_TestInfo answer_cases[] = {
	{ "all come in at once", all_come_in_at_once },
	{ "one who has gone spoils no other", one_who_has_gone_spoils_no_other },
	CU_TEST_INFO_NULL,
};
