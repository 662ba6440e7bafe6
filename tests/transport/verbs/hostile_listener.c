/* SPDX-License-Identifier: MIT */
/*
 * What can come to a listener over verbs, and what a connector can find in place of one. The other
 * end here speaks to the connection manager by hand.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/transport/origins.h"
#include "tests/transport/verbs/attack.h"

#define REJECT_BY_CONSUMER 28
#define NO_QUEUE_PAIR 0xabcd00u /* nobody has this number, nor the thousand that follow */

struct raw_caller {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct mst_verbs_answer answer;
	int status;
};

static struct mst_verbs_request request_of(const struct mst_lanes *l)
{
	return (struct mst_verbs_request){ .magic = MST_VERBS_MAGIC,
					   .version = MST_VERBS_VERSION,
					   .rails = 1,
					   .mtu = IBV_MTU_1024,
					   .token = "token of callers",
					   .up_bytes = l->up_bytes,
					   .down_bytes = l->down_bytes,
					   .up_credits = l->up_credits,
					   .down_credits = l->down_credits,
					   .down_qpn = NO_QUEUE_PAIR };
}

/* The next event's kind; -1: none within @ms. */
static int next_event(struct raw_caller *c, int ms)
{
	struct pollfd pfd = { .fd = c->channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	if (poll(&pfd, 1, ms) <= 0 || rdma_get_cm_event(c->channel, &event) != 0)
		return -1;
	int kind = (int)event->event;
	const struct rdma_conn_param *conn = &event->param.conn;
	c->status = event->status;
	if (kind == RDMA_CM_EVENT_CONNECT_REQUEST)
		c->id = event->id;
	else if (conn->private_data != NULL && conn->private_data_len >= sizeof(c->answer))
		memcpy(&c->answer, conn->private_data, sizeof(c->answer));
	rdma_ack_cm_event(event);
	return kind;
}

static void caller_open(struct raw_caller *c)
{
	*c = (struct raw_caller){ .channel = rdma_create_event_channel() };
	CU_ASSERT_PTR_NOT_NULL_FATAL(c->channel);
	CU_ASSERT_EQUAL_FATAL(rdma_create_id(c->channel, &c->id, NULL, RDMA_PS_TCP), 0);
}

static void caller_hang_up(struct raw_caller *c)
{
	if (c->id != NULL)
		rdma_destroy_id(c->id);
	c->id = NULL;
}

static void caller_close(struct raw_caller *c)
{
	caller_hang_up(c);
	rdma_destroy_event_channel(c->channel);
}

/* Asks for the listener's rail @rail with so much of @q. */
static void call_at(const struct verbs_target *h, uint32_t rail, struct raw_caller *c,
		    const void *q, size_t bytes)
{
	static uint32_t calls; /* one number twice would be a connection of before */
	struct mst_endpoints at;
	struct rdma_conn_param conn = { .private_data = q,
					.private_data_len = (uint8_t)bytes,
					.retry_count = 3,
					.rnr_retry_count = 3,
					.qp_num = NO_QUEUE_PAIR + ++calls };

	caller_open(c);
	CU_ASSERT_EQUAL_FATAL(mst_endpoints_parse(h->listener->address, &mst_verbs, &at, UT_UNREAD),
			      0);
	CU_ASSERT_EQUAL(rdma_resolve_addr(c->id, NULL, &at.at[rail].any, 60000), 0);
	CU_ASSERT_EQUAL_FATAL(next_event(c, 60000), RDMA_CM_EVENT_ADDR_RESOLVED);
	CU_ASSERT_EQUAL(rdma_resolve_route(c->id, 60000), 0);
	CU_ASSERT_EQUAL_FATAL(next_event(c, 60000), RDMA_CM_EVENT_ROUTE_RESOLVED);
	CU_ASSERT_EQUAL(rdma_connect(c->id, &conn), 0);
}

static void call(const struct verbs_target *h, struct raw_caller *c,
		 const struct mst_verbs_request *q)
{
	call_at(h, 0, c, q, sizeof(*q));
}

/* The caller hears this from the listener, whose owner sees nobody. */
static void expect_answer(const struct verbs_target *h, struct raw_caller *c, int error)
{
	struct mst_link_request request;
	int kind = -1;

	for (int i = 0; i < 6000 && kind < 0; i++) {
		CU_ASSERT_EQUAL(mst_verbs.listener->next_request(h->listener, &request, UT_UNREAD),
				-EAGAIN);
		kind = next_event(c, 10);
	}
	CU_ASSERT_EQUAL(kind, RDMA_CM_EVENT_REJECTED);
	CU_ASSERT_EQUAL(c->status, REJECT_BY_CONSUMER);
	CU_ASSERT_EQUAL(c->answer.magic, MST_VERBS_MAGIC);
	CU_ASSERT_EQUAL(c->answer.version, MST_VERBS_VERSION);
	CU_ASSERT_EQUAL(c->answer.error, error);
	CU_ASSERT_EQUAL(c->answer.rkey, 0);
	CU_ASSERT_EQUAL(c->answer.inbound, 0);
}

/* Somebody in order comes, and goes again. */
static void expect_open(const struct verbs_target *h)
{
	struct verbs_attack honest;

	attack_begin(h, &honest, &usual_lanes);
	expect_alive(h, &honest);
	attack_lift(&honest);
}

static void requests_out_of_order_are_refused(void)
{
	struct mst_verbs_request good = request_of(&usual_lanes), q[10];
	static const int errors[] = {
		-EPROTONOSUPPORT, -EPROTONOSUPPORT, -EPROTO, -EPROTO, -EPROTO,
		-EPROTO,          -EINVAL,          -EINVAL, -EINVAL, -EINVAL
	};
	struct verbs_target h = target_open();

	for (int i = 0; i < 10; i++)
		q[i] = good;
	q[0].magic++;
	q[1].version++;
	q[2].rails = 0;
	q[3].rails = MST_RAILS_MAX + 1;
	q[4].rail = 1;
	q[5].rail = UINT8_MAX;
	q[6].up_bytes = MST_VERBS_BYTES_MAX + 1;
	q[7].down_bytes = UINT64_MAX;
	q[8].up_credits = MST_VERBS_CREDITS_MAX + 1;
	q[9].down_credits = UINT32_MAX;
	for (int i = 0; i < 10; i++) {
		struct raw_caller c;
		call(&h, &c, &q[i]);
		expect_answer(&h, &c, errors[i]);
		caller_close(&c);
	}
	expect_open(&h);
	target_close(&h);
}

/* What is cut off the connection manager fills up with zeroes. */
static void short_requests_are_refused(void)
{
	struct mst_verbs_request good = request_of(&usual_lanes);
	static const uint8_t lengths[] = { 0, 3, 5, 6 }; /* 6: without rails */
	struct verbs_target h = target_open();

	for (int i = 0; i < 4; i++) {
		struct raw_caller c;
		call_at(&h, 0, &c, &good, lengths[i]);
		expect_answer(&h, &c, i < 3 && lengths[i] < 5 ? -EPROTONOSUPPORT : -EPROTO);
		caller_close(&c);
	}
	expect_open(&h);
	target_close(&h);
}

static void rail_that_comes_twice_is_refused(void)
{
	struct mst_verbs_request q = request_of(&usual_lanes);
	struct verbs_target h = target_open();
	struct raw_caller first, second, contrary, other;
	struct mst_link_request request;

	q.rails = 2;
	call(&h, &first, &q);
	mst_sleep_ns(100 * MST_MS);
	CU_ASSERT_EQUAL(mst_verbs.listener->next_request(h.listener, &request, UT_UNREAD), -EAGAIN);
	call(&h, &second, &q);
	expect_answer(&h, &second, -EPROTO);
	q.rails = 3; /* one token is one caller, which has said 2 */
	q.rail = 2;
	call(&h, &contrary, &q);
	expect_answer(&h, &contrary, -EPROTO);
	q.rails = 2;
	q.rail = 1; /* the first goes on */
	call(&h, &other, &q);
	CU_ASSERT_EQUAL_FATAL(house_next_request(&h, &request), 0);
	CU_ASSERT_EQUAL(memcmp(request.token, q.token, sizeof(q.token)), 0);
	CU_ASSERT_EQUAL(request.from.count, 2);
	CU_ASSERT_EQUAL(mst_verbs.listener->answer(h.listener, &request, NULL, UT_UNREAD), 0);
	expect_answer(&h, &first, -EACCES);
	expect_answer(&h, &other, -EACCES);
	expect_open(&h);
	caller_close(&first);
	caller_close(&second);
	caller_close(&contrary);
	caller_close(&other);
	target_close(&h);
}

static void rail_that_never_comes_is_not_waited_for(void)
{
	struct mst_verbs_request q = request_of(&usual_lanes);
	struct verbs_target h = target_open();
	struct mst_link_request request;
	struct raw_caller c;

	q.rails = 2;
	call(&h, &c, &q);
	mst_sleep_ns(100 * MST_MS);
	CU_ASSERT_EQUAL(mst_verbs.listener->next_request(h.listener, &request, UT_UNREAD), -EAGAIN);
	uint64_t begin = mst_now_ns();
	expect_open(&h); /* meanwhile, unless that took as long */
	struct pollfd answered = { .fd = c.channel->fd, .events = POLLIN };
	CU_ASSERT(poll(&answered, 1, 0) == 0 || mst_now_ns() - begin > 4 * MST_SECOND);
	expect_answer(&h, &c, -ETIMEDOUT);
	uint64_t took = mst_now_ns() - begin;
	CU_ASSERT(took > 4 * MST_SECOND && took < PATIENCE_NS);
	expect_open(&h);
	caller_close(&c);
	target_close(&h);
}

/* What the owner of a listener expects, and from where it was asked for last. */
struct expectation {
	struct mst_origins announced;
	struct mst_origin from;
};

static bool expects(void *ctx, const uint8_t token[MST_TOKEN_LEN], const struct mst_origin *from)
{
	struct expectation *e = ctx;
	struct mst_verbs_request q = request_of(&usual_lanes);
	struct mst_origins origins = { 1, { *from } };

	e->from = *from;
	return memcmp(token, q.token, sizeof(q.token)) == 0 &&
	       mst_origins_cover(&e->announced, &origins);
}

static struct mst_origins announce(const char *addresses)
{
	struct mst_fabric fabric = MST_FABRIC_DEFAULT;
	struct mst_origins origins;

	fabric.addresses = addresses;
	CU_ASSERT_EQUAL(mst_origins_own(&fabric, &origins), 0);
	return origins;
}

/* The callers are on this host, and have chosen none of its addresses themselves: what the kernel
 * has chosen is among those that the host announces, also where it calls itself. No host has
 * the addresses that are reserved for documentation. A caller that is not expected takes no place:
 * the rail that it brings is not missed when the one comes that is. */
static void request_is_shown_if_all_rails_come_from_announced_addresses(void)
{
	struct expectation e = { announce("192.0.2.1,2001:db8::1"), { { 0 } } };
	struct mst_verbs_request q = request_of(&usual_lanes);
	struct verbs_target h = target_open();
	struct raw_caller thief, first, second;
	struct mst_link_request request;
	struct mst_origin own;

	h.listener->filter = (struct mst_link_filter){ expects, &e };
	q.rails = 2;
	call(&h, &thief, &q);
	expect_answer(&h, &thief, -EACCES);
	e.announced = announce(NULL);
	call(&h, &first, &q);
	q.rail = 1;
	call(&h, &second, &q);
	CU_ASSERT_EQUAL_FATAL(house_next_request(&h, &request), 0);
	CU_ASSERT_EQUAL_FATAL(request.from.count, 2);
	CU_ASSERT_TRUE(mst_origin_of(rdma_get_local_addr(second.id), &own));
	CU_ASSERT_EQUAL(memcmp(&request.from.at[1], &own, sizeof(own)), 0);
	CU_ASSERT_EQUAL(memcmp(&e.from, &own, sizeof(own)), 0);
	CU_ASSERT_TRUE(mst_origins_cover(&e.announced, &request.from));
	CU_ASSERT_EQUAL(mst_verbs.listener->answer(h.listener, &request, NULL, UT_UNREAD), 0);
	expect_answer(&h, &first, -EACCES);
	expect_answer(&h, &second, -EACCES);
	caller_close(&thief);
	caller_close(&first);
	caller_close(&second);
	target_close(&h);
}

/* Opens @count callers. Each has a rail that never comes, and a token of its own. */
static void callers_open(const struct verbs_target *h, struct raw_caller *c, int count)
{
	struct mst_verbs_request q = request_of(&usual_lanes);

	q.rails = 2;
	for (int i = 0; i < count; i++) {
		q.token[0] = (uint8_t)i;
		call(h, &c[i], &q);
	}
}

static void callers_that_never_complete_keep_nobody_out(void)
{
	static struct raw_caller callers[200];
	struct verbs_target h = target_open();

	callers_open(&h, callers, 200);
	uint64_t begin = mst_now_ns();
	expect_open(&h);
	printf("(after 200 callers: %.1f s) ", (double)(mst_now_ns() - begin) / 1e9);
	for (int i = 0; i < 200; i++)
		caller_close(&callers[i]);
	expect_open(&h);
	target_close(&h);
}

static void callers_that_have_gone_keep_nobody_out(void)
{
	static struct raw_caller callers[200];
	struct verbs_target h = target_open();

	callers_open(&h, callers, 200);
	for (int i = 0; i < 200; i++)
		caller_close(&callers[i]);
	uint64_t begin = mst_now_ns();
	expect_open(&h);
	printf("(after one that has gone: %.1f s) ", (double)(mst_now_ns() - begin) / 1e9);
	target_close(&h);
}

static void caller_that_dies_is_not_let_in(void)
{
	struct mst_verbs_request q = request_of(&usual_lanes);
	struct verbs_target h = target_open();

	for (int i = 0; i < 2; i++) {
		struct mst_link *link = NULL;
		struct mst_link_request request;
		struct raw_caller c;
		call(&h, &c, &q);
		if (i == 0) { /* before it is seen */
			mst_sleep_ns(100 * MST_MS);
			caller_hang_up(&c);
			mst_sleep_ns(100 * MST_MS);
		}
		int rc = i == 0 ? mst_verbs.listener->next_request(h.listener, &request, UT_UNREAD)
				: house_next_request(&h, &request);
		CU_ASSERT(rc == 0 || (i == 0 && rc == -EAGAIN));
		caller_hang_up(&c); /* before it is answered, and that is heard at the listener */
		struct pollfd heard = { .fd = mst_verbs.listener->fd(h.listener),
					.events = POLLIN };
		(void)poll(&heard, 1, 2000);
		mst_sleep_ns(100 * MST_MS);
		if (rc == 0)
			CU_ASSERT_EQUAL(
				mst_verbs.listener->answer(h.listener, &request, &link, UT_UNREAD),
				-EPIPE);
		CU_ASSERT_PTR_NULL(link);
		caller_close(&c);
		expect_open(&h);
	}
	target_close(&h);
}

/* It is let in, and dies, or says no, before it has heard so. */
static void caller_that_dies_when_let_in_is_lost(void)
{
	struct mst_verbs_request q = request_of(&usual_lanes);
	struct verbs_target h = target_open();

	for (int attached = 0; attached < 2; attached++) {
		struct mst_link *link = NULL;
		struct mst_link_request request;
		struct raw_caller c;
		call(&h, &c, &q);
		CU_ASSERT_EQUAL_FATAL(house_next_request(&h, &request), 0);
		CU_ASSERT_EQUAL_FATAL(
			mst_verbs.listener->answer(h.listener, &request, &link, UT_UNREAD), 0);
		CU_ASSERT_EQUAL(next_event(&c, 60000), RDMA_CM_EVENT_CONNECT_RESPONSE);
		CU_ASSERT_EQUAL(c.answer.error, 0);
		if (attached)
			CU_ASSERT_EQUAL(mst_verbs.attach(h.net, link, UT_UNREAD), 0);
		caller_hang_up(&c);
		if (!attached) {
			mst_sleep_ns(100 * MST_MS);
			CU_ASSERT_EQUAL(
				mst_verbs.listener->next_request(h.listener, &request, UT_UNREAD),
				-EAGAIN);
			CU_ASSERT_EQUAL(mst_verbs.attach(h.net, link, UT_UNREAD), 0);
		}
		struct heard heard = house_listen(&h, link, NULL, PATIENCE_NS);
		CU_ASSERT_EQUAL(heard.lost, 1);
		CU_ASSERT_EQUAL(heard.error, -EPIPE);
		CU_ASSERT(link->why.text[0] != '\0');
		mst_verbs.detach(link);
		mst_verbs.link_free(link);
		caller_close(&c);
		expect_open(&h);
	}
	target_close(&h);
}

/* ---- what is no listener of this muster ---- */

struct verbs_impostor {
	const char *name;
	bool accepts;
	struct mst_verbs_answer answer;
	uint8_t bytes;
	int error; /* that dialling comes to */
};

/* @address is of the target; the impostor listens beside it. */
static void expect_impostor_found_out(const struct verbs_target *h, const struct verbs_impostor *it)
{
	struct dialling d = { .net = attacker_net() };
	struct mst_endpoints at;
	char address[MST_ADDRESS_LEN];
	struct raw_caller listener, c;

	caller_open(&listener);
	CU_ASSERT_EQUAL_FATAL(mst_endpoints_parse(h->listener->address, &mst_verbs, &at, UT_UNREAD),
			      0);
	at.at[0].v4.sin_port = 0; /* at the same place in both families */
	CU_ASSERT_EQUAL_FATAL(rdma_bind_addr(listener.id, &at.at[0].any), 0);
	CU_ASSERT_EQUAL_FATAL(rdma_listen(listener.id, 1), 0);
	at.at[0].v4.sin_port = rdma_get_src_port(listener.id);
	CU_ASSERT_EQUAL(mst_endpoints_print(&at, mst_verbs.prefix, address, sizeof(address)), 0);
	dialling_begin(&d, address, &usual_lanes);
	c = listener;
	CU_ASSERT_EQUAL_FATAL(next_event(&c, 60000), RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_conn_param conn = { .private_data = &it->answer,
					.private_data_len = it->bytes,
					.qp_num = NO_QUEUE_PAIR };
	int rc = it->accepts ? rdma_accept(c.id, &conn) : rdma_reject(c.id, &it->answer, it->bytes);
	CU_ASSERT_EQUAL(rc, 0);
	CU_ASSERT_EQUAL(dialling_end(&d), it->error);
	if (d.rc != it->error)
		printf("(%s: %d, %s) ", it->name, d.rc, d.why.text);
	CU_ASSERT(d.why.text[0] != '\0');
	caller_hang_up(&c);
	caller_close(&listener);
	mst_verbs.net_close(d.net);
}

static void impostors_are_found_out(void)
{
	const struct mst_verbs_answer good = { .magic = MST_VERBS_MAGIC,
					       .version = MST_VERBS_VERSION,
					       .mtu = IBV_MTU_1024 };
	struct verbs_impostor it[] = {
		{ "refuses, version", false, good, sizeof(good), -EPROTONOSUPPORT },
		{ "refuses, no reason", false, good, sizeof(good), -EPROTO },
		{ "refuses, praise", false, good, sizeof(good), -EPROTO },
		{ "refuses, nothing said", false, good, 0, -ECONNREFUSED },
		{ "accepts, version", true, good, sizeof(good), -EPROTONOSUPPORT },
		{ "accepts, magic", true, good, sizeof(good), -EPROTO },
		{ "accepts, nothing said", true, good, 0, -EPROTO },
		{ "accepts, takes nothing", true, good, sizeof(good), -EHOSTUNREACH },
	};
	struct verbs_target h = target_open();

	it[0].answer.version = it[4].answer.version = 99;
	it[0].answer.error = -EPROTONOSUPPORT;
	it[2].answer.error = 1;
	it[5].answer.magic++;
	for (size_t i = 0; i < sizeof(it) / sizeof(it[0]); i++)
		expect_impostor_found_out(&h, &it[i]);
	target_close(&h);
}

CU_TestInfo verbs_listener_cases[] = {
	{ "requests out of order are refused", requests_out_of_order_are_refused },
	{ "short requests are refused", short_requests_are_refused },
	{ "a rail that comes twice is refused", rail_that_comes_twice_is_refused },
	{ "a request is shown if all rails come from announced addresses",
	  request_is_shown_if_all_rails_come_from_announced_addresses },
	{ "a rail that never comes is not waited for", rail_that_never_comes_is_not_waited_for },
	{ "callers that never complete keep nobody out",
	  callers_that_never_complete_keep_nobody_out },
	{ "callers that have gone keep nobody out", callers_that_have_gone_keep_nobody_out },
	{ "a caller that dies is not let in", caller_that_dies_is_not_let_in },
	{ "a caller that dies when let in is lost", caller_that_dies_when_let_in_is_lost },
	{ "impostors are found out", impostors_are_found_out },
	CU_TEST_INFO_NULL,
};
