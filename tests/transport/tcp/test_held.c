/* SPDX-License-Identifier: MIT */
/* How much the kernel may hold unsent, by what it says of the connection. Here the kernel says what
 * a case lets it say. */
#include <linux/tcp.h>
#include <string.h>

#include "common/transport/tcp/tcp.h"
#include "tests/ut.h"

#define MIB UINT64_C(1048576)

static struct tcp_info says;
static bool says_nothing;
static uint32_t held;
static int told_bytes; /* how much the kernel is to hold; 0: it was not told */

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len);

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	(void)fd, (void)level, (void)name, (void)len;
	memcpy(value, &says, sizeof(says));
	return says_nothing ? -1 : 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	(void)fd, (void)level, (void)len;
	if (name == TCP_NOTSENT_LOWAT)
		memcpy(&told_bytes, value, sizeof(told_bytes));
	return 0;
}

static void begin(void)
{
	says = (struct tcp_info){ 0 };
	says_nothing = false;
	held = 0;
}

static int told_at(uint64_t bytes_per_second)
{
	told_bytes = 0;
	says.tcpi_delivery_rate = bytes_per_second;
	mst_tcp_held_adjust(&held, 0);
	return told_bytes;
}

/* 8 ms of what a connection takes, at least 256 KiB. */
static void the_kernel_holds_what_it_sends_soon(void)
{
	begin();
	CU_ASSERT_EQUAL(told_at(0), 256 << 10);
	CU_ASSERT_EQUAL(told_at(12 * MIB), 0); /* the same */
	CU_ASSERT_EQUAL(told_at(120 * MIB), 1 << 20);
	CU_ASSERT_EQUAL(told_at(1200 * MIB), 16 << 20);
	CU_ASSERT_EQUAL(told_at(UINT64_MAX), 1 << 30);
	CU_ASSERT_EQUAL(told_at(12 * MIB), 256 << 10);
}

static void a_rate_that_the_sender_has_limited_makes_it_hold_no_less(void)
{
	begin();
	CU_ASSERT_EQUAL(told_at(120 * MIB), 1 << 20);
	says.tcpi_delivery_rate_app_limited = 1;
	CU_ASSERT_EQUAL(told_at(MIB), 0);
	CU_ASSERT_EQUAL(told_at(240 * MIB), 2 << 20);
}

static void a_kernel_that_says_nothing_is_told_nothing(void)
{
	begin();
	says_nothing = true;
	CU_ASSERT_EQUAL(told_at(120 * MIB), 0);
	CU_ASSERT_EQUAL(held, 0);
}

int main(void)
{
	static CU_TestInfo cases[] = {
		{ "the kernel holds what it sends soon", the_kernel_holds_what_it_sends_soon },
		{ "a rate that the sender has limited makes it hold no less",
		  a_rate_that_the_sender_has_limited_makes_it_hold_no_less },
		{ "a kernel that says nothing is told nothing",
		  a_kernel_that_says_nothing_is_told_nothing },
		CU_TEST_INFO_NULL,
	};

	return ut_main("tcp_held", cases);
}
