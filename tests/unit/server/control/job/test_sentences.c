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

static bool names(const struct mst_reason *text, const char *what)
{
	return strstr(text->text, what) != NULL;
}

static void only_ranks_that_are_missing_are_named(void)
{
	static const enum mst_finish_why all[] = { MST_FINISH_JOIN_TIMEOUT, MST_FINISH_NOT_BEGUN,
						   MST_FINISH_TOO_FEW, MST_FINISH_LOSS,
						   MST_FINISH_STOOD };
	struct mst_server_options o = { .workers = 3, .join_timeout_ns = 2 * MST_SECOND };
	struct mst_reason text;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		mst_sentence_finished(&text, all[i], "1, 2", &o);
		CU_ASSERT(names(&text, "; missing: rank 1, 2"));
		mst_sentence_finished(&text, all[i], "", &o);
		CU_ASSERT_FALSE(names(&text, "missing"));
	}
}

static struct mst_reason lacking(struct mst_gathered g, const char *absent, const char *outside)
{
	struct mst_server_options o = { .workers = 4, .join_timeout_ns = 2 * MST_SECOND };
	struct mst_reason text;

	mst_sentence_finished(&text, MST_FINISH_NOT_BEGUN, absent, &o);
	mst_sentence_gathered(&text, &g, absent, outside, &o);
	return text;
}

static void start_that_fails_says_how_many_it_needs(void)
{
	struct mst_reason text = lacking((struct mst_gathered){ 4, 3, 2, 2 }, "2, 3", "");

	CU_ASSERT(names(&text, "missing: rank 2, 3; of 4 ranks 2 have come back"));
	CU_ASSERT(names(&text, "needs 3, more than half") && names(&text, "new processes"));
	/* a new process has started, and does not count for the majority */
	text = lacking((struct mst_gathered){ 4, 3, 3, 2 }, "3", "");
	CU_ASSERT(names(&text, "of 4 ranks 2 have come back"));
	text = lacking((struct mst_gathered){ 4, 2, 3, 3 }, "3", "");
	CU_ASSERT(names(&text, "needs all, since --min-workers 2 is at most half of 4"));
	text = lacking((struct mst_gathered){ 4, 4, 3, 3 }, "3", "");
	CU_ASSERT(names(&text, "3 have started") && names(&text, "--min-workers 4"));
}

/* The generation before had more workers. */
static void start_that_fails_names_ranks_that_are_left_out(void)
{
	struct mst_reason text = lacking((struct mst_gathered){ 9, 3, 4, 4 }, "", "5, 8");

	CU_ASSERT(names(&text, "all 4 workers are there, but the job had 9 before"));
	CU_ASSERT(names(&text, "only 4 have come back within 2 s") &&
		  names(&text, "and 5 have to"));
	CU_ASSERT(names(&text, "missing: rank 5, 8") && names(&text, "--workers 9"));
	text = lacking((struct mst_gathered){ 9, 5, 3, 3 }, "2", "5, 8");
	CU_ASSERT(names(&text, "missing: rank 2;") && names(&text, "rank 5, 8 of the 9 before"));
}

static CU_TestInfo cases[] = {
	{ "only ranks that are missing are named", only_ranks_that_are_missing_are_named },
	{ "a start that fails says how many it needs", start_that_fails_says_how_many_it_needs },
	{ "a start that fails names ranks that are left out",
	  start_that_fails_names_ranks_that_are_left_out },
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
