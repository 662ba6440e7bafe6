/* SPDX-License-Identifier: MIT */
/* The promises of common/base/log_queue.h. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log_queue.h"
#include "tests/ut.h"

static struct mst_log_queue queue;

static bool put(const char *line, bool urgent)
{
	return mst_log_queue_put(&queue, line, strlen(line), urgent);
}

/* Lines of one length, with a number, until there is no more room. Return: how many there are. */
static unsigned fill(unsigned first, size_t len, bool urgent)
{
	char line[MST_LOG_LINE_MAX + 1];
	unsigned count = 0;

	do {
		(void)snprintf(line, sizeof(line), "%0*u", (int)len, first + count);
		count++;
	} while (put(line, urgent));
	return count - 1;
}

static void takes(const char *want)
{
	char line[MST_LOG_LINE_MAX + 1];
	uint64_t dropped = 9;
	size_t len = mst_log_queue_take(&queue, line, &dropped);

	line[len] = '\0';
	CU_ASSERT_STRING_EQUAL(line, want);
	CU_ASSERT_EQUAL(dropped, 0);
}

static void takes_numbers(unsigned first, unsigned count, size_t len)
{
	char want[MST_LOG_LINE_MAX + 1];

	for (unsigned i = 0; i < count; i++) {
		(void)snprintf(want, sizeof(want), "%0*u", (int)len, first + i);
		takes(want);
	}
}

static void takes_gap(uint64_t want)
{
	char line[MST_LOG_LINE_MAX];
	uint64_t dropped = 0;

	CU_ASSERT_EQUAL(mst_log_queue_take(&queue, line, &dropped), 0);
	CU_ASSERT_EQUAL(dropped, want);
}

static void is_empty(void)
{
	CU_ASSERT_TRUE(mst_log_queue_is_empty(&queue));
	takes_gap(0);
}

static void lines_keep_their_order(void)
{
	memset(&queue, 0, sizeof(queue));
	is_empty();
	for (unsigned round = 0; round < 3000; round++) { /* several times round the ring */
		CU_ASSERT_TRUE(put("a", false) && put("bcd", true) &&
			       put("a line of 30 characters, full", false));
		CU_ASSERT_FALSE(mst_log_queue_is_empty(&queue));
		takes("a");
		takes("bcd");
		takes("a line of 30 characters, full");
	}
	is_empty();
}

static void what_finds_no_room_is_counted(void)
{
	memset(&queue, 0, sizeof(queue));
	unsigned first = fill(0, 100, false);
	CU_ASSERT(first * 100 <= MST_LOG_QUEUE_BYTES && first * 150 > MST_LOG_QUEUE_BYTES);
	CU_ASSERT_EQUAL(queue.dropped, 1);
	CU_ASSERT_EQUAL(fill(first, 100, false), 0);
	takes_numbers(0, first, 100);
	CU_ASSERT_FALSE(mst_log_queue_is_empty(&queue));
	takes_gap(2);
	is_empty();
}

static void gap_has_its_place(void)
{
	memset(&queue, 0, sizeof(queue));
	unsigned first = fill(0, 100, false);
	takes_numbers(0, 10, 100);
	unsigned second = fill(1000, 100, false);
	CU_ASSERT(second >= 8 && second <= 10);
	takes_numbers(10, first - 10, 100);
	takes_gap(1);
	takes_numbers(1000, second, 100);
	takes_gap(1);
	is_empty();
}

static void urgent_lines_have_a_reserve(void)
{
	memset(&queue, 0, sizeof(queue));
	unsigned first = fill(0, 100, false);
	unsigned second = fill(1000, 100, true);
	CU_ASSERT(second * 103 >= MST_LOG_QUEUE_RESERVE - 250);
	CU_ASSERT_FALSE(put("-", false));
	CU_ASSERT(queue.put - queue.taken <= MST_LOG_QUEUE_BYTES);
	takes_numbers(0, first, 100);
	takes_gap(1);
	takes_numbers(1000, second, 100);
	takes_gap(2);
	is_empty();
}

static void longest_line_goes_round_the_end(void)
{
	memset(&queue, 0, sizeof(queue));
	for (unsigned round = 0; round < 200; round++) {
		unsigned count = fill(round, MST_LOG_LINE_MAX, false);
		CU_ASSERT(count > 50);
		takes_numbers(round, count, MST_LOG_LINE_MAX);
		takes_gap(1);
		CU_ASSERT_TRUE(put("x", false)); /* so that the next round begins elsewhere */
		takes("x");
	}
	is_empty();
}

/* The number is taken while the ring is empty; the record of it follows with the next line. */
static void number_is_given_once(void)
{
	memset(&queue, 0, sizeof(queue));
	unsigned first = fill(0, 100, false);
	takes_numbers(0, first, 100);
	takes_gap(1);
	CU_ASSERT_TRUE(mst_log_queue_is_empty(&queue));
	CU_ASSERT_TRUE(put("x", false));
	takes("x");
	is_empty();
}

static void cleared_queue_is_empty(void)
{
	memset(&queue, 0, sizeof(queue));
	(void)fill(0, 100, false);
	mst_log_queue_clear(&queue);
	is_empty();
	CU_ASSERT_TRUE(put("x", false));
	takes("x");
	is_empty();
}

#define LINES 300000u

static void *put_all(void *unused)
{
	char line[32];

	for (unsigned i = 0; i < LINES; i++) {
		(void)snprintf(line, sizeof(line), "%u", i);
		(void)put(line, false);
	}
	return unused;
}

static void nobody_needs_a_lock(void)
{
	char line[MST_LOG_LINE_MAX + 1];
	pthread_t other;
	unsigned next = 0, wrong = 0;

	memset(&queue, 0, sizeof(queue));
	CU_ASSERT_FATAL(pthread_create(&other, NULL, put_all, NULL) == 0);
	while (next < LINES && wrong == 0) {
		uint64_t dropped;
		size_t len = mst_log_queue_take(&queue, line, &dropped);
		unsigned number = next;

		line[len] = '\0';
		wrong += len > 0 && (sscanf(line, "%u", &number) != 1 || number != next);
		next += (unsigned)dropped + (len > 0);
	}
	pthread_join(other, NULL);
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(next, LINES);
	is_empty();
}

static CU_TestInfo cases[] = {
	{ "lines keep their order", lines_keep_their_order },
	{ "what finds no room is dropped and counted", what_finds_no_room_is_counted },
	{ "where lines are missing, their number stands in their place", gap_has_its_place },
	{ "urgent lines find room where others do not", urgent_lines_have_a_reserve },
	{ "the longest line goes round the ring's end", longest_line_goes_round_the_end },
	{ "the number of lines that are missing is given once", number_is_given_once },
	{ "a queue that is cleared is empty", cleared_queue_is_empty },
	{ "one thread puts while another takes, without a lock", nobody_needs_a_lock },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("log_queue", cases);
}
