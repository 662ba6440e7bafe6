/* SPDX-License-Identifier: MIT */
/*
 * What `muster doctor` knows of a host, before it judges: plain figures, gathered in one go.
 *
 * Some come from files, some only from the kernel: addresses, limits, what libibverbs sees.
 */
#ifndef MST_TOOLS_DOCTOR_FACTS_H
#define MST_TOOLS_DOCTOR_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/transport/tls/credentials.h"
#include "common/transport/verbs/probe.h"

#define MST_DOCTOR_UNLIMITED UINT64_MAX
#define MST_DOCTOR_WORD 64u

enum mst_module_state {
	MST_MODULE_UNKNOWN,   /* not loaded, and the running kernel's modules are not here */
	MST_MODULE_LOADED,    /* or built in */
	MST_MODULE_AVAILABLE, /* modprobe would find it */
	MST_MODULE_ABSENT,    /* this kernel was built without it */
};

/* The kernel modules that muster needs, and soft-RoCE. */
enum mst_doctor_module { MST_MODULE_UVERBS, MST_MODULE_UCM, MST_MODULE_RXE, MST_MODULES };

/* A file in /dev/infiniband. */
struct mst_doctor_node {
	char name[MST_DOCTOR_WORD]; /* "uverbs0"; "": the kernel does not say which */
	bool exists;
	bool usable; /* readable and writable by this process */
};

struct mst_doctor_device {
	/* Ports and their GIDs as sysfs has them, limits and MTUs as libibverbs. */
	struct mst_probe_device probe;
	struct mst_doctor_node node;
	bool listed; /* libibverbs offers it */
};

struct mst_doctor_netdev {
	char name[MST_PROBE_NETDEV_LEN];
	char state[16]; /* "up", "down", "unknown": as sysfs says */
	uint32_t mtu;
	bool infiniband; /* IP over InfiniBand */
	bool loopback;
	bool vlan;
	char device[MST_PROBE_NAME_LEN]; /* RDMA device on the same card; "": none */
	uint32_t port;                   /* of it, from 1 */
};

/* An address that an interface has now. */
struct mst_doctor_address {
	char netdev[MST_PROBE_NETDEV_LEN];
	uint8_t raw[16]; /* IPv6, or IPv4 mapped: as a GID has it */
};

/* A card whose network driver runs, but not the part of it that does RDMA. */
struct mst_doctor_card {
	char slot[32];           /* "0000:3b:00.0"; "": there is none */
	char driver[32];         /* "mlx5_core"; "": none */
	const char *rdma_module; /* "mlx5_ib"; NULL: not known */
};

struct mst_doctor_facts {
	char kernel[MST_DOCTOR_WORD];    /* release */
	char container[MST_DOCTOR_WORD]; /* "docker", "podman", ...; "": none */
	char unit[MST_DOCTOR_WORD];      /* systemd service this process belongs to; "": none */
	bool root;
	enum mst_module_state module[MST_MODULES];
	/* A device is in one network namespace, as `rdma system set netns exclusive` has it. */
	bool netns_exclusive;
	struct mst_doctor_card card;

	struct mst_doctor_device *device;
	uint32_t device_count;
	int library_error; /* of asking libibverbs for its list: 0, or negative errno */
	struct mst_doctor_node rdma_cm;
	struct mst_doctor_netdev *netdev;
	uint32_t netdev_count;
	struct mst_doctor_address *address;
	uint32_t address_count;

	uint64_t memlock, memlock_hard; /* bytes; MST_DOCTOR_UNLIMITED */
	char memlock_file[128];         /* of /etc/security that sets it; "": none does */
	bool ipc_lock;                  /* CAP_IPC_LOCK that counts: nothing is limited */
	char thp[16], thp_shmem[16];    /* the words chosen; "": not told */
	uint64_t huge_free, huge_bytes; /* free pages of hugetlbfs, and the size of one */

	char directory[128]; /* where sockets of listeners over shared memory lie */
	/* Why sockets cannot lie there, and what fixes it; "": they can. */
	struct mst_reason directory_why;
	uint64_t files_soft, files_hard, files_open; /* descriptors; MST_DOCTOR_UNLIMITED */

	/* Sockets: how many callers may wait at a listener; the largest buffers of a connection
	 * that the kernel chooses by itself, in bytes; 0: not told. */
	uint64_t somaxconn, send_max, receive_max;
	char congestion[MST_DOCTOR_WORD]; /* how connections avoid congestion, "cubic" */

	bool has_certificate; /* files of TLS are named */
	/* Why they cannot be used, and what fixes it; "": they can. */
	struct mst_reason certificate_why;
	struct mst_principal identity; /* what the certificate says */
};

/* What cannot be read stays as if it were not there. Return: 0 or -ENOMEM. */
int mst_doctor_gather(struct mst_doctor_facts *out);
/* Looks at these files, and at those of the environment in place of what is not given. */
void mst_doctor_read_certificate(const struct mst_tls_files *files, struct mst_doctor_facts *out);
void mst_doctor_forget(struct mst_doctor_facts *f); /* also of zeroed ones */

/* The parts that mst_doctor_gather() is made of: each reads its files below @root. That is "" for
 * this host; a test makes up another. */
/* /sys/class/infiniband and /dev/infiniband: devices, ports, GIDs, nodes. 0 or -ENOMEM. */
int mst_doctor_read_devices(const char *root, struct mst_doctor_facts *out);
/* /sys/class/net. 0 or -ENOMEM. */
int mst_doctor_read_netdevs(const char *root, struct mst_doctor_facts *out);
/* Everything else: kernel, modules, container, limits, huge pages. */
void mst_doctor_read_host(const char *root, struct mst_doctor_facts *out);

#endif
