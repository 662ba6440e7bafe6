/* SPDX-License-Identifier: MIT */
#include "tests/transport/world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"

const struct mst_lanes usual_lanes = { 65536, 65536, 4, 4 };

struct world world_open(const struct world_cfg *cfg)
{
	struct mst_net_cfg net = { .published_bytes = cfg->published_bytes,
				   .outbound_max = cfg->outbound_max,
				   .fabric = &peer_fabric,
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
	CU_ASSERT_EQUAL_FATAL(transport->net_open(&net, &w.net, UT_UNREAD), 0);
	peer_tester = w.net;
	CU_ASSERT_EQUAL_FATAL(transport->listener->open(w.net, &w.listener, UT_UNREAD), 0);
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
	transport->listener->close(w->listener);
	peer_tester = NULL;
	transport->net_close(w->net);
	for (int i = 0; i < WORLD_PEERS; i++)
		if (w->peer[i] != NULL)
			peer_end(w->peer[i]);
}

struct peer_command world_call(const struct world *w, const struct mst_lanes *lanes)
{
	struct peer_command c = {
		.order = PEER_DIAL, .token = 7, .lanes = *lanes, .timeout_ns = PEER_WAIT_NS
	};

	memcpy(c.address, w->listener->address, sizeof(c.address));
	return c;
}

int world_next_request(struct world *w, struct mst_link_request *out)
{
	uint64_t begin = mst_now_ns();
	int rc = transport->listener->next_request(w->listener, out, UT_UNREAD);

	while (rc == -EAGAIN && mst_now_ns() - begin < PEER_WAIT_NS) {
		await_caller(w->listener);
		rc = transport->listener->next_request(w->listener, out, UT_UNREAD);
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
		rc = transport->listener->answer(w->listener, &request, &w->link[i], UT_UNREAD);
	if (rc == 0)
		rc = transport->attach(w->net, w->link[i], UT_UNREAD);
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
		int n = transport->poll(w->net, ev + got, count - got);
		got += n;
		if (n == 0)
			transport->wait(w->net, 20 * MST_MS);
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
