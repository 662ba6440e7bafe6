/* SPDX-License-Identifier: MIT */
/*
 * What only happens over a transport that does not map: data on their way while the next are
 * computed, contributions given up half sent, and one worker, rank 3, whose link is slow or dead
 * while the others go on.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/session/network_choice.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "server/data/session.h"
#include "tests/system/test_job.h"
#include "tests/transport/far.h"
#include "tests/ut.h"

#define PART 500u
#define PARTS (TEST_JOB_ELEMS / PART)

int __wrap_mst_network_choice_take(struct mst_network_choice *c, const struct mst_welcome *welcome,
				   const struct mst_transport **out, struct mst_reason *why);
int __wrap_mst_network_choice_take(struct mst_network_choice *c, const struct mst_welcome *welcome,
				   const struct mst_transport **out, struct mst_reason *why)
{
	(void)c;
	(void)why;
	(void)welcome;
	*out = &far;
	return 0;
}

/* ---- rank 3's link ---- */

static atomic_bool slow;               /* nothing more leaves the server for it */
static atomic_bool cut;                /* the server sees it lost */
static _Thread_local bool worker_here; /* this thread is a worker's; what it polls is its own */
static _Thread_local bool cut_here;    /* this worker sees its link lost, too */
static _Thread_local bool full_here;   /* nothing more leaves this worker */

/* From this version on the others take their time, so that rank 3, or whoever looks at it, may
 * stand still for seconds, as on a slow host, and still come before the job ends. */
static _Atomic uint64_t dawdle_from;
#define DAWDLING_NS (100 * MST_MS)

static void dawdle(const struct test_worker *c, const struct muster_outcome *out)
{
	if (c->rank != 3 && out->version >= atomic_load(&dawdle_from))
		mst_sleep_ns(DAWDLING_NS);
}

static void dawdle_no_more(void)
{
	atomic_store(&dawdle_from, UINT64_MAX);
}

static bool is_servers_end(const struct mst_link *link)
{
	const struct mst_session *session = link->user;

	return session != NULL && session->who.rank == 3;
}

static bool is_stuck(const struct mst_link *link)
{
	return worker_here ? full_here : atomic_load(&slow) && is_servers_end(link);
}

static bool is_dead(const struct mst_link *link)
{
	return worker_here ? cut_here : atomic_load(&cut) && is_servers_end(link);
}

/* ---- lives ---- */

static int push(struct test_worker *c, struct muster *m)
{
	struct muster_contribution say = { .size = sizeof(say), .weight = 1 };
	uint64_t ticket;
	int rc = muster_push(m, &say, &ticket);

	c->pushed += ticket != 0;
	return rc;
}

/* Where muster_gradient() gave none, and there should be one. */
static int no_gradient(struct muster *m)
{
	int rc = muster_pull(m);

	return rc < 0 ? rc : -ENOENT;
}

static void fill(const struct test_worker *c, float *to, uint64_t tag, uint64_t first,
		 uint64_t count)
{
	for (uint64_t i = first; i < first + count; i++)
		to[i] = test_worker_value(c->rank, tag, i);
}

static int push_whole(struct test_worker *c, struct muster *m, const struct muster_outcome *out)
{
	float *g = muster_gradient(m);

	if (g == NULL)
		return no_gradient(m);
	fill(c, g, out->version, 0, TEST_JOB_ELEMS);
	return push(c, m);
}

/* As a backward pass does: the last part first, in the buffer or from memory of its own; some parts
 * are left to the push. */
static int push_parts(struct test_worker *c, struct muster *m, const struct muster_outcome *out)
{
	float own[TEST_JOB_ELEMS];
	float *g = muster_gradient(m);
	int rc = g == NULL ? no_gradient(m) : 0;

	for (uint64_t part = PARTS; rc == 0 && part-- > 0;) {
		bool elsewhere = part % 2 == 0;
		fill(c, elsewhere ? own : g, out->version, part * PART, PART);
		if (part % 4 != 3)
			rc = muster_push_range(m, part * PART, PART,
					       elsewhere ? own + part * PART : NULL);
	}
	return rc != 0 ? rc : push(c, m);
}

/* Half of it goes, and is given up; then the whole goes. */
static int push_second_thoughts(struct test_worker *c, struct muster *m, struct muster_outcome *out)
{
	float *g = muster_gradient(m);

	if (g == NULL)
		return no_gradient(m);
	memset(g, 0x7e, TEST_JOB_ELEMS * sizeof(*g) / 2); /* finite: else the push is refused */
	int rc = muster_push_range(m, 0, TEST_JOB_ELEMS / 2, NULL);
	if (rc == 0)
		rc = muster_abandon(m);
	if (rc == 0)
		rc = muster_wait(m, out);
	c->wrong += rc != 0 || out->verdict != MUSTER_CANCELLED || out->ticket != 0 || out->fresh;
	return rc < 0 || out->finished ? rc : push_whole(c, m, out);
}

static int in_parts(struct test_worker *c, struct muster *m)
{
	struct muster_outcome out = MUSTER_OUTCOME;
	int rc = test_worker_start(c, m, &out);

	while (rc == 0 && !out.finished) {
		rc = push_parts(c, m, &out);
		if (rc == 0)
			rc = test_worker_wait(c, m, &out);
	}
	return rc;
}

/* What is lent is filled with rubbish as soon as a wait has given it back. */
static int from_registered(struct test_worker *c, struct muster *m)
{
	static float lent[TEST_JOB_WORKERS][TEST_JOB_ELEMS];
	float *own = lent[c->rank];
	struct muster_outcome out = MUSTER_OUTCOME;
	int rc = muster_register(m, own, sizeof(lent[0]));

	if (rc == 0)
		rc = test_worker_start(c, m, &out);
	while (rc == 0 && !out.finished) {
		fill(c, own, out.version, 0, TEST_JOB_ELEMS);
		for (uint64_t part = PARTS; rc == 0 && part-- > 0;)
			rc = muster_push_range(m, part * PART, PART, own + part * PART);
		if (rc == 0)
			rc = push(c, m);
		if (rc == 0)
			rc = test_worker_wait(c, m, &out);
		memset(own, 0xff, sizeof(lent[0]));
	}
	return rc < 0 ? rc : muster_unregister(m, own);
}

static int with_second_thoughts(struct test_worker *c, struct muster *m)
{
	struct muster_outcome out = MUSTER_OUTCOME;
	int rc = test_worker_start(c, m, &out);

	while (rc == 0 && !out.finished) {
		rc = c->rank == 1 ? push_second_thoughts(c, m, &out) : push_whole(c, m, &out);
		if (rc == 0)
			rc = test_worker_wait(c, m, &out);
	}
	return rc;
}

/* Rank 3's link becomes slow with its second push. */
static int slow_from_the_second(struct test_worker *c, struct muster *m)
{
	struct muster_outcome out = MUSTER_OUTCOME;
	int rc = test_worker_start(c, m, &out);

	while (rc == 0 && !out.finished) {
		if (c->rank == 3 && c->pushed == 1)
			atomic_store(&slow, true);
		dawdle(c, &out);
		rc = push_whole(c, m, &out);
		if (rc == 0)
			rc = test_worker_wait(c, m, &out);
	}
	return rc;
}

static int dead_from_the_second(struct test_worker *c, struct muster *m)
{
	struct muster_outcome out = MUSTER_OUTCOME;
	int rc = test_worker_start(c, m, &out);

	while (rc == 0 && !out.finished) {
		cut_here = c->rank == 3 && c->pushed == 1;
		dawdle(c, &out);
		rc = push_whole(c, m, &out);
		if (rc == 0)
			rc = test_worker_wait(c, m, &out);
	}
	cut_here = false;
	return rc;
}

/* Nothing leaves rank 3 from its second push on; the others take their time. */
static int full_from_the_second(struct test_worker *c, struct muster *m)
{
	struct muster_outcome out = MUSTER_OUTCOME;
	int rc = test_worker_start(c, m, &out);

	while (rc == 0 && !out.finished) {
		full_here = c->rank == 3 && c->pushed > 0;
		if (c->rank != 3)
			mst_sleep_ns(2 * MST_MS);
		dawdle(c, &out);
		rc = push_parts(c, m, &out);
		if (rc == 0)
			rc = test_worker_wait(c, m, &out);
	}
	full_here = false;
	return rc;
}

/* Rank 3 sends half of its first, and then the job ends. */
static int half_sent_at_the_end(struct test_worker *c, struct muster *m)
{
	struct muster_outcome out = MUSTER_OUTCOME;

	if (c->rank != 3)
		return slow_from_the_second(c, m);
	int rc = test_worker_start(c, m, &out);
	if (rc == 0 && muster_gradient(m) == NULL)
		rc = -ENOENT;
	if (rc == 0)
		rc = muster_push_range(m, 0, TEST_JOB_ELEMS / 2, NULL);
	dawdle_no_more();
	while (rc == 0 && muster_check(m) != MUSTER_GIVE_UP)
		mst_sleep_ns(MST_MS);
	if (rc == 0)
		rc = push(c, m);
	if (rc == 0)
		rc = test_worker_wait(c, m, &out);
	c->wrong += !out.finished || out.verdict != MUSTER_CANCELLED || out.ticket != 1;
	return rc;
}

#define MAIN(live)                                                                                 \
	static void *live##_main(void *arg)                                                        \
	{                                                                                          \
		worker_here = true;                                                                \
		test_worker_live(arg, live);                                                       \
		return NULL;                                                                       \
	}
MAIN(in_parts)
MAIN(from_registered)
MAIN(with_second_thoughts)
MAIN(slow_from_the_second)
MAIN(dead_from_the_second)
MAIN(full_from_the_second)
MAIN(half_sent_at_the_end)

/* ---- jobs ---- */

struct far_world {
	struct test_job test_job;
	struct test_worker c[TEST_JOB_WORKERS];
	pthread_t thread[TEST_JOB_WORKERS];
};

struct far_job {
	enum muster_owner owner;
	void *(*main)(void *test_worker);
	const char *const *settings;
	size_t step_bytes; /* 0: as usual; likewise */
	uint64_t linger_ns;
	bool into; /* results go to memory of the workers' own */
	uint64_t dawdle_from;
};
#define SETTINGS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void begin(struct far_world *w, const struct far_job *job)
{
	static float into[TEST_JOB_WORKERS][TEST_JOB_ELEMS];

	*w = (struct far_world){ 0 };
	far_manner = (struct far_manner)FAR_MANNER;
	far_manner.stuck = is_stuck;
	far_manner.dead = is_dead;
	if (job->step_bytes != 0)
		far_manner.step_bytes = job->step_bytes;
	if (job->linger_ns != 0)
		far_manner.linger_ns = job->linger_ns;
	far_spoiled = far_refused = 0;
	slow = cut = false;
	dawdle_from = job->dawdle_from != 0 ? job->dawdle_from : UINT64_MAX;
	test_job_open(&w->test_job, &far, job->settings);
	for (uint32_t r = 0; r < TEST_JOB_WORKERS; r++) {
		w->c[r] = (struct test_worker){ .test_job = &w->test_job,
						.rank = r,
						.owner = job->owner,
						.result_into = job->into ? into[r] : NULL };
		pthread_create(&w->thread[r], NULL, job->main, &w->c[r]);
	}
}

/* Waits for the lives of ranks @from to 3. */
static void join(struct far_world *w, uint32_t from)
{
	for (uint32_t r = from; r < (from == 3 ? 4 : 3); r++)
		pthread_join(w->thread[r], NULL);
}

static void lived_well(const struct test_worker *c)
{
	if (c->rc != 0)
		fprintf(stderr, "rank %u: %d %s\n", c->rank, c->rc, c->reason);
	CU_ASSERT_EQUAL(c->rc, 0);
	CU_ASSERT_EQUAL(c->wrong, 0);
	CU_ASSERT_EQUAL(c->verdicts, c->pushed);
}

static void end(struct far_world *w)
{
	test_job_close(&w->test_job);
	CU_ASSERT_EQUAL(w->test_job.over, 1);
	CU_ASSERT_EQUAL(far_spoiled, 0);
}

static void all_live_well(struct far_world *w)
{
	join(w, 0);
	join(w, 3);
	for (uint32_t r = 0; r < TEST_JOB_WORKERS; r++)
		lived_well(&w->c[r]);
	end(w);
}

/* ---- promises ---- */

static void sums_of_parts_are_exact(void)
{
	struct far_world w;

	begin(&w, &(struct far_job){ .owner = MUSTER_WORKERS_OWN,
				     .main = in_parts_main,
				     .settings = SETTINGS("policy", "bsp", "owner", "workers",
							  "commits", "60"),
				     .step_bytes = 1000 });
	all_live_well(&w);
	CU_ASSERT_EQUAL(w.c[0].versions, 60);
	CU_ASSERT(far_refused > 0); /* more puts than there was room for: they waited */
}

/* Its ends are told long after verdict, grant and answer are there. */
static void sums_of_registered_memory_are_exact(void)
{
	struct far_world w;

	begin(&w, &(struct far_job){ .owner = MUSTER_WORKERS_OWN,
				     .main = from_registered_main,
				     .settings = SETTINGS("policy", "bsp", "owner", "workers",
							  "commits", "40"),
				     .linger_ns = 2 * MST_MS });
	all_live_well(&w);
	CU_ASSERT_EQUAL(w.c[0].versions, 40);
}

/* It comes in many pieces, while the servers are at the next version. */
static void results_in_memory_of_ones_own_are_exact(void)
{
	struct far_world w;

	begin(&w, &(struct far_job){ .owner = MUSTER_WORKERS_OWN,
				     .main = in_parts_main,
				     .settings = SETTINGS("policy", "bsp", "owner", "workers",
							  "commits", "40"),
				     .step_bytes = 1000,
				     .into = true });
	all_live_well(&w);
	CU_ASSERT_EQUAL(w.c[0].versions, 40);
}

static void a_contribution_given_up_half_sent_spoils_nothing(void)
{
	struct far_world w;

	begin(&w, &(struct far_job){ .owner = MUSTER_WORKERS_OWN,
				     .main = with_second_thoughts_main,
				     .settings = SETTINGS("policy", "bsp", "owner", "workers",
							  "commits", "40") });
	all_live_well(&w);
	CU_ASSERT_EQUAL(w.c[1].pushed, 40);
}

/* The data are reported sent long after grant, verdict and answer are there. */
static void a_buffer_is_filled_again_when_it_is_sent(void)
{
	struct far_world w;

	begin(&w, &(struct far_job){ .main = in_parts_main,
				     .settings = SETTINGS("policy", "bsp", "commits", "20"),
				     .linger_ns = 3 * MST_MS });
	all_live_well(&w);
}

/* Its SENT never comes while the others are at it. */
static void others_go_on_without(const char *policy)
{
	struct far_world w;

	begin(&w, &(struct far_job){ .main = slow_from_the_second_main,
				     .settings = SETTINGS("policy", policy, "commits", "400",
							  "patience", "60s"),
				     .dawdle_from = 20 });
	uint64_t end_ns = mst_now_ns() + 60 * MST_SECOND;
	while (!atomic_load(&slow) && mst_now_ns() < end_ns)
		mst_sleep_ns(MST_MS);
	CU_ASSERT(atomic_load(&slow));
	dawdle_no_more();
	join(&w, 0);
	atomic_store(&slow, false);
	join(&w, 3);
	for (uint32_t r = 0; r < TEST_JOB_WORKERS; r++)
		lived_well(&w.c[r]);
	/* The others have gone on; one of them may have stood still while the rest ended the job.
	 */
	CU_ASSERT(w.c[0].versions + w.c[1].versions + w.c[2].versions > 100);
	end(&w);
}

static void a_slow_link_holds_up_its_worker_only(void)
{
	others_go_on_without("backup:3");
	others_go_on_without("async");
	others_go_on_without("ksync:2"); /* and hints do not pile up */
}

static void a_link_lost_with_a_result_on_its_way_is_cleared_away(void)
{
	struct far_world w;

	begin(&w, &(struct far_job){ .main = slow_from_the_second_main,
				     .settings = SETTINGS("policy", "async", "commits", "2000"),
				     .dawdle_from = 1000 });
	while (!atomic_load(&slow))
		mst_sleep_ns(MST_MS);
	mst_sleep_ns(20 * MST_MS);
	atomic_store(&cut, true);
	dawdle_no_more();
	join(&w, 0);
	join(&w, 3);
	for (uint32_t r = 0; r < 3; r++)
		lived_well(&w.c[r]);
	CU_ASSERT_EQUAL(w.c[3].rc, -ENOTCONN);
	end(&w); /* and nobody waits for what was on its way */
}

static void a_dead_link_is_told_in_its_own_words(void)
{
	struct far_world w;

	begin(&w, &(struct far_job){ .main = dead_from_the_second_main,
				     .settings = SETTINGS("policy", "backup:3", "commits", "200"),
				     .dawdle_from = 50 });
	join(&w, 3);
	dawdle_no_more();
	CU_ASSERT_EQUAL(w.c[3].rc, -ENOTCONN);
	CU_ASSERT_PTR_NOT_NULL(strstr(w.c[3].reason, FAR_DEATH));
	join(&w, 0);
	for (uint32_t r = 0; r < 3; r++)
		lived_well(&w.c[r]);
	end(&w);
}

/* Its heart beats on, so that nothing else would end its push. */
static void a_push_waits_no_longer_than_a_step_would(void)
{
	struct far_world w;
	uint64_t began_ns = mst_now_ns();

	begin(&w, &(struct far_job){ .main = full_from_the_second_main,
				     .settings = SETTINGS("policy", "backup:3", "commits", "1200",
							  "patience", "4s", "lease", "6s"),
				     .dawdle_from = 1000 });
	join(&w, 3);
	dawdle_no_more();
	CU_ASSERT(mst_now_ns() - began_ns >= 10 * MST_SECOND);
	CU_ASSERT_EQUAL(w.c[3].rc, -ENOTCONN);
	CU_ASSERT_PTR_NOT_NULL(strstr(w.c[3].reason, "has taken no more data"));
	join(&w, 0);
	for (uint32_t r = 0; r < 3; r++)
		lived_well(&w.c[r]);
	end(&w);
}

static void the_end_finds_a_contribution_half_sent(void)
{
	struct far_world w;

	begin(&w, &(struct far_job){ .main = half_sent_at_the_end_main,
				     .settings = SETTINGS("policy", "backup:3", "commits", "100"),
				     .dawdle_from = 1 });
	all_live_well(&w);
}

static CU_TestInfo cases[] = {
	{ "sums of gradients pushed in parts are exact", sums_of_parts_are_exact },
	{ "sums of registered memory are exact, and it is not read for too long",
	  sums_of_registered_memory_are_exact },
	{ "results in memory of one's own are exact", results_in_memory_of_ones_own_are_exact },
	{ "a contribution given up half sent spoils nothing",
	  a_contribution_given_up_half_sent_spoils_nothing },
	{ "a buffer is filled again when it is granted and sent",
	  a_buffer_is_filled_again_when_it_is_sent },
	{ "a slow link holds up its own worker only", a_slow_link_holds_up_its_worker_only },
	{ "a link lost with a result on its way is cleared away",
	  a_link_lost_with_a_result_on_its_way_is_cleared_away },
	{ "a dead link is told in its own words", a_dead_link_is_told_in_its_own_words },
	{ "a push waits for room no longer than a step for a worker",
	  a_push_waits_no_longer_than_a_step_would },
	{ "the end finds a contribution half sent, and cancels it",
	  the_end_finds_a_contribution_half_sent },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	mst_log_open("test", MST_LOG_ERROR);
	return ut_main("far", cases);
}
