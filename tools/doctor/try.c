/* SPDX-License-Identifier: MIT */
#include "tools/doctor/try.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "tools/doctor/network.h"
#include "tools/figure.h"

static struct mst_doctor_try *next_try(struct mst_doctor_tries *tries, const char *check,
				       const struct mst_transport *transport)
{
	struct mst_doctor_try *t = &tries->item[tries->count++];

	*t = (struct mst_doctor_try){ .check = check, .transport = transport->scheme };
	return t;
}

void mst_doctor_fill_card(const struct mst_doctor_port *at, struct mst_write_card *card)
{
	*card = (struct mst_write_card){ 0 };
	if (gethostname(card->host, sizeof(card->host) - 1) < 0)
		(void)snprintf(card->host, sizeof(card->host), "?");
	if (at->port == NULL)
		return;
	(void)snprintf(card->port, sizeof(card->port), "%.50s/%u", at->device->probe.name,
		       at->port->number);
	card->mtu = at->port->mtu;
}

static void try_port(const struct mst_doctor_network *n, const struct mst_doctor_port *at,
		     uint64_t timeout_ns, struct mst_doctor_tries *out)
{
	char device[MST_PROBE_NAME_LEN + 16];
	struct mst_write_side side = { .transport = n->transport, .fabric = MST_FABRIC_DEFAULT };
	struct mst_doctor_try *t = next_try(out, n->check, side.transport);

	(void)snprintf(device, sizeof(device), "%s:%u", at->device->probe.name, at->port->number);
	side.fabric.devices = device;
	mst_doctor_fill_card(at, &side.card);
	t->own = side.card;
	(void)snprintf(t->subject, sizeof(t->subject), "%s", side.card.port);
	t->error = mst_write_loopback(&side, timeout_ns, &t->report);
}

static void try_host(const struct mst_doctor_network *n, uint64_t timeout_ns,
		     struct mst_doctor_tries *out)
{
	struct mst_write_side side = { .transport = n->transport, .fabric = MST_FABRIC_DEFAULT };
	struct mst_doctor_try *t = next_try(out, n->check, side.transport);

	t->error = mst_write_loopback(&side, timeout_ns, &t->report);
}

/* As a server takes it when it starts. */
static void try_data_port(const struct mst_doctor_options *o, struct mst_doctor_tries *out)
{
	struct mst_fabric fabric = MST_FABRIC_DEFAULT;
	struct mst_ports ports;

	out->data_port = o->data_port;
	if (o->data_port == 0)
		return;
	fabric.addresses = o->addresses;
	fabric.data_port = (uint16_t)o->data_port;
	out->held.tried = true;
	out->held.error = mst_tcp.listener->hold(&fabric, &ports, &out->held.why);
	mst_ports_close(&ports);
}

void mst_doctor_try_here(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
			 const struct mst_doctor_options *o, struct mst_doctor_tries *out)
{
	struct mst_doctor_port port[MST_DOCTOR_PORTS_MAX];
	uint32_t count = mst_doctor_ports(f, wish, port, MST_DOCTOR_PORTS_MAX);

	for (const struct mst_doctor_network *n = mst_doctor_networks; n->check != NULL; n++) {
		if (!n->by_port)
			try_host(n, o->timeout_ns, out);
		for (uint32_t i = 0; n->by_port && i < count; i++)
			try_port(n, &port[i], o->timeout_ns, out);
	}
	try_data_port(o, out);
}

/* The first IP address in a listener's, as "verbs:10.0.0.1:4000,..." or
 * "verbs:[fd00::1]:4000,...". */
bool mst_doctor_address_in(const char *listener, uint8_t raw[16])
{
	char host[64], mapped[sizeof(host) + 8];

	listener += strcspn(listener, ":");
	listener += *listener == ':';
	bool v6 = *listener == '[';
	(void)snprintf(host, sizeof(host), "%.*s", (int)strcspn(listener + v6, v6 ? "]" : ":"),
		       listener + v6);
	(void)snprintf(mapped, sizeof(mapped), "%s%s", v6 ? "" : "::ffff:", host);
	return inet_pton(AF_INET6, mapped, raw) == 1;
}

/* The address of this host from which a peer is reached; asks the kernel, sends nothing. */
static bool source_to(const uint8_t peer[16], uint8_t raw[16])
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6,
				   .sin6_port = htons(MST_DOCTOR_PEER_PORT) };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return false;
	memcpy(&at.sin6_addr, peer, 16);
	bool found = connect(fd, (struct sockaddr *)(void *)&at, sizeof(at)) == 0 &&
		     getsockname(fd, (struct sockaddr *)(void *)&at, &len) == 0;
	memcpy(raw, &at.sin6_addr, 16);
	(void)close(fd);
	return found;
}

static bool has_gid(const struct mst_probe_port *port, const uint8_t raw[16])
{
	for (uint32_t i = 0; i < port->gid_count; i++)
		if (memcmp(port->gid[i].raw, raw, 16) == 0)
			return true;
	return false;
}

/* The port that an address of this host belongs to; zeroes: none is known. */
struct mst_doctor_port mst_doctor_port_at(const struct mst_doctor_facts *f, const uint8_t raw[16])
{
	struct mst_doctor_wish any = { 0 };
	struct mst_doctor_port port[MST_DOCTOR_PORTS_MAX];
	uint32_t count = mst_doctor_ports(f, &any, port, MST_DOCTOR_PORTS_MAX);

	for (uint32_t i = 0; i < count; i++)
		if (memcmp(port[i].address, raw, 16) == 0 || has_gid(port[i].port, raw))
			return port[i];
	return (struct mst_doctor_port){ 0 };
}

static struct mst_doctor_try *try_peer(const struct mst_doctor_facts *f,
				       const struct mst_doctor_options *o, const char *address,
				       struct mst_doctor_tries *out)
{
	struct mst_write_side side = { .transport = mst_transport_of(address),
				       .fabric = MST_FABRIC_DEFAULT };
	struct mst_doctor_try *t = next_try(out, "peer", side.transport);
	struct mst_doctor_port from = { 0 };
	uint8_t there[16], here[16];

	side.fabric.devices = o->devices;
	side.fabric.addresses = o->addresses;
	if (mst_doctor_address_in(address, there) && source_to(there, here))
		from = mst_doctor_port_at(f, here);
	mst_doctor_fill_card(&from, &side.card);
	t->own = side.card;
	(void)snprintf(t->subject, sizeof(t->subject), "%.79s", address);
	t->error = mst_write_test(&side, address, o->timeout_ns, &t->report);
	return t;
}

void mst_doctor_try_peer(const struct mst_doctor_facts *f, const struct mst_doctor_options *o,
			 struct mst_doctor_tries *out)
{
	(void)try_peer(f, o, o->peer, out);
}

struct mst_way_end mst_doctor_way_end(const struct mst_doctor_facts *f,
				      const struct mst_doctor_options *o)
{
	struct mst_way_end end = { .fabric = MST_FABRIC_DEFAULT,
				   .timeout_ns = o->timeout_ns,
				   .send_max = f->send_max,
				   .receive_max = f->receive_max };
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	end.cores = cores > 0 ? (uint32_t)cores : 0;
	end.fabric.addresses = o->addresses;
	end.fabric.data_port = (uint16_t)o->data_port;
	return end;
}

int mst_doctor_credentials(const struct mst_doctor_options *o, struct mst_credentials **out,
			   struct mst_reason *why)
{
	struct mst_tls_files files = o->tls;

	*out = NULL;
	mst_tls_files_environment(&files);
	return mst_credentials_load(&files, out, why);
}

/* RDMA was asked for, and the other host has none. */
static void lacks_rdma(const struct mst_way_report *way, struct mst_doctor_try *out)
{
	(void)snprintf(out->subject, sizeof(out->subject), "%.79s", way->address);
	out->error = -EOPNOTSUPP;
	mst_reason_set(&out->report.why, "muster doctor --listen on %s has found no RDMA there",
		       way->host);
}

void mst_doctor_try_way(const struct mst_doctor_facts *f, const struct mst_doctor_options *o,
			struct mst_doctor_tries *out)
{
	struct mst_way_end end = mst_doctor_way_end(f, o);
	struct mst_way_report *way = &out->way;
	struct mst_doctor_wish any = { .devices = o->devices };
	struct mst_doctor_port port;
	char address[MST_WAY_TEXT_LEN];

	way->control.tried = true;
	way->control.error = mst_way_address(o->peer, address, &way->control.why);
	if (way->control.error == 0)
		way->control.error = mst_doctor_credentials(o, &end.own, &way->control.why);
	if (way->control.error != 0) {
		(void)snprintf(way->address, sizeof(way->address), "%.200s", o->peer);
		return;
	}
	mst_way_call(&end, address, (uint16_t)o->port, way);
	mst_credentials_free(end.own);
	if (way->control.error == 0 && way->rdma[0] == '\0' && o->transport != MST_DOCTOR_ALL &&
	    mst_doctor_asks_for(o, mst_verbs.scheme))
		lacks_rdma(way, next_try(out, "peer", &mst_verbs));
	if (mst_transport_of(way->rdma) == &mst_verbs && mst_doctor_asks_for(o, mst_verbs.scheme) &&
	    mst_doctor_ports(f, &any, &port, 1) > 0)
		try_peer(f, o, way->rdma, out)->spare = o->transport == MST_DOCTOR_ALL;
}

/* ---- what a test says of the way it went; pure ---- */

static void judge_failure(const struct mst_doctor_try *t, struct mst_findings *out)
{
	const struct mst_doctor_network *network = mst_doctor_network_of(t->check);
	struct mst_finding *new = mst_finding_add(out, MST_FINDING_FAIL, t->check,
						  "a write of %s failed",
						  mst_bytes_text(MST_WRITE_BYTES).text);

	mst_finding_subject(new, "%s", t->subject);
	mst_finding_cause(new, "%s", t->report.why.text);
	if (t->error == -EBADMSG && (network == NULL || !network->within_host))
		mst_finding_fix(new, "no gradient may pass here: other cable, port, driver or "
				     "firmware");
	else if (network != NULL)
		network->fix(t, out, new);
	else if (t->error == -EOPNOTSUPP)
		mst_finding_fix(new, "muster doctor on that host says what is wrong with its RDMA");
	else
		mst_finding_fix(new, MST_DOCTOR_PEER_FIX);
}

static void judge_mtus(const struct mst_doctor_try *t, struct mst_findings *out)
{
	const struct mst_write_card *own = &t->own, *peer = &t->report.peer;

	if (own->mtu == 0 || peer->mtu == 0 || own->mtu == peer->mtu)
		return;
	struct mst_finding *new = mst_finding_add(out, MST_FINDING_WARNING, "peer mtu",
						  "%u bytes at %s here, %u at %s of %s", own->mtu,
						  own->port, peer->mtu, peer->port, peer->host);
	mst_finding_subject(new, "%s", t->subject);
	mst_finding_cause(new, "the network interfaces under them have different MTUs; the smaller "
			       "counts, where it is heeded at all");
	mst_finding_fix(new, "the same on both hosts: ip link set IFACE mtu 4200");
}

void mst_doctor_judge_try(const struct mst_doctor_try *t, struct mst_findings *out)
{
	const struct mst_write_report *r = &t->report;
	char who[2 * MST_WRITE_NAME_LEN + 16] = "";

	if (t->error != 0) {
		judge_failure(t, out);
		return;
	}
	if (strcmp(t->check, "peer") == 0)
		(void)snprintf(who, sizeof(who), " to %s%s%s", r->peer.host,
			       r->peer.port[0] != '\0' ? " " : "", r->peer.port);
	struct mst_finding *new = mst_finding_add(
		out, MST_FINDING_OK, t->check, "wrote %s%s: every byte right, %s one way, %s/s",
		mst_bytes_text(MST_WRITE_BYTES).text, who, mst_figure_duration(r->latency_ns).text,
		mst_bytes_text((uint64_t)r->bytes_per_s).text);
	mst_finding_subject(new, "%s", t->subject);
	judge_mtus(t, out);
}
