/* SPDX-License-Identifier: MIT */
/* Lines of a made-up host, whose files lie in a folder of the test (tests/fixtures.h). */
#ifndef MST_TESTS_UNIT_COMMON_HOST_HOST_CASE_H
#define MST_TESTS_UNIT_COMMON_HOST_HOST_CASE_H

#include "tests/fixtures.h"

/* A line of mountinfo. */
#define HOST_V2(root, point)                                                                       \
	"31 23 0:28 " root " " point " rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n"
#define HOST_V1(root, point, controllers)                                                          \
	"32 31 0:29 " root " " point                                                               \
	" rw,relatime shared:7 master:3 - cgroup cgroup rw," controllers "\n"

#endif
