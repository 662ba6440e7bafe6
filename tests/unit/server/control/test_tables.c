/* SPDX-License-Identifier: MIT */
/* Tables of tensors that workers give: which go together, and what is said of those that do not. */
#include <errno.h>
#include <string.h>

#include "server/control/tables.h"
#include "tests/ut.h"

#define FIRST "rank 0 (10.0.0.1:5, process 7)"
#define SECOND "rank 4 (10.0.0.2:6, process 8)"

static const struct mst_table table = { 3, 0, 9, 11, 22, 0 };
static char why[MST_REASON_LEN];

/* Is @second refused where @first has been given, in a sentence that says @what? */
static bool refused(const struct mst_table *first, const struct mst_table *second, const char *what)
{
	struct mst_tables t = { 0 };

	CU_ASSERT_EQUAL(mst_tables_check(&t, first, FIRST, why, sizeof(why)), 0);
	mst_tables_take(&t, first, FIRST);
	return mst_tables_check(&t, second, SECOND, why, sizeof(why)) == -EINVAL &&
	       strstr(why, what) != NULL && strstr(why, FIRST) != NULL &&
	       strstr(why, SECOND) != NULL;
}

static bool accepted(const struct mst_table *first, const struct mst_table *second)
{
	struct mst_tables t = { 0 };

	mst_tables_take(&t, first, FIRST);
	return mst_tables_check(&t, second, SECOND, why, sizeof(why)) == 0;
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
	return mst_tables_check(&t, second, SECOND, why, sizeof(why)) == -EINVAL &&
	       strstr(why, what) != NULL && strstr(why, FIRST) != NULL &&
	       strstr(why, SECOND) != NULL;
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
	CU_ASSERT_EQUAL(mst_tables_check(&t, &table, SECOND, why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(mst_tables_check(&t, &none, SECOND, why, sizeof(why)), -EINVAL);
	CU_ASSERT(strstr(why, SECOND " gives no table of tensors, but " FIRST " has given one, and "
				     "the optimiser lamb takes the norms of tensors") != NULL);
	t = (struct mst_tables){ 0 };
	mst_tables_fix(&t, &none, FIRST, "lars");
	CU_ASSERT_EQUAL(mst_tables_check(&t, &none, SECOND, why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(mst_tables_check(&t, &table, SECOND, why, sizeof(why)), -EINVAL);
	CU_ASSERT(strstr(why, "gives a table of tensors, but " FIRST " has given none") != NULL);
}

/* Whoever gives a table first, not whoever comes first. */
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

static CU_TestInfo cases[] = {
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
