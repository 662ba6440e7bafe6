/* SPDX-License-Identifier: MIT */
/* What an acceptor can do in bad faith to a connector that has exported memory to it. */
#include <string.h>
#include <sys/mman.h>

#include "common/transport/verbs/verbs.h"
#include "tests/transport/verbs/attack.h"

/* The middle page of three is exported. */
#define PAGE ((size_t)4096)
struct exporter {
	struct verbs_target h; /* the hostile one's */
	/* Its far end is the target's, who strikes: both the other way round. */
	struct verbs_attack g;
	uint8_t *own;
};

static void exporter_open(struct exporter *x)
{
	struct dialling d = { .net = attacker_net() };
	struct mst_link_request request;
	struct mst_region *region;

	x->h = target_open();
	x->own = canary_map(NULL, 3 * PAGE);
	CU_ASSERT_EQUAL_FATAL(
		mst_region_register(&d.net->domain, x->own, 3 * PAGE, &region, UT_UNREAD), 0);
	d.export = (struct mst_export){ region, PAGE, PAGE, 100 };
	dialling_begin(&d, x->h.listener->address, &usual_lanes);
	CU_ASSERT_EQUAL_FATAL(house_next_request(&x->h, &request), 0);
	CU_ASSERT_EQUAL_FATAL(
		mst_verbs.listener->answer(x->h.listener, &request, &x->g.far, UT_UNREAD), 0);
	CU_ASSERT_EQUAL_FATAL(dialling_end(&d), 0);
	CU_ASSERT_EQUAL_FATAL(mst_verbs.attach(x->h.net, x->g.far, UT_UNREAD), 0);
	CU_ASSERT_EQUAL(mst_verbs.poll(x->h.net, &(struct mst_net_event){ 0 }, 1), 0);
	CU_ASSERT_EQUAL_FATAL(rail_of(x->g.far)->apart.end, 100 + PAGE);
	x->g.near = d.link;
	x->g.net = d.net;
	x->g.arms = canary_map(NULL, ARMS_BYTES);
	memset(x->g.arms, 'x', ARMS_BYTES);
	x->g.mr = ibv_reg_mr(rail_of(x->g.far)->device->pd, x->g.arms, ARMS_BYTES,
			     IBV_ACCESS_LOCAL_WRITE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(x->g.mr);
}

static void exporter_close(struct exporter *x)
{
	ibv_dereg_mr(x->g.mr);
	mst_verbs.detach(x->g.far);
	mst_verbs.link_free(x->g.far);
	attack_drop_near(&x->g);
	mst_verbs.net_close(x->g.net);
	target_close(&x->h);
	munmap(x->g.arms, ARMS_BYTES);
	munmap(x->own, 3 * PAGE);
}

void what_is_exported_is_all_that_is_reached(void)
{
	static const struct {
		int32_t by;
		bool fine;
	} row[] = { { 0, true },
		    { (int32_t)PAGE - 16, true },
		    { -8, false },
		    { -(int32_t)PAGE, false },
		    { (int32_t)PAGE - 8, false },
		    { (int32_t)PAGE, false } };

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct exporter x;
		exporter_open(&x);
		const struct mst_verbs_rail *r = rail_of(x.g.far);
		struct strike blow = { .opcode = IBV_WR_RDMA_WRITE,
				       .remote = r->apart.remote + (uint64_t)(int64_t)row[i].by,
				       .rkey = r->apart.rkey,
				       .bytes = 16 };
		CU_ASSERT_EQUAL(strike(&x.g, &blow) == IBV_WC_SUCCESS, row[i].fine);
		CU_ASSERT(is_canary(x.own, PAGE) && is_canary(x.own + 2 * PAGE, PAGE));
		CU_ASSERT_EQUAL(is_canary(x.own + PAGE, PAGE), !row[i].fine);
		exporter_close(&x);
	}
}
