/* SPDX-License-Identifier: MIT */
/*
 * Every call the verbs transport makes fails in turn: the 1st, the 2nd, ... until there is none
 * left to fail. Each time it says so, keeps nothing, and does the same again without a fault.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/transport/transport.h"
#include "tests/transport/verbs/ladder.h"
#include "tests/ut.h"

#define PATIENCE_NS (60 * MST_SECOND)
#define SOON_NS (20 * MST_SECOND) /* for one end to hear that the other has failed */
#define CALLS_MAX 400u            /* of one step, far more than there are */

static const struct mst_lanes lanes = { 4096, 8192, 4, 4 };

/* An error, with a sentence unless its number says it all. */
static void expect_told(const struct ladder_outcome *o, enum fault f, unsigned n)
{
	bool told = o->rc < 0 && o->rc > -4096 && (o->why.text[0] != '\0' || o->rc == -ENOMEM);

	if (!told)
		printf("\n    call %u, %s: %d \"%s\"", n, fault_name(f), o->rc, o->why.text);
	CU_ASSERT(told);
}

static void tell_of_ladder(const char *what, unsigned calls)
{
	printf("\n    %s: %u calls failed in turn ", what, calls);
	CU_ASSERT(calls > 1 && calls < CALLS_MAX);
}

/* ---- opening ---- */

static void every_call_of_an_opening_may_fail(void)
{
	enum fault f = 0;
	unsigned n = 0;

	while (f != FAULT_COUNT && ++n < CALLS_MAX) {
		struct holdings before = holdings_now();
		struct ladder_outcome o;
		faults_arm(n);
		struct mst_net *net = ladder_open_net(NULL, &o);
		f = faults_disarm();
		if (net == NULL)
			expect_told(&o, f, n);
		CU_ASSERT_EQUAL(net == NULL, o.rc != 0);
		CU_ASSERT(net != NULL || f != FAULT_COUNT);
		mst_verbs.net_close(net);
		CU_ASSERT(holdings_are(&before));
	}
	tell_of_ladder("net", n - 1);
}

/* On the same net the listener opens the next time, with the region that there is. Return: what
 * failed. */
static enum fault listener_failing_at(const struct mst_fabric *fabric, unsigned n)
{
	struct mst_net *net = ladder_net(fabric);
	struct mst_link_listener *listener = NULL;
	struct mst_region *region; /* its net unregisters it */

	CU_ASSERT_EQUAL(mst_region_register(&net->domain, ladder_own, sizeof(ladder_own), &region,
					    UT_UNREAD),
			0);
	faults_arm(n);
	struct ladder_outcome o = { 0 };
	o.rc = mst_verbs.listener->open(net, &listener, &o.why);
	enum fault f = faults_disarm();
	if (o.rc != 0) {
		expect_told(&o, f, n);
		CU_ASSERT_PTR_NULL(listener);
		CU_ASSERT_NOT_EQUAL(f, FAULT_COUNT);
		CU_ASSERT_EQUAL(mst_verbs.listener->open(net, &listener, UT_UNREAD), 0);
	}
	mst_verbs.listener->close(listener);
	mst_verbs.net_close(net);
	return f;
}

static void every_call_of_a_listener_may_fail(void)
{
	enum fault f = 0;
	unsigned n = 0;

	while (f != FAULT_COUNT && ++n < CALLS_MAX) {
		struct holdings before = holdings_now();
		f = listener_failing_at(NULL, n);
		CU_ASSERT(holdings_are(&before));
	}
	tell_of_ladder("listener", n - 1);
}

/* ---- registered memory ---- */

static void every_call_of_a_registration_may_fail(void)
{
	struct mst_net *net = ladder_net(NULL);
	struct mst_link_listener *listener = NULL;
	enum fault f = 0;
	unsigned n = 0;

	CU_ASSERT_EQUAL_FATAL(mst_verbs.listener->open(net, &listener, UT_UNREAD), 0);
	while (f != FAULT_COUNT && ++n < CALLS_MAX) {
		struct holdings before = holdings_now();
		struct ladder_outcome o = ladder_register(net, n, 0, &f);
		if (o.rc != 0)
			expect_told(&o, f, n);
		CU_ASSERT(holdings_are(&before));
	}
	tell_of_ladder("registration", n - 1);
	mst_verbs.listener->close(listener);
	mst_verbs.net_close(net);
}

/* ---- a link ---- */

enum fault_step {
	DIAL,   /* by the caller */
	TALK,   /* of the caller, over the link */
	ANSWER, /* by the target: letting in, and attaching */
};

/* A caller, in a thread of its own. It dials again when it has failed. */
struct faulty_caller {
	pthread_t thread;
	const char *address;
	enum fault_step step;
	unsigned n; /* the call that fails, of DIAL or TALK */
	enum fault failed;
	struct ladder_outcome first, second; /* second: 1 if there was no need */
	uint64_t first_ns;
	_Atomic bool done;
};

/* What is put comes back. */
static struct ladder_outcome talk(struct mst_net *net, struct mst_link *link, uint32_t imm)
{
	struct mst_put put = { .src = "good day", .bytes = 8, .notify = true, .imm = imm };
	struct mst_net_event ev = { 0 };
	uint64_t end = mst_now_ns() + PATIENCE_NS;
	int rc = mst_verbs.put(link, &put);

	while (rc == 1 && mst_now_ns() < end) {
		if (mst_verbs.poll(net, &ev, 1) == 0) {
			(void)mst_verbs.wait(net, 10 * MST_MS);
			continue;
		}
		bool right = ev.kind == MST_ARRIVED && ev.imm == imm &&
			     memcmp(link->inbound, put.src, put.bytes) == 0;
		rc = ev.kind == MST_LOST ? ev.error : right ? 0 : -EBADMSG;
	}
	struct ladder_outcome o = { .rc = rc == 1 ? -ETIME : rc };
	mst_reason_set(&o.why, "%s", link->why.text);
	return o;
}

static struct ladder_outcome dial_and_talk(struct faulty_caller *c, struct mst_net *net,
					   const struct mst_dial *dial, unsigned n)
{
	struct mst_link *link = NULL;
	struct ladder_outcome o = { 0 };

	if (c->step == DIAL)
		faults_arm(n);
	o.rc = mst_verbs.dial(net, dial, &link, &o.why);
	if (c->step == DIAL)
		c->failed = faults_disarm();
	CU_ASSERT_EQUAL(link == NULL, o.rc != 0);
	if (link == NULL)
		return o;
	if (c->step == TALK)
		faults_arm(n);
	o = talk(net, link, n);
	if (c->step == TALK)
		c->failed = faults_disarm();
	mst_verbs.detach(link);
	mst_verbs.link_free(link);
	return o;
}

/* Half of the down lane is exported, and is free again however the link ends. */
static struct ladder_outcome try_link(struct faulty_caller *c, struct mst_net *net, unsigned n)
{
	static uint8_t results[4096];
	static uint64_t tokens; /* none is used twice */
	struct mst_dial dial = { .address = c->address, .lanes = lanes, .timeout_ns = PATIENCE_NS };
	struct mst_region *region = NULL;

	tokens++;
	memcpy(dial.token, &tokens, sizeof(tokens));
	CU_ASSERT_EQUAL(mst_region_register_target(&net->domain, results, sizeof(results), &region,
						   UT_UNREAD),
			0);
	dial.export = (struct mst_export){ region, 0, sizeof(results), sizeof(results) };
	struct ladder_outcome o = dial_and_talk(c, net, &dial, n);
	CU_ASSERT_EQUAL(mst_region_unregister(region, UT_UNREAD), 0);
	return o;
}

static void *call(void *arg)
{
	struct faulty_caller *c = arg;
	struct mst_net *net = ladder_net(NULL);
	uint64_t begin = mst_now_ns();

	c->first = try_link(c, net, c->n);
	c->first_ns = mst_now_ns() - begin;
	c->second.rc = 1;
	if (c->first.rc != 0) {
		enum fault failed = c->failed;
		c->second = try_link(c, net, 0);
		c->failed = failed;
	}
	mst_verbs.net_close(net);
	c->done = true;
	return NULL;
}

struct faulty_acceptor {
	struct mst_fabric fabric;
	char addresses[MST_ADDRESS_LEN]; /* where its rails begin */
	struct mst_net *net;
	struct mst_link_listener *listener;
	int links;
	unsigned n; /* the call of ANSWER that fails, of the first caller only */
	enum fault failed;
	struct ladder_outcome answered;
};

static void let_in(struct faulty_acceptor *h, const struct mst_link_request *request)
{
	struct mst_link *link = NULL;
	struct ladder_outcome o = { 0 };

	faults_arm(h->n);
	o.rc = mst_verbs.listener->answer(h->listener, request, &link, &o.why);
	if (o.rc == 0)
		o.rc = mst_verbs.attach(h->net, link, &o.why);
	enum fault f = faults_disarm();
	if (h->n != 0) {
		h->failed = f;
		h->answered = o;
	}
	h->n = 0;
	if (o.rc == 0)
		h->links++;
	else if (link != NULL)
		mst_verbs.link_free(link);
}

/* Says what it is told. */
static void answer(struct faulty_acceptor *h, const struct mst_net_event *ev)
{
	struct mst_put put = {
		.src = ev->link->inbound, .bytes = 8, .notify = true, .imm = ev->imm
	};

	if (ev->kind == MST_ARRIVED) {
		(void)mst_verbs.put(ev->link, &put); /* else the link is lost, which it will hear */
		return;
	}
	mst_verbs.detach(ev->link);
	mst_verbs.link_free(ev->link);
	h->links--;
}

/* Until the caller is done and all links are gone. */
static void keep_house(struct faulty_acceptor *h, const struct faulty_caller *c)
{
	struct pollfd pfd = { .fd = mst_verbs.listener->fd(h->listener), .events = POLLIN };
	uint64_t end = mst_now_ns() + 4 * PATIENCE_NS;
	struct mst_net_event ev;
	struct mst_link_request request;

	while ((!c->done || h->links > 0) && mst_now_ns() < end) {
		if (mst_verbs.listener->next_request(h->listener, &request, UT_UNREAD) == 0)
			let_in(h, &request);
		if (mst_verbs.poll(h->net, &ev, 1) == 1)
			answer(h, &ev);
		else
			(void)poll(&pfd, 1, 1);
	}
	CU_ASSERT_EQUAL(h->links, 0);
}

/* The first rail of a caller whose second rail never came is kept for some seconds. */
static bool is_tidy(struct faulty_acceptor *h, const struct holdings *wanted)
{
	uint64_t end = mst_now_ns() + 2 * SOON_NS;
	struct mst_link_request request;

	while (!holdings_same(wanted) && mst_now_ns() < end) {
		mst_sleep_ns(20 * MST_MS);
		CU_ASSERT_EQUAL(mst_verbs.listener->next_request(h->listener, &request, UT_UNREAD),
				-EAGAIN);
	}
	return holdings_are(wanted);
}

static void house_open(struct faulty_acceptor *h, const char *addresses)
{
	*h = (struct faulty_acceptor){ .fabric = MST_FABRIC_DEFAULT };
	h->fabric.addresses = addresses;
	h->net = ladder_net(&h->fabric);
	CU_ASSERT_EQUAL_FATAL(mst_verbs.listener->open(h->net, &h->listener, UT_UNREAD), 0);
}

static void house_close(struct faulty_acceptor *h)
{
	mst_verbs.listener->close(h->listener);
	mst_verbs.net_close(h->net);
}

/* Call @n of the step fails. Return: what it was. */
static enum fault link_failing_at(struct faulty_acceptor *h, enum fault_step step, unsigned n)
{
	struct faulty_caller c = { .address = h->listener->address,
				   .step = step,
				   .failed = FAULT_COUNT };

	h->failed = FAULT_COUNT;
	h->answered.rc = 0;
	h->n = step == ANSWER ? n : 0;
	c.n = step == ANSWER ? 0 : n;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&c.thread, NULL, call, &c), 0);
	keep_house(h, &c);
	pthread_join(c.thread, NULL);
	enum fault f = step == ANSWER ? h->failed : c.failed;
	if (h->answered.rc != 0)
		expect_told(&h->answered, f, n);
	CU_ASSERT(h->answered.rc == 0 || c.first.rc != 0);
	if (c.first.rc != 0) {
		expect_told(&c.first, f, n);
		CU_ASSERT(f != FAULT_COUNT);
		CU_ASSERT(c.first_ns < SOON_NS);
		if (c.second.rc != 0)
			printf("\n    after call %u, %s, and \"%s\", again: %d \"%s\"", n,
			       fault_name(f), c.first.why.text, c.second.rc, c.second.why.text);
		CU_ASSERT_EQUAL(c.second.rc, 0);
	}
	return f;
}

static void climb(const char *what, enum fault_step step, const char *addresses)
{
	struct faulty_acceptor h;
	enum fault f = 0;
	unsigned n = 0;
	bool tidy = true;

	house_open(&h, addresses);
	while (tidy && f != FAULT_COUNT && ++n < CALLS_MAX) {
		struct holdings before = holdings_now();
		f = link_failing_at(&h, step, n);
		tidy = is_tidy(&h, &before);
		if (!tidy)
			printf(" after call %u, %s", n, fault_name(f));
		CU_ASSERT(tidy);
	}
	tell_of_ladder(what, n - 1);
	house_close(&h);
}

/* Twice where the listener is. */
static void two_rails(char *out, size_t len)
{
	struct faulty_acceptor h;

	house_open(&h, NULL);
	const char *host = strchr(h.listener->address, ':') + 1;
	const char *port = strrchr(host, ':');
	bool v6 = host[0] == '[';
	int bytes = (int)(port - host) - 2 * v6;
	(void)snprintf(out, len, "%.*s,%.*s", bytes, host + v6, bytes, host + v6);
	house_close(&h);
}

static void every_call_of_a_dial_may_fail(void)
{
	climb("dial", DIAL, NULL);
}

static void every_call_of_an_answer_may_fail(void)
{
	climb("answer", ANSWER, NULL);
}

static void every_request_may_be_refused(void)
{
	climb("talk", TALK, NULL);
}

static void and_of_several_rails(void)
{
	char addresses[MST_ADDRESS_LEN];

	two_rails(addresses, sizeof(addresses));
	climb("dial, two rails", DIAL, addresses);
	climb("answer, two rails", ANSWER, addresses);
}

static void there_was_no_call_that_never_failed(void)
{
	for (int f = 0; f < FAULT_COUNT; f++) {
		enum fault fault = (enum fault)f;
		if (faults_of(fault) == 0)
			printf("\n    %s never failed", fault_name(fault));
		CU_ASSERT(faults_of(fault) > 0);
	}
}

static CU_TestInfo cases[] = {
	{ "every call of an opening may fail", every_call_of_an_opening_may_fail },
	{ "every call of a listener's opening may fail", every_call_of_a_listener_may_fail },
	{ "every call of a registration may fail", every_call_of_a_registration_may_fail },
	{ "every call of a dial may fail, at no cost to the acceptor",
	  every_call_of_a_dial_may_fail },
	{ "every call of an answer may fail, and the caller hears so",
	  every_call_of_an_answer_may_fail },
	{ "every request on a link may be refused, which ends that link",
	  every_request_may_be_refused },
	{ "and every call of a link of several rails", and_of_several_rails },
	{ "no call was left out", there_was_no_call_that_never_failed },
	CU_TEST_INFO_NULL,
};

/* Without a device nothing can be tried. */
int main(int argc, char **argv)
{
	struct mst_link_listener *listener = NULL;
	struct ladder_outcome o;
	struct mst_net *net = ladder_open_net(NULL, &o);

	if (net != NULL)
		o.rc = mst_verbs.listener->open(net, &listener, &o.why);
	if (o.rc == 0)
		mst_verbs.listener->close(listener);
	mst_verbs.net_close(net);
	if (o.rc != 0) {
		printf("skipped: %s\n", o.why.text);
		return UT_SKIP;
	}
	if (argc > 1 && strcmp(argv[1], "register") == 0)
		return ut_main("verbs, registered memory", ladder_register_cases);
	return ut_main("verbs faults", cases);
}
