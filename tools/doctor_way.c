/* SPDX-License-Identifier: MIT */
/* Which address leads to which port: names, GIDs and interfaces put together. Pure. */
#include "tools/doctor_way.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

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

const struct mst_doctor_netdev *mst_doctor_netdev_of(const struct mst_doctor_facts *f,
						     const char *name)
{
	for (uint32_t i = 0; i < f->netdev_count; i++)
		if (strcmp(f->netdev[i].name, name) == 0)
			return &f->netdev[i];
	return NULL;
}

bool mst_doctor_link_local(const uint8_t raw[16])
{
	return raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80;
}

/* Every port has link-local GIDs, even where no interface has such an address. */
static enum mst_doctor_rank rank_of(const struct mst_doctor_facts *f,
				    const struct mst_probe_gid *gid)
{
	const struct mst_doctor_address *a = mst_doctor_address_of(f, gid->netdev, gid->raw);
	const struct mst_doctor_netdev *n = a != NULL ? mst_doctor_netdev_of(f, a->netdev) : NULL;

	if (gid->type == MST_PROBE_GID_IB || (a == NULL && mst_doctor_link_local(gid->raw)))
		return MST_DOCTOR_WAY_NONE;
	if (a == NULL)
		return MST_DOCTOR_WAY_STALE;
	if (n != NULL && n->loopback)
		return MST_DOCTOR_WAY_LOOPBACK;
	if (mst_doctor_link_local(gid->raw))
		return MST_DOCTOR_WAY_LINK_LOCAL;
	return gid->type == MST_PROBE_GID_ROCE_V2 ? MST_DOCTOR_WAY_GOOD : MST_DOCTOR_WAY_ROCE_V1;
}

static const char *netdev_on_card(const struct mst_doctor_facts *f, const char *device)
{
	for (uint32_t i = 0; i < f->netdev_count; i++)
		if (strcmp(f->netdev[i].device, device) == 0)
			return f->netdev[i].name;
	return "";
}

static struct mst_doctor_way roce_way(const struct mst_doctor_facts *f,
				      const struct mst_doctor_device *d,
				      const struct mst_probe_port *port)
{
	struct mst_doctor_way best = { .rank = MST_DOCTOR_WAY_NONE };

	(void)snprintf(best.netdev, sizeof(best.netdev), "%s", netdev_on_card(f, d->probe.name));
	for (uint32_t i = 0; i < port->gid_count; i++) {
		const struct mst_probe_gid *gid = &port->gid[i];
		enum mst_doctor_rank rank = rank_of(f, gid);

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
static struct mst_doctor_way infiniband_way(const struct mst_doctor_facts *f,
					    const struct mst_doctor_device *d, uint32_t port)
{
	struct mst_doctor_way best = { .rank = MST_DOCTOR_WAY_NONE };

	for (uint32_t i = 0; i < f->netdev_count; i++) {
		const struct mst_doctor_netdev *n = &f->netdev[i];
		if (!n->infiniband || n->port != port || strcmp(n->device, d->probe.name) != 0)
			continue;
		if (best.netdev[0] == '\0')
			memcpy(best.netdev, n->name, sizeof(best.netdev));
		for (uint32_t k = 0; k < f->address_count; k++) {
			const struct mst_doctor_address *a = &f->address[k];
			if (best.rank == MST_DOCTOR_WAY_GOOD || strcmp(a->netdev, n->name) != 0)
				continue;
			best.rank = mst_doctor_link_local(a->raw) ? MST_DOCTOR_WAY_LINK_LOCAL
								  : MST_DOCTOR_WAY_GOOD;
			memcpy(best.address, a->raw, sizeof(best.address));
		}
	}
	return best;
}

struct mst_doctor_way mst_doctor_way_to(const struct mst_doctor_facts *f,
					const struct mst_doctor_device *d,
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
			struct mst_doctor_way way = mst_doctor_way_to(f, d, port);
			if (!mst_doctor_device_works(d) || port->state != MST_PROBE_ACTIVE ||
			    way.rank != MST_DOCTOR_WAY_GOOD ||
			    !mst_doctor_names(wish->devices, d->probe.name, port->number))
				continue;
			out[count] = (struct mst_doctor_port){ .device = d, .port = port };
			memcpy(out[count++].address, way.address, sizeof(way.address));
		}
	}
	return count;
}
