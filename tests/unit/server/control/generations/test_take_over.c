/* SPDX-License-Identifier: MIT */
/*
 * How a later generation takes over the policy that was in force. The workers that come back, and
 * the ledger, are played by the test.
 */
#include <stdio.h>
#include <string.h>

#include "common/config/option.h"
#include "server/control/generations/take_over.h"
#include "tests/ut.h"

#define WORKERS 4u

static struct mst_server_options options;
static struct mst_options parsed;
static struct mst_job job;
static uint32_t given; /* policies that the ledger was given */
static struct mst_rule last;
static enum mst_controller_kind kind;
static bool full; /* there is no room in the ring of requests */
static char logged[4096];

bool __wrap_mst_server_request(struct mst_server *s, const struct mst_request *request);
bool __wrap_mst_server_request(struct mst_server *s, const struct mst_request *request)
{
	(void)s;
	if (full)
		return false;
	CU_ASSERT_EQUAL(request->event.kind, MST_EV_POLICY);
	given++;
	last = request->event.rule;
	kind = request->event.controller->kind;
	return true;
}

void __wrap_mst_log(enum mst_log_level level, const char *format, ...);
void __wrap_mst_log(enum mst_log_level level, const char *format, ...)
{
	size_t used = strlen(logged);
	va_list args;

	(void)level;
	va_start(args, format);
	(void)vsnprintf(logged + used, sizeof(logged) - used, format, args);
	va_end(args);
}

static bool says(const char *words)
{
	return strstr(logged, words) != NULL;
}

static void begin(const char *policy)
{
	struct mst_requests_cfg requests = { WORKERS, 1, 1 };

	CU_ASSERT_EQUAL_FATAL(mst_options_init(&parsed, mst_server_table, &options), 0);
	options.job = "test";
	options.policy = policy;
	options.workers = WORKERS;
	options.owner = MUSTER_WORKERS_OWN;
	options.server_patience_ns = 1;
	job = (struct mst_job){ .o = &options,
				.generation = { .counts = true, .now.number = 2 },
				.plan.layout.slots = 1 };
	CU_ASSERT_EQUAL_FATAL(mst_terms_read(&options, &job.terms, UT_UNREAD), 0);
	struct mst_job_policy first;
	mst_job_policy_init(&first, policy, &job.terms.policy);
	mst_job_policies_enter(&job.policies, &first);
	CU_ASSERT_EQUAL_FATAL(mst_in_force_claims_init(&job.in_force.claims, WORKERS), 0);
	CU_ASSERT_EQUAL_FATAL(mst_requests_init(&job.requests, &requests), 0);
	mst_requests_open(&job.requests, NULL);
	given = 0;
	full = false;
	logged[0] = '\0';
}

static void end(void)
{
	mst_requests_close(&job.requests);
	mst_requests_fini(&job.requests);
	mst_in_force_claims_fini(&job.in_force.claims);
	mst_options_free(&parsed);
}

static void comes_back(uint32_t rank, uint64_t number, uint32_t forced, const char *policy)
{
	struct mst_in_force what = { .number = number, .forced = forced };

	(void)snprintf(what.policy, sizeof(what.policy), "%s", policy);
	mst_take_over_joined(&job, rank, &what);
}

/* A worker starts: all have been heard, and the ledger takes what it is given. */
static void starts(void)
{
	CU_ASSERT(mst_take_over_settle(&job));
	(void)mst_take_over_taken(&job);
}

static bool runs(const char *policy, uint64_t number)
{
	const struct mst_job_policy *now = mst_job_policy(&job);

	return strcmp(now->name, policy) == 0 && now->number == number && job.policies.count == 1;
}

static void policy_that_workers_bring_is_given_to_the_ledger(void)
{
	begin("bsp");
	for (uint32_t rank = 0; rank < WORKERS; rank++)
		comes_back(rank, 2, 0, "backup:3");
	starts();
	CU_ASSERT(given == 1 && last.quorum == 3);
	CU_ASSERT(last.patience_ns == options.patience_ns); /* the other options hold */
	CU_ASSERT(runs("backup:3", 2));
	starts(); /* the next worker */
	CU_ASSERT_EQUAL(given, 1);
	mst_take_over_tell(&job);
	CU_ASSERT(says("goes on under backup:3") && says("change 2, as its workers say"));
	CU_ASSERT(says("not under --policy bsp") && says("muster policy bsp changes it back"));
	end();
}

static void policy_that_is_that_of_the_command_line_too(void)
{
	begin("bsp");
	for (uint32_t rank = 0; rank < WORKERS; rank++)
		comes_back(rank, 2, 0, "bsp");
	starts();
	CU_ASSERT(runs("bsp", 2));
	mst_take_over_tell(&job);
	CU_ASSERT(says("goes on under bsp, as --policy of this server says too (change 2, as its "
		       "workers say)"));
	CU_ASSERT(!says("not under"));
	end();
}

static void job_whose_policy_was_never_changed_begins_as_it_is_told(void)
{
	begin("backup:2");
	mst_take_over_joined(&job, 0, NULL); /* a new one */
	comes_back(1, 0, 0, "");
	starts();
	CU_ASSERT(given == 0 && runs("backup:2", 0));
	mst_take_over_tell(&job);
	CU_ASSERT(says("ranks that rested take part again") && !says("goes on under"));
	end();
}

static void worker_that_leaves_takes_back_what_it_brought(void)
{
	begin("bsp");
	comes_back(0, 1, 0, "backup:2");
	starts();
	CU_ASSERT(runs("backup:2", 1));
	mst_take_over_left(&job, 0);
	starts();
	CU_ASSERT(given == 2 && last.quorum == 0 && runs("bsp", 0));
	end();
}

static void start_waits_for_the_ledger(void)
{
	begin("bsp");
	comes_back(0, 1, 0, "backup:2");
	full = true;
	CU_ASSERT(!mst_take_over_settle(&job));
	CU_ASSERT(!job.in_force.waits && runs("bsp", 0));
	full = false;
	CU_ASSERT(mst_take_over_settle(&job)); /* the ring keeps the order */
	comes_back(1, 2, 0, "adasync:ksync,2");
	CU_ASSERT(!mst_take_over_settle(&job)); /* the controller is lent */
	CU_ASSERT(mst_take_over_taken(&job));
	CU_ASSERT(!mst_take_over_taken(&job)); /* the next is an operator's */
	starts();
	CU_ASSERT(given == 2 && kind == MST_CONTROLLER_ADASYNC && runs("adasync:ksync,2", 2));
	mst_take_over_tell(&job);
	CU_ASSERT(says("what the policy has learnt begins anew: adasync:ksync,2"));
	end();
}

static void policy_that_cannot_be_run_leaves_that_of_the_command_line(void)
{
	static const char *const none[] = { "backup:9", "nonsense", "local:4", "backup:1" };

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		begin("backup:3");
		for (uint32_t rank = 0; rank < WORKERS; rank++)
			comes_back(rank, 4, 0, none[i]);
		starts();
		CU_ASSERT(last.quorum == 3 && runs("backup:3", 0));
		CU_ASSERT(job.in_force.cannot && job.in_force.now.number == 4);
		CU_ASSERT_STRING_EQUAL(job.in_force.now.policy, none[i]); /* the next may */
		mst_take_over_tell(&job);
		CU_ASSERT(says("goes on under --policy backup:3") && says(none[i]) &&
			  says("(change 4), which this server cannot run: "));
		end();
	}
	begin("backup:3");
	for (uint32_t rank = 0; rank < WORKERS; rank++)
		comes_back(rank, 4, 1, "backup:1"); /* it was forced */
	starts();
	CU_ASSERT(last.quorum == 1 && runs("backup:1", 4));
	end();
}

static void worker_that_is_alone_is_named(void)
{
	begin("bsp");
	comes_back(2, 7, 1, "backup:1");
	comes_back(0, 1, 0, "backup:3");
	comes_back(1, 1, 0, "backup:3");
	starts();
	CU_ASSERT(last.quorum == 3 && runs("backup:3", 1));
	mst_take_over_tell(&job);
	CU_ASSERT(says("of 3 workers that came back, rank 2 alone says that the policy was changed "
		       "to backup:1 (change 7); that is not believed"));
	end();
}

static void nothing_is_taken_over_in_a_job_that_runs(void)
{
	begin("bsp");
	starts();
	job.state = MST_JOB_RUNNING;
	comes_back(0, 3, 0, "backup:2");
	starts();
	CU_ASSERT(given == 0 && runs("bsp", 0) && job.in_force.claims.claims == 0);
	end();
}

static CU_TestInfo cases[] = {
	{ "a policy that workers bring is given to the ledger",
	  policy_that_workers_bring_is_given_to_the_ledger },
	{ "a policy that is that of the command line too",
	  policy_that_is_that_of_the_command_line_too },
	{ "a job whose policy was never changed begins as it is told",
	  job_whose_policy_was_never_changed_begins_as_it_is_told },
	{ "a worker that leaves takes back what it brought",
	  worker_that_leaves_takes_back_what_it_brought },
	{ "a start waits for the ledger", start_waits_for_the_ledger },
	{ "a policy that cannot be run leaves that of the command line",
	  policy_that_cannot_be_run_leaves_that_of_the_command_line },
	{ "a worker that is alone is named", worker_that_is_alone_is_named },
	{ "nothing is taken over in a job that runs", nothing_is_taken_over_in_a_job_that_runs },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("taking over the policy in force", cases);
}
