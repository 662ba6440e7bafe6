/* SPDX-License-Identifier: MIT */
/*
 * The addresses of the two ends of a rail. A device is named by an address of its network
 * interface, as the connection manager wants it: RoCE's GID table says which interface a port
 * belongs to, of an InfiniBand port sysfs does.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/transport/verbs/library.h"
#include "common/transport/verbs/verbs.h"

#define GIDS_MAX 256

static_assert(MST_ENDPOINTS_MAX == MST_RAILS_MAX, "a listener has an endpoint for each rail");

/* ---- the way ---- */

/* A datagram socket that is connected sends nothing, but has looked up its way. */
const char *mst_verbs_address_toward(const struct sockaddr *far, char out[MST_ENDPOINT_TEXT_LEN])
{
	union mst_endpoint own = { 0 };
	socklen_t bytes = sizeof(own);
	socklen_t far_bytes = far->sa_family == AF_INET ? sizeof(own.v4) : sizeof(own.v6);
	int fd = socket(far->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	out[0] = '\0';
	if (fd >= 0 && connect(fd, far, far_bytes) == 0 && getsockname(fd, &own.any, &bytes) == 0)
		mst_endpoint_host_text(&own.any, out);
	if (fd >= 0)
		close(fd);
	return out;
}

/* ---- which address a device has ---- */

struct wanted {
	const char *device; /* NULL: any */
	size_t device_len;
	unsigned port; /* 0: any */
	int family;    /* AF_UNSPEC: any */
};

/* IPv4 before IPv6; 0: of no use, as one that means something on its own link only. */
static int rank_of(const struct sockaddr *a, int family)
{
	if (a == NULL || (family != AF_UNSPEC && a->sa_family != family))
		return 0;
	if (a->sa_family == AF_INET)
		return 3;
	if (a->sa_family != AF_INET6)
		return 0;
	return IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr)
		       ? 0
		       : 2;
}

/* The best address of the interface. Return: its rank, 0 none. */
static int address_of(unsigned interface, int family, union mst_endpoint *out)
{
	struct ifaddrs *all;
	int best = 0;

	if (getifaddrs(&all) != 0)
		return 0;
	for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
		int rank = rank_of(i->ifa_addr, family);
		if (rank <= best || !(i->ifa_flags & IFF_UP) ||
		    if_nametoindex(i->ifa_name) != interface)
			continue;
		best = rank;
		memset(out, 0, sizeof(*out));
		memcpy(out, i->ifa_addr,
		       rank == 3 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
	}
	freeifaddrs(all);
	return best;
}

/* The address of an InfiniBand port is that of the IPoIB interface on the same device. */
static int address_over_ib(struct ibv_context *context, unsigned port, int family,
			   union mst_endpoint *out)
{
	struct if_nameindex *all = if_nameindex();
	int best = 0;

	for (struct if_nameindex *i = all; i != NULL && i->if_name != NULL && best == 0; i++) {
		char path[512];
		unsigned at = 0;
		(void)snprintf(path, sizeof(path), "%s/device/net/%s/dev_port",
			       context->device->ibdev_path, i->if_name);
		FILE *f = fopen(path, "re");
		if (f == NULL)
			continue;
		if (fscanf(f, "%u", &at) == 1 && at + 1 == port)
			best = address_of(i->if_index, family, out);
		fclose(f);
	}
	if_freenameindex(all);
	return best;
}

static int address_over_ethernet(struct ibv_context *context, unsigned port, int family,
				 union mst_endpoint *out)
{
	struct ibv_gid_entry entry[GIDS_MAX];
	ssize_t count = ibv_query_gid_table(context, entry, GIDS_MAX, 0);
	union mst_endpoint found;
	int best = 0;

	for (ssize_t i = 0; i < count; i++) {
		if (entry[i].port_num != port || entry[i].gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		int rank = address_of(entry[i].ndev_ifindex, family, &found);
		if (rank > best) {
			best = rank;
			*out = found;
		}
	}
	return best;
}

static int address_on(struct ibv_context *context, const struct wanted *want,
		      union mst_endpoint *out)
{
	struct ibv_device_attr limits;
	int best = 0;

	if (ibv_query_device(context, &limits) != 0)
		return 0;
	for (uint8_t port = 1; port <= limits.phys_port_cnt && best == 0; port++) {
		struct ibv_port_attr attr;
		if ((want->port != 0 && want->port != port) ||
		    ibv_query_port(context, port, &attr) != 0 || attr.state != IBV_PORT_ACTIVE)
			continue;
		best = attr.link_layer == IBV_LINK_LAYER_ETHERNET
			       ? address_over_ethernet(context, port, want->family, out)
			       : address_over_ib(context, port, want->family, out);
	}
	return best;
}

static bool is_named(const struct ibv_device *device, const struct wanted *want)
{
	const char *name = ibv_get_device_name((struct ibv_device *)(uintptr_t)device);

	return want->device == NULL || (strlen(name) == want->device_len &&
					memcmp(name, want->device, want->device_len) == 0);
}

/* Return: 0; -ENODEV without a sentence. @seen: devices of that name. */
static int find_one(const struct wanted *want, union mst_endpoint *out, int *seen)
{
	int count, best = 0;
	struct ibv_device **list = ibv_get_device_list(&count);

	*seen = 0;
	for (int i = 0; list != NULL && i < count && best == 0; i++) {
		if (!is_named(list[i], want))
			continue;
		++*seen;
		struct ibv_context *context = ibv_open_device(list[i]);
		if (context == NULL)
			continue;
		best = address_on(context, want, out);
		ibv_close_device(context);
	}
	if (list != NULL)
		ibv_free_device_list(list);
	return best > 0 ? 0 : -ENODEV;
}

static int find_first(int family, struct mst_endpoints *out, struct mst_reason *why)
{
	struct wanted want = { .family = family };
	int seen;

	out->count = 1;
	if (find_one(&want, &out->at[0], &seen) == 0)
		return 0;
	if (seen == 0)
		return mst_reason_fail(why, -ENODEV,
				       "this host has no RDMA device (muster doctor tells why; "
				       "deploy/soft-roce.sh makes one in software)");
	return mst_reason_fail(
		why, -ENODEV,
		"no port of this host's %d RDMA device%s is active and has an IP%s address "
		"on its interface; muster doctor tells more",
		seen, seen == 1 ? "" : "s",
		family == AF_INET    ? "v4"
		: family == AF_INET6 ? "v6"
				     : "");
}

/* "mlx5_0,mlx5_1:2" */
static int find_devices(const char *devices, int family, struct mst_endpoints *out,
			struct mst_reason *why)
{
	const char *at = devices;

	for (out->count = 0; *at != '\0'; out->count++) {
		size_t len = strcspn(at, ",");
		const char *colon = memchr(at, ':', len);
		struct wanted want = { .device = at,
				       .device_len = colon != NULL ? (size_t)(colon - at) : len,
				       .family = family };
		int seen;
		if (colon != NULL)
			want.port = (unsigned)strtoul(colon + 1, NULL, 10);
		if (out->count == MST_RAILS_MAX)
			return mst_reason_fail(why, -EINVAL, "more than %u devices: %.200s",
					       MST_RAILS_MAX, devices);
		if (find_one(&want, &out->at[out->count], &seen) != 0)
			return mst_reason_fail(
				why, -ENODEV,
				seen == 0 ? "there is no RDMA device \"%.*s\" here; muster "
					    "doctor lists what there is"
					  : "RDMA device \"%.*s\" has no active port with an "
					    "IP address on its interface; muster doctor "
					    "tells more",
				(int)len, at);
		at += len + (at[len] == ',');
	}
	return out->count > 0
		       ? 0
		       : mst_reason_fail(
				 why, -EINVAL,
				 "the list of RDMA devices (--device, MUSTER_DEVICE) is empty");
}

int mst_verbs_address_own(const struct mst_fabric *fabric, const struct sockaddr *like,
			  struct mst_endpoints *out, struct mst_reason *why)
{
	int family = like != NULL ? like->sa_family : AF_UNSPEC;
	int rc = mst_verbs_library();

	*out = (struct mst_endpoints){ 0 };
	if (rc != 0)
		return mst_reason_fail(why, rc, "%s", mst_verbs_library_why());
	if (fabric->addresses != NULL)
		return mst_endpoints_list(fabric->addresses, out, why);
	if (fabric->devices != NULL)
		return find_devices(fabric->devices, family, out, why);
	return find_first(family, out, why);
}
