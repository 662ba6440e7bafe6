/* SPDX-License-Identifier: MIT */
#include "tools/doctor_try.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"

static struct mst_doctor_try *next_try(struct mst_doctor_tries *tries, const char *check,
				       const struct mst_transport *transport)
{
	struct mst_doctor_try *t = &tries->item[tries->count++];

	*t = (struct mst_doctor_try){ .check = check, .transport = transport->scheme };
	return t;
}

static void fill_card(const struct mst_doctor_port *at, struct mst_write_card *card)
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

static void try_port(const struct mst_doctor_port *at, uint64_t timeout_ns,
		     struct mst_doctor_tries *out)
{
	char device[MST_PROBE_NAME_LEN + 16];
	struct mst_write_side side = { .transport = &mst_verbs, .fabric = MST_FABRIC_DEFAULT };
	struct mst_doctor_try *t = next_try(out, "write", side.transport);

	(void)snprintf(device, sizeof(device), "%s:%u", at->device->probe.name, at->port->number);
	side.fabric.devices = device;
	fill_card(at, &side.card);
	t->own = side.card;
	(void)snprintf(t->subject, sizeof(t->subject), "%s", side.card.port);
	t->error = mst_write_loopback(&side, timeout_ns, &t->report);
}

void mst_doctor_try_here(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
			 const struct mst_doctor_options *o, struct mst_doctor_tries *out)
{
	struct mst_write_side shm = { .transport = &mst_shm, .fabric = MST_FABRIC_DEFAULT };
	struct mst_doctor_try *t = next_try(out, "shm", shm.transport);
	struct mst_doctor_port port[MST_DOCTOR_PORTS_MAX];
	uint32_t count = mst_doctor_ports(f, wish, port, MST_DOCTOR_PORTS_MAX);

	t->error = mst_write_loopback(&shm, o->timeout_ns, &t->report);
	for (uint32_t i = 0; i < count; i++)
		try_port(&port[i], o->timeout_ns, out);
}

/* The first IP address in a door's, as "verbs:10.0.0.1:4000,..." or "verbs:[fd00::1]:4000,...". */
static bool address_in(const char *door, uint8_t raw[16])
{
	char host[64], mapped[sizeof(host) + 8];

	door += strcspn(door, ":");
	door += *door == ':';
	bool v6 = *door == '[';
	(void)snprintf(host, sizeof(host), "%.*s", (int)strcspn(door + v6, v6 ? "]" : ":"),
		       door + v6);
	(void)snprintf(mapped, sizeof(mapped), "%s%s", v6 ? "" : "::ffff:", host);
	return inet_pton(AF_INET6, mapped, raw) == 1;
}

/* The address of this host from which a peer is reached; asks the kernel, sends nothing. */
static bool source_to(const uint8_t peer[16], uint8_t raw[16])
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = htons(4791) };
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
static struct mst_doctor_port port_at(const struct mst_doctor_facts *f, const uint8_t raw[16])
{
	struct mst_doctor_wish any = { 0 };
	struct mst_doctor_port port[MST_DOCTOR_PORTS_MAX];
	uint32_t count = mst_doctor_ports(f, &any, port, MST_DOCTOR_PORTS_MAX);

	for (uint32_t i = 0; i < count; i++)
		if (memcmp(port[i].address, raw, 16) == 0 || has_gid(port[i].port, raw))
			return port[i];
	return (struct mst_doctor_port){ 0 };
}

void mst_doctor_try_peer(const struct mst_doctor_facts *f, const struct mst_doctor_options *o,
			 struct mst_doctor_tries *out)
{
	struct mst_write_side side = { .transport = mst_transport_of(o->peer),
				       .fabric = MST_FABRIC_DEFAULT };
	struct mst_doctor_try *t = next_try(out, "peer", side.transport);
	struct mst_doctor_port from = { 0 };
	uint8_t there[16], here[16];

	side.fabric.devices = o->devices;
	side.fabric.addresses = o->addresses;
	if (address_in(o->peer, there) && source_to(there, here))
		from = port_at(f, here);
	fill_card(&from, &side.card);
	t->own = side.card;
	(void)snprintf(t->subject, sizeof(t->subject), "%s", o->peer);
	t->error = mst_write_test(&side, o->peer, o->timeout_ns, &t->report);
}

static struct mst_write_peer *interrupted;

static void interrupt(int signo)
{
	(void)signo;
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

static void serve(struct mst_write_peer *peer, const struct mst_doctor_options *o, FILE *out)
{
	struct sigaction action = { .sa_handler = interrupt };

	interrupted = peer;
	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
	(void)fprintf(out, "\nlistening; on the other host:\n\n  muster doctor --peer %s\n\n",
		      mst_write_peer_address(peer));
	(void)fflush(out);
	mst_write_peer_serve(peer, o->span_ns == 0 ? MST_NEVER : mst_now_ns() + o->span_ns,
			     say_seen, out);
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGTERM, SIG_DFL);
}

int mst_doctor_listen(const struct mst_doctor_facts *f, const struct mst_doctor_options *o,
		      FILE *out)
{
	struct mst_write_side side = { .transport = o->transport == 0 ? &mst_verbs : &mst_shm,
				       .fabric = MST_FABRIC_DEFAULT };
	struct mst_doctor_port at = { 0 };
	struct mst_write_peer *peer;
	uint8_t raw[16];

	side.fabric.devices = o->devices;
	side.fabric.addresses = o->addresses;
	int rc = mst_write_peer_open(&side, &peer);
	if (rc < 0) {
		mst_error("cannot listen: %s", mst_why()[0] != '\0' ? mst_why() : strerror(-rc));
		return rc;
	}
	if (address_in(mst_write_peer_address(peer), raw))
		at = port_at(f, raw);
	fill_card(&at, &side.card);
	mst_write_peer_introduce(peer, &side.card);
	serve(peer, o, out);
	mst_write_peer_close(peer);
	return 0;
}
