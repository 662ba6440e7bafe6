/* SPDX-License-Identifier: MIT */
#include "tests/transport/world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"

const struct mst_lanes usual_lanes = { 65536, 65536, 4, 4 };

/* A net that has links of two networks waits in another way than one that has them of one. */
static void join_other(struct world *w)
{
	struct peer_command call = world_call(w, &usual_lanes);
	struct mst_link_request request;

	CU_ASSERT_FATAL(mst_transport_address(other_network, w->listener->address, call.address));
	peer_tell(w->other_peer, &call);
	CU_ASSERT_EQUAL_FATAL(world_next_request(w, &request), 0);
	CU_ASSERT_EQUAL_FATAL(
		acceptor->listener->answer(w->listener, &request, &w->other_link, UT_UNREAD), 0);
	CU_ASSERT_EQUAL_FATAL(acceptor->attach(w->net, w->other_link, UT_UNREAD), 0);
	CU_ASSERT_EQUAL_FATAL(peer_hear(w->other_peer).rc, 0);
}

struct world world_open(const struct world_cfg *cfg)
{
	/* What peers map is published first. */
	bool first = other_network == NULL || !other_network->maps;
	const struct mst_networks two = {
		2, { first ? transport : other_network, first ? other_network : transport }, false
	};
	struct mst_net_cfg net = { .published_bytes = cfg->published_bytes,
				   .outbound_max = cfg->outbound_max,
				   .fabric = &peer_fabric,
				   .networks = &two,
				   .channels = peer_channels,
				   .links_max = cfg->links_max ? cfg->links_max
							       : (uint32_t)cfg->peers,
				   .look_ns = PEER_LOOK_NS_OF(transport),
				   .spin_pauses = cfg->restless ? 0 : 100,
				   .spin_yields = cfg->restless ? 0 : 10 };
	struct world w = { .restless = cfg->restless };

	/* Peers first: a forked one holds no descriptor of the net, of the listener, or of a
	 * link. */
	for (int i = 0; i < cfg->peers; i++)
		w.peer[i] = peer_start(transport, in_processes);
	if (other_network != NULL)
		w.other_peer = peer_start(other_network, in_processes);
	CU_ASSERT_EQUAL_FATAL(acceptor->net_open(&net, &w.net, UT_UNREAD), 0);
	peer_tester = w.net;
	CU_ASSERT_EQUAL_FATAL(acceptor->listener->open(w.net, &w.listener, UT_UNREAD), 0);
	if (other_network != NULL)
		join_other(&w);
	return w;
}

void world_close(struct world *w)
{
	for (int i = 0; i < WORLD_PEERS; i++) {
		if (w->link[i] == NULL)
			continue;
		transport->detach(w->link[i]);
		transport->link_free(w->link[i]);
	}
	if (w->other_link != NULL) {
		acceptor->detach(w->other_link);
		acceptor->link_free(w->other_link);
	}
	acceptor->listener->close(w->listener);
	peer_tester = NULL;
	acceptor->net_close(w->net);
	for (int i = 0; i < WORLD_PEERS; i++)
		if (w->peer[i] != NULL)
			peer_end(w->peer[i]);
	if (w->other_peer != NULL)
		peer_end(w->other_peer);
}

struct peer_command world_call(const struct world *w, const struct mst_lanes *lanes)
{
	struct peer_command c = {
		.order = PEER_DIAL, .token = 7, .lanes = *lanes, .timeout_ns = PEER_WAIT_NS
	};

	CU_ASSERT_FATAL(mst_transport_address(transport, w->listener->address, c.address));
	return c;
}

int world_next_request(struct world *w, struct mst_link_request *out)
{
	uint64_t begin = mst_now_ns();
	int rc = acceptor->listener->next_request(w->listener, out, UT_UNREAD);

	while (rc == -EAGAIN && mst_now_ns() - begin < PEER_WAIT_NS) {
		await_caller(w->listener);
		rc = acceptor->listener->next_request(w->listener, out, UT_UNREAD);
	}
	return rc;
}

bool world_join(struct world *w, int i, const struct mst_lanes *lanes)
{
	struct peer_command call = world_call(w, lanes);

	return world_let_in(w, i, &call);
}

bool world_let_in(struct world *w, int i, const struct peer_command *call)
{
	struct mst_link_request request;

	peer_tell(w->peer[i], call);
	int rc = world_next_request(w, &request);
	if (rc == 0)
		rc = acceptor->listener->answer(w->listener, &request, &w->link[i], UT_UNREAD);
	if (rc == 0)
		rc = acceptor->attach(w->net, w->link[i], UT_UNREAD);
	CU_ASSERT_EQUAL(rc, 0);
	int dialled = peer_hear(w->peer[i]).rc;
	CU_ASSERT_EQUAL(dialled, 0);
	return rc == 0 && dialled == 0;
}

struct world world_of_one(void)
{
	struct world w = world_open(&(struct world_cfg){ .peers = 1 });

	CU_ASSERT_TRUE_FATAL(world_join(&w, 0, &usual_lanes));
	return w;
}

int world_poll(struct world *w, struct mst_net_event *ev, int count, uint64_t timeout_ns)
{
	uint64_t begin = mst_now_ns();
	int got = 0;

	while (got < count && mst_now_ns() - begin < timeout_ns) {
		int n = acceptor->poll(w->net, ev + got, count - got);
		got += n;
		if (n == 0)
			acceptor->wait(w->net, 20 * MST_MS);
	}
	return got;
}

static int put_pattern(const struct world *w, struct mst_put *put, uint64_t seed)
{
	uint8_t *buffer = malloc(put->bytes + 8);

	if (buffer == NULL)
		return -ENOMEM;
	pattern(buffer, put->bytes, seed);
	put->src = buffer;
	int rc = transport->put(w->link[0], put);
	free(buffer);
	return rc;
}

int world_put(const struct world *w, size_t offset, size_t bytes, uint64_t seed)
{
	return put_pattern(w, &(struct mst_put){ .offset = offset, .bytes = bytes }, seed);
}

int world_notify(const struct world *w, size_t offset, size_t bytes, uint64_t seed, uint32_t imm)
{
	struct mst_put put = { .offset = offset, .bytes = bytes, .notify = true, .imm = imm };

	return put_pattern(w, &put, seed);
}
