/* SPDX-License-Identifier: MIT */
/* Where a server has been called, and what becomes of the address of its listener by that. */
#include "common/transport/called.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/ut.h"

static const char *filled(const char *address, size_t room, const char *host)
{
	static char text[128];

	CU_ASSERT_FATAL(room <= sizeof(text) && strlen(address) < room);
	memcpy(text, address, strlen(address) + 1);
	mst_called_fill(text, room, host);
	return text;
}

static void a_host_takes_the_place_of_a_star(void)
{
	CU_ASSERT_STRING_EQUAL(filled("tcp:*:4711,10.0.0.1:4711", 128, "10.1.0.7"),
			       "tcp:10.1.0.7:4711,10.0.0.1:4711");
	CU_ASSERT_STRING_EQUAL(filled("tcp:[fd00::1]:1,*:1", 128, "[fe80::1%eth0]"),
			       "tcp:[fd00::1]:1,[fe80::1%eth0]:1");
	CU_ASSERT_STRING_EQUAL(filled("a:*:1,*:2", 128, "h"), "a:h:1,h:2");
}

static void what_has_no_star_for_a_host_stays_as_it_is(void)
{
	CU_ASSERT_STRING_EQUAL(filled("tcp:10.0.0.1:1", 128, "10.1.0.7"), "tcp:10.0.0.1:1");
	CU_ASSERT_STRING_EQUAL(filled("/muster-*:1", 128, "10.1.0.7"), "/muster-*:1");
	CU_ASSERT_STRING_EQUAL(filled("tcp:*", 128, "10.1.0.7"), "tcp:*");
	CU_ASSERT_STRING_EQUAL(filled("tcp:*:1", 128, ""), "tcp:*:1");
	CU_ASSERT_STRING_EQUAL(filled("", 128, "10.1.0.7"), "");
}

/* "tcp:10.1.0.7:1" has 14 characters and a NUL. */
static void nothing_is_written_beyond_the_room(void)
{
	CU_ASSERT_STRING_EQUAL(filled("tcp:*:1", 15, "10.1.0.7"), "tcp:10.1.0.7:1");
	CU_ASSERT_STRING_EQUAL(filled("tcp:*:1", 14, "10.1.0.7"), "tcp:*:1");
}

static void the_host_of_an_endpoint_is_what_stands_before_its_port(void)
{
	char host[MST_CALLED_LEN], long_one[200];

	memset(long_one, 'x', sizeof(long_one));
	memcpy(long_one + sizeof(long_one) - 3, ":1", 3);
	CU_ASSERT_STRING_EQUAL(mst_called_host_of("10.0.0.1:4711", host), "10.0.0.1");
	CU_ASSERT_STRING_EQUAL(mst_called_host_of("[fd00::1]:4711", host), "[fd00::1]");
	CU_ASSERT_STRING_EQUAL(mst_called_host_of("nobody", host), "");
	CU_ASSERT_STRING_EQUAL(mst_called_host_of(long_one, host), "");
}

static void this_host_is_known(void)
{
	CU_ASSERT(mst_called_is_here("127.0.0.1") && mst_called_is_here("127.9.9.9"));
	CU_ASSERT(mst_called_is_here("[::1]"));
	CU_ASSERT_FALSE(mst_called_is_here("10.0.0.1") || mst_called_is_here("[fd00::1]"));
	CU_ASSERT_FALSE(mst_called_is_here(""));
}

/* The host that a socket sees that calls a listener of this family; NULL: there is no such family
 * here. */
static const char *called(const struct sockaddr *at, socklen_t len)
{
	static char host[MST_CALLED_LEN];
	struct sockaddr_storage bound;
	socklen_t bound_len = sizeof(bound);
	int listener = socket(at->sa_family, SOCK_STREAM, 0);
	int fd = socket(at->sa_family, SOCK_STREAM, 0);
	bool there = bind(listener, at, len) == 0;

	if (there) {
		CU_ASSERT_EQUAL_FATAL(listen(listener, 1), 0);
		CU_ASSERT_EQUAL(getsockname(listener, (struct sockaddr *)&bound, &bound_len), 0);
		CU_ASSERT_EQUAL_FATAL(connect(fd, (struct sockaddr *)&bound, bound_len), 0);
		(void)mst_called_host(fd, host);
	}
	close(fd);
	close(listener);
	return there ? host : NULL;
}

static void the_host_of_a_connection_is_its_other_end(void)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	char host[MST_CALLED_LEN] = "of another";

	v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 4);
	CU_ASSERT_STRING_EQUAL(called((struct sockaddr *)&v4, sizeof(v4)), "127.0.0.5");
	const char *far = called((struct sockaddr *)&v6, sizeof(v6));
	CU_ASSERT(far == NULL || strcmp(far, "[::1]") == 0);
	CU_ASSERT_STRING_EQUAL(mst_called_host(-1, host), "");
}

static CU_TestInfo cases[] = {
	{ "a host takes the place of a star", a_host_takes_the_place_of_a_star },
	{ "what has no star for a host stays as it is",
	  what_has_no_star_for_a_host_stays_as_it_is },
	{ "nothing is written beyond the room", nothing_is_written_beyond_the_room },
	{ "the host of an endpoint is what stands before its port",
	  the_host_of_an_endpoint_is_what_stands_before_its_port },
	{ "this host is known", this_host_is_known },
	{ "the host of a connection is its other end", the_host_of_a_connection_is_its_other_end },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("called", cases);
}
