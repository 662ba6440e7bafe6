/* SPDX-License-Identifier: MIT */
/* Workers whose model is not the job's: who waits, who is asked for its tensors, and what each is
 * told in the end. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/reason.h"
#include "server/control/members/joining.h"
#include "tests/unit/server/control/stub_stream.h"
#include "tests/ut.h"

#define ELEMS 3000u
#define TENSORS 3u

static const struct muster_tensor ours[TENSORS] = {
	{ .name = "a", .first = 0, .count = 1000, .lr_scale = 1, .decay_scale = 1 },
	{ .name = "b", .first = 1000, .count = 1000, .lr_scale = 1, .decay_scale = 1 },
	{ .name = "c", .first = 2000, .count = 1000, .lr_scale = 1, .decay_scale = 1 },
};
static const struct muster_tensor theirs[TENSORS] = {
	{ .name = "a", .first = 0, .count = 1000, .lr_scale = 1, .decay_scale = 1 },
	{ .name = "b", .first = 1000, .count = 500, .lr_scale = 1, .decay_scale = 1 },
	{ .name = "c", .first = 1500, .count = 1500, .lr_scale = 1, .decay_scale = 1 },
};

static struct mst_server_options options;
static struct mst_base base;
static struct mst_leading leading;
static struct mst_joining joining;
static struct mst_hello hello;
static struct mst_conn *conn;
static uint64_t now_ns;
static struct mst_message told; /* the last that the worker was told; kind 0: nothing */

/* ---- the worker's connection ---- */

static ssize_t hear(struct mst_stream *s, const void *data, size_t len)
{
	(void)s;
	CU_ASSERT_EQUAL_FATAL(mst_message_decode(data, len, &told, NULL), 0);
	return (ssize_t)len;
}

static const struct mst_stream_ops stream = { .send = hear,
					      .close = stub_stream_close,
					      STUB_STREAM };

/* ---- a job, and a worker that wants to join ---- */

static void tell(const struct muster_tensor *tensors)
{
	hello = (struct mst_hello){ .job = "test", .rank = 1, .elems = ELEMS, .pid = 9 };
	mst_table_of(tensors, TENSORS, &hello.table);
}

static void table_comes(void)
{
	struct mst_tensor_piece piece;

	(void)mst_tensor_piece_of(ours, TENSORS, 0, TENSORS, &piece);
	CU_ASSERT_PTR_NULL(mst_tensor_table_take(base.job.tensors, &piece));
	CU_ASSERT_FALSE(mst_job_lacks_table(&base.job));
}

static void open_front(void)
{
	static int peer;
	struct mst_frontend_cfg cfg = { .stream = &stream, .members = 1 };
	struct mst_reason why;

	CU_ASSERT_EQUAL_FATAL(mst_frontend_open(&base.front, &cfg, &why), 0);
	conn = mst_places_free(&base.front.places);
	mst_places_open(&base.front.places, conn, &stream, (struct mst_stream *)&peer, 1);
	snprintf(conn->peer, sizeof(conn->peer), "10.0.0.2:6");
	told.kind = 0;
}

/* The first hello has told of the job's tensors, and they have not come. */
static void begin(enum mst_job_state state)
{
	static char data_side;
	struct mst_vector vector = { .elems = ELEMS };

	mst_table_of(ours, TENSORS, &vector.table);
	options = (struct mst_server_options){ .job = "test", .servers = 1, .workers = 2 };
	base.job = (struct mst_job){ .o = &options,
				     .front = &base.front,
				     .state = state,
				     .server = (struct mst_server *)&data_side,
				     .plan.vector = vector };
	leading = (struct mst_leading){ .base = &base, .followers.base = &base };
	joining = (struct mst_joining){ .base = &base, .leading = &leading };
	now_ns = MST_SECOND;
	CU_ASSERT_EQUAL_FATAL(mst_tensor_table_new(&vector.table, ELEMS, &base.job.tensors), 0);
	mst_tables_fix(&base.job.tables, &vector.table, "rank 0 (10.0.0.1:5, process 7)", NULL);
	open_front();
	tell(theirs);
}

static void end(void)
{
	mst_frontend_close(&base.front);
	mst_tensor_table_free(base.job.tensors);
}

static bool says_hello(void)
{
	return mst_joining_hello(&joining, conn, &hello, now_ns);
}

static bool is_refused(int code, const char *what)
{
	if (told.kind == MST_MSG_ERROR && told.error.code == code &&
	    strstr(told.error.reason, what) != NULL)
		return true;
	printf("\n%d: \"%s\" has no \"%s\"\n", told.error.code, told.error.reason, what);
	return false;
}

static void sends(const struct muster_tensor *tensors, uint32_t at, uint32_t total)
{
	struct mst_tensor_piece piece;

	(void)mst_tensor_piece_of(tensors, TENSORS, at, MST_TENSORS_FEW, &piece);
	piece.total = total;
	mst_joining_table(&joining, conn, &piece, now_ns);
}

/* ---- cases ---- */

static void while_a_job_gathers_its_table_may_still_come(void)
{
	begin(MST_JOB_GATHERING);
	CU_ASSERT_FALSE(says_hello());
	CU_ASSERT_EQUAL(told.kind, 0);
	table_comes();
	CU_ASSERT_TRUE(says_hello());
	CU_ASSERT_EQUAL(told.kind, MST_MSG_SEND_TABLE);
	sends(theirs, 0, TENSORS);
	CU_ASSERT(is_refused(-EINVAL, "tensor number 1 is \"b\" of 500 elements at rank 1"));
	CU_ASSERT(is_refused(-EINVAL, "\"b\" of 1000 elements at rank 0"));
	end();
}

static void nobody_waits_for_long_for_a_table_that_does_not_come(void)
{
	begin(MST_JOB_GATHERING);
	CU_ASSERT_FALSE(says_hello());
	now_ns += MST_FRONTEND_GRACE_NS;
	CU_ASSERT_TRUE(says_hello());
	CU_ASSERT(is_refused(-EINVAL, "differs in where tensors begin and end"));
	end();
}

/* Nobody sends the table then. A worker that waits holds a place. */
static void nobody_waits_for_a_table_that_a_job_runs_without(void)
{
	begin(MST_JOB_RUNNING);
	CU_ASSERT_TRUE(says_hello());
	CU_ASSERT(is_refused(-EINVAL, "differs in where tensors begin and end"));
	end();
}

static void a_running_job_that_has_its_table_names_the_tensor(void)
{
	begin(MST_JOB_RUNNING);
	table_comes();
	CU_ASSERT_TRUE(says_hello());
	CU_ASSERT_EQUAL(told.kind, MST_MSG_SEND_TABLE);
	end();
}

static void a_worker_without_tensors_is_told_the_lengths(void)
{
	begin(MST_JOB_GATHERING);
	hello.table = (struct mst_table){ 0 };
	hello.elems++;
	CU_ASSERT_TRUE(says_hello());
	CU_ASSERT(is_refused(-EINVAL, "length 3001 does not match job \"test\" (3000)"));
	end();
}

static void a_worker_may_join_again_if_the_model_it_was_compared_with_has_gone(void)
{
	begin(MST_JOB_GATHERING);
	table_comes();
	CU_ASSERT_TRUE(says_hello());
	mst_tensor_table_free(base.job.tensors);
	base.job.tensors = NULL;
	sends(theirs, 0, TENSORS);
	CU_ASSERT(is_refused(-EBUSY, "have left before the start of job \"test\"; join again"));
	end();
}

static void a_table_with_a_gap_or_of_the_jobs_own_tensors_breaks_the_protocol(void)
{
	static const struct {
		const struct muster_tensor *tensors;
		uint32_t at, total;
		const char *what;
	} wrong[] = { { theirs, 1, TENSORS, "with a gap" },
		      { theirs, 0, TENSORS + 1, "with a gap" },
		      { ours, 0, TENSORS, "than its hello told of" } };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		begin(MST_JOB_GATHERING);
		table_comes();
		CU_ASSERT_TRUE(says_hello());
		sends(wrong[i].tensors, wrong[i].at, wrong[i].total);
		CU_ASSERT(is_refused(-EPROTO, wrong[i].what));
		end();
	}
}

static CU_TestInfo cases[] = {
	{ "while a job gathers, its table may still come",
	  while_a_job_gathers_its_table_may_still_come },
	{ "nobody waits for long for a table that does not come",
	  nobody_waits_for_long_for_a_table_that_does_not_come },
	{ "nobody waits for a table that a job runs without",
	  nobody_waits_for_a_table_that_a_job_runs_without },
	{ "a running job that has its table names the tensor",
	  a_running_job_that_has_its_table_names_the_tensor },
	{ "a worker without tensors is told the lengths",
	  a_worker_without_tensors_is_told_the_lengths },
	{ "a table with a gap, or of the job's own tensors, breaks the protocol",
	  a_table_with_a_gap_or_of_the_jobs_own_tensors_breaks_the_protocol },
	{ "a worker may join again if the model that it was compared with has gone",
	  a_worker_may_join_again_if_the_model_it_was_compared_with_has_gone },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("comparing", cases);
}
