/* SPDX-License-Identifier: MIT */
/* A worker that is behind takes the state that the leader sends it. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "client/api/handle.h"
#include "common/base/clock.h"
#include "tests/unit/client/client_case.h"
#include "tests/ut.h"

#define PIECE 1000u
#define BYTES 1500u
#define VERSION 40u

static uint8_t state[BYTES];
static _Atomic uint64_t took; /* the number of the last TOOK */

/* The piece of the asking @number that begins at @offset. */
static bool send_piece(struct fake_leader *f, uint64_t number, uint64_t offset)
{
	static struct mst_message m;
	uint64_t left = BYTES - offset;

	m.kind = MST_MSG_TAKE;
	m.handed = (struct mst_handed){
		.number = number,
		.version = VERSION + number,
		.piece = { .offset = offset,
			   .total = BYTES,
			   .length = (uint32_t)(left < PIECE ? left : PIECE),
			   .data = state + offset },
	};
	return fake_say(f, &m);
}

static bool send_state(struct fake_leader *f, uint64_t number)
{
	return send_piece(f, number, 0) && send_piece(f, number, PIECE);
}

static bool let_it_be_behind(struct fake_leader *f)
{
	static struct mst_message m = { .kind = MST_MSG_BEHIND, .number = VERSION };

	return fake_link(f) && fake_hear(f, MST_MSG_START) && fake_say(f, &m);
}

static bool send_one(struct fake_leader *f)
{
	if (!let_it_be_behind(f) || !send_state(f, 1) || !fake_hear(f, MST_MSG_TOOK))
		return false;
	atomic_store(&took, f->message.number);
	return fake_stay(f);
}

/* And says that it lacks versions again, and wants a state of it meanwhile. */
static bool send_two(struct fake_leader *f)
{
	static struct mst_message behind = { .kind = MST_MSG_BEHIND, .number = VERSION + 9 };
	static struct mst_message want = { .kind = MST_MSG_STATE_WANTED, .number = 7 };

	if (!let_it_be_behind(f) || !send_state(f, 1) || !fake_hear(f, MST_MSG_TOOK) ||
	    !fake_say(f, &want) || !fake_say(f, &behind) || !send_state(f, 2) ||
	    !fake_hear(f, MST_MSG_TOOK))
		return false;
	atomic_store(&took, f->message.number);
	return fake_stay(f);
}

static bool send_a_part(struct fake_leader *f)
{
	return let_it_be_behind(f) && send_piece(f, 1, 0) && fake_stay(f);
}

static bool send_the_next_too_early(struct fake_leader *f)
{
	return let_it_be_behind(f) && send_state(f, 1) && send_piece(f, 2, 0) && fake_stay(f);
}

static bool send_the_next_in_the_middle(struct fake_leader *f)
{
	return let_it_be_behind(f) && send_piece(f, 1, 0) && send_piece(f, 2, 0) && fake_stay(f);
}

static void begin(bool (*script)(struct fake_leader *f))
{
	for (uint32_t i = 0; i < BYTES; i++)
		state[i] = (uint8_t)(i * 7 >> 3);
	atomic_store(&took, 0);
	CU_ASSERT_EQUAL_FATAL(client_open(script, CLIENT_LONG_MS), 0);
	CU_ASSERT_EQUAL_FATAL(client_start(NULL, &client_outcome), -ESTALE);
	CU_ASSERT(client_says(muster_error(client_handle), "muster_take_state()"));
}

static int take(const void **out, size_t *bytes, uint64_t *version)
{
	uint64_t until_ns = mst_now_ns() + CLIENT_LONG_MS * MST_MS;
	int rc;

	do
		rc = muster_take_state(client_handle, out, bytes, version);
	while (rc == -ETIMEDOUT && mst_now_ns() < until_ns);
	return rc;
}

static void a_state_that_comes_in_pieces_is_taken_as_a_whole_and_once(void)
{
	uint64_t until_ns = mst_now_ns() + CLIENT_LONG_MS * MST_MS, version;
	const void *out;
	size_t bytes;

	begin(send_one);
	CU_ASSERT_EQUAL_FATAL(take(&out, &bytes, &version), 0);
	CU_ASSERT_EQUAL(version, VERSION + 1);
	CU_ASSERT_FATAL(bytes == BYTES && memcmp(out, state, BYTES) == 0);
	while (atomic_load(&took) == 0 && mst_now_ns() < until_ns)
		mst_sleep_ns(MST_MS);
	CU_ASSERT_EQUAL(atomic_load(&took), 1);
	CU_ASSERT_EQUAL(muster_take_state(client_handle, &out, &bytes, &version), -EINVAL);
	client_close();
}

/* A worker that is behind gives nothing. */
static void one_that_is_behind_again_takes_another_state(void)
{
	uint64_t until_ns = mst_now_ns() + CLIENT_LONG_MS * MST_MS, version;
	const void *out;
	size_t bytes;

	begin(send_two);
	CU_ASSERT_EQUAL_FATAL(take(&out, &bytes, &version), 0);
	CU_ASSERT_EQUAL(version, VERSION + 1);
	CU_ASSERT_EQUAL(client_wait(), -ESTALE);
	CU_ASSERT(client_says(muster_error(client_handle), "the job is at version 49"));
	CU_ASSERT_EQUAL(muster_state_wanted(client_handle), 0);
	CU_ASSERT_EQUAL(muster_give_state(client_handle, state, BYTES), -EINVAL);
	CU_ASSERT_EQUAL_FATAL(take(&out, &bytes, &version), 0);
	CU_ASSERT_EQUAL(version, VERSION + 2);
	CU_ASSERT_EQUAL(muster_state_wanted(client_handle), 1);
	while (atomic_load(&took) == 0 && mst_now_ns() < until_ns)
		mst_sleep_ns(MST_MS);
	CU_ASSERT_EQUAL(atomic_load(&took), 2);
	client_close();
}

/* It returns, so that the program may do something else meanwhile. */
static void a_state_that_never_comes_as_a_whole_is_not_waited_for_for_ever(void)
{
	uint64_t version;
	const void *out;
	size_t bytes;

	begin(send_a_part);
	CU_ASSERT_EQUAL(muster_take_state(client_handle, &out, &bytes, &version), -ETIMEDOUT);
	client_close();
}

/* Nothing is taken before the session has ended. */
static int error_of(bool (*script)(struct fake_leader *f))
{
	uint64_t until_ns = mst_now_ns() + CLIENT_LONG_MS * MST_MS, version;
	const void *out;
	size_t bytes;

	CU_ASSERT_EQUAL_FATAL(client_open(script, CLIENT_LONG_MS), 0);
	CU_ASSERT(client_start(NULL, &client_outcome) < 0);
	while (!mst_control_over(client_handle->session.control) && mst_now_ns() < until_ns)
		mst_sleep_ns(MST_MS);
	int rc = muster_take_state(client_handle, &out, &bytes, &version);
	CU_ASSERT(client_says(muster_error(client_handle), "before the last was taken"));
	client_close();
	return rc;
}

/* Else the first piece of the next would drop it, and the worker would wait for the rest. */
static void a_next_state_takes_the_place_of_none_that_is_still_to_be_taken(void)
{
	CU_ASSERT_EQUAL(error_of(send_the_next_too_early), -EPROTO);
	CU_ASSERT_EQUAL(error_of(send_the_next_in_the_middle), -EPROTO);
}

static CU_TestInfo cases[] = {
	{ "a state that comes in pieces is taken as a whole, and once",
	  a_state_that_comes_in_pieces_is_taken_as_a_whole_and_once },
	{ "one that is behind again takes another state, and gives none meanwhile",
	  one_that_is_behind_again_takes_another_state },
	{ "a state that never comes as a whole is not waited for for ever",
	  a_state_that_never_comes_as_a_whole_is_not_waited_for_for_ever },
	{ "a next state takes the place of none that is still to be taken",
	  a_next_state_takes_the_place_of_none_that_is_still_to_be_taken },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("client_state_transfer", cases);
}
