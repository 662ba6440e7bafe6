/* SPDX-License-Identifier: MIT */
/* What every program knows of networks: which there are, and their options. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/reason.h"
#include "common/transport/transport.h"
#include "tests/ut.h"

static struct mst_reason why;

static const struct mst_fabric_options typed_nothing = { .gid_index = "auto",
							 .pkey = "auto",
							 .link_timeout_ns = 2 * MST_SECOND };

static void schemes_are_those_of_the_transports(void)
{
	const struct mst_transport *t;
	char all[80] = "";
	size_t used = 0;

	for (uint32_t i = 0; (t = mst_transport_at(i)) != NULL; i++) {
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i > 0 ? "|" : "",
					 t->scheme);
		CU_ASSERT_PTR_EQUAL(mst_transport_of(t->prefix), t);
		CU_ASSERT(strlen(t->medium) > 0);
	}
	CU_ASSERT_STRING_EQUAL(all, MST_TRANSPORT_SCHEMES);
	CU_ASSERT_PTR_NULL(mst_transport_at(1000));
	CU_ASSERT_PTR_NULL(mst_transport_of("pigeon:loft"));
}

static void what_is_not_typed_is_the_default(void)
{
	struct mst_fabric fabric, usual = MST_FABRIC_DEFAULT;

	CU_ASSERT_EQUAL(mst_fabric_read(&typed_nothing, &fabric, &why), 0);
	CU_ASSERT(fabric.addresses == NULL && fabric.devices == NULL);
	CU_ASSERT(fabric.gid_index == usual.gid_index && fabric.pkey == usual.pkey);
	CU_ASSERT(fabric.group == usual.group && fabric.huge_pages);
}

static void a_variable_is_read_as_the_option_is(void)
{
	struct mst_fabric fabric = MST_FABRIC_DEFAULT;

	setenv("MUSTER_DEVICE", "mlx5_0:2", 1);
	setenv("MUSTER_DATA_ADDRESS", "", 1); /* as if it were not set */
	setenv("MUSTER_GID_INDEX", "7", 1);
	CU_ASSERT_EQUAL(mst_fabric_environment(&fabric, &why), 0);
	CU_ASSERT_STRING_EQUAL(fabric.devices, "mlx5_0:2");
	CU_ASSERT(fabric.addresses == NULL && fabric.gid_index == 7);
	setenv("MUSTER_GID_INDEX", "256", 1);
	CU_ASSERT_EQUAL(mst_fabric_environment(&fabric, &why), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "MUSTER_GID_INDEX: \"256\""));
	unsetenv("MUSTER_DEVICE");
	unsetenv("MUSTER_DATA_ADDRESS");
	unsetenv("MUSTER_GID_INDEX");
}

static void a_path_that_is_told_is_followed(void)
{
	struct mst_fabric leader = MST_FABRIC_DEFAULT, other = MST_FABRIC_DEFAULT;
	struct mst_path path;

	leader.link_timeout_ns = 3 * MST_SECOND;
	leader.traffic_class = 104, leader.service_level = 5;
	leader.pkey = 0x8001, leader.gid_index = 3;
	leader.encrypted = true;
	mst_fabric_tell(&leader, &path);
	CU_ASSERT(mst_path_is_sane(&path));
	mst_fabric_follow(&other, &path);
	CU_ASSERT(other.link_timeout_ns == 3 * MST_SECOND && other.traffic_class == 104);
	CU_ASSERT(other.service_level == 5 && other.pkey == 0x8001);
	CU_ASSERT(other.encrypted);
	CU_ASSERT_EQUAL(other.gid_index, -1); /* each host has a table of its own */
	path.encrypted = 0;
	mst_fabric_follow(&other, &path);
	CU_ASSERT_FALSE(other.encrypted);
}

static void a_path_that_cannot_be_is_known(void)
{
	static const struct mst_path bad[] = {
		{ .link_timeout_ns = MST_LINK_TIMEOUT_MIN_NS - 1, .pkey = -1 },
		{ .link_timeout_ns = MST_LINK_TIMEOUT_MAX_NS + 1, .pkey = -1 },
		{ .link_timeout_ns = MST_LINK_TIMEOUT_MIN_NS, .pkey = -2 },
		{ .link_timeout_ns = MST_LINK_TIMEOUT_MIN_NS, .pkey = UINT16_MAX + 1 },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_FALSE(mst_path_is_sane(&bad[i]));
}

/* ---- several networks ---- */

static void networks_are_read_in_their_order(void)
{
	static const struct {
		const char *text, *shown;
		bool optional;
	} rows[] = {
		{ "auto", "shm,verbs,tcp", true },
		{ "tcp", "tcp", false },
		{ "tcp,shm", "shm,tcp", false },
		{ "verbs,tcp,shm", "shm,verbs,tcp", false },
	};
	char text[MST_NETWORKS_TEXT_LEN];
	struct mst_networks n;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CU_ASSERT_EQUAL(mst_networks_read(rows[i].text, &n, &why), 0);
		CU_ASSERT_STRING_EQUAL(mst_networks_text(&n, text), rows[i].shown);
		CU_ASSERT_EQUAL(n.optional, rows[i].optional);
	}
}

static void what_names_no_networks_is_einval_and_quoted(void)
{
	static const char *const bad[] = { "",        "ucx",     "shm,",     ",tcp", "shm,,tcp",
					   "tcp,tcp", "shm tcp", "auto,tcp", "SHM",  "tcpx" };
	struct mst_networks n;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT_EQUAL(mst_networks_read(bad[i], &n, &why), -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, bad[i]));
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "auto|" MST_TRANSPORT_SCHEMES));
	}
}

static void a_list_of_addresses_has_one_for_each_network(void)
{
	static const char *const list = "/run/user/0/muster/7|tcp:10.0.0.1:4711,[fd00::1]:4711";
	char address[MST_ADDRESS_LEN], text[MST_NETWORKS_TEXT_LEN];
	struct mst_networks n;

	CU_ASSERT(mst_transport_address(&mst_shm, list, address));
	CU_ASSERT_STRING_EQUAL(address, "/run/user/0/muster/7");
	CU_ASSERT(mst_transport_address(&mst_tcp, list, address));
	CU_ASSERT_STRING_EQUAL(address, "tcp:10.0.0.1:4711,[fd00::1]:4711");
	CU_ASSERT_FALSE(mst_transport_address(&mst_verbs, list, address));
	CU_ASSERT_FALSE(mst_transport_address(&mst_tcp, "", address));
	CU_ASSERT_EQUAL(mst_networks_read("auto", &n, &why), 0);
	mst_networks_keep(&n, list);
	CU_ASSERT_STRING_EQUAL(mst_networks_text(&n, text), "shm,tcp");
	mst_networks_keep(&n, "tcp:10.0.0.2:1");
	CU_ASSERT_STRING_EQUAL(mst_networks_text(&n, text), "tcp");
	mst_networks_keep(&n, "verbs:10.0.0.2:1");
	CU_ASSERT_PTR_NULL(mst_networks_transport(&n));
}

static bool is_shown_as(const char *list, const char *wanted)
{
	char text[MST_ADDRESS_LEN];

	return strcmp(mst_networks_places(list, text), wanted) == 0;
}

static void people_are_shown_what_other_hosts_call(void)
{
	CU_ASSERT(is_shown_as("/run/m/7|tcp:*:4711,10.0.0.1:4711,[fd00::1]:4711",
			      "10.0.0.1:4711, [fd00::1]:4711"));
	CU_ASSERT(is_shown_as("tcp:10.0.0.1:4711,10.0.0.1:4711", "10.0.0.1:4711"));
	CU_ASSERT(is_shown_as("tcp:10.0.0.1:47,10.0.0.1:471,1.0.0.1:47",
			      "10.0.0.1:47, 10.0.0.1:471, 1.0.0.1:47"));
	CU_ASSERT(is_shown_as("verbs:10.0.0.1:5|tcp:10.0.0.1:4711", "10.0.0.1:5, 10.0.0.1:4711"));
	CU_ASSERT(is_shown_as("/run/m/7", "/run/m/7"));
	CU_ASSERT(is_shown_as("", ""));
}

static void one_network_is_opened_by_itself(void)
{
	struct mst_networks n;

	CU_ASSERT_EQUAL(mst_networks_read("verbs", &n, &why), 0);
	CU_ASSERT_PTR_EQUAL(mst_networks_transport(&n), &mst_verbs);
	CU_ASSERT_FALSE(mst_networks_map(&n));
	CU_ASSERT(mst_networks_share(&n, "shm,verbs"));
	CU_ASSERT_FALSE(mst_networks_share(&n, "shm,tcp"));
	CU_ASSERT_EQUAL(mst_networks_read("shm,tcp", &n, &why), 0);
	CU_ASSERT_PTR_EQUAL(mst_networks_transport(&n), &mst_joint);
	CU_ASSERT(mst_networks_map(&n));
}

static void each_network_can_be_a_part_of_a_joint_net(void)
{
	const struct mst_transport *t;

	for (uint32_t i = 0; (t = mst_transport_at(i)) != NULL; i++) {
		CU_ASSERT(t->arm != NULL && t->disarm != NULL);
		CU_ASSERT(t->links != NULL && t->ready != NULL);
	}
}

static CU_TestInfo cases[] = {
	{ "schemes are those of the transports", schemes_are_those_of_the_transports },
	{ "what is not typed is the default", what_is_not_typed_is_the_default },
	{ "a variable is read as the option is", a_variable_is_read_as_the_option_is },
	{ "a path that is told is followed", a_path_that_is_told_is_followed },
	{ "a path that cannot be is known", a_path_that_cannot_be_is_known },
	{ "networks are read in their order", networks_are_read_in_their_order },
	{ "what names no networks is -EINVAL, and quoted",
	  what_names_no_networks_is_einval_and_quoted },
	{ "a list of addresses has one for each network",
	  a_list_of_addresses_has_one_for_each_network },
	{ "people are shown what other hosts call", people_are_shown_what_other_hosts_call },
	{ "one network is opened by itself, several by a joint net",
	  one_network_is_opened_by_itself },
	{ "each network can be a part of a joint net", each_network_can_be_a_part_of_a_joint_net },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("fabric", cases);
}
