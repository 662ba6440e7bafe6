/* SPDX-License-Identifier: MIT */
/* The end of a write test that writes. */
#include "tools/doctor/write.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/hist.h"
#include "tools/doctor/lane.h"

#define TIMING_NS (500 * MST_MS) /* each of the two */
#define PINGS_MAX 2000
#define PINGS_UNTIMED 10
#define BULKS_MAX 256

struct write_test {
	const struct mst_write_side *side;
	const char *address;
	struct mst_net *net;
	struct mst_link *link;
	/* Where the data are put from: the outbound region, but where that is the peer's memory
	 * itself, memory of this end, so that bytes are moved. */
	uint8_t *data, *own;
	uint64_t timeout_ns, deadline_ns;
	struct mst_write_report *report;
};

static int fail(struct mst_write_report *report, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(struct mst_write_report *report, int error, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	mst_reason_vset(&report->why, fmt, args);
	va_end(args);
	return error;
}

/* A call that has written the report's reason has failed; @what: which, if it says nothing. */
static int fail_call(struct mst_write_report *report, int error, const char *what)
{
	if (report->why.text[0] != '\0')
		return error;
	return fail(report, error, "%s: %s", what, strerror(-error));
}

/* A put has no sentence: a link that breaks has one later. */
static int fail_put(struct mst_write_report *report, int error)
{
	return fail(report, error, "put: %s", strerror(-error));
}

/* Until the answer has come and the source is free again; @sent: it is already. */
static int await(struct write_test *c, uint32_t imm, bool sent)
{
	const struct mst_transport *t = c->side->transport;
	struct mst_net_event ev;
	bool answered = false;

	while (!answered || !sent) {
		uint64_t now = mst_now_ns();
		if (now >= c->deadline_ns)
			return fail(c->report, -ETIMEDOUT,
				    "%s took the connection, but %s within %.3g s", c->address,
				    sent ? "has not answered" : "nothing came through",
				    (double)c->timeout_ns / (double)MST_SECOND);
		if (t->poll(c->net, &ev, 1) == 0) {
			(void)t->wait(c->net, c->deadline_ns - now);
			continue;
		}
		if (ev.kind == MST_LOST)
			return fail(c->report, ev.error, "%s: %s", c->address,
				    mst_reason_or_errno(&c->link->why, ev.error));
		answered |= ev.kind == MST_ARRIVED && ev.imm == imm;
		sent |= ev.kind == MST_SENT;
	}
	return 0;
}

/* Writes, tells the peer so, waits for its answer. */
static int call(struct write_test *c, struct mst_put *put, uint32_t imm)
{
	put->notify = put->signal = true;
	put->imm = imm;
	int rc = c->side->transport->put(c->link, put);
	if (rc < 0)
		return fail_put(c->report, rc);
	return await(c, imm, rc == 1);
}

static int look(struct write_test *c)
{
	struct mst_write_record record = { .magic = MST_WRITE_MAGIC,
					   .seed = mst_now_ns(),
					   .card = c->side->card };
	struct mst_put bulk = { .offset = MST_WRITE_DATA_AT,
				.src = c->data,
				.bytes = MST_WRITE_BYTES };
	struct mst_put put = { .src = &record, .bytes = sizeof(record) };

	mst_write_fill(c->data, record.seed);
	int rc = c->side->transport->put(c->link, &bulk);
	if (rc < 0)
		return fail_put(c->report, rc);
	rc = call(c, &put, MST_WRITE_LOOK);
	if (rc < 0)
		return rc;
	memcpy(&record, c->link->inbound, sizeof(record));
	record.card.host[MST_WRITE_NAME_LEN - 1] = '\0';
	record.card.port[MST_WRITE_NAME_LEN - 1] = '\0';
	c->report->peer = record.card;
	c->report->wrong_bytes = record.wrong;
	if (record.magic != MST_WRITE_MAGIC)
		return fail(c->report, -EBADMSG, "the answer that came back is not what was sent");
	if (record.wrong > 0)
		return fail(c->report, -EBADMSG, "%" PRIu64 " of %" PRIu64 " bytes came wrong",
			    record.wrong, MST_WRITE_BYTES);
	return 0;
}

static int time_pings(struct write_test *c)
{
	struct mst_put put = { .src = c->link->outbound, .bytes = sizeof(uint64_t) };
	uint64_t end = mst_now_ns() + TIMING_NS;
	struct mst_hist hist;
	int rc = 0;

	mst_hist_init(&hist);
	for (int i = 0; i < PINGS_MAX && rc == 0 && (i <= PINGS_UNTIMED || mst_now_ns() < end);
	     i++) {
		uint64_t begin = mst_now_ns();
		rc = call(c, &put, MST_WRITE_PING);
		if (i >= PINGS_UNTIMED)
			mst_hist_add(&hist, mst_now_ns() - begin);
	}
	c->report->latency_ns = mst_hist_quantile(&hist, 0.5) / 2;
	return rc;
}

static int time_bulk(struct write_test *c)
{
	struct mst_put put = { .offset = MST_WRITE_DATA_AT,
			       .src = c->data,
			       .bytes = MST_WRITE_BYTES };
	uint64_t begin = mst_now_ns(), now = begin;
	uint64_t bytes = 0;
	int rc = 0;

	for (int i = 0; i < BULKS_MAX && rc == 0 && now - begin < TIMING_NS; i++) {
		rc = call(c, &put, MST_WRITE_BULK);
		bytes += MST_WRITE_BYTES;
		now = mst_now_ns();
	}
	if (now > begin)
		c->report->bytes_per_s = (double)bytes /
					 ((double)(now - begin) / (double)MST_SECOND);
	return rc;
}

static int dial(struct write_test *c)
{
	struct mst_dial how = { .address = c->address,
				.lanes = mst_write_lanes(),
				.timeout_ns = c->timeout_ns };

	memcpy(how.token, MST_WRITE_TOKEN, sizeof(how.token));
	int rc = c->side->transport->dial(c->net, &how, &c->link, &c->report->why);
	return rc < 0 ? fail_call(c->report, rc, c->address) : 0;
}

static int try_link(struct write_test *c)
{
	c->own = c->link->remote_mapping != NULL ? malloc(MST_WRITE_BYTES) : NULL;
	c->data = c->link->remote_mapping != NULL
			  ? c->own
			  : (uint8_t *)c->link->outbound + MST_WRITE_DATA_AT;
	if (c->data == NULL)
		return fail(c->report, -ENOMEM, "no memory for what to write");
	c->deadline_ns = mst_now_ns() + c->timeout_ns;
	int rc = look(c);
	if (rc == 0) {
		c->deadline_ns = mst_now_ns() + c->timeout_ns + 2 * TIMING_NS;
		rc = time_pings(c);
	}
	return rc == 0 ? time_bulk(c) : rc;
}

static int test(struct write_test *c)
{
	int rc = dial(c);

	if (rc < 0)
		return rc;
	c->report->linked = true;
	rc = try_link(c);
	c->side->transport->detach(c->link);
	c->side->transport->link_free(c->link);
	free(c->own);
	return rc;
}

int mst_write_test(const struct mst_write_side *side, const char *address, uint64_t timeout_ns,
		   struct mst_write_report *out)
{
	struct write_test c = {
		.side = side, .address = address, .timeout_ns = timeout_ns, .report = out
	};

	*out = (struct mst_write_report){ 0 };
	int rc = mst_write_net(side, 1, &c.net, &out->why);
	if (rc < 0)
		return fail_call(out, rc, "net");
	rc = test(&c);
	side->transport->net_close(c.net);
	return rc;
}

static void *serve(void *peer)
{
	mst_write_peer_serve(peer, MST_NEVER, NULL, NULL);
	return NULL;
}

int mst_write_loopback(const struct mst_write_side *side, uint64_t timeout_ns,
		       struct mst_write_report *out)
{
	struct mst_write_peer *peer;
	pthread_t thread;

	*out = (struct mst_write_report){ 0 };
	int rc = mst_write_peer_open(side, &peer, &out->why);
	if (rc < 0)
		return fail_call(out, rc, "listener");
	rc = -pthread_create(&thread, NULL, serve, peer);
	if (rc == 0) {
		rc = mst_write_test(side, mst_write_peer_address(peer), timeout_ns, out);
		mst_write_peer_stop(peer);
		(void)pthread_join(thread, NULL);
	} else {
		(void)fail(out, rc, "no thread for the peer: %s", strerror(-rc));
	}
	mst_write_peer_close(peer);
	return rc;
}
