/* SPDX-License-Identifier: MIT */
/* The private copy of the last result: it is never a torn one. */
#include <string.h>

#include "client/local/result_copy.h"
#include "tests/fixtures.h"
#include "tests/ut.h"

#define BUFFERS 4u
#define STRIDE 4096u
#define ELEMS 8u
#define HELD 7u /* the version */

static struct mst_links links;
static struct mst_contiguous view;
static struct mst_link link_of[2];
static _Alignas(64) char published[2][BUFFERS * STRIDE + 4096];
static _Alignas(64) char inbound[2][4096];
static float arrived[ELEMS];
static struct mst_held held;
static struct mst_result_copy copy;
static uint64_t meanwhile; /* a server begins to write this version while one is copied; 0: none */

/* The second server begins to write a version where the worker holds one. */
static void write_over(uint64_t version)
{
	char *mark = published[1] + BUFFERS * STRIDE + sizeof(version) * (size_t)held.buffer;

	memmove(mark, &version, sizeof(version));
	for (uint32_t i = ELEMS / 2; i < ELEMS; i++)
		arrived[i] = (float)version;
}

/* By which of the two calls it is copied the compiler decides. */
void *__real_memcpy(void *to, const void *from, size_t bytes);
void *__wrap_memcpy(void *to, const void *from, size_t bytes);
void *__wrap___memcpy_chk(void *to, const void *from, size_t bytes, size_t room);
void *__wrap_memcpy(void *to, const void *from, size_t bytes)
{
	void *out = __real_memcpy(to, from, bytes);

	if (from == arrived && meanwhile != 0)
		write_over(meanwhile);
	return out;
}
void *__wrap___memcpy_chk(void *to, const void *from, size_t bytes, size_t room)
{
	CU_ASSERT_FATAL(bytes <= room);
	return __wrap_memcpy(to, from, bytes);
}

static void begin(void)
{
	uint64_t version = HELD;

	fix_net_begin(NULL, NULL);
	fix_transport.maps = true;
	meanwhile = 0;
	links = (struct mst_links){ .transport = &fix_transport, .count = 2, .marked = true };
	held = (struct mst_held){ .version = HELD, .where = MST_WHERE_IN_PLACE, .buffer = 2 };
	view = (struct mst_contiguous){ .links = &links,
					.elems = ELEMS,
					.result_type_size = sizeof(float),
					.published.at = (char *)arrived };
	for (uint32_t k = 0; k < 2; k++) {
		link_of[k] = (struct mst_link){ .inbound = inbound[k], .shared = published[k] };
		links.part[k] = (struct mst_part){ .link = &link_of[k],
						   .number = k,
						   .marks = BUFFERS * STRIDE,
						   .layout.down_mark = 128 };
		memmove(published[k] + BUFFERS * STRIDE + sizeof(version) * 2, &version,
			sizeof(version));
	}
	for (uint32_t i = 0; i < ELEMS; i++)
		arrived[i] = HELD;
}

static void take(void)
{
	mst_result_copy_take(&copy, &view, &held);
}

static bool has(uint64_t version)
{
	const float *at = copy.data;

	for (uint32_t i = 0; at != NULL && i < ELEMS; i++) {
		if (at[i] != (float)version)
			return false;
	}
	return at != NULL && copy.bytes == sizeof(arrived);
}

static void what_servers_write_later_never_reaches_the_copy(void)
{
	begin();
	take();
	CU_ASSERT_TRUE(has(HELD));
	write_over(HELD + BUFFERS);
	CU_ASSERT_TRUE(has(HELD));
	mst_result_copy_drop(&copy);
}

static void torn_result_is_not_copied(void)
{
	begin();
	write_over(HELD + BUFFERS);
	take();
	CU_ASSERT_PTR_NULL(copy.data);
}

/* A server that stood still wakes up. */
static void result_that_is_torn_while_it_is_copied_is_no_copy(void)
{
	begin();
	meanwhile = HELD + BUFFERS;
	take();
	CU_ASSERT_PTR_NULL(copy.data);
	CU_ASSERT_EQUAL(copy.bytes, 0);
}

static void torn_result_leaves_the_copy_before_it(void)
{
	begin();
	take();
	write_over(HELD + BUFFERS);
	take();
	CU_ASSERT_TRUE(has(HELD));
	held.where = MST_WHERE_KEEP; /* nothing has been brought since */
	take();
	CU_ASSERT_TRUE(has(HELD));
	mst_result_copy_drop(&copy);
}

static void whole_result_takes_the_place_of_the_copy_before_it(void)
{
	begin();
	take();
	begin();
	for (uint32_t i = 0; i < ELEMS; i++)
		arrived[i] = HELD + 1;
	take();
	CU_ASSERT_TRUE(has(HELD + 1));
	mst_result_copy_drop(&copy);
	CU_ASSERT_PTR_NULL(copy.data);
	mst_result_copy_drop(&copy); /* none */
}

static CU_TestInfo cases[] = {
	{ "what servers write later never reaches the copy",
	  what_servers_write_later_never_reaches_the_copy },
	{ "a torn result is not copied", torn_result_is_not_copied },
	{ "a result that is torn while it is copied is no copy",
	  result_that_is_torn_while_it_is_copied_is_no_copy },
	{ "a torn result leaves the copy before it", torn_result_leaves_the_copy_before_it },
	{ "a whole result takes the place of the copy before it",
	  whole_result_takes_the_place_of_the_copy_before_it },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("private copies of results", cases);
}
