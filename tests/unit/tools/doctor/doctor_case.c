/* SPDX-License-Identifier: MIT */
#include "tests/unit/tools/doctor/doctor_case.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define DEVICES 4
#define GIDS 4

struct mst_doctor_facts doctor_facts;
struct mst_doctor_wish doctor_wish;
struct mst_findings doctor_found;

static struct mst_doctor_device device[DEVICES];
static struct mst_probe_port port[DEVICES][2];
static struct mst_probe_gid gid[DEVICES][2][GIDS];
static struct mst_doctor_netdev netdev[4];
static struct mst_doctor_address address[4];

void doctor_address(uint8_t raw[16], const char *text)
{
	char mapped[64];

	(void)snprintf(mapped, sizeof(mapped), "%s%s",
		       strchr(text, ':') != NULL ? "" : "::ffff:", text);
	CU_ASSERT_EQUAL_FATAL(inet_pton(AF_INET6, mapped, raw), 1);
}

void doctor_add_device(const char *name)
{
	uint32_t i = doctor_facts.device_count++;
	struct mst_probe_device *d = &device[i].probe;

	device[i] = (struct mst_doctor_device){ .listed = true };
	(void)snprintf(d->name, sizeof(d->name), "%s", name);
	(void)snprintf(device[i].node.name, sizeof(device[i].node.name), "uverbs%u", i);
	device[i].node.exists = device[i].node.usable = true;
	d->limits = (struct mst_probe_limits){ .max_mr_size = UINT64_MAX,
					       .max_qp = 65536,
					       .max_qp_wr = 16384,
					       .max_cq = 65536,
					       .max_cqe = 32767,
					       .max_mr = 65536,
					       .max_pd = 32768 };
	memset(port[i], 0, sizeof(port[i]));
	port[i][0] = (struct mst_probe_port){ .number = 1,
					      .link = MST_PROBE_ETHERNET,
					      .state = MST_PROBE_ACTIVE,
					      .phys_state = MST_PROBE_PHYS_LINK_UP,
					      .mtu = 4096,
					      .mtu_max = 4096,
					      .rate_mbit = 100000,
					      .gid = gid[i][0] };
	d->port = port[i];
	d->port_count = 1;
}

void doctor_host(void)
{
	doctor_facts = (struct mst_doctor_facts){ .kernel = "6.1.0-18-amd64",
						  .device = device,
						  .netdev = netdev,
						  .netdev_count = 2,
						  .address = address,
						  .address_count = 2,
						  .rdma_cm = { "rdma_cm", true, true },
						  .memlock = MST_DOCTOR_UNLIMITED,
						  .memlock_hard = MST_DOCTOR_UNLIMITED,
						  .thp = "madvise",
						  .thp_shmem = "never",
						  .directory = "/run/user/1000/muster",
						  .somaxconn = 4096,
						  .send_max = 4 << 20,
						  .receive_max = 6 << 20,
						  .congestion = "cubic",
						  .files_soft = 1024,
						  .files_hard = 524288,
						  .files_open = 4 };
	for (unsigned i = 0; i < MST_MODULES; i++)
		doctor_facts.module[i] = MST_MODULE_LOADED;
	doctor_wish = (struct mst_doctor_wish){ .type_bytes = 4, .slots = 2 };
	netdev[0] = (struct mst_doctor_netdev){ .name = "eth0", .state = "up", .mtu = 4200 };
	netdev[1] = (struct mst_doctor_netdev){ .name = "lo", .mtu = 65536, .loopback = true };
	address[0] = (struct mst_doctor_address){ .netdev = "eth0" };
	doctor_address(address[0].raw, "10.0.0.1");
	address[1] = (struct mst_doctor_address){ .netdev = "lo" };
	doctor_address(address[1].raw, "127.0.0.1");
	doctor_add_device("rxe0");
	gid[0][0][0] = (struct mst_probe_gid){ .type = MST_PROBE_GID_ROCE_V2, .netdev = "eth0" };
	doctor_address(gid[0][0][0].raw, "fe80::1");
	gid[0][0][1] = (struct mst_probe_gid){ .index = 1,
					       .type = MST_PROBE_GID_ROCE_V2,
					       .netdev = "eth0" };
	doctor_address(gid[0][0][1].raw, "10.0.0.1");
	port[0][0].gid_count = 2;
}

struct mst_probe_port *doctor_port(void)
{
	return &port[0][0];
}

void doctor_judge(void)
{
	memset(&doctor_found, 0, sizeof(doctor_found));
	mst_doctor_judge(&doctor_facts, &doctor_wish, &doctor_found);
}

const struct mst_finding *doctor_finding(const char *check, const char *subject)
{
	const struct mst_finding *one = NULL;

	for (uint32_t i = 0; i < doctor_found.count; i++) {
		const struct mst_finding *f = &doctor_found.item[i];
		if (strcmp(f->check, check) != 0 || strcmp(f->subject, subject) != 0)
			continue;
		if (one != NULL)
			return NULL;
		one = f;
	}
	return one;
}
