/* SPDX-License-Identifier: MIT */
/* What a policy does, in words with its numbers. */
#include <string.h>

#include "common/base/clock.h"
#include "server/control/job/sentences.h"
#include "server/core/policy/rule.h"
#include "tests/ut.h"

static const struct {
	const char *policy, *words;
} rows[] = {
	{ "bsp", "commits after 5 of 5, 0 may be late" },
	{ "backup:4", "commits after 4 of 5, 1 may be late" },
	{ "backup:-2", "commits after 3 of 5, 2 may be late" },
	{ "ksync:3", "commits after 3 of 5, 2 may be late" },
	{ "kbatchsync:7", "commits after every 7 gradients" },
	{ "async", "commits after every gradient" },
	{ "ssp:3", "commits after every gradient" },
	{ "nonblocking:2.5,16",
	  "commits when one of 5 has handed over a batch, at most 2.5 ms later if a "
	  "micro-batch would be more than 16 versions old after it" },
	{ "nonblocking:0,16", "commits when one of 5 has handed over a batch, and no "
			      "micro-batch would be more than 16 versions old after it" },
	{ "nonblocking", "commits when one of 5 has finished a batch and the others have handed in "
			 "what they have" },
	{ "nonblocking:2.5", "commits when one of 5 has finished a batch and the others have "
			     "handed in what they have, or 2.5 ms later" },
	{ "anytime:50",
	  "commits when 50 ms are over and all of 5 have handed in what they have finished" },
	{ "deadline:50,4", "commits after 4 of 5, or after 50 ms with those who are there" },
	{ "local:10", "commits after 5 of 5, 0 may be late; a worker contributes after 10 steps of "
		      "its own" },
	{ "local:10,4", "commits after 4 of 5, 1 may be late; a worker contributes after 10 steps "
			"of its own" },
	{ "easgd:10,0.1", "commits after every contribution; after 10 steps a worker moves by 0.1 "
			  "towards the servers" },
	{ "easgdsync:10,0.1", "commits after 5 of 5, 0 may be late; after 10 steps a worker moves "
			      "by 0.1 towards the servers" },
	{ "downpour:5,3", "commits after every gradient; a worker pushes after 5 batches and "
			  "fetches after 3" },
};

static void every_policy_has_a_true_sentence(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mst_rule rule = { .min_workers = 1 };
		struct mst_reason text;
		CU_ASSERT_EQUAL_FATAL(mst_rule_parse(rows[i].policy, &rule, &text), 0);
		mst_sentence_policy(&text, &rule, 5);
		CU_ASSERT_STRING_EQUAL(text.text, rows[i].words);
	}
}

static void who_joins_too_often_is_told_when_to_try_again(void)
{
	struct mst_server_options o = { .job = "digits" };
	struct mst_hello hello = { .rank = 3 };
	struct mst_reason text;

	mst_sentence_too_often(&text, &hello, 1, &o);
	CU_ASSERT_STRING_EQUAL(text.text,
			       "rank 3 joined job \"digits\" too often in a short time: try "
			       "again in 0.1 s; does the program fail as soon as it has "
			       "joined?");
	hello.rank = -1;
	mst_sentence_too_often(&text, &hello, 900 * MST_MS, &o);
	CU_ASSERT_PTR_NOT_NULL(strstr(text.text, "workers without a rank joined"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text.text, "again in 1.0 s"));
}

static void who_has_no_state_is_told_whether_others_were_asked(void)
{
	struct mst_server_options o = { .history = 8, .patience_ns = MST_SECOND };
	struct mst_eviction loss = { .rank = 3, .why = MST_EVICT_NO_STATE, .link = "" };
	struct mst_reason text;

	mst_sentence_evicted(&text, &loss, &o);
	CU_ASSERT_PTR_NOT_NULL(strstr(text.text, "rank 3 is behind the history of 8 versions, and "
						 "no other worker has given its state: each was "));
	loss.alone = true;
	mst_sentence_evicted(&text, &loss, &o);
	CU_ASSERT_PTR_NOT_NULL(strstr(text.text, "rank 3 is behind the history of 8 versions, and "
						 "no other worker is in the job any more"));
	CU_ASSERT_PTR_NULL(strstr(text.text, "asked"));
}

/* Else: an operator is told to raise --patience, for one that has left. */
static void who_leaves_without_all_it_announced_is_told_of_truly(void)
{
	struct mst_server_options o = { .lease_ns = 5 * MST_SECOND,
					.patience_ns = 300 * MST_SECOND };
	struct mst_eviction loss = { .rank = 3, .link = "", .announced = 7, .came = 5 };
	struct mst_reason text;

	loss.why = MST_EVICT_LOST;
	loss.link = "10.0.0.2:4711 has closed the connection";
	mst_sentence_evicted(&text, &loss, &o);
	CU_ASSERT_STRING_EQUAL(
		text.text, "rank 3 has left without all that it announced: its last "
			   "contribution was to be number 7, and the last that came is number "
			   "5; its link is gone, so no other can come: 10.0.0.2:4711 has closed "
			   "the connection");
	loss.why = MST_EVICT_PATIENCE;
	loss.came = 0;
	mst_sentence_evicted(&text, &loss, &o);
	CU_ASSERT_STRING_EQUAL(text.text,
			       "rank 3 has left without all that it announced: its last "
			       "contribution was to be number 7, and none came; its link is there "
			       "and brought no other, for which a step waited for the patience of "
			       "300 s");
	loss.why = MST_EVICT_LEASE;
	loss.came = 6;
	mst_sentence_evicted(&text, &loss, &o);
	CU_ASSERT_PTR_NOT_NULL(strstr(text.text, "the last that came is number 6; it was silent "
						 "for its lease of 5 s"));
	loss.came = 7; /* all that it announced: then that is not what is wrong */
	mst_sentence_evicted(&text, &loss, &o);
	CU_ASSERT_STRING_EQUAL(text.text,
			       "rank 3 was silent for its lease of 5 s: stopped, or cut off");
}

static CU_TestInfo cases[] = {
	{ "who leaves without all it announced is told of truly",
	  who_leaves_without_all_it_announced_is_told_of_truly },
	{ "every policy has a true sentence", every_policy_has_a_true_sentence },
	{ "who joins too often is told when to try again",
	  who_joins_too_often_is_told_when_to_try_again },
	{ "who has no state is told whether others were asked",
	  who_has_no_state_is_told_whether_others_were_asked },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("reason", cases);
}
