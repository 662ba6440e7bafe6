/* SPDX-License-Identifier: MIT */
/*
 * A host without the libraries of RDMA, or with such as lack what is needed. They are looked for
 * once in a process, so that the argument says which it is: absent, old.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/transport/transport.h"
#include "tests/ut.h"

static const char *instead; /* of whatever is asked for */

void *__real_dlopen(const char *file, int flags);
void *__wrap_dlopen(const char *file, int flags);
void *__wrap_dlopen(const char *file, int flags)
{
	(void)file;
	return __real_dlopen(instead, flags);
}

static void verbs_say_what_is_missing(void)
{
	struct mst_net_cfg cfg = { .links_max = 1 };
	struct mst_net *net = NULL;
	struct mst_reason why;

	for (int i = 0; i < 2; i++) { /* the second time, too */
		CU_ASSERT_EQUAL(mst_verbs.net_open(&cfg, &net, &why), -ELIBACC);
		CU_ASSERT_PTR_NULL(net);
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, strcmp(instead, "libc.so.6") == 0
								? "has no _ibv_query_gid_table: "
								  "it is too old"
								: "libnone.so.0"));
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "install"));
	}
}

/* What needs no device: what a job would take, and whose an address is. */
static void what_needs_no_device_goes_on(void)
{
	struct mst_fabric fabric = MST_FABRIC_DEFAULT;
	struct mst_net_cfg cfg = { .links_max = 1, .fabric = &fabric };
	struct mst_lanes lanes = { 4096, 4096, 4, 4 };
	struct mst_claim claim;

	mst_verbs.claim(&cfg, &lanes, true, &claim);
	CU_ASSERT_EQUAL(claim.queue_pairs, 2);
	CU_ASSERT_PTR_EQUAL(mst_transport_of("verbs:10.0.0.1:4000"), &mst_verbs);
	mst_verbs.net_close(NULL);
}

static void shared_memory_needs_none(void)
{
	struct mst_net_cfg cfg = { .links_max = 1 };
	struct mst_net *net;

	CU_ASSERT_EQUAL_FATAL(mst_shm.net_open(&cfg, &net, UT_UNREAD), 0);
	mst_shm.net_close(net);
}

static CU_TestInfo cases[] = {
	{ "verbs say what is missing", verbs_say_what_is_missing },
	{ "what needs no device goes on", what_needs_no_device_goes_on },
	{ "shared memory needs none", shared_memory_needs_none },
	CU_TEST_INFO_NULL,
};

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s absent|old\n", argv[0]);
		return EXIT_FAILURE;
	}
	instead = strcmp(argv[1], "old") == 0 ? "libc.so.6" : "libnone.so.0";
	return ut_main("RDMA libraries", cases);
}
