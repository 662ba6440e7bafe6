/* SPDX-License-Identifier: MIT */
/* What every program knows of networks: which there are, and their options. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/reason.h"
#include "common/transport/transport.h"
#include "tests/ut.h"

static struct mst_reason why;

static const struct mst_fabric_options typed_nothing = {
	.gid_index = "auto", .pkey = "auto", .ack_timeout = 16, .retries = 6
};

static void schemes_are_those_of_the_transports(void)
{
	const struct mst_transport *t;
	char all[80] = "";
	size_t used = 0;

	for (uint32_t i = 0; (t = mst_transport_at(i)) != NULL; i++) {
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i > 0 ? "|" : "",
					 t->scheme);
		CU_ASSERT_PTR_EQUAL(mst_transport_find(t->scheme), t);
		CU_ASSERT_PTR_EQUAL(mst_transport_of(t->prefix), t);
		CU_ASSERT(strlen(t->medium) > 0);
	}
	CU_ASSERT_STRING_EQUAL(all, MST_TRANSPORT_SCHEMES);
	CU_ASSERT_PTR_NULL(mst_transport_at(1000));
	CU_ASSERT_PTR_NULL(mst_transport_find("pigeon"));
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

	leader.ack_timeout = 18, leader.retries = 3, leader.traffic_class = 104,
	leader.service_level = 5;
	leader.pkey = 0x8001, leader.gid_index = 3;
	mst_fabric_tell(&leader, &path);
	CU_ASSERT(mst_path_is_sane(&path));
	mst_fabric_follow(&other, &path);
	CU_ASSERT(other.ack_timeout == 18 && other.retries == 3 && other.traffic_class == 104);
	CU_ASSERT(other.service_level == 5 && other.pkey == 0x8001);
	CU_ASSERT_EQUAL(other.gid_index, -1); /* each host has a table of its own */
}

static void a_path_that_cannot_be_is_known(void)
{
	static const struct mst_path bad[] = { { .ack_timeout = 0, .pkey = -1 },
					       { .ack_timeout = 1, .pkey = -2 },
					       { .ack_timeout = 1, .pkey = UINT16_MAX + 1 } };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_FALSE(mst_path_is_sane(&bad[i]));
}

static CU_TestInfo cases[] = {
	{ "schemes are those of the transports", schemes_are_those_of_the_transports },
	{ "what is not typed is the default", what_is_not_typed_is_the_default },
	{ "a variable is read as the option is", a_variable_is_read_as_the_option_is },
	{ "a path that is told is followed", a_path_that_is_told_is_followed },
	{ "a path that cannot be is known", a_path_that_cannot_be_is_known },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("fabric", cases);
}
