/* SPDX-License-Identifier: MIT */
/* What a manifest keeps of the ledger: whatever a job may come to is read again as it was written,
 * through the text of the manifest, and what no job comes to is neither written nor read. */
#include "server/control/job/kept.h"
#include "server/core/policy/in_force.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/range.h"
#include "tests/ut.h"

static struct mst_reason why;

static struct mst_checkpoint_manifest manifest_of(uint64_t version)
{
	struct mst_checkpoint_manifest m;

	mst_checkpoint_manifest_init(&m);
	m.id.version = version;
	m.id.elems = 1;
	m.owner = MUSTER_WORKERS_OWN; /* there are no parts then */
	m.workers = 2;
	(void)snprintf(m.id.job, sizeof(m.id.job), "job");
	CU_ASSERT_EQUAL_FATAL(mst_checkpoint_draw(m.id.save), 0);
	return m;
}

/* Writes what is kept, and reads it again. Return: of the reading; @back: its rank is to be freed.
 */
static int round_trip(const struct mst_kept *kept, struct mst_kept *back)
{
	struct mst_checkpoint_manifest m = manifest_of(kept->version), read;
	char *text = NULL;
	size_t len = 0;

	CU_ASSERT_EQUAL_FATAL(mst_kept_write(kept, &m, &why), 0);
	CU_ASSERT_EQUAL_FATAL(mst_checkpoint_manifest_compose(&m, &text, &len, &why), 0);
	CU_ASSERT_EQUAL_FATAL(mst_checkpoint_manifest_parse(text, len, &read, &why), 0);
	CU_ASSERT_EQUAL(read.samples, (uint64_t)kept->samples);
	for (uint32_t i = 0; i < kept->figures; i++) {
		double value = 0;
		CU_ASSERT_EQUAL(mst_values_real(&read.values, kept->figure[i].name, &value), 0);
		CU_ASSERT_EQUAL(value, kept->figure[i].value);
	}
	int rc = mst_kept_read(&read, "DIR", back, &why);
	free(text);
	mst_checkpoint_manifest_fini(&m);
	mst_checkpoint_manifest_fini(&read);
	return rc;
}

static void the_ends_of_each_range_come_back(void)
{
	static const double samples[] = { 0,
					  MST_WEIGHT_MIN,
					  0.1,
					  MST_WEIGHT_MAX,
					  9e15,
					  1024 * (MST_WEIGHT_MAX - 1),
					  MST_SAMPLES_MAX };
	static const double figures[] = { DBL_MAX, -DBL_MAX, DBL_MIN, 5e-324, 0.1 };
	struct mst_kept_rank rank[] = { { .incarnation = 1 },
					{ .incarnation = MST_INCARNATION_MAX,
					  .clock = MST_COUNT_MAX,
					  .contributions = UINT32_MAX } };

	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		struct mst_kept kept = { .version = i % 2 == 0 ? 1 : MST_COUNT_MAX,
					 .samples = samples[i],
					 .ranks = 2,
					 .rank = rank,
					 .figures = 1 };
		struct mst_kept back = { .rank = NULL };
		kept.figure[0] = (struct mst_controller_figure){ "figure", figures[i % 5] };
		CU_ASSERT_EQUAL_FATAL(round_trip(&kept, &back), 0);
		CU_ASSERT_EQUAL(back.version, kept.version);
		CU_ASSERT_EQUAL(back.samples, samples[i]);
		CU_ASSERT_EQUAL_FATAL(back.ranks, 2);
		for (int k = 0; k < 2; k++) {
			CU_ASSERT_EQUAL(back.rank[k].incarnation, rank[k].incarnation);
			CU_ASSERT_EQUAL(back.rank[k].clock, rank[k].clock);
		}
		free(back.rank);
	}
}

static bool both_refuse(struct mst_kept kept, struct mst_kept_rank rank, const char *says)
{
	struct mst_checkpoint_manifest m = manifest_of(7);
	struct mst_kept back = { .rank = NULL };
	uint64_t clock = rank.clock, incarnation = rank.incarnation;

	kept.ranks = 1;
	kept.rank = &rank;
	bool writes = mst_kept_write(&kept, &m, &why) == 0;
	mst_checkpoint_manifest_fini(&m);
	m = manifest_of(kept.version);
	CU_ASSERT_EQUAL(mst_values_add_real(&m.values, "samples", kept.samples), 0);
	CU_ASSERT_EQUAL(mst_values_add_list(&m.values, "clocks", &clock, 1), 0);
	CU_ASSERT_EQUAL(mst_values_add_list(&m.values, "incarnations", &incarnation, 1), 0);
	bool reads = mst_kept_read(&m, "DIR", &back, &why) != -EBADMSG;
	mst_checkpoint_manifest_fini(&m);
	return !writes && !reads && strstr(why.text, says) != NULL;
}

static void what_is_beyond_them_is_neither_written_nor_read(void)
{
	static const double samples[] = { -1, 2 * MST_SAMPLES_MAX, (double)INFINITY, (double)NAN };
	const struct mst_kept fine = { .version = 7, .samples = 1 };
	const struct mst_kept_rank rank = { .incarnation = 1, .clock = 1 };

	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		CU_ASSERT(both_refuse((struct mst_kept){ .version = 7, .samples = samples[i] },
				      rank, "samples are counted"));
	CU_ASSERT(both_refuse((struct mst_kept){ .version = MST_COUNT_MAX + 1 }, rank, "versions"));
	CU_ASSERT(both_refuse(
		fine, (struct mst_kept_rank){ .incarnation = MST_INCARNATION_MAX + 1 }, "rank 0"));
	CU_ASSERT(
		both_refuse(fine, (struct mst_kept_rank){ .clock = MST_COUNT_MAX + 1 }, "rank 0"));
}

static bool same_verdicts(const struct mst_kept_rank *a, const struct mst_kept_rank *b)
{
	bool same = a->verdicts == b->verdicts;

	for (uint32_t i = 0; same && i < a->verdicts; i++)
		same = a->verdict[i].ticket == b->verdict[i].ticket &&
		       a->verdict[i].verdict == b->verdict[i].verdict &&
		       a->verdict[i].counted_in == b->verdict[i].counted_in;
	return same;
}

/* Servers own: of those that its workers may not have heard. */
static void verdicts_come_back(void)
{
	struct mst_kept_rank rank[] = {
		{ .incarnation = 1 },
		{ .incarnation = 2,
		  .verdicts = 3,
		  .verdict = { { 5, 6, MUSTER_COUNTED },
			       { 6, 0, MUSTER_LATE },
			       { MUSTER_TICKETS_MAX + 4, 7, MUSTER_COUNTED } } },
	};
	const struct mst_kept kept = { .version = 7, .samples = 1, .ranks = 2, .rank = rank };
	struct mst_kept back = { .rank = NULL };

	CU_ASSERT_EQUAL_FATAL(round_trip(&kept, &back), 0);
	for (int i = 0; i < 2; i++)
		CU_ASSERT(same_verdicts(&rank[i], &back.rank[i]));
	free(back.rank);
}

/* Return: of reading a manifest of version 7 with these two verdicts of one rank of two. */
static int read_verdict(uint64_t of, const struct mst_kept_verdict v[2])
{
	struct mst_checkpoint_manifest m = manifest_of(7);
	struct mst_kept back = { .rank = NULL };
	uint64_t two[] = { 1, 1 }, rank[] = { of, of }, ticket[] = { v[0].ticket, v[1].ticket };
	uint64_t verdict[] = { v[0].verdict, v[1].verdict };
	uint64_t counted_in[] = { v[0].counted_in, v[1].counted_in };

	CU_ASSERT_EQUAL(mst_values_add_real(&m.values, "samples", 1), 0);
	CU_ASSERT_EQUAL(mst_values_add_list(&m.values, "clocks", two, 2), 0);
	CU_ASSERT_EQUAL(mst_values_add_list(&m.values, "incarnations", two, 2), 0);
	CU_ASSERT_EQUAL(mst_values_add_list(&m.values, "verdicts.ranks", rank, 2), 0);
	CU_ASSERT_EQUAL(mst_values_add_list(&m.values, "verdicts.tickets", ticket, 2), 0);
	CU_ASSERT_EQUAL(mst_values_add_list(&m.values, "verdicts.verdicts", verdict, 2), 0);
	CU_ASSERT_EQUAL(mst_values_add_list(&m.values, "verdicts.versions", counted_in, 2), 0);
	int rc = mst_kept_read(&m, "DIR", &back, &why);
	CU_ASSERT((rc == 0) == (back.rank != NULL));
	free(back.rank);
	mst_checkpoint_manifest_fini(&m);
	return rc;
}

static void verdicts_that_cannot_be_are_refused(void)
{
	static const struct mst_kept_verdict fine = { 5, 6, MUSTER_COUNTED };
	static const struct mst_kept_verdict bad[] = {
		{ 5, 7, MUSTER_COUNTED }, /* it has a verdict */
		{ 4, 7, MUSTER_COUNTED }, /* tickets rise */
		{ 6, 8, MUSTER_COUNTED }, /* which is not in the checkpoint */
		{ 6, 0, MUSTER_COUNTED }, /* in which version? */
		{ 6, 7, MUSTER_LATE },    /* it is in none */
		{ 6, 0, MUSTER_NONE },    /* there is no verdict */
		{ 6, 0, (enum muster_verdict)99 },
		{ 5 + MUSTER_TICKETS_MAX, 7, MUSTER_COUNTED }, /* not open at the same time */
		{ MST_COUNT_MAX + 1, 7, MUSTER_COUNTED },
	};
	const struct mst_kept_verdict right[2] = { fine, { 6, 7, MUSTER_COUNTED } };

	CU_ASSERT_EQUAL(read_verdict(1, right), 0);
	CU_ASSERT_EQUAL(read_verdict(2, right), -EBADMSG); /* of no rank */
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "verdicts"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct mst_kept_verdict pair[2] = { fine, bad[i] };
		CU_ASSERT_EQUAL(read_verdict(1, pair), -EBADMSG);
	}
}

static void a_manifest_without_the_figures_is_named(void)
{
	struct mst_checkpoint_manifest m = manifest_of(7);
	struct mst_kept back = { .rank = NULL };
	uint64_t two[] = { 1, 1 };

	CU_ASSERT_EQUAL(mst_kept_read(&m, "DIR", &back, &why), -EBADMSG);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "version 7 in DIR"));
	CU_ASSERT_EQUAL(mst_values_add_real(&m.values, "samples", 1), 0);
	CU_ASSERT_EQUAL(mst_values_add_list(&m.values, "clocks", two, 2), 0);
	CU_ASSERT_EQUAL(mst_values_add_list(&m.values, "incarnations", two, 1), 0);
	CU_ASSERT_EQUAL(mst_kept_read(&m, "DIR", &back, &why), -EBADMSG); /* of how many ranks? */
	CU_ASSERT_PTR_NULL(back.rank);
	mst_checkpoint_manifest_fini(&m);
}

static struct mst_in_force kept_of(const struct mst_in_force *what)
{
	struct mst_in_force back = { .number = 99 };
	struct mst_values v;

	mst_values_init(&v);
	CU_ASSERT_EQUAL(mst_kept_write_in_force(what, &v), 0);
	mst_kept_in_force(&v, &back);
	mst_values_fini(&v);
	return back;
}

static void last_change_of_policy_comes_back(void)
{
	struct mst_in_force forced = { UINT32_MAX, 1, "backup:1" }, plain = { 1, 0, "async" };
	struct mst_in_force none = { 0 }, back = kept_of(&forced);

	CU_ASSERT(mst_in_force_same(&back, &forced));
	back = kept_of(&plain);
	CU_ASSERT(mst_in_force_same(&back, &plain));
	back = kept_of(&none);
	CU_ASSERT(mst_in_force_same(&back, &none));
}

static void change_that_cannot_be_is_none(void)
{
	struct mst_in_force far = { UINT64_C(1) << 32, 0, "async" }, back = kept_of(&far);
	char text[100] = "";
	struct mst_values v;

	CU_ASSERT(back.number == 0 && back.policy[0] == '\0');
	for (size_t length = 0; length < sizeof(text) - 1; length += MST_POLICY_LEN - 1) {
		mst_values_init(&v);
		memset(text, 'x', length);
		CU_ASSERT_EQUAL(mst_values_add_u64(&v, "policy_change", 1), 0);
		CU_ASSERT_EQUAL(mst_values_add_text(&v, "policy_changed_to", text), 0);
		CU_ASSERT_EQUAL(mst_values_add_u64(&v, "policy_change_forced", 0), 0);
		mst_kept_in_force(&v, &back);
		CU_ASSERT_EQUAL(back.number, length == MST_POLICY_LEN - 1); /* just fits */
		text[length] = 'x';
		mst_values_fini(&v);
	}
}

static CU_TestInfo cases[] = {
	{ "the ends of each range come back", the_ends_of_each_range_come_back },
	{ "what is beyond them is neither written nor read",
	  what_is_beyond_them_is_neither_written_nor_read },
	{ "verdicts come back", verdicts_come_back },
	{ "verdicts that cannot be are refused", verdicts_that_cannot_be_are_refused },
	{ "a manifest without the figures is named", a_manifest_without_the_figures_is_named },
	{ "the last change of policy comes back", last_change_of_policy_comes_back },
	{ "a change that cannot be is none", change_that_cannot_be_is_none },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("kept", cases);
}
