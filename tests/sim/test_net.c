/* SPDX-License-Identifier: MIT */
/* What the conformance suite cannot ask of the simulated transports: late writes, silent deaths,
 * ghosts, and that all of it follows from the seed. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/assert.h"
#include "tests/sim/net.h"
#include "tests/ut.h"

#define BYTES ((size_t)65536)
#define SEEDS 20u
#define SLOW_NS_PER_KIB 10000u /* all of an inbound region takes 640 us */
#define LONG_NS (100 * MST_SECOND)

/* A link between two processes, each with a fiber that lives one half of a case. */
struct net_stage {
	const struct mst_transport *t;
	void (*accepts)(struct net_stage *s), (*connects)(struct net_stage *s);
	struct sim_process *acceptor, *connector;
	struct mst_net *a_net, *c_net;
	struct mst_link *a_link, *c_link; /* NULL: freed */
	char address[MST_ADDRESS_LEN];
	uint64_t mark_ns;
	bool told;
};

static void drop(struct mst_link **link, bool attached)
{
	if (*link != NULL && attached)
		(*link)->ops->detach(*link);
	if (*link != NULL)
		(*link)->ops->link_free(*link);
	*link = NULL;
}

static void accept_main(void *arg)
{
	struct net_stage *s = arg;
	struct mst_net_cfg cfg = { .published_bytes = BYTES, .links_max = 1 };
	struct mst_link_request request;
	struct mst_link_listener *listener;

	MST_ASSERT(s->t->net_open(&cfg, &s->a_net, UT_UNREAD) == 0);
	MST_ASSERT(s->t->listener->open(s->a_net, &listener, UT_UNREAD) == 0);
	memcpy(s->address, listener->address, sizeof(s->address));
	while (s->t->listener->next_request(listener, &request, UT_UNREAD) == -EAGAIN)
		(void)sim_wait(&sim_self()->control, MST_SECOND);
	MST_ASSERT(s->t->listener->answer(listener, &request, &s->a_link, UT_UNREAD) == 0);
	MST_ASSERT(s->t->attach(s->a_net, s->a_link, UT_UNREAD) == 0);
	s->accepts(s);
	drop(&s->a_link, true);
	s->t->listener->close(listener);
	s->t->net_close(s->a_net);
}

static struct mst_dial dial_to(const struct net_stage *s)
{
	return (struct mst_dial){ .address = s->address,
				  .lanes = { BYTES, BYTES, 4, 4 },
				  .timeout_ns = MST_SECOND };
}

static void connect_main(void *arg)
{
	struct net_stage *s = arg;
	struct mst_net_cfg cfg = { .links_max = 2 };

	MST_ASSERT(s->t->net_open(&cfg, &s->c_net, UT_UNREAD) == 0);
	while (s->address[0] == '\0')
		sim_sleep(MST_MS);
	struct mst_dial dial = dial_to(s);
	MST_ASSERT(s->t->dial(s->c_net, &dial, &s->c_link, UT_UNREAD) == 0);
	s->connects(s);
	drop(&s->c_link, true);
	s->t->net_close(s->c_net);
}

/* Return: the world's hash. */
static uint64_t play(uint64_t seed, double preemption, struct net_stage *s)
{
	sim_begin(seed);
	sim_set_preemption(preemption);
	s->acceptor = sim_process_new("acceptor");
	s->connector = sim_process_new("connector");
	sim_spawn(s->acceptor, accept_main, s);
	sim_spawn(s->connector, connect_main, s);
	sim_run(sim_now() + LONG_NS);
	MST_ASSERT(s->acceptor->fibers == 0 && s->connector->fibers == 0);
	uint64_t hash = sim_hash();
	sim_end();
	return hash;
}

static void play_over(const struct mst_transport *t, void (*accepts)(struct net_stage *s),
		      void (*connects)(struct net_stage *s))
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		(void)play(seed, 0.05,
			   &(struct net_stage){ t, .accepts = accepts, .connects = connects });
	sim_manner = (struct sim_manner)SIM_MANNER;
}

/* ---- what both halves do ---- */

static int put_all(struct mst_link *link, uint8_t byte)
{
	struct mst_put put = { .src = link->outbound,
			       .bytes = BYTES,
			       .notify = true,
			       .imm = byte,
			       .signal = true,
			       .cookie = byte };

	memset(link->outbound, byte, BYTES);
	return link->ops->put(link, &put);
}

/* From memory of one's own: over sim_near it is copied piece by piece. */
static int put_copy(struct mst_link *link, uint8_t byte)
{
	static uint8_t own[BYTES];
	struct mst_put put = { .src = own, .bytes = BYTES, .notify = true, .imm = byte };

	memset(own, byte, sizeof(own));
	return link->ops->put(link, &put);
}

static int put_word(struct mst_link *link, uint64_t word)
{
	struct mst_put put = { .src = &word, .bytes = 8, .notify = true, .imm = (uint32_t)word };

	return link->ops->put(link, &put);
}

static size_t count_of(const void *memory, uint8_t byte)
{
	const uint8_t *at = memory;
	size_t count = 0;

	for (size_t i = 0; i < BYTES; i++)
		count += at[i] == byte;
	return count;
}

/* The next event within so long; false: none. */
static bool next_event(struct mst_net *net, struct mst_net_event *ev, uint64_t timeout_ns)
{
	uint64_t end_ns = sim_now() + timeout_ns;

	while (net->ops->poll(net, ev, 1) == 0) {
		if (sim_now() >= end_ns || sim_self()->dead)
			return false;
		(void)net->ops->wait(net, end_ns - sim_now());
	}
	return true;
}

static bool is_silent(struct mst_net *net, uint64_t span_ns)
{
	struct mst_net_event ev;

	return !next_event(net, &ev, span_ns);
}

static bool hears(struct mst_net *net, enum mst_net_event_kind kind, uint64_t timeout_ns)
{
	struct mst_net_event ev;

	return next_event(net, &ev, timeout_ns) && ev.kind == kind &&
	       (kind != MST_LOST || (ev.error == -EPIPE && ev.link->why.text[0] != '\0'));
}

static void stays(struct net_stage *s)
{
	(void)s;
	sim_sleep(5 * MST_SECOND);
}

/* ---- late writes ---- */

static void puts_and_stays(struct net_stage *s)
{
	CU_ASSERT_EQUAL(put_all(s->c_link, 7), 0);
	sim_sleep(MST_SECOND);
}

static void detaches_in_the_middle(struct net_stage *s)
{
	const uint8_t *inbound = s->a_link->inbound;

	while (count_of(inbound, 7) == 0)
		sim_sleep(MST_MS / 50);
	s->t->detach(s->a_link);
	size_t early = count_of(inbound, 7);
	CU_ASSERT(early < BYTES / 2);
	sim_sleep(MST_MS / 5);
	size_t late = count_of(inbound, 7);
	CU_ASSERT(late > early && late < BYTES);
	drop(&s->a_link, false);
	CU_ASSERT_EQUAL(count_of(inbound, 0xdb), BYTES);
	sim_sleep(MST_SECOND / 2);
	CU_ASSERT_EQUAL(count_of(inbound, 0xdb), BYTES);
}

static void pieces_land_until_the_inbound_is_freed(void)
{
	sim_manner.ns_per_kib = SLOW_NS_PER_KIB;
	sim_manner.slow_chance = 0;
	play_over(&sim_far, detaches_in_the_middle, puts_and_stays);
}

static void puts_and_frees(struct net_stage *s)
{
	CU_ASSERT_EQUAL(put_all(s->c_link, 7), s->t->maps ? 1 : 0);
	sim_sleep(MST_MS / 10);
	drop(&s->c_link, true);
}

static void hears_all_of_it(struct net_stage *s)
{
	CU_ASSERT_TRUE(hears(s->a_net, MST_ARRIVED, MST_SECOND));
	CU_ASSERT_EQUAL(count_of(s->a_link->inbound, 7), BYTES);
	CU_ASSERT_TRUE(hears(s->a_net, MST_LOST, MST_SECOND));
}

static void what_is_on_its_way_survives_its_sender(void)
{
	sim_manner.ns_per_kib = SLOW_NS_PER_KIB;
	play_over(&sim_far, hears_all_of_it, puts_and_frees);
}

static void spoils_its_source(struct net_stage *s)
{
	CU_ASSERT_EQUAL(put_all(s->c_link, 7), 0);
	while (count_of(s->a_link->inbound, 7) == 0)
		sim_sleep(MST_MS / 100);
	memset(s->c_link->outbound, 8, BYTES);
	CU_ASSERT_TRUE(hears(s->c_net, MST_SENT, MST_SECOND));
	sim_sleep(MST_SECOND);
}

static void sees_it_spoiled(struct net_stage *s)
{
	CU_ASSERT_TRUE(hears(s->a_net, MST_ARRIVED, MST_SECOND));
	size_t good = count_of(s->a_link->inbound, 7);
	CU_ASSERT(good > 0 && good < BYTES);
	CU_ASSERT_EQUAL(count_of(s->a_link->inbound, 8), BYTES - good);
	sim_sleep(MST_SECOND);
}

static void source_is_read_when_it_lands(void)
{
	sim_manner.ns_per_kib = SLOW_NS_PER_KIB;
	play_over(&sim_far, sees_it_spoiled, spoils_its_source);
}

static void copies_and_stays(struct net_stage *s)
{
	CU_ASSERT_EQUAL(put_copy(s->c_link, 7), 1);
	sim_sleep(MST_SECOND);
}

static void sees_a_part(struct net_stage *s)
{
	const uint8_t *inbound = s->a_link->inbound;

	while (count_of(inbound, 7) == 0)
		sim_sleep(1000);
	s->told |= count_of(inbound, 7) < BYTES; /* but no arrival */
	CU_ASSERT(count_of(inbound, 7) == BYTES || s->a_net->ops->poll(s->a_net, NULL, 0) == 0);
	CU_ASSERT_TRUE(hears(s->a_net, MST_ARRIVED, MST_SECOND));
	CU_ASSERT_EQUAL(count_of(inbound, 7), BYTES);
}

static void near_put_is_seen_in_parts(void)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct net_stage s = { &sim_near, .accepts = sees_a_part,
				       .connects = copies_and_stays };
		(void)play(seed, 0.5, &s);
		CU_ASSERT_TRUE(s.told);
	}
}

/* ---- deaths ---- */

static void kill_now(void *process, uint64_t how)
{
	sim_kill(process, (enum sim_death)how);
}

static void hears_of_death(struct net_stage *s)
{
	CU_ASSERT_EQUAL(put_word(s->a_link, 1), 1);
	sim_sleep(MST_SECOND);
	sim_kill(s->connector, SIM_KILLED);
	s->mark_ns = sim_now();
	CU_ASSERT_TRUE(hears(s->a_net, MST_LOST, MST_SECOND));
	CU_ASSERT(sim_now() - s->mark_ns < 10 * MST_MS);
	CU_ASSERT_EQUAL(put_word(s->a_link, 2), -EPIPE);
}

static void killed_peer_is_lost_soon(void)
{
	play_over(&sim_near, hears_of_death, stays);
	play_over(&sim_far, hears_of_death, stays);
}

static void hears_nothing_before_it_puts(struct net_stage *s)
{
	sim_sleep(MST_SECOND);
	sim_kill(s->connector, SIM_POWER_OFF);
	CU_ASSERT_TRUE(is_silent(s->a_net, 20 * MST_SECOND));
	s->mark_ns = sim_now();
	CU_ASSERT_EQUAL(put_all(s->a_link, 1), 0);
	CU_ASSERT_TRUE(hears(s->a_net, MST_LOST, LONG_NS));
	CU_ASSERT(sim_now() - s->mark_ns >= sim_manner.give_up_ns);
	CU_ASSERT(sim_now() - s->mark_ns < sim_manner.give_up_ns + 100 * MST_MS);
}

static void power_off_is_noticed_by_who_puts(void)
{
	play_over(&sim_far, hears_nothing_before_it_puts, stays);
}

/* ---- paths ---- */

static void outlives_a_stall(struct net_stage *s)
{
	sim_sleep(MST_MS);
	sim_path_stall(s->acceptor, sim_manner.give_up_ns / 2);
	s->mark_ns = sim_now();
	CU_ASSERT_EQUAL(put_all(s->c_link, 7), 0);
	CU_ASSERT_TRUE(hears(s->c_net, MST_SENT, MST_SECOND));
	CU_ASSERT(sim_now() - s->mark_ns >= sim_manner.give_up_ns / 2);
	CU_ASSERT_TRUE(is_silent(s->c_net, MST_SECOND / 2));
}

static void stall_that_ends_loses_nothing(void)
{
	play_over(&sim_far, hears_all_of_it, outlives_a_stall);
}

static void loses_the_path(struct net_stage *s)
{
	sim_sleep(MST_MS);
	sim_path_stall(s->connector, 2 * sim_manner.give_up_ns);
	s->mark_ns = sim_now();
	CU_ASSERT_EQUAL(put_all(s->c_link, 7), 0);
	CU_ASSERT_TRUE(hears(s->c_net, MST_LOST, MST_SECOND));
	CU_ASSERT(sim_now() - s->mark_ns < 3 * sim_manner.give_up_ns / 2);
	sim_sleep(20 * MST_SECOND); /* without a word: it does not detach */
}

static void learns_it_when_it_puts(struct net_stage *s)
{
	struct mst_net_event ev;

	/* What the other end has given up may still arrive; then its credit is returned in vain. */
	if (next_event(s->a_net, &ev, 10 * MST_SECOND)) {
		CU_ASSERT_EQUAL(ev.kind, MST_ARRIVED);
	} else {
		CU_ASSERT_EQUAL(put_all(s->a_link, 1), 0);
	}
	CU_ASSERT_TRUE(hears(s->a_net, MST_LOST, MST_SECOND));
}

static void long_stall_ends_the_link_at_each_end_in_its_time(void)
{
	play_over(&sim_far, learns_it_when_it_puts, loses_the_path);
}

static void stalls_other_paths(struct net_stage *s)
{
	struct sim_process *other = sim_process_new("other");

	sim_sleep(MST_MS);
	sim_path_stall_between(s->acceptor, other, MST_SECOND);
	sim_path_stall_between(other, s->connector, MST_SECOND);
	s->mark_ns = sim_now();
	CU_ASSERT_EQUAL(put_all(s->c_link, 7), 0);
	CU_ASSERT_TRUE(hears(s->c_net, MST_SENT, MST_SECOND));
	CU_ASSERT(sim_now() - s->mark_ns < sim_manner.give_up_ns / 4);
}

static void outlives_a_stall_of_two(struct net_stage *s)
{
	sim_sleep(MST_MS);
	sim_path_stall_between(s->acceptor, s->connector, sim_manner.give_up_ns / 2);
	s->mark_ns = sim_now();
	CU_ASSERT_EQUAL(put_all(s->c_link, 7), 0);
	CU_ASSERT_TRUE(hears(s->c_net, MST_SENT, MST_SECOND));
	CU_ASSERT(sim_now() - s->mark_ns >= sim_manner.give_up_ns / 2);
}

static void a_path_of_two_is_nobody_elses(void)
{
	play_over(&sim_far, hears_all_of_it, stalls_other_paths);
	play_over(&sim_far, hears_all_of_it, outlives_a_stall_of_two);
}

static void breaks_it(struct net_stage *s)
{
	struct sim_process *other = sim_process_new("other");

	sim_links_break(s->connector, other);
	CU_ASSERT_EQUAL(put_word(s->c_link, 1), 1);
	sim_sleep(MST_SECOND);
	sim_links_break(s->acceptor, s->connector);
	CU_ASSERT_EQUAL(put_word(s->c_link, 2), -EPIPE);
	CU_ASSERT_TRUE(hears(s->c_net, MST_LOST, MST_SECOND));
	CU_ASSERT_FALSE(s->connector->dead);
}

static void hears_it_break(struct net_stage *s)
{
	CU_ASSERT_TRUE(hears(s->a_net, MST_ARRIVED, MST_SECOND));
	CU_ASSERT_TRUE(hears(s->a_net, MST_LOST, 2 * MST_SECOND));
	CU_ASSERT_EQUAL(put_word(s->a_link, 3), -EPIPE);
	CU_ASSERT_TRUE(is_silent(s->a_net, MST_SECOND));
}

static void a_link_that_breaks_is_lost_at_both_ends(void)
{
	play_over(&sim_near, hears_it_break, breaks_it);
	play_over(&sim_far, hears_it_break, breaks_it);
}

/* ---- ghosts ---- */

static void dies_in_its_put(struct net_stage *s)
{
	struct mst_dial dial = dial_to(s);
	struct mst_net_event ev;
	struct mst_link *other;

	sim_after(2000, kill_now, s->connector, SIM_KILLED);
	CU_ASSERT_EQUAL(put_copy(s->c_link, 7), 1);
	CU_ASSERT_TRUE(s->connector->dead);
	memset(s->c_link->outbound, 9, BYTES);
	int rc = put_word(s->c_link, 9);
	CU_ASSERT(rc == 1 || rc == -EPIPE);
	CU_ASSERT_EQUAL(s->t->dial(s->c_net, &dial, &other, UT_UNREAD), -ECONNREFUSED);
	CU_ASSERT_EQUAL(s->t->poll(s->c_net, &ev, 1), 1);
	CU_ASSERT_EQUAL(ev.kind, MST_LOST);
	CU_ASSERT_EQUAL(s->t->poll(s->c_net, &ev, 1), 0);
}

static void sees_no_ghost(struct net_stage *s)
{
	CU_ASSERT_TRUE(hears(s->a_net, MST_LOST, MST_SECOND));
	CU_ASSERT(count_of(s->a_link->inbound, 7) < BYTES);
	CU_ASSERT_EQUAL(count_of(s->a_link->inbound, 9), 0);
	CU_ASSERT_TRUE(is_silent(s->a_net, MST_SECOND));
	CU_ASSERT_EQUAL(count_of(s->a_link->inbound, 9), 0);
}

static void ghost_reaches_nobody(void)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		(void)play(seed, 1.0,
			   &(struct net_stage){ &sim_near, .accepts = sees_no_ghost,
						.connects = dies_in_its_put });
}

/* What it had mapped twice is its own from then on, too, and what lay there still does. */
static void dies_with_a_view(struct net_stage *s)
{
	uint8_t *at = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int rc = s->t->view(s->c_link, MST_VIEW_OUTBOUND, 0, BYTES, at);

	CU_ASSERT_EQUAL_FATAL(rc, 0);
	memset(at, 5, BYTES);
	CU_ASSERT_EQUAL(count_of(s->a_link->inbound, 5), BYTES);
	sim_kill(s->connector, SIM_KILLED);
	CU_ASSERT_EQUAL(count_of(at, 5), BYTES);
	memset(at, 9, BYTES);
	CU_ASSERT_EQUAL(count_of(s->c_link->outbound, 9), BYTES);
	drop(&s->c_link, true);
	munmap(at, BYTES);
}

static void views_of_a_ghost_reach_nobody(void)
{
	play_over(&sim_near, sees_no_ghost, dies_with_a_view);
}

static void puts_and_sees_no_ghost(struct net_stage *s)
{
	CU_ASSERT_EQUAL(put_word(s->a_link, 1), 1);
	sees_no_ghost(s);
}

static void ghost_puts_far(struct net_stage *s)
{
	struct mst_net_event ev;

	sim_sleep(5 * MST_MS); /* what has arrived by now it will not hear of */
	sim_kill(s->connector, SIM_KILLED);
	CU_ASSERT_EQUAL(s->t->poll(s->c_net, &ev, 1), 1);
	CU_ASSERT_EQUAL(ev.kind, MST_LOST);
	CU_ASSERT_EQUAL(put_word(s->c_link, 9), -EPIPE);
	memset(s->c_link->outbound, 9, BYTES);
}

static void ghost_reaches_nobody_afar(void)
{
	play_over(&sim_far, puts_and_sees_no_ghost, ghost_puts_far);
}

/* ---- time and chance ---- */

static void freezes_as_it_is_put_to(struct net_stage *s)
{
	sim_freeze(s->acceptor, MST_SECOND);
	s->mark_ns = sim_now();
	CU_ASSERT_TRUE(hears(s->a_net, MST_ARRIVED, 3 * MST_SECOND));
	CU_ASSERT(sim_now() - s->mark_ns >= MST_SECOND);
}

static void puts_to_the_frozen(struct net_stage *s)
{
	sim_sleep(MST_MS);
	CU_ASSERT_EQUAL(put_all(s->c_link, 7), 0);
	CU_ASSERT_TRUE(hears(s->c_net, MST_SENT, MST_SECOND / 2));
	CU_ASSERT_EQUAL(count_of(s->a_link->inbound, 7), BYTES);
	sim_sleep(2 * MST_SECOND);
}

static void frozen_process_is_written_to(void)
{
	play_over(&sim_far, freezes_as_it_is_put_to, puts_to_the_frozen);
}

static void same_seed_same_world(void)
{
	uint64_t hash[2][SEEDS];

	for (int round = 0; round < 2; round++)
		for (uint64_t seed = 0; seed < SEEDS; seed++)
			hash[round][seed] = play(
				seed, 0.05,
				&(struct net_stage){ seed % 2 ? &sim_near : &sim_far,
						     .accepts = hears_all_of_it,
						     .connects = puts_and_frees });
	for (uint64_t i = 0; i < SEEDS; i++) {
		CU_ASSERT_EQUAL(hash[0][i], hash[1][i]);
		for (uint64_t k = 0; k < i; k++)
			CU_ASSERT_NOT_EQUAL(hash[0][i], hash[0][k]);
	}
}

/* ---- several nets ---- */

/* Sleeps for the acceptor's net and for another of the same process. */
static bool polls_both(struct net_stage *s, struct mst_net *other, int timeout_ms)
{
	struct pollfd fds[] = { { .fd = s->t->arm(other), .events = POLLIN },
				{ .fd = s->t->arm(s->a_net), .events = POLLIN } };

	CU_ASSERT(sim_nets_has(fds[0].fd) && sim_nets_has(fds[1].fd));
	if (s->t->ready(s->a_net) || s->t->ready(other))
		return true;
	return sim_nets_poll(fds, 2, timeout_ms) > 0;
}

/* A put comes, then nothing, then a wake of the other net, and last the peer goes. */
static void sleeps_for_two(struct net_stage *s)
{
	struct mst_net_cfg cfg = { .links_max = 1 };
	struct mst_net *other;

	MST_ASSERT(s->t->net_open(&cfg, &other, UT_UNREAD) == 0);
	CU_ASSERT_EQUAL(s->t->links(s->a_net), 1);
	CU_ASSERT_EQUAL(s->t->links(other), 0);
	uint64_t began_ns = sim_now();
	CU_ASSERT_TRUE(polls_both(s, other, 10000));
	CU_ASSERT(sim_now() - began_ns < MST_SECOND);
	CU_ASSERT_TRUE(hears(s->a_net, MST_ARRIVED, 0));
	(void)s->t->wait(s->a_net, 0);
	CU_ASSERT_FALSE(polls_both(s, other, 20));
	s->t->wake(other);
	CU_ASSERT_TRUE(polls_both(s, other, 10000));
	(void)s->t->wait(other, 0);
	CU_ASSERT_TRUE(polls_both(s, other, 10000));
	CU_ASSERT_TRUE(hears(s->a_net, MST_LOST, 0));
	CU_ASSERT(sim_now() - began_ns < 3 * MST_SECOND);
	s->t->net_close(other);
}

static void puts_and_goes_later(struct net_stage *s)
{
	sim_sleep(100 * MST_MS);
	CU_ASSERT(put_word(s->c_link, 1) >= 0);
	sim_sleep(MST_SECOND);
}

static void one_sleep_is_for_several_nets(void)
{
	play_over(&sim_near, sleeps_for_two, puts_and_goes_later);
	play_over(&sim_far, sleeps_for_two, puts_and_goes_later);
}

static CU_TestInfo cases[] = {
	{ "pieces land after detach, until the inbound region is freed",
	  pieces_land_until_the_inbound_is_freed },
	{ "what is on its way survives its sender", what_is_on_its_way_survives_its_sender },
	{ "a source is read when its piece lands", source_is_read_when_it_lands },
	{ "a near put can be seen in parts, but not its arrival", near_put_is_seen_in_parts },
	{ "a killed peer is lost soon", killed_peer_is_lost_soon },
	{ "power off is noticed by who puts, and not before", power_off_is_noticed_by_who_puts },
	{ "a stall that ends in time loses nothing", stall_that_ends_loses_nothing },
	{ "a long stall ends the link at each end in its time",
	  long_stall_ends_the_link_at_each_end_in_its_time },
	{ "a stall between two is nobody else's", a_path_of_two_is_nobody_elses },
	{ "a link that breaks is lost at both ends", a_link_that_breaks_is_lost_at_both_ends },
	{ "a ghost reaches nobody", ghost_reaches_nobody },
	{ "nor does it by its views", views_of_a_ghost_reach_nobody },
	{ "nor does it afar", ghost_reaches_nobody_afar },
	{ "a frozen process is written to", frozen_process_is_written_to },
	{ "one sleep is for several nets", one_sleep_is_for_several_nets },
	{ "same seed, same world; another seed, another", same_seed_same_world },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("sim.net", cases);
}
