/* SPDX-License-Identifier: MIT */
/* A follower's end of its line with the leader, and a leader that a test plays: what the follower
 * takes from it, and that what no leader can mean ends the follower's part in the job, and nothing
 * else. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "server/cluster/follower.h"
#include "server/cluster/peer.h"
#include "tests/fixtures.h"
#include "tests/ut.h"

#define WINDOW 64u
#define LEASE (5 * MST_SECOND)
#define SERVER_LEASE (3 * LEASE)
#define NOTES 64

static struct mst_decider *follower;
static uint64_t now_ns;
static struct mst_notice note[NOTES];
static int note_count;

/* ---- the leader's end ---- */

static char inbound[(WINDOW + 32) * sizeof(struct mst_peer_entry)];
static int entries_put, dial_fails;
static struct mst_link *line;

static int put(struct mst_link *to, const struct mst_put *put)
{
	(void)to;
	entries_put += put->imm != MST_PEER_IMM_ACK;
	return 1;
}

static struct mst_net net = { .ops = &fix_transport };

static int dial(const struct mst_dial *how, struct mst_link **out)
{
	CU_ASSERT_STRING_EQUAL(how->address, "@leader");
	if (dial_fails != 0)
		return dial_fails;
	line = calloc(1, sizeof(*line));
	CU_ASSERT_PTR_NOT_NULL_FATAL(line);
	line->ops = &fix_transport;
	line->inbound = inbound;
	*out = line;
	return 0;
}

static void arrive(enum mst_net_event_kind kind, uint32_t imm)
{
	struct mst_net_event ev = { .kind = kind, .link = line, .imm = imm, .error = -EPIPE };

	follower->ops->arrived(follower, &ev, now_ns);
}

/* It has executed all up to @number. */
static void acknowledge(uint64_t number)
{
	memcpy(inbound + mst_peer_ack_at(WINDOW), &number, sizeof(number));
	arrive(MST_ARRIVED, MST_PEER_IMM_ACK);
}

static void announce(uint64_t number, struct mst_peer_entry entry)
{
	memcpy(inbound + mst_peer_at(number, WINDOW), &entry, sizeof(entry));
	arrive(MST_ARRIVED, mst_peer_imm(number));
}

static void order(uint64_t number, struct mst_peer_entry entry)
{
	entry.number = number;
	announce(number, entry);
}

/* ---- the loop ---- */

static void take_note(void *ctx, const struct mst_notice *notice)
{
	(void)ctx;
	CU_ASSERT_FATAL(note_count < NOTES);
	note[note_count++] = *notice;
}

static int noted(enum mst_notice_kind kind)
{
	int count = 0;

	for (int i = 0; i < note_count; i++)
		count += note[i].kind == kind;
	return count;
}

static bool is_cut_off(int error)
{
	return noted(MST_NOTE_PEER_GONE) == 1 && note[note_count - 1].kind == MST_NOTE_PEER_GONE &&
	       note[note_count - 1].peer.error == error;
}

static void ask_to_dial(void)
{
	struct mst_request request = { .kind = MST_REQ_DIAL };

	follower->ops->request(follower, &request, now_ns);
}

static void begin(void)
{
	struct mst_follower_cfg cfg = { .net = &net,
					.window = WINDOW,
					.workers = 4,
					.slots = 2,
					.buffers = 4,
					.lease_ns = LEASE,
					.server_lease_ns = SERVER_LEASE,
					.address = "@leader" };

	now_ns = MST_SECOND;
	note_count = entries_put = dial_fails = 0;
	fix_net_begin(put, dial);
	fix_net.heap = true;
	memset(inbound, 0, sizeof(inbound));
	CU_ASSERT_EQUAL_FATAL(mst_follower_new(&cfg, &follower), 0);
	follower->note = take_note;
	ask_to_dial();
	CU_ASSERT_EQUAL(noted(MST_NOTE_PEER_LINKED), 1);
	acknowledge(0);
}

static void end(void)
{
	follower->ops->free(follower);
}

static struct mst_orders orders;

static bool next(void)
{
	return follower->ops->next(follower, &orders, now_ns);
}

static struct mst_peer_entry evict(uint32_t rank, uint32_t incarnation)
{
	return (struct mst_peer_entry){ .kind = MST_PEER_EVICT,
					.rank = rank,
					.incarnation = incarnation };
}

static void report_a_link(void)
{
	struct mst_ledger_event ev = { .kind = MST_EV_LINKED, .who = { 1, 9 } };

	follower->ops->handle(follower, &ev, now_ns);
}

/* ---- promises ---- */

static void orders_come_one_by_one(void)
{
	begin();
	CU_ASSERT_FALSE(next());
	order(1, evict(2, 1));
	order(2, evict(3, 1));
	CU_ASSERT(next());
	CU_ASSERT(orders.decision.kind == MST_DO_EVICT && orders.decision.who.rank == 2);
	CU_ASSERT(next());
	CU_ASSERT_EQUAL(orders.decision.who.rank, 3);
	CU_ASSERT_FALSE(next());
	CU_ASSERT_EQUAL(noted(MST_NOTE_PEER_GONE), 0);
	end();
}

static void an_order_that_cannot_be_cuts_off(void)
{
	static const struct mst_peer_entry wrong[] = {
		{ .kind = MST_PEER_KINDS, .rank = 1, .incarnation = 1 },
		{ .kind = MST_PEER_COUNT, .rank = 1, .incarnation = 1, .slot = 2 },
		{ .kind = MST_PEER_EVICT, .rank = 4, .incarnation = 1 },
		{ .kind = MST_PEER_COMMIT, .commit.buffer = 4 },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		begin();
		order(1, wrong[i]);
		CU_ASSERT_FALSE(next());
		CU_ASSERT(is_cut_off(-EPROTO));
		CU_ASSERT_FALSE(next());
		end();
	}
}

static void a_entry_that_is_not_the_announced_one_cuts_off(void)
{
	struct mst_peer_entry other = evict(2, 1);

	for (uint64_t number = 0; number <= 3; number++) {
		begin();
		order(1, evict(1, 1));
		CU_ASSERT(next());
		other.number = number;
		announce(2, other);
		CU_ASSERT_EQUAL(next(), number == 2);
		CU_ASSERT_EQUAL(is_cut_off(-EPROTO), number != 2);
		end();
	}
}

static void a_gap_in_what_is_announced_cuts_off(void)
{
	begin();
	order(2, evict(1, 1));
	CU_ASSERT(is_cut_off(-EPROTO));
	end();
}

static void a_session_ends_once(void)
{
	begin();
	order(1, evict(1, 2));
	CU_ASSERT(next());
	for (uint32_t incarnation = 1; incarnation <= 3; incarnation++)
		CU_ASSERT_EQUAL(
			follower->ops->wants(follower, (struct mst_identity){ 1, incarnation }),
			incarnation == 3);
	CU_ASSERT(follower->ops->wants(follower, (struct mst_identity){ 2, 1 }));
	order(2, evict(1, 2));
	CU_ASSERT_FALSE(next());
	CU_ASSERT(is_cut_off(-EPROTO));
	end();
}

static void what_cannot_be_executed_cuts_off(void)
{
	begin();
	follower->ops->refuse(follower, now_ns);
	follower->ops->refuse(follower, now_ns);
	CU_ASSERT(is_cut_off(-EPROTO));
	end();
}

static void another_link_is_not_listened_to(void)
{
	struct mst_link old = { .ops = &fix_transport };
	struct mst_net_event ev = { .kind = MST_LOST, .link = &old, .error = -EPIPE };

	begin();
	note_count = 0;
	follower->ops->arrived(follower, &ev, now_ns);
	ev.kind = MST_ARRIVED;
	ev.imm = 77;
	follower->ops->arrived(follower, &ev, now_ns);
	CU_ASSERT_EQUAL(note_count, 0);
	end();
}

/* The loop's part in time: whenever something is due. */
static void pass(uint64_t ns)
{
	for (uint64_t until = now_ns + ns; now_ns < until;) {
		uint64_t due = follower->ops->deadline(follower);
		now_ns = due < until ? due : until;
		if (now_ns >= due)
			follower->ops->tick(follower, now_ns);
	}
}

static void a_lost_link_may_be_made_again_within_the_lease_of_servers(void)
{
	begin();
	arrive(MST_LOST, 0);
	CU_ASSERT_EQUAL(noted(MST_NOTE_PEER_LOST), 1);
	pass(SERVER_LEASE - 1);
	CU_ASSERT_EQUAL(noted(MST_NOTE_PEER_GONE), 0);
	dial_fails = -ECONNREFUSED;
	ask_to_dial();
	CU_ASSERT_EQUAL(noted(MST_NOTE_PEER_LOST), 2);
	pass(1);
	CU_ASSERT(is_cut_off(-ETIMEDOUT));
	CU_ASSERT_EQUAL(follower->ops->deadline(follower), MST_NEVER);
	dial_fails = 0;
	line = NULL;
	ask_to_dial(); /* too late */
	CU_ASSERT_PTR_NULL(line);
	end();
}

/* Its process was stopped, or its host asleep: the leader could not have offered it another. */
static void ones_own_standstill_is_not_the_leaders(void)
{
	begin();
	arrive(MST_LOST, 0);
	pass(LEASE);
	now_ns += 10 * SERVER_LEASE;
	follower->ops->tick(follower, now_ns);
	CU_ASSERT_EQUAL(noted(MST_NOTE_PEER_GONE), 0);
	pass(LEASE);
	CU_ASSERT_EQUAL(noted(MST_NOTE_PEER_GONE), 0);
	pass(LEASE);
	CU_ASSERT(is_cut_off(-ETIMEDOUT));
	end();
}

static void reports_wait_for_room_and_go_nowhere_when_cut_off(void)
{
	begin();
	for (uint32_t i = 0; i < WINDOW; i++) {
		CU_ASSERT(follower->ops->takes(follower));
		report_a_link();
	}
	CU_ASSERT_FALSE(follower->ops->takes(follower));
	follower->ops->flush(follower, now_ns);
	CU_ASSERT_EQUAL(entries_put, (int)WINDOW);
	follower->ops->refuse(follower, now_ns);
	CU_ASSERT(follower->ops->takes(follower));
	report_a_link(); /* and no assertion fails */
	end();
}

static CU_TestInfo cases[] = {
	{ "orders come one by one", orders_come_one_by_one },
	{ "an order that cannot be cuts off", an_order_that_cannot_be_cuts_off },
	{ "an entry that is not the announced one cuts off",
	  a_entry_that_is_not_the_announced_one_cuts_off },
	{ "a gap in what is announced cuts off", a_gap_in_what_is_announced_cuts_off },
	{ "a session ends once", a_session_ends_once },
	{ "what cannot be executed cuts off", what_cannot_be_executed_cuts_off },
	{ "another link is not listened to", another_link_is_not_listened_to },
	{ "a lost link may be made again within the lease of servers",
	  a_lost_link_may_be_made_again_within_the_lease_of_servers },
	{ "one's own standstill is not the leader's", ones_own_standstill_is_not_the_leaders },
	{ "reports wait for room, and go nowhere when cut off",
	  reports_wait_for_room_and_go_nowhere_when_cut_off },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("follower", cases);
}
