/* SPDX-License-Identifier: MIT */
/*
 * What RDMA devices there are and what they can do, as plain facts without a type of libibverbs.
 *
 * Called now and then, by those who choose a device or tell a user why none will do; it opens every
 * device and closes it again.
 */
#ifndef MST_TRANSPORT_VERBS_PROBE_H
#define MST_TRANSPORT_VERBS_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#define MST_PROBE_NAME_LEN 64u   /* of a device; with its NUL */
#define MST_PROBE_NETDEV_LEN 16u /* of a network interface */

enum mst_probe_link { MST_PROBE_LINK_UNKNOWN, MST_PROBE_INFINIBAND, MST_PROBE_ETHERNET };

enum mst_probe_gid_type { MST_PROBE_GID_IB, MST_PROBE_GID_ROCE_V1, MST_PROBE_GID_ROCE_V2 };

/* Port states as they are numbered on the wire and in sysfs. */
enum mst_probe_state {
	MST_PROBE_STATE_UNKNOWN,
	MST_PROBE_DOWN,
	MST_PROBE_INIT,
	MST_PROBE_ARMED,
	MST_PROBE_ACTIVE,
};
#define MST_PROBE_PHYS_LINK_UP 5u

struct mst_probe_gid {
	uint32_t index;
	enum mst_probe_gid_type type;
	uint8_t raw[16];                   /* over Ethernet an address: IPv6, or IPv4 mapped */
	char netdev[MST_PROBE_NETDEV_LEN]; /* whose address it is; "": of none, or not told */
};

struct mst_probe_port {
	uint32_t number; /* from 1 */
	enum mst_probe_link link;
	uint32_t state;      /* enum mst_probe_state */
	uint32_t phys_state; /* 0: not told */
	uint32_t lid;        /* InfiniBand: 0 until a subnet manager has been there */
	uint32_t mtu;        /* active, in bytes; 0: not told */
	uint32_t mtu_max;
	uint32_t rate_mbit; /* 0: not told */
	struct mst_probe_gid *gid;
	uint32_t gid_count; /* entries in use */
};

struct mst_probe_limits {
	uint64_t max_mr_size;
	uint32_t max_qp, max_qp_wr, max_cq, max_cqe, max_mr, max_pd;
};

struct mst_probe_device {
	char name[MST_PROBE_NAME_LEN];
	bool iwarp; /* no writes with immediate */
	/* 0: it was opened, so that what only the device knows is filled in; else negative errno,
	 * and there are no ports. */
	int error;
	struct mst_probe_limits limits;
	struct mst_probe_port *port;
	uint32_t port_count;
};

struct mst_probe {
	struct mst_probe_device *device;
	uint32_t count;
};

/* What libibverbs offers to this process, in its order. Rates are not told. Return: 0, also where
 * there is no device; -ENOSYS the kernel has no ib_uverbs; -ELIBACC libibverbs or librdmacm is not
 * there, or too old; -ENOMEM. */
int mst_probe_open(struct mst_probe *out);
void mst_probe_close(struct mst_probe *p); /* also of a zeroed one */

#endif
