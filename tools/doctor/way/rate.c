/* SPDX-License-Identifier: MIT */
/*
 * A window of pieces is on its way over each link, and each piece is answered. What the first
 * quarter of the time moves is not counted: a connection begins slowly, and fills queues.
 */
#include "tools/doctor/way/rate.h"

#include <errno.h>
#include <string.h>

#include "common/base/clock.h"
#include "tools/doctor/lane.h"

struct rate {
	const struct mst_rate_test *test;
	struct mst_net *net;
	struct mst_link *link[MST_RATE_LINKS_MAX];
	uint32_t under_way[MST_RATE_LINKS_MAX]; /* pieces that are not answered */
	uint32_t link_count;
	uint64_t counted_from_ns, send_until_ns, heard_ns;
	uint64_t begun_ns, first_ns, last_ns; /* sending; and answers that count */
	uint64_t pieces;                      /* after the first */
	uint64_t all_pieces;
	bool counting;
	struct mst_reason *why;
};

uint64_t mst_rate_piece(double bytes_per_s)
{
	double piece = bytes_per_s / 50;

	if (!(piece > 4 * MST_RATE_UNIT)) /* also not a number */
		piece = 4 * MST_RATE_UNIT;
	if (piece > (double)MST_WRITE_BYTES)
		piece = (double)MST_WRITE_BYTES;
	return (uint64_t)piece / MST_RATE_UNIT * MST_RATE_UNIT;
}

static int dial_all(struct rate *r)
{
	const struct mst_rate_test *t = r->test;
	struct mst_dial how = { .address = t->address,
				.lanes = mst_rate_lanes(),
				.timeout_ns = t->timeout_ns };

	memcpy(how.token, MST_RATE_TOKEN, sizeof(how.token));
	while (r->link_count < t->links) {
		struct mst_link **link = &r->link[r->link_count];
		int rc = t->side->transport->dial(r->net, &how, link, r->why);
		if (rc != 0)
			return rc;
		r->link_count++;
	}
	return 0;
}

static int send_piece(struct rate *r, uint32_t i)
{
	const struct mst_rate_test *t = r->test;
	struct mst_link *link = r->link[i];
	uint32_t units = (uint32_t)(t->piece / MST_RATE_UNIT);
	struct mst_put put = { .src = link->outbound, .bytes = sizeof(uint64_t), .notify = true };

	put.imm = MST_WRITE_PULL | units << MST_WRITE_IMM_SHIFT;
	if (!t->pull)
		put = (struct mst_put){ .offset = MST_WRITE_DATA_AT,
					.src = (uint8_t *)link->outbound + MST_WRITE_DATA_AT,
					.bytes = t->piece,
					.notify = true,
					.imm = MST_WRITE_BULK };
	int rc = t->side->transport->put(link, &put);
	r->under_way[i] += rc >= 0;
	return rc == -EAGAIN || rc >= 0 ? 0 : rc;
}

static int fill(struct rate *r)
{
	int rc = 0;

	if (mst_now_ns() >= r->send_until_ns)
		return 0;
	for (uint32_t i = 0; i < r->link_count && rc == 0; i++)
		for (uint32_t k = r->under_way[i]; k < MST_RATE_WINDOW && rc == 0; k++)
			rc = send_piece(r, i);
	if (rc != 0)
		mst_reason_set(r->why, "put: %s", strerror(-rc));
	return rc;
}

static void answered(struct rate *r, const struct mst_link *link)
{
	r->last_ns = r->heard_ns = mst_now_ns();
	for (uint32_t i = 0; i < r->link_count; i++)
		r->under_way[i] -= r->link[i] == link && r->under_way[i] > 0;
	r->pieces += r->counting;
	r->all_pieces++;
	if (r->counting || r->last_ns < r->counted_from_ns)
		return;
	r->counting = true;
	r->first_ns = r->last_ns;
}

static int hear(struct rate *r)
{
	const struct mst_transport *t = r->test->side->transport;
	struct mst_net_event ev;

	if (t->poll(r->net, &ev, 1) == 0) {
		(void)t->wait(r->net, 10 * MST_MS);
		return 0;
	}
	if (ev.kind == MST_LOST)
		return mst_reason_fail(r->why, ev.error, "%s",
				       mst_reason_or_errno(&ev.link->why, ev.error));
	if (ev.kind == MST_ARRIVED)
		answered(r, ev.link);
	return 0;
}

static bool is_under_way(const struct rate *r)
{
	for (uint32_t i = 0; i < r->link_count; i++)
		if (r->under_way[i] > 0)
			return true;
	return false;
}

/* All that was sent is waited for, so that the next test has the network for itself. */
static int move(struct rate *r)
{
	uint64_t now_ns = mst_now_ns(), timeout_ns = r->test->timeout_ns;
	int rc = 0;

	r->heard_ns = r->begun_ns = now_ns;
	r->counted_from_ns = now_ns + r->test->for_ns / 4;
	r->send_until_ns = now_ns + r->test->for_ns;
	while (rc == 0 && (now_ns < r->send_until_ns || is_under_way(r))) {
		rc = fill(r);
		if (rc == 0)
			rc = hear(r);
		now_ns = mst_now_ns();
		if (rc == 0 && now_ns - r->heard_ns > timeout_ns)
			rc = mst_reason_fail(r->why, -ETIMEDOUT,
					     "%s has answered nothing for %.3g s", r->test->address,
					     (double)timeout_ns / (double)MST_SECOND);
	}
	return rc;
}

/* Where this process stood still for most of the time, nothing may be left to count but all. */
static double result(const struct rate *r)
{
	bool some = r->pieces > 0;
	uint64_t span_ns = r->last_ns - (some ? r->first_ns : r->begun_ns) + 1;

	return (double)(some ? r->pieces : r->all_pieces) * (double)r->test->piece /
	       ((double)span_ns / (double)MST_SECOND);
}

int mst_rate_measure(const struct mst_rate_test *test, double *bytes_per_s, struct mst_reason *why)
{
	struct rate r = { .test = test, .why = why };

	mst_reason_clear(why);
	int rc = mst_write_net(test->side, test->links, &r.net, why);
	if (rc != 0)
		return rc;
	rc = dial_all(&r);
	if (rc == 0)
		rc = move(&r);
	for (uint32_t i = 0; i < r.link_count; i++) {
		test->side->transport->detach(r.link[i]);
		test->side->transport->link_free(r.link[i]);
	}
	test->side->transport->net_close(r.net);
	if (rc == 0)
		*bytes_per_s = result(&r);
	return rc;
}
