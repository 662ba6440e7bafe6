/* SPDX-License-Identifier: MIT */
#include "common/transport/verbs/probe.h"

#include <assert.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/transport/verbs/library.h"

#define GIDS_MAX 512u /* entries in use of a device; the widest tables known have 256 a port */

static_assert(MST_PROBE_NETDEV_LEN == IF_NAMESIZE, "a name is copied whole");

static uint32_t u32(int value)
{
	return value > 0 ? (uint32_t)value : 0;
}

static uint32_t mtu_bytes(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

static enum mst_probe_link link_of(uint8_t layer)
{
	switch (layer) {
	case IBV_LINK_LAYER_INFINIBAND:
		return MST_PROBE_INFINIBAND;
	case IBV_LINK_LAYER_ETHERNET:
		return MST_PROBE_ETHERNET;
	default:
		return MST_PROBE_LINK_UNKNOWN;
	}
}

static enum mst_probe_gid_type gid_type_of(uint32_t type)
{
	switch (type) {
	case IBV_GID_TYPE_ROCE_V1:
		return MST_PROBE_GID_ROCE_V1;
	case IBV_GID_TYPE_ROCE_V2:
		return MST_PROBE_GID_ROCE_V2;
	default:
		return MST_PROBE_GID_IB;
	}
}

static void fill_gid(const struct ibv_gid_entry *entry, struct mst_probe_gid *out)
{
	*out = (struct mst_probe_gid){ .index = entry->gid_index,
				       .type = gid_type_of(entry->gid_type) };
	memcpy(out->raw, entry->gid.raw, sizeof(out->raw));
	if (entry->ndev_ifindex == 0 || if_indextoname(entry->ndev_ifindex, out->netdev) == NULL)
		out->netdev[0] = '\0';
}

/* Takes the GIDs of @table that belong to this port. */
static int fill_gids(const struct ibv_gid_entry *table, size_t count, struct mst_probe_port *port)
{
	port->gid = calloc(count + 1, sizeof(port->gid[0]));
	if (port->gid == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (table[i].port_num == port->number)
			fill_gid(&table[i], &port->gid[port->gid_count++]);
	return 0;
}

static int fill_port(struct ibv_context *context, struct mst_probe_port *port)
{
	struct ibv_port_attr attr;
	int error = ibv_query_port(context, (uint8_t)port->number, &attr);

	if (error != 0)
		return -error;
	port->link = link_of(attr.link_layer);
	port->state = (uint32_t)attr.state;
	port->phys_state = attr.phys_state;
	port->lid = attr.lid;
	port->mtu = mtu_bytes(attr.active_mtu);
	port->mtu_max = mtu_bytes(attr.max_mtu);
	return 0;
}

static int fill_ports(struct ibv_context *context, uint32_t count, struct mst_probe_device *d)
{
	struct ibv_gid_entry *table = calloc(GIDS_MAX, sizeof(table[0]));
	int rc = 0;

	d->port = calloc(count + 1, sizeof(d->port[0]));
	if (table == NULL || d->port == NULL) {
		free(table);
		return -ENOMEM;
	}
	ssize_t gids = ibv_query_gid_table(context, table, GIDS_MAX, 0);
	for (uint32_t i = 0; i < count && rc == 0; i++) {
		d->port[i].number = i + 1;
		d->port_count++;
		rc = fill_port(context, &d->port[i]);
		if (rc == 0)
			rc = fill_gids(table, gids > 0 ? (size_t)gids : 0, &d->port[i]);
	}
	free(table);
	return rc;
}

static void fill_limits(const struct ibv_device_attr *attr, struct mst_probe_limits *out)
{
	*out = (struct mst_probe_limits){
		.max_mr_size = attr->max_mr_size,
		.max_qp = u32(attr->max_qp),
		.max_qp_wr = u32(attr->max_qp_wr),
		.max_cq = u32(attr->max_cq),
		.max_cqe = u32(attr->max_cqe),
		.max_mr = u32(attr->max_mr),
		.max_pd = u32(attr->max_pd),
	};
}

static int fill_open_device(struct ibv_context *context, struct mst_probe_device *d)
{
	struct ibv_device_attr attr;
	int error = ibv_query_device(context, &attr);

	if (error != 0)
		return -error;
	fill_limits(&attr, &d->limits);
	return fill_ports(context, attr.phys_port_cnt, d);
}

static void forget_ports(struct mst_probe_device *d)
{
	for (uint32_t i = 0; i < d->port_count; i++)
		free(d->port[i].gid);
	free(d->port);
	d->port = NULL;
	d->port_count = 0;
}

static void fill_device(struct ibv_device *device, struct mst_probe_device *d)
{
	(void)snprintf(d->name, sizeof(d->name), "%s", ibv_get_device_name(device));
	d->iwarp = device->transport_type == IBV_TRANSPORT_IWARP;
	errno = 0;
	struct ibv_context *context = ibv_open_device(device);
	if (context == NULL) {
		d->error = errno != 0 ? -errno : -EIO;
		return;
	}
	d->error = fill_open_device(context, d);
	if (d->error != 0)
		forget_ports(d);
	ibv_close_device(context);
}

int mst_probe_open(struct mst_probe *out)
{
	int count = 0;
	struct mst_probe_device *device;
	int rc = mst_verbs_library();

	if (rc != 0)
		return rc;
	struct ibv_device **list = ibv_get_device_list(&count);
	if (list == NULL)
		return errno != 0 ? -errno : -ENOMEM;
	device = calloc((size_t)count + 1, sizeof(device[0]));
	if (device == NULL) {
		ibv_free_device_list(list);
		return -ENOMEM;
	}
	for (int i = 0; i < count; i++)
		fill_device(list[i], &device[i]);
	ibv_free_device_list(list);
	*out = (struct mst_probe){ .device = device, .count = (uint32_t)count };
	return 0;
}

void mst_probe_close(struct mst_probe *p)
{
	for (uint32_t i = 0; i < p->count; i++)
		forget_ports(&p->device[i]);
	free(p->device);
	*p = (struct mst_probe){ 0 };
}
