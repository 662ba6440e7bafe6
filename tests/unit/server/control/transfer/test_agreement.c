/* SPDX-License-Identifier: MIT */
/* How workers agree on the state that they begin with, at the leader. The test plays the workers:
 * what each says that it has, in which order, who gives, who is lost, and who is slow. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/reason.h"
#include "server/control/transfer/agreement.h"
#include "tests/unit/server/control/transfer/worker_case.h"
#include "tests/ut.h"

#define WORKERS 3u
#define PATIENCE (30 * MST_SECOND)
#define STATE_MAX (1u << 20)

struct peer {
	struct worker_case at; /* stands first */
	uint32_t told;         /* how many AGREEs have come, last */
	struct mst_agree last;
	char state[64 << 10]; /* what it has been given */
	uint64_t taken, total;
};

static struct mst_server_options options;
static struct mst_base base;
static struct mst_agreement agreement;
static struct peer worker[WORKERS];
static bool present[WORKERS];
static uint64_t now_ns;
static int error; /* of the last claim or piece */

/* ---- the workers ---- */

static void hear(struct worker_case *w, const struct mst_message *m)
{
	struct peer *p = (struct peer *)w;
	const struct mst_state_piece *piece = &m->handed.piece;

	if (m->kind == MST_MSG_AGREE) {
		p->told++;
		p->last = m->agree;
		return;
	}
	CU_ASSERT_EQUAL_FATAL(m->kind, MST_MSG_TAKE);
	CU_ASSERT_EQUAL(m->handed.number, MST_AGREED_GIFT);
	CU_ASSERT_EQUAL_FATAL(piece->offset, p->taken);
	CU_ASSERT_FATAL(piece->offset + piece->length <= sizeof(p->state));
	memcpy(p->state + piece->offset, piece->data, piece->length);
	p->taken += piece->length;
	p->total = piece->total;
}

static void joins(uint32_t rank, uint32_t incarnation)
{
	struct peer *p = &worker[rank];

	*p = (struct peer){ .told = 0 };
	worker_case_join(&p->at, &base.front, (struct mst_identity){ rank, incarnation }, hear);
	present[rank] = true;
}

static void begin(void)
{
	options = (struct mst_server_options){
		.job = "test", .workers = WORKERS, .patience_ns = PATIENCE, .state_max = STATE_MAX
	};
	base.job = (struct mst_job){
		.o = &options, .front = &base.front, .state = MST_JOB_RUNNING, .present = present
	};
	agreement = (struct mst_agreement){ .base = &base };
	now_ns = MST_SECOND;
	CU_ASSERT_EQUAL_FATAL(mst_agreement_init(&agreement), 0);
	worker_case_open(&base.front, WORKERS);
	for (uint32_t rank = 0; rank < WORKERS; rank++)
		joins(rank, 1);
	mst_agreement_begin(&agreement);
}

static void end(void)
{
	mst_agreement_fini(&agreement);
	mst_frontend_close(&base.front);
}

/* Steps until all that is queued has gone. */
static void step(void)
{
	for (int i = 0; i < 8; i++) {
		mst_agreement_step(&agreement, now_ns);
		mst_frontend_step(&base.front, now_ns);
	}
}

/* A worker's claim: of a version, and with a rate. */
static const char *claims(uint32_t rank, uint64_t version, const char *rate)
{
	static struct mst_state_claim claim;
	struct mst_claim_part *part = &claim.part[0];

	memset(&claim, 0, sizeof(claim));
	claim.version = version;
	claim.count = 1;
	(void)snprintf(part->name, sizeof(part->name), "lr");
	(void)snprintf(part->value, sizeof(part->value), "%s", rate);
	for (const char *at = rate; *at != '\0'; at++)
		part->digest = part->digest * 31 + (unsigned char)*at;
	const char *what = NULL;
	error = mst_agreement_claim(&agreement, worker[rank].at.conn, &claim, &what);
	step();
	return what;
}

/* The same, of a worker that computes in another way. */
static const char *claims_kernel(uint32_t rank, const char *kernel)
{
	static struct mst_state_claim claim;

	memset(&claim, 0, sizeof(claim));
	claim.count = 2;
	(void)snprintf(claim.part[0].name, sizeof(claim.part[0].name), "lr");
	(void)snprintf(claim.part[1].name, sizeof(claim.part[1].name), "torch");
	(void)snprintf(claim.part[1].value, sizeof(claim.part[1].value), "%s", kernel);
	claim.part[1].kind = MUSTER_PART_KERNEL;
	claim.part[1].digest = (unsigned char)kernel[0];
	const char *what = NULL;
	error = mst_agreement_claim(&agreement, worker[rank].at.conn, &claim, &what);
	step();
	return what;
}

static const char *gives(uint32_t rank, uint64_t offset, const char *state, uint32_t length,
			 uint64_t total)
{
	struct mst_handed piece = {
		.piece = { .offset = offset, .total = total, .length = length, .data = state }
	};
	const char *what = NULL;

	error = mst_agreement_piece(&agreement, worker[rank].at.conn, &piece, &what);
	step();
	return what;
}

static void is_lost(uint32_t rank)
{
	worker[rank].at.conn->left = true;
	present[rank] = false;
	mst_agreement_lost(&agreement, rank);
	step();
}

static bool is_told(uint32_t rank, enum mst_agree_what what, uint32_t from)
{
	const struct peer *p = &worker[rank];

	return p->told > 0 && p->last.what == what && p->last.from == from;
}

/* ---- cases ---- */

static void equal_states_stay_where_they_are(void)
{
	begin();
	CU_ASSERT_PTR_NULL(claims(2, 5, "0.1"));
	CU_ASSERT_PTR_NULL(claims(0, 5, "0.1"));
	CU_ASSERT_EQUAL(worker[0].told, 0); /* not before all have said what they have */
	CU_ASSERT_PTR_NULL(claims(1, 5, "0.1"));
	for (uint32_t rank = 0; rank < WORKERS; rank++) {
		CU_ASSERT(is_told(rank, MST_AGREE_DONE, 0));
		CU_ASSERT_STRING_EQUAL(worker[rank].last.why, "");
	}
	CU_ASSERT_EQUAL(worker[0].last.version, 5);
	end();
}

/* The lowest rank of those with the newest version gives; one that has the same takes nothing. */
static void newest_state_is_given_to_those_that_differ(void)
{
	begin();
	(void)claims(0, 3, "0.2");
	(void)claims(1, 4, "0.1");
	(void)claims(2, 4, "0.1");
	CU_ASSERT(is_told(1, MST_AGREE_GIVE, 1));
	CU_ASSERT_EQUAL(worker[0].told + worker[2].told, 0);
	CU_ASSERT_PTR_NULL(gives(1, 0, "whole ", 6, 11));
	CU_ASSERT_PTR_NULL(gives(1, 6, "state", 5, 11));
	CU_ASSERT(is_told(0, MST_AGREE_TAKE, 1));
	CU_ASSERT_STRING_EQUAL(worker[0].last.why, "lr: 0.2, and 0.1 at rank 1");
	CU_ASSERT_EQUAL(worker[0].taken, 11);
	CU_ASSERT_NSTRING_EQUAL(worker[0].state, "whole state", 11);
	CU_ASSERT(is_told(1, MST_AGREE_DONE, 1) && is_told(2, MST_AGREE_DONE, 1));
	CU_ASSERT_EQUAL(worker[1].taken + worker[2].taken, 0);
	end();
}

static void another_gives_where_the_giver_is_lost(void)
{
	begin();
	for (uint32_t rank = 0; rank < WORKERS; rank++)
		(void)claims(rank, 0, rank == 0 ? "0.1" : rank == 1 ? "0.2" : "0.3");
	CU_ASSERT(is_told(0, MST_AGREE_GIVE, 0));
	CU_ASSERT_PTR_NULL(gives(0, 0, "half", 4, 8));
	is_lost(0);
	CU_ASSERT(is_told(1, MST_AGREE_GIVE, 1));
	CU_ASSERT_PTR_NULL(gives(1, 0, "mine", 4, 4));
	CU_ASSERT(is_told(2, MST_AGREE_TAKE, 1));
	CU_ASSERT_NSTRING_EQUAL(worker[2].state, "mine", 4);
	end();
}

static void nobody_waits_for_one_that_is_lost(void)
{
	begin();
	(void)claims(0, 0, "0.1");
	(void)claims(1, 0, "0.1");
	is_lost(2);
	CU_ASSERT(is_told(0, MST_AGREE_DONE, 0) && is_told(1, MST_AGREE_DONE, 0));
	joins(2, 2);
	CU_ASSERT_PTR_NOT_NULL(claims(2, 0, "0.3")); /* nothing tells that it may */
	joins(2, 3);
	worker[2].at.conn->took = true; /* the state of another, which has trained since */
	CU_ASSERT_PTR_NULL(claims(2, 0, "0.05"));
	CU_ASSERT(is_told(2, MST_AGREE_DONE, 2));
	end();
}

/* Else the step would end the sessions of all, as it waits for all of them. */
static void slow_worker_is_waited_for_half_of_patience(void)
{
	begin();
	(void)claims(0, 0, "0.1");
	(void)claims(1, 0, "0.1");
	now_ns += PATIENCE / 2;
	step();
	CU_ASSERT_EQUAL(worker[0].told, 0);
	now_ns += MST_SECOND;
	step();
	CU_ASSERT(is_told(0, MST_AGREE_DONE, 0) && is_told(1, MST_AGREE_DONE, 0));
	const char *wrong = claims(2, 0, "0.3");
	CU_ASSERT_PTR_NOT_NULL_FATAL(wrong);
	CU_ASSERT_PTR_NOT_NULL(strstr(wrong, "half of --patience"));
	CU_ASSERT_EQUAL(error, -ENOTCONN);
	end();
}

static void slow_worker_that_comes_after_the_end_hears_of_the_end(void)
{
	begin();
	(void)claims(0, 0, "0.1");
	(void)claims(1, 0, "0.1");
	now_ns += PATIENCE;
	step();
	base.job.state = MST_JOB_FINISHED;
	CU_ASSERT_PTR_NULL(claims(2, 0, "0.3"));
	CU_ASSERT_EQUAL(error, 0);
	CU_ASSERT_EQUAL(worker[2].told, 0);
	end();
}

static void slow_worker_with_the_same_state_goes_on(void)
{
	begin();
	(void)claims(0, 0, "0.1");
	(void)claims(1, 0, "0.1");
	now_ns += PATIENCE;
	step();
	CU_ASSERT_PTR_NULL(claims(2, 0, "0.1"));
	CU_ASSERT(is_told(2, MST_AGREE_DONE, 2));
	end();
}

/* It says in time what it has: the others have not begun. */
static void slow_worker_that_comes_while_the_state_is_given_takes_it(void)
{
	begin();
	(void)claims(0, 0, "0.1");
	(void)claims(1, 0, "0.2");
	now_ns += PATIENCE;
	step();
	CU_ASSERT(is_told(0, MST_AGREE_GIVE, 0));
	CU_ASSERT_PTR_NULL(claims(2, 0, "0.3"));
	CU_ASSERT_PTR_NULL(gives(0, 0, "mine", 4, 4));
	CU_ASSERT(is_told(1, MST_AGREE_TAKE, 0) && is_told(2, MST_AGREE_TAKE, 0));
	CU_ASSERT_NSTRING_EQUAL(worker[2].state, "mine", 4);
	end();
}

static void one_that_gives_nothing_is_named(void)
{
	begin();
	for (uint32_t rank = 0; rank < WORKERS; rank++)
		(void)claims(rank, 0, rank == 0 ? "0.1" : "0.2");
	now_ns += PATIENCE / 4;
	step();
	CU_ASSERT_PTR_NULL(mst_agreement_stalled(&agreement, now_ns));
	CU_ASSERT_PTR_NULL(gives(0, 0, "mi", 2, 4));
	now_ns += PATIENCE / 4;
	CU_ASSERT_PTR_NULL(mst_agreement_stalled(&agreement, now_ns));
	CU_ASSERT_PTR_EQUAL(mst_agreement_stalled(&agreement, now_ns + 1), worker[0].at.conn);
	is_lost(0);
	CU_ASSERT(is_told(1, MST_AGREE_DONE, 1) && is_told(2, MST_AGREE_DONE, 1));
	CU_ASSERT_PTR_NULL(mst_agreement_stalled(&agreement, now_ns + PATIENCE));
	end();
}

/* The time that another one has waited, which is lost since, does not count. */
static void time_of_a_wait_begins_with_the_one_that_waits(void)
{
	begin();
	(void)claims(0, 0, "0.1");
	now_ns += PATIENCE / 4;
	step();
	is_lost(0);
	now_ns += PATIENCE / 2;
	(void)claims(1, 0, "0.1");
	now_ns += PATIENCE / 4;
	step();
	CU_ASSERT_EQUAL(worker[1].told, 0);
	end();
}

static void what_nobody_asked_for_is_refused(void)
{
	begin();
	CU_ASSERT_PTR_NOT_NULL(gives(0, 0, "mine", 4, 4));
	CU_ASSERT_EQUAL(error, -EPROTO);
	(void)claims(0, 0, "0.1");
	CU_ASSERT_PTR_NOT_NULL(claims(0, 0, "0.1"));
	(void)claims(1, 0, "0.2");
	(void)claims(2, 0, "0.1");
	CU_ASSERT_PTR_NOT_NULL(gives(1, 0, "mine", 4, 4));
	CU_ASSERT_PTR_NOT_NULL(gives(0, 0, "mine", 4, STATE_MAX + 1));
	CU_ASSERT_PTR_NULL(gives(0, 0, "mi", 2, 4));
	CU_ASSERT_PTR_NOT_NULL(gives(0, 1, "in", 2, 4));
	CU_ASSERT_PTR_NOT_NULL(gives(0, 2, "ne", 2, 5));
	CU_ASSERT_PTR_NULL(gives(0, 2, "ne", 2, 4));
	CU_ASSERT_PTR_NOT_NULL(gives(0, 4, "x", 1, 5));
	CU_ASSERT_NSTRING_EQUAL(worker[1].state, "mine", 4);
	end();
}

static void other_kernels_are_told_to_all_and_to_one_that_joins_late(void)
{
	begin();
	(void)claims_kernel(0, "1.13");
	(void)claims_kernel(1, "2.6");
	CU_ASSERT_PTR_NULL(claims_kernel(2, "1.13"));
	for (uint32_t rank = 0; rank < WORKERS; rank++)
		CU_ASSERT(is_told(rank, MST_AGREE_DONE, 0) && worker[rank].last.kernels == 1);
	CU_ASSERT_STRING_EQUAL(worker[1].last.why, "torch: 2.6, and 1.13 at rank 0");
	end();
	begin();
	for (uint32_t rank = 0; rank < WORKERS; rank++)
		(void)claims_kernel(rank, "1.13");
	CU_ASSERT_EQUAL(worker[0].last.kernels, 0);
	is_lost(2);
	joins(2, 2);
	worker[2].at.conn->took = true;
	CU_ASSERT_PTR_NULL(claims_kernel(2, "2.6"));
	CU_ASSERT(is_told(2, MST_AGREE_DONE, 2) && worker[2].last.kernels == 1);
	CU_ASSERT_STRING_EQUAL(worker[2].last.why, "torch: 2.6, and 1.13 at rank 0");
	end();
}

static CU_TestInfo cases[] = {
	{ "other kernels are told to all, and to one that joins late",
	  other_kernels_are_told_to_all_and_to_one_that_joins_late },
	{ "equal states stay where they are", equal_states_stay_where_they_are },
	{ "the newest state is given to those that differ",
	  newest_state_is_given_to_those_that_differ },
	{ "another gives where the giver is lost", another_gives_where_the_giver_is_lost },
	{ "nobody waits for one that is lost", nobody_waits_for_one_that_is_lost },
	{ "a slow worker is waited for half of patience",
	  slow_worker_is_waited_for_half_of_patience },
	{ "a slow worker that comes after the end hears of the end",
	  slow_worker_that_comes_after_the_end_hears_of_the_end },
	{ "a slow worker with the same state goes on", slow_worker_with_the_same_state_goes_on },
	{ "a slow worker that comes while the state is given takes it",
	  slow_worker_that_comes_while_the_state_is_given_takes_it },
	{ "one that gives nothing is named", one_that_gives_nothing_is_named },
	{ "the time of a wait begins with the one that waits",
	  time_of_a_wait_begins_with_the_one_that_waits },
	{ "what nobody asked for is refused", what_nobody_asked_for_is_refused },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("agreement", cases);
}
