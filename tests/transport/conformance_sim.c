/* SPDX-License-Identifier: MIT */
/*
 * What common/transport/transport.h promises, held against a transport of the simulated world:
 *
 *   test_transport_sim sim_near|sim_far [FIRST-SEED LAST-SEED]
 *
 * The cases are those of test_transport. Each lives in a world of its own for each seed, as a fiber
 * of one process, its peers in others. Killing and stopping are the world's; what a world has not
 * is left out, and named.
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/sim/net.h"
#include "tests/transport/life_sim.h"
#include "tests/transport/world.h"

#define CASES_MAX 80
#define LONG_NS (3600 * MST_SECOND)

const struct mst_transport *transport;
const struct mst_transport *acceptor, *other_network;
bool in_processes = true;
uint64_t haste = 20;

static CU_TestInfo cases[CASES_MAX + 1], lived[CASES_MAX + 1];
static struct mst_transport looked_at;
static uint64_t first_seed = 1, last_seed = 20;

static const char *const left_out[] = {
	"a signal ends a wait with -EINTR", /* there are no signals */
	"a signal's handler may wake",      /* nor handlers */
	"so does one whose handler is gone by then",
	"a stop ends no wait",
	"nobody writes what is published", /* all memory is of one process */
};

static bool is_left_out(const char *name)
{
	for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
		if (strcmp(left_out[i], name) == 0)
			return true;
	return false;
}

/* ---- a case in a world ---- */

struct run {
	CU_TestFunc act;
	bool ended;
};

/* An assertion that is fatal leaves the case by this: it must not leave the fiber. */
static void live(void *arg)
{
	CU_Test *test = CU_get_current_test();
	jmp_buf *outer = test->pJumpBuf, own;
	struct run *run = arg;

	test->pJumpBuf = &own;
	if (setjmp(own) == 0)
		run->act();
	test->pJumpBuf = outer;
	life_sim_end();
	run->ended = true;
}

static void live_in_world(CU_TestFunc act, uint64_t seed)
{
	unsigned failures = CU_get_number_of_failures();
	struct run run = { .act = act };

	sim_begin(seed);
	sim_spawn(sim_process_new("tester"), live, &run);
	sim_run(sim_now() + LONG_NS);
	if (!run.ended) {
		printf("seed %lu: nobody moves any more\n", (unsigned long)seed);
		abort();
	}
	if (CU_get_number_of_failures() != failures)
		printf("seed %lu\n", (unsigned long)seed);
	sim_end();
}

static void live_in_all_worlds(void)
{
	const char *name = CU_get_current_test()->pName;
	const CU_TestInfo *c = cases;

	while (strcmp(c->pName, name) != 0)
		c++;
	for (uint64_t seed = first_seed; seed <= last_seed; seed++)
		live_in_world(c->pTestFunc, seed);
}

/* ---- the suite ---- */

static void add_cases(const CU_TestInfo *more)
{
	size_t n = 0;

	while (cases[n].pName != NULL)
		n++;
	for (; more->pName != NULL && n < CASES_MAX; more++) {
		if (is_left_out(more->pName)) {
			printf("left out: %s\n", more->pName);
			continue;
		}
		lived[n] = (CU_TestInfo){ more->pName, live_in_all_worlds };
		cases[n++] = *more;
	}
}

/* Looking takes time; who does nothing else gets somewhere all the same. */
static int poll_slowly(struct mst_net *net, struct mst_net_event *ev, int max)
{
	sim_sleep(sim_between(500, 5000));
	return net->ops->poll(net, ev, max);
}

int main(int argc, char **argv)
{
	bool near = argc > 1 && strcmp(argv[1], "sim_near") == 0;
	bool far = argc > 1 && strcmp(argv[1], "sim_far") == 0;

	if ((argc != 2 && argc != 4) || (!near && !far)) {
		fprintf(stderr, "usage: %s sim_near|sim_far [FIRST-SEED LAST-SEED]\n", argv[0]);
		return EXIT_FAILURE;
	}
	if (argc == 4) {
		first_seed = strtoull(argv[2], NULL, 0);
		last_seed = strtoull(argv[3], NULL, 0);
	}
	looked_at = near ? sim_near : sim_far;
	looked_at.poll = poll_slowly;
	transport = acceptor = &looked_at;
	sim_manner.slow_ns = MST_MS / 2;
	add_cases(put_cases);
	add_cases(listener_cases);
	add_cases(wait_cases);
	add_cases(end_cases);
	add_cases(process_cases);
	add_cases(region_cases);
	add_cases(copy_cases);
	return ut_main(argv[1], lived);
}
