/* SPDX-License-Identifier: MIT */
/* muster doctor --listen: the peer of another host's test, over each network that there is. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "tools/doctor/network.h"
#include "tools/doctor/try.h"

#define LOOK_MS 50
#define SHOWN_MAX 4u /* addresses */

/* What listens. */
struct ears {
	const struct mst_doctor_facts *facts;
	const struct mst_doctor_options *options;
	FILE *out;
	struct mst_way_peer *way;     /* NULL: not over TCP */
	struct mst_write_peer *write; /* over the network of side; NULL: over none */
	struct mst_write_side side;
};

static struct mst_write_peer *interrupted;
static volatile sig_atomic_t stopped;

static void interrupt(int signo)
{
	(void)signo;
	stopped = 1;
	if (interrupted != NULL)
		mst_write_peer_stop(interrupted);
}

static void say_seen(void *ctx, const struct mst_write_card *who, uint64_t wrong_bytes)
{
	FILE *out = ctx;

	(void)fprintf(out, "%s %s wrote %s: ", who->host, who->port,
		      mst_bytes_text(MST_WRITE_BYTES).text);
	if (wrong_bytes == 0)
		(void)fputs("every byte right\n", out);
	else
		(void)fprintf(out, "%" PRIu64 " bytes wrong\n", wrong_bytes);
	(void)fflush(out);
}

static void say_called(void *ctx, const char *line)
{
	(void)fprintf(ctx, "%s\n", line);
	(void)fflush(ctx);
}

/* ---- opening ---- */

static int open_write(struct ears *e, const struct mst_transport *transport)
{
	struct mst_doctor_port at = { 0 };
	struct mst_reason why;
	uint8_t raw[16];

	e->side = (struct mst_write_side){ .transport = transport, .fabric = MST_FABRIC_DEFAULT };
	e->side.fabric.devices = e->options->devices;
	e->side.fabric.addresses = e->options->addresses;
	int rc = mst_write_peer_open(&e->side, &e->write, &why);
	if (rc < 0) {
		e->write = NULL;
		mst_error("cannot listen over %s: %s", transport->medium,
			  mst_reason_or_errno(&why, rc));
		return rc;
	}
	if (mst_doctor_address_in(mst_write_peer_address(e->write), raw))
		at = mst_doctor_port_at(e->facts, raw);
	mst_doctor_fill_card(&at, &e->side.card);
	mst_write_peer_set_card(e->write, &e->side.card);
	return 0;
}

static int open_way(struct ears *e, struct mst_credentials *own)
{
	struct mst_way_end end = mst_doctor_way_end(e->facts, e->options);
	struct mst_reason why;

	end.own = own;
	end.rdma = e->write != NULL ? mst_write_peer_address(e->write) : NULL;
	end.seen = say_called;
	end.ctx = e->out;
	int rc = mst_way_peer_open(&end, (uint16_t)e->options->port, &e->way, &why);
	if (rc < 0) {
		e->way = NULL;
		mst_error("cannot listen over %s: %s", mst_tcp.medium,
			  mst_reason_or_errno(&why, rc));
	}
	return rc;
}

/* Each network that is asked for; of those that nobody has named, the ones that there are. */
static int open_all(struct ears *e, struct mst_credentials *own)
{
	const struct mst_doctor_options *o = e->options;
	struct mst_doctor_wish wish = { .devices = o->devices };
	struct mst_doctor_port port;
	int rc = 0;

	if (o->transport != MST_DOCTOR_ALL && !mst_doctor_asks_for(o, mst_tcp.scheme))
		return open_write(e, mst_transport_at(o->transport - 1));
	if (mst_doctor_asks_for(o, mst_verbs.scheme) &&
	    (o->devices != NULL || mst_doctor_ports(e->facts, &wish, &port, 1) > 0))
		rc = open_write(e, &mst_verbs);
	if (rc < 0 && o->devices != NULL)
		return rc;
	return open_way(e, own);
}

/* ---- what the other host is to type ---- */

static void show_address(const struct ears *e, const char *ip)
{
	uint16_t port = mst_way_peer_port(e->way);
	bool v6 = strchr(ip, ':') != NULL;

	(void)fprintf(e->out, "  muster doctor --peer ");
	if (port == MST_WAY_PORT)
		(void)fprintf(e->out, "%s\n", ip);
	else
		(void)fprintf(e->out, v6 ? "'[%s]:%u'\n" : "%s:%u\n", ip, port);
}

static bool is_callable(const struct mst_doctor_facts *f, const struct mst_doctor_address *a)
{
	bool link_local = a->raw[0] == 0xfe && (a->raw[1] & 0xc0) == 0x80;

	for (uint32_t i = 0; i < f->netdev_count; i++)
		if (f->netdev[i].loopback && strcmp(f->netdev[i].name, a->netdev) == 0)
			return false;
	return !link_local;
}

static void show_way(const struct ears *e)
{
	const char *typed = e->options->addresses;
	char first[MST_WAY_HOST_LEN];
	uint32_t shown = 0;

	if (typed != NULL) {
		(void)snprintf(first, sizeof(first), "%.*s", (int)strcspn(typed, ","), typed);
		show_address(e, first);
		return;
	}
	for (uint32_t i = 0; i < e->facts->address_count && shown < SHOWN_MAX; i++) {
		if (!is_callable(e->facts, &e->facts->address[i]))
			continue;
		show_address(e, mst_doctor_ip(e->facts->address[i].raw).text);
		shown++;
	}
	if (shown == 0)
		show_address(e, "127.0.0.1");
}

static void show(const struct ears *e)
{
	(void)fprintf(e->out, "\nlistening; on the other host:\n\n");
	if (e->way != NULL)
		show_way(e);
	if (e->write != NULL)
		(void)fprintf(e->out, "  muster doctor --peer %s\n",
			      mst_write_peer_address(e->write));
	if (e->way != NULL)
		(void)fprintf(e->out, "\ncontrol port %u, port for data %u\n",
			      mst_way_peer_port(e->way), mst_way_peer_data_port(e->way));
	if (e->way != NULL && mst_way_peer_secure_port(e->way) != 0)
		(void)fprintf(e->out, "port for encrypted data %u\n",
			      mst_way_peer_secure_port(e->way));
	if (e->way != NULL && mst_way_peer_port(e->way) != e->options->port)
		(void)fprintf(e->out,
			      "port %u is taken here, perhaps by a server: a firewall may treat "
			      "another port otherwise\n",
			      e->options->port);
	(void)fputc('\n', e->out);
	(void)fflush(e->out);
}

/* ---- listening ---- */

static void stay(const struct ears *e)
{
	uint64_t span_ns = e->options->span_ns;
	uint64_t until_ns = span_ns == 0 ? MST_NEVER : mst_now_ns() + span_ns;
	struct sigaction action = { .sa_handler = interrupt };

	interrupted = e->write;
	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
	show(e);
	if (e->write != NULL)
		mst_write_peer_serve(e->write, until_ns, say_seen, e->out);
	while (e->write == NULL && !stopped && mst_now_ns() < until_ns)
		(void)poll(NULL, 0, LOOK_MS);
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGTERM, SIG_DFL);
}

int mst_doctor_listen(const struct mst_doctor_facts *f, const struct mst_doctor_options *o,
		      FILE *out)
{
	struct ears e = { .facts = f, .options = o, .out = out };
	struct mst_credentials *own;
	struct mst_reason why;

	int rc = mst_doctor_credentials(o, &own, &why);
	if (rc != 0) {
		mst_error("cannot listen: %s", why.text);
		return rc;
	}
	rc = open_all(&e, own);
	if (rc == 0)
		stay(&e);
	mst_way_peer_close(e.way);
	mst_write_peer_close(e.write);
	mst_credentials_free(own);
	return rc;
}
