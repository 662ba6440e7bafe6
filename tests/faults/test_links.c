/* SPDX-License-Identifier: MIT */
/*
 * A link over shared memory, from the opening of both nets to the end of both: each call of the
 * system that either side makes fails in turn. Whatever comes of it, both sides return soon, with
 * an error number or a link that works or is reported lost; nothing stays open; and the next link
 * is none the worse.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/transport/transport.h"
#include "tests/faults/scenario.h"
#include "tests/ut.h"

enum { ACCEPTOR = 1, CONNECTOR = 2 };

#define POINTS_MOST 12u
#define DIAL_NS (300 * MST_MS)        /* where the fault may have left nobody who answers */
#define PATIENCE_NS (60 * MST_SECOND) /* for a run: far beyond what it needs, and DIAL_NS */
#define PUBLISHED 8192u
#define ROUNDS 20u

static const struct mst_transport *const shm = &mst_shm;
static const struct mst_lanes lanes = { 4096, 4096, 4, 4 };

/* One end's life, and what became of it. */
struct link_end {
	struct mst_net *net;
	struct mst_link *link;
	int opened, linked; /* 0 or -errno */
	int lost;           /* the error of MST_LOST */
	unsigned rounds;
};

struct meeting {
	struct link_end acceptor, connector;
	struct mst_link_listener *listener;
	_Atomic bool listener_open, gone; /* the connector has gone */
	_Atomic(const char *) address;
};

static int net_open(struct link_end *s)
{
	struct mst_net_cfg cfg = { .published_bytes = PUBLISHED, .links_max = 1 };

	s->net = NULL;
	s->opened = shm->net_open(&cfg, &s->net, UT_UNREAD);
	scenario_holds((s->opened == 0) == (s->net != NULL), "a failed net is no net");
	return s->opened;
}

/* Waits for one arrival. Return: false: the link is lost, or nothing came. */
static bool arrival(struct link_end *s, uint64_t until_ns)
{
	struct mst_net_event ev;

	while (mst_now_ns() < until_ns) {
		if (shm->poll(s->net, &ev, 1) == 0) {
			(void)shm->wait(s->net, 5 * MST_MS);
			continue;
		}
		if (ev.kind == MST_LOST)
			s->lost = ev.error;
		return ev.kind == MST_ARRIVED;
	}
	return false;
}

static bool say(struct link_end *s, uint32_t imm)
{
	struct mst_put put = { .src = &imm, .bytes = sizeof(imm), .notify = true, .imm = imm };

	return shm->put(s->link, &put) == 1;
}

/* Words go to and fro, as long as both are there. */
static void converse(struct link_end *s, bool first)
{
	uint64_t until_ns = mst_now_ns() + PATIENCE_NS;

	while (s->rounds < ROUNDS) {
		if (first && !say(s, s->rounds))
			return;
		if (!arrival(s, until_ns))
			return;
		if (!first && !say(s, s->rounds))
			return;
		s->rounds++;
	}
}

static void part(struct link_end *s)
{
	if (s->link != NULL) {
		shm->detach(s->link);
		shm->link_free(s->link);
	}
	shm->net_close(s->net);
}

static bool armed; /* there is a fault that may strike */

static bool is_in_vain(void *until_ns)
{
	return armed && faulty_struck() && mst_now_ns() >= *(const uint64_t *)until_ns;
}

static void *connector_main(void *arg)
{
	struct meeting *m = arg;
	struct link_end *s = &m->connector;
	uint64_t until_ns = mst_now_ns() + DIAL_NS;
	struct mst_dial dial = { .lanes = lanes,
				 .timeout_ns = PATIENCE_NS / 2,
				 .unwanted = is_in_vain,
				 .ctx = &until_ns };

	faulty_enter(CONNECTOR);
	if (net_open(s) == 0) {
		dial.address = atomic_load(&m->address);
		s->linked = shm->dial(s->net, &dial, &s->link, UT_UNREAD);
		scenario_holds((s->linked == 0) == (s->link != NULL), "a failed dial, no link");
		if (s->linked == 0)
			converse(s, true);
	}
	part(s);
	atomic_store(&m->gone, true);
	return NULL;
}

/* Lets the first in who asks for a link. A fault at the listener may cost one look, but not the
 * listener. */
static void let_in(struct meeting *m)
{
	struct link_end *s = &m->acceptor;
	struct mst_link_request request;

	while (!atomic_load(&m->gone)) {
		if (shm->listener->next_request(m->listener, &request, UT_UNREAD) != 0) {
			mst_sleep_ns(MST_MS / 4);
			continue;
		}
		struct mst_link *link = NULL;
		s->linked = shm->listener->answer(m->listener, &request, &link, UT_UNREAD);
		scenario_holds((s->linked == 0) == (link != NULL), "a failed answer, no link");
		if (s->linked != 0)
			continue;
		s->linked = shm->attach(s->net, link, UT_UNREAD);
		if (s->linked == 0)
			s->link = link;
		else
			shm->link_free(link);
		return;
	}
}

static int open_listener(struct meeting *m)
{
	struct mst_link_listener *listener = NULL;
	int rc = shm->listener->open(m->acceptor.net, &listener, UT_UNREAD);

	scenario_holds((rc == 0) == (listener != NULL), "a failed listener is no listener");
	m->listener = listener;
	return rc;
}

/* The acceptor is the caller's thread. */
static void meet(struct meeting *m)
{
	pthread_t thread;
	int rc;

	*m = (struct meeting){ 0 };
	faulty_enter(ACCEPTOR);
	rc = net_open(&m->acceptor);
	if (rc == 0)
		rc = open_listener(m);
	m->acceptor.opened = rc;
	if (rc == 0) {
		atomic_store(&m->address, m->listener->address);
		faulty_enter(FAULTY_NOBODY); /* a test's thread is no side's */
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, connector_main, m), 0);
		faulty_enter(ACCEPTOR);
		let_in(m);
		if (m->acceptor.link != NULL)
			converse(&m->acceptor, false);
	}
	shm->listener->close(m->listener);
	part(&m->acceptor);
	faulty_enter(FAULTY_NOBODY);
	if (rc == 0)
		pthread_join(thread, NULL);
}

static bool is_error(int rc)
{
	return rc <= 0 && rc > -4096;
}

static void check_side(const struct link_end *s)
{
	scenario_holds(is_error(s->opened) && is_error(s->linked), "results are error numbers");
	scenario_holds(s->lost == 0 || s->lost == -EPIPE, "a lost link's peer is gone");
}

static void a_link_with_a_fault(void)
{
	struct meeting m;

	armed = true;
	meet(&m);
	check_side(&m.acceptor);
	check_side(&m.connector);
	if (!faulty_struck())
		scenario_holds(m.connector.rounds == ROUNDS, "without a fault words come through");
}

static void a_link_without(void)
{
	struct meeting m;

	armed = false;
	meet(&m);
	scenario_holds(m.connector.rounds == ROUNDS, "the next link works");
}

static void play(const char *name, unsigned side, unsigned least)
{
	struct scenario s = { .name = name,
			      .side = side,
			      .most = POINTS_MOST,
			      .patience_ns = PATIENCE_NS,
			      .run = a_link_with_a_fault,
			      .after = a_link_without };

	CU_ASSERT(scenario_play(&s) >= least);
}

static void acceptor_faults(void)
{
	play("acceptor", ACCEPTOR, 40);
}

static void connector_faults(void)
{
	play("connector", CONNECTOR, 20);
}

/* Are all bytes of this memfd there? The process has it open. */
static bool is_taken(const char *fd)
{
	char path[300], target[64] = "";
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%s", fd);
	if (readlink(path, target, sizeof(target) - 1) < 0 ||
	    strstr(target, "memfd:muster") == NULL)
		return false;
	return stat(path, &st) == 0 && st.st_blocks * 512 >= st.st_size && st.st_size >= PUBLISHED;
}

/* Else a host that runs out of memory would end the server with SIGBUS, in the middle of a step. */
static void what_is_published_is_taken_at_once(void)
{
	struct link_end s = { 0 };
	unsigned taken = 0;

	CU_ASSERT_EQUAL_FATAL(net_open(&s), 0);
	DIR *dir = opendir("/proc/self/fd");
	CU_ASSERT_PTR_NOT_NULL_FATAL(dir);
	for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir))
		taken += is_taken(e->d_name);
	closedir(dir);
	CU_ASSERT_EQUAL(taken, 1);
	part(&s);
}

static CU_TestInfo cases[] = {
	{ "what is published is taken from the host at once", what_is_published_is_taken_at_once },
	{ "a fault of the side that opens the listener costs at most the link", acceptor_faults },
	{ "a fault of the side that dials costs at most the link", connector_faults },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("links that meet faults", cases);
}
