/* SPDX-License-Identifier: MIT */
/* Addresses of servers as people type them. */
#include <errno.h>
#include <string.h>

#include "common/transport/hostport.h"
#include "tests/ut.h"

static bool is_read_as(const char *typed, const char *wanted)
{
	char text[MST_HOSTPORT_LEN];
	struct mst_hostport at;
	struct mst_reason why;

	return mst_hostport_read(typed, &at, &why) == 0 &&
	       strcmp(mst_hostport_text(typed, text), wanted) == 0;
}

static bool is_refused(const char *typed, const char *word)
{
	struct mst_hostport at;
	struct mst_reason why = { "" };

	return mst_hostport_read(typed, &at, &why) == -EINVAL && strstr(why.text, word) != NULL;
}

static void a_host_alone_has_the_default_port(void)
{
	CU_ASSERT(is_read_as("node1", "node1:17077"));
	CU_ASSERT(is_read_as("10.0.0.1", "10.0.0.1:17077"));
	CU_ASSERT(is_read_as("[fd00::1]", "[fd00::1]:17077"));
	CU_ASSERT(is_read_as("node1:0", "node1:0"));
	CU_ASSERT(is_read_as("[fe80::1%eth0]:65535", "[fe80::1%eth0]:65535"));
}

static void brackets_are_shown_where_they_lack(void)
{
	CU_ASSERT(is_refused("fd00::1:7777", "with the port it is [fd00::1]:7777"));
	CU_ASSERT(is_refused("fe80::1%eth0:7777", "[fe80::1%eth0]:7777"));
	CU_ASSERT(is_refused("fd00::1", "with a port it is [fd00::1]:17077"));
	CU_ASSERT(is_refused("::1", "[::1]:17077"));
	CU_ASSERT(is_refused("fe80::1%eth0", "[fe80::1%eth0]:17077"));
}

static void what_is_no_address_is_refused(void)
{
	static const char *const none[] = {
		"",           ":1",         "17077", "h:",    "h:65536",  "h:123456",
		"h:x",        "h:1:2",      "[h",    "[]",    "[]:1",     "[h]1",
		"[fd00::1]:", "http://h:1", "a/b",   "::%:1", "fd00::1%", "fe80::1%eth0:x",
	};
	char text[MST_HOSTPORT_LEN];

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		CU_ASSERT(is_refused(none[i], "is not HOST:PORT with a port from 0 to 65535"));
		CU_ASSERT_STRING_EQUAL(mst_hostport_text(none[i], text), none[i]);
	}
}

static void names_and_this_host_are_told_from_addresses(void)
{
	CU_ASSERT(mst_hostport_is_name("node1:1") && mst_hostport_is_name("localhost"));
	CU_ASSERT(!mst_hostport_is_name("127.0.1.1:1") && !mst_hostport_is_name("[::1]:1"));
	CU_ASSERT(!mst_hostport_is_name("[fe80::1%eth0]:1") && !mst_hostport_is_name(":1"));
	CU_ASSERT(mst_hostport_is_here("127.0.1.1:1") && mst_hostport_is_here("[::1]:1"));
	CU_ASSERT(mst_hostport_is_here("localhost"));
	CU_ASSERT(!mst_hostport_is_here("node1:1") && !mst_hostport_is_here("10.0.0.1:1"));
	CU_ASSERT(!mst_hostport_is_here("0.0.0.0:1"));
}

static bool advises(const char *typed, int error, const char *word)
{
	struct mst_reason out;

	return strstr(mst_hostport_advice(typed, error, &out), word) != NULL;
}

static void advice_is_for_what_has_happened(void)
{
	CU_ASSERT(advises("10.0.0.1:1", -ECONNREFUSED, "musterd --listen 10.0.0.1:1"));
	CU_ASSERT(advises("127.0.0.1:1", -ECONNREFUSED, "musterd or muster run"));
	CU_ASSERT(!advises("127.0.0.1:1", -ECONNREFUSED, "--listen"));
	CU_ASSERT(advises("10.0.0.1:1", -ETIMEDOUT, "firewall"));
	CU_ASSERT(!advises("10.0.0.1:1", -ECONNREFUSED, "firewall"));
}

static CU_TestInfo cases[] = {
	{ "a host alone has the default port", a_host_alone_has_the_default_port },
	{ "brackets are shown where they lack", brackets_are_shown_where_they_lack },
	{ "what is no address is refused", what_is_no_address_is_refused },
	{ "names and this host are told from addresses",
	  names_and_this_host_are_told_from_addresses },
	{ "advice is for what has happened", advice_is_for_what_has_happened },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("hostport", cases);
}
