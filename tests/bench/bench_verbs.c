/* SPDX-License-Identifier: MIT */
/*
 * What the verbs transport makes of a path: how long a small notifying put takes one way, and how
 * fast a large one fills the peer's inbound region. Both ends look all the time, as ib_write_lat
 * does.
 *
 * usage: bench_verbs serve               prints its address, serves one peer, ends with it
 *        bench_verbs ADDRESS BYTES COUNT prints bytes, one-way p50 and p99 in us, MiB/s
 *
 * One way is half of a round trip, answered by a put of the same size if it is small, and by an
 * empty one if it is large, of which half an empty round trip is taken off.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/hist.h"
#include "common/transport/transport.h"

#define LANE_BYTES ((size_t)64 << 20)
#define SMALL ((size_t)4096)
#define PATIENCE_NS (20 * MST_SECOND)

static const struct mst_transport *const t = &mst_verbs;
static const struct mst_lanes lanes = { LANE_BYTES, SMALL, 32, 32 }; /* credits as a job has */

static struct mst_reason why; /* of the last call of the transport */

static int fail(const char *what, int rc)
{
	fprintf(stderr, "bench_verbs: %s: %s\n", what, mst_reason_or_errno(&why, rc));
	return EXIT_FAILURE;
}

/* The next arrival. Return: its immediate, or the negative errno that the link ended with. */
static int64_t await(struct mst_net *net)
{
	uint64_t end = mst_now_ns() + PATIENCE_NS;
	struct mst_net_event ev;

	while (mst_now_ns() < end) {
		if (t->poll(net, &ev, 1) == 0)
			continue;
		if (ev.kind == MST_LOST)
			return ev.error;
		if (ev.kind == MST_ARRIVED)
			return ev.imm;
	}
	return -ETIMEDOUT;
}

static int put(struct mst_link *link, size_t bytes, uint32_t imm)
{
	struct mst_put how = { .src = link->outbound, .bytes = bytes, .notify = true, .imm = imm };
	int rc = t->put(link, &how);

	return rc < 0 ? rc : 0;
}

/* ---- the server ---- */

static int let_in(struct mst_net *net, struct mst_link_listener *listener, struct mst_link **link)
{
	struct pollfd pfd = { .fd = t->listener->fd(listener), .events = POLLIN };
	struct mst_link_request request;
	int rc;

	while ((rc = t->listener->next_request(listener, &request, &why)) == -EAGAIN)
		poll(&pfd, 1, 1000);
	if (rc == 0)
		rc = t->listener->answer(listener, &request, link, &why);
	return rc == 0 ? t->attach(net, *link, &why) : rc;
}

/* The immediate says how large the answer is to be. */
static int serve(void)
{
	struct mst_net_cfg cfg = { .links_max = 1 };
	struct mst_link *link = NULL;
	struct mst_link_listener *listener = NULL;
	struct mst_net *net;
	int rc = t->net_open(&cfg, &net, &why);

	if (rc != 0)
		return fail("cannot open", rc);
	rc = t->listener->open(net, &listener, &why);
	if (rc != 0)
		return fail("cannot open a listener", rc);
	printf("%s\n", listener->address);
	fflush(stdout);
	rc = let_in(net, listener, &link);
	while (rc == 0) {
		int64_t imm = await(net);
		rc = imm < 0 ? (int)imm : put(link, (size_t)imm, (uint32_t)imm);
	}
	if (link != NULL) {
		t->detach(link);
		t->link_free(link);
	}
	t->listener->close(listener);
	t->net_close(net);
	return rc == -EPIPE ? EXIT_SUCCESS : fail("the link broke", rc);
}

/* ---- the client ---- */

static int rounds(struct mst_net *net, struct mst_link *link, size_t bytes, uint32_t back,
		  uint32_t count, struct mst_hist *h)
{
	mst_hist_init(h);
	for (uint32_t i = 0; i < count + count / 10 + 1; i++) {
		uint64_t begin = mst_now_ns();
		int rc = put(link, bytes, back);
		if (rc != 0)
			return rc;
		int64_t imm = await(net);
		if (imm < 0)
			return (int)imm;
		if (i > count / 10) /* after the warm-up */
			mst_hist_add(h, mst_now_ns() - begin);
	}
	return 0;
}

static int measure(struct mst_net *net, struct mst_link *link, size_t bytes, uint32_t count)
{
	struct mst_hist h, empty;
	bool small = bytes <= SMALL;
	int rc = rounds(net, link, 0, 0, count, &empty);

	if (rc == 0)
		rc = rounds(net, link, bytes, small ? (uint32_t)bytes : 0, count, &h);
	if (rc != 0)
		return rc;
	double p50 = (double)mst_hist_quantile(&h, 0.5), p99 = (double)mst_hist_quantile(&h, 0.99);
	double off = (double)mst_hist_quantile(&empty, 0.5) / 2;
	p50 = small ? p50 / 2 : p50 - off;
	p99 = small ? p99 / 2 : p99 - off;
	printf("%zu %.1f %.1f %.2f\n", bytes, p50 / 1e3, p99 / 1e3,
	       (double)bytes / (1 << 20) / (p50 / 1e9));
	return 0;
}

static int dial(const char *address, size_t bytes, uint32_t count)
{
	struct mst_net_cfg cfg = { .links_max = 1 };
	struct mst_dial how = { .address = address, .lanes = lanes, .timeout_ns = PATIENCE_NS };
	struct mst_link *link;
	struct mst_net *net;
	int rc = t->net_open(&cfg, &net, &why);

	if (rc != 0)
		return fail("cannot open", rc);
	rc = t->dial(net, &how, &link, &why);
	if (rc != 0)
		return fail("cannot dial", rc);
	memset(link->outbound, 1, bytes);
	rc = measure(net, link, bytes, count);
	t->detach(link);
	t->link_free(link);
	t->net_close(net);
	return rc == 0 ? EXIT_SUCCESS : fail("the link broke", rc);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "serve") == 0)
		return serve();
	size_t bytes = argc == 4 ? strtoull(argv[2], NULL, 10) : SIZE_MAX;
	uint32_t count = argc == 4 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
	if (bytes > LANE_BYTES || count == 0) {
		fprintf(stderr, "usage: bench_verbs serve | bench_verbs ADDRESS BYTES COUNT\n");
		return 2;
	}
	return dial(argv[1], bytes, count);
}
