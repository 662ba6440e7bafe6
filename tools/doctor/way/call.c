/* SPDX-License-Identifier: MIT */
/* The end of the test of a way that calls. */
#include "tools/doctor/way/way.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/transport/called.h"
#include "tools/doctor/way/rate.h"

#define RATE_NS (500 * MST_MS)    /* for each figure */
#define GRACE_NS (5 * MST_SECOND) /* for what the other end does in its own time */

struct call {
	const struct mst_way_end *own;
	struct mst_way_stream s;
	struct mst_write_side side;
	struct mst_way_report *r;
	double bytes_per_s; /* roughly */
};

/* ---- the control port ---- */

json_t *mst_way_card(const struct mst_way_end *own)
{
	char host[MST_WRITE_NAME_LEN] = "";

	if (gethostname(host, sizeof(host) - 1) != 0)
		(void)snprintf(host, sizeof(host), "?");
	json_t *card = json_pack("{s:i, s:s, s:I, s:I, s:I}", MST_WAY_GREETING, MST_WAY_VERSION,
				 "host", host, "cores", (json_int_t)own->cores, "send_max",
				 (json_int_t)own->send_max, "receive_max",
				 (json_int_t)own->receive_max);
	if (card != NULL && own->rdma != NULL)
		(void)json_object_set_new(card, "rdma", json_string(own->rdma));
	return card;
}

static int unconnected(const struct call *c, int error, const struct mst_reason *proof)
{
	struct mst_reason *why = &c->r->control.why;
	const char *at = c->r->address;

	if (proof->text[0] != '\0') /* the only sentence of an unreachable host is of its name */
		return mst_reason_fail(why, error == -EHOSTUNREACH ? -ENOENT : error, "%s",
				       proof->text);
	switch (error) {
	case -ECONNREFUSED:
		return mst_reason_fail(why, error, "nobody listens at %s", at);
	case -ETIMEDOUT:
		return mst_reason_fail(why, error,
				       "%s does not answer within %.3g s: a firewall drops this, "
				       "or no host has that address",
				       at, (double)c->own->timeout_ns / (double)MST_SECOND);
	case -ENOENT:
		return mst_reason_fail(why, error, "there is no host of that name: %s", at);
	default:
		return mst_reason_fail(why, error, "cannot connect to %s: %s", at,
				       strerror(-error));
	}
}

static void look_at_path(struct call *c)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	int fd = c->s.ops->stream_fd(c->s.stream);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0)
		c->r->mtu = info.tcpi_pmtu;
}

static int greet(struct call *c)
{
	struct mst_way_report *r = c->r;
	struct mst_reason *why = &r->control.why;
	json_t *card;

	int rc = mst_way_say(&c->s, mst_way_card(c->own), why);
	if (rc == 0)
		rc = mst_way_hear(&c->s, &card, why);
	if (rc != 0)
		return rc;
	if (mst_way_number(card, MST_WAY_GREETING, INT32_MAX, -1) != MST_WAY_VERSION)
		rc = mst_reason_fail(why, -EPROTO,
				     "%s is no muster doctor of this version; use the same "
				     "version of muster at both ends",
				     r->address);
	mst_way_text(card, "host", r->host, sizeof(r->host));
	mst_way_text(card, "data", r->data, sizeof(r->data));
	mst_way_text(card, "secure", r->secure, sizeof(r->secure));
	mst_way_text(card, "rdma", r->rdma, sizeof(r->rdma));
	r->cores = (uint32_t)mst_way_number(card, "cores", UINT16_MAX, 0);
	r->send_max = (uint64_t)mst_way_number(card, "send_max", INT64_MAX, 0);
	r->receive_max = (uint64_t)mst_way_number(card, "receive_max", INT64_MAX, 0);
	json_decref(card);
	return rc;
}

static int connect_to(struct call *c)
{
	struct mst_proof proof = { .own = c->own->own };
	uint64_t began_ns = mst_now_ns();

	c->s.ops = mst_stream_of(c->own->own);
	(void)snprintf(c->s.peer, sizeof(c->s.peer), "%s", c->r->address);
	int rc = c->s.ops->connect(c->r->address, c->own->timeout_ns, &proof, &c->s.stream);
	if (rc != 0)
		return unconnected(c, rc, &proof.why);
	c->r->connect_ns = mst_now_ns() - began_ns;
	c->r->encrypted = c->own->own != NULL;
	c->s.deadline_ns = mst_deadline_ns(c->own->timeout_ns);
	look_at_path(c);
	return greet(c);
}

static bool reach_control(struct call *c, const char *address)
{
	*c->r = (struct mst_way_report){ .control = { .tried = true } };
	(void)snprintf(c->r->address, sizeof(c->r->address), "%s", address);
	c->r->control.error = connect_to(c);
	return c->r->control.error == 0;
}

/* ---- the port for data ---- */

/* A server is at the address that it was called at, first of all. */
static void fill_host(const struct call *c, char address[MST_ADDRESS_LEN])
{
	char host[MST_CALLED_LEN];

	mst_called_fill(address, MST_ADDRESS_LEN,
			mst_called_host(c->s.ops->stream_fd(c->s.stream), host));
}

static int move(struct call *c)
{
	struct mst_write_report report;
	int rc = mst_write_test(&c->side, c->r->data, c->own->timeout_ns, &report);

	c->r->moved = (struct mst_way_step){ .tried = true, .error = rc, .why = report.why };
	c->r->linked = report.linked;
	c->r->round_trip_ns = 2 * report.latency_ns;
	c->bytes_per_s = report.bytes_per_s;
	return rc;
}

/* As a worker does it. */
static bool reach_data(struct call *c)
{
	struct mst_way_report *r = c->r;

	if (mst_transport_of(r->data) != &mst_tcp) {
		r->moved = (struct mst_way_step){ .tried = true, .error = -EPROTO };
		mst_reason_set(&r->moved.why, "%s names no port for data", r->address);
		return false;
	}
	fill_host(c, r->data);
	return move(c) == 0;
}

/* ---- bytes a second ---- */

/* Where the figures of a measurement go. */
struct way_rates {
	struct mst_way_step *step;
	double *up, *down;
};

static void measure(struct call *c, const struct mst_write_side *side, const char *address,
		    struct way_rates *out)
{
	struct mst_rate_test test = { .side = side,
				      .address = address,
				      .piece = mst_rate_piece(c->bytes_per_s),
				      .for_ns = RATE_NS,
				      .timeout_ns = c->own->timeout_ns };
	int rc = 0;

	out->step->tried = true;
	for (uint32_t i = 0; i < MST_WAY_COUNTS && rc == 0; i++) {
		test.links = mst_way_count[i];
		rc = mst_rate_measure(&test, &out->up[i], &out->step->why);
	}
	test.links = 1;
	test.pull = true;
	if (rc == 0)
		rc = mst_rate_measure(&test, out->down, &out->step->why);
	out->step->error = rc;
}

static void measure_plain(struct call *c)
{
	struct mst_way_report *r = c->r;
	struct way_rates rates = { &r->rates, r->up, &r->down };

	measure(c, &c->side, r->data, &rates);
}

/* Over links that are encrypted as those of a job with certificates are. */
static void measure_encrypted(struct call *c)
{
	struct mst_way_report *r = c->r;
	struct way_rates rates = { &r->tls, r->encrypted_up, &r->encrypted_down };
	struct mst_write_side side = c->side;

	if (mst_transport_of(r->secure) != &mst_tcp) {
		r->tls = (struct mst_way_step){ .tried = true, .error = -EPROTO };
		mst_reason_set(&r->tls.why, "%s names no port for encrypted data", r->address);
		return;
	}
	fill_host(c, r->secure);
	side.fabric.encrypted = true;
	side.channels = mst_channels_of(c->own->own);
	measure(c, &side, r->secure, &rates);
}

/* ---- the way back ---- */

static void take_back(const json_t *answer, const char *key, struct mst_way_step *out)
{
	json_t *one = json_object_get(answer, key);
	char text[sizeof(out->why.text)];

	out->tried = true;
	out->error = (int)-mst_way_number(one, "error", 4095, EPROTO);
	mst_way_text(one, "why", text, sizeof(text));
	mst_reason_set(&out->why, "%s", text);
}

static void ask_back(struct call *c, const struct mst_way_peer *back)
{
	struct mst_way_report *r = c->r;
	json_t *answer;

	r->back_port = mst_way_peer_port(back);
	r->back_data_port = mst_way_peer_data_port(back);
	c->s.deadline_ns = mst_deadline_ns(4 * c->own->timeout_ns + GRACE_NS);
	json_t *ask = json_pack("{s:s, s:i, s:i, s:I}", "do", "call", "port", r->back_port, "data",
				r->back_data_port, "timeout_ms",
				(json_int_t)(c->own->timeout_ns / MST_MS));
	r->back_control.tried = true;
	r->back_control.error = mst_way_say(&c->s, ask, &r->back_control.why);
	if (r->back_control.error == 0)
		r->back_control.error = mst_way_hear(&c->s, &answer, &r->back_control.why);
	if (r->back_control.error != 0)
		return;
	take_back(answer, "control", &r->back_control);
	if (r->back_control.error == 0)
		take_back(answer, "data", &r->back_data);
	json_decref(answer);
}

/* This end listens only now: before, it might have called itself. */
static void call_back(struct call *c, uint16_t port)
{
	struct mst_way_end plain = *c->own;
	struct mst_way_step *step = &c->r->back_control;
	struct mst_way_peer *back;

	plain.own = NULL;
	step->tried = true;
	step->error = mst_way_peer_open(&plain, port, &back, &step->why);
	if (step->error == -EADDRINUSE) { /* which a finding of its own tells */
		plain.fabric.data_port = 0;
		step->error = mst_way_peer_open(&plain, port, &back, &step->why);
	}
	if (step->error != 0)
		return;
	ask_back(c, back);
	mst_way_peer_close(back);
}

/* ---- all of it ---- */

static struct call begin(const struct mst_way_end *own, struct mst_way_report *out)
{
	struct call c = { .own = own, .r = out };

	c.side = (struct mst_write_side){ .transport = &mst_tcp, .fabric = own->fabric };
	c.side.fabric.io_threads = 1; /* as a worker has it */
	return c;
}

void mst_way_call(const struct mst_way_end *own, const char *address, uint16_t back,
		  struct mst_way_report *out)
{
	struct call c = begin(own, out);

	if (reach_control(&c, address) && reach_data(&c))
		measure_plain(&c);
	if (out->rates.tried && out->rates.error == 0 && out->encrypted)
		measure_encrypted(&c);
	if (out->control.error == 0)
		call_back(&c, back);
	if (c.s.stream != NULL)
		c.s.ops->close(c.s.stream);
}

void mst_way_call_back(const struct mst_way_end *own, const char *address, uint16_t data_port,
		       struct mst_way_report *out)
{
	struct call c = begin(own, out);

	if (reach_control(&c, address)) {
		(void)snprintf(out->data, sizeof(out->data), "%s*:%u", mst_tcp.prefix, data_port);
		(void)reach_data(&c);
	}
	if (c.s.stream != NULL)
		c.s.ops->close(c.s.stream);
}
