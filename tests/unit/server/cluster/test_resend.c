/* SPDX-License-Identifier: MIT */
/* Two resend queues, and a link between them that loses things: all is taken once, in order. */
#include <errno.h>
#include <string.h>

#include "common/base/rand.h"
#include "server/cluster/resend.h"
#include "tests/ut.h"

#define WINDOW 8u
#define LINE 64u

static struct mst_resend *up, *down;

static void begin(void)
{
	CU_ASSERT_EQUAL_FATAL(mst_resend_new(WINDOW, &up), 0);
	CU_ASSERT_EQUAL_FATAL(mst_resend_new(WINDOW, &down), 0);
}

static void end(void)
{
	mst_resend_free(up);
	mst_resend_free(down);
}

static void say(struct mst_resend *r, uint64_t value)
{
	struct mst_peer_entry entry = { .kind = MST_PEER_ANSWERED, .value = value };

	mst_resend_say(r, &entry);
}

/* Puts the next, and takes it at the other end. */
static int pass(struct mst_resend *from, struct mst_resend *to)
{
	struct mst_peer_entry entry = *mst_resend_next(from);

	mst_resend_put(from);
	return mst_resend_take(to, &entry);
}

static void entries_are_numbered_from_one(void)
{
	begin();
	CU_ASSERT_PTR_NULL(mst_resend_next(up));
	say(up, 7);
	say(up, 8);
	CU_ASSERT_EQUAL(mst_resend_next(up)->number, 1);
	CU_ASSERT_EQUAL(mst_resend_next(up)->value, 7);
	CU_ASSERT_EQUAL(pass(up, down), 1);
	CU_ASSERT_EQUAL(mst_resend_next(up)->number, 2);
	CU_ASSERT_EQUAL(mst_resend_taken(down), 1);
	end();
}

static void room_comes_back_with_the_other_ends_word(void)
{
	begin();
	for (uint32_t i = 0; i < WINDOW; i++) {
		CU_ASSERT_EQUAL(mst_resend_room(up), WINDOW - i);
		say(up, i);
		CU_ASSERT_EQUAL(pass(up, down), 1);
	}
	CU_ASSERT_EQUAL(mst_resend_room(up), 0);
	say(down, 1);
	CU_ASSERT_EQUAL(pass(down, up), 1); /* takes the acknowledgement along */
	CU_ASSERT_EQUAL(mst_resend_room(up), WINDOW);
	end();
}

static void what_half_a_window_waits_for_is_said_by_itself(void)
{
	begin();
	for (uint32_t i = 0; i < WINDOW / 2; i++) {
		CU_ASSERT(!mst_resend_owes(down, false));
		CU_ASSERT_EQUAL(mst_resend_owes(down, true), i > 0);
		say(up, i);
		pass(up, down);
	}
	CU_ASSERT(mst_resend_owes(down, false));
	say(down, 1); /* an entry will take it along */
	CU_ASSERT(!mst_resend_owes(down, false));
	CU_ASSERT_EQUAL(mst_resend_next(down)->ack, WINDOW / 2);
	mst_resend_put(down);
	CU_ASSERT(!mst_resend_owes(down, true));
	end();
}

static void a_word_by_itself_is_told_once(void)
{
	begin();
	say(up, 1);
	pass(up, down);
	mst_resend_told(down);
	CU_ASSERT(!mst_resend_owes(down, true));
	CU_ASSERT_EQUAL(mst_resend_acked(up, 1), 0);
	CU_ASSERT_EQUAL(mst_resend_room(up), WINDOW);
	end();
}

static void a_entry_twice_is_taken_once(void)
{
	begin();
	say(up, 1);
	struct mst_peer_entry entry = *mst_resend_next(up);
	CU_ASSERT_EQUAL(mst_resend_take(down, &entry), 1);
	CU_ASSERT_EQUAL(mst_resend_take(down, &entry), 0);
	CU_ASSERT_EQUAL(mst_resend_taken(down), 1);
	end();
}

static void a_gap_breaks_the_protocol(void)
{
	struct mst_peer_entry entry = { .number = 2 };

	begin();
	CU_ASSERT_EQUAL(mst_resend_take(down, &entry), -EPROTO);
	entry.number = 0;
	CU_ASSERT_EQUAL(mst_resend_take(down, &entry), -EPROTO);
	end();
}

static void what_was_never_put_cannot_be_executed(void)
{
	struct mst_peer_entry entry = { .number = 1, .ack = 1 };

	begin();
	say(up, 1);
	CU_ASSERT_EQUAL(mst_resend_acked(up, 1), -EPROTO);
	CU_ASSERT_EQUAL(mst_resend_take(up, &entry), -EPROTO);
	CU_ASSERT_EQUAL(mst_resend_taken(up), 0);
	end();
}

static void a_new_link_begins_behind_what_was_executed(void)
{
	begin();
	for (uint64_t i = 1; i <= 4; i++)
		say(up, i);
	CU_ASSERT_EQUAL(pass(up, down), 1);
	CU_ASSERT_EQUAL(pass(up, down), 1);
	mst_resend_put(up); /* lost with the link */
	CU_ASSERT_EQUAL(mst_resend_resume(up, mst_resend_taken(down)), 0);
	CU_ASSERT_EQUAL(mst_resend_next(up)->number, 3);
	CU_ASSERT_EQUAL(pass(up, down), 1);
	CU_ASSERT_EQUAL(pass(up, down), 1);
	CU_ASSERT_PTR_NULL(mst_resend_next(up));
	end();
}

static void nobody_resumes_where_nobody_was(void)
{
	begin();
	for (uint64_t i = 1; i <= 3; i++)
		say(up, i);
	pass(up, down);
	CU_ASSERT_EQUAL(mst_resend_acked(up, 1), 0);
	CU_ASSERT_EQUAL(mst_resend_resume(up, 4), -EPROTO); /* never said */
	CU_ASSERT_EQUAL(mst_resend_resume(up, 0), -EPROTO); /* forgotten */
	CU_ASSERT_EQUAL(mst_resend_resume(up, 1), 0);
	end();
}

/* ---- any history ---- */

struct resend_pair {
	struct mst_resend *from, *to;
	struct mst_peer_entry entry[LINE];
	uint32_t count;
	uint64_t said, heard;
};

static void line_put(struct resend_pair *l)
{
	const struct mst_peer_entry *entry = mst_resend_next(l->from);

	if (entry == NULL || l->count == LINE)
		return;
	l->entry[l->count++] = *entry;
	mst_resend_put(l->from);
}

static void line_take(struct resend_pair *l)
{
	if (l->count == 0)
		return;
	CU_ASSERT_EQUAL_FATAL(mst_resend_take(l->to, &l->entry[0]), 1);
	CU_ASSERT_EQUAL_FATAL(l->entry[0].value, ++l->heard);
	memmove(l->entry, l->entry + 1, --l->count * sizeof(l->entry[0]));
}

static void line_step(struct resend_pair *l, struct mst_rand *chance)
{
	switch (mst_rand_below(chance, 4)) {
	case 0:
		if (mst_resend_room(l->from) > 0)
			say(l->from, ++l->said);
		break;
	case 1:
		line_put(l);
		break;
	case 2:
		line_take(l);
		break;
	default:
		if (mst_resend_owes(l->to, false)) {
			CU_ASSERT_EQUAL_FATAL(mst_resend_acked(l->from, mst_resend_taken(l->to)),
					      0);
			mst_resend_told(l->to);
		}
	}
}

/* A new link, on which each end first says how far it is. */
static void lines_break(struct resend_pair *line)
{
	line[0].count = line[1].count = 0;
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL_FATAL(mst_resend_resume(line[i].from, mst_resend_taken(line[i].to)),
				      0);
}

static void all_is_taken_once_and_in_order(void)
{
	struct mst_rand chance;

	for (uint64_t seed = 0; seed < 200; seed++) {
		begin();
		static struct resend_pair line[2];
		line[0] = (struct resend_pair){ .from = up, .to = down };
		line[1] = (struct resend_pair){ .from = down, .to = up };
		mst_rand_seed(&chance, seed);
		for (int i = 0; i < 2000; i++) {
			line_step(&line[mst_rand_below(&chance, 2)], &chance);
			if (mst_rand_below(&chance, 50) == 0)
				lines_break(line);
		}
		CU_ASSERT(line[0].heard > 20 && line[1].heard > 20);
		for (int i = 0; i < 2; i++) {
			while (mst_resend_next(line[i].from) != NULL || line[i].count > 0) {
				line_put(&line[i]);
				line_take(&line[i]);
			}
			CU_ASSERT_EQUAL(line[i].heard, line[i].said);
		}
		end();
	}
}

static CU_TestInfo cases[] = {
	{ "entries are numbered from one", entries_are_numbered_from_one },
	{ "room comes back with the other end's word", room_comes_back_with_the_other_ends_word },
	{ "what half a window waits for is said by itself",
	  what_half_a_window_waits_for_is_said_by_itself },
	{ "a word by itself is told once", a_word_by_itself_is_told_once },
	{ "an entry twice is taken once", a_entry_twice_is_taken_once },
	{ "a gap breaks the protocol", a_gap_breaks_the_protocol },
	{ "what was never put cannot be executed", what_was_never_put_cannot_be_executed },
	{ "a new link begins after what was executed", a_new_link_begins_behind_what_was_executed },
	{ "nobody resumes where nobody was", nobody_resumes_where_nobody_was },
	{ "all is taken once and in order", all_is_taken_once_and_in_order },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("resend queue", cases);
}
