/* SPDX-License-Identifier: MIT */
/* Requests of the control thread, while the data thread has room for them and while it has none. */
#include <errno.h>
#include <string.h>

#include "server/control/job/requests.h"
#include "tests/fixtures.h"
#include "tests/ut.h"

#define WORKERS 3u
#define SESSIONS 12u
#define SERVERS 3u
#define LINKS (SERVERS - 1)
#define MOST (WORKERS + SESSIONS + 2 * LINKS)

static struct mst_requests requests;
static uint32_t room;     /* of the rings */
static bool servers_wait; /* the ring of requests about servers has none */
static struct mst_request taken[2 * MOST];
static uint32_t taken_count;

bool __wrap_mst_server_request(struct mst_server *s, const struct mst_request *request);
bool __wrap_mst_server_request(struct mst_server *s, const struct mst_request *request)
{
	(void)s;
	bool of_servers = request->kind == MST_REQ_PEER_LINKED ||
			  request->kind == MST_REQ_PEER_GONE;
	if (room == 0 || (of_servers && servers_wait))
		return false;
	room--;
	CU_ASSERT_FATAL(taken_count < sizeof(taken) / sizeof(taken[0]));
	taken[taken_count++] = *request;
	return true;
}

static struct mst_link link_of[MOST];
static struct mst_session session[SESSIONS];

static void begin(uint32_t ring_room)
{
	struct mst_requests_cfg cfg = { WORKERS, SESSIONS, SERVERS };

	room = ring_room;
	taken_count = 0;
	fix_net_begin(NULL, NULL);
	servers_wait = false;
	for (uint32_t i = 0; i < MOST; i++)
		link_of[i].ops = &fix_transport;
	CU_ASSERT_EQUAL_FATAL(mst_requests_init(&requests, &cfg), 0);
	mst_requests_open(&requests, NULL);
}

static void end(void)
{
	mst_requests_close(&requests);
	mst_requests_fini(&requests);
}

static void step_with_room(uint32_t ring_room)
{
	room = ring_room;
	mst_requests_step(&requests);
}

/* ---- what is asked ---- */

static struct mst_request event(enum mst_ledger_event_kind kind, uint32_t rank,
				uint32_t incarnation)
{
	struct mst_request r = { .kind = MST_REQ_EVENT, .event = { .kind = kind } };

	r.event.who = (struct mst_identity){ rank, incarnation };
	return r;
}

static bool offers_heartbeat(void)
{
	struct mst_request r = event(MST_EV_HEARTBEAT, 0, 1);

	return mst_requests_offer(&requests, &r);
}

static void lose(uint32_t rank, uint32_t incarnation)
{
	struct mst_request r = event(MST_EV_LOST, rank, incarnation);

	mst_requests_put(&requests, &r);
}

static void link_session(uint32_t i)
{
	struct mst_request r = { .kind = MST_REQ_LINKED, .session = &session[i] };

	mst_requests_put(&requests, &r);
}

static void link_server(uint32_t server, uint64_t number)
{
	struct mst_request r = { .kind = MST_REQ_PEER_LINKED };

	r.peer.server = server;
	r.peer.number = number;
	r.peer.link = &link_of[number];
	mst_requests_put(&requests, &r);
}

static void lose_server(uint32_t server)
{
	struct mst_request r = { .kind = MST_REQ_PEER_GONE };

	r.peer.server = server;
	mst_requests_put(&requests, &r);
}

static bool took_loss(uint32_t i, uint32_t rank, uint32_t incarnation)
{
	const struct mst_ledger_event *ev = &taken[i].event;

	return i < taken_count && taken[i].kind == MST_REQ_EVENT && ev->kind == MST_EV_LOST &&
	       ev->who.rank == rank && ev->who.incarnation == incarnation;
}

/* ---- cases ---- */

static void what_finds_room_waits_for_nothing(void)
{
	begin(3);
	CU_ASSERT(offers_heartbeat());
	lose(0, 1);
	link_session(0);
	CU_ASSERT_EQUAL(taken_count, 3);
	CU_ASSERT_FALSE(mst_requests_wait(&requests));
	end();
}

static void what_can_be_repeated_is_refused_without_room(void)
{
	begin(0);
	CU_ASSERT_FALSE(offers_heartbeat());
	CU_ASSERT_FALSE(mst_requests_wait(&requests));
	room = 1;
	CU_ASSERT(offers_heartbeat());
	end();
}

/* Nobody is asked to come again in a step, and nobody overtakes. */
static void what_waits_goes_in_order(void)
{
	begin(0);
	lose(1, 1);
	link_session(4);
	lose(0, 1);
	CU_ASSERT(mst_requests_wait(&requests));
	step_with_room(2);
	CU_ASSERT_EQUAL_FATAL(taken_count, 2);
	CU_ASSERT(took_loss(0, 1, 1));
	CU_ASSERT(taken[1].kind == MST_REQ_LINKED && taken[1].session == &session[4]);
	CU_ASSERT(mst_requests_wait(&requests));
	step_with_room(2);
	CU_ASSERT(took_loss(2, 0, 1));
	CU_ASSERT_FALSE(mst_requests_wait(&requests));
	CU_ASSERT_EQUAL(room, 1);
	end();
}

static void nothing_overtakes_what_waits(void)
{
	begin(0);
	lose(0, 1);
	lose(1, 1);
	room = 1;
	CU_ASSERT_FALSE(offers_heartbeat());
	CU_ASSERT(took_loss(0, 0, 1));
	room = 2;
	CU_ASSERT(offers_heartbeat());
	CU_ASSERT(took_loss(1, 1, 1));
	CU_ASSERT_EQUAL(taken[2].event.kind, MST_EV_HEARTBEAT);
	end();
}

/* There are two rings, and the order holds over both. */
static void what_would_find_room_waits_behind_what_does_not(void)
{
	begin(MOST);
	servers_wait = true;
	lose_server(1);
	CU_ASSERT_FALSE(offers_heartbeat());
	lose(0, 1);
	CU_ASSERT_EQUAL(taken_count, 0);
	servers_wait = false;
	mst_requests_step(&requests);
	CU_ASSERT_EQUAL_FATAL(taken_count, 2);
	CU_ASSERT_EQUAL(taken[0].kind, MST_REQ_PEER_GONE);
	CU_ASSERT(took_loss(1, 0, 1));
	end();
}

static void there_is_a_place_for_all_that_can_wait(void)
{
	begin(0);
	for (int again = 0; again < 3; again++) {
		for (uint32_t i = 0; i < WORKERS; i++)
			lose(i, 1);
		for (uint32_t i = 0; i < SESSIONS; i++)
			link_session(i);
		for (uint32_t i = 1; i < SERVERS; i++) {
			link_server(i, i);
			lose_server(i);
		}
	}
	step_with_room(2 * MOST);
	CU_ASSERT_EQUAL(taken_count, MOST);
	CU_ASSERT_FALSE(mst_requests_wait(&requests));
	end();
}

/* The ledger had ended the one before, or there would be no other. */
static void of_a_rank_the_newest_loss_waits(void)
{
	begin(0);
	lose(2, 1);
	lose(1, 1);
	lose(2, 2);
	step_with_room(MOST);
	CU_ASSERT_EQUAL_FATAL(taken_count, 2);
	CU_ASSERT(took_loss(0, 1, 1));
	CU_ASSERT(took_loss(1, 2, 2));
	end();
}

static void of_a_server_the_newest_link_waits(void)
{
	begin(0);
	link_server(1, 1);
	link_server(2, 2);
	link_server(1, 3);
	CU_ASSERT_EQUAL(fix_net.freed, 1);
	step_with_room(MOST);
	CU_ASSERT_EQUAL_FATAL(taken_count, 2);
	CU_ASSERT_EQUAL(taken[0].peer.number, 2);
	CU_ASSERT_EQUAL(taken[1].peer.number, 3);
	end();
	CU_ASSERT_EQUAL(fix_net.freed, 1);
}

static void a_closed_data_side_hears_no_more(void)
{
	begin(0);
	lose(0, 1);
	link_server(1, 1);
	link_session(0);
	mst_requests_close(&requests);
	CU_ASSERT_EQUAL(fix_net.freed, 1);
	CU_ASSERT_FALSE(mst_requests_wait(&requests));
	mst_requests_open(&requests, NULL);
	step_with_room(MOST);
	CU_ASSERT_EQUAL(taken_count, 0);
	end();
}

static CU_TestInfo cases[] = {
	{ "what finds room waits for nothing", what_finds_room_waits_for_nothing },
	{ "what can be repeated is refused without room",
	  what_can_be_repeated_is_refused_without_room },
	{ "what waits goes in order", what_waits_goes_in_order },
	{ "nothing overtakes what waits", nothing_overtakes_what_waits },
	{ "what would find room waits behind what does not",
	  what_would_find_room_waits_behind_what_does_not },
	{ "there is a place for all that can wait", there_is_a_place_for_all_that_can_wait },
	{ "of a rank the newest loss waits", of_a_rank_the_newest_loss_waits },
	{ "of a server the newest link waits", of_a_server_the_newest_link_waits },
	{ "a closed data side hears no more", a_closed_data_side_hears_no_more },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("requests", cases);
}
