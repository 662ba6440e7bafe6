/* SPDX-License-Identifier: MIT */
/* Tables of tensors that workers give: which go together, and what is said of those that do not. */
#include <errno.h>
#include <string.h>

#include "common/base/text.h"
#include "server/control/job/tables.h"
#include "tests/ut.h"

#define FIRST "rank 0 (10.0.0.1:5, process 7)"
#define SECOND "rank 4 (10.0.0.2:6, process 8)"

static const struct mst_table table = { 3, 0, 9, 11, 22, 0 };
static struct mst_reason why;

/* Is @second refused where @first has been given, in a sentence that says @what? */
static bool refused(const struct mst_table *first, const struct mst_table *second, const char *what)
{
	struct mst_tables t = { 0 };

	CU_ASSERT_EQUAL(mst_tables_check(&t, first, FIRST, &why), 0);
	mst_tables_take(&t, first, FIRST);
	return mst_tables_check(&t, second, SECOND, &why) == -EINVAL &&
	       strstr(why.text, what) != NULL && strstr(why.text, FIRST) != NULL &&
	       strstr(why.text, SECOND) != NULL;
}

static bool accepted(const struct mst_table *first, const struct mst_table *second)
{
	struct mst_tables t = { 0 };

	mst_tables_take(&t, first, FIRST);
	return mst_tables_check(&t, second, SECOND, &why) == 0;
}

static void the_same_table_is_accepted(void)
{
	CU_ASSERT(accepted(&table, &table));
}

static void a_worker_may_give_none(void)
{
	struct mst_table none = { 0 };

	CU_ASSERT(accepted(&table, &none));
	CU_ASSERT(accepted(&none, &table));
	CU_ASSERT(accepted(&none, &none));
}

static void another_table_is_refused_and_both_workers_named(void)
{
	struct mst_table other = table;

	other.tensors = 4;
	CU_ASSERT(refused(&table, &other, "4 tensors, but"));
	CU_ASSERT(refused(&table, &other, "has given one of 3"));
	other = table, other.places++;
	CU_ASSERT(refused(&table, &other, "differs in where tensors begin and end"));
	other = table, other.names++;
	CU_ASSERT(refused(&table, &other, "differs in the names of tensors"));
}

/* Does the job whose first hello had @first, which is of a worker that is not admitted yet, refuse
 * @second, in a sentence that says @what? */
static bool fixed_refuses(const struct mst_table *first, const struct mst_table *second,
			  const char *what)
{
	struct mst_tables t = { 0 };

	mst_tables_fix(&t, first, FIRST, NULL);
	return mst_tables_check(&t, second, SECOND, &why) == -EINVAL &&
	       strstr(why.text, what) != NULL && strstr(why.text, FIRST) != NULL &&
	       strstr(why.text, SECOND) != NULL;
}

static void scales_are_those_of_the_first_hello(void)
{
	struct mst_table scaled = { 3, 2, 9, 11, 22, 33 }, other = scaled, none = { 0 };

	other.scales++;
	CU_ASSERT(fixed_refuses(&scaled, &other, "differ from those that"));
	CU_ASSERT(fixed_refuses(&scaled, &table, "gives no scales of tensors other than 1, but"));
	CU_ASSERT(fixed_refuses(&scaled, &none, "has given some"));
	CU_ASSERT(fixed_refuses(&none, &scaled, "gives scales of tensors other than 1, but"));
	CU_ASSERT(fixed_refuses(&table, &scaled, "has given none"));
	CU_ASSERT(!fixed_refuses(&scaled, &scaled, ""));
	CU_ASSERT(!fixed_refuses(&none, &table, ""));
}

/* An optimiser that takes norms of tensors needs the same table of everybody. */
static void norms_need_the_table_of_the_first_hello(void)
{
	struct mst_table none = { 0 };
	struct mst_tables t = { 0 };

	mst_tables_fix(&t, &table, "a worker without a rank", "lamb");
	mst_tables_take(&t, &table, FIRST); /* it has one now */
	CU_ASSERT_EQUAL(mst_tables_check(&t, &table, SECOND, &why), 0);
	CU_ASSERT_EQUAL(mst_tables_check(&t, &none, SECOND, &why), -EINVAL);
	CU_ASSERT(strstr(why.text,
			 SECOND " gives no table of tensors, but " FIRST " has given one, and "
				"the optimiser lamb takes the norms of tensors") != NULL);
	t = (struct mst_tables){ 0 };
	mst_tables_fix(&t, &none, FIRST, "lars");
	CU_ASSERT_EQUAL(mst_tables_check(&t, &none, SECOND, &why), 0);
	CU_ASSERT_EQUAL(mst_tables_check(&t, &table, SECOND, &why), -EINVAL);
	CU_ASSERT(strstr(why.text, "gives a table of tensors, but " FIRST " has given none") !=
		  NULL);
}

/* The table of the first worker that gives one holds; that worker need not come first. */
static void the_first_table_stays(void)
{
	struct mst_table none = { 0 }, other = { 3, 0, 9, 12, 22, 0 };
	struct mst_tables t = { 0 };

	mst_tables_take(&t, &none, "nobody");
	mst_tables_take(&t, &table, FIRST);
	mst_tables_take(&t, &other, SECOND);
	CU_ASSERT_EQUAL(t.table.names, table.names);
	CU_ASSERT_STRING_EQUAL(t.giver, FIRST);
}

static void a_worker_is_named_as_far_as_it_is_known(void)
{
	char giver[MST_GIVER_LEN];

	CU_ASSERT_STRING_EQUAL(mst_tables_giver(4, "10.0.0.2:6", 8, giver), SECOND);
	CU_ASSERT_STRING_EQUAL(mst_tables_giver(-1, "10.0.0.2:6", 8, giver),
			       "a worker without a rank (10.0.0.2:6, process 8)");
}

/* ---- which tensor ---- */

#define TENSORS 3u

/* The tensors of FIRST. */
static const struct muster_tensor model[TENSORS] = {
	{ "conv1.weight", 0, 128, 1, 1 },
	{ "conv1.bias", 128, 8, 1, 1 },
	{ NULL, 136, 4, 1, 1 },
};

/* Is SECOND, who has these tensors, told @what? Its table comes in pieces of @max. */
static bool told(const struct muster_tensor *other, uint32_t count, uint32_t max, const char *what)
{
	struct mst_tables t = { 0 };
	struct mst_table of;
	struct mst_tensor_table *kept;
	static struct mst_tensor_piece piece;
	bool differs = false;

	mst_table_of(model, TENSORS, &of);
	mst_tables_take(&t, &of, FIRST);
	CU_ASSERT_EQUAL_FATAL(mst_tensor_table_new(&of, 140, &kept), 0);
	(void)mst_tensor_piece_of(model, TENSORS, 0, TENSORS, &piece);
	CU_ASSERT_PTR_NULL(mst_tensor_table_take(kept, &piece));
	why.text[0] = '\0';
	for (uint32_t at = 0; at < count && !differs;) {
		at = mst_tensor_piece_of(other, count, at, max, &piece);
		differs = mst_tables_differ(&t, kept, &piece, SECOND, &why);
	}
	mst_tensor_table_free(kept);
	return differs == (what != NULL) && (what == NULL || strstr(why.text, what) != NULL);
}

static void the_tensor_that_differs_is_named(void)
{
	struct muster_tensor other[TENSORS + 1];

	for (uint32_t max = 1; max <= TENSORS + 1; max++) {
		memcpy(other, model, sizeof(model));
		CU_ASSERT(told(other, TENSORS, max, NULL));
		other[0].count = 64;
		CU_ASSERT(told(other, TENSORS, max,
			       "tensor number 0 is \"conv1.weight\" of 64 elements at " SECOND
			       ", and \"conv1.weight\" of 128 elements at " FIRST ": "));
		memcpy(other, model, sizeof(model));
		other[1].name = "conv1.beta";
		CU_ASSERT(told(other, TENSORS, max,
			       "tensor number 1 is \"conv1.beta\" of 8 elements at " SECOND
			       ", and \"conv1.bias\" of 8 elements at " FIRST));
		CU_ASSERT(told(model, TENSORS - 1, max,
			       "tensor number 2 is not there at " SECOND
			       ", and one without a name, of 4 elements at " FIRST));
		memcpy(other, model, sizeof(model));
		other[TENSORS] = (struct muster_tensor){ "fc.weight", 140, 9, 1, 1 };
		CU_ASSERT(told(other, TENSORS + 1, max,
			       "tensor number 3 is \"fc.weight\" of 9 elements at " SECOND
			       ", and not there at " FIRST));
	}
}

/* Longer names are cut, also in the middle of a character. */
static void long_names_are_cut_and_the_sentence_stays_clean(void)
{
	char name[MUSTER_TENSOR_NAME_MAX + 1] = "x";
	struct muster_tensor other = { name, 0, 140, 1, 1 };

	for (size_t i = 1; i + 1 < MUSTER_TENSOR_NAME_MAX; i += 2)
		memcpy(name + i, "\303\251", 2);
	CU_ASSERT(told(&other, 1, 1, "of 140 elements at " SECOND));
	CU_ASSERT(strlen(why.text) < MST_REASON_LEN - 1);
	CU_ASSERT(mst_text_is_clean(why.text));
}

static CU_TestInfo cases[] = {
	{ "the tensor that differs is named", the_tensor_that_differs_is_named },
	{ "long names are cut, and the sentence stays clean",
	  long_names_are_cut_and_the_sentence_stays_clean },
	{ "the same table is accepted", the_same_table_is_accepted },
	{ "a worker may give none", a_worker_may_give_none },
	{ "another table is refused, and both workers are named",
	  another_table_is_refused_and_both_workers_named },
	{ "scales are those of the first hello", scales_are_those_of_the_first_hello },
	{ "norms need the table of the first hello", norms_need_the_table_of_the_first_hello },
	{ "the first table stays", the_first_table_stays },
	{ "a worker is named as far as it is known", a_worker_is_named_as_far_as_it_is_known },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("tables", cases);
}
