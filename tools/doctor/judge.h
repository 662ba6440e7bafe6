/* SPDX-License-Identifier: MIT */
/*
 * Makes findings of facts: what keeps a host from a job between hosts, why, and what fixes it.
 * Pure: nothing here looks at the host.
 */
#ifndef MST_TOOLS_DOCTOR_JUDGE_H
#define MST_TOOLS_DOCTOR_JUDGE_H

#include "tools/doctor/facts.h"
#include "tools/doctor/finding.h"

enum mst_doctor_role { MST_DOCTOR_BOTH, MST_DOCTOR_WORKER, MST_DOCTOR_SERVER };

/* What the host is wanted for. */
struct mst_doctor_wish {
	const char *devices; /* "mlx5_0,mlx5_1:2"; NULL: any */
	uint32_t workers;    /* of the job; 0: no job is told */
	uint64_t elems;      /* with workers, 1 .. MST_ELEMS_MAX */
	uint32_t type_bytes; /* of an element */
	uint32_t slots;
	bool rdma; /* a job over RDMA, and no other */
	enum mst_doctor_role role;
};

/* What a job registers with a device, and makes on it. Bytes of one process, over one rail. */
struct mst_doctor_need {
	uint64_t worker_bytes, server_bytes;
	uint64_t region_bytes;   /* the largest region */
	uint32_t qp, cq, mr, pd; /* of the server, which needs most */
	uint32_t cqe, qp_wr;
};
void mst_doctor_need(const struct mst_doctor_wish *wish, struct mst_doctor_need *out);

/* A place for a connection: a port, and the address that leads to it. */
struct mst_doctor_port {
	const struct mst_doctor_device *device;
	const struct mst_probe_port *port;
	uint8_t address[16]; /* IPv6, or IPv4 mapped */
};

/* The ports that the wish allows and nothing is in the way of. Return: how many, at most @max. */
uint32_t mst_doctor_ports(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
			  struct mst_doctor_port *out, uint32_t max);

/* Every check there is. */
void mst_doctor_judge(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
		      struct mst_findings *out);

/* The parts of it. The parts from access to limits say nothing of a host without devices. */
void mst_doctor_judge_modules(const struct mst_doctor_facts *f, struct mst_findings *out);
void mst_doctor_judge_devices(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
			      struct mst_findings *out);
void mst_doctor_judge_access(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
			     struct mst_findings *out);
void mst_doctor_judge_ports(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
			    struct mst_findings *out);
void mst_doctor_judge_limits(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
			     struct mst_findings *out);
void mst_doctor_judge_memory(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
			     struct mst_findings *out);

/* Judges what a server's process needs, over shared memory too. */
#define MST_DOCTOR_DIRECTORY "directory"
void mst_doctor_judge_process(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
			      struct mst_findings *out);

/* Judges what jobs over TCP need of this host: addresses, sockets. */
void mst_doctor_judge_tcp(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
			  struct mst_findings *out);

/* Is RDMA alone what a check of this name is about? */
bool mst_doctor_is_of_rdma(const char *check);

/* Is this port of this device among "mlx5_0,mlx5_1:2"? Port 0: any of it. */
bool mst_doctor_names(const char *devices, const char *device, uint32_t port);
/* Can this process use the device, whatever its ports are like? */
bool mst_doctor_device_works(const struct mst_doctor_device *d);
/* Does any interface have this address now? @netdev: only this one; "": any. */
const struct mst_doctor_address *mst_doctor_address_of(const struct mst_doctor_facts *f,
						       const char *netdev, const uint8_t raw[16]);

struct mst_doctor_ip {
	char text[48];
};
struct mst_doctor_ip mst_doctor_ip(const uint8_t raw[16]);

#endif
