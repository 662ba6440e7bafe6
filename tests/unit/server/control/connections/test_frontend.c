/* SPDX-License-Identifier: MIT */
/* The frontend over real sockets: who has a place, and who makes room for whom. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "server/control/connections/frontend.h"
#include "tests/ut.h"

#define MEMBERS 3u
#define CALLERS 200u

static struct mst_frontend front;
static struct mst_stream *caller[CALLERS];
static uint32_t callers, members, gone_members;
static uint32_t gone_before; /* gone_members, when the last stranger became a member */
static uint64_t now_ns;
static bool takes;
static char wrong[256]; /* how the last that broke the protocol did so */

/* A LEAVE makes a member of a stranger, where it is taken; a question a watcher. */
static bool message(void *ctx, struct mst_conn *c, const struct mst_message *msg, uint64_t at_ns)
{
	(void)ctx;
	if (!takes)
		return false;
	if (msg->kind == MST_MSG_LEAVE) {
		mst_frontend_enter(&front, c, MST_CONN_HELLO);
		mst_frontend_admit(&front, c, (struct mst_identity){ members, 1 });
		members++;
		gone_before = gone_members;
	} else if (c->role == MST_CONN_NEW && !mst_frontend_admit_watcher(&front, c, at_ns)) {
		mst_frontend_error(&front, c, -EBUSY, "too many", at_ns);
	} else {
		c->heard_ns = at_ns;
	}
	return true;
}

static bool broken(void *ctx, struct mst_conn *c, const char *what, uint64_t at_ns)
{
	(void)ctx;
	snprintf(wrong, sizeof(wrong), "%s", what);
	mst_frontend_error(&front, c, -EPROTO, what, at_ns);
	return true;
}

static void gone(void *ctx, struct mst_conn *c)
{
	(void)ctx;
	gone_members += c->role == MST_CONN_WORKER;
}

static const struct mst_frontend_ops ops = { message, broken, gone };

/* ---- what has been sent is there ---- */

static int fence[2]; /* two ends of a connection of the test's own */

/* On one processor, for the loopback device delivers in order what one processor has sent. */
static void open_fence(void)
{
	struct sockaddr_in here = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(here);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cpu_set_t one;
	int on = 1;

	CPU_ZERO(&one);
	CPU_SET((unsigned)sched_getcpu(), &one);
	(void)sched_setaffinity(0, sizeof(one), &one);
	fence[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CU_ASSERT_FATAL(bind(listener, (struct sockaddr *)&here, sizeof(here)) == 0);
	CU_ASSERT_FATAL(listen(listener, 1) == 0);
	CU_ASSERT_FATAL(getsockname(listener, (struct sockaddr *)&here, &len) == 0);
	CU_ASSERT_FATAL(connect(fence[0], (struct sockaddr *)&here, len) == 0);
	fence[1] = accept(listener, NULL, NULL);
	CU_ASSERT_FATAL(setsockopt(fence[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0);
	CU_ASSERT_FATAL(fence[1] >= 0);
	close(listener);
}

/* The kernel may deliver later, in a thread of its own, what is sent over loopback. What was sent,
 * accepted and closed before is there when two bytes have come, one after the other: the second is
 * after the answers to what was on its way before the first. */
static void settle(void)
{
	char byte = 0;

	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL_FATAL(write(fence[0], &byte, 1), 1);
		CU_ASSERT_EQUAL_FATAL(read(fence[1], &byte, 1), 1);
	}
}

static void begin(void)
{
	struct mst_frontend_cfg cfg = { .stream = &mst_plain,
					.listen = "127.0.0.1:0",
					.members = MEMBERS,
					.workers = MEMBERS,
					.ops = &ops };
	struct mst_reason why;

	callers = members = gone_members = gone_before = 0;
	wrong[0] = '\0';
	takes = true;
	now_ns = MST_SECOND;
	open_fence();
	CU_ASSERT_EQUAL_FATAL(mst_frontend_open(&front, &cfg, &why), 0);
}

static void end(void)
{
	for (uint32_t i = 0; i < callers; i++)
		mst_plain.close(caller[i]);
	mst_frontend_close(&front);
	close(fence[0]);
	close(fence[1]);
}

static void step(void)
{
	settle();
	mst_frontend_step(&front, now_ns++);
	settle();
}

/* Connects while the frontend looks elsewhere. */
static uint32_t call_unheard(void)
{
	CU_ASSERT_FATAL(callers < CALLERS);
	CU_ASSERT_EQUAL_FATAL(
		mst_plain.connect(front.address, 60 * MST_SECOND, NULL, &caller[callers]), 0);
	return callers++;
}

static uint32_t call(void)
{
	uint32_t i = call_unheard();

	step();
	return i;
}

static void say_unheard(uint32_t i, enum mst_message_kind kind)
{
	static struct mst_message m;
	unsigned char frame[256];

	memset(&m, 0, sizeof(m));
	m.kind = kind;
	int64_t length = mst_message_encode(&m, frame, sizeof(frame));
	CU_ASSERT_EQUAL_FATAL(mst_plain.send(caller[i], frame, (size_t)length), length);
}

static void say(uint32_t i, enum mst_message_kind kind)
{
	say_unheard(i, kind);
	step();
}

/* Has the frontend closed it, after a last word or without? */
static bool is_closed(uint32_t i)
{
	char word[1024];
	ssize_t got;

	step();
	while ((got = mst_plain.receive(caller[i], word, sizeof(word))) > 0)
		continue;
	return got != -EAGAIN;
}

static uint32_t count(enum mst_conn_role role)
{
	const struct mst_conn *c;
	uint32_t found = 0;

	for (uint32_t i = 0; (c = mst_frontend_next(&front, &i)) != NULL;)
		found += c->role == role;
	CU_ASSERT_EQUAL(mst_frontend_count(&front, role), found);
	return found;
}

/* ---- cases ---- */

static void silent_strangers_take_no_members_place(void)
{
	begin();
	for (uint32_t i = 0; i < MST_FRONTEND_STRANGERS + 50; i++)
		call();
	CU_ASSERT_EQUAL(count(MST_CONN_NEW), MST_FRONTEND_STRANGERS);
	for (uint32_t i = 0; i < MEMBERS; i++)
		say(call(), MST_MSG_LEAVE);
	CU_ASSERT_EQUAL(members, MEMBERS);
	CU_ASSERT_EQUAL(count(MST_CONN_WORKER), MEMBERS);
	end();
}

static void the_oldest_stranger_makes_room(void)
{
	begin();
	for (uint32_t i = 0; i < MST_FRONTEND_STRANGERS; i++)
		call();
	CU_ASSERT_FALSE(is_closed(0));
	call();
	CU_ASSERT(is_closed(0));
	CU_ASSERT_FALSE(is_closed(1));
	CU_ASSERT_FALSE(is_closed(callers - 1));
	end();
}

/* All are accepted in one step, at one time. */
static void of_a_burst_the_first_make_room(void)
{
	const uint32_t more = 30;

	begin();
	for (uint32_t i = 0; i < MST_FRONTEND_STRANGERS + more; i++)
		call_unheard();
	step();
	CU_ASSERT_EQUAL(count(MST_CONN_NEW), MST_FRONTEND_STRANGERS);
	for (uint32_t i = 0; i < callers; i++)
		CU_ASSERT_EQUAL(is_closed(i), i < more);
	end();
}

static void a_hello_amid_a_burst_of_strangers_is_heard(void)
{
	begin();
	for (uint32_t i = 0; i < MEMBERS; i++) {
		say_unheard(call_unheard(), MST_MSG_LEAVE);
		for (uint32_t k = 0; k < MST_FRONTEND_STRANGERS / 2; k++)
			call_unheard();
	}
	step();
	step();
	CU_ASSERT_EQUAL(members, MEMBERS);
	CU_ASSERT_EQUAL(count(MST_CONN_WORKER), MEMBERS);
	end();
}

/* Others would wait for the end of a step that accepts all who call meanwhile. */
static void a_step_accepts_some_callers_and_the_next_one_others(void)
{
	begin();
	for (uint32_t i = 0; i < CALLERS; i++)
		call_unheard();
	uint64_t before = front.next_id;
	step();
	CU_ASSERT(front.next_id > before && front.next_id - before <= 64);
	for (uint32_t i = 0; i < CALLERS / 64; i++)
		step();
	CU_ASSERT_EQUAL(front.next_id - before, CALLERS);
	end();
}

static void a_hello_that_waits_is_no_stranger(void)
{
	begin();
	takes = false;
	say(call(), MST_MSG_LEAVE);
	for (uint32_t i = 0; i < MST_FRONTEND_STRANGERS + 10; i++)
		call();
	takes = true;
	step();
	CU_ASSERT_EQUAL(members, 1);
	CU_ASSERT_FALSE(is_closed(0));
	end();
}

static void idle_watchers_make_room(void)
{
	begin();
	for (uint32_t i = 0; i < MST_FRONTEND_WATCHERS; i++)
		say(call(), MST_MSG_ASK_STATUS);
	now_ns += 2 * MST_FRONTEND_GRACE_NS;
	for (uint32_t i = 1; i < MST_FRONTEND_WATCHERS; i++)
		say(i, MST_MSG_ASK_STATUS);
	uint32_t next = call();
	say(next, MST_MSG_ASK_STATUS);
	CU_ASSERT(is_closed(0));
	CU_ASSERT_FALSE(is_closed(1));
	CU_ASSERT_FALSE(is_closed(next));
	CU_ASSERT_EQUAL(count(MST_CONN_WATCHER), MST_FRONTEND_WATCHERS);
	end();
}

static void watchers_that_ask_keep_their_places(void)
{
	begin();
	for (uint32_t i = 0; i < MST_FRONTEND_WATCHERS; i++)
		say(call(), MST_MSG_ASK_STATUS);
	uint32_t next = call();
	say(next, MST_MSG_ASK_STATUS);
	CU_ASSERT(is_closed(next));
	for (uint32_t i = 0; i < MST_FRONTEND_WATCHERS; i++)
		CU_ASSERT_FALSE(is_closed(i));
	end();
}

static void who_says_nothing_is_closed_after_the_grace(void)
{
	begin();
	call();
	say(call(), MST_MSG_LEAVE);
	now_ns += MST_FRONTEND_GRACE_NS - MST_SECOND / 2;
	CU_ASSERT_FALSE(is_closed(0));
	now_ns += MST_SECOND;
	CU_ASSERT(is_closed(0));
	CU_ASSERT_FALSE(is_closed(1));
	end();
}

static void a_member_that_closes_is_gone_once(void)
{
	begin();
	say(call(), MST_MSG_LEAVE);
	mst_plain.close(caller[--callers]);
	for (int i = 0; i < 3; i++)
		step();
	CU_ASSERT_EQUAL(gone_members, 1);
	CU_ASSERT_EQUAL(count(MST_CONN_WORKER), 0);
	end();
}

/* All places are taken by peers whose first message waits, so that none of them is a stranger. */
static void who_calls_while_all_places_are_taken_comes_in_later(void)
{
	const uint32_t places = MEMBERS + MST_FRONTEND_STRANGERS + MST_FRONTEND_WATCHERS + 1;

	begin();
	takes = false;
	for (uint32_t i = 0; i < places; i++)
		say(call(), MST_MSG_ASK_STATUS);
	uint32_t late = call();
	CU_ASSERT_EQUAL(count(MST_CONN_NEW), places);
	say(late, MST_MSG_LEAVE);
	step();
	CU_ASSERT_EQUAL(count(MST_CONN_NEW), places);
	takes = true; /* there are too many watchers, so most are closed */
	for (int i = 0; i < 5; i++)
		step();
	CU_ASSERT_EQUAL(members, 1);
	end();
}

/* The new one has the lower place, and both have something at the beginning of the same step. */
static void that_a_member_has_closed_is_known_before_a_hello_is(void)
{
	begin();
	call();
	say(call(), MST_MSG_LEAVE);
	mst_plain.close(caller[--callers]);
	say(0, MST_MSG_LEAVE);
	CU_ASSERT_EQUAL(members, 2);
	CU_ASSERT_EQUAL(gone_before, 1);
	end();
}

/* ---- floods ---- */

/* The one connection with this role. */
static struct mst_conn *conn_of(enum mst_conn_role role)
{
	uint32_t i = 0;
	struct mst_conn *c = mst_frontend_next_of(&front, role, &i);

	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	return c;
}

/* Time stands still but for a nanosecond a step, and all of the flood is handled in the end. */
static void a_flood_is_handled_in_portions_and_others_are_served_between(void)
{
	const uint32_t flood = 1000, portion = 128;

	begin();
	uint32_t one = call(), other;
	say(one, MST_MSG_ASK_STATUS);
	struct mst_conn *c = conn_of(MST_CONN_WATCHER);
	now_ns += MST_MS;
	for (uint32_t i = 0; i < flood; i++)
		say_unheard(one, MST_MSG_ASK_STATUS);
	step();
	CU_ASSERT(c->paused);
	CU_ASSERT_FALSE(c->polled);
	CU_ASSERT_FALSE(c->dry);
	CU_ASSERT(front.holds);
	CU_ASSERT_EQUAL(c->flood.handled, portion);
	other = call();
	say(other, MST_MSG_LEAVE);
	CU_ASSERT_EQUAL(members, 1);
	CU_ASSERT(c->paused);
	for (uint32_t i = 0; i < flood / portion + 1; i++) {
		now_ns += MST_MS;
		step();
	}
	CU_ASSERT_FALSE(c->paused);
	CU_ASSERT(c->polled);
	CU_ASSERT(c->dry);
	CU_ASSERT_FALSE(front.holds);
	CU_ASSERT_FALSE(is_closed(one));
	end();
}

static void say_many(uint32_t i, uint32_t messages)
{
	static const struct mst_message beat = { .kind = MST_MSG_HEARTBEAT };
	unsigned char frames[4096];
	size_t have = 0;

	for (uint32_t k = 0; k < messages; k++) {
		int64_t length = mst_message_encode(&beat, frames + have, sizeof(frames) - have);
		CU_ASSERT_FATAL(length > 0);
		have += (size_t)length;
	}
	CU_ASSERT_EQUAL_FATAL(mst_plain.send(caller[i], frames, have), (ssize_t)have);
}

/* In each of the next @periods the member sends as many messages as are handled in one. */
static void keep_sending(uint32_t i, uint32_t periods)
{
	for (uint32_t k = 0; k < periods; k++) {
		now_ns += MST_FLOOD_PERIOD_NS;
		say_many(i, MST_FLOOD_MESSAGES);
		step();
	}
}

/* There is one message more than is handled, all the time. */
static void who_floods_for_many_periods_is_hung_up_on_and_its_place_is_free(void)
{
	begin();
	uint32_t one = call(), next;
	say(one, MST_MSG_LEAVE);
	say_many(one, 1);
	keep_sending(one, MST_FLOOD_PERIODS - 1);
	CU_ASSERT_EQUAL(count(MST_CONN_WORKER), 1);
	CU_ASSERT_STRING_EQUAL(wrong, "");
	keep_sending(one, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(wrong, "it floods the server"));
	CU_ASSERT_EQUAL(count(MST_CONN_WORKER), 0);
	CU_ASSERT(is_closed(one));
	CU_ASSERT_EQUAL(front.places.free.count, front.places.max);
	next = call();
	say(next, MST_MSG_LEAVE);
	CU_ASSERT_EQUAL(count(MST_CONN_WORKER), 1);
	end();
}

static void a_period_in_which_all_was_heard_begins_the_count_anew(void)
{
	begin();
	uint32_t one = call();
	say(one, MST_MSG_LEAVE);
	for (int round = 0; round < 2; round++) {
		say_many(one, 1);
		keep_sending(one, MST_FLOOD_PERIODS - 1);
		CU_ASSERT_EQUAL(conn_of(MST_CONN_WORKER)->flood.periods, MST_FLOOD_PERIODS - 1);
		now_ns += MST_FLOOD_PERIOD_NS;
		say_many(one, MST_FLOOD_MESSAGES - 1); /* and one is left: as many as are handled */
		step();
		CU_ASSERT(conn_of(MST_CONN_WORKER)->dry);
	}
	now_ns += MST_FLOOD_PERIOD_NS;
	say_many(one, 1);
	step();
	CU_ASSERT_EQUAL(conn_of(MST_CONN_WORKER)->flood.periods, 0);
	CU_ASSERT_STRING_EQUAL(wrong, "");
	end();
}

/* It is looked at again in each step, and counts once. */
static void a_message_that_waits_is_no_flood(void)
{
	begin();
	takes = false;
	say(call(), MST_MSG_LEAVE);
	for (uint32_t i = 0; i < 2 * MST_FLOOD_MESSAGES; i++)
		step();
	CU_ASSERT(conn_of(MST_CONN_NEW)->waits);
	CU_ASSERT_FALSE(conn_of(MST_CONN_NEW)->paused);
	CU_ASSERT_EQUAL(conn_of(MST_CONN_NEW)->flood.handled, 0);
	takes = true;
	step();
	CU_ASSERT_EQUAL(members, 1);
	end();
}

static void what_has_to_wait_does_not_wake_the_frontend(void)
{
	begin();
	uint32_t one = call();
	takes = false;
	say(one, MST_MSG_LEAVE);
	for (int i = 0; i < 10; i++)
		say_unheard(one, MST_MSG_ASK_STATUS);
	step();
	struct mst_conn *c = conn_of(MST_CONN_NEW);
	CU_ASSERT(c->waits);
	CU_ASSERT_FALSE(c->polled);
	takes = true;
	step();
	CU_ASSERT_EQUAL(members, 1);
	CU_ASSERT(conn_of(MST_CONN_WORKER)->polled);
	end();
}

/* ---- who asks ---- */

static void say_who(struct mst_conn *c, const char *host, uint32_t roles)
{
	snprintf(c->peer, sizeof(c->peer), "%s:%u", host, (unsigned)c->id);
	c->principal = (struct mst_principal){ .roles = roles, .proven = true };
}

/* A peer that has said who it is asks. Return: it has a place. */
static bool asks(uint32_t i)
{
	say_unheard(i, MST_MSG_ASK_STATUS);
	step();
	const struct mst_conn *c;
	for (uint32_t at = 0; (c = mst_frontend_next_of(&front, MST_CONN_WATCHER, &at)) != NULL;) {
		if (c->id == front.next_id - 1)
			return true;
	}
	return false;
}

/* A peer of that host and role. */
static bool asks_from(const char *host, uint32_t roles)
{
	uint32_t i = call();

	say_who(conn_of(MST_CONN_NEW), host, roles);
	return asks(i);
}

/* A peer that has proven nothing, and asks for a change of the job. */
static bool asks_for_a_change(void)
{
	uint32_t i = call();

	conn_of(MST_CONN_NEW)->asks_changes = true;
	return asks(i);
}

static uint32_t watchers_from(const char *host)
{
	const struct mst_conn *c;
	uint32_t found = 0;

	for (uint32_t i = 0; (c = mst_frontend_next_of(&front, MST_CONN_WATCHER, &i)) != NULL;)
		found += strncmp(c->peer, host, strlen(host)) == 0;
	return found;
}

static void one_host_cannot_take_all_places_of_those_who_ask(void)
{
	begin();
	for (uint32_t i = 0; i < MST_FRONTEND_WATCHERS; i++)
		CU_ASSERT(asks_from("10.0.0.1", MST_ROLE_WORKER));
	CU_ASSERT_FALSE(asks_from("10.0.0.1", MST_ROLE_WORKER));
	for (uint32_t i = 0; i < MST_FRONTEND_WATCHERS / 2; i++)
		CU_ASSERT(asks_from("10.0.0.11", MST_ROLE_WORKER));
	CU_ASSERT_FALSE(asks_from("10.0.0.11", MST_ROLE_WORKER));
	CU_ASSERT_FALSE(asks_from("10.0.0.1", MST_ROLE_WORKER));
	CU_ASSERT_EQUAL(watchers_from("10.0.0.1:"), MST_FRONTEND_WATCHERS / 2);
	CU_ASSERT_EQUAL(watchers_from("10.0.0.11:"), MST_FRONTEND_WATCHERS / 2);
	end();
}

static void an_operator_always_finds_a_place_among_those_who_ask(void)
{
	begin();
	for (uint32_t i = 0; i < MST_FRONTEND_WATCHERS; i++)
		CU_ASSERT(asks_from("10.0.0.1", MST_ROLE_OBSERVER));
	for (uint32_t i = 0; i < MST_FRONTEND_WATCHERS; i++)
		CU_ASSERT(asks_from("10.0.0.1", MST_ROLE_OPERATOR));
	CU_ASSERT_EQUAL(count(MST_CONN_WATCHER), MST_FRONTEND_WATCHERS);
	CU_ASSERT_FALSE(asks_from("10.0.0.2", MST_ROLE_OBSERVER));
	CU_ASSERT(asks_from("10.0.0.2", MST_ROLE_OPERATOR));
	CU_ASSERT_EQUAL(count(MST_CONN_WATCHER), MST_FRONTEND_WATCHERS);
	end();
}

/* Workers may ask too, and from many hosts. */
static void an_observer_always_finds_a_place_beside_others(void)
{
	char host[32];

	begin();
	for (uint32_t i = 0; i < MST_FRONTEND_WATCHERS; i++) {
		snprintf(host, sizeof(host), "10.0.1.%u", i);
		CU_ASSERT(asks_from(host, MST_ROLE_WORKER));
	}
	CU_ASSERT_FALSE(asks_from("10.0.0.1", MST_ROLE_WORKER));
	for (uint32_t i = 0; i < MST_FRONTEND_WATCHERS; i++) {
		snprintf(host, sizeof(host), "10.0.2.%u", i);
		CU_ASSERT(asks_from(host, MST_ROLE_OBSERVER));
	}
	CU_ASSERT_EQUAL(watchers_from("10.0.2."), MST_FRONTEND_WATCHERS);
	CU_ASSERT(asks_from("10.0.0.1", MST_ROLE_OBSERVER));
	CU_ASSERT_FALSE(asks_from("10.0.0.1", MST_ROLE_WORKER));
	CU_ASSERT_EQUAL(count(MST_CONN_WATCHER), MST_FRONTEND_WATCHERS);
	end();
}

static void an_observer_of_a_crowded_host_drives_out_none_of_another(void)
{
	begin();
	CU_ASSERT(asks_from("10.0.0.2", MST_ROLE_OBSERVER));
	for (uint32_t i = 0; i < 3 * MST_FRONTEND_WATCHERS; i++)
		CU_ASSERT(asks_from("10.0.0.1", MST_ROLE_OBSERVER));
	CU_ASSERT_EQUAL(watchers_from("10.0.0.2:"), 1);
	end();
}

/* Without certificates all are of one host, and nobody has proven to be an operator. */
static void who_asks_for_a_change_finds_a_place_among_those_who_ask(void)
{
	begin();
	for (uint32_t i = 0; i < MST_FRONTEND_WATCHERS; i++)
		say(call(), MST_MSG_ASK_STATUS);
	uint32_t late = call();
	say(late, MST_MSG_ASK_STATUS);
	CU_ASSERT(is_closed(late));
	for (uint32_t i = 0; i < 2 * MST_FRONTEND_WATCHERS; i++)
		CU_ASSERT(asks_for_a_change());
	CU_ASSERT_EQUAL(count(MST_CONN_WATCHER), MST_FRONTEND_WATCHERS);
	CU_ASSERT(is_closed(0));
	CU_ASSERT_FALSE(is_closed(callers - 1));
	end();
}

static CU_TestInfo cases[] = {
	{ "a step accepts some callers, and the next one others",
	  a_step_accepts_some_callers_and_the_next_one_others },
	{ "silent strangers take no member's place", silent_strangers_take_no_members_place },
	{ "the oldest stranger makes room", the_oldest_stranger_makes_room },
	{ "of a burst the first make room", of_a_burst_the_first_make_room },
	{ "a hello amid a burst of strangers is heard",
	  a_hello_amid_a_burst_of_strangers_is_heard },
	{ "a hello that waits is no stranger", a_hello_that_waits_is_no_stranger },
	{ "idle watchers make room", idle_watchers_make_room },
	{ "watchers that ask keep their places", watchers_that_ask_keep_their_places },
	{ "who says nothing is closed after the grace",
	  who_says_nothing_is_closed_after_the_grace },
	{ "a member that closes is gone once", a_member_that_closes_is_gone_once },
	{ "who calls while all places are taken comes in later",
	  who_calls_while_all_places_are_taken_comes_in_later },
	{ "that a member has closed is known before a hello is",
	  that_a_member_has_closed_is_known_before_a_hello_is },
	{ "a flood is handled in portions and others are served between",
	  a_flood_is_handled_in_portions_and_others_are_served_between },
	{ "who floods for many periods is hung up on and its place is free",
	  who_floods_for_many_periods_is_hung_up_on_and_its_place_is_free },
	{ "a period in which all was heard begins the count anew",
	  a_period_in_which_all_was_heard_begins_the_count_anew },
	{ "a message that waits is no flood", a_message_that_waits_is_no_flood },
	{ "what has to wait does not wake the frontend",
	  what_has_to_wait_does_not_wake_the_frontend },
	{ "one host cannot take all places of those who ask",
	  one_host_cannot_take_all_places_of_those_who_ask },
	{ "an operator always finds a place among those who ask",
	  an_operator_always_finds_a_place_among_those_who_ask },
	{ "an observer always finds a place beside others",
	  an_observer_always_finds_a_place_beside_others },
	{ "an observer of a crowded host drives out none of another",
	  an_observer_of_a_crowded_host_drives_out_none_of_another },
	{ "who asks for a change finds a place among those who ask",
	  who_asks_for_a_change_finds_a_place_among_those_who_ask },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("frontend", cases);
}
