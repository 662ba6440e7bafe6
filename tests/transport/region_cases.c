/* SPDX-License-Identifier: MIT */
/* Registered memory: what is read of it, for how long, and that nobody else gets at it. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/transport/world.h"

#define OWN_BYTES ((size_t)1 << 20)

/* Not from malloc(): a page of its own at each end. */
static uint8_t *own_memory(void)
{
	void *own = mmap(NULL, OWN_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);

	CU_ASSERT_FATAL(own != MAP_FAILED);
	return own;
}

static struct mst_region *registered(struct world *w, void *base, size_t bytes)
{
	struct mst_region *r = NULL;
	int rc = mst_region_register(&w->net->domain, base, bytes, &r, UT_UNREAD);

	CU_ASSERT_EQUAL_FATAL(rc, 0);
	CU_ASSERT(r->base == base && r->bytes == bytes);
	return r;
}

/* The source is the caller's again at once, or when that is told. */
static void expect_back(struct world *w, int rc, uint64_t cookie)
{
	struct mst_net_event ev;

	CU_ASSERT_EQUAL(rc, transport->maps ? 1 : 0);
	if (rc != 0)
		return;
	CU_ASSERT_EQUAL(world_poll(w, &ev, 1, PEER_WAIT_NS), 1);
	CU_ASSERT(ev.kind == MST_SENT && ev.link == w->link[0] && ev.cookie == cookie);
}

static void registered_memory_is_sent_as_it_lies(void)
{
	const struct mst_lanes lanes = { 64, OWN_BYTES, 4, 4 };
	struct world w = world_open(&(struct world_cfg){ .peers = 1, .outbound_max = 4096 });
	struct peer_command look = { .order = PEER_POLL, .count = 1, .timeout_ns = PEER_WAIT_NS };
	struct peer_command check = { .order = PEER_CHECK, .offset = 3000, .bytes = 900001 };
	uint8_t *own = own_memory();

	CU_ASSERT_TRUE_FATAL(world_join(&w, 0, &lanes));
	struct mst_region *r = registered(&w, own, OWN_BYTES);
	for (uint64_t i = 0; i < 4; i++) {
		struct mst_put put = { .offset = check.offset,
				       .src = own + 77 * i,
				       .region = r,
				       .bytes = check.bytes,
				       .notify = true,
				       .signal = true,
				       .cookie = 500 + i };
		check.seed = 40 + i;
		pattern(own + 77 * i, check.bytes, check.seed);
		expect_back(&w, transport->put(w.link[0], &put), put.cookie);
		CU_ASSERT_EQUAL(peer_do(w.peer[0], &look).count, 1);
		CU_ASSERT_EQUAL(peer_do(w.peer[0], &check).rc, 0);
	}
	CU_ASSERT_EQUAL(mst_region_unregister(r, UT_UNREAD), 0);
	world_close(&w);
	munmap(own, OWN_BYTES);
}

static void a_region_that_is_lent_stays_registered(void)
{
	struct world w = world_of_one();
	struct peer_command look = { .order = PEER_POLL, .count = 1, .timeout_ns = PEER_WAIT_NS };
	uint8_t *own = own_memory();
	struct mst_region *r = registered(&w, own, OWN_BYTES);
	struct mst_put put = { .src = own, .region = r, .bytes = 60000, .notify = true };
	struct mst_net_event ev;
	struct mst_reason why;

	put.signal = true;
	CU_ASSERT_EQUAL(transport->put(w.link[0], &put), transport->maps ? 1 : 0);
	if (!transport->maps) {
		CU_ASSERT_EQUAL(mst_region_unregister(r, &why), -EBUSY);
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "1 puts from the 1048576 bytes"));
		CU_ASSERT_EQUAL(world_poll(&w, &ev, 1, PEER_WAIT_NS), 1);
		CU_ASSERT_EQUAL(ev.kind, MST_SENT);
	}
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &look).count, 1);
	CU_ASSERT_EQUAL(mst_region_unregister(r, UT_UNREAD), 0);
	CU_ASSERT_EQUAL(mst_region_unregister(NULL, UT_UNREAD), 0);
	world_close(&w);
	munmap(own, OWN_BYTES);
}

/* Nobody asked to be told, and the source is given back nevertheless. */
static void a_source_comes_back_unasked(void)
{
	struct world w = world_of_one();
	uint8_t *own = own_memory();
	struct mst_region *r = registered(&w, own, OWN_BYTES);
	struct mst_put put = { .src = own + 5, .region = r, .bytes = 60000 };
	uint64_t end = mst_now_ns() + PEER_WAIT_NS;
	struct mst_net_event ev;

	CU_ASSERT(transport->put(w.link[0], &put) >= 0);
	while (atomic_load(&r->lent) > 0 && mst_now_ns() < end) {
		CU_ASSERT_EQUAL(acceptor->poll(w.net, &ev, 1), 0);
		acceptor->wait(w.net, MST_MS);
	}
	CU_ASSERT_EQUAL(mst_region_unregister(r, UT_UNREAD), 0);
	world_close(&w);
	munmap(own, OWN_BYTES);
}

static void a_source_outside_of_its_region_is_refused(void)
{
	struct world w = world_of_one();
	uint8_t *own = own_memory();
	struct mst_region *r = registered(&w, own + 8192, 8192);
	const struct mst_put outside[] = {
		{ .src = own + 8191, .bytes = 2 },    { .src = own + 16383, .bytes = 2 },
		{ .src = own + 8192, .bytes = 8193 }, { .src = own, .bytes = 1 },
		{ .src = own + 16384, .bytes = 1 },   { .src = own + 8192, .bytes = SIZE_MAX - 8 },
	};
	struct peer_command look = { .order = PEER_POLL, .count = 1, .timeout_ns = 50 * MST_MS };

	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
		struct mst_put put = outside[i];
		put.region = r;
		put.notify = true;
		CU_ASSERT_EQUAL(transport->put(w.link[0], &put), -EINVAL);
	}
	/* A region does not make the peer's memory larger, either. */
	struct mst_put beyond = { .offset = 65000, .src = own + 8192, .bytes = 8192, .region = r };
	CU_ASSERT_EQUAL(transport->put(w.link[0], &beyond), -EINVAL);
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &look).count, 0);
	CU_ASSERT_EQUAL(mst_region_unregister(r, UT_UNREAD), 0); /* nothing was lent */
	world_close(&w);
	munmap(own, OWN_BYTES);
}

static void refuse(struct mst_net *net, void *base, size_t bytes, int error, const char *words)
{
	struct mst_region *r = NULL;
	struct mst_reason why = { 0 };

	CU_ASSERT_EQUAL(mst_region_register(&net->domain, base, bytes, &r, &why), error);
	CU_ASSERT_PTR_NULL(r);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, words));
}

/* Where nothing is pinned, nobody looks. */
static void refuse_hole(const struct world *w)
{
	if (w->net->domain.ops == NULL)
		return;
	uint8_t *own = own_memory();
	CU_ASSERT_EQUAL_FATAL(munmap(own + 65536, 65536), 0);
	refuse(w->net, own, OWN_BYTES, -EFAULT, "not all of it is mapped");
	refuse(w->net, own + 65536, 65536, -EFAULT, "not all of it is mapped");
	munmap(own, 65536);
	munmap(own + 131072, OWN_BYTES - 131072);
}

static void regions_that_cannot_be_are_refused_in_words(void)
{
	struct world w = world_of_one();
	uint8_t *own = own_memory(), *mid = own + 65536;
	struct mst_region *r = registered(&w, mid, 65536);

	refuse(w.net, own, 0, -EINVAL, "0 bytes");
	refuse(w.net, NULL, 4096, -EINVAL, "no memory");
	refuse(w.net, own, SIZE_MAX, -EINVAL, "no memory");
	refuse(w.net, mid, 65536, -EEXIST, "registered already, 65536 bytes");
	refuse(w.net, own, 65537, -EEXIST, "overlap");
	refuse(w.net, mid + 65535, 2, -EEXIST, "overlap");
	refuse(w.net, mid + 100, 100, -EEXIST, "overlap");
	refuse(w.net, own, OWN_BYTES, -EEXIST, "overlap");
	refuse_hole(&w);
	struct mst_region *below = registered(&w, own, 65536);
	struct mst_region *above = registered(&w, mid + 65536, 1);
	CU_ASSERT_EQUAL(mst_region_unregister(r, UT_UNREAD), 0);
	r = registered(&w, mid, 65536);
	CU_ASSERT_EQUAL(mst_region_unregister(below, UT_UNREAD), 0);
	CU_ASSERT_EQUAL(mst_region_unregister(r, UT_UNREAD), 0);
	CU_ASSERT_EQUAL(mst_region_unregister(above, UT_UNREAD), 0);
	world_close(&w);
	munmap(own, OWN_BYTES);
}

/* It writes all that it can reach, and tries what it cannot. */
static void no_peer_reaches_a_region(void)
{
	struct world w = world_of_one();
	uint8_t *own = own_memory();
	struct mst_net_event ev;

	pattern(own, OWN_BYTES, 99);
	struct mst_region *r = registered(&w, own, OWN_BYTES);
	struct mst_put put = { .src = own, .region = r, .bytes = 60000 };
	CU_ASSERT(transport->put(w.link[0], &put) >= 0);
	struct peer_command all = { .order = PEER_PUT, .bytes = 65536, .seed = 5, .notify = true };
	struct peer_command beyond = all;
	ptrdiff_t away = own - (uint8_t *)w.link[0]->inbound;
	beyond.offset = (size_t)away;
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &beyond).rc, -EINVAL);
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &all).rc, 1);
	CU_ASSERT_EQUAL(world_poll(&w, &ev, 1, PEER_WAIT_NS), 1);
	CU_ASSERT_TRUE(pattern_is(w.link[0]->inbound, 65536, 5));
	CU_ASSERT_TRUE(pattern_is(own, OWN_BYTES, 99));
	world_close(&w); /* with the region, which its net gives up */
	CU_ASSERT_TRUE(pattern_is(own, OWN_BYTES, 99));
	munmap(own, OWN_BYTES);
}

/* A link that is lost may be read for until it is freed, and not any longer. */
static void a_lost_link_gives_its_regions_back_when_freed(void)
{
	struct world w = world_of_one();
	struct peer_command hang_up = { .order = PEER_CLOSE };
	uint8_t *own = own_memory();
	struct mst_region *r = registered(&w, own, OWN_BYTES);
	struct mst_net_event ev = { 0 };

	for (int i = 0; i < 3; i++) {
		struct mst_put put = { .src = own, .region = r, .bytes = 60000, .signal = true };
		CU_ASSERT(transport->put(w.link[0], &put) >= 0);
	}
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &hang_up).rc, 0);
	while (ev.kind != MST_LOST)
		CU_ASSERT_EQUAL_FATAL(world_poll(&w, &ev, 1, PEER_WAIT_NS), 1);
	transport->detach(w.link[0]);
	transport->link_free(w.link[0]);
	w.link[0] = NULL;
	CU_ASSERT_EQUAL(atomic_load(&r->lent), 0);
	CU_ASSERT_EQUAL(mst_region_unregister(r, UT_UNREAD), 0);
	world_close(&w);
	munmap(own, OWN_BYTES);
}

static struct peer_command export_call(const struct world *w, size_t at, size_t bytes)
{
	struct peer_command call = world_call(w, &usual_lanes);

	call.exported = true;
	call.offset = at;
	call.bytes = bytes;
	return call;
}

/* Puts over all of the lane land partly here and partly there, each byte where it belongs. */
static void what_is_exported_is_written_in_place(void)
{
	static const struct {
		size_t at, bytes;
	} part[] = { { 0, 65536 }, { 1000, 30001 }, { 65000, 536 }, { 4096, 8 } };

	for (size_t i = 0; !transport->maps && i < sizeof(part) / sizeof(part[0]); i++) {
		struct world w = world_open(&(struct world_cfg){ .peers = 1 });
		struct peer_command call = export_call(&w, part[i].at, part[i].bytes);
		struct peer_command look = { .order = PEER_POLL,
					     .count = 2,
					     .timeout_ns = PEER_WAIT_NS };
		struct peer_command check = {
			.order = PEER_CHECK, .exported = true, .bytes = part[i].bytes, .seed = 31
		};
		size_t end = part[i].at + part[i].bytes;
		CU_ASSERT_TRUE_FATAL(world_let_in(&w, 0, &call));
		CU_ASSERT_EQUAL(world_put(&w, 0, 65536, 30), 1);
		CU_ASSERT_EQUAL(world_notify(&w, part[i].at, part[i].bytes, 31, 1), 1);
		CU_ASSERT_EQUAL(world_notify(&w, 0, part[i].at, 32, 2), 1);
		CU_ASSERT_EQUAL(peer_do(w.peer[0], &look).count, 2);
		CU_ASSERT_EQUAL(peer_do(w.peer[0], &check).rc, 0);
		struct peer_command before = { .order = PEER_CHECK,
					       .bytes = part[i].at,
					       .seed = 32 };
		CU_ASSERT_EQUAL(peer_do(w.peer[0], &before).rc, 0);
		CU_ASSERT(end <= 65536);
		world_close(&w);
	}
}

/* Once it is detached, what is still on its way lands there no more: whoever has given the region
 * up to its peer has it again, though it is lent until the link is freed. */
static void what_is_exported_is_written_until_it_is_detached(void)
{
	struct peer_command leave = { .order = PEER_DETACH };
	struct peer_command check = { .order = PEER_CHECK, .exported = true };

	for (int i = 0; !transport->maps && i < 5; i++) {
		struct world w = world_open(&(struct world_cfg){ .peers = 1 });
		struct peer_command call = export_call(&w, 0, 65536);
		struct mst_net_event ev = { 0 };
		CU_ASSERT_TRUE_FATAL(world_let_in(&w, 0, &call));
		for (int k = 0; k < 3 * i && world_put(&w, 0, 65536, 30) == 1; k++)
			continue;
		(void)acceptor->poll(w.net, &ev, 1);
		peer_tell(w.peer[0], &leave);
		for (int k = 0; k < 10 && world_put(&w, 0, 65536, 30) == 1; k++)
			(void)acceptor->poll(w.net, &ev, 1);
		CU_ASSERT_EQUAL(peer_hear(w.peer[0]).rc, 0);
		while (ev.kind != MST_LOST)
			CU_ASSERT_EQUAL_FATAL(world_poll(&w, &ev, 1, PEER_WAIT_NS), 1);
		CU_ASSERT_EQUAL(peer_do(w.peer[0], &check).rc, 0);
		world_close(&w);
	}
}

/* One that is not writes nothing, and the lanes go on. */
static void what_cannot_be_exported_is_refused(void)
{
	struct world w = world_open(&(struct world_cfg){ .peers = 1 });
	static const struct {
		size_t at, bytes;
	} bad[] = { { 0, 0 }, { 1, 65536 }, { 65536, 1 }, { SIZE_MAX, 2 }, { 0, SIZE_MAX } };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct peer_command call = export_call(&w, bad[i].at, bad[i].bytes);
		int rc = peer_do(w.peer[0], &call).rc;
		CU_ASSERT_EQUAL(rc, transport->maps ? -ENOTSUP : -EINVAL);
	}
	CU_ASSERT_TRUE(world_join(&w, 0, &usual_lanes));
	world_close(&w);
}

CU_TestInfo region_cases[] = {
	{ "registered memory is sent as it lies", registered_memory_is_sent_as_it_lies },
	{ "a region that is lent stays registered", a_region_that_is_lent_stays_registered },
	{ "a source comes back unasked", a_source_comes_back_unasked },
	{ "a source outside of its region is refused", a_source_outside_of_its_region_is_refused },
	{ "regions that cannot be are refused in words",
	  regions_that_cannot_be_are_refused_in_words },
	{ "no peer reaches a region", no_peer_reaches_a_region },
	{ "what is exported is written in place", what_is_exported_is_written_in_place },
	{ "what is exported is written until it is detached",
	  what_is_exported_is_written_until_it_is_detached },
	{ "what cannot be exported is refused", what_cannot_be_exported_is_refused },
	{ "a lost link gives its regions back when freed",
	  a_lost_link_gives_its_regions_back_when_freed },
	CU_TEST_INFO_NULL,
};

/* ---- with threads and processes, so not of a simulated world ---- */

struct registrar {
	struct mst_net *net;
	uint8_t *own;
	int failed;
};

static void *register_all_along(void *arg)
{
	struct registrar *g = arg;

	for (int i = 0; i < 50; i++) {
		struct mst_region *r;
		if (mst_region_register(&g->net->domain, g->own, 65536, &r, UT_UNREAD) != 0 ||
		    mst_region_unregister(r, UT_UNREAD) != 0)
			g->failed++;
	}
	return NULL;
}

static void regions_come_and_go_while_the_net_is_polled(void)
{
	struct world w = world_of_one();
	struct peer_command c = { .order = PEER_STORM, .seed = 77, .count = 2000 };
	uint8_t *own = own_memory();
	struct registrar g[2] = { { w.net, own, 0 }, { w.net, own + 65536, 0 } };
	pthread_t thread[2];

	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread[i], NULL, register_all_along, &g[i]),
				      0);
	peer_tell(w.peer[0], &c);
	CU_ASSERT_EQUAL(storm(&(struct storm){ w.net, w.link[0], ~c.seed, c.seed, c.count }), 0);
	CU_ASSERT_EQUAL(peer_hear(w.peer[0]).rc, 0);
	for (int i = 0; i < 2; i++) {
		pthread_join(thread[i], NULL);
		CU_ASSERT_EQUAL(g[i].failed, 0);
	}
	world_close(&w);
	munmap(own, OWN_BYTES);
}

/* The child: whether it has the memory as it was, and may write it. */
static int look_in_child(struct mst_net *net, uint8_t *own)
{
	struct mst_region *none;
	bool fine = pattern_is(own, OWN_BYTES, 12);

	if (acceptor->disown != NULL)
		acceptor->disown(net);
	fine &= mst_region_register(&net->domain, own, 4096, &none, UT_UNREAD) == -EPERM;
	memset(own, 'c', OWN_BYTES);
	return fine ? 0 : 1;
}

static void registered_memory_outlives_a_fork(void)
{
	struct world w = world_of_one();
	struct peer_command look = { .order = PEER_POLL, .count = 1, .timeout_ns = PEER_WAIT_NS };
	struct peer_command check = { .order = PEER_CHECK, .bytes = 60000, .seed = 12 };
	uint8_t *own = own_memory();
	int status = -1;

	pattern(own, OWN_BYTES, 12);
	struct mst_region *r = registered(&w, own, OWN_BYTES);
	pid_t child = fork();
	if (child == 0)
		_exit(look_in_child(w.net, own));
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	struct mst_put put = { .src = own, .region = r, .bytes = 60000, .notify = true };
	CU_ASSERT(transport->put(w.link[0], &put) >= 0);
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &look).count, 1);
	CU_ASSERT_EQUAL(peer_do(w.peer[0], &check).rc, 0);
	world_close(&w);
	munmap(own, OWN_BYTES);
}

CU_TestInfo shared_region_cases[] = {
	{ "regions come and go while the net is polled",
	  regions_come_and_go_while_the_net_is_polled },
	{ "registered memory outlives a fork", registered_memory_outlives_a_fork },
	CU_TEST_INFO_NULL,
};
