/* SPDX-License-Identifier: MIT */
/* muster_open() against a server that welcomes the worker, but to absurd figures, or to a listener
 * that is not there or sends it away: an error that is documented, and a sentence. */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/unit/client/client_case.h"
#include "tests/ut.h"

#define SPOIL(field, value)                                                                        \
	{                                                                                          \
		offsetof(struct mst_welcome, field), value                                         \
	}

/* A 32-bit word of a good welcome, and what is wrong there. */
static const struct spoil {
	size_t offset;
	uint32_t value;
} spoils[] = {
	SPOIL(rank, FAKE_WORKERS),
	SPOIL(workers, MST_WORKERS_MAX + 1),
	SPOIL(workers, 0),
	SPOIL(slots, 0),
	SPOIL(slots, MST_SLOTS_MAX + 1),
	SPOIL(server_count, 2),
	SPOIL(elems, FAKE_ELEMS + 1),
	SPOIL(type, MUSTER_F16),
	SPOIL(result_type, MUSTER_F16),
	SPOIL(owner, MUSTER_WORKERS_OWN),
	SPOIL(buffers, 0),
	SPOIL(buffers, UINT32_MAX),
	SPOIL(buffers, FAKE_BUFFERS + 1), /* more than is published */
	SPOIL(history, UINT32_MAX),
	SPOIL(lease_ns, 0),
	SPOIL(incarnation, 0),
	SPOIL(job, 'x'),
	SPOIL(server[0].address, 0),
	SPOIL(path.link_timeout_ns, 0), /* no link would last */
	SPOIL(path.pkey, UINT16_MAX + 1),
	SPOIL(path.pkey, (uint32_t)-2),
};
static size_t spoiled;

static bool welcome_absurdly(struct fake_leader *f)
{
	const struct spoil *s = &spoils[spoiled];

	f->welcome.lease_ns = MST_SECOND; /* which fits a word */
	memcpy((char *)&f->welcome + s->offset, &s->value, sizeof(s->value));
	return fake_link(f) && fake_stay(f);
}

static void absurd_figures_are_eproto(void)
{
	for (spoiled = 0; spoiled < sizeof(spoils) / sizeof(spoils[0]); spoiled++) {
		CU_ASSERT_EQUAL(client_open(welcome_absurdly, CLIENT_LONG_MS), -EPROTO);
		CU_ASSERT(client_took_ms() < CLIENT_LATE_MS);
		client_close();
	}
}

static bool promise_marks(struct fake_leader *f)
{
	f->welcome.owner = MUSTER_WORKERS_OWN;
	f->welcome.server_patience_ns = MST_SECOND;
	return fake_link(f) && fake_stay(f);
}

static int open_as_owner(void)
{
	struct muster_options opt;

	fake_open(&client_fake, promise_marks);
	opt = client_options_for(client_fake.address, CLIENT_LONG_MS);
	opt.owner = MUSTER_WORKERS_OWN;
	client_handle = NULL;
	return muster_open(&opt, &client_handle);
}

/* Else a worker would look beyond what it maps. */
static void marks_that_are_promised_are_published(void)
{
	CU_ASSERT_EQUAL(open_as_owner(), -EPROTO);
	CU_ASSERT(client_says(muster_error(NULL), "4 buffers with marks need 20480"));
	client_close();
	fake_marked = true;
	CU_ASSERT_EQUAL(open_as_owner(), 0);
	client_close();
	fake_marked = false;
}

static bool name_no_listener(struct fake_leader *f)
{
	snprintf(f->welcome.server[0].address, sizeof(f->welcome.server[0].address),
		 "/muster-nobody");
	return fake_greet(f) && fake_stay(f);
}

static void a_listener_that_is_not_there_is_named(void)
{
	CU_ASSERT_EQUAL(client_open(name_no_listener, CLIENT_LONG_MS), -ECONNREFUSED);
	CU_ASSERT(client_says(muster_error(NULL), "/muster-nobody"));
	client_close();
}

/* What auto comes to on another host than the server's. */
static void shared_memory_elsewhere_says_what_to_do(void)
{
	CU_ASSERT_EQUAL(client_open(name_no_listener, CLIENT_LONG_MS), -ECONNREFUSED);
	CU_ASSERT(client_says(muster_error(NULL), "which offers shm ("));
	CU_ASSERT(client_says(muster_error(NULL), "--transport tcp"));
	client_close();
}

static bool name_a_listener_afar(struct fake_leader *f)
{
	snprintf(f->welcome.server[0].address, sizeof(f->welcome.server[0].address),
		 "verbs:10.0.0.1:4791");
	return fake_greet(f) && fake_stay(f);
}

static void another_transport_than_the_listeners_is_einval(void)
{
	setenv("MUSTER_TRANSPORT", "shm", 1);
	CU_ASSERT_EQUAL(client_open(name_a_listener_afar, CLIENT_LONG_MS), -EINVAL);
	CU_ASSERT(client_says(muster_error(NULL), "offers links over verbs, and"));
	CU_ASSERT(client_says(muster_error(NULL), "MUSTER_TRANSPORT is shm"));
	client_close();
	setenv("MUSTER_TRANSPORT", "verbs", 1);
	CU_ASSERT_EQUAL(client_open(name_no_listener, CLIENT_LONG_MS), -EINVAL);
	CU_ASSERT(client_says(muster_error(NULL), "--transport verbs"));
	client_close();
	unsetenv("MUSTER_TRANSPORT");
}

/* Offers a listener that refuses, and another network's. A token may be used up by then. */
static bool offer_two_networks(struct fake_leader *f)
{
	(void)snprintf(f->welcome.server[0].address, MST_LISTENER_LEN, "/tmp|tcp:127.0.0.1:1");
	(void)fake_greet(f);
	(void)fake_hear(f, MST_MSG_LEAVE); /* nothing comes: the worker goes */
	return fake_next(f) && fake_hear(f, MST_MSG_HELLO) &&
	       fake_refuse(f, -ENOSPC, "it comes again");
}

static void links_that_fail_make_a_worker_join_anew(void)
{
	CU_ASSERT_EQUAL(client_open(offer_two_networks, CLIENT_LONG_MS), -ENOSPC);
	CU_ASSERT(client_says(muster_error(NULL), "it comes again"));
	client_close();
}

static bool name_a_strange_listener(struct fake_leader *f)
{
	snprintf(f->welcome.server[0].address, sizeof(f->welcome.server[0].address), "pigeon:loft");
	return fake_greet(f) && fake_stay(f);
}

static void a_listener_of_no_transport_here_is_named(void)
{
	CU_ASSERT_EQUAL(client_open(name_a_strange_listener, CLIENT_LONG_MS), -EPROTONOSUPPORT);
	CU_ASSERT(client_says(muster_error(NULL), "pigeon:loft"));
	client_close();
}

static bool send_away(struct fake_leader *f)
{
	struct mst_link_request request;

	if (!fake_greet(f))
		return false;
	while (mst_shm.listener->next_request(f->listener, &request, UT_UNREAD) != 0)
		mst_sleep_ns(MST_MS);
	return mst_shm.listener->answer(f->listener, &request, NULL, UT_UNREAD) == 0 &&
	       fake_stay(f);
}

static void being_sent_away_is_eacces(void)
{
	CU_ASSERT_EQUAL(client_open(send_away, CLIENT_LONG_MS), -EACCES);
	CU_ASSERT(client_says(muster_error(NULL), "it sent this end away"));
	client_close();
}

/* The listener knows of the end of a session before the leader's words are there. */
static bool send_away_and_say_why(struct fake_leader *f)
{
	struct mst_link_request request;

	if (!fake_greet(f))
		return false;
	while (mst_shm.listener->next_request(f->listener, &request, UT_UNREAD) != 0)
		mst_sleep_ns(MST_MS);
	if (mst_shm.listener->answer(f->listener, &request, NULL, UT_UNREAD) != 0)
		return false;
	mst_sleep_ns(200 * MST_MS);
	return fake_refuse(f, -ENOTCONN, "an operator has evicted this worker") && fake_stay(f);
}

static void a_session_that_ends_before_its_link_tells_why(void)
{
	CU_ASSERT_EQUAL(client_open(send_away_and_say_why, CLIENT_LONG_MS), -ENOTCONN);
	CU_ASSERT(client_says(muster_error(NULL), "an operator has evicted this worker"));
	client_close();
}

static bool greet_only(struct fake_leader *f)
{
	return fake_greet(f) && fake_stay(f);
}

static void a_listener_that_stays_shut_is_etimedout_in_time(void)
{
	CU_ASSERT_EQUAL(client_open(greet_only, CLIENT_SHORT_MS), -ETIMEDOUT);
	CU_ASSERT(client_took_ms() < CLIENT_LATE_MS);
	client_close();
}

/* ---- what the leader says while the listener stays shut ---- */

static bool greet_and_refuse(struct fake_leader *f)
{
	if (!fake_greet(f))
		return false;
	mst_sleep_ns(100 * MST_MS);
	return fake_refuse(f, -EHOSTDOWN, "enough of this job") && fake_stay(f);
}

static bool greet_and_finish(struct fake_leader *f)
{
	if (!fake_greet(f))
		return false;
	struct mst_message *msg = calloc(1, sizeof(*msg));
	msg->kind = MST_MSG_FINISHED;
	snprintf(msg->why, sizeof(msg->why), "%s", "all commits are made");
	mst_sleep_ns(100 * MST_MS);
	bool said = fake_say(f, msg);
	free(msg);
	return said && fake_stay(f);
}

static void a_leader_that_speaks_is_heard_before_a_shut_listener(void)
{
	CU_ASSERT_EQUAL(client_open(greet_and_refuse, CLIENT_LONG_MS), -EHOSTDOWN);
	CU_ASSERT(client_took_ms() < CLIENT_LATE_MS);
	CU_ASSERT(client_says(muster_error(NULL), "enough of this job"));
	client_close();
	CU_ASSERT_EQUAL(client_open(greet_and_finish, CLIENT_LONG_MS), -ESHUTDOWN);
	CU_ASSERT(client_took_ms() < CLIENT_LATE_MS);
	CU_ASSERT(client_says(muster_error(NULL), "all commits are made"));
	client_close();
}

static CU_TestInfo cases[] = {
	{ "a welcome with absurd figures is -EPROTO", absurd_figures_are_eproto },
	{ "marks that are promised are published", marks_that_are_promised_are_published },
	{ "a listener that is not there is named", a_listener_that_is_not_there_is_named },
	{ "shared memory on another host says what to do",
	  shared_memory_elsewhere_says_what_to_do },
	{ "another transport than the listener's is -EINVAL, and both are named",
	  another_transport_than_the_listeners_is_einval },
	{ "links that fail make a worker join anew, for the next network",
	  links_that_fail_make_a_worker_join_anew },
	{ "a listener of no transport here is named", a_listener_of_no_transport_here_is_named },
	{ "being sent away from the listener is -EACCES", being_sent_away_is_eacces },
	{ "a session that ends before its link tells why",
	  a_session_that_ends_before_its_link_tells_why },
	{ "a listener that stays shut is -ETIMEDOUT, in time",
	  a_listener_that_stays_shut_is_etimedout_in_time },
	{ "a leader that speaks is heard, though the listener stays shut",
	  a_leader_that_speaks_is_heard_before_a_shut_listener },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("client welcome", cases);
}
