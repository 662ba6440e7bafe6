/* SPDX-License-Identifier: MIT */
#include "tests/transport/verbs/ladder.h"

#define PUBLISHED 4096

uint8_t ladder_own[LADDER_OWN_BYTES];

struct mst_net *ladder_open_net(const struct mst_fabric *fabric, struct ladder_outcome *o)
{
	struct mst_net_cfg cfg = { .published_bytes = PUBLISHED, .links_max = 4, .fabric = fabric };
	struct mst_net *net = NULL;

	o->rc = mst_verbs.net_open(&cfg, &net, &o->why);
	return net;
}

struct mst_net *ladder_net(const struct mst_fabric *fabric)
{
	struct ladder_outcome o;
	struct mst_net *net = ladder_open_net(fabric, &o);

	CU_ASSERT_PTR_NOT_NULL_FATAL(net);
	return net;
}

struct ladder_outcome ladder_register(struct mst_net *net, unsigned n, int error, enum fault *f)
{
	struct mst_region *region = NULL;
	struct ladder_outcome o = { 0 };

	faults_arm_with(n, error);
	o.rc = mst_region_register(&net->domain, ladder_own, sizeof(ladder_own), &region, &o.why);
	*f = faults_disarm();
	CU_ASSERT_EQUAL(region == NULL, o.rc != 0);
	CU_ASSERT_EQUAL(mst_region_unregister(region, UT_UNREAD), 0);
	return o;
}
