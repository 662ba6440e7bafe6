/* SPDX-License-Identifier: MIT */
/* The claims of workers that come back, as the leader looks at them. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/control/generations/generation.h"
#include "tests/ut.h"

#define RUN "0123456789abcdef"
#define OTHER "fedcba9876543210"

static struct mst_server_options options;
static struct mst_job_generation now;
static struct mst_hello hello;
static struct mst_reason why;

static void claim(const char *run, uint64_t number, uint64_t version)
{
	hello = (struct mst_hello){ .rank = 3,
				    .returning = { .number = number,
						   .version = version,
						   .made = 11,
						   .made_before = 22,
						   .samples = 70,
						   .incarnation = 4 } };
	memcpy(hello.returning.run, run, strlen(run) + 1);
}

static void begin(uint64_t server_patience_ns)
{
	options = (struct mst_server_options){ .job = "test",
					       .server_patience_ns = server_patience_ns };
	CU_ASSERT_EQUAL_FATAL(mst_generation_init(&now, &options, &why), 0);
	claim(RUN, 5, 7);
	mst_reason_clear(&why);
}

static int check(void)
{
	return mst_generation_check(&now, &hello, &options, &why);
}

static bool says(const char *what)
{
	return strstr(why.text, what) != NULL;
}

static void every_start_draws_a_run_and_an_id_of_its_own(void)
{
	begin(1);
	struct mst_job_generation first = now;

	begin(1);
	CU_ASSERT_TRUE(now.counts);
	CU_ASSERT_EQUAL(now.now.number, 0);
	CU_ASSERT_EQUAL(strspn(now.now.run, RUN), MST_RUN_LEN - 1);
	CU_ASSERT_NOT_EQUAL(now.now.id, 0);
	CU_ASSERT_NOT_EQUAL(now.now.id, first.now.id);
	CU_ASSERT_NOT_EQUAL(strcmp(now.now.run, first.now.run), 0);
	begin(0);
	CU_ASSERT_FALSE(now.counts);
	CU_ASSERT_EQUAL(now.now.id, 0);
}

static void worker_that_claims_nothing_may_join(void)
{
	begin(1);
	hello.returning = (struct mst_returning){ .number = 0 };
	CU_ASSERT_EQUAL(check(), 0);
	CU_ASSERT_FALSE(now.is_run_known);
	CU_ASSERT_EQUAL(mst_generation_claimed(&hello).number, 0);
	begin(0);
	hello.returning = (struct mst_returning){ .number = 0 };
	CU_ASSERT_EQUAL(check(), 0);
}

static void first_claim_says_which_run_it_is(void)
{
	begin(1);
	CU_ASSERT_EQUAL(check(), 0);
	CU_ASSERT_STRING_EQUAL(now.now.run, RUN);
	CU_ASSERT_EQUAL(check(), 0);
	claim(OTHER, 9, 100);
	CU_ASSERT_EQUAL(check(), -EBUSY);
	CU_ASSERT(says("rank 3") && says("version 100") && says(OTHER) && says(RUN) &&
		  says("\"test\""));
	CU_ASSERT_STRING_EQUAL(now.now.run, RUN);
}

/* The job has begun anew, and has versions of its own. */
static void run_that_has_begun_takes_no_claim_of_another(void)
{
	const struct mst_generation_view view = { .number = 1 };

	begin(1);
	mst_generation_begins(&now, &view);
	CU_ASSERT_EQUAL(check(), -EINVAL);
	CU_ASSERT(says(RUN) && says(now.now.run));
}

/* A worker that comes back from another run is not told of the end of this one. */
static void claim_of_another_run_is_known_before_it_is_checked(void)
{
	begin(1);
	CU_ASSERT_FALSE(mst_generation_is_another(&now, &hello)); /* nobody has said the run yet */
	CU_ASSERT_EQUAL(check(), 0);
	CU_ASSERT_FALSE(mst_generation_is_another(&now, &hello));
	claim(OTHER, 9, 100);
	CU_ASSERT(mst_generation_is_another(&now, &hello));
	hello.returning = (struct mst_returning){ .number = 0 };
	CU_ASSERT_FALSE(mst_generation_is_another(&now, &hello)); /* a new process */
}

/* The ledger ends then, and has to hear of it. */
static void claim_of_a_later_generation_goes_to_the_ledger(void)
{
	const struct mst_generation_view view = { .number = 6, .began = 7 };

	begin(1);
	CU_ASSERT_EQUAL(check(), 0);
	mst_generation_begins(&now, &view);
	claim(RUN, 6, 8);
	hello.returning.seen = 9;
	hello.returning.seen_id = 5;
	CU_ASSERT_EQUAL(check(), 0);
	struct mst_claimed claimed = mst_generation_claimed(&hello);
	CU_ASSERT(claimed.number == 6 && claimed.seen == 9 && claimed.seen_id == 5);
}

static void server_that_counts_no_generations_takes_no_claim(void)
{
	begin(0);
	CU_ASSERT_EQUAL(check(), -EINVAL);
	CU_ASSERT(says("--server-patience") && says("rank 3") && says("version 7"));
}

static void worker_without_an_outcome_says_which_run_it_is(void)
{
	begin(1);
	hello.returning.number = hello.returning.version = 0;
	hello.returning.seen = 4;
	CU_ASSERT_EQUAL(check(), 0);
	CU_ASSERT_STRING_EQUAL(now.now.run, RUN);
	CU_ASSERT_EQUAL(mst_generation_claimed(&hello).number, 0);
	CU_ASSERT_EQUAL(mst_generation_claimed(&hello).seen, 4);
}

static bool breaks_the_protocol(void)
{
	int rc = check();

	return rc == -EPROTO && says("broke the protocol") && !now.is_run_known;
}

static void claim_that_cannot_be_breaks_the_protocol(void)
{
	begin(1);
	hello.rank = -1;
	CU_ASSERT(breaks_the_protocol());
	begin(1);
	hello.returning.incarnation = 0;
	CU_ASSERT(breaks_the_protocol());
	begin(1);
	hello.returning.number = hello.returning.version = 0;
	CU_ASSERT(breaks_the_protocol()); /* it has been in no generation */
	begin(1);
	hello.returning.number = 0;
	hello.returning.seen = 4;
	CU_ASSERT(breaks_the_protocol()); /* a version of none */
	begin(1);
	hello.returning.version = UINT64_MAX;
	CU_ASSERT(breaks_the_protocol());
	begin(1);
	hello.returning.seen = UINT64_MAX; /* the next number would be 0 */
	CU_ASSERT(breaks_the_protocol());
	begin(1);
	hello.returning.samples = -1;
	CU_ASSERT(breaks_the_protocol());
	begin(1);
	hello.returning.samples = (double)NAN;
	CU_ASSERT(breaks_the_protocol());
	begin(1);
	hello.returning.in_force.number = 1; /* without a policy */
	CU_ASSERT(breaks_the_protocol());
	begin(1);
	hello.returning.in_force = (struct mst_in_force){ UINT64_C(1) << 32, 0, "bsp" };
	CU_ASSERT(breaks_the_protocol());
	begin(1);
	hello.returning.run[3] = '\n';
	CU_ASSERT(breaks_the_protocol());
	begin(1);
	hello.returning.run[3] = '\0';
	CU_ASSERT(breaks_the_protocol());
}

static void all_of_the_claim_goes_to_the_ledger(void)
{
	begin(1);
	struct mst_claimed claimed = mst_generation_claimed(&hello);
	CU_ASSERT_EQUAL(claimed.number, 5);
	CU_ASSERT_EQUAL(claimed.version, 7);
	CU_ASSERT_EQUAL(claimed.made, 11);
	CU_ASSERT_EQUAL(claimed.made_before, 22);
	CU_ASSERT_EQUAL(claimed.samples, 70);
}

static void generation_that_begins_says_who_has_made_its_first_version(void)
{
	const struct mst_generation_view view = {
		.number = 6,
		.began = 7,
		.newest = { .number = 5, .version = 7, .made = 11, .made_before = 22 }
	};

	begin(1);
	uint64_t id = now.now.id;
	CU_ASSERT_EQUAL(check(), 0);
	mst_generation_begins(&now, &view);
	CU_ASSERT_EQUAL(now.now.number, 6);
	CU_ASSERT_EQUAL(now.now.began, 7);
	CU_ASSERT_EQUAL(now.now.id, id);
	CU_ASSERT_EQUAL(now.now.made, 11);
	CU_ASSERT_EQUAL(now.now.made_before, 22);
	begin(0);
	mst_generation_begins(&now, &view);
	CU_ASSERT_EQUAL(now.now.number, 0);
}

/* ---- servers own: from a checkpoint ---- */

#define SAVE "00000000000000ff0000000000000007" /* the id of the start, and the version */

static void resume(struct mst_checkpoint_manifest *m, const char *run)
{
	mst_checkpoint_manifest_init(m);
	m->id.version = 7;
	m->generation = 4;
	(void)snprintf(m->run, sizeof(m->run), "%s", run);
	(void)snprintf(m->id.save, sizeof(m->id.save), "%s", SAVE);
	options.owner = MUSTER_SERVERS_OWN;
	mst_generation_resume(&now, m, "/kept");
}

static void run_of_the_checkpoint_goes_on(void)
{
	struct mst_checkpoint_manifest m;

	begin(1);
	uint64_t id = now.now.id;
	resume(&m, RUN);
	CU_ASSERT_STRING_EQUAL(now.now.run, RUN);
	CU_ASSERT_TRUE(now.is_run_known);
	CU_ASSERT_EQUAL(now.now.id, id); /* each start has its own */
	CU_ASSERT_EQUAL(mst_generation_maker(&m), 0xff);
	CU_ASSERT_EQUAL(check(), 0);
	m.generation = 0; /* nobody has counted */
	CU_ASSERT_EQUAL(mst_generation_maker(&m), 0);
	mst_checkpoint_manifest_fini(&m);
}

static void checkpoint_of_another_run_than_the_workers_is_told(void)
{
	const struct mst_generation_view view = { .number = 5, .began = 7 };
	struct mst_checkpoint_manifest m;

	begin(1);
	resume(&m, OTHER);
	CU_ASSERT_EQUAL(check(), -EBUSY); /* it tries on: the directory may be the wrong one */
	CU_ASSERT(says(RUN) && says(OTHER) && says("/kept") && says("version 7") &&
		  says("start this server with the directory"));
	CU_ASSERT_EQUAL(now.absent.number, 0);
	mst_generation_begins(&now, &view);
	CU_ASSERT_EQUAL(check(), -EINVAL);
	mst_checkpoint_manifest_fini(&m);
}

/* An earlier release has written it. */
static void checkpoint_without_a_run_takes_that_of_the_workers(void)
{
	struct mst_checkpoint_manifest m;

	begin(1);
	resume(&m, "");
	CU_ASSERT_FALSE(now.is_run_known);
	CU_ASSERT_EQUAL(check(), 0);
	CU_ASSERT_STRING_EQUAL(now.now.run, RUN);
	mst_checkpoint_manifest_fini(&m);
}

static void manifest_says_run_and_generation_and_where_each_began(void)
{
	const struct mst_generation_view view = { .number = 5, .began = 7 };
	const struct mst_claimed old = { .number = 4, .version = 9, .made = 0xff };
	struct mst_checkpoint_manifest m, next;

	begin(1);
	resume(&m, RUN);
	mst_generation_begins(&now, &view);
	mst_checkpoint_manifest_init(&next);
	CU_ASSERT_EQUAL(mst_generation_save(&now, &next), 0);
	CU_ASSERT_STRING_EQUAL(next.run, RUN);
	CU_ASSERT_EQUAL(next.generation, 5);
	begin(1);
	(void)snprintf(next.id.save, sizeof(next.id.save), "%s", SAVE);
	mst_generation_resume(&now, &next, "/kept");
	CU_ASSERT_EQUAL(mst_generation_stands(&now, &old), 7);
	mst_checkpoint_manifest_fini(&m);
	mst_checkpoint_manifest_fini(&next);
}

/* What the reason says if the start never comes. */
static void newest_claim_before_the_start_is_noted(void)
{
	const struct mst_generation_view view = { .number = 6, .began = 0 };

	begin(1);
	claim(RUN, 4, 90);
	CU_ASSERT_EQUAL(check(), 0);
	claim(RUN, 5, 7);
	CU_ASSERT_EQUAL(check(), 0);
	claim(RUN, 5, 6);
	CU_ASSERT_EQUAL(check(), 0);
	CU_ASSERT(now.absent.number == 5 && now.absent.version == 7);
	mst_generation_begins(&now, &view);
	claim(RUN, 6, 100);
	CU_ASSERT_EQUAL(check(), 0);
	CU_ASSERT(now.absent.number == 5 && now.absent.version == 7);
}

static void status_says_run_and_generation(void)
{
	const struct mst_generation_view view = { .number = 6, .began = 7 };
	struct mst_status status = { MST_STATUS_NOTHING };

	begin(0);
	mst_generation_tell(&now, &status);
	CU_ASSERT_EQUAL(status.generation, MST_NOT_KNOWN);
	CU_ASSERT_STRING_EQUAL(status.run, "");
	begin(1);
	mst_generation_tell(&now, &status);
	CU_ASSERT_EQUAL(status.generation, 0);
	CU_ASSERT_STRING_EQUAL(status.run, ""); /* a worker may still say another one */
	CU_ASSERT_EQUAL(check(), 0);
	mst_generation_begins(&now, &view);
	mst_generation_tell(&now, &status);
	CU_ASSERT_EQUAL(status.generation, 6);
	CU_ASSERT_STRING_EQUAL(status.run, RUN);
}

static CU_TestInfo cases[] = {
	{ "every start draws a run and an id of its own",
	  every_start_draws_a_run_and_an_id_of_its_own },
	{ "a worker that claims nothing may join", worker_that_claims_nothing_may_join },
	{ "the first claim says which run it is", first_claim_says_which_run_it_is },
	{ "a run that has begun takes no claim of another",
	  run_that_has_begun_takes_no_claim_of_another },
	{ "a claim of another run is known before it is checked",
	  claim_of_another_run_is_known_before_it_is_checked },
	{ "a claim of a later generation goes to the ledger",
	  claim_of_a_later_generation_goes_to_the_ledger },
	{ "a server that counts no generations takes no claim",
	  server_that_counts_no_generations_takes_no_claim },
	{ "a worker without an outcome says which run it is",
	  worker_without_an_outcome_says_which_run_it_is },
	{ "a claim that cannot be breaks the protocol", claim_that_cannot_be_breaks_the_protocol },
	{ "all of the claim goes to the ledger", all_of_the_claim_goes_to_the_ledger },
	{ "a generation that begins says who has made its first version",
	  generation_that_begins_says_who_has_made_its_first_version },
	{ "the run of the checkpoint goes on", run_of_the_checkpoint_goes_on },
	{ "a checkpoint of another run than the workers' is told",
	  checkpoint_of_another_run_than_the_workers_is_told },
	{ "a checkpoint without a run takes that of the workers",
	  checkpoint_without_a_run_takes_that_of_the_workers },
	{ "a manifest says run and generation, and where each began",
	  manifest_says_run_and_generation_and_where_each_began },
	{ "the newest claim before the start is noted", newest_claim_before_the_start_is_noted },
	{ "the status says run and generation", status_says_run_and_generation },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("generations at the leader", cases);
}
