/* SPDX-License-Identifier: MIT */
/* Dialling in a simulated world when somebody dies of it, or the path stands still. */
#include <errno.h>
#include <string.h>

#include "common/base/assert.h"
#include "tests/sim/net.h"
#include "tests/ut.h"

#define SEEDS 300u
#define LONG_NS (100 * MST_SECOND)

/* One that listens and one that dials, and when what befalls whom. */
struct listener_stage {
	const struct mst_transport *t;
	bool host_dies, dialer_dies;
	bool beyond; /* the dialer is on another host */
	enum sim_death how;
	uint64_t window_ns; /* within so long of the dialling */
	uint64_t stall_ns;  /* before it */

	struct sim_process *host, *dialer;
	struct mst_net *host_net;
	char address[MST_ADDRESS_LEN];
	int reached; /* what reaches() came to */
	int dialled; /* and dial() */
	uint64_t took_ns;
	bool let_in, lost; /* at the host */
	bool dialer_lost;
};

/* Puts until it is told: who has lost his power says nothing. */
static bool is_lost(struct mst_net *net, struct mst_link *link)
{
	struct mst_put put = { .notify = true };
	struct mst_net_event ev;

	for (int i = 0; i < 1000 && !sim_self()->dead; i++) {
		(void)link->ops->put(link, &put);
		if (net->ops->poll(net, &ev, 1) == 1 && ev.kind == MST_LOST)
			return true;
		(void)net->ops->wait(net, MST_MS);
	}
	return false;
}

static void leave(struct mst_link *link)
{
	link->ops->detach(link);
	link->ops->link_free(link);
}

static void host_main(void *arg)
{
	struct mst_net_cfg cfg = { .links_max = 1 };
	struct listener_stage *s = arg;
	struct mst_link_request request;
	struct mst_link_listener *listener;
	struct mst_link *link;
	int rc;

	MST_ASSERT(s->t->net_open(&cfg, &s->host_net, UT_UNREAD) == 0);
	MST_ASSERT(s->t->listener->open(s->host_net, &listener, UT_UNREAD) == 0);
	memcpy(s->address, listener->address, sizeof(s->address));
	for (int i = 0; i < 100 && !s->let_in && !sim_self()->dead; i++) {
		(void)sim_wait(&sim_self()->control, 20 * MST_MS);
		rc = s->t->listener->next_request(listener, &request, UT_UNREAD);
		if (rc == 0)
			rc = s->t->listener->answer(listener, &request, &link, UT_UNREAD);
		s->let_in = rc == 0;
		CU_ASSERT(rc == 0 || rc == -EAGAIN || rc == -EPIPE);
	}
	if (s->let_in) {
		CU_ASSERT_EQUAL(s->t->attach(s->host_net, link, UT_UNREAD), 0);
		s->lost = is_lost(s->host_net, link);
		leave(link);
	}
	s->t->listener->close(listener);
	s->t->net_close(s->host_net);
}

static void kill_now(void *process, uint64_t how)
{
	sim_kill(process, (enum sim_death)how);
}

static void dialer_main(void *arg)
{
	struct mst_net_cfg cfg = { .links_max = 1 };
	struct listener_stage *s = arg;
	struct mst_link *link;
	struct mst_net *net;

	MST_ASSERT(s->t->net_open(&cfg, &net, UT_UNREAD) == 0);
	while (s->address[0] == '\0')
		sim_sleep(MST_MS);
	if (s->host_dies || s->dialer_dies)
		sim_after(sim_below(s->window_ns), kill_now, s->host_dies ? s->host : s->dialer,
			  s->how);
	if (s->stall_ns > 0)
		sim_path_stall(s->host, s->stall_ns);
	struct mst_dial dial = { .address = s->address,
				 .lanes = { 64, 64, 4, 4 },
				 .timeout_ns = 10 * MST_SECOND };
	s->reached = s->t->reaches != NULL ? s->t->reaches(s->address, UT_UNREAD) : 0;
	uint64_t begin_ns = sim_now();
	s->dialled = s->t->dial(net, &dial, &link, UT_UNREAD);
	s->took_ns = sim_now() - begin_ns;
	if (s->dialled == 0) {
		s->dialer_lost = is_lost(net, link);
		leave(link);
	}
	s->t->net_close(net);
}

static void play(uint64_t seed, struct listener_stage *s)
{
	sim_begin(seed);
	s->host = sim_process_new("host");
	s->dialer = sim_process_new("dialer");
	s->dialer->host = s->beyond;
	sim_spawn(s->host, host_main, s);
	sim_spawn(s->dialer, dialer_main, s);
	sim_run(sim_now() + LONG_NS);
	MST_ASSERT(s->host->fibers == 0 && s->dialer->fibers == 0);
	sim_end();
}

static const struct mst_transport *const both[] = { &sim_near, &sim_far };

/* ---- deaths ---- */

static void dialer_that_dies_is_lost_or_never_seen(void)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct listener_stage s = { .t = both[seed % 2],
					    .dialer_dies = true,
					    .how = seed % 3 == 0 ? SIM_POWER_OFF : SIM_KILLED,
					    .window_ns = 60000 };
		play(seed, &s);
		CU_ASSERT(s.dialled == 0 || s.dialled == -ECONNREFUSED);
		CU_ASSERT_EQUAL(s.let_in, s.lost);
	}
}

static void host_that_is_killed_refuses_or_is_lost(void)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct listener_stage s = { .t = both[seed % 2],
					    .host_dies = true,
					    .how = SIM_KILLED,
					    .window_ns = 60000 };
		play(seed, &s);
		CU_ASSERT(s.dialled == -ECONNREFUSED || (s.dialled == 0 && s.dialer_lost));
		CU_ASSERT(s.took_ns < MST_SECOND);
	}
}

static void host_without_power_answers_nobody(void)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct listener_stage s = {
			.t = &sim_far, .host_dies = true, .how = SIM_POWER_OFF, .window_ns = 60000
		};
		play(seed, &s);
		CU_ASSERT(s.dialled == -EHOSTUNREACH || s.dialled == -ETIMEDOUT ||
			  (s.dialled == 0 && s.dialer_lost));
		CU_ASSERT(s.dialled != -EHOSTUNREACH || s.took_ns >= sim_manner.give_up_ns);
	}
}

/* ---- paths ---- */

static void short_stall_delays_a_dial(void)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct listener_stage s = { .t = &sim_far, .stall_ns = sim_manner.give_up_ns / 2 };
		play(seed, &s);
		CU_ASSERT_EQUAL(s.dialled, 0);
		CU_ASSERT(s.took_ns >= s.stall_ns);
	}
}

static void long_stall_ends_a_dial(void)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct listener_stage s = { .t = &sim_far, .stall_ns = 3 * sim_manner.give_up_ns };
		play(seed, &s);
		CU_ASSERT_EQUAL(s.dialled, -EHOSTUNREACH);
		CU_ASSERT_FALSE(s.let_in);
	}
}

static void near_knows_no_path(void)
{
	struct listener_stage s = { .t = &sim_near, .stall_ns = 3 * sim_manner.give_up_ns };

	play(1, &s);
	CU_ASSERT_EQUAL(s.dialled, 0);
	CU_ASSERT(s.took_ns < sim_manner.give_up_ns);
}

static void near_reaches_its_own_host_alone(void)
{
	for (int i = 0; i < 4; i++) {
		struct listener_stage s = { .t = both[i % 2], .beyond = i / 2 > 0 };
		bool refuses = s.beyond && s.t->maps;
		play(1, &s);
		CU_ASSERT_EQUAL(s.reached, refuses ? -ENOENT : 0);
		CU_ASSERT_EQUAL(s.dialled, refuses ? -ECONNREFUSED : 0);
		CU_ASSERT_EQUAL(s.let_in, !refuses);
	}
}

static CU_TestInfo cases[] = {
	{ "a dialer that dies is lost, or never seen", dialer_that_dies_is_lost_or_never_seen },
	{ "a host that is killed refuses, or is lost", host_that_is_killed_refuses_or_is_lost },
	{ "a host without power answers nobody", host_without_power_answers_nobody },
	{ "a short stall delays a dial", short_stall_delays_a_dial },
	{ "a long stall ends a dial", long_stall_ends_a_dial },
	{ "near, there is no path to stall", near_knows_no_path },
	{ "near reaches its own host alone", near_reaches_its_own_host_alone },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("sim.listener", cases);
}
