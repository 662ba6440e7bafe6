/* SPDX-License-Identifier: MIT */
/* How a link ends: closed, killed, stopped, detached. The last cases need a process to kill. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "common/base/clock.h"
#include "common/base/rand.h"
#include "tests/transport/world.h"

static const struct peer_command hang_up = { .order = PEER_CLOSE };

/* The next event is that link @i is lost, with @error; and then comes nothing more. */
static void expect_lost_once(struct world *w, int i, int error)
{
	struct mst_net_event ev;

	CU_ASSERT_EQUAL(world_poll(w, &ev, 1, PEER_WAIT_NS), 1);
	CU_ASSERT_EQUAL(ev.kind, MST_LOST);
	CU_ASSERT_PTR_EQUAL(ev.link, w->link[i]);
	CU_ASSERT_EQUAL(ev.error, error);
	CU_ASSERT_EQUAL(world_poll(w, &ev, 1, 100 * MST_MS), 0);
}

static void peer_that_closes_is_lost_once(void)
{
	struct world w = world_of_one();

	CU_ASSERT_EQUAL(peer_do(w.peer[0], &hang_up).rc, 0);
	expect_lost_once(&w, 0, -EPIPE);
	CU_ASSERT_EQUAL(world_notify(&w, 0, 8, 1, 1), -EPIPE);
	CU_ASSERT_EQUAL(world_put(&w, 0, 8, 1), -EPIPE);
	world_close(&w);
}

static void what_was_put_before_the_end_arrives(void)
{
	struct world w = world_of_one();
	struct peer_command up = { .order = PEER_PUT, .bytes = 600, .notify = true };
	struct mst_net_event ev;

	for (uint32_t i = 0; i < 4; i++) {
		up.offset = 1000 * i;
		up.seed = up.imm = i;
		CU_ASSERT_EQUAL(peer_do(w.peer[0], &up).rc, 1);
	}
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &hang_up).rc, 0);
	for (int i = 0; i < 200; i++) { /* time enough to notice the end first */
		CU_ASSERT_EQUAL(acceptor->poll(w.net, &ev, 0), 0);
		mst_sleep_ns(MST_MS / 4);
	}
	for (uint32_t i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(world_poll(&w, &ev, 1, PEER_WAIT_NS), 1);
		CU_ASSERT_EQUAL(ev.kind, MST_ARRIVED);
		CU_ASSERT_EQUAL(ev.imm, i);
		CU_ASSERT_TRUE(pattern_is((uint8_t *)w.link[0]->inbound + 1000 * i, 600, i));
	}
	expect_lost_once(&w, 0, -EPIPE);
	world_close(&w);
}

static void end_of_a_peer_ends_a_wait(void)
{
	struct world w = world_of_one();
	struct peer_command nap = { .order = PEER_WAIT, .timeout_ns = 150 * MST_MS };
	uint64_t begin = mst_now_ns();

	peer_tell(w.peer[0], &nap);
	peer_tell(w.peer[0], &hang_up);
	acceptor->wait(w.net, MST_NEVER);
	CU_ASSERT(mst_now_ns() - begin < PEER_SOON_NS);
	expect_lost_once(&w, 0, -EPIPE);
	world_close(&w);
}

static void connector_sees_its_acceptor_go(void)
{
	struct world w = world_of_one();
	struct peer_command look = { .order = PEER_POLL, .count = 2, .timeout_ns = PEER_WAIT_NS };

	CU_ASSERT_EQUAL(world_notify(&w, 0, 8, 1, 17), 1);
	transport->detach(w.link[0]);
	struct peer_report r = peer_do(w.peer[0], &look);
	CU_ASSERT_EQUAL(r.count, 2);
	CU_ASSERT_EQUAL(r.event[0].kind, MST_ARRIVED);
	CU_ASSERT_EQUAL(r.event[1].kind, MST_LOST);
	CU_ASSERT_EQUAL(r.event[1].error, -EPIPE);
	transport->link_free(w.link[0]);
	w.link[0] = NULL;
	world_close(&w);
}

static void detached_inbound_is_still_there(void)
{
	struct world w = world_of_one();
	struct peer_command up = { .order = PEER_PUT, .bytes = 65536, .seed = 3, .notify = true };
	struct mst_net_event ev;

	CU_ASSERT_EQUAL(peer_do(w.peer[0], &up).rc, 1);
	CU_ASSERT_EQUAL(world_poll(&w, &ev, 1, PEER_WAIT_NS), 1);
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &up).rc, 1);
	transport->detach(w.link[0]);
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &hang_up).rc, 0);
	CU_ASSERT_EQUAL(world_poll(&w, &ev, 1, 50 * MST_MS), 0);
	CU_ASSERT_TRUE(pattern_is(w.link[0]->inbound, 65536, 3));
	transport->link_free(w.link[0]);
	w.link[0] = NULL;
	world_close(&w);
}

static void one_that_is_let_in_may_be_freed_unattached(void)
{
	struct world w = world_open(&(struct world_cfg){ .peers = 1 });
	struct peer_command call = world_call(&w, &usual_lanes);
	struct peer_command look = { .order = PEER_POLL, .count = 1, .timeout_ns = PEER_WAIT_NS };
	struct mst_link *link;
	struct mst_link_request request;

	peer_tell(w.peer[0], &call);
	CU_ASSERT_EQUAL_FATAL(world_next_request(&w, &request), 0);
	CU_ASSERT_EQUAL_FATAL(acceptor->listener->answer(w.listener, &request, &link, UT_UNREAD),
			      0);
	transport->link_free(link);
	int rc = peer_hear(w.peer[0]).rc;
	if (rc == 0)
		CU_ASSERT_EQUAL(peer_do(w.peer[0], &look).event[0].kind, MST_LOST);
	CU_ASSERT(rc <= 0 && rc != -ETIMEDOUT); /* the end may overtake a slow connector's dial */
	world_close(&w);
}

static void others_go_on_when_one_is_lost(void)
{
	struct world w = world_open(&(struct world_cfg){ .peers = 3 });
	struct peer_command up = { .order = PEER_PUT, .bytes = 100, .seed = 4, .notify = true };
	struct mst_net_event ev;

	for (int i = 0; i < 3; i++)
		CU_ASSERT_TRUE_FATAL(world_join(&w, i, &usual_lanes));
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &hang_up).rc, 0);
	expect_lost_once(&w, 0, -EPIPE);
	transport->detach(w.link[0]); /* the others move up in the net's list */
	for (int i = 1; i < 3; i++) {
		CU_ASSERT_EQUAL(peer_do(w.peer[i], &up).rc, 1);
		CU_ASSERT_EQUAL(world_poll(&w, &ev, 1, PEER_WAIT_NS), 1);
		CU_ASSERT_PTR_EQUAL(ev.link, w.link[i]);
	}
	transport->link_free(w.link[0]);
	w.link[0] = NULL;
	CU_ASSERT_TRUE(world_join(&w, 0, &usual_lanes));
	world_close(&w);
}

CU_TestInfo end_cases[] = {
	{ "a peer that closes is lost, once", peer_that_closes_is_lost_once },
	{ "what was put before the end still arrives", what_was_put_before_the_end_arrives },
	{ "the end of a peer ends a wait", end_of_a_peer_ends_a_wait },
	{ "a connector sees its acceptor go", connector_sees_its_acceptor_go },
	{ "the inbound region of a detached link is still there", detached_inbound_is_still_there },
	{ "one that is let in may be freed unattached",
	  one_that_is_let_in_may_be_freed_unattached },
	{ "others go on when one is lost", others_go_on_when_one_is_lost },
	CU_TEST_INFO_NULL,
};

static void killed_peer_is_lost_once(void)
{
	struct world w = world_of_one();

	peer_kill(w.peer[0]);
	expect_lost_once(&w, 0, -EPIPE);
	CU_ASSERT_EQUAL(world_notify(&w, 0, 8, 1, 1), -EPIPE);
	world_close(&w);
}

static void kill_in_the_middle_of_traffic(void)
{
	size_t bytes = (size_t)16 * 3 * STORM_CELL;
	struct mst_lanes lanes = { bytes, bytes, 16, 16 };
	struct peer_command c = { .order = PEER_STORM, .seed = 99, .count = UINT64_MAX };
	struct mst_rand r;

	mst_rand_seed(&r, 5);
	for (int round = 0; round < 10; round++) {
		struct world w = world_open(&(struct world_cfg){ .peers = 1 });
		CU_ASSERT_TRUE_FATAL(world_join(&w, 0, &lanes));
		peer_tell(w.peer[0], &c);
		later(mst_rand_below(&r, 20 * MST_MS), peer_kill, w.peer[0]);
		struct storm s = { w.net, w.link[0], ~c.seed, c.seed, c.count };
		CU_ASSERT_EQUAL(storm(&s), -EPIPE); /* and not one byte was wrong before */
		later_end();
		world_close(&w);
	}
}

static void stopped_peer_holds_nobody_up(void)
{
	struct world w = world_open(&(struct world_cfg){ .peers = 2 });
	struct peer_command up = { .order = PEER_PUT, .bytes = 8, .seed = 1, .notify = true };
	struct peer_command look = { .order = PEER_POLL, .count = 4, .timeout_ns = PEER_WAIT_NS };
	struct mst_net_event ev;

	for (int i = 0; i < 2; i++)
		CU_ASSERT_TRUE_FATAL(world_join(&w, i, &usual_lanes));
	peer_stop(w.peer[0]);
	uint64_t begin = mst_now_ns();
	for (uint32_t i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(world_notify(&w, 0, 8, i, i), 1);
	CU_ASSERT_EQUAL(world_notify(&w, 0, 8, 9, 9), -EAGAIN);
	CU_ASSERT_EQUAL(peer_do(w.peer[1], &up).rc, 1);
	CU_ASSERT_EQUAL(world_poll(&w, &ev, 1, PEER_WAIT_NS), 1);
	CU_ASSERT_PTR_EQUAL(ev.link, w.link[1]);
	CU_ASSERT(mst_now_ns() - begin < PEER_SOON_NS);
	peer_continue(w.peer[0]);
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &look).count, 4);
	world_close(&w);
}

static void nobody_writes_what_is_published(void)
{
	struct world w = world_open(&(struct world_cfg){ .peers = 1, .published_bytes = 4096 });
	struct peer_command scribble = { .order = PEER_SCRIBBLE };
	uint8_t *published = w.net->published;

	if (!transport->maps) { /* there is nothing to write at */
		world_close(&w);
		return;
	}

	published[0] = 77;
	CU_ASSERT_TRUE_FATAL(world_join(&w, 0, &usual_lanes));
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &scribble).rc, -ETIME); /* it dies without a report */
	int status = peer_end(w.peer[0]);
	w.peer[0] = NULL;
	CU_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	CU_ASSERT_EQUAL(published[0], 77);
	world_close(&w);
}

CU_TestInfo process_cases[] = {
	{ "a killed peer is lost, once", killed_peer_is_lost_once },
	{ "a kill in the middle of traffic spoils nothing", kill_in_the_middle_of_traffic },
	{ "a stopped peer holds nobody up", stopped_peer_holds_nobody_up },
	{ "nobody writes what is published", nobody_writes_what_is_published },
	CU_TEST_INFO_NULL,
};
