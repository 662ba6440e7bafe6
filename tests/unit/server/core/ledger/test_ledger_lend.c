/* SPDX-License-Identifier: MIT */
/* The ledger and the average of the weights, which it lends to one reader at a time. */
#include "tests/unit/server/core/ledger/ledger_job.h"
#include "tests/ut.h"

/* A job of two servers that keep an average. */
static struct mst_ledger_cfg averaging(void)
{
	struct mst_ledger_cfg cfg = job_cfg("async", 1);

	cfg.shards = 2;
	cfg.average = 0.5;
	return cfg;
}

static void ask(struct ledger_job *j)
{
	job_event(j, &(struct mst_ledger_event){ .kind = MST_EV_LEND });
}

static void returned(struct ledger_job *j, uint32_t shard, uint64_t version)
{
	struct mst_ledger_event ev = { .kind = MST_EV_RETURNED };

	ev.lent.shard = shard;
	ev.lent.version = version;
	job_event(j, &ev);
}

static void push(struct ledger_job *j, int versions)
{
	while (versions-- > 0) {
		job_push(j, 0);
		job_answered(j, 0);
	}
}

static size_t lends(const struct ledger_job *j)
{
	return job_count(j, MST_DO_LEND, -1);
}

static uint64_t last_lent(const struct ledger_job *j)
{
	const struct mst_decision *d = job_last(j, MST_DO_LEND, -1);

	return d != NULL ? d->commit.version : MST_VERSION_NONE;
}

static void the_newest_version_is_lent(void)
{
	struct mst_ledger_cfg cfg = averaging();
	struct ledger_job j;

	job_born(&j, &cfg);
	ask(&j);
	CU_ASSERT_EQUAL(lends(&j), 1);
	CU_ASSERT_EQUAL(last_lent(&j), 0); /* the start state */
	returned(&j, 0, 0);
	returned(&j, 1, 0);
	push(&j, 3);
	ask(&j);
	CU_ASSERT_EQUAL(lends(&j), 2);
	CU_ASSERT_EQUAL(last_lent(&j), 3);
	job_close(&j);
}

static void it_is_lent_again_when_every_server_has_returned_it(void)
{
	struct mst_ledger_cfg cfg = averaging();
	struct ledger_job j;

	job_born(&j, &cfg);
	push(&j, 1);
	ask(&j);
	push(&j, 1); /* no commit waits for a reader */
	ask(&j);
	ask(&j);
	CU_ASSERT_EQUAL(lends(&j), 1);
	returned(&j, 1, 1);
	returned(&j, 1, 1);
	CU_ASSERT_EQUAL(lends(&j), 1);
	returned(&j, 0, 1);
	CU_ASSERT_EQUAL(lends(&j), 2);
	CU_ASSERT_EQUAL(last_lent(&j), 2);
	returned(&j, 0, 2);
	returned(&j, 1, 2);
	CU_ASSERT_EQUAL(lends(&j), 2); /* askings that wait are one */
	job_close(&j);
}

static void a_report_that_cannot_be_changes_nothing(void)
{
	struct mst_ledger_cfg cfg = averaging();
	struct ledger_job j;

	job_born(&j, &cfg);
	returned(&j, 0, 0);
	push(&j, 1);
	ask(&j);
	returned(&j, 0, 0);
	returned(&j, 1, 2);
	ask(&j);
	CU_ASSERT_EQUAL(lends(&j), 1);
	job_close(&j);
}

static void it_can_be_read_after_the_end_of_the_job(void)
{
	struct mst_ledger_cfg cfg = averaging();
	struct ledger_job j;

	cfg.commits_max = 2;
	cfg.shards = 1;
	job_born(&j, &cfg);
	push(&j, 2);
	job_event(&j, &(struct mst_ledger_event){ .kind = MST_EV_SETTLED });
	CU_ASSERT_PTR_NOT_NULL_FATAL(job_last(&j, MST_DO_FINISH, -1));
	ask(&j);
	CU_ASSERT_EQUAL(last_lent(&j), 2);
	job_close(&j);
}

static void a_job_without_an_average_lends_none(void)
{
	struct mst_ledger_cfg cfg = averaging();
	struct ledger_job j;

	cfg.average = 0;
	job_born(&j, &cfg);
	push(&j, 1);
	ask(&j);
	CU_ASSERT_EQUAL(lends(&j), 0);
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "the newest version is lent", the_newest_version_is_lent },
	{ "it is lent again when every server has returned it",
	  it_is_lent_again_when_every_server_has_returned_it },
	{ "a report that cannot be changes nothing", a_report_that_cannot_be_changes_nothing },
	{ "it can be read after the end of the job", it_can_be_read_after_the_end_of_the_job },
	{ "a job without an average lends none", a_job_without_an_average_lends_none },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger_lend", cases);
}
