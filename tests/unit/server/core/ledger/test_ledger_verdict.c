/* SPDX-License-Identifier: MIT */
/* The ledger and verdicts: what becomes of each contribution, and what a version records (PROTOCOL
 * 4, 5). */
#include <float.h>
#include <math.h>

#include "tests/unit/server/core/ledger/ledger_job.h"
#include "tests/ut.h"

static struct mst_ledger_cfg sharded(const char *policy, uint32_t workers)
{
	struct mst_ledger_cfg cfg = job_cfg(policy, workers);

	cfg.shards = 2;
	return cfg;
}

static size_t place_of(const struct ledger_job *j, enum mst_decision_kind kind)
{
	size_t i = 0;

	while (i < j->seen_count && j->seen[i].kind != kind)
		i++;
	return i;
}

static void hint_is_for_those_who_are_busy(void)
{
	struct mst_ledger_cfg cfg = job_cfg("ksync:2", 6);
	struct mst_rule rule = job_rule("ksync:1");
	struct ledger_job j;

	cfg.shards = 2;
	job_born(&j, &cfg);
	struct mst_lane_header h = job_header(&j, 3);
	job_full(&j, 3, 0, &h);
	job_leave(&j, 3, 1); /* rank 3 leaves, when its header is whole */
	job_tell(&j, 4, MST_EV_LOST);
	job_join(&j, 4); /* rank 4 is there, and takes no part */
	job_push(&j, 0);
	job_policy(&j, &rule); /* commits; then 0 and 1 have an ask out or not */
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_ADVISE, -1), 3);
	for (int rank = 1; rank <= 5; rank += rank == 2 ? 3 : 1) {
		const struct mst_decision *d = job_last(&j, MST_DO_ADVISE, rank);
		CU_ASSERT_PTR_NOT_NULL_FATAL(d);
		CU_ASSERT_EQUAL(d->advice.version, 1);
	}
	job_close(&j);
}

static void hint_comes_after_the_rule_it_follows(void)
{
	struct mst_ledger_cfg cfg = job_cfg("kasync:1", 2);
	struct mst_rule rule = job_rule("ksync:1");
	struct ledger_job j;

	job_born(&j, &cfg);
	job_policy(&j, &rule);
	job_push(&j, 0);
	CU_ASSERT(place_of(&j, MST_DO_COMMIT) < place_of(&j, MST_DO_POLICY));
	CU_ASSERT(place_of(&j, MST_DO_POLICY) < place_of(&j, MST_DO_ADVISE));
	CU_ASSERT(place_of(&j, MST_DO_ADVISE) < j.seen_count);
	job_close(&j);
}

static void what_is_counted_stays_counted_when_its_worker_dies(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 1);
	job_tell(&j, 1, MST_EV_LOST);
	CU_ASSERT_EQUAL(job_version(&j), 0);
	job_push(&j, 0);
	const struct mst_decision *d = job_last(&j, MST_DO_COMMIT, -1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(d);
	const struct mst_record *r = mst_ledger_record(j.ledger, d->commit.buffer);
	CU_ASSERT_EQUAL(r->entry_count, 2);
	CU_ASSERT_EQUAL(r->entry[0].who.rank, 1);
	CU_ASSERT_EQUAL(r->share[0].rank, 0);
	CU_ASSERT_EQUAL(r->divisor, 2);
	job_close(&j);
}

static void death_with_some_shards_full_cancels(void)
{
	struct mst_ledger_cfg cfg = sharded("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	struct mst_lane_header h = job_header(&j, 1);
	job_full(&j, 1, 0, &h);
	job_tell(&j, 1, MST_EV_LOST);
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_CANCELLED);
	CU_ASSERT_EQUAL(j.seen[0].kind, MST_DO_VERDICT);
	CU_ASSERT_EQUAL(j.seen[1].kind, MST_DO_EVICT);
	job_close(&j);
}

static struct muster_push_verdict told[MUSTER_TICKETS_MAX];

/* What the next session of @rank is told. Return: how many. */
static uint32_t verdicts(const struct ledger_job *j, uint32_t rank)
{
	return mst_verdicts_list(mst_ledger_verdicts(j->ledger, rank), told);
}

static void expect_verdict(const struct muster_push_verdict *f, uint64_t ticket,
			   enum muster_verdict verdict, uint64_t counted_in)
{
	CU_ASSERT_EQUAL(f->ticket, ticket);
	CU_ASSERT_EQUAL(f->verdict, verdict);
	CU_ASSERT_EQUAL(f->counted_in, counted_in);
}

static void returning_rank_is_told_the_verdicts_it_never_heard(void)
{
	struct mst_ledger_cfg cfg = sharded("async", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	struct mst_lane_header h = job_header(&j, 1);
	h.slot = 1;
	h.flags = MST_HEADER_FULL;
	job_full_all(&j, 1, &h);
	h = job_header(&j, 1);
	h.ask.number = 2;
	h.unheard = 1;
	job_full(&j, 1, 0, &h);
	job_tell(&j, 1, MST_EV_LOST);
	job_join(&j, 1);
	CU_ASSERT_EQUAL_FATAL(verdicts(&j, 1), 2);
	expect_verdict(&told[0], 1, MUSTER_COUNTED, 1);
	expect_verdict(&told[1], 2, MUSTER_CANCELLED, 0);
	CU_ASSERT_EQUAL(told[0].incarnation, 1);
	job_close(&j);
}

/* Pushes of @j's rank 0 that never wait: all but the first @heard of them stay unheard. */
static void push_unheard(struct ledger_job *j, uint64_t count, uint64_t heard)
{
	for (uint64_t i = 1; i <= count; i++) {
		struct mst_lane_header h = job_header(j, 0);
		h.flags = MST_HEADER_FULL;
		h.unheard = (uint16_t)(i - 1 < heard ? 0 : i - 1 - heard);
		job_full_all(j, 0, &h);
		job_forget(j);
	}
}

/* As many as may be open, in slots that are used again and again. */
static void every_verdict_that_was_not_heard_is_told(void)
{
	struct mst_ledger_cfg cfg = sharded("async", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	push_unheard(&j, MUSTER_TICKETS_MAX, 0);
	job_tell(&j, 0, MST_EV_LOST);
	job_join(&j, 0);
	CU_ASSERT_EQUAL_FATAL(verdicts(&j, 0), MUSTER_TICKETS_MAX);
	for (uint32_t i = 0; i < MUSTER_TICKETS_MAX; i++)
		expect_verdict(&told[i], i + 1, MUSTER_COUNTED, i + 1);
	job_close(&j);
}

static void verdicts_that_were_heard_are_not_told(void)
{
	struct mst_ledger_cfg cfg = sharded("async", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	push_unheard(&j, MUSTER_TICKETS_MAX + 50, 50);
	job_tell(&j, 0, MST_EV_LOST);
	job_join(&j, 0);
	CU_ASSERT_EQUAL_FATAL(verdicts(&j, 0), MUSTER_TICKETS_MAX);
	CU_ASSERT_EQUAL(told[0].ticket, 51);
	job_close(&j);
}

/* A pass has no told, and a ticket. */
static void pass_has_no_verdict(void)
{
	struct mst_ledger_cfg cfg = sharded("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	struct mst_lane_header h = job_header(&j, 0);
	h.flags = MST_HEADER_PASS;
	h.weight = 0;
	job_full_all(&j, 0, &h);
	h = job_header(&j, 0);
	h.flags = MST_HEADER_FULL;
	h.unheard = 1;
	job_full_all(&j, 0, &h);
	job_tell(&j, 0, MST_EV_LOST);
	job_join(&j, 0);
	CU_ASSERT_EQUAL_FATAL(verdicts(&j, 0), 1);
	CU_ASSERT_EQUAL(told[0].ticket, 2);
	job_close(&j);
}

/* It was welcomed before it could push; what it pushes has verdicts of its own. */
static void session_that_pushes_before_it_starts_has_verdicts(void)
{
	struct mst_ledger_cfg cfg = sharded("async", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	push_unheard(&j, 5, 0);
	job_tell(&j, 0, MST_EV_LOST);
	job_join(&j, 0);
	struct mst_lane_header h = job_header(&j, 0);
	h.flags = MST_HEADER_FULL;
	job_full_all(&j, 0, &h);
	CU_ASSERT_EQUAL(job_verdict(&j, 0), MUSTER_REFUSED);
	job_tell(&j, 0, MST_EV_LOST);
	job_join(&j, 0);
	CU_ASSERT_EQUAL_FATAL(verdicts(&j, 0), 1);
	expect_verdict(&told[0], 1, MUSTER_REFUSED, 0);
	CU_ASSERT_EQUAL(told[0].incarnation, 2);
	job_close(&j);
}

/* Else the verdicts are lost to a worker that came back twice, and was never told. */
static void session_that_never_started_leaves_the_verdicts_before_it(void)
{
	struct mst_ledger_cfg cfg = sharded("async", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	struct mst_lane_header h = job_header(&j, 1);
	job_full(&j, 1, 0, &h);
	job_tell(&j, 1, MST_EV_LOST);
	job_join(&j, 1);
	job_link(&j, 1, 0);
	job_tell(&j, 1, MST_EV_LOST);
	job_join(&j, 1);
	CU_ASSERT_EQUAL_FATAL(verdicts(&j, 1), 1);
	expect_verdict(&told[0], 1, MUSTER_CANCELLED, 0);
	CU_ASSERT_EQUAL(told[0].incarnation, 1); /* and the one that never started was the second */
	job_link(&j, 1, 0);
	job_start(&j, 1, false); /* it has heard them */
	job_tell(&j, 1, MST_EV_LOST);
	job_join(&j, 1);
	CU_ASSERT_EQUAL(verdicts(&j, 1), 0);
	job_close(&j);
}

static void verdict_names_the_version_it_was_computed_on(void)
{
	struct mst_ledger_cfg cfg = sharded("bounded:1", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	for (int i = 0; i < 3; i++)
		job_push(&j, 0);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_VERDICT, 0)->verdict.tag, 2);
	struct mst_lane_header h = job_header(&j, 0);
	job_full(&j, 0, 0, &h);
	job_tell(&j, 0, MST_EV_LOST);
	CU_ASSERT_EQUAL(job_verdict(&j, 0), MUSTER_CANCELLED);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_VERDICT, 0)->verdict.tag, 3);
	job_close(&j);
}

static void abandoned(struct ledger_job *j, uint32_t rank, uint32_t shard)
{
	struct mst_ledger_event ev = { .kind = MST_EV_ABANDONED, .who = j->worker[rank].who };

	ev.abandoned.shard = shard;
	ev.abandoned.epoch = j->worker[rank].epoch[0];
	job_event(j, &ev);
}

static void abandoned_slot_is_granted_anew_when_all_shards_say_so(void)
{
	struct mst_ledger_cfg cfg = sharded("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	abandoned(&j, 0, 1);
	CU_ASSERT_EQUAL(j.seen_count, 0);
	abandoned(&j, 0, 0);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_REGRANT, 0)->grant.epoch, 2);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_VERDICT, 0), 0);
	job_close(&j);
}

static void header_and_abandon_of_one_grant_end_the_session(void)
{
	struct mst_ledger_cfg cfg = sharded("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	struct mst_lane_header h = job_header(&j, 0);
	job_full(&j, 0, 0, &h);
	abandoned(&j, 0, 1);
	CU_ASSERT_EQUAL(job_verdict(&j, 0), MUSTER_CANCELLED);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_EVICT, 0)->evict, MST_EVICT_INVALID);
	job_close(&j);
}

/* Else a policy change in between would count what an older gradient left in the slot. */
static void empty_header_is_late_whatever_rule_judges_it(void)
{
	struct mst_ledger_cfg cfg = job_cfg("backup:1", 2);
	struct mst_rule rule = job_rule("async");
	struct ledger_job j;

	job_born(&j, &cfg);
	job_policy(&j, &rule);
	job_push(&j, 0); /* version 1, and async: any tag would count */
	struct mst_lane_header h = job_header(&j, 1);
	h.flags |= MST_HEADER_EMPTY;
	job_full(&j, 1, 0, &h);
	CU_ASSERT_EQUAL(job_verdict(&j, 1), MUSTER_LATE);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

static void pass_is_waited_for_no_more_and_weighs_nothing(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_pass(&j, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_VERDICT, 1), 0);
	CU_ASSERT_EQUAL(job_version(&j), 0);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 1), 1);
	job_close(&j);
}

static void passes_lower_what_all_but_some_need(void)
{
	struct mst_ledger_cfg cfg = job_cfg("backup:-1", 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_pass(&j, 1);
	job_pass(&j, 2);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

/* A pass with nothing to give before and after it is no reason to wait for ever. */
static void step_that_all_have_passed_is_extended(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_pass(&j, 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, -1), 0);
	CU_ASSERT_FALSE(job_member(&j, 0).awaited);
	job_pass(&j, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_COMMIT, -1), 0);
	for (uint32_t rank = 0; rank < 2; rank++) {
		const struct mst_decision *d = job_last(&j, MST_DO_RELEASE, (int)rank);
		CU_ASSERT_PTR_NOT_NULL_FATAL(d);
		CU_ASSERT_EQUAL(d->answer.where, MST_WHERE_KEEP);
		CU_ASSERT_EQUAL(d->answer.version, 0);
		CU_ASSERT(job_member(&j, rank).awaited);
		job_push(&j, rank);
	}
	CU_ASSERT_EQUAL(job_version(&j), 1);
	job_close(&j);
}

static void step_is_extended_when_the_last_one_to_give_dies(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_pass(&j, 0);
	job_pass(&j, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, -1), 0);
	job_tell(&j, 2, MST_EV_LOST);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, -1), 2);
	CU_ASSERT_EQUAL(job_version(&j), 0);
	job_close(&j);
}

/* It is still a joiner's turn only when the next version is there. */
static void step_that_is_extended_waits_for_no_joiner(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_tell(&j, 1, MST_EV_LOST);
	job_enter(&j, 1);
	job_pass(&j, 0);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 0), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 1), 0);
	CU_ASSERT_FALSE(job_member(&j, 1).awaited);
	job_push(&j, 0);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, 1), 1);
	job_close(&j);
}

static void passes_beside_a_count_stand(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 3);
	struct ledger_job j;

	job_born(&j, &cfg);
	job_push(&j, 0);
	job_pass(&j, 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, -1), 0);
	CU_ASSERT_FALSE(job_member(&j, 1).awaited);
	job_pass(&j, 2);
	CU_ASSERT_EQUAL(job_version(&j), 1);
	CU_ASSERT_EQUAL(job_count(&j, MST_DO_RELEASE, -1), 3);
	CU_ASSERT_EQUAL(job_last(&j, MST_DO_RELEASE, 2)->answer.version, 1);
	job_close(&j);
}

static void version_0_is_divided_by_nothing(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 1);
	struct ledger_job j;

	job_open(&j, &cfg);
	job_enter(&j, 0);
	job_tell(&j, 0, MST_EV_STATE);
	const struct mst_decision *d = job_last(&j, MST_DO_START, -1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(d);
	const struct mst_record *r = mst_ledger_record(j.ledger, d->commit.buffer);
	CU_ASSERT_EQUAL(r->version, 0);
	CU_ASSERT_EQUAL(r->divisor, 1);
	CU_ASSERT_EQUAL(r->lr_scale, 1);
	CU_ASSERT_EQUAL(r->entry_count + r->share_count, 0);
	job_close(&j);
}

static void room_follows_from_the_figures(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 3);

	CU_ASSERT_EQUAL(mst_ledger_buffers(&cfg), 4);
	CU_ASSERT_EQUAL(mst_ledger_entries(&cfg), 3 + 3 * 2);
	cfg.owner = MUSTER_WORKERS_OWN;
	cfg.optimizer.row = NULL;
	cfg.history = 5;
	CU_ASSERT_EQUAL(mst_ledger_buffers(&cfg), 9);
	cfg.rule.quorum = 8;
	CU_ASSERT_EQUAL(mst_ledger_entries(&cfg), 8 + 3 * 2);
}

static void weights_make_divisor_coefficients_and_rate(void)
{
	struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
	struct ledger_job j;

	cfg.rule.weigh = MST_WEIGH_SAMPLES;
	cfg.rule.linear = true;
	job_born(&j, &cfg);
	struct mst_lane_header h = job_header(&j, 0);
	h.weight = 3;
	job_full(&j, 0, 0, &h);
	h = job_header(&j, 1);
	h.weight = 5;
	h.flags = (h.flags | MST_HEADER_SUM) & ~MST_HEADER_LOSS; /* its loss is no loss */
	h.loss = 77;
	job_full(&j, 1, 0, &h);
	const struct mst_decision *d = job_last(&j, MST_DO_COMMIT, -1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(d);
	const struct mst_record *r = mst_ledger_record(j.ledger, d->commit.buffer);
	CU_ASSERT_EQUAL(r->entry[0].coefficient, 3);
	CU_ASSERT_EQUAL(r->entry[1].coefficient, 1);
	CU_ASSERT_EQUAL(r->divisor, 8);
	CU_ASSERT_EQUAL(r->scalar[MST_SCALAR_RATE], 0.1f);
	CU_ASSERT_EQUAL(r->samples, 8);
	CU_ASSERT_EQUAL(r->loss, 1);
	job_close(&j);
}

/* What a version of four workers records, who come in this order. */
static struct mst_record record_of(const uint32_t order[4])
{
	static const double weight[] = { MST_WEIGHT_MAX, 0x1p29, 1, 1 };
	static const double loss[] = { 0.1, 1e300, -0.7, DBL_MAX };
	struct mst_ledger_cfg cfg = job_cfg("bsp", 4);
	struct ledger_job j;

	cfg.rule.weigh = MST_WEIGH_SAMPLES;
	job_born(&j, &cfg);
	for (unsigned i = 0; i < 4; i++) {
		struct mst_lane_header h = job_header(&j, order[i]);
		h.weight = weight[order[i]];
		h.loss = loss[order[i]];
		job_full(&j, order[i], 0, &h);
	}
	const struct mst_decision *d = job_last(&j, MST_DO_COMMIT, -1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(d);
	struct mst_record r = *mst_ledger_record(j.ledger, d->commit.buffer);
	job_close(&j);
	return r;
}

/* These weights have two sums in f32, and the losses have many, as one adds them. */
static void the_order_of_arrival_changes_no_figure(void)
{
	struct mst_record first = record_of((const uint32_t[]){ 0, 1, 2, 3 });

	CU_ASSERT(isfinite(first.loss));
	for (uint32_t code = 0; code < 256; code++) {
		uint32_t order[] = { code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6 };
		if ((1u << order[0] | 1u << order[1] | 1u << order[2] | 1u << order[3]) != 15)
			continue;
		struct mst_record r = record_of(order);
		CU_ASSERT_EQUAL(r.divisor, first.divisor);
		CU_ASSERT_EQUAL(r.samples, first.samples);
		CU_ASSERT_EQUAL(r.loss, first.loss);
		CU_ASSERT_EQUAL(r.loss_samples, first.loss_samples);
	}
}

/* Losses times samples are beyond a double long before their mean is. */
static void every_finite_loss_has_a_finite_mean(void)
{
	static const double loss[] = { DBL_MAX, 1e308, -DBL_MAX, DBL_MIN, 0 };

	for (size_t i = 0; i < sizeof(loss) / sizeof(loss[0]); i++) {
		struct mst_ledger_cfg cfg = job_cfg("bsp", 2);
		struct ledger_job j;
		job_born(&j, &cfg);
		for (uint32_t rank = 0; rank < 2; rank++) {
			struct mst_lane_header h = job_header(&j, rank);
			h.weight = MST_WEIGHT_MAX;
			h.loss = loss[i];
			job_full(&j, rank, 0, &h);
		}
		const struct mst_decision *d = job_last(&j, MST_DO_COMMIT, -1);
		CU_ASSERT_PTR_NOT_NULL_FATAL(d);
		CU_ASSERT_EQUAL(mst_ledger_record(j.ledger, d->commit.buffer)->loss, loss[i]);
		job_close(&j);
	}
}

static CU_TestInfo cases[] = {
	{ "a hint is for those who are busy", hint_is_for_those_who_are_busy },
	{ "a hint comes after the rule it follows", hint_comes_after_the_rule_it_follows },
	{ "what is counted stays counted when its worker dies",
	  what_is_counted_stays_counted_when_its_worker_dies },
	{ "a death with some shards full cancels", death_with_some_shards_full_cancels },
	{ "a returning rank is told the verdicts it never heard",
	  returning_rank_is_told_the_verdicts_it_never_heard },
	{ "every verdict that was not heard is told", every_verdict_that_was_not_heard_is_told },
	{ "verdicts that were heard are not told", verdicts_that_were_heard_are_not_told },
	{ "a pass has no verdict", pass_has_no_verdict },
	{ "a session that pushes before it starts has verdicts",
	  session_that_pushes_before_it_starts_has_verdicts },
	{ "a session that never started leaves the verdicts before it",
	  session_that_never_started_leaves_the_verdicts_before_it },
	{ "a verdict names the version it was computed on",
	  verdict_names_the_version_it_was_computed_on },
	{ "an abandoned slot is granted anew when all shards say so",
	  abandoned_slot_is_granted_anew_when_all_shards_say_so },
	{ "a header and an abandon of one grant end the session",
	  header_and_abandon_of_one_grant_end_the_session },
	{ "an empty header is late, whatever rule judges it",
	  empty_header_is_late_whatever_rule_judges_it },
	{ "a pass is waited for no more, and weighs nothing",
	  pass_is_waited_for_no_more_and_weighs_nothing },
	{ "passes lower what all-but-some need", passes_lower_what_all_but_some_need },
	{ "a step that all have passed is extended", step_that_all_have_passed_is_extended },
	{ "a step is extended when the last one to give dies",
	  step_is_extended_when_the_last_one_to_give_dies },
	{ "a step that is extended waits for no joiner",
	  step_that_is_extended_waits_for_no_joiner },
	{ "passes beside a count stand", passes_beside_a_count_stand },
	{ "version 0 is divided by nothing", version_0_is_divided_by_nothing },
	{ "room follows from the figures", room_follows_from_the_figures },
	{ "weights make divisor, coefficients and rate",
	  weights_make_divisor_coefficients_and_rate },
	{ "the order of arrival changes no figure", the_order_of_arrival_changes_no_figure },
	{ "every finite loss has a finite mean", every_finite_loss_has_a_finite_mean },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("ledger, verdict", cases);
}
