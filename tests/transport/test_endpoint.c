/* SPDX-License-Identifier: MIT */
/* IP addresses with ports, as text and for the kernel. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "common/transport/endpoint.h"
#include "tests/ut.h"

static void addresses_are_read_and_written(void)
{
	static const char *const text[] = {
		"tcp:10.0.0.1:4711",
		"tcp:[fd00::1]:4711,10.0.0.1:1",
		"tcp:[fe80::1%lo]:65535",
		"tcp:1.1.1.1:1,1.1.1.2:1,1.1.1.3:1,1.1.1.4:1,1.1.1.5:1,1.1.1.6:1,1.1.1.7:1,[::8]:1",
	};
	char back[MST_ADDRESS_LEN];
	struct mst_endpoints a;

	for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++) {
		CU_ASSERT_EQUAL(mst_endpoints_parse(text[i], &mst_tcp, &a, UT_UNREAD), 0);
		CU_ASSERT_EQUAL(mst_endpoints_print(&a, mst_tcp.prefix, back, sizeof(back)), 0);
		CU_ASSERT_STRING_EQUAL(back, text[i]);
	}
	CU_ASSERT_EQUAL(mst_endpoints_print(&a, mst_tcp.prefix, back, 40),
			0); /* those that there is room for */
	CU_ASSERT_STRING_EQUAL(back, "tcp:1.1.1.1:1,1.1.1.2:1,1.1.1.3:1");
	CU_ASSERT_EQUAL(mst_endpoints_print(&a, mst_tcp.prefix, back, 10), -ENAMETOOLONG);
}

static void what_is_no_address_is_refused_in_words(void)
{
	static const struct {
		const char *text, *words;
	} row[] = {
		{ "verbs:10.0.0.1:4711", "no address of a listener for TCP" },
		{ "tcp:", "is not ADDRESS:PORT" },
		{ "tcp:10.0.0.1", "is not ADDRESS:PORT" },
		{ "tcp:10.0.0.1:", "is not ADDRESS:PORT" },
		{ "tcp:10.0.0.1:0", "is not ADDRESS:PORT" },
		{ "tcp:10.0.0.1:65536", "is not ADDRESS:PORT" },
		{ "tcp:10.0.0.1:123456789012345", "is not ADDRESS:PORT" },
		{ "tcp:10.0.0.1:+1", "is not ADDRESS:PORT" },
		{ "tcp::4711", "is not ADDRESS:PORT" },
		{ "tcp:fd00::1:4711", "is not ADDRESS:PORT" },
		{ "tcp:[10.0.0.1]:4711", "is not ADDRESS:PORT" },
		{ "tcp:[fd00::1:4711", "is not ADDRESS:PORT" },
		{ "tcp:[]:4711", "is not ADDRESS:PORT" },
		{ "tcp:*:4711", "names no address" }, /* it is not known where it was called */
		{ "tcp:*:0,10.0.0.1:1", "is not ADDRESS:PORT" },
		{ "tcp:**:1", "is not ADDRESS:PORT" },
		{ "tcp:host:4711", "is not ADDRESS:PORT" },
		{ "tcp:[10.0.0.1%lo]:4711", "is not ADDRESS:PORT" },
		{ "tcp:[fd00::1%none0]:4711", "lacks an interface" },
		{ "tcp:1.1.1.1:1,", "is not ADDRESS:PORT" },
		{ "tcp:1.1.1.1:1,1.1.1.2:1,1.1.1.3:1,1.1.1.4:1,1.1.1.5:1,1.1.1.6:1,1.1.1.7:1,"
		  "1.1.1.8:1,1.1.1.9:1",
		  "more than 8" },
	};
	struct mst_endpoints a;
	struct mst_reason why;

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		mst_reason_clear(&why);
		CU_ASSERT_EQUAL(mst_endpoints_parse(row[i].text, &mst_tcp, &a, &why), -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, row[i].words));
	}
	CU_ASSERT_EQUAL(mst_endpoints_list("10.0.0.1,fd00::1", &a, &why), 0);
	CU_ASSERT_EQUAL(a.count, 2);
	/* The interface of another host: this end's own is the dial's to find. */
	CU_ASSERT_EQUAL(mst_endpoints_parse("tcp:[fe80::1%none0]:4711", &mst_tcp, &a, &why), 0);
	CU_ASSERT(a.count == 1 && a.at[0].v6.sin6_scope_id == 0);
	CU_ASSERT_EQUAL(mst_endpoints_list("fe80::1%none0", &a, &why), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "lacks an interface"));
	CU_ASSERT_EQUAL(mst_endpoints_list("10.0.0.1:4711", &a, &why), -EINVAL);
	CU_ASSERT_EQUAL(mst_endpoints_list("", &a, &why), -EINVAL);
}

static void a_mapped_address_is_shown_as_what_it_is(void)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(7) };
	char text[MST_ENDPOINT_TEXT_LEN];

	CU_ASSERT_EQUAL(inet_pton(AF_INET6, "::ffff:10.0.0.9", &v6.sin6_addr), 1);
	CU_ASSERT_STRING_EQUAL(mst_endpoint_text((const struct sockaddr *)&v6, text), "10.0.0.9:7");
}

static void each_transport_reads_its_own(void)
{
	struct mst_endpoints a;
	struct mst_reason why;

	CU_ASSERT_EQUAL(mst_endpoints_parse("verbs:10.0.0.1:4711", &mst_verbs, &a, &why), 0);
	CU_ASSERT(a.count == 1 && a.at[0].v4.sin_port == htons(4711));
	CU_ASSERT_EQUAL(mst_endpoints_parse("tcp:10.0.0.1:4711", &mst_verbs, &a, &why), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "no address of a listener for RDMA"));
}

static void the_address_at_which_a_server_was_called_comes_first(void)
{
	struct mst_endpoints a;
	char text[MST_ADDRESS_LEN];

	CU_ASSERT_EQUAL(mst_endpoints_parse("tcp:*:9,10.0.0.1:1", &mst_tcp, &a, UT_UNREAD), 0);
	CU_ASSERT(a.count == 1 && a.called_port == 0); /* where that was, a caller alone knows */
	a.called_port = htons(9);
	CU_ASSERT_EQUAL(mst_endpoints_print(&a, "tcp:", text, sizeof(text)), 0);
	CU_ASSERT_STRING_EQUAL(text, "tcp:*:9,10.0.0.1:1");
}

/* Two rails may begin at one address; of two connections to one place the second is in vain. */
static void the_same_twice_stays_until_it_is_dropped(void)
{
	struct mst_endpoints a;

	CU_ASSERT_EQUAL(mst_endpoints_parse("tcp:10.0.0.1:1,10.0.0.1:1,10.0.0.2:1,10.0.0.1:2",
					    &mst_tcp, &a, UT_UNREAD),
			0);
	CU_ASSERT_EQUAL(a.count, 4);
	mst_endpoints_drop_repeated(&a);
	CU_ASSERT_EQUAL(a.count, 3);
	CU_ASSERT(a.at[0].v4.sin_port == htons(1) && a.at[2].v4.sin_port == htons(2));
	CU_ASSERT_EQUAL(a.at[1].v4.sin_addr.s_addr, htonl(0x0a000002));
}

static void a_host_is_shown_without_port_and_brackets(void)
{
	struct mst_endpoints a;
	char text[MST_ENDPOINT_TEXT_LEN];

	CU_ASSERT_EQUAL(mst_endpoints_parse("tcp:10.0.0.1:1,[fd00::1]:2,[fe80::1%lo]:3", &mst_tcp,
					    &a, UT_UNREAD),
			0);
	CU_ASSERT_STRING_EQUAL(mst_endpoint_host_text(&a.at[0].any, text), "10.0.0.1");
	CU_ASSERT_STRING_EQUAL(mst_endpoint_host_text(&a.at[1].any, text), "fd00::1");
	CU_ASSERT_STRING_EQUAL(mst_endpoint_host_text(&a.at[2].any, text), "fe80::1%lo");
}

int main(void)
{
	static CU_TestInfo cases[] = {
		{ "addresses are read and written", addresses_are_read_and_written },
		{ "what is no address is refused in words",
		  what_is_no_address_is_refused_in_words },
		{ "a mapped address is shown as what it is",
		  a_mapped_address_is_shown_as_what_it_is },
		{ "each transport reads its own", each_transport_reads_its_own },
		{ "the address at which a server was called comes first",
		  the_address_at_which_a_server_was_called_comes_first },
		{ "the same twice stays until it is dropped",
		  the_same_twice_stays_until_it_is_dropped },
		{ "a host is shown without port and brackets",
		  a_host_is_shown_without_port_and_brackets },
		CU_TEST_INFO_NULL,
	};

	return ut_main("endpoint", cases);
}
