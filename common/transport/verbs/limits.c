/* SPDX-License-Identifier: MIT */
/* What the links of a listener will take of a device, against what it has: known before the first
 * of them is made, and not when the last finds nothing left. */
#include <errno.h>
#include <inttypes.h>

#include "common/transport/verbs/verbs.h"

struct figure {
	const char *what, *fix;
	uint64_t need;
	int64_t have;
};

/* The number of rails: one if no device or address is named. */
static uint32_t rails_of(const struct mst_fabric *fabric)
{
	const char *list = NULL;
	uint32_t rails = 1;

	if (fabric != NULL)
		list = fabric->addresses != NULL ? fabric->addresses : fabric->devices;
	for (; list != NULL && *list != '\0'; list++)
		rails += *list == ',';
	return rails;
}

void mst_verbs_claim(const struct mst_net_cfg *cfg, const struct mst_lanes *lanes, bool accepts,
		     struct mst_claim *out)
{
	uint64_t rails = rails_of(cfg->fabric), bytes = mst_verbs_round(cfg->published_bytes);

	if (lanes != NULL)
		bytes = mst_verbs_memory_of(accepts ? lanes->up_bytes : lanes->down_bytes) +
			mst_verbs_memory_of(mst_queue_outbound(lanes, !accepts, cfg->outbound_max));
	*out = (struct mst_claim){
		/* Links share what the net has: of each device, opened here and by the connection
		 * manager, two files each and a completion channel; two channels of the connection
		 * manager, epoll, what wakes it. */
		.descriptors = lanes != NULL ? 0 : 5 * (uint32_t)rails + 3 + accepts,
		.queue_pairs = lanes != NULL ? 2 * (uint32_t)rails : 0,
		.bytes = rails * bytes,
	};
}

/* Room for the largest put at a time, all that notify, and a few small ones. */
uint32_t mst_verbs_send_depth(const struct mst_verbs_lane *lane, const struct ibv_device_attr *has)
{
	uint64_t pieces = lane->bytes / MST_VERBS_MESSAGE / lane->rails;
	uint64_t want = pieces + UINT64_C(2) * lane->credits + MST_QUEUE_SENDS_MIN;
	uint32_t depth = mst_queue_pow2_above(want < MST_VERBS_SEND_MAX ? want
									: MST_VERBS_SEND_MAX);
	uint32_t most = (uint32_t)has->max_qp_wr;

	return depth < most ? depth : most;
}

#define TIMER_UNIT_NS UINT64_C(4096)
#define TIMER_MAX 31u
#define TRIES_MAX 7u /* 7 retries are for ever on some devices, which never notice a dead peer */

/* With the largest timer of which four tries fit, four to seven do. */
struct mst_verbs_tries mst_verbs_tries(uint64_t link_timeout_ns)
{
	uint8_t timer = 1;

	while (timer < TIMER_MAX && link_timeout_ns / (TIMER_UNIT_NS << (timer + 1)) >= 4)
		timer++;
	uint64_t tries = link_timeout_ns / (TIMER_UNIT_NS << timer);
	if (tries > TRIES_MAX)
		tries = TRIES_MAX;
	return (struct mst_verbs_tries){ timer, (uint8_t)(tries > 0 ? tries - 1 : 0) };
}

int mst_verbs_limits_check(const char *device, const struct ibv_device_attr *has,
			   const struct mst_verbs_need *need, struct mst_reason *why)
{
	static const char fewer[] = "take fewer workers (--workers), or more devices (--device)";
	static const char smaller[] = "take fewer slots (--slots), or another device (--device)";
	const struct mst_lanes *l = &need->lanes;
	struct mst_verbs_lane down = { l->down_bytes, l->down_credits, need->rails };
	uint64_t links = (uint64_t)need->links * need->here;
	uint64_t receives = (uint64_t)l->up_credits + 1;
	uint64_t sends = mst_verbs_send_depth(&down, has);
	struct figure figure[] = {
		{ "queue pairs", fewer, 2 * links, has->max_qp },
		{ "completion queues", fewer, links, has->max_cq },
		{ "protection domains", fewer, links + 1, has->max_pd },
		{ "memory regions", fewer, 2 * links + 1, has->max_mr },
		{ "entries of a completion queue", smaller, receives + sends + 1, has->max_cqe },
		{ "receives of a queue pair", smaller, receives, has->max_qp_wr },
		{ "sends of a queue pair", smaller, MST_QUEUE_SENDS_MIN, has->max_qp_wr },
	};

	for (size_t i = 0; i < sizeof(figure) / sizeof(figure[0]); i++) {
		const struct figure *f = &figure[i];
		if (f->have > 0 && f->need > (uint64_t)f->have) /* 0: its driver does not say */
			return mst_reason_fail(
				why, -ENOSPC,
				"RDMA device %s has %" PRId64 " %s, a job of %" PRIu32
				" workers needs %" PRIu64 ": %s",
				device, f->have, f->what, need->links, f->need, f->fix);
	}
	if (has->max_mr_size > 0 && l->up_bytes + MST_VERBS_PAGE > has->max_mr_size)
		return mst_reason_fail(why, -ENOSPC,
				       "RDMA device %s takes memory regions of %" PRIu64
				       " bytes at most, a worker's slots need %" PRIu64 ": %s",
				       device, (uint64_t)has->max_mr_size,
				       (uint64_t)l->up_bytes + MST_VERBS_PAGE, smaller);
	return 0;
}

static const char *port_fix(enum ibv_port_state state)
{
	switch (state) {
	case IBV_PORT_INIT:
	case IBV_PORT_ARMED:
		return "no subnet manager has set it up yet: start one, such as opensm";
	case IBV_PORT_DOWN:
		return "bring its interface up (ip link set DEV up), and look after its cable";
	default:
		return "see the kernel's log";
	}
}

int mst_verbs_port_check(struct ibv_context *device, uint8_t port, const char *address,
			 struct mst_reason *why)
{
	const char *name = ibv_get_device_name(device->device);
	struct ibv_port_attr attr;
	int rc = ibv_query_port(device, port, &attr);

	if (rc != 0)
		return mst_reason_fail(why, -rc, "cannot query port %u of RDMA device %s", port,
				       name);
	if (attr.state == IBV_PORT_ACTIVE)
		return 0;
	return mst_reason_fail(why, -ENETDOWN,
			       "port %u of RDMA device %s, of address %s, is in state %s: %s", port,
			       name, address, ibv_port_state_str(attr.state), port_fix(attr.state));
}
