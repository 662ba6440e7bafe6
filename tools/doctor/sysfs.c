/* SPDX-License-Identifier: MIT */
/* RDMA devices and network interfaces, as the kernel shows them in sysfs. */
#include "tools/doctor/facts.h"

#include <errno.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/text.h"
#include "tools/doctor/file.h"

#define IB_CLASS "%s/sys/class/infiniband"
#define NODE_RNIC 4 /* iWARP */

static void read_node(const char *root, struct mst_doctor_node *node)
{
	char path[MST_FILE_PATH];

	(void)snprintf(path, sizeof(path), "%s/dev/infiniband/%s", root, node->name);
	node->exists = access(path, F_OK) == 0;
	node->usable = access(path, R_OK | W_OK) == 0;
}

/* "fe80:0000:0000:0000:5054:00ff:fe12:3456", as sysfs writes every GID. Return: is it one, and not
 * of an unused entry? */
static bool parse_gid(const char *text, uint8_t raw[16])
{
	unsigned group[8], any = 0;

	if (sscanf(text, "%4x:%4x:%4x:%4x:%4x:%4x:%4x:%4x", &group[0], &group[1], &group[2],
		   &group[3], &group[4], &group[5], &group[6], &group[7]) != 8)
		return false;
	for (int i = 0; i < 8; i++) {
		raw[2 * i] = (uint8_t)(group[i] >> 8);
		raw[2 * i + 1] = (uint8_t)group[i];
		any |= group[i];
	}
	return any != 0;
}

static void read_gid(const char *port, uint32_t index, struct mst_probe_gid *gid)
{
	char type[32];

	gid->index = index;
	(void)mst_file_line(type, sizeof(type), "%s/gid_attrs/types/%u", port, index);
	(void)mst_file_line(gid->netdev, sizeof(gid->netdev), "%s/gid_attrs/ndevs/%u", port, index);
	if (strcmp(type, "RoCE v2") == 0)
		gid->type = MST_PROBE_GID_ROCE_V2;
	else if (gid->netdev[0] != '\0')
		gid->type = MST_PROBE_GID_ROCE_V1;
}

static int read_gids(const char *path, struct mst_probe_port *port)
{
	char text[64];
	uint32_t entries = 0;
	uint8_t raw[16];

	while (mst_file_exists("%s/gids/%u", path, entries))
		entries++;
	port->gid = calloc(entries + 1, sizeof(port->gid[0]));
	if (port->gid == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < entries; i++) {
		if (!mst_file_line(text, sizeof(text), "%s/gids/%u", path, i) ||
		    !parse_gid(text, raw))
			continue;
		struct mst_probe_gid *gid = &port->gid[port->gid_count++];
		memcpy(gid->raw, raw, sizeof(raw));
		read_gid(path, i, gid);
	}
	return 0;
}

static int read_port(const char *device, uint32_t number, struct mst_probe_port *port)
{
	char path[MST_FILE_PATH + 24], text[64];

	(void)snprintf(path, sizeof(path), "%s/ports/%u", device, number);
	port->number = number;
	port->state = (uint32_t)mst_file_number("%s/state", path);
	port->phys_state = (uint32_t)mst_file_number("%s/phys_state", path);
	port->lid = (uint32_t)mst_file_number("%s/lid", path);
	(void)mst_file_line(text, sizeof(text), "%s/link_layer", path);
	if (strcmp(text, "InfiniBand") == 0)
		port->link = MST_PROBE_INFINIBAND;
	else if (strcmp(text, "Ethernet") == 0)
		port->link = MST_PROBE_ETHERNET;
	(void)mst_file_line(text, sizeof(text), "%s/rate", path); /* "2.5 Gb/sec (1X SDR)" */
	port->rate_mbit = (uint32_t)(mst_text_real(text, NULL) * 1000 + 0.5);
	return read_gids(path, port);
}

static int read_ports(const char *path, struct mst_probe_device *d)
{
	uint32_t count = 0;
	int rc = 0;

	while (mst_file_exists("%s/ports/%u", path, count + 1))
		count++;
	d->port = calloc(count + 1, sizeof(d->port[0]));
	if (d->port == NULL)
		return -ENOMEM;
	for (; d->port_count < count && rc == 0; d->port_count++)
		rc = read_port(path, d->port_count + 1, &d->port[d->port_count]);
	return rc;
}

/* Which of the nodes is this device's? */
static void find_node(const char *root, struct mst_doctor_device *d)
{
	struct mst_file_names nodes;
	char of[MST_PROBE_NAME_LEN];

	mst_file_names(&nodes, "%s/sys/class/infiniband_verbs", root);
	for (uint32_t i = 0; i < nodes.count; i++) {
		const char *name = nodes.entry[i]->d_name;
		if (mst_file_line(of, sizeof(of), "%s/sys/class/infiniband_verbs/%s/ibdev", root,
				  name) &&
		    strcmp(of, d->probe.name) == 0)
			(void)snprintf(d->node.name, sizeof(d->node.name), "%.63s", name);
	}
	mst_file_names_free(&nodes);
	if (d->node.name[0] != '\0')
		read_node(root, &d->node);
}

static int read_device(const char *root, const char *name, struct mst_doctor_device *d)
{
	char path[MST_FILE_PATH];

	(void)snprintf(path, sizeof(path), IB_CLASS "/%s", root, name);
	(void)snprintf(d->probe.name, sizeof(d->probe.name), "%.63s", name);
	d->probe.iwarp = mst_file_number("%s/node_type", path) == NODE_RNIC;
	find_node(root, d);
	return read_ports(path, &d->probe);
}

int mst_doctor_read_devices(const char *root, struct mst_doctor_facts *out)
{
	struct mst_file_names names;
	int rc = 0;

	out->rdma_cm = (struct mst_doctor_node){ .name = "rdma_cm" };
	read_node(root, &out->rdma_cm);
	mst_file_names(&names, IB_CLASS, root);
	out->device = calloc(names.count + 1u, sizeof(out->device[0]));
	if (out->device == NULL)
		rc = -ENOMEM;
	for (uint32_t i = 0; i < names.count && rc == 0; i++)
		rc = read_device(root, names.entry[i]->d_name, &out->device[out->device_count++]);
	mst_file_names_free(&names);
	return rc;
}

static void read_netdev(const char *path, struct mst_doctor_netdev *n)
{
	struct mst_file_names devices;
	char uevent[MST_FILE_PATH + 8];

	n->mtu = (uint32_t)mst_file_number("%s/mtu", path);
	n->infiniband = mst_file_number("%s/type", path) == ARPHRD_INFINIBAND;
	n->loopback = mst_file_number("%s/type", path) == ARPHRD_LOOPBACK;
	(void)mst_file_line(n->state, sizeof(n->state), "%s/operstate", path);
	(void)snprintf(uevent, sizeof(uevent), "%s/uevent", path);
	n->vlan = mst_file_holds(uevent, "DEVTYPE=vlan", NULL, 0);
	if (mst_file_names(&devices, "%s/device/infiniband", path) > 0)
		(void)snprintf(n->device, sizeof(n->device), "%.63s", devices.entry[0]->d_name);
	mst_file_names_free(&devices);
	n->port = (uint32_t)mst_file_number("%s/dev_port", path) + 1;
}

int mst_doctor_read_netdevs(const char *root, struct mst_doctor_facts *out)
{
	struct mst_file_names names;
	char path[MST_FILE_PATH];

	mst_file_names(&names, "%s/sys/class/net", root);
	out->netdev = calloc(names.count + 1u, sizeof(out->netdev[0]));
	for (uint32_t i = 0; i < names.count && out->netdev != NULL; i++) {
		struct mst_doctor_netdev *n = &out->netdev[out->netdev_count++];
		(void)snprintf(n->name, sizeof(n->name), "%.15s", names.entry[i]->d_name);
		(void)snprintf(path, sizeof(path), "%s/sys/class/net/%s", root, n->name);
		read_netdev(path, n);
	}
	mst_file_names_free(&names);
	return out->netdev != NULL ? 0 : -ENOMEM;
}
