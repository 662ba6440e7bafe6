/* SPDX-License-Identifier: MIT */
/*
 * Every call the verbs transport makes fails in turn: the 1st, the 2nd, ... until there is none
 * left to fail. Each time it says so, keeps nothing, and does the same again without a fault.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/transport/transport.h"
#include "tests/transport/verbs/faults.h"
#include "tests/ut.h"

#define PATIENCE_NS (60 * MST_SECOND)
#define SOON_NS (20 * MST_SECOND) /* for one end to hear that the other has failed */
#define CALLS_MAX 400u            /* of one step, far more than there are */
#define PUBLISHED 4096
#define READ_ONLY_BYTES 65536

static const struct mst_lanes lanes = { 4096, 8192, 4, 4 };

/* What a call came to. */
struct outcome {
	int rc;
	char why[MST_WHY_LEN];
};

static struct outcome outcome_of(int rc)
{
	struct outcome o = { .rc = rc };

	(void)snprintf(o.why, sizeof(o.why), "%s", mst_why());
	return o;
}

/* An error, with a sentence unless its number says it all. */
static void expect_told(const struct outcome *o, enum fault f, unsigned n)
{
	bool told = o->rc < 0 && o->rc > -4096 && (o->why[0] != '\0' || o->rc == -ENOMEM);

	if (!told)
		printf("\n    call %u, %s: %d \"%s\"", n, fault_name(f), o->rc, o->why);
	CU_ASSERT(told);
}

static struct mst_net *open_net(const struct mst_fabric *fabric, struct outcome *o)
{
	struct mst_net_cfg cfg = { .published_bytes = PUBLISHED, .links_max = 4, .fabric = fabric };
	struct mst_net *net = NULL;

	*o = outcome_of(mst_verbs.net_open(&cfg, &net));
	return net;
}

static struct mst_net *must_open_net(const struct mst_fabric *fabric)
{
	struct outcome o;
	struct mst_net *net = open_net(fabric, &o);

	CU_ASSERT_PTR_NOT_NULL_FATAL(net);
	return net;
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
		struct outcome o;
		faults_arm(n);
		struct mst_net *net = open_net(NULL, &o);
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

static uint8_t own[(size_t)1 << 20];

/* On the same net the listener opens the next time, with the region that there is. Return: what
 * failed. */
static enum fault listener_failing_at(const struct mst_fabric *fabric, unsigned n)
{
	struct mst_net *net = must_open_net(fabric);
	struct mst_link_listener *listener = NULL;
	struct mst_region *region; /* its net unregisters it */

	CU_ASSERT_EQUAL(mst_region_register(&net->domain, own, sizeof(own), &region), 0);
	faults_arm(n);
	struct outcome o = outcome_of(mst_verbs.listener->open(net, &listener));
	enum fault f = faults_disarm();
	if (o.rc != 0) {
		expect_told(&o, f, n);
		CU_ASSERT_PTR_NULL(listener);
		CU_ASSERT_NOT_EQUAL(f, FAULT_COUNT);
		CU_ASSERT_EQUAL(mst_verbs.listener->open(net, &listener), 0);
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

static struct outcome register_failing_with(struct mst_net *net, unsigned n, int error,
					    enum fault *f)
{
	struct mst_region *region = NULL;

	faults_arm_with(n, error);
	struct outcome o = outcome_of(mst_region_register(&net->domain, own, sizeof(own), &region));
	*f = faults_disarm();
	CU_ASSERT_EQUAL(region == NULL, o.rc != 0);
	CU_ASSERT_EQUAL(mst_region_unregister(region), 0);
	return o;
}

static struct outcome register_failing_at(struct mst_net *net, unsigned n, enum fault *f)
{
	return register_failing_with(net, n, 0, f);
}

static void every_call_of_a_registration_may_fail(void)
{
	struct mst_net *net = must_open_net(NULL);
	struct mst_link_listener *listener = NULL;
	enum fault f = 0;
	unsigned n = 0;

	CU_ASSERT_EQUAL_FATAL(mst_verbs.listener->open(net, &listener), 0);
	while (f != FAULT_COUNT && ++n < CALLS_MAX) {
		struct holdings before = holdings_now();
		struct outcome o = register_failing_at(net, n, &f);
		if (o.rc != 0)
			expect_told(&o, f, n);
		CU_ASSERT(holdings_are(&before));
	}
	tell_of_ladder("registration", n - 1);
	mst_verbs.listener->close(listener);
	mst_verbs.net_close(net);
}

/* Which call of a registration it is. */
static unsigned place_of(struct mst_net *net, enum fault which)
{
	enum fault f;
	unsigned n = 0;

	do
		(void)register_failing_at(net, ++n, &f);
	while (f != which && f != FAULT_COUNT);
	CU_ASSERT_EQUAL(f, which);
	return n;
}

static void expect_kept_from_children(struct mst_net *net, enum fault which, const char *words)
{
	struct holdings before = holdings_now();
	enum fault f;
	struct outcome o = register_failing_at(net, place_of(net, which), &f);

	CU_ASSERT_EQUAL(f, which);
	CU_ASSERT_EQUAL(o.rc, -ENOTSUP);
	CU_ASSERT_PTR_NOT_NULL(strstr(o.why, words));
	CU_ASSERT(holdings_are(&before));
	CU_ASSERT_PTR_NULL(net->domain.regions);
}

/* An old kernel, or one that does not give pinned pages back, would let a forked child die. */
static void memory_that_children_would_lose_is_refused(void)
{
	struct mst_net *net = must_open_net(NULL);
	struct mst_link_listener *listener = NULL;

	CU_ASSERT_EQUAL_FATAL(mst_verbs.listener->open(net, &listener), 0);
	expect_kept_from_children(net, FAULT_ibv_is_fork_initialized,
				  "forked children would lose it");
	expect_kept_from_children(net, FAULT_madvise, "no memory that a forked child can have");
	mst_verbs.listener->close(listener);
	mst_verbs.net_close(net);
}

/* One registration by a user without rights, whose limit is what counts. */
struct nobody {
	struct mst_net *net;
	unsigned n; /* the call that fails for want of memory; 0: none */
	struct mst_region *region;
	struct outcome outcome;
	long became; /* as setresuid() */
};

/* Only this thread is that user. The kernel takes no request on a file from a process that has
 * changed its user since the file was opened, so a listener could not even be closed after
 * setresuid() of the C library, which is for all threads. */
static void *register_as_nobody(void *arg)
{
	struct nobody *n = arg;

	n->became = syscall(SYS_setresuid, -1, 65534, -1);
	faults_arm_with(n->n, ENOMEM);
	n->outcome = outcome_of(mst_region_register(&n->net->domain, own, sizeof(own), &n->region));
	return NULL;
}

static struct outcome register_unprivileged(struct mst_net *net, rlim_t limit, unsigned n)
{
	struct nobody nobody = { .net = net, .n = n };
	struct rlimit was, low;
	pthread_t thread;

	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_MEMLOCK, &was), 0);
	low = (struct rlimit){ limit, limit < was.rlim_max ? was.rlim_max : limit };
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_MEMLOCK, &low), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, register_as_nobody, &nobody), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_join(thread, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_MEMLOCK, &was), 0);
	CU_ASSERT_EQUAL(nobody.became, 0);
	CU_ASSERT_PTR_NULL(nobody.region);
	return nobody.outcome;
}

static void expect_blamed(const struct outcome *o, const char *words, const char * not )
{
	CU_ASSERT_EQUAL(o->rc, -ENOMEM);
	CU_ASSERT_PTR_NOT_NULL(strstr(o->why, words));
	CU_ASSERT_PTR_NULL(strstr(o->why, not ));
}

/* The kernel has one number for both. As root: whom the limit concerns, and whom it does not. */
static void a_limit_is_told_from_a_device_that_is_full(void)
{
	static const char *const limit = "may lock 65536 bytes of memory and has pinned";
	static const char *const device = "no room for another region";
	struct mst_net *net = must_open_net(NULL);
	struct mst_link_listener *listener = NULL;
	enum fault f;

	CU_ASSERT_EQUAL_FATAL(mst_verbs.listener->open(net, &listener), 0);
	unsigned n = place_of(net, FAULT_ibv_reg_mr);
	if (geteuid() == 0) {
		struct outcome o = register_unprivileged(net, 65536, 0);
		expect_blamed(&o, limit, device);
		CU_ASSERT_PTR_NOT_NULL(strstr(o.why, "muster doctor"));
		o = register_unprivileged(net, (rlim_t)1 << 30, n);
		expect_blamed(&o, device, "may lock");
		o = register_failing_with(net, n, ENOMEM, &f);
		expect_blamed(&o, device, "may lock");
		CU_ASSERT_EQUAL(f, FAULT_ibv_reg_mr);
	}
	mst_verbs.listener->close(listener);
	mst_verbs.net_close(net);
}

static void memory_that_cannot_be_pinned_is_refused_in_words(void)
{
	struct mst_net *net = must_open_net(NULL);
	struct mst_link_listener *listener = NULL;
	struct mst_region *region = NULL;
	uint8_t *hole = mmap(NULL, 2 * sizeof(own), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CU_ASSERT_EQUAL_FATAL(munmap(hole + sizeof(own), sizeof(own)), 0);
	CU_ASSERT_EQUAL_FATAL(mst_verbs.listener->open(net, &listener), 0);
	struct outcome o = outcome_of(
		mst_region_register(&net->domain, hole, 2 * sizeof(own), &region));
	CU_ASSERT_EQUAL(o.rc, -EFAULT);
	CU_ASSERT_PTR_NOT_NULL(strstr(o.why, "not all of it is mapped"));
	CU_ASSERT_EQUAL(mst_region_register(&net->domain, own, sizeof(own), &region), 0);
	CU_ASSERT_EQUAL(mst_region_unregister(region), 0);
	munmap(hole, sizeof(own));
	mst_verbs.listener->close(listener);
	mst_verbs.net_close(net);
}

/* ---- memory that may only be read ---- */

/* Linux before 6.2 pins memory as if the device wrote to it, even if it is only read: of a private
 * mapping a copy is pinned, of a shared one nothing (ib_umem_get()). */
static bool pins_as_if_written(void)
{
	unsigned major = 0, minor = 0;
	struct utsname name;

	CU_ASSERT_EQUAL_FATAL(uname(&name), 0);
	CU_ASSERT_EQUAL_FATAL(sscanf(name.release, "%u.%u", &major, &minor), 2);
	return major < 6 || (major == 6 && minor < 2);
}

static struct outcome register_once(struct mst_net *net, void *base)
{
	struct mst_region *region = NULL;
	struct outcome o = outcome_of(
		mst_region_register(&net->domain, base, READ_ONLY_BYTES, &region));

	CU_ASSERT_EQUAL(mst_region_unregister(region), 0);
	return o;
}

/* A file that is mapped shared, by a descriptor that may not write. */
static void *map_read_only_file(void)
{
	FILE *f = tmpfile();
	char path[40];

	CU_ASSERT_FATAL(f != NULL && ftruncate(fileno(f), READ_ONLY_BYTES) == 0);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(f));
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *at = mmap(NULL, READ_ONLY_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	CU_ASSERT_FATAL(fd >= 0 && at != MAP_FAILED);
	close(fd);
	fclose(f);
	return at;
}

static void memory_that_may_only_be_read_is_pinned_if_it_is_private(void)
{
	struct mst_net *net = must_open_net(NULL);
	struct mst_link_listener *listener = NULL;
	void *of_own = mmap(NULL, READ_ONLY_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *of_file = map_read_only_file();

	CU_ASSERT_FATAL(of_own != MAP_FAILED);
	CU_ASSERT_EQUAL_FATAL(mst_verbs.listener->open(net, &listener), 0);
	CU_ASSERT_EQUAL(register_once(net, of_own).rc, 0);
	struct outcome o = register_once(net, of_file);
	CU_ASSERT(o.rc == -EFAULT || (o.rc == 0 && !pins_as_if_written()));
	CU_ASSERT(o.rc == 0 || strstr(o.why, "may not be written: copy it") != NULL);
	munmap(of_own, READ_ONLY_BYTES);
	munmap(of_file, READ_ONLY_BYTES);
	mst_verbs.listener->close(listener);
	mst_verbs.net_close(net);
}

/* ---- a link ---- */

enum fault_step {
	DIAL,   /* by the caller */
	TALK,   /* of the caller, over the link */
	ANSWER, /* by the target: letting in, and attaching */
};

/* Who dials, in a thread of its own: again when it has failed. */
struct faulty_caller {
	pthread_t thread;
	const char *address;
	enum fault_step step;
	unsigned n; /* the call that fails, of DIAL or TALK */
	enum fault failed;
	struct outcome first, second; /* second: 1 if there was no need */
	uint64_t first_ns;
	_Atomic bool done;
};

/* What is put comes back. */
static struct outcome talk(struct mst_net *net, struct mst_link *link, uint32_t imm)
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
	struct outcome o = { .rc = rc == 1 ? -ETIME : rc };
	(void)snprintf(o.why, sizeof(o.why), "%s", link->why);
	return o;
}

static struct outcome dial_and_talk(struct faulty_caller *c, struct mst_net *net,
				    const struct mst_dial *dial, unsigned n)
{
	struct mst_link *link = NULL;

	if (c->step == DIAL)
		faults_arm(n);
	struct outcome o = outcome_of(mst_verbs.dial(net, dial, &link));
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
static struct outcome try_link(struct faulty_caller *c, struct mst_net *net, unsigned n)
{
	static uint8_t results[4096];
	static uint64_t tokens; /* none is used twice */
	struct mst_dial dial = { .address = c->address, .lanes = lanes, .timeout_ns = PATIENCE_NS };
	struct mst_region *region = NULL;

	tokens++;
	memcpy(dial.token, &tokens, sizeof(tokens));
	CU_ASSERT_EQUAL(mst_region_register_target(&net->domain, results, sizeof(results), &region),
			0);
	dial.export = (struct mst_export){ region, 0, sizeof(results), sizeof(results) };
	struct outcome o = dial_and_talk(c, net, &dial, n);
	CU_ASSERT_EQUAL(mst_region_unregister(region), 0);
	return o;
}

static void *call(void *arg)
{
	struct faulty_caller *c = arg;
	struct mst_net *net = must_open_net(NULL);
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
	struct outcome answered;
};

static void let_in(struct faulty_acceptor *h, const struct mst_link_request *request)
{
	struct mst_link *link = NULL;

	faults_arm(h->n);
	struct outcome o = outcome_of(mst_verbs.listener->answer(h->listener, request, &link));
	if (o.rc == 0)
		o = outcome_of(mst_verbs.attach(h->net, link));
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
		if (mst_verbs.listener->next_request(h->listener, &request) == 0)
			let_in(h, &request);
		if (mst_verbs.poll(h->net, &ev, 1) == 1)
			answer(h, &ev);
		else
			(void)poll(&pfd, 1, 1);
	}
	CU_ASSERT_EQUAL(h->links, 0);
}

/* Of a caller whose second rail never came the first is kept for some seconds. */
static bool is_tidy(struct faulty_acceptor *h, const struct holdings *wanted)
{
	uint64_t end = mst_now_ns() + 2 * SOON_NS;
	struct mst_link_request request;

	while (!holdings_same(wanted) && mst_now_ns() < end) {
		mst_sleep_ns(20 * MST_MS);
		CU_ASSERT_EQUAL(mst_verbs.listener->next_request(h->listener, &request), -EAGAIN);
	}
	return holdings_are(wanted);
}

static void house_open(struct faulty_acceptor *h, const char *addresses)
{
	*h = (struct faulty_acceptor){ .fabric = MST_FABRIC_DEFAULT };
	h->fabric.addresses = addresses;
	h->net = must_open_net(&h->fabric);
	CU_ASSERT_EQUAL_FATAL(mst_verbs.listener->open(h->net, &h->listener), 0);
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
			       fault_name(f), c.first.why, c.second.rc, c.second.why);
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
	{ "memory that forked children would lose is refused",
	  memory_that_children_would_lose_is_refused },
	{ "memory that cannot be pinned is refused in words",
	  memory_that_cannot_be_pinned_is_refused_in_words },
	{ "memory that may only be read is pinned if it is private",
	  memory_that_may_only_be_read_is_pinned_if_it_is_private },
	{ "a limit is told from a device that is full",
	  a_limit_is_told_from_a_device_that_is_full },
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
int main(void)
{
	struct mst_link_listener *listener = NULL;
	struct outcome o;
	struct mst_net *net = open_net(NULL, &o);

	if (net != NULL)
		o = outcome_of(mst_verbs.listener->open(net, &listener));
	if (o.rc == 0)
		mst_verbs.listener->close(listener);
	mst_verbs.net_close(net);
	if (o.rc != 0) {
		printf("skipped: %s\n", o.why);
		return UT_SKIP;
	}
	return ut_main("verbs faults", cases);
}
