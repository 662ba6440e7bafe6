/* SPDX-License-Identifier: MIT */
/* Whether a peer's host counts as dead, by what a kernel that is made up says of the connection. */
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/transport/tcp/tcp.h"
#include "tests/ut.h"

#define DEAD_NS (2 * MST_SECOND)
#define NO_FD (-1)
#define LOOK_MS 250u

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);

static struct tcp_info kernel;

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	if (level != IPPROTO_TCP || name != TCP_INFO)
		return __real_getsockopt(fd, level, name, value, len);
	memcpy(value, &kernel, *len < sizeof(kernel) ? *len : sizeof(kernel));
	return 0;
}

/* Nothing is heard or sent from now on, however often one looks. Return: the ms after which the
 * host counts as dead; 0: it never does. */
static uint64_t dead_after_ms(void)
{
	struct mst_tcp_pulse p = { 0 };
	uint64_t now_ns = 100 * MST_SECOND;

	for (uint32_t ms = 0; ms < 20000; ms += LOOK_MS) {
		if (mst_tcp_pulse_look(&p, NO_FD, now_ns, DEAD_NS) == MST_TCP_DEAD)
			return ms;
		now_ns += LOOK_MS * MST_MS;
		kernel.tcpi_last_data_sent += LOOK_MS;
		kernel.tcpi_last_ack_recv += LOOK_MS;
	}
	return 0;
}

static void what_was_sent_after_the_last_answer_is_unanswered(void)
{
	kernel = (struct tcp_info){ .tcpi_unacked = 1,
				    .tcpi_last_data_sent = 5,
				    .tcpi_last_ack_recv = 6 };
	CU_ASSERT_EQUAL(dead_after_ms(), 1500);
}

/* The kernel counts in milliseconds. */
static void what_was_sent_with_the_last_answer_is_unanswered_too(void)
{
	kernel = (struct tcp_info){ .tcpi_unacked = 1,
				    .tcpi_last_data_sent = 5,
				    .tcpi_last_ack_recv = 5 };
	CU_ASSERT_EQUAL(dead_after_ms(), 1500);
}

/* Some of what was sent was answered, and then the card went down: what the kernel sends again
 * does not get as far as to count as sent. */
static void what_cannot_be_sent_again_is_unanswered(void)
{
	kernel = (struct tcp_info){ .tcpi_unacked = 3,
				    .tcpi_last_data_sent = 9,
				    .tcpi_last_ack_recv = 5 };
	CU_ASSERT_EQUAL(dead_after_ms(), 0);
	kernel.tcpi_retransmits = 1;
	CU_ASSERT_EQUAL(dead_after_ms(), 1500);
}

static void a_full_window_is_unanswered_while_it_is_probed(void)
{
	kernel = (struct tcp_info){ .tcpi_last_data_sent = 900, .tcpi_last_ack_recv = 300 };
	CU_ASSERT_EQUAL(dead_after_ms(), 0);
	kernel.tcpi_probes = 1;
	CU_ASSERT_EQUAL(dead_after_ms(), 1500);
}

static void whoever_answers_now_and_then_is_alive(void)
{
	struct mst_tcp_pulse p = { 0 };
	uint64_t now_ns = 100 * MST_SECOND;

	kernel = (struct tcp_info){ .tcpi_unacked = 2, .tcpi_retransmits = 3 };
	for (uint32_t ms = 0; ms < 20000; ms += LOOK_MS) {
		kernel.tcpi_last_ack_recv = ms % 1250;
		kernel.tcpi_last_data_sent = ms % 200;
		CU_ASSERT_NOT_EQUAL(mst_tcp_pulse_look(&p, NO_FD, now_ns, DEAD_NS), MST_TCP_DEAD);
		now_ns += LOOK_MS * MST_MS;
	}
}

static void an_idle_connection_is_asked(void)
{
	struct mst_tcp_pulse p = { 0 };

	kernel = (struct tcp_info){ .tcpi_last_data_sent = 100, .tcpi_last_ack_recv = 100 };
	CU_ASSERT_EQUAL(mst_tcp_pulse_look(&p, NO_FD, MST_SECOND, DEAD_NS), MST_TCP_HEARD);
	kernel.tcpi_last_ack_recv = 400;
	CU_ASSERT_EQUAL(mst_tcp_pulse_look(&p, NO_FD, MST_SECOND, DEAD_NS), MST_TCP_QUIET);
}

int main(void)
{
	static CU_TestInfo cases[] = {
		{ "what was sent after the last answer is unanswered",
		  what_was_sent_after_the_last_answer_is_unanswered },
		{ "what was sent with the last answer is unanswered, too",
		  what_was_sent_with_the_last_answer_is_unanswered_too },
		{ "what cannot be sent again is unanswered",
		  what_cannot_be_sent_again_is_unanswered },
		{ "a full window is unanswered while it is probed",
		  a_full_window_is_unanswered_while_it_is_probed },
		{ "whoever answers now and then is alive", whoever_answers_now_and_then_is_alive },
		{ "an idle connection is asked", an_idle_connection_is_asked },
		CU_TEST_INFO_NULL,
	};

	return ut_main("tcp_pulse", cases);
}
