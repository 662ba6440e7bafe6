/* SPDX-License-Identifier: MIT */
/* From where links are dialled: what a host announces, and what of it a request is held against.
 * The host's interfaces are those that a case says. */
#include "common/transport/origins.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "tests/ut.h"

#define INTERFACES_MAX 64

static struct ifaddrs interface[INTERFACES_MAX];
static struct sockaddr_in6 address[INTERFACES_MAX]; /* with room for those of IPv4 */
static int interfaces, broken, listed;

int __wrap_getifaddrs(struct ifaddrs **out);
void __wrap_freeifaddrs(struct ifaddrs *all);

int __wrap_getifaddrs(struct ifaddrs **out)
{
	listed++;
	errno = broken;
	*out = interfaces > 0 ? interface : NULL;
	return broken != 0 ? -1 : 0;
}

void __wrap_freeifaddrs(struct ifaddrs *all)
{
	(void)all;
}

static void begin(void)
{
	interfaces = broken = listed = 0;
}

static struct sockaddr *sockaddr_of(const char *text, struct sockaddr_in6 *room)
{
	struct sockaddr_in *v4 = (void *)room;

	memset(room, 0, sizeof(*room));
	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(4791);
	} else {
		CU_ASSERT_EQUAL_FATAL(inet_pton(AF_INET6, text, &room->sin6_addr), 1);
		room->sin6_family = AF_INET6;
		room->sin6_port = htons(4791);
		room->sin6_scope_id = 3;
	}
	return (struct sockaddr *)room;
}

static void has_interface(const char *text, unsigned flags)
{
	struct ifaddrs *i = &interface[interfaces];

	*i = (struct ifaddrs){ .ifa_flags = flags };
	if (text != NULL)
		i->ifa_addr = sockaddr_of(text, &address[interfaces]);
	if (interfaces > 0)
		interface[interfaces - 1].ifa_next = i;
	interfaces++;
}

static struct mst_origins own(const char *addresses)
{
	struct mst_fabric fabric = MST_FABRIC_DEFAULT;
	struct mst_origins out;

	fabric.addresses = addresses;
	CU_ASSERT_EQUAL(mst_origins_own(&fabric, &out), 0);
	return out;
}

/* Is somebody who dials from @text covered? */
static bool covers(const struct mst_origins *announced, const char *text)
{
	struct mst_origins from = { .count = 1 };
	struct sockaddr_in6 room;

	CU_ASSERT_TRUE(mst_origin_of(sockaddr_of(text, &room), &from.at[0]));
	return mst_origins_cover(announced, &from);
}

static void the_addresses_of_interfaces_that_are_up_are_announced(void)
{
	begin();
	has_interface(NULL, IFF_UP); /* one without an address */
	has_interface("127.0.0.1", IFF_UP | IFF_LOOPBACK);
	has_interface("::1", IFF_UP | IFF_LOOPBACK);
	has_interface("192.0.2.7", IFF_UP | IFF_LOOPBACK); /* a host's own, routed to it */
	has_interface("fe80::1", IFF_UP);
	has_interface("fe80::1", IFF_UP); /* the same on another link */
	has_interface("10.0.0.1", IFF_UP);
	has_interface("10.0.1.1", 0);
	has_interface("fd00::1", IFF_UP);
	struct mst_origins all = own(NULL);
	CU_ASSERT_EQUAL(all.count, 4);
	CU_ASSERT(covers(&all, "192.0.2.7") && covers(&all, "10.0.0.1"));
	CU_ASSERT(covers(&all, "fd00::1") && covers(&all, "fe80::1"));
	CU_ASSERT_FALSE(covers(&all, "127.0.0.1") || covers(&all, "::1"));
	CU_ASSERT_FALSE(covers(&all, "10.0.1.1") || covers(&all, "10.0.0.2"));
	CU_ASSERT_EQUAL(listed, 1);
}

static void an_address_of_ipv4_that_is_mapped_is_the_same(void)
{
	begin();
	has_interface("10.0.0.1", IFF_UP);
	has_interface("::ffff:10.0.0.1", IFF_UP);
	struct mst_origins all = own(NULL);
	CU_ASSERT_EQUAL(all.count, 1);
	CU_ASSERT(covers(&all, "10.0.0.1") && covers(&all, "::ffff:10.0.0.1"));
	CU_ASSERT_FALSE(covers(&all, "::10.0.0.1"));
}

static void of_too_many_those_of_one_link_are_left_out(void)
{
	char text[64];

	begin();
	for (int i = 0; i < 20; i++) {
		(void)snprintf(text, sizeof(text), "fe80::%d", i + 1);
		has_interface(text, IFF_UP);
		(void)snprintf(text, sizeof(text), "169.254.0.%d", i + 1);
		has_interface(text, IFF_UP);
	}
	for (int i = 0; i < 20; i++) {
		(void)snprintf(text, sizeof(text), "10.0.0.%d", i + 1);
		has_interface(text, IFF_UP);
	}
	struct mst_origins all = own(NULL);
	CU_ASSERT_EQUAL(all.count, MST_ORIGINS_MAX);
	CU_ASSERT(covers(&all, "10.0.0.1") && covers(&all, "10.0.0.20"));
	CU_ASSERT(covers(&all, "fe80::1") && !covers(&all, "fe80::20"));
}

static void named_addresses_are_announced_and_no_others(void)
{
	begin();
	has_interface("10.0.0.1", IFF_UP);
	struct mst_origins named = own("10.1.0.1,fd00::7,fe80::2%eth0");
	CU_ASSERT_EQUAL(named.count, 3);
	CU_ASSERT(covers(&named, "10.1.0.1") && covers(&named, "fd00::7"));
	CU_ASSERT(covers(&named, "fe80::2") && !covers(&named, "10.0.0.1"));
	CU_ASSERT_EQUAL(own("10.1.0.1,host,,10.1.0.300").count, 1);
	CU_ASSERT_EQUAL(own(",").count, 0);
	CU_ASSERT_EQUAL(listed, 0);
}

/* What a NAT has made of the caller's address, or loopback. */
static void the_peer_of_a_control_connection_is_added(void)
{
	struct mst_origins some = own("10.0.0.1");
	uint32_t count = some.count;

	mst_origins_add_peer(&some, "127.0.0.1:51234");
	mst_origins_add_peer(&some, "[fd00::7]:51234");
	mst_origins_add_peer(&some, "[fe80::7%eth0]:51234");
	CU_ASSERT_EQUAL(some.count, count + 3);
	CU_ASSERT(covers(&some, "127.0.0.1") && covers(&some, "fd00::7"));
	CU_ASSERT(covers(&some, "fe80::7") && covers(&some, "10.0.0.1"));
	mst_origins_add_peer(&some, "10.0.0.1:1"); /* is there */
	mst_origins_add_peer(&some, "[::ffff:10.0.0.1]:1");
	mst_origins_add_peer(&some, "leader.example:17077");
	mst_origins_add_peer(&some, ":17077");
	mst_origins_add_peer(&some, "");
	CU_ASSERT_EQUAL(some.count, count + 3);
	while (some.count < MST_ORIGINS_MAX)
		some.at[some.count++] = (struct mst_origin){ { 9 } };
	mst_origins_add_peer(&some, "10.0.0.9:1");
	CU_ASSERT_EQUAL(some.count, MST_ORIGINS_MAX);
	CU_ASSERT(covers(&some, "10.0.0.9") && covers(&some, "10.0.0.1"));
}

static void a_host_that_cannot_list_its_interfaces_announces_nothing(void)
{
	struct mst_fabric fabric = MST_FABRIC_DEFAULT;
	struct mst_origins out = { .count = 7 };

	begin();
	broken = ENOBUFS;
	CU_ASSERT_EQUAL(mst_origins_own(&fabric, &out), -ENOBUFS);
	CU_ASSERT_EQUAL(out.count, 0);
}

static void every_rail_has_to_come_from_an_announced_address(void)
{
	struct mst_origins announced = own("10.0.0.1,10.0.1.1"), none = { 0 };
	struct mst_origins rails = own("10.0.1.1,10.0.0.1"), astray = own("10.0.0.1,10.0.2.1");

	CU_ASSERT_TRUE(mst_origins_cover(&announced, &rails));
	CU_ASSERT_FALSE(mst_origins_cover(&announced, &astray));
	CU_ASSERT_FALSE(mst_origins_cover(&none, &rails));
	CU_ASSERT_TRUE(mst_origins_cover(&none, &none)); /* of a network without addresses */
}

static void an_address_of_no_ip_is_nobodys(void)
{
	struct sockaddr other = { .sa_family = AF_UNIX };
	struct mst_origin out = { { 9 } };

	CU_ASSERT_FALSE(mst_origin_of(&other, &out));
	CU_ASSERT_EQUAL(out.address[0], 0);
}

static void a_text_names_a_few(void)
{
	struct mst_origins none = { 0 }, few = own("10.0.0.1,fd00::1"),
			   many = own("10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4,10.0.0.5,10.0.0.6");
	char text[MST_ORIGINS_TEXT_LEN], small[12];

	CU_ASSERT_STRING_EQUAL(mst_origins_text(&none, text, sizeof(text)), "no address");
	CU_ASSERT_STRING_EQUAL(mst_origins_text(&few, text, sizeof(text)), "10.0.0.1, fd00::1");
	CU_ASSERT_STRING_EQUAL(mst_origins_text(&many, text, sizeof(text)),
			       "10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.4 and 2 more");
	CU_ASSERT_STRING_EQUAL(mst_origins_text(&many, small, sizeof(small)), "10.0.0.1, 1");
}

static CU_TestInfo cases[] = {
	{ "the addresses of interfaces that are up are announced",
	  the_addresses_of_interfaces_that_are_up_are_announced },
	{ "an address of IPv4 that is mapped is the same",
	  an_address_of_ipv4_that_is_mapped_is_the_same },
	{ "of too many those of one link are left out",
	  of_too_many_those_of_one_link_are_left_out },
	{ "named addresses are announced and no others",
	  named_addresses_are_announced_and_no_others },
	{ "a host that cannot list its interfaces announces nothing",
	  a_host_that_cannot_list_its_interfaces_announces_nothing },
	{ "the peer of a control connection is added", the_peer_of_a_control_connection_is_added },
	{ "every rail has to come from an announced address",
	  every_rail_has_to_come_from_an_announced_address },
	{ "an address of no IP is nobody's", an_address_of_no_ip_is_nobodys },
	{ "a text names a few", a_text_names_a_few },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("origins", cases);
}
