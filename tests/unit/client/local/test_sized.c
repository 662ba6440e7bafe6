/* SPDX-License-Identifier: MIT */
/* Structs that begin with their size: programs that were compiled with an older header go on
 * working, and what a newer one wants and this library does not know is refused, never ignored. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "client/local/sized.h"
#include "tests/ut.h"

struct now {
	size_t size;
	uint64_t first, second;
};

static const struct mst_sized sized = { "figures", "FIGURES", sizeof(struct now) };
static struct mst_reason why;

static struct now defaults(void)
{
	return (struct now){ .size = sizeof(struct now), .first = 10, .second = 20 };
}

static void a_smaller_struct_keeps_the_defaults_of_what_it_lacks(void)
{
	struct now theirs = { .size = offsetof(struct now, second), .first = 1, .second = 99 };
	struct now ours = defaults();

	CU_ASSERT_EQUAL(mst_sized_read(&sized, &theirs, &ours, &why), 0);
	CU_ASSERT(ours.size == sizeof(ours) && ours.first == 1 && ours.second == 20);
}

static void a_larger_struct_is_read_if_its_tail_is_zero(void)
{
	struct {
		struct now known;
		uint64_t newer[4];
	} theirs = { .known = { sizeof(theirs), 1, 2 } };
	struct now ours = defaults();

	CU_ASSERT_EQUAL(mst_sized_read(&sized, &theirs, &ours, &why), 0);
	CU_ASSERT(ours.size == sizeof(ours) && ours.first == 1 && ours.second == 2);
	theirs.newer[3] = 1;
	ours = defaults();
	CU_ASSERT_EQUAL(mst_sized_read(&sized, &theirs, &ours, &why), -EINVAL);
	CU_ASSERT(strstr(why.text, "newer") != NULL && strstr(why.text, "figures") != NULL);
	CU_ASSERT_EQUAL(ours.first, 10);
}

static void a_size_that_nobody_set_is_refused(void)
{
	static const size_t unset[] = { 0, sizeof(size_t), MST_SIZED_MAX + 1, SIZE_MAX };

	for (size_t i = 0; i < sizeof(unset) / sizeof(unset[0]); i++) {
		struct now theirs = { .size = unset[i], .first = 1 }, ours = defaults();
		CU_ASSERT_EQUAL(mst_sized_read(&sized, &theirs, &ours, &why), -EINVAL);
		CU_ASSERT(strstr(why.text, "FIGURES") != NULL);
		CU_ASSERT_EQUAL(ours.first, 10);
	}
}

static void a_struct_is_written_as_far_as_it_goes(void)
{
	const struct now ours = { .size = sizeof(ours), .first = 1, .second = 2 };
	struct {
		struct now known;
		uint64_t newer, behind;
	} theirs;

	memset(&theirs, 0xee, sizeof(theirs));
	theirs.known.size = offsetof(struct now, second);
	mst_sized_write(&sized, &ours, &theirs);
	CU_ASSERT(theirs.known.size == offsetof(struct now, second) && theirs.known.first == 1);
	CU_ASSERT_EQUAL(theirs.known.second, UINT64_C(0xeeeeeeeeeeeeeeee));

	theirs.known.size = sizeof(struct now) + sizeof(theirs.newer);
	mst_sized_write(&sized, &ours, &theirs);
	CU_ASSERT(theirs.known.first == 1 && theirs.known.second == 2 && theirs.newer == 0);
	CU_ASSERT_EQUAL(theirs.behind, UINT64_C(0xeeeeeeeeeeeeeeee));
}

static CU_TestInfo cases[] = {
	{ "a smaller struct keeps the defaults of what it lacks",
	  a_smaller_struct_keeps_the_defaults_of_what_it_lacks },
	{ "a larger struct is read if its tail is zero",
	  a_larger_struct_is_read_if_its_tail_is_zero },
	{ "a size that nobody set is refused", a_size_that_nobody_set_is_refused },
	{ "a struct is written as far as it goes", a_struct_is_written_as_far_as_it_goes },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("sized", cases);
}
