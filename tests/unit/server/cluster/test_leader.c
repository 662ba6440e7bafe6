/* SPDX-License-Identifier: MIT */
/* The leader as its loop sees it, and a follower that a test plays: what goes down the line, what
 * waits where nobody executes it, and what becomes of a job whose follower does not come back. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/transport/transport.h"
#include "server/cluster/leader.h"
#include "server/cluster/peer.h"
#include "tests/fixtures.h"
#include "tests/unit/common/optim/optim_case.h"
#include "tests/ut.h"

#define WINDOW 64u
#define WORKERS 8u
#define LEASE (5 * MST_SECOND)
#define SERVER_LEASE (3 * LEASE)
#define NOTES 256

static struct mst_decider *leader;
static uint64_t now_ns;
static struct mst_notice note[NOTES];
static int note_count;

/* ---- the follower's end ---- */

static char inbound[(WINDOW + 32) * sizeof(struct mst_peer_entry)],
	follower[(WINDOW + 32) * sizeof(struct mst_peer_entry)];
static uint64_t got, acks; /* the last entry; words of acknowledgement */
static uint64_t sent;      /* the last entry that need not wait for another put */

static int put(struct mst_link *to, const struct mst_put *put)
{
	(void)to;
	CU_ASSERT_FATAL(put->offset + put->bytes <= sizeof(follower));
	memcpy(follower + put->offset, put->src, put->bytes);
	if (put->imm == MST_PEER_IMM_ACK) {
		acks++;
	} else {
		CU_ASSERT_EQUAL_FATAL(put->imm, mst_peer_imm(got + 1));
		got++;
		sent = put->more ? sent : got;
	}
	return 1;
}

static struct mst_net net = { .ops = &fix_transport };
static struct mst_link *line;

/* The number of links that are attached. */
static int links(void)
{
	return fix_net.attached - fix_net.detached;
}

static void arrive(enum mst_net_event_kind kind, uint32_t imm)
{
	struct mst_net_event ev = { .kind = kind, .link = line, .imm = imm, .error = -EPIPE };

	leader->ops->arrived(leader, &ev, now_ns);
}

/* The follower says that it has executed all up to @number. */
static void acknowledge(uint64_t number)
{
	memcpy(inbound + mst_peer_ack_at(WINDOW), &number, sizeof(number));
	arrive(MST_ARRIVED, MST_PEER_IMM_ACK);
}

static void link_up(void)
{
	struct mst_request request = { .kind = MST_REQ_PEER_LINKED };

	line = calloc(1, sizeof(*line));
	CU_ASSERT_PTR_NOT_NULL_FATAL(line);
	line->ops = &fix_transport;
	line->inbound = inbound;
	line->user = line; /* whatever was there */
	request.peer.server = 1;
	request.peer.link = line;
	leader->ops->request(leader, &request, now_ns);
	CU_ASSERT_PTR_NULL(line->user);
}

static struct mst_peer_entry *entry(uint64_t number)
{
	return (struct mst_peer_entry *)(void *)(follower + mst_peer_at(number, WINDOW));
}

/* The follower reports. */
static void report(uint64_t number, struct mst_peer_entry said)
{
	said.number = number;
	memcpy(inbound + mst_peer_at(number, WINDOW), &said, sizeof(said));
	arrive(MST_ARRIVED, mst_peer_imm(number));
}

/* ---- the loop ---- */

static void take_note(void *ctx, const struct mst_notice *notice)
{
	(void)ctx;
	CU_ASSERT_FATAL(note_count < NOTES);
	note[note_count++] = *notice;
}

static bool noted(enum mst_notice_kind kind)
{
	for (int i = 0; i < note_count; i++) {
		if (note[i].kind == kind)
			return true;
	}
	return false;
}

static void step(void)
{
	struct mst_ledger_event ev;
	struct mst_orders orders;

	do {
		while (leader->ops->next(leader, &orders, now_ns))
			leader->ops->done(leader, &orders, now_ns);
	} while (leader->ops->takes(leader) && leader->ops->reported(leader, &ev, now_ns) &&
		 (leader->ops->handle(leader, &ev, now_ns), true));
	leader->ops->flush(leader, now_ns);
}

static void happen(const struct mst_ledger_event *ev)
{
	CU_ASSERT_FATAL(leader->ops->takes(leader));
	leader->ops->handle(leader, ev, now_ns);
	step();
}

static void begin(void)
{
	struct mst_leader_cfg cfg = {
		.ledger = { .workers = WORKERS,
			    .shards = 2,
			    .slots = 2,
			    .buffers = 4,
			    .in_place = true,
			    .rule = { .patience_ns = 100 * LEASE,
				      .divide = true,
				      .min_workers = 1 },
			    .optimizer = optim_case_sgd(0.1, 0.9),
			    .lease_ns = LEASE,
			    .join_until_ns = MST_NEVER },
		.net = &net,
		.window = WINDOW,
		.server_lease_ns = SERVER_LEASE,
	};

	now_ns = MST_SECOND;
	note_count = 0;
	fix_net_begin(put, NULL);
	fix_net.heap = true;
	got = acks = sent = 0;
	memset(inbound, 0, sizeof(inbound));
	CU_ASSERT_EQUAL_FATAL(mst_leader_new(&cfg, &leader), 0);
	leader->note = take_note;
	link_up();
}

static void end(void)
{
	leader->ops->free(leader);
	CU_ASSERT_EQUAL(links(), 0);
}

/* The loop's part in time: whenever something is due. */
static void pass(uint64_t ns)
{
	for (uint64_t until = now_ns + ns; now_ns < until;) {
		uint64_t due = leader->ops->deadline(leader);
		now_ns = due < until ? due : until;
		if (now_ns >= due)
			leader->ops->tick(leader, now_ns);
	}
	step();
}

static void join_and_lose(void)
{
	static uint32_t incarnation;
	struct mst_ledger_event join = { .kind = MST_EV_JOIN, .join = { .cookie = 1, .rank = 0 } };

	happen(&join);
	incarnation = note[note_count - 1].who.incarnation;
	happen(&(struct mst_ledger_event){
		.kind = MST_EV_LOST, .who = { 0, incarnation }, .error = -EPIPE });
	note_count = 0;
}

/* ---- promises ---- */

static void nothing_is_put_before_the_follower_says_how_far_it_is(void)
{
	begin();
	join_and_lose();
	CU_ASSERT(acks == 1 && got == 0);
	acknowledge(0);
	step();
	CU_ASSERT_EQUAL(got, 1);
	CU_ASSERT(entry(1)->kind == MST_PEER_EVICT && entry(1)->number == 1);
	CU_ASSERT(entry(1)->rank == 0 && entry(1)->code == MST_EVICT_LOST);
	end();
}

/* The leader sums before it polls again: what is told must be on its way by then. */
static void what_is_told_together_leaves_with_the_last_of_it(void)
{
	begin();
	for (int i = 0; i < 3; i++)
		join_and_lose();
	acknowledge(0);
	step();
	CU_ASSERT(got == 3 && sent == 3);
	join_and_lose();
	CU_ASSERT(got == 4 && sent == 4);
	end();
}

static void without_room_no_event_is_taken(void)
{
	begin();
	acknowledge(0);
	for (uint32_t i = 0; i < WINDOW; i++)
		join_and_lose();
	CU_ASSERT_EQUAL(got, WINDOW);
	CU_ASSERT(!leader->ops->takes(leader));
	CU_ASSERT_EQUAL(leader->ops->deadline(leader), MST_NEVER); /* nor a timer judged */
	acknowledge(1);
	step();
	CU_ASSERT(leader->ops->takes(leader));
	join_and_lose();
	CU_ASSERT_EQUAL(got, WINDOW + 1);
	end();
}

/* Else both wait: the entry for room, and the room for the entry to be taken. */
static void what_a_entry_acknowledges_makes_room_before_it_is_taken(void)
{
	struct mst_peer_entry lost = {
		.kind = MST_PEER_LOST, .incarnation = 99, .code = -EPIPE, .ack = WINDOW
	};

	begin();
	acknowledge(0);
	for (uint32_t i = 0; i < WINDOW; i++)
		join_and_lose();
	CU_ASSERT(!leader->ops->takes(leader));
	report(1, lost);
	step();
	CU_ASSERT(leader->ops->takes(leader));
	join_and_lose();
	CU_ASSERT_EQUAL(got, WINDOW + 1);
	end();
}

static void what_a_entry_acknowledges_was_put(void)
{
	struct mst_peer_entry lost = {
		.kind = MST_PEER_LOST, .incarnation = 99, .code = -EPIPE, .ack = 2
	};

	begin();
	acknowledge(0);
	join_and_lose();
	report(1, lost);
	CU_ASSERT(noted(MST_NOTE_PEER_GONE) && links() == 0);
	step();
	end();
}

/* The immediate says which it is; one that was executed before would be looked at for ever. */
static void a_entry_is_the_one_that_was_announced(void)
{
	struct mst_peer_entry lost = { .kind = MST_PEER_LOST, .incarnation = 99, .code = -EPIPE };

	begin();
	acknowledge(0);
	report(1, lost);
	step();
	lost.number = 1;
	memcpy(inbound + mst_peer_at(2, WINDOW), &lost, sizeof(lost));
	arrive(MST_ARRIVED, mst_peer_imm(2));
	step();
	CU_ASSERT(noted(MST_NOTE_PEER_GONE) && links() == 0);
	step();
	end();
}

static void a_new_link_takes_up_where_the_last_left_off(void)
{
	begin();
	acknowledge(0);
	for (int i = 0; i < 5; i++)
		join_and_lose();
	arrive(MST_LOST, 0);
	CU_ASSERT(noted(MST_NOTE_PEER_LOST) && links() == 0);
	join_and_lose();
	pass(SERVER_LEASE - 1);
	link_up();
	step();
	got = 3; /* what the follower has executed */
	acknowledge(3);
	step();
	CU_ASSERT_EQUAL(got, 6);
	CU_ASSERT_FALSE(noted(MST_NOTE_PEER_GONE));
	end();
}

/* It was announced, but nobody had the room to take it. */
static void what_was_not_taken_comes_again(void)
{
	struct mst_peer_entry lost = { .kind = MST_PEER_LOST, .incarnation = 99, .code = -EPIPE };

	begin();
	acknowledge(0);
	for (uint32_t i = 0; i < WINDOW; i++)
		join_and_lose();
	report(1, lost);
	step();
	arrive(MST_LOST, 0);
	link_up();
	acknowledge(WINDOW);
	note_count = 0;
	report(1, lost);
	step();
	report(2, lost);
	step();
	CU_ASSERT_FALSE(noted(MST_NOTE_PEER_LOST));
	join_and_lose();
	CU_ASSERT_EQUAL(entry(WINDOW + 1)->ack, 2);
	end();
}

static void a_follower_without_a_link_for_the_lease_of_servers_ends_the_job(void)
{
	begin();
	acknowledge(0);
	arrive(MST_LOST, 0);
	note_count = 0;
	pass(SERVER_LEASE - 1);
	CU_ASSERT_FALSE(noted(MST_NOTE_PEER_GONE));
	pass(1);
	CU_ASSERT(noted(MST_NOTE_PEER_GONE) && noted(MST_NOTE_FINISHED));
	CU_ASSERT_EQUAL(note[note_count - 1].finish.why, MST_FINISH_SERVER);
	CU_ASSERT(leader->ops->takes(leader)); /* workers' sessions are still to be ended */
	end();
}

/* Its process was stopped, or its host asleep: no follower could have dialled. */
static void ones_own_standstill_is_not_a_followers(void)
{
	begin();
	acknowledge(0);
	arrive(MST_LOST, 0);
	note_count = 0;
	pass(LEASE);
	now_ns += 10 * SERVER_LEASE;
	leader->ops->tick(leader, now_ns);
	pass(LEASE);
	CU_ASSERT_FALSE(noted(MST_NOTE_PEER_GONE));
	pass(LEASE);
	CU_ASSERT(noted(MST_NOTE_PEER_GONE));
	end();
}

/* Workers' heartbeats are read all the while, and there are none. */
static void listen_to_workers(uint64_t ns)
{
	struct mst_ledger_event heard = { .kind = MST_EV_HEARD };

	for (uint64_t until = now_ns + ns; now_ns < until;) {
		pass(LEASE / 8);
		heard.heard_ns = now_ns;
		happen(&heard);
	}
	pass(1);
}

/* What workers have sent to the follower nobody knows meanwhile. */
static void no_time_passes_for_workers_while_a_follower_has_no_link(void)
{
	struct mst_ledger_event join = { .kind = MST_EV_JOIN, .join = { .cookie = 1, .rank = 0 } };

	begin();
	acknowledge(0);
	happen(&join);
	arrive(MST_LOST, 0);
	note_count = 0;
	listen_to_workers(2 * LEASE);
	CU_ASSERT_FALSE(noted(MST_NOTE_EVICTED));
	link_up();
	acknowledge(0);
	listen_to_workers(LEASE);
	CU_ASSERT(noted(MST_NOTE_EVICTED));
	end();
}

/* The follower dials, and nothing that it puts arrives. */
static void a_link_by_which_nothing_comes_is_none(void)
{
	begin();
	acknowledge(0);
	arrive(MST_LOST, 0);
	note_count = 0;
	for (int i = 0; i < 3; i++) {
		pass(SERVER_LEASE / 4);
		link_up();
		arrive(MST_LOST, 0);
	}
	pass(SERVER_LEASE / 4);
	CU_ASSERT(noted(MST_NOTE_PEER_GONE) && noted(MST_NOTE_FINISHED));
	end();
}

/* Also where the ledger has decided more than the line has room for. */
static void a_follower_that_executes_nothing_ends_the_job_too(void)
{
	struct mst_request gone = { .kind = MST_REQ_PEER_GONE };

	begin();
	acknowledge(0);
	for (uint32_t i = 0; i < WINDOW; i++)
		join_and_lose();
	CU_ASSERT(!leader->ops->takes(leader));
	gone.peer.server = 1;
	leader->ops->request(leader, &gone, now_ns);
	step();
	CU_ASSERT(noted(MST_NOTE_FINISHED) && leader->ops->takes(leader));
	end();
}

static void what_no_follower_says_ends_the_job(void)
{
	begin();
	acknowledge(0);
	report(1, (struct mst_peer_entry){ .kind = MST_PEER_COMMIT });
	step();
	step();
	CU_ASSERT(noted(MST_NOTE_PEER_GONE) && noted(MST_NOTE_FINISHED));
	end();
}

/* Links keep their order: a gap is no loss, and would be there on the next link, too. */
static void an_immediate_out_of_order_ends_the_job(void)
{
	begin();
	acknowledge(0);
	arrive(MST_ARRIVED, mst_peer_imm(2));
	CU_ASSERT(noted(MST_NOTE_PEER_GONE) && links() == 0);
	CU_ASSERT_EQUAL(note[note_count - 1].peer.error, -EPROTO);
	step();
	CU_ASSERT(noted(MST_NOTE_FINISHED));
	end();
}

static void links_on_which_nothing_is_said_are_none(void)
{
	begin();
	for (uint64_t until_ns = now_ns + SERVER_LEASE; now_ns < until_ns; now_ns += LEASE / 8) {
		CU_ASSERT_FALSE(noted(MST_NOTE_PEER_GONE));
		arrive(MST_LOST, 0);
		link_up();
		leader->ops->tick(leader, now_ns);
	}
	leader->ops->tick(leader, now_ns);
	step();
	CU_ASSERT(noted(MST_NOTE_PEER_GONE) && noted(MST_NOTE_FINISHED));
	end();
}

static void reports_count_as_that_servers(void)
{
	struct mst_ledger_event join = { .kind = MST_EV_JOIN, .join = { .cookie = 1, .rank = 0 } };
	struct mst_peer_entry full = { .kind = MST_PEER_FULL, .incarnation = 1 };

	begin();
	acknowledge(0);
	happen(&join);
	/* A header before the session has begun is of a slot that is granted, and judged: refused
	 * by the ledger only once both servers have it. */
	full.header = (struct mst_lane_header){
		.seq = 1, .epoch = 1, .weight = 1, .size = MST_HEADER_SIZE
	};
	report(1, full);
	step();
	CU_ASSERT_EQUAL(got, 0);
	struct mst_ledger_event own = { .kind = MST_EV_FULL, .who = { 0, 1 } };
	own.full.header = full.header;
	happen(&own);
	CU_ASSERT_EQUAL(got, 1); /* the slot is granted anew, by both */
	CU_ASSERT(entry(1)->kind == MST_PEER_REGRANT && entry(1)->value == 2 && entry(1)->ack == 1);
	end();
}

/* Which link of a worker was lost only a follower may know. */
static void who_lost_a_worker_is_told(void)
{
	struct mst_ledger_event join = { .kind = MST_EV_JOIN, .join = { .cookie = 1, .rank = 0 } };
	const struct mst_notice *last = note;

	begin();
	acknowledge(0);
	happen(&join);
	report(1,
	       (struct mst_peer_entry){ .kind = MST_PEER_LOST, .incarnation = 1, .code = -EPIPE });
	step();
	last = &note[note_count - 1];
	CU_ASSERT(last->kind == MST_NOTE_EVICTED && last->evict.why == MST_EVICT_LOST);
	CU_ASSERT_EQUAL(last->evict.server, 1);
	happen(&join);
	happen(&(struct mst_ledger_event){ .kind = MST_EV_LOST, .who = { 0, 2 }, .error = -EPIPE });
	last = &note[note_count - 1];
	CU_ASSERT(last->kind == MST_NOTE_EVICTED && last->evict.why == MST_EVICT_LOST);
	CU_ASSERT_EQUAL(last->evict.server, 0);
	end();
}

static void a_link_that_was_replaced_is_not_listened_to(void)
{
	struct mst_link old = { .ops = &fix_transport };
	struct mst_net_event ev = { .kind = MST_LOST, .link = &old, .error = -EPIPE };

	begin();
	acknowledge(0);
	leader->ops->arrived(leader, &ev, now_ns);
	ev = (struct mst_net_event){ .kind = MST_ARRIVED, .link = &old, .imm = 77 };
	leader->ops->arrived(leader, &ev, now_ns);
	CU_ASSERT_EQUAL(note_count, 0);
	end();
}

static void what_comes_before_the_first_word_ends_the_follower(void)
{
	begin();
	report(1, (struct mst_peer_entry){ .kind = MST_PEER_LINKED, .incarnation = 1 });
	CU_ASSERT(noted(MST_NOTE_PEER_GONE));
	end();
}

static CU_TestInfo cases[] = {
	{ "who lost a worker is told", who_lost_a_worker_is_told },
	{ "nothing is put before the follower says how far it is",
	  nothing_is_put_before_the_follower_says_how_far_it_is },
	{ "what is told together leaves with the last of it",
	  what_is_told_together_leaves_with_the_last_of_it },
	{ "without room no event is taken", without_room_no_event_is_taken },
	{ "what an entry acknowledges makes room before it is taken",
	  what_a_entry_acknowledges_makes_room_before_it_is_taken },
	{ "what an entry acknowledges was put", what_a_entry_acknowledges_was_put },
	{ "an entry is the one that was announced", a_entry_is_the_one_that_was_announced },
	{ "a new link takes up where the last left off",
	  a_new_link_takes_up_where_the_last_left_off },
	{ "what was not taken comes again", what_was_not_taken_comes_again },
	{ "a follower without a link for the lease of servers ends the job",
	  a_follower_without_a_link_for_the_lease_of_servers_ends_the_job },
	{ "one's own standstill is not a follower's", ones_own_standstill_is_not_a_followers },
	{ "no time passes for workers while a follower has no link",
	  no_time_passes_for_workers_while_a_follower_has_no_link },
	{ "a link by which nothing comes is none", a_link_by_which_nothing_comes_is_none },
	{ "a follower that executes nothing ends the job too",
	  a_follower_that_executes_nothing_ends_the_job_too },
	{ "what no follower says ends the job", what_no_follower_says_ends_the_job },
	{ "an immediate out of order ends the job", an_immediate_out_of_order_ends_the_job },
	{ "links on which nothing is said are none", links_on_which_nothing_is_said_are_none },
	{ "reports count as that server's", reports_count_as_that_servers },
	{ "a link that was replaced is not listened to",
	  a_link_that_was_replaced_is_not_listened_to },
	{ "what comes before the first word ends the follower",
	  what_comes_before_the_first_word_ends_the_follower },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("leader", cases);
}
