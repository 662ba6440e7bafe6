/* SPDX-License-Identifier: MIT */
/* Ports: which are up, which address leads to them, and how large their packets are. Pure. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "tools/doctor/judge.h"

#define MTU_GOOD 4200u /* of a network interface: 4096 and all headers */

/*
 * The best way to a port. A connection is made to an IP address, also over InfiniBand: the
 * connection manager looks up the GID of that address, so the port's table must have one, and the
 * interface must still have the address. Worst first.
 */
enum way_rank {
	WAY_NONE,       /* no GID of an address */
	WAY_STALE,      /* a GID whose address is not there any more */
	WAY_LOOPBACK,   /* one of lo, which stands for no device */
	WAY_LINK_LOCAL, /* an address that leads nowhere without its interface's name */
	WAY_ROCE_V1,    /* by the older protocol, which the transport does not take */
	WAY_GOOD,
};

struct way {
	enum way_rank rank;
	uint32_t gid;                      /* index; over Ethernet */
	char netdev[MST_PROBE_NETDEV_LEN]; /* of the port; "": not known */
	uint8_t address[16];
};

struct mst_doctor_ip mst_doctor_ip(const uint8_t raw[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct mst_doctor_ip ip;
	bool v4 = memcmp(raw, mapped, sizeof(mapped)) == 0;

	(void)inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? &raw[12] : raw, ip.text, sizeof(ip.text));
	return ip;
}

bool mst_doctor_names(const char *devices, const char *device, uint32_t port)
{
	char all[MST_PROBE_NAME_LEN], one[MST_PROBE_NAME_LEN + 16];
	const char *at = devices;

	if (devices == NULL)
		return true;
	(void)snprintf(all, sizeof(all), "%s", device);
	(void)snprintf(one, sizeof(one), "%s:%u", device, port);
	for (size_t len; *at != '\0'; at += len + (at[len] == ',')) {
		len = strcspn(at, ",");
		if (len == strlen(all) && strncmp(at, all, len) == 0)
			return true;
		if (port == 0 && len > strlen(all) && strncmp(at, all, strlen(all)) == 0 &&
		    at[strlen(all)] == ':')
			return true;
		if (len == strlen(one) && strncmp(at, one, len) == 0)
			return true;
	}
	return false;
}

bool mst_doctor_device_works(const struct mst_doctor_device *d)
{
	return d->listed && d->probe.error == 0 && !d->probe.iwarp &&
	       (d->node.name[0] == '\0' || d->node.usable);
}

const struct mst_doctor_address *mst_doctor_address_of(const struct mst_doctor_facts *f,
						       const char *netdev, const uint8_t raw[16])
{
	for (uint32_t i = 0; i < f->address_count; i++) {
		const struct mst_doctor_address *a = &f->address[i];
		if ((netdev[0] == '\0' || strcmp(a->netdev, netdev) == 0) &&
		    memcmp(a->raw, raw, sizeof(a->raw)) == 0)
			return a;
	}
	return NULL;
}

static const struct mst_doctor_netdev *netdev_of(const struct mst_doctor_facts *f, const char *name)
{
	for (uint32_t i = 0; i < f->netdev_count; i++)
		if (strcmp(f->netdev[i].name, name) == 0)
			return &f->netdev[i];
	return NULL;
}

static bool is_link_local(const uint8_t raw[16])
{
	return raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80;
}

/* Every port has a link-local GID. It is of no use if no interface has this address. */
static enum way_rank rank_of(const struct mst_doctor_facts *f, const struct mst_probe_gid *gid)
{
	const struct mst_doctor_address *a = mst_doctor_address_of(f, gid->netdev, gid->raw);
	const struct mst_doctor_netdev *n = a != NULL ? netdev_of(f, a->netdev) : NULL;

	if (gid->type == MST_PROBE_GID_IB || (a == NULL && is_link_local(gid->raw)))
		return WAY_NONE;
	if (a == NULL)
		return WAY_STALE;
	if (n != NULL && n->loopback)
		return WAY_LOOPBACK;
	if (is_link_local(gid->raw))
		return WAY_LINK_LOCAL;
	return gid->type == MST_PROBE_GID_ROCE_V2 ? WAY_GOOD : WAY_ROCE_V1;
}

static const char *netdev_on_card(const struct mst_doctor_facts *f, const char *device)
{
	for (uint32_t i = 0; i < f->netdev_count; i++)
		if (strcmp(f->netdev[i].device, device) == 0)
			return f->netdev[i].name;
	return "";
}

static struct way roce_way(const struct mst_doctor_facts *f, const struct mst_doctor_device *d,
			   const struct mst_probe_port *port)
{
	struct way best = { .rank = WAY_NONE };

	(void)snprintf(best.netdev, sizeof(best.netdev), "%s", netdev_on_card(f, d->probe.name));
	for (uint32_t i = 0; i < port->gid_count; i++) {
		const struct mst_probe_gid *gid = &port->gid[i];
		enum way_rank rank = rank_of(f, gid);

		if (best.netdev[0] == '\0' || (rank > best.rank && gid->netdev[0] != '\0'))
			(void)snprintf(best.netdev, sizeof(best.netdev), "%s", gid->netdev);
		if (rank <= best.rank)
			continue;
		best.rank = rank;
		best.gid = gid->index;
		memcpy(best.address, gid->raw, sizeof(best.address));
	}
	return best;
}

/* An address of the port's IP-over-InfiniBand interface. */
static struct way infiniband_way(const struct mst_doctor_facts *f,
				 const struct mst_doctor_device *d, uint32_t port)
{
	struct way best = { .rank = WAY_NONE };

	for (uint32_t i = 0; i < f->netdev_count; i++) {
		const struct mst_doctor_netdev *n = &f->netdev[i];
		if (!n->infiniband || n->port != port || strcmp(n->device, d->probe.name) != 0)
			continue;
		if (best.netdev[0] == '\0')
			memcpy(best.netdev, n->name, sizeof(best.netdev));
		for (uint32_t k = 0; k < f->address_count; k++) {
			const struct mst_doctor_address *a = &f->address[k];
			if (best.rank == WAY_GOOD || strcmp(a->netdev, n->name) != 0)
				continue;
			best.rank = is_link_local(a->raw) ? WAY_LINK_LOCAL : WAY_GOOD;
			memcpy(best.address, a->raw, sizeof(best.address));
		}
	}
	return best;
}

static struct way way_to(const struct mst_doctor_facts *f, const struct mst_doctor_device *d,
			 const struct mst_probe_port *port)
{
	return port->link == MST_PROBE_INFINIBAND ? infiniband_way(f, d, port->number)
						  : roce_way(f, d, port);
}

uint32_t mst_doctor_ports(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
			  struct mst_doctor_port *out, uint32_t max)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < f->device_count; i++) {
		const struct mst_doctor_device *d = &f->device[i];
		for (uint32_t k = 0; k < d->probe.port_count && count < max; k++) {
			const struct mst_probe_port *port = &d->probe.port[k];
			struct way way = way_to(f, d, port);
			if (!mst_doctor_device_works(d) || port->state != MST_PROBE_ACTIVE ||
			    way.rank != WAY_GOOD ||
			    !mst_doctor_names(wish->devices, d->probe.name, port->number))
				continue;
			out[count] = (struct mst_doctor_port){ .device = d, .port = port };
			memcpy(out[count++].address, way.address, sizeof(way.address));
		}
	}
	return count;
}

/* ---- what is wrong with a port ---- */

/* One port in question. */
struct look {
	const struct mst_doctor_facts *f;
	const struct mst_doctor_device *d;
	const struct mst_probe_port *port;
	struct way way;
	enum mst_finding_level bad; /* what a port that cannot be used is */
	struct mst_findings *out;
};

static struct mst_finding *say(const struct look *l, enum mst_finding_level level,
			       const char *check, const char *found)
{
	struct mst_finding *f = mst_finding_add(l->out, level, check, "%s", found);

	mst_finding_subject(f, "%s/%u", l->d->probe.name, l->port->number);
	return f;
}

static void judge_down(const struct look *l)
{
	static const char *const phys[] = { [1] = "asleep",   [2] = "polling for a partner",
					    [3] = "disabled", [4] = "training",
					    [5] = "up",       [6] = "recovering" };
	const struct mst_doctor_netdev *n = netdev_of(l->f, l->way.netdev);
	uint32_t state = l->port->phys_state;
	char found[160];

	(void)snprintf(found, sizeof(found), "down; the physical link is %s",
		       state >= 1 && state <= 6 ? phys[state] : "in an unknown state");
	struct mst_finding *f = say(l, l->bad, "port", found);
	if (n != NULL && strcmp(n->state, "down") == 0) {
		mst_finding_cause(f, "its network interface %s is down", n->name);
		mst_finding_fix(f, "ip link set %s up", n->name);
	} else if (l->port->link == MST_PROBE_INFINIBAND) {
		mst_finding_cause(f, "no cable, no partner, or the port is switched off");
		mst_finding_fix(f, "ibstat %s; then cable and switch", l->d->probe.name);
	} else {
		mst_finding_cause(f, "its network interface has no carrier, or is down");
		mst_finding_fix(f, "rdma link show; ip -br link; then cable and switch");
	}
}

static void judge_initialising(const struct look *l)
{
	struct mst_finding *f = say(l, l->bad, "port",
				    l->port->state == MST_PROBE_INIT
					    ? "initialising: up, but not yet configured"
					    : "armed: configured, but not yet active");

	if (l->port->link != MST_PROBE_INFINIBAND)
		return;
	mst_finding_cause(f, "no subnet manager has been at this port (LID %u)", l->port->lid);
	mst_finding_fix(f, "start one in the fabric: on one of its hosts "
			   "apt-get install opensm; systemctl start opensm");
}

static void judge_state(const struct look *l)
{
	const struct mst_probe_port *port = l->port;
	char found[160], lid[32] = "";

	if (port->state == MST_PROBE_INIT || port->state == MST_PROBE_ARMED) {
		judge_initialising(l);
		return;
	}
	if (port->state != MST_PROBE_ACTIVE) {
		judge_down(l);
		return;
	}
	if (port->link == MST_PROBE_INFINIBAND)
		(void)snprintf(lid, sizeof(lid), ", LID %u", port->lid);
	(void)snprintf(found, sizeof(found), "active, %s, %.4g Gbit/s%s",
		       port->link == MST_PROBE_INFINIBAND ? "InfiniBand"
		       : port->link == MST_PROBE_ETHERNET ? "Ethernet"
							  : "link layer unknown",
		       port->rate_mbit / 1e3, lid);
	say(l, MST_FINDING_OK, "port", found);
}

/* The first address of an interface that leads somewhere; NULL: there is none. */
static const struct mst_doctor_address *address_on(const struct mst_doctor_facts *f,
						   const char *netdev)
{
	for (uint32_t i = 0; i < f->address_count; i++)
		if (strcmp(f->address[i].netdev, netdev) == 0 && !is_link_local(f->address[i].raw))
			return &f->address[i];
	return NULL;
}

/* No GID leads here: the interface has no address, or the table does not know of it. */
static void fix_gid(const struct look *l, struct mst_finding *f)
{
	const char *netdev = l->way.netdev[0] != '\0' ? l->way.netdev : "IFACE";
	const struct mst_doctor_address *a = address_on(l->f, netdev);

	if (a == NULL) {
		mst_finding_cause(f, "%s has no IP address",
				  l->way.netdev[0] != '\0' ? netdev : "its network interface");
		mst_finding_fix(f, "ip addr add ADDRESS/24 dev %s", netdev);
		return;
	}
	mst_finding_cause(f, "%s has %s now, and the device's table has not followed", netdev,
			  mst_doctor_ip(a->raw).text);
	mst_finding_fix(f, "ip link set %s down; ip link set %s up", netdev, netdev);
}

static void judge_elsewhere(const struct look *l)
{
	char found[160];

	(void)snprintf(found, sizeof(found), "its network interface %s is not here", l->way.netdev);
	struct mst_finding *f = say(l, l->bad, "gid", found);
	mst_finding_cause(f, "this process is in a network namespace of its own, and the device's "
			     "addresses are in another");
	mst_finding_fix(f, l->f->container[0] != '\0'
				   ? "start the container with --network=host"
				   : "run in the host's network namespace: nsenter -t 1 -n");
}

static void say_way(const struct way *way, char *out, size_t len)
{
	struct mst_doctor_ip ip = mst_doctor_ip(way->address);

	switch (way->rank) {
	case WAY_NONE:
		(void)snprintf(out, len, "no GID of an IP address");
		break;
	case WAY_STALE:
		(void)snprintf(out, len, "GID %u is of %s, which %s has no more", way->gid, ip.text,
			       way->netdev);
		break;
	case WAY_LOOPBACK:
		(void)snprintf(out, len, "GID %u is of %s of %s, which stands for no device",
			       way->gid, ip.text, way->netdev);
		break;
	case WAY_LINK_LOCAL:
		(void)snprintf(out, len, "GID %u is of a link-local address, %s of %s", way->gid,
			       ip.text, way->netdev);
		break;
	case WAY_ROCE_V1:
	case WAY_GOOD:
		(void)snprintf(out, len, "GID %u is RoCE v%d for %s of %s", way->gid,
			       way->rank == WAY_GOOD ? 2 : 1, ip.text, way->netdev);
		break;
	}
}

static void judge_gid(const struct look *l)
{
	bool good = l->way.rank == WAY_GOOD;
	char found[200];

	if (l->way.netdev[0] != '\0' && netdev_of(l->f, l->way.netdev) == NULL) {
		judge_elsewhere(l);
		return;
	}
	say_way(&l->way, found, sizeof(found));
	struct mst_finding *f = say(l, good ? MST_FINDING_OK : l->bad, "gid", found);
	if (l->way.rank == WAY_ROCE_V1) {
		mst_finding_cause(f, "there is no RoCE v2 GID of it, which muster takes");
		mst_finding_fix(f, "a driver and firmware that do RoCE v2");
	} else if (l->way.rank == WAY_LOOPBACK) {
		mst_finding_cause(f, "the connection manager takes no address of %s",
				  l->way.netdev);
		mst_finding_fix(f, "deploy/soft-roce.sh down %s; deploy/soft-roce.sh up IFACE",
				l->d->probe.name);
	} else if (!good) {
		fix_gid(l, f);
	}
}

static void judge_ipoib(const struct look *l)
{
	const char *netdev = l->way.netdev;
	char found[200];

	if (l->way.rank == WAY_GOOD) {
		(void)snprintf(found, sizeof(found), "%s of %s leads here",
			       mst_doctor_ip(l->way.address).text, netdev);
		say(l, MST_FINDING_OK, "address", found);
		return;
	}
	struct mst_finding *f = say(l, l->bad, "address", "no IP address leads here");
	if (netdev[0] == '\0') {
		mst_finding_cause(f, "there is no IP-over-InfiniBand interface of this device");
		mst_finding_fix(f, "modprobe ib_ipoib, then ip addr add ADDRESS/24 dev ib0");
		return;
	}
	mst_finding_cause(f, "%s has %s", netdev,
			  l->way.rank == WAY_LINK_LOCAL ? "a link-local one only" : "none");
	mst_finding_fix(f, "ip addr add ADDRESS/24 dev %s", netdev);
}

/* What InfiniBand's ports do the subnet manager has settled. */
static void judge_mtu(const struct look *l)
{
	const struct mst_probe_port *port = l->port;
	const struct mst_doctor_netdev *n = netdev_of(l->f, l->way.netdev);
	char found[200];

	if (port->mtu == 0)
		return;
	if (n == NULL || port->mtu >= port->mtu_max) {
		(void)snprintf(found, sizeof(found), "%u bytes", port->mtu);
		say(l, MST_FINDING_OK, "mtu", found);
		return;
	}
	(void)snprintf(found, sizeof(found), "%u bytes where the device could do %u", port->mtu,
		       port->mtu_max);
	struct mst_finding *f = say(l, MST_FINDING_WARNING, "mtu", found);
	mst_finding_cause(f, "%s has MTU %u", n->name, n->mtu);
	if (n->mtu < MTU_GOOD)
		mst_finding_fix(f, "on every host, if the switches take it: ip link set %s mtu %u",
				n->name, MTU_GOOD);
	else
		mst_finding_fix(f, "ip link set %s down; ip link set %s up", n->name, n->name);
}

static void judge_port(const struct look *l)
{
	judge_state(l);
	/* A second port without a cable is nobody's concern, unless it was asked for. */
	if (l->port->state != MST_PROBE_ACTIVE && l->bad != MST_FINDING_FAIL)
		return;
	if (l->port->link == MST_PROBE_INFINIBAND) {
		judge_ipoib(l);
		return;
	}
	judge_gid(l);
	if (l->port->state == MST_PROBE_ACTIVE)
		judge_mtu(l);
}

void mst_doctor_judge_ports(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
			    struct mst_findings *out)
{
	struct mst_doctor_port first;
	bool spare = wish->devices == NULL && mst_doctor_ports(f, wish, &first, 1) > 0;

	for (uint32_t i = 0; i < f->device_count; i++) {
		const struct mst_doctor_device *d = &f->device[i];
		for (uint32_t k = 0; k < d->probe.port_count; k++) {
			const struct mst_probe_port *port = &d->probe.port[k];
			struct look look = { .f = f,
					     .d = d,
					     .port = port,
					     .way = way_to(f, d, port),
					     .bad = spare ? MST_FINDING_WARNING : MST_FINDING_FAIL,
					     .out = out };
			if (mst_doctor_names(wish->devices, d->probe.name, port->number))
				judge_port(&look);
		}
	}
}
