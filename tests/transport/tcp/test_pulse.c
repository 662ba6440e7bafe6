/* SPDX-License-Identifier: MIT */
/* Whether a peer's host counts as dead, by what the kernel says of the connection. Here the kernel
 * says what a case lets it say, and the clock is the case's. */
#include <linux/tcp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>

#include "common/base/clock.h"
#include "common/transport/tcp/tcp.h"
#include "tests/ut.h"

#define DEAD_NS (2 * MST_SECOND)
#define LOOK_NS (DEAD_NS / 8)

static struct tcp_info says;
static uint64_t now_ns, heard_ns;
static struct mst_tcp_pulse pulse;

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_ioctl(int fd, unsigned long request, ...);

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	(void)fd, (void)level, (void)name, (void)len;
	says.tcpi_last_ack_recv = (uint32_t)((now_ns - heard_ns) / MST_MS);
	memcpy(value, &says, sizeof(says));
	return 0;
}

/* Nothing is unsent. */
int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list list;

	(void)fd;
	va_start(list, request);
	*va_arg(list, int *) = 0;
	va_end(list);
	return 0;
}

static void begin(void)
{
	says = (struct tcp_info){ 0 };
	pulse = (struct mst_tcp_pulse){ 0 };
	now_ns = heard_ns = 1000 * MST_SECOND;
}

/* The next look. */
static enum mst_tcp_life look(void)
{
	now_ns += LOOK_NS;
	return mst_tcp_pulse_look(&pulse, 0, now_ns, DEAD_NS);
}

/* Looks for so long; the first answer that is another than @same, or @same. */
static enum mst_tcp_life look_for(uint64_t long_ns, enum mst_tcp_life same)
{
	uint64_t end_ns = now_ns + long_ns;
	enum mst_tcp_life life = same;

	while (now_ns < end_ns && life == same)
		life = look();
	return life;
}

static void data_that_nobody_acknowledges_are_asked_for_the_time_and_no_longer(void)
{
	begin();
	says.tcpi_unacked = 1;
	uint64_t began_ns = now_ns;
	CU_ASSERT_EQUAL(look_for(DEAD_NS, MST_TCP_ASKED), MST_TCP_DEAD);
	CU_ASSERT(now_ns - began_ns > DEAD_NS / 2);
}

/* Some of what was sent was answered, and then this host's own card went down: what the kernel
 * sends again does not get as far as to count as sent. */
static void data_that_cannot_be_sent_again_end_the_link(void)
{
	begin();
	says.tcpi_unacked = 3;
	says.tcpi_last_data_sent = UINT32_MAX; /* long before the last answer */
	CU_ASSERT_EQUAL(look_for(4 * DEAD_NS, MST_TCP_HEARD), MST_TCP_HEARD);
	heard_ns = now_ns;
	says.tcpi_retransmits = 1;
	CU_ASSERT_EQUAL(look_for(DEAD_NS, MST_TCP_ASKED), MST_TCP_DEAD);
}

static void an_idle_peer_is_to_be_asked(void)
{
	begin();
	CU_ASSERT_EQUAL(look_for(DEAD_NS / 16, MST_TCP_HEARD), MST_TCP_QUIET);
}

/* Each probe but one in a row is answered, however long the kernel waits before the next. */
static void a_lost_answer_to_a_probe_ends_no_link(void)
{
	begin();
	for (uint64_t wait_ns = MST_SECOND; wait_ns < 120 * MST_SECOND; wait_ns *= 2) {
		says.tcpi_probes = 1;
		CU_ASSERT_EQUAL(look_for(wait_ns, MST_TCP_ASKED), MST_TCP_ASKED);
		says.tcpi_probes = 0;
		heard_ns = now_ns;
		CU_ASSERT_NOT_EQUAL(look(), MST_TCP_DEAD);
	}
}

static void probes_that_nobody_answers_end_the_link(void)
{
	begin();
	for (uint8_t probes = 1; probes < 3; probes++) { /* one each second */
		says.tcpi_probes = probes;
		CU_ASSERT_EQUAL(look_for(MST_SECOND, MST_TCP_ASKED), MST_TCP_ASKED);
	}
	says.tcpi_probes = 3;
	CU_ASSERT_EQUAL(look_for(MST_SECOND, MST_TCP_ASKED), MST_TCP_DEAD);
}

/* A kernel that probes each time twice as late: the third would come after most of a minute. */
static void late_probes_that_nobody_answers_end_the_link_too(void)
{
	begin();
	says.tcpi_probes = 1;
	CU_ASSERT_EQUAL(look_for(20 * MST_SECOND, MST_TCP_ASKED), MST_TCP_ASKED);
	says.tcpi_probes = 2;
	CU_ASSERT_EQUAL(look_for(MST_SECOND, MST_TCP_ASKED), MST_TCP_DEAD);
}

/* A host that was suspended, or a process that was stopped: what was asked before has to be asked
 * for long enough after that. */
static void time_in_which_nobody_looked_is_not_the_peers(void)
{
	begin();
	says.tcpi_unacked = 1;
	CU_ASSERT_EQUAL(look(), MST_TCP_ASKED);
	now_ns += 3600 * MST_SECOND;
	CU_ASSERT_EQUAL(look(), MST_TCP_ASKED);
	uint64_t began_ns = now_ns;
	CU_ASSERT_EQUAL(look_for(DEAD_NS, MST_TCP_ASKED), MST_TCP_DEAD);
	CU_ASSERT(now_ns - began_ns > DEAD_NS / 4);
}

/* So does one that looks seldom, such as a data thread that computes sums between two looks. */
static void an_end_that_looks_seldom_loses_no_living_peer(void)
{
	begin();
	says.tcpi_unacked = 1;
	for (int i = 0; i < 100; i++) {
		now_ns += DEAD_NS;
		heard_ns = i % 4 == 3 ? now_ns : heard_ns; /* in every fourth look */
		CU_ASSERT_NOT_EQUAL(look(), MST_TCP_DEAD);
	}
	CU_ASSERT_EQUAL(look_for(8 * DEAD_NS, MST_TCP_ASKED), MST_TCP_DEAD);
}

int main(void)
{
	static CU_TestInfo cases[] = {
		{ "data that nobody acknowledges are asked for the time and no longer",
		  data_that_nobody_acknowledges_are_asked_for_the_time_and_no_longer },
		{ "data that cannot be sent again end the link",
		  data_that_cannot_be_sent_again_end_the_link },
		{ "an idle peer is to be asked", an_idle_peer_is_to_be_asked },
		{ "a lost answer to a probe ends no link", a_lost_answer_to_a_probe_ends_no_link },
		{ "probes that nobody answers end the link",
		  probes_that_nobody_answers_end_the_link },
		{ "late probes that nobody answers end the link, too",
		  late_probes_that_nobody_answers_end_the_link_too },
		{ "time in which nobody looked is not the peer's",
		  time_in_which_nobody_looked_is_not_the_peers },
		{ "an end that looks seldom loses no living peer",
		  an_end_that_looks_seldom_loses_no_living_peer },
		CU_TEST_INFO_NULL,
	};

	return ut_main("tcp_pulse", cases);
}
