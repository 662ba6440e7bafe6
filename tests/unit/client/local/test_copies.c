/* SPDX-License-Identifier: MIT */
/*
 * Bytes that a handle copies for each push and each result, as its own counters say, over each
 * transport and for each way of handing a gradient over:
 *
 *   test_unit_client_copies shm|far|verbs
 *
 * test_register.c looks at the same copies from outside, as calls of memcpy() and the like; that
 * cannot be done over RDMA, whose copies another end or a device makes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/api/handle.h"
#include "tests/unit/client/servers_case.h"
#include "tests/ut.h"

#define GRADIENT_BYTES (SERVERS_ELEMS * sizeof(float))

static float own[SERVERS_ELEMS];

enum copy_way { IN_PLACE, NAMED_IN_PLACE, FROM_OWN, FROM_REGISTERED, WAYS };

static bool serve_one(struct fake_leader *f)
{
	return fake_begin(f) && servers_hear_push(f, 1, 7) && servers_answer_push(f, 1, false) &&
	       servers_end_well(f);
}

static void fill(float *at)
{
	for (uint64_t i = 0; i < SERVERS_ELEMS; i++)
		at[i] = 7 + (float)i;
}

/* In ranges that go across the borders of parts. */
static void hand_over(enum copy_way way)
{
	if (way == IN_PLACE) {
		fill(muster_gradient(client_handle));
		return;
	}
	float *from = way == NAMED_IN_PLACE ? muster_gradient(client_handle) : own;
	fill(from);
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 4000, 4200, from + 4000), 0);
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 0, 4000, from), 0);
	CU_ASSERT_EQUAL(muster_push_range(client_handle, 8200, SERVERS_ELEMS - 8200, from + 8200),
			0);
}

/* Expects so many bytes of gradients, copied by the handle, and of records, copied by its links. */
static void expect_copied(uint64_t gradients, uint64_t records)
{
	uint64_t by_links = 0;

	for (uint32_t k = 0; k < client_handle->links.count; k++)
		by_links += client_handle->links.part[k].link->copied;
	CU_ASSERT_EQUAL(client_handle->links.copied, gradients);
	CU_ASSERT_EQUAL(by_links, records);
}

static void each_way_copies_what_it_is_said_to(void)
{
	const struct muster_contribution full = { .size = sizeof(full), .weight = 3, .full = true };
	const uint64_t headers = SERVERS_COUNT * sizeof(struct mst_lane_header);
	const uint64_t said[WAYS] = { 0, 0, GRADIENT_BYTES,
				      fake_transport->maps ? GRADIENT_BYTES : 0 };

	for (enum copy_way way = IN_PLACE; way < WAYS; way++) {
		servers_begin(serve_one);
		if (way == FROM_REGISTERED)
			CU_ASSERT_EQUAL(muster_register(client_handle, own, sizeof(own)), 0);
		uint64_t before = client_handle->links.part[0].link->copied;
		hand_over(way);
		expect_copied(said[way], before);
		CU_ASSERT_EQUAL(muster_push(client_handle, &full, NULL), 0);
		expect_copied(said[way], before + headers);
		CU_ASSERT_EQUAL(client_wait(), 0);
		expect_copied(said[way], before + headers); /* and nothing of the result */
		CU_ASSERT_EQUAL(((const float *)client_outcome.result)[5000],
				SERVERS_RESULT + 5000);
		servers_end();
	}
}

static CU_TestInfo cases[] = {
	{ "each way of handing over copies what it is said to copy",
	  each_way_copies_what_it_is_said_to },
	CU_TEST_INFO_NULL,
};

int main(int argc, char **argv)
{
	servers_transport(argc, argv);
	return ut_main("client: bytes copied", cases);
}
