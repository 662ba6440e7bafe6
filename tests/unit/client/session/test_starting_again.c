/* SPDX-License-Identifier: MIT */
/* What a worker that comes back sends to the start of the next generation: the sets of its last
 * versions, and its last result. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/session/starting.h"
#include "tests/ut.h"

#define WORKERS 130u
#define HISTORY 3u
#define ELEMS 500000u /* two pieces of a state, at least */
#define OWN 7u
#define MESSAGES 256u

static struct mst_worker worker;
static struct mst_client_session session;
static struct mst_settings settings;
static struct mst_lineage lineage;
static struct mst_starting starting;
static struct mst_reason failure;
static float result[ELEMS];

/* What was sent, as far as there was room. */
static struct mst_set_piece sent[MESSAGES];
static uint32_t sets, states, starts, room;
static bool offers, disordered; /* a set came after a piece of the state */
static uint64_t state_have;

int __wrap_mst_client_session_tell(struct mst_client_session *s, const struct mst_message *msg);
int __wrap_mst_client_session_tell(struct mst_client_session *s, const struct mst_message *msg)
{
	(void)s;
	if (room == 0)
		return -EAGAIN;
	room--;
	if (msg->kind == MST_MSG_SET && sets < MESSAGES) {
		disordered |= states > 0;
		sent[sets++] = msg->set;
	} else if (msg->kind == MST_MSG_STATE) {
		disordered |= msg->state.offset != state_have;
		state_have += msg->state.length;
		states++;
	} else if (msg->kind == MST_MSG_START) {
		starts++;
		offers = msg->start.offers != 0;
	}
	return 0;
}

/* The server's answer with @version, which has @shares ranks in its set. */
static void give(uint64_t version, uint32_t shares)
{
	static uint8_t
		inbound[sizeof(struct mst_lane_record) + WORKERS * sizeof(struct mst_lane_share)];
	struct mst_lane_ask ask;
	struct mst_lane_record record = { .version = version,
					  .weight = shares,
					  .lr_scale = 0.5,
					  .window = (uint32_t)version, /* of the next step */
					  .share_count = shares,
					  .size = MST_RECORD_SIZE };

	if (worker.phase == MST_WORKER_WORKING)
		CU_ASSERT_FATAL(mst_worker_wait_asks(&worker, &ask));
	struct mst_lane_answer a = { worker.ask_number, version, version, MST_WHERE_COPIED, 0 };
	struct muster_outcome out;
	memcpy(inbound, &record, sizeof(record));
	for (uint32_t i = 0; i < shares; i++) {
		struct mst_lane_share share = { i, 1 + i, i };
		memcpy(inbound + sizeof(record) + i * sizeof(share), &share, sizeof(share));
	}
	CU_ASSERT_EQUAL_FATAL(mst_worker_answered(&worker, 0, &a, inbound), 0);
	CU_ASSERT_EQUAL_FATAL(mst_worker_misses(&worker), 0);
	CU_ASSERT_TRUE(mst_lineage_outcome(&lineage, version, 0));
	(void)mst_worker_take(&worker, &out);
}

static void begin(void)
{
	struct mst_worker_cfg cfg = { .elems = ELEMS,
				      .slots = 1,
				      .workers = WORKERS,
				      .buffers = 4,
				      .servers = 1,
				      .in_order = true,
				      .history = HISTORY };
	static const struct mst_welcome first = {
		.generation = { .run = "0123456789abcdef", .number = 1, .id = OWN },
		.start_number = 1,
		.incarnation = 1,
	};

	CU_ASSERT_EQUAL_FATAL(mst_worker_init(&worker, &cfg), 0);
	mst_worker_start(&worker);
	mst_lineage_init(&lineage, true);
	mst_lineage_session(&lineage, &first);
	session = (struct mst_client_session){ .settings = &settings, .job = { .elems = ELEMS } };
	starting = (struct mst_starting){
		.session = &session, .worker = &worker, .lineage = &lineage, .failure = &failure
	};
	sets = states = starts = 0;
	room = UINT32_MAX;
	state_have = 0;
	disordered = false;
}

static void lose(void)
{
	const struct mst_worker_cfg again = worker.cfg;

	mst_worker_unlink(&worker);
	CU_ASSERT_EQUAL_FATAL(mst_worker_go_on(&worker, &again), 0);
}

/* It is at version @last; version v has v x 40 ranks in its set, at most all. */
static void begin_at(uint64_t last)
{
	begin();
	for (uint64_t v = 0; v <= last; v++)
		give(v, v * 40 < WORKERS ? (uint32_t)v * 40 : WORKERS);
	lose();
}

static void asks(bool state)
{
	session.told.send_state = true;
	session.told.wanted = (struct mst_wanted){ .state = state, .sets = 1 };
}

static void serve(void)
{
	CU_ASSERT_EQUAL(mst_starting_serve(&starting, NULL), 0);
}

/* Pieces of at most 64 shares, in the order of versions and ranks. */
static void check_sets(uint64_t first, uint64_t last)
{
	uint32_t i = 0;

	for (uint64_t v = first; v <= last; v++) {
		uint32_t total = v * 40 < WORKERS ? (uint32_t)v * 40 : WORKERS, have = 0;
		do {
			const struct mst_set_piece *p = &sent[i++];
			CU_ASSERT_FATAL(i <= sets);
			CU_ASSERT(p->version == v && p->first == have && p->total == total);
			CU_ASSERT(p->made == (v > 0 ? OWN : 0));
			CU_ASSERT(p->weight == total && p->lr_scale == 0.5);
			CU_ASSERT(p->count == (total - have < 64 ? total - have : 64));
			for (uint32_t s = 0; s < p->count; s++)
				CU_ASSERT(p->share[s].rank == have + s &&
					  p->share[s].count == 1 + have + s);
			have += p->count;
		} while (have < total);
	}
	CU_ASSERT_EQUAL(i, sets);
}

static void sets_of_the_last_versions_come_in_order_before_the_state(void)
{
	begin_at(5);
	mst_starting_again(&starting, result);
	CU_ASSERT(starts == 1 && offers);
	serve();
	CU_ASSERT_EQUAL(sets + states, 0); /* nobody has asked */
	asks(true);
	serve();
	check_sets(5 - HISTORY, 5);
	CU_ASSERT_EQUAL(state_have, sizeof(result));
	CU_ASSERT_FALSE(disordered);
	serve();
	check_sets(5 - HISTORY, 5); /* once */
	CU_ASSERT_EQUAL(state_have, sizeof(result));
	mst_worker_fini(&worker);
}

/* The window of the step that made a version is what the version before has opened. */
static void set_has_the_window_that_its_version_was_made_under(void)
{
	begin_at(5);
	mst_starting_again(&starting, result);
	asks(true);
	serve();
	for (uint32_t i = 0; i < sets; i++) {
		if (sent[i].version > 5 - HISTORY)
			CU_ASSERT_EQUAL(sent[i].window, sent[i].version - 1);
	}
	mst_worker_fini(&worker);
}

static void what_found_no_room_goes_on_where_it_was(void)
{
	begin_at(4);
	mst_starting_again(&starting, result);
	asks(true);
	room = 0;
	for (int i = 0; i < 100; i++) {
		serve();
		room = 1;
	}
	check_sets(4 - HISTORY, 4);
	CU_ASSERT_EQUAL(state_have, sizeof(result));
	CU_ASSERT_FALSE(disordered);
	mst_worker_fini(&worker);
}

static void worker_without_a_whole_copy_sends_its_sets_alone(void)
{
	begin_at(2);
	mst_starting_again(&starting, NULL);
	CU_ASSERT(starts == 1 && !offers);
	asks(false);
	serve();
	serve();
	check_sets(0, 2);
	CU_ASSERT(states == 1 && state_have == 0); /* which says that this was all */
	mst_worker_fini(&worker);
}

/* A second start asks again, and gets all of it again. */
static void each_start_gets_all(void)
{
	begin_at(5);
	mst_starting_again(&starting, result);
	asks(true);
	room = 3;
	serve();
	sets = states = 0;
	state_have = 0;
	room = UINT32_MAX;
	lose();
	mst_starting_again(&starting, result);
	serve();
	check_sets(5 - HISTORY, 5);
	CU_ASSERT_EQUAL(state_have, sizeof(result));
	mst_worker_fini(&worker);
}

static CU_TestInfo cases[] = {
	{ "the sets of the last versions come in order, before the state",
	  sets_of_the_last_versions_come_in_order_before_the_state },
	{ "a set has the window that its version was made under",
	  set_has_the_window_that_its_version_was_made_under },
	{ "what found no room goes on where it was", what_found_no_room_goes_on_where_it_was },
	{ "a worker without a whole copy sends its sets alone",
	  worker_without_a_whole_copy_sends_its_sets_alone },
	{ "each start gets all", each_start_gets_all },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("workers that start again", cases);
}
