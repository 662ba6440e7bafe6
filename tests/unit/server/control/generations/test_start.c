/* SPDX-License-Identifier: MIT */
/*
 * The start of a later generation at the leader: a worker brings the sets of its last versions and
 * the newest of them, and all hear how the generation begins. The workers and the data side are
 * played by the test.
 */
#include <errno.h>
#include <string.h>

#include "server/control/members/workers.h"
#include "server/control/transfer/start_sender.h"
#include "tests/unit/server/control/stub_stream.h"
#include "tests/unit/server/control/transfer/worker_case.h"
#include "tests/ut.h"

#define WORKERS 3u
#define ELEMS 100u
#define BYTES (ELEMS * sizeof(float))
#define X 11u

static struct mst_server_options options;
static struct mst_base base;
static struct mst_leading leading;
static struct mst_workers workers;
static bool present[WORKERS];
static float state[ELEMS], buffer[ELEMS];

static struct played {
	struct worker_case line;
	uint32_t begins; /* messages */
	struct mst_begins last;
	struct mst_wanted wanted; /* of the last SEND_STATE */
} worker[WORKERS];

static uint32_t arrived, lost; /* events */
static bool bare;              /* in the last that has arrived */
static uint32_t shares, share_count_of_1;

bool __wrap_mst_server_request(struct mst_server *s, const struct mst_request *request);
bool __wrap_mst_server_request(struct mst_server *s, const struct mst_request *request)
{
	const struct mst_ledger_event *ev = &request->event;

	(void)s;
	lost += ev->kind == MST_EV_LOST && ev->error == -EPROTO;
	if (ev->kind != MST_EV_STATE)
		return true;
	arrived++;
	bare = ev->brought.bare;
	shares = ev->brought.share_count;
	share_count_of_1 = shares > 0 ? ev->brought.share[0].count : 0;
	return true;
}

void *__wrap_mst_server_start_buffer(struct mst_server *s);
void *__wrap_mst_server_start_buffer(struct mst_server *s)
{
	(void)s;
	return buffer;
}

static void hear(struct worker_case *line, const struct mst_message *m)
{
	struct played *w = (struct played *)line;

	if (m->kind == MST_MSG_BEGINS) {
		w->begins++;
		w->last = m->begins;
	} else if (m->kind == MST_MSG_SEND_STATE) {
		w->wanted = m->wanted;
	}
}

static void open_job(void)
{
	options = (struct mst_server_options){ .job = "test",
					       .policy = "bsp",
					       .servers = 1,
					       .workers = WORKERS,
					       .owner = MUSTER_WORKERS_OWN,
					       .history = 4,
					       .server_patience_ns = 1,
					       .guard = MST_GUARD_WORKER };
	base.job = (struct mst_job){ .o = &options,
				     .front = &base.front,
				     .present = present,
				     .policies.count = 1,
				     .terms.weights = { 1 },
				     .plan.vector.elems = ELEMS,
				     .plan.count = ELEMS };
	CU_ASSERT_EQUAL_FATAL(mst_generation_init(&base.job.generation, &options, UT_UNREAD), 0);
	leading = (struct mst_leading){ .base = &base, .followers.base = &base };
	workers = (struct mst_workers){ .base = &base,
					.leading = &leading,
					.agreement.base = &base,
					.dismissal.base = &base,
					.start_state.followers = &leading.followers };
	CU_ASSERT_EQUAL_FATAL(mst_agreement_init(&workers.agreement), 0);
	arrived = lost = shares = 0;
	memset(buffer, 0, sizeof(buffer));
	for (uint32_t i = 0; i < ELEMS; i++)
		state[i] = (float)i;
}

/* Rank 0 is new; rank 1 has version 7, and rank 2 version 9 and perhaps a whole copy of it. */
static void begin(bool offers)
{
	static const uint64_t version[WORKERS] = { 0, 7, 9 };
	struct mst_requests_cfg requests = { WORKERS, 1, 1 };

	open_job();
	CU_ASSERT_EQUAL_FATAL(mst_requests_init(&base.job.requests, &requests), 0);
	mst_requests_open(&base.job.requests, NULL);
	worker_case_open(&base.front, WORKERS);
	for (uint32_t rank = 0; rank < WORKERS; rank++) {
		struct mst_conn *c;
		memset(&worker[rank], 0, sizeof(worker[rank]));
		worker_case_join(&worker[rank].line, &base.front,
				 (struct mst_identity){ rank, rank + 1 }, hear);
		c = worker[rank].line.conn;
		c->welcomed = true;
		if (version[rank] > 0)
			c->claimed = (struct mst_claimed){ .number = 1,
							   .version = version[rank],
							   .made = X };
		c->offers = rank == 2 && offers;
	}
	mst_start_sender_ask(&workers.start_state, (struct mst_identity){ 2, 3 });
}

static void end(void)
{
	mst_agreement_fini(&workers.agreement);
	mst_job_sets_fini(&base.job.sets);
	mst_frontend_close(&base.front);
	mst_requests_close(&base.job.requests);
	mst_requests_fini(&base.job.requests);
}

static void say(uint32_t rank, const struct mst_message *m)
{
	CU_ASSERT(mst_workers_message(&workers, worker[rank].line.conn, m, 1));
	mst_start_state_step(&workers.start_state);
}

/* In the set of @version rank 1 is, so often. */
static void set_of(uint32_t rank, uint64_t version, uint32_t count)
{
	struct mst_message m = { .kind = MST_MSG_SET };

	m.set = (struct mst_set_piece){ .version = version,
					.made = X,
					.weight = 5,
					.lr_scale = 1,
					.total = 1,
					.count = 1,
					.share = { { .rank = 1, .count = count, .weight = 5 } } };
	say(rank, &m);
}

static void all_sets(void)
{
	for (uint64_t version = 6; version <= 9; version++)
		set_of(2, version, (uint32_t)version);
}

static void state_of(uint32_t rank, uint64_t bytes)
{
	struct mst_message m = {
		.kind = MST_MSG_STATE,
		.state = { .total = bytes, .length = (uint32_t)bytes, .data = state }
	};

	say(rank, &m);
}

static void start(uint64_t number, uint64_t made)
{
	struct mst_generation_view view = { .number = number };

	if (number > 1) {
		view.began = 9;
		view.newest = (struct mst_claimed){ .number = number - 1,
						    .version = 9,
						    .made = made };
	}
	mst_workers_started(&workers, &view);
}

/* ---- what is brought ---- */

static void worker_that_is_asked_brings_its_sets_and_its_version(void)
{
	begin(true);
	CU_ASSERT(worker[2].wanted.sets == 1 && worker[2].wanted.state == 1);
	all_sets();
	CU_ASSERT_EQUAL(arrived, 0);
	state_of(2, BYTES);
	CU_ASSERT(arrived == 1 && lost == 0 && !bare);
	CU_ASSERT(shares == 1 && share_count_of_1 == 9); /* of the newest */
	CU_ASSERT_EQUAL(memcmp(buffer, state, BYTES), 0);
	end();
}

static void worker_without_a_whole_copy_brings_its_sets_alone(void)
{
	begin(false);
	CU_ASSERT(worker[2].wanted.sets == 1 && worker[2].wanted.state == 0);
	all_sets();
	state_of(2, 0);
	CU_ASSERT(arrived == 1 && lost == 0 && bare);
	CU_ASSERT_EQUAL(shares, 1);
	end();
	begin(false);
	state_of(2, BYTES); /* which nobody has asked for */
	CU_ASSERT(arrived == 0 && lost == 1);
	end();
}

/* Its last version came with the state of another worker, and had no set. */
static void bare_state_needs_no_set(void)
{
	begin(false);
	state_of(2, 0);
	CU_ASSERT(arrived == 1 && lost == 0 && bare && shares == 0);
	end();
}

static void version_without_its_set_breaks_the_protocol(void)
{
	begin(true);
	state_of(2, BYTES);
	CU_ASSERT(arrived == 0 && lost == 1);
	end();
	begin(true);
	set_of(2, 8, 1); /* that of another version */
	state_of(2, BYTES);
	CU_ASSERT(arrived == 0 && lost == 1);
	end();
}

static void set_that_nobody_asked_for_breaks_the_protocol(void)
{
	struct mst_message half = { .kind = MST_MSG_STATE,
				    .state = { .total = BYTES, .length = 4, .data = state } };

	begin(true);
	set_of(1, 7, 1);
	CU_ASSERT_EQUAL(lost, 1);
	end();
	begin(true);
	all_sets();
	say(2, &half);
	set_of(2, 10, 1); /* in the middle of the state */
	CU_ASSERT_EQUAL(lost, 1);
	end();
}

static void sets_of_one_that_is_lost_are_not_taken_for_those_of_the_next(void)
{
	begin(true);
	all_sets();
	worker[1].line.conn->claimed.version = 8;
	worker[1].line.conn->offers = true;
	mst_start_sender_ask(&workers.start_state, (struct mst_identity){ 1, 2 });
	set_of(1, 8, 1);
	state_of(1, BYTES);
	CU_ASSERT(arrived == 1 && lost == 0 && share_count_of_1 == 1);
	end();
}

/* Its sets are of versions that are void; it is asked because the checkpoint has no table. */
static void where_a_checkpoint_has_the_version_nothing_else_is_brought(void)
{
	begin(true);
	options.owner = MUSTER_SERVERS_OWN;
	base.job.resume.dir = "state";
	for (uint32_t rank = 1; rank < WORKERS; rank++) {
		mst_start_sender_ask(&workers.start_state, (struct mst_identity){ rank, rank + 1 });
		CU_ASSERT(worker[rank].wanted.sets == 0 && worker[rank].wanted.state == 0);
		state_of(rank, 0);
		CU_ASSERT(arrived == rank && lost == 0 && !bare && shares == 0);
	}
	base.job.resume.dir = NULL;
	end();
}

/* ---- what all hear ---- */

static void all_hear_that_a_generation_begins(void)
{
	begin(true);
	worker[0].line.conn->welcomed = false; /* its welcome will say it */
	start(1, 0);
	CU_ASSERT_EQUAL(worker[0].begins, 0);
	for (uint32_t rank = 1; rank < WORKERS; rank++) {
		CU_ASSERT_EQUAL_FATAL(worker[rank].begins, 1);
		CU_ASSERT_EQUAL(worker[rank].last.generation.number, 1);
		CU_ASSERT_NOT_EQUAL(worker[rank].last.generation.id, 0);
		CU_ASSERT_EQUAL(worker[rank].last.counted.count, 0);
	}
	end();
}

static void each_hears_what_has_become_of_its_own_gradients(void)
{
	begin(true);
	all_sets();
	state_of(2, BYTES);
	start(2, X);
	for (uint32_t rank = 0; rank < WORKERS; rank++) {
		const struct mst_begins *b = &worker[rank].last;
		CU_ASSERT_EQUAL_FATAL(worker[rank].begins, 1);
		CU_ASSERT(b->generation.number == 2 && b->generation.began == 9);
		CU_ASSERT_EQUAL(b->generation.made, X);
		CU_ASSERT_EQUAL(b->counted.count, rank == 1 ? 2 : 0);
	}
	CU_ASSERT_EQUAL(worker[1].last.counted.row[0].version, 8);
	CU_ASSERT_EQUAL(worker[1].last.counted.row[0].count, 8);
	CU_ASSERT_EQUAL(worker[1].last.counted.row[1].version, 9);
	end();
}

/* A rank that the start did not wait for has pushed what is in the version. */
static void who_comes_later_hears_it_too(void)
{
	struct mst_begins later = { .counted.count = 0 };

	begin(true);
	all_sets();
	state_of(2, BYTES);
	start(2, X);
	mst_job_begins(&base.job, 1, &worker[1].line.conn->claimed, &later);
	CU_ASSERT_EQUAL(later.generation.id, worker[1].last.generation.id);
	CU_ASSERT(later.generation.number == 2 && later.generation.began == 9);
	CU_ASSERT_EQUAL_FATAL(later.counted.count, 2);
	CU_ASSERT(later.counted.row[0].version == 8 && later.counted.row[1].version == 9);
	end();
}

static void job_that_counts_no_generations_says_nothing(void)
{
	begin(true);
	base.job.generation.counts = false;
	start(1, 0);
	for (uint32_t rank = 0; rank < WORKERS; rank++)
		CU_ASSERT_EQUAL(worker[rank].begins, 0);
	end();
}

static CU_TestInfo cases[] = {
	{ "a worker that is asked brings its sets and its version",
	  worker_that_is_asked_brings_its_sets_and_its_version },
	{ "a worker without a whole copy brings its sets alone",
	  worker_without_a_whole_copy_brings_its_sets_alone },
	{ "a bare state needs no set", bare_state_needs_no_set },
	{ "a version without its set breaks the protocol",
	  version_without_its_set_breaks_the_protocol },
	{ "a set that nobody asked for breaks the protocol",
	  set_that_nobody_asked_for_breaks_the_protocol },
	{ "sets of one that is lost are not taken for those of the next",
	  sets_of_one_that_is_lost_are_not_taken_for_those_of_the_next },
	{ "where a checkpoint has the version nothing else is brought",
	  where_a_checkpoint_has_the_version_nothing_else_is_brought },
	{ "all hear that a generation begins", all_hear_that_a_generation_begins },
	{ "each hears what has become of its own gradients",
	  each_hears_what_has_become_of_its_own_gradients },
	{ "who comes later hears it, too", who_comes_later_hears_it_too },
	{ "a job that counts no generations says nothing",
	  job_that_counts_no_generations_says_nothing },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("starts of later generations", cases);
}
