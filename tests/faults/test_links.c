/* SPDX-License-Identifier: MIT */
/*
 * A link, from the opening of both nets to the end of both: each call of the system that either
 * side makes fails in turn. Whatever comes of it, both sides return soon, with an error number and
 * what has failed, or a link that works or is reported lost; nothing stays open; and the next link
 * is none the worse.
 *
 *   test_faults_links [shm | tcp [IO_THREADS] | tls [IO_THREADS]]
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/transport/channel.h"
#include "common/transport/transport.h"
#include "tests/faults/scenario.h"
#include "tests/transport/tls/place.h"
#include "tests/ut.h"

enum { ACCEPTOR = 1, CONNECTOR = 2 };

#define POINTS_MOST 12u
#define THIN 61u
#define DIAL_NS (300 * MST_MS)        /* where the fault may have left nobody who answers */
#define PATIENCE_NS (60 * MST_SECOND) /* for a run: far beyond what it needs, and DIAL_NS */
#define PUBLISHED 8192u
#define ROUNDS 20u

static const struct mst_transport *network = &mst_shm;
static struct mst_fabric fabric = MST_FABRIC_DEFAULT;
static struct mst_credentials *own[2]; /* of the acceptor, of the connector; NULL: plain */
static const struct mst_lanes lanes = { 4096, 4096, 4, 4 };

/* One end's life, and what became of it. */
struct link_end {
	struct mst_net *net;
	struct mst_link *link;
	int opened, linked; /* 0 or -errno */
	int lost;           /* the error of MST_LOST */
	unsigned rounds;
	struct mst_reason why; /* of the first that is not 0 */
};

struct meeting {
	struct link_end acceptor, connector;
	struct mst_link_listener *listener;
	_Atomic bool listener_open, gone; /* the connector has gone */
	_Atomic(const char *) address;
};

/* What failed with @rc has said this. Return: @rc. */
static int note(struct link_end *s, int rc, const struct mst_reason *why)
{
	if (rc != 0)
		mst_reason_set(&s->why, "%s", mst_reason_or_errno(why, rc));
	return rc;
}

static int net_open(struct link_end *s, struct mst_credentials *proof)
{
	struct mst_net_cfg cfg = { .published_bytes = PUBLISHED,
				   .links_max = 1,
				   .fabric = &fabric,
				   .channels = mst_channels_of(proof) };
	struct mst_reason why;

	s->net = NULL;
	s->opened = note(s, network->net_open(&cfg, &s->net, &why), &why);
	scenario_holds((s->opened == 0) == (s->net != NULL), "a failed net is no net");
	return s->opened;
}

/* Waits for one arrival. Return: false: the link is lost, or nothing came. */
static bool arrival(struct link_end *s, uint64_t until_ns)
{
	struct mst_net_event ev;

	while (mst_now_ns() < until_ns) {
		if (network->poll(s->net, &ev, 1) == 0) {
			(void)network->wait(s->net, 5 * MST_MS);
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

	return network->put(s->link, &put) == 1;
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
		network->detach(s->link);
		network->link_free(s->link);
	}
	network->net_close(s->net);
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
	struct mst_reason why;
	uint64_t until_ns = mst_now_ns() + DIAL_NS;
	struct mst_dial dial = { .lanes = lanes,
				 .timeout_ns = PATIENCE_NS / 2,
				 .unwanted = is_in_vain,
				 .ctx = &until_ns };

	faulty_enter(CONNECTOR);
	if (net_open(s, own[1]) == 0) {
		dial.address = atomic_load(&m->address);
		s->linked = note(s, network->dial(s->net, &dial, &s->link, &why), &why);
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
	struct mst_reason why;

	while (!atomic_load(&m->gone)) {
		if (network->listener->next_request(m->listener, &request, UT_UNREAD) != 0) {
			mst_sleep_ns(MST_MS / 4);
			continue;
		}
		struct mst_link *link = NULL;
		s->linked = note(s, network->listener->answer(m->listener, &request, &link, &why),
				 &why);
		scenario_holds((s->linked == 0) == (link != NULL), "a failed answer, no link");
		if (s->linked != 0)
			continue;
		s->linked = note(s, network->attach(s->net, link, &why), &why);
		if (s->linked == 0)
			s->link = link;
		else
			network->link_free(link);
		return;
	}
}

static int open_listener(struct meeting *m)
{
	struct mst_link_listener *listener = NULL;
	struct mst_reason why;
	int rc = note(&m->acceptor, network->listener->open(m->acceptor.net, &listener, &why),
		      &why);

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
	rc = net_open(&m->acceptor, own[0]);
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
	network->listener->close(m->listener);
	part(&m->acceptor);
	faulty_enter(FAULTY_NOBODY);
	if (rc == 0)
		pthread_join(thread, NULL);
}

static bool is_error(int rc)
{
	return rc <= 0 && rc > -4096;
}

/* ---- memory of the library of TLS ---- */

/* What it finds no memory for it mostly says, but not always: a key that could not be read for that
 * is "too weak". */
static struct {
	atomic_bool struck;
	unsigned failures[2]; /* not named, named */
} library;

/* ---- what must hold ---- */

/* The side that no fault has struck cannot know what it was. Over shared memory a call that fails
 * on what the peer has brought is taken for the peer's fault. */
static void check_side(const struct link_end *s, unsigned side)
{
	scenario_holds(is_error(s->opened) && is_error(s->linked), "results are error numbers");
	scenario_holds(s->lost == 0 || s->lost == -EPIPE, "a lost link's peer is gone");
	if (network->maps || side != faulty_side() || !faulty_struck() || s->linked == -ECANCELED ||
	    (s->opened == 0 && s->linked == 0))
		return;
	if (library.struck)
		library.failures[scenario_is_named(s->why.text)]++;
	else
		scenario_names(s->why.text);
}

static void a_link_with_a_fault(void)
{
	struct meeting m;

	armed = true;
	library.struck = false;
	meet(&m);
	check_side(&m.acceptor, ACCEPTOR);
	check_side(&m.connector, CONNECTOR);
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
			      .thin = fabric.io_threads == 0 ? THIN : 0,
			      .patience_ns = PATIENCE_NS,
			      .run = a_link_with_a_fault,
			      .after = a_link_without };

	library.failures[0] = library.failures[1] = 0;
	CU_ASSERT(scenario_play(&s) >= least);
	if (fabric.encrypted && side == CONNECTOR) /* the other's go to its log */
		CU_ASSERT(library.failures[1] >= 4 * library.failures[0]);
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

	CU_ASSERT_EQUAL_FATAL(net_open(&s, NULL), 0);
	DIR *dir = opendir("/proc/self/fd");
	CU_ASSERT_PTR_NOT_NULL_FATAL(dir);
	for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir))
		taken += is_taken(e->d_name);
	closedir(dir);
	CU_ASSERT_EQUAL(taken, 1);
	part(&s);
}

static CU_TestInfo cases[] = {
	{ "a fault of the side that opens the listener costs at most the link", acceptor_faults },
	{ "a fault of the side that dials costs at most the link", connector_faults },
	CU_TEST_INFO_NULL, /* room for what only shared memory has */
	CU_TEST_INFO_NULL,
};

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "shm";
	struct tls_place home = { "" };

	mst_log_open("test", MST_LOG_ERROR); /* many a caller goes within its handshake */
	fabric.encrypted = strcmp(name, "tls") == 0;
	if (strcmp(name, "shm") != 0) {
		network = &mst_tcp;
		fabric.addresses = "127.0.0.1";
		fabric.io_threads = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
	} else {
		cases[2] = (CU_TestInfo){ "what is published is taken from the host at once",
					  what_is_published_is_taken_at_once };
	}
	if (fabric.encrypted) {
		tls_place_allocate(&library.struck);
		tls_place_make(&home, 0);
		own[0] = tls_place_load(&home, "server");
		own[1] = tls_place_load(&home, "worker");
	}
	int status = ut_main("links that meet faults", cases);
	for (int i = 0; i < 2; i++)
		mst_credentials_free(own[i]);
	tls_place_remove(&home);
	return status;
}
