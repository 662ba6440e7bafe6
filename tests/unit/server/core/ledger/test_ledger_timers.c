/* SPDX-License-Identifier: MIT */
/* The two clocks of the ledger: the lease, and patience with live workers (PROTOCOL 2). */
#include "common/base/clock.h"
#include "tests/unit/server/core/ledger/ledger_job.h"
#include "tests/ut.h"

/* Workers beat all the time, and whoever reads it stands still: time passes, and ticks with it. */
static void pass_unheard(struct ledger_job *j, uint64_t ns)
{
	for (uint64_t until = j->now_ns + ns; j->now_ns < until; j->now_ns += JOB_LEASE_NS / 8)
		job_tick(j);
}

/* Else a server that was stopped evicts everybody on waking. */
static void server_that_slept_evicts_nobody(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_wait(&j, MST_SECOND, -1);
	j.now_ns += 2 * JOB_PATIENCE_NS;
	job_tick(&j);
	job_wait(&j, MST_SECOND, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_wait(&j, JOB_LEASE_NS + MST_SECOND, 1);
	CU_ASSERT(job_evicted(&j, 1, MST_EVICT_LEASE));
	job_close(&j);
}

/* Else a log that blocks the thread that reads heartbeats evicts everybody. */
static void stall_of_listening_evicts_nobody(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_wait(&j, MST_SECOND, -1);
	for (int i = 0; i < 5; i++) {
		pass_unheard(&j, 5 * JOB_LEASE_NS);
		job_tell(&j, 0, MST_EV_HEARTBEAT); /* the first that is read; the next is not yet */
		job_tick(&j);
		job_tell(&j, 1, MST_EV_HEARTBEAT);
		job_heard(&j, j.now_ns);
		job_tick(&j);
	}
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_wait(&j, JOB_LEASE_NS - MST_SECOND, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_wait(&j, 2 * MST_SECOND, 1);
	CU_ASSERT(job_evicted(&j, 1, MST_EVICT_LEASE));
	CU_ASSERT(job_member(&j, 0).live);
	job_close(&j);
}

/* The whole host slept: there is nothing to be read when it wakes, and that proves nothing. */
static void workers_that_slept_with_their_server_have_time_to_beat(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_wait(&j, MST_SECOND, -1);
	j.now_ns += 5 * JOB_LEASE_NS;
	job_heard(&j, j.now_ns);
	job_tick(&j);
	j.now_ns += JOB_LEASE_NS / 8;
	job_heard(&j, j.now_ns);
	job_tick(&j);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_close(&j);
}

/* It was the deciding thread that stood still: all was read meanwhile, and comes at once. */
static void stall_of_deciding_evicts_nobody(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_wait(&j, MST_SECOND, -1);
	uint64_t read_ns = j.now_ns;
	j.now_ns += 5 * JOB_LEASE_NS;
	for (; read_ns <= j.now_ns; read_ns += JOB_LEASE_NS / 8) {
		job_heard(&j, read_ns);
		job_tick(&j);
	}
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_close(&j);
}

/* A worker is lost @later_ns after a standstill of @ns.
 * Return: what the job fails for. */
static enum mst_finish_why fails_after(uint64_t stands_ns, uint64_t ns, uint64_t later_ns)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	cfg.rule.min_workers = 2;
	cfg.stands_ns = stands_ns;
	job_born(&j, &cfg);
	job_wait(&j, MST_SECOND, -1);
	j.now_ns += ns;
	job_heard(&j, j.now_ns);
	job_wait(&j, later_ns, -1);
	job_tell(&j, 1, MST_EV_LOST);
	enum mst_finish_why why = job_last(&j, MST_DO_FINISH, -1)->finish.why;
	job_close(&j);
	return why;
}

/* Else workers that have stayed are told that the job has failed, while the others go on with the
 * next server. */
static void workers_that_are_gone_after_a_standstill_have_given_the_server_up(void)
{
	uint64_t stands_ns = 3 * JOB_LEASE_NS, soon_ns = JOB_LEASE_NS;

	CU_ASSERT_EQUAL(fails_after(stands_ns, stands_ns, soon_ns), MST_FINISH_STOOD);
	CU_ASSERT_EQUAL(fails_after(stands_ns, stands_ns / 2, soon_ns), MST_FINISH_TOO_FEW);
	CU_ASSERT_EQUAL(fails_after(stands_ns, stands_ns, 3 * soon_ns), MST_FINISH_TOO_FEW);
	CU_ASSERT_EQUAL(fails_after(0, stands_ns, soon_ns), MST_FINISH_TOO_FEW);
}

/* Heard, but not to its end: what is still unread may be of the one that seems silent. */
static void lease_is_judged_only_against_what_was_read(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	for (int i = 0; i < 16; i++) {
		j.now_ns += JOB_LEASE_NS / 8;
		job_heard(&j, j.now_ns - JOB_LEASE_NS / 10);
		job_tick(&j);
		if (i == 7) /* a lease, and its last tenth is unread */
			CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	}
	CU_ASSERT(job_evicted(&j, 1, MST_EVICT_LEASE));
	job_close(&j);
}

/* The worker that is awaited may have said long since that it leaves. */
static void patience_does_not_run_while_nobody_listens(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_wait(&j, JOB_PATIENCE_NS / 2, -1);
	pass_unheard(&j, 2 * JOB_PATIENCE_NS);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	CU_ASSERT_EQUAL(mst_ledger_deadline(j.ledger), MST_NEVER);
	job_wait(&j, JOB_PATIENCE_NS / 2 - JOB_LEASE_NS, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_wait(&j, 2 * JOB_LEASE_NS, -1);
	CU_ASSERT(job_evicted(&j, 1, MST_EVICT_PATIENCE));
	job_close(&j);
}

/* Else a lease renewed by calls evicts a worker that computes for a minute. */
static void worker_that_computes_for_a_minute_stays(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_wait(&j, 60 * MST_SECOND, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

/* Else a heartbeat alone lets a worker that loops for ever hold bsp for ever. */
static void worker_that_loops_for_ever_is_evicted(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_wait(&j, JOB_PATIENCE_NS + MST_SECOND, -1);
	CU_ASSERT(job_evicted(&j, 1, MST_EVICT_PATIENCE));
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

static void job_fails_when_all_workers_hang(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_wait(&j, JOB_PATIENCE_NS - MST_SECOND, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_wait(&j, 2 * MST_SECOND, -1);
	CU_ASSERT(job_evicted(&j, 0, MST_EVICT_PATIENCE));
	CU_ASSERT(job_evicted(&j, 1, MST_EVICT_PATIENCE));
	CU_ASSERT(job_finished(&j, MST_FINISH_TOO_FEW));
	job_close(&j);
}

/* All have contributed to the step, and it needs one more of anybody: nobody in particular is
 * missing. */
static void job_fails_when_all_workers_hang_in_a_step_they_have_begun(void)
{
	struct mst_ledger_cfg cfg = job_cfg("kbatchsync:3", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_push(&j, 1);
	job_wait(&j, JOB_PATIENCE_NS + MST_SECOND, -1);
	CU_ASSERT(job_evicted(&j, 0, MST_EVICT_PATIENCE));
	CU_ASSERT(job_evicted(&j, 1, MST_EVICT_PATIENCE));
	CU_ASSERT(job_finished(&j, MST_FINISH_TOO_FEW));
	job_close(&j);
}

/* It is slow, and does not hang: what it computes now counts. */
static void worker_that_is_late_gets_the_patience_of_a_whole_step(void)
{
	struct mst_ledger_cfg cfg = job_cfg("backup:2", 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_push(&j, 1);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_wait(&j, JOB_PATIENCE_NS - MST_SECOND, -1);
	job_push(&j, 2);
	CU_ASSERT_EQUAL(job_verdict(&j, 2), MUSTER_LATE);
	job_wait(&j, JOB_PATIENCE_NS - MST_SECOND, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_push(&j, 2);
	CU_ASSERT_EQUAL(job_verdict(&j, 2), MUSTER_COUNTED);
	job_wait(&j, JOB_PATIENCE_NS + MST_SECOND, -1);
	CU_ASSERT(job_evicted(&j, 0, MST_EVICT_PATIENCE));
	CU_ASSERT(job_evicted(&j, 1, MST_EVICT_PATIENCE));
	CU_ASSERT(job_member(&j, 2).live);
	job_close(&j);
}

static void worker_gets_the_patience_of_a_whole_step_from_when_its_version_is_there(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 1);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_wait(&j, JOB_PATIENCE_NS - MST_SECOND, -1);
	job_answered(&j, 0);
	job_wait(&j, JOB_PATIENCE_NS - MST_SECOND, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_wait(&j, 2 * MST_SECOND, -1);
	CU_ASSERT(job_evicted(&j, 0, MST_EVICT_PATIENCE));
	job_close(&j);
}

/* One of the servers may stand still, and its part of all answers with it. */
static void workers_of_several_servers_hang_after_a_lease_more(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	cfg.shards = 2;
	cfg.rule.patience_ns = 2 * MST_SECOND;
	job_born(&j, &cfg);
	job_wait(&j, cfg.rule.patience_ns + cfg.lease_ns - MST_SECOND, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_wait(&j, 2 * MST_SECOND, -1);
	CU_ASSERT(job_evicted(&j, 0, MST_EVICT_PATIENCE));
	CU_ASSERT(job_evicted(&j, 1, MST_EVICT_PATIENCE));
	job_close(&j);
}

/* Rank 1 has pushed, but only one of two servers has reported it so far. */
static void worker_that_one_server_has_heard_does_not_hang(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct mst_lane_header h;
	struct ledger_job j;

	cfg.shards = 2;
	cfg.rule.patience_ns = 2 * MST_SECOND;
	job_born(&j, &cfg);
	job_wait(&j, cfg.lease_ns, -1);
	h = job_header(&j, 1);
	job_full(&j, 1, 0, &h);
	job_wait(&j, 3 * MST_SECOND, -1);
	CU_ASSERT(job_evicted(&j, 0, MST_EVICT_PATIENCE));
	CU_ASSERT(job_member(&j, 1).live);
	job_full(&j, 1, 1, &h);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

static void slowest_worker_may_not_hold_the_clock_bound_for_ever(void)
{
	struct mst_ledger_cfg cfg = job_cfg("ssp:1", 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 0), 1);
	job_wait(&j, JOB_PATIENCE_NS - MST_SECOND, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_push(&j, 1);
	job_wait(&j, 2 * MST_SECOND, -1);
	CU_ASSERT(job_evicted(&j, 2, MST_EVICT_PATIENCE));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 0), 2);
	job_close(&j);
}

/* The next slowest was not what the requester has waited for so long. */
static void eviction_by_the_bound_does_not_cascade(void)
{
	struct mst_ledger_cfg cfg = job_cfg("ssp:1", 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 1);
	job_push(&j, 0);
	job_push(&j, 0); /* parked: rank 2 has clock 0 */
	struct mst_lane_header more = job_header(&j, 0);
	more.flags = MST_HEADER_FULL;
	job_full(&j, 0, 0, &more); /* clock 3; rank 1 has 1 */
	more = job_header(&j, 0);
	more.flags = MST_HEADER_FULL;
	job_full(&j, 0, 0, &more);
	job_wait(&j, JOB_PATIENCE_NS - MST_SECOND, -1);
	job_push(&j, 1); /* clock 2, and rank 0 has 4 */
	job_wait(&j, 3 * MST_SECOND, -1);
	CU_ASSERT(job_evicted(&j, 2, MST_EVICT_PATIENCE));
	CU_ASSERT(job_member(&j, 1).live);
	CU_ASSERT(mst_ledger_deadline(j.ledger) > j.now_ns);
	job_close(&j);
}

/* Nobody is waited for then, so nobody may be blamed. */
static void step_that_only_lacks_a_buffer_evicts_nobody(void)
{
	struct mst_ledger_cfg cfg = job_cfg("kasync:1", 4);
	struct ledger_job j;

	cfg.buffers = 3;
	cfg.rule.patience_ns = MST_SECOND;
	job_born(&j, &cfg);
	for (uint32_t rank = 0; rank < 4; rank++) /* and no shard ever sends an answer */
		job_push(&j, rank);
	CU_ASSERT_EQUAL(job_version(&j), 3);
	job_wait(&j, 3 * MST_SECOND, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	CU_ASSERT(mst_ledger_deadline(j.ledger) > j.now_ns);
	job_answered(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 4);
	job_close(&j);
}

/* Rank 1's link hangs with a version, so that rank 2 cannot be given the next one: it waits for the
 * servers, and not they for it. Found by the simulated world. */
static void one_whose_answer_waits_for_a_buffer_is_not_blamed(void)
{
	struct mst_ledger_cfg cfg = job_cfg("kbatchasync:2", 3);
	struct ledger_job j;

	cfg.buffers = 3;
	cfg.sent = true;
	cfg.rule.patience_ns = MST_SECOND;
	job_born(&j, &cfg);
	job_push(&j, 0);
	job_push(&j, 1); /* version 1, which is never reported sent */
	job_push(&j, 0);
	job_push(&j, 2);
	CU_ASSERT_EQUAL(job_version(&j), 2);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 2), 0);
	job_push(&j, 0);
	job_wait(&j, 3 * MST_SECOND / 2, -1);
	CU_ASSERT(job_evicted(&j, 1, MST_EVICT_PATIENCE));
	CU_ASSERT_FALSE(job_evicted(&j, 2, MST_EVICT_PATIENCE));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 2), 1);
	job_close(&j);
}

/* One of two servers stood still while a worker pushed: the other has heard of it. Who has told one
 * of them only is to blame once the other would have been lost. */
static void worker_that_one_server_has_heard_is_not_blamed_for_the_others(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct mst_lane_header h;
	struct ledger_job j;

	cfg.shards = 2;
	cfg.rule.patience_ns = 2 * MST_SECOND;
	job_born(&j, &cfg);
	job_push(&j, 0);
	job_wait(&j, MST_SECOND, -1);
	h = job_header(&j, 1);
	job_full(&j, 1, 0, &h);
	job_wait(&j, 3 * MST_SECOND, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_full(&j, 1, 1, &h);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_push(&j, 0);
	h = job_header(&j, 1);
	job_full(&j, 1, 1, &h);
	job_wait(&j, JOB_LEASE_NS - MST_SECOND, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_wait(&j, 4 * MST_SECOND, -1);
	CU_ASSERT(job_evicted(&j, 1, MST_EVICT_PATIENCE));
	job_close(&j);
}

static void clock_bound_that_only_lacks_a_buffer_evicts_nobody(void)
{
	struct mst_ledger_cfg cfg = job_cfg("ssp:9", 4);
	struct ledger_job j;

	cfg.buffers = 3;
	job_born(&j, &cfg);
	for (uint32_t rank = 0; rank < 4; rank++) /* and no shard ever sends an answer */
		job_push(&j, rank);
	CU_ASSERT_EQUAL(job_version(&j), 3);
	job_wait(&j, JOB_PATIENCE_NS + MST_SECOND, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_answered(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 4);
	job_close(&j);
}

/* The time of a worker is over; for a second more its contribution may have come and be read. */
static void worker_is_evicted_a_lag_later(const char *policy, int pushes)
{
	struct mst_ledger_cfg cfg = job_cfg(policy, 2);
	struct ledger_job j;

	cfg.rule.patience_ns = 2 * MST_SECOND;
	job_born(&j, &cfg);
	for (int i = 0; i < pushes; i++) {
		job_push(&j, 0);
		job_answered(&j, 0);
	}
	mst_ledger_lag(j.ledger, MST_SECOND);
	job_wait(&j, 5 * MST_SECOND / 2, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_wait(&j, MST_SECOND, -1);
	CU_ASSERT(job_evicted(&j, 1, MST_EVICT_PATIENCE));
	job_close(&j);
}

static void what_has_come_and_is_still_read_is_waited_for(void)
{
	struct mst_ledger_cfg cfg = job_cfg("deadline:20,2", 3);
	struct ledger_job j;

	worker_is_evicted_a_lag_later("bsp", 1);
	worker_is_evicted_a_lag_later("ssp:1", 2);

	job_born(&j, &cfg);
	job_push(&j, 0);
	mst_ledger_lag(j.ledger, 10 * MST_MS);
	job_wait(&j, 29 * MST_MS, -1);
	CU_ASSERT_EQUAL(job_version(&j), 0);
	CU_ASSERT_EQUAL(mst_ledger_deadline(j.ledger), j.now_ns + MST_MS);
	job_wait(&j, MST_MS, -1);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

/* The last commit is due whoever is missing; it waits for a shard. */
static void job_that_ends_has_patience_with_everybody(void)
{
	struct mst_ledger_cfg cfg = job_cfg("kbatchasync:2", 5);
	struct ledger_job j;

	cfg.buffers = 3;
	job_born(&j, &cfg);
	for (uint32_t rank = 0; rank < 4; rank++) /* 1 and 2 are being copied */
		job_push(&j, rank);
	job_push(&j, 0);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 3);
	job_push(&j, 0); /* one of two */
	job_tell(&j, 1, MST_EV_FINISH);
	CU_ASSERT_EQUAL(job_version(&j), 3);
	job_wait(&j, JOB_PATIENCE_NS + MST_SECOND, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	CU_ASSERT(mst_ledger_deadline(j.ledger) > j.now_ns);
	job_answered(&j, 3);
	CU_ASSERT_EQUAL(job_version(&j), 4);
	CU_ASSERT(job_finished(&j, MST_FINISH_ASKED));
	job_close(&j);
}

static void job_that_ends_has_patience_with_the_slowest(void)
{
	struct mst_ledger_cfg cfg = job_cfg("ssp:0", 3);
	struct ledger_job j;

	cfg.rule.on_loss = MST_LOSS_FAIL;
	cfg.rule.patience_ns = JOB_LEASE_NS;
	job_born(&j, &cfg);
	job_push(&j, 0); /* parked: 1 and 2 have clock 0 */
	job_wait(&j, JOB_LEASE_NS, 1);
	CU_ASSERT(job_evicted(&j, 1, MST_EVICT_LEASE));
	CU_ASSERT(job_finished(&j, MST_FINISH_LOSS));
	CU_ASSERT(job_member(&j, 2).live);
	job_close(&j);
}

/* Its header is with one server of two when patience is over, and refused when it is with both. */
static void a_header_that_is_refused_excuses_a_worker_no_longer(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct mst_lane_header half;
	struct ledger_job j;

	cfg.shards = 2;
	job_born(&j, &cfg);
	job_push(&j, 0);
	job_wait(&j, JOB_PATIENCE_NS - JOB_LEASE_NS / 2, -1);
	half = job_header(&j, 1);
	half.weight = 0;
	half.flags &= (uint16_t)~MST_HEADER_ASK;
	job_full(&j, 1, 0, &half);
	job_wait(&j, JOB_LEASE_NS / 2, -1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_full(&j, 1, 1, &half);
	CU_ASSERT(job_evicted(&j, 1, MST_EVICT_PATIENCE));
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

static void silent_worker_ends_with_its_lease(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_wait(&j, JOB_LEASE_NS - MST_SECOND / 2, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 0);
	job_wait(&j, MST_SECOND, 1);
	CU_ASSERT(job_evicted(&j, 1, MST_EVICT_LEASE));
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

/* The others have all their slots in the step, and cannot go on either. */
static void who_has_contributed_least_is_who_is_waited_for(void)
{
	struct mst_ledger_cfg cfg = job_cfg("kbatchsync:8", 4);
	struct ledger_job j;

	job_born(&j, &cfg);
	for (uint32_t rank = 0; rank < 4; rank++)
		job_push(&j, rank);
	for (uint32_t rank = 0; rank < 3; rank++)
		job_push(&j, rank);
	/* No ask is out: those who have no slot free have pushed and been told to go on. */
	job_wait(&j, JOB_PATIENCE_NS, -1);
	CU_ASSERT_TRUE(job_evicted(&j, 3, MST_EVICT_PATIENCE));
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_EVICT, -1), 1);
	job_close(&j);
}

static CU_TestInfo cases[] = {
	{ "who has contributed least is who is waited for",
	  who_has_contributed_least_is_who_is_waited_for },
	{ "a server that slept evicts nobody", server_that_slept_evicts_nobody },
	{ "workers that are gone after a standstill have given the server up",
	  workers_that_are_gone_after_a_standstill_have_given_the_server_up },
	{ "a stall of listening evicts nobody", stall_of_listening_evicts_nobody },
	{ "a stall of deciding evicts nobody", stall_of_deciding_evicts_nobody },
	{ "workers that slept with their server have time to beat",
	  workers_that_slept_with_their_server_have_time_to_beat },
	{ "a lease is judged only against what was read",
	  lease_is_judged_only_against_what_was_read },
	{ "patience does not run while nobody listens",
	  patience_does_not_run_while_nobody_listens },
	{ "a worker that computes for a minute stays", worker_that_computes_for_a_minute_stays },
	{ "a worker that loops for ever is evicted", worker_that_loops_for_ever_is_evicted },
	{ "the job fails when all workers hang", job_fails_when_all_workers_hang },
	{ "the job fails when all workers hang in a step they have begun",
	  job_fails_when_all_workers_hang_in_a_step_they_have_begun },
	{ "a worker that is late gets the patience of a whole step",
	  worker_that_is_late_gets_the_patience_of_a_whole_step },
	{ "a worker gets the patience of a whole step from when its version is there",
	  worker_gets_the_patience_of_a_whole_step_from_when_its_version_is_there },
	{ "workers of several servers hang after a lease more",
	  workers_of_several_servers_hang_after_a_lease_more },
	{ "a worker that one server has heard does not hang",
	  worker_that_one_server_has_heard_does_not_hang },
	{ "the slowest worker may not hold the clock bound for ever",
	  slowest_worker_may_not_hold_the_clock_bound_for_ever },
	{ "an eviction by the bound does not cascade", eviction_by_the_bound_does_not_cascade },
	{ "a step that only lacks a buffer evicts nobody",
	  step_that_only_lacks_a_buffer_evicts_nobody },
	{ "a clock bound that only lacks a buffer evicts nobody",
	  clock_bound_that_only_lacks_a_buffer_evicts_nobody },
	{ "one whose answer waits for a buffer is not blamed",
	  one_whose_answer_waits_for_a_buffer_is_not_blamed },
	{ "a worker that one server has heard is not blamed for the others",
	  worker_that_one_server_has_heard_is_not_blamed_for_the_others },
	{ "what has come, and is still read, is waited for",
	  what_has_come_and_is_still_read_is_waited_for },
	{ "a job that ends has patience with everybody",
	  job_that_ends_has_patience_with_everybody },
	{ "a job that ends has patience with the slowest",
	  job_that_ends_has_patience_with_the_slowest },
	{ "a header that is refused excuses a worker no longer",
	  a_header_that_is_refused_excuses_a_worker_no_longer },
	{ "a silent worker ends with its lease", silent_worker_ends_with_its_lease },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger, timers", cases);
}
