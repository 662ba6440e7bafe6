/* SPDX-License-Identifier: MIT */
/* Facts out of a made-up host's files. */
#include <stdio.h>
#include <string.h>

#include "tests/fixtures.h"
#include "tests/ut.h"
#include "tools/doctor/facts.h"

#define PORT "/sys/class/infiniband/rxe0/ports/1/"

static struct fix_folder host; /* made up */
static struct mst_doctor_facts facts;

static void put(const char *path, const char *text)
{
	fix_folder_put(&host, path, text);
}

/* An empty host. */
static void begin(void)
{
	memset(&facts, 0, sizeof(facts));
	fix_folder_new(&host);
}

static void end(void)
{
	mst_doctor_forget(&facts);
	fix_folder_free(&host);
}

static void put_device(void)
{
	put("/sys/class/infiniband/rxe0/node_type", "1: CA\n");
	put(PORT "state", "4: ACTIVE\n");
	put(PORT "phys_state", "5: LinkUp\n");
	put(PORT "rate", "2.5 Gb/sec (1X SDR)\n");
	put(PORT "lid", "0x1c\n");
	put(PORT "link_layer", "Ethernet\n");
	put(PORT "gids/0", "fe80:0000:0000:0000:5054:00ff:fe12:3456\n");
	put(PORT "gids/1", "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
	put(PORT "gids/2", "0000:0000:0000:0000:0000:0000:0000:0000\n");
	put(PORT "gids/3", "0000:0000:0000:0000:0000:ffff:0a00:0002\n");
	put(PORT "gid_attrs/types/1", "RoCE v2\n");
	put(PORT "gid_attrs/ndevs/1", "eth0\n");
	put(PORT "gid_attrs/types/3", "IB/RoCE v1\n");
	put(PORT "gid_attrs/ndevs/3", "eth0\n");
	put("/sys/class/infiniband_verbs/abi_version", "6\n");
	put("/sys/class/infiniband_verbs/uverbs3/ibdev", "rxe0\n");
	put("/dev/infiniband/uverbs3", "");
}

static void an_empty_host_has_nothing(void)
{
	begin();
	CU_ASSERT_EQUAL(mst_doctor_read_devices(host.root, &facts), 0);
	CU_ASSERT_EQUAL(mst_doctor_read_netdevs(host.root, &facts), 0);
	mst_doctor_read_host(host.root, &facts);
	CU_ASSERT_EQUAL(facts.device_count, 0);
	CU_ASSERT_EQUAL(facts.netdev_count, 0);
	CU_ASSERT_FALSE(facts.rdma_cm.exists);
	CU_ASSERT_EQUAL(facts.module[MST_MODULE_RXE], MST_MODULE_UNKNOWN);
	CU_ASSERT_STRING_EQUAL(facts.container, "");
	CU_ASSERT_STRING_EQUAL(facts.unit, "");
	CU_ASSERT_STRING_EQUAL(facts.thp, "");
	CU_ASSERT_STRING_EQUAL(facts.memlock_file, "");
	CU_ASSERT_STRING_EQUAL(facts.card.slot, "");
	CU_ASSERT_FALSE(facts.ipc_lock);
	end();
}

static void a_device_is_read_with_its_port(void)
{
	begin();
	put_device();
	CU_ASSERT_EQUAL(mst_doctor_read_devices(host.root, &facts), 0);
	CU_ASSERT_EQUAL_FATAL(facts.device_count, 1);
	const struct mst_doctor_device *d = &facts.device[0];
	CU_ASSERT_STRING_EQUAL(d->probe.name, "rxe0");
	CU_ASSERT_FALSE(d->probe.iwarp);
	CU_ASSERT_FALSE(d->listed);
	CU_ASSERT_STRING_EQUAL(d->node.name, "uverbs3");
	CU_ASSERT_TRUE(d->node.exists && d->node.usable);
	CU_ASSERT_EQUAL_FATAL(d->probe.port_count, 1);
	const struct mst_probe_port *port = &d->probe.port[0];
	CU_ASSERT_EQUAL(port->number, 1);
	CU_ASSERT_EQUAL(port->state, MST_PROBE_ACTIVE);
	CU_ASSERT_EQUAL(port->phys_state, MST_PROBE_PHYS_LINK_UP);
	CU_ASSERT_EQUAL(port->link, MST_PROBE_ETHERNET);
	CU_ASSERT_EQUAL(port->rate_mbit, 2500);
	CU_ASSERT_EQUAL(port->lid, 28);
	end();
}

static void gids_in_use_are_read_with_type_and_interface(void)
{
	static const uint8_t v4[16] = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 };

	begin();
	put_device();
	CU_ASSERT_EQUAL(mst_doctor_read_devices(host.root, &facts), 0);
	const struct mst_probe_port *port = &facts.device[0].probe.port[0];
	CU_ASSERT_EQUAL_FATAL(port->gid_count, 3);
	CU_ASSERT_EQUAL(port->gid[1].index, 1);
	CU_ASSERT_EQUAL(port->gid[1].type, MST_PROBE_GID_ROCE_V2);
	CU_ASSERT_STRING_EQUAL(port->gid[1].netdev, "eth0");
	CU_ASSERT_EQUAL(memcmp(port->gid[1].raw, v4, sizeof(v4)), 0);
	CU_ASSERT_EQUAL(port->gid[2].index, 3);
	CU_ASSERT_EQUAL(port->gid[2].type, MST_PROBE_GID_ROCE_V1);
	end();
}

static void an_iwarp_card_and_infiniband_are_told(void)
{
	begin();
	put_device();
	put("/sys/class/infiniband/rxe0/node_type", "4: RNIC\n");
	put(PORT "link_layer", "InfiniBand\n");
	CU_ASSERT_EQUAL(mst_doctor_read_devices(host.root, &facts), 0);
	CU_ASSERT_TRUE(facts.device[0].probe.iwarp);
	CU_ASSERT_EQUAL(facts.device[0].probe.port[0].link, MST_PROBE_INFINIBAND);
	end();
}

static void interfaces_are_read(void)
{
	begin();
	put("/sys/class/net/ib0/mtu", "2044\n");
	put("/sys/class/net/ib0/type", "32\n");
	put("/sys/class/net/ib0/operstate", "up\n");
	put("/sys/class/net/ib0/dev_port", "1\n");
	put("/sys/class/net/ib0/device/infiniband/mlx5_0/x", "");
	put("/sys/class/net/eth0.5/uevent", "DEVTYPE=vlan\nINTERFACE=eth0.5\n");
	put("/sys/class/net/lo/type", "772\n");
	CU_ASSERT_EQUAL(mst_doctor_read_netdevs(host.root, &facts), 0);
	CU_ASSERT_EQUAL_FATAL(facts.netdev_count, 3);
	CU_ASSERT_TRUE(facts.netdev[0].vlan);
	const struct mst_doctor_netdev *ib0 = &facts.netdev[1];
	CU_ASSERT_STRING_EQUAL(ib0->name, "ib0");
	CU_ASSERT_STRING_EQUAL(ib0->state, "up");
	CU_ASSERT_STRING_EQUAL(ib0->device, "mlx5_0");
	CU_ASSERT_EQUAL(ib0->mtu, 2044);
	CU_ASSERT_EQUAL(ib0->port, 2);
	CU_ASSERT_TRUE(ib0->infiniband && !ib0->vlan && !ib0->loopback);
	CU_ASSERT_TRUE(facts.netdev[2].loopback);
	end();
}

static void modules_are_loaded_built_in_available_or_absent(void)
{
	begin();
	put("/proc/sys/kernel/osrelease", "6.1.0\n");
	put("/sys/module/ib_uverbs/refcnt", "0\n");
	put("/lib/modules/6.1.0/modules.builtin", "kernel/x/rdma_ucm.ko\n");
	put("/lib/modules/6.1.0/modules.dep", "kernel/x/rdma_rxe.ko.xz: kernel/y.ko\n");
	mst_doctor_read_host(host.root, &facts);
	CU_ASSERT_STRING_EQUAL(facts.kernel, "6.1.0");
	CU_ASSERT_EQUAL(facts.module[MST_MODULE_UVERBS], MST_MODULE_LOADED);
	CU_ASSERT_EQUAL(facts.module[MST_MODULE_UCM], MST_MODULE_LOADED);
	CU_ASSERT_EQUAL(facts.module[MST_MODULE_RXE], MST_MODULE_AVAILABLE);
	CU_ASSERT_FALSE(facts.netns_exclusive);
	put("/sys/module/ib_core/parameters/netns_mode", "Y\n");
	mst_doctor_read_host(host.root, &facts);
	CU_ASSERT_FALSE(facts.netns_exclusive);
	put("/sys/module/ib_core/parameters/netns_mode", "N\n");
	mst_doctor_read_host(host.root, &facts);
	CU_ASSERT_TRUE(facts.netns_exclusive);
	put("/lib/modules/6.1.0/modules.dep", "kernel/x/other.ko:\n");
	mst_doctor_read_host(host.root, &facts);
	CU_ASSERT_EQUAL(facts.module[MST_MODULE_RXE], MST_MODULE_ABSENT);
	end();
}

static void containers_are_known_by_their_marks(void)
{
	begin();
	put("/proc/1/cgroup", "0::/kubepods/burstable/pod1\n");
	mst_doctor_read_host(host.root, &facts);
	CU_ASSERT_STRING_EQUAL(facts.container, "kubernetes");
	put("/.dockerenv", "");
	mst_doctor_read_host(host.root, &facts);
	CU_ASSERT_STRING_EQUAL(facts.container, "docker");
	put("/run/.containerenv", "");
	mst_doctor_read_host(host.root, &facts);
	CU_ASSERT_STRING_EQUAL(facts.container, "podman");
	/* A mark that lies about in a file system is none. */
	fix_folder_link(&host, "/proc/self/ns/cgroup", "cgroup:[4026531835]");
	fix_folder_link(&host, "/proc/self/ns/pid", "pid:[4026531836]");
	fix_folder_link(&host, "/proc/self/ns/uts", "uts:[4026531838]");
	fix_folder_link(&host, "/proc/self/ns/ipc", "ipc:[4026531839]");
	mst_doctor_read_host(host.root, &facts);
	CU_ASSERT_STRING_EQUAL(facts.container, "");
	end();
}

static void the_unit_is_read(void)
{
	begin();
	put("/proc/self/cgroup", "0::/system.slice/slurmd.service/step_3\n");
	mst_doctor_read_host(host.root, &facts);
	CU_ASSERT_STRING_EQUAL(facts.unit, "slurmd.service");
	put("/proc/self/cgroup", "0::/user.slice/user-1000.slice/session-2.scope\n");
	mst_doctor_read_host(host.root, &facts);
	CU_ASSERT_STRING_EQUAL(facts.unit, "");
	end();
}

#define STATUS(caps) "Name:\tx\nUid:\t1\nThreads:\t1\nCapEff:\t" caps "\n"

static void the_right_to_lock_counts_in_the_first_namespace(void)
{
	begin();
	put("/proc/self/uid_map", "         0          0 4294967295\n");
	put("/proc/thread-self/status", STATUS("0000000000004000"));
	mst_doctor_read_host(host.root, &facts);
	CU_ASSERT_TRUE(facts.ipc_lock);
	put("/proc/thread-self/status", STATUS("0000000000000000"));
	mst_doctor_read_host(host.root, &facts);
	CU_ASSERT_FALSE(facts.ipc_lock);
	put("/proc/thread-self/status", STATUS("000001ffffffffff"));
	put("/proc/self/uid_map", "         0       1000          1\n");
	mst_doctor_read_host(host.root, &facts);
	CU_ASSERT_FALSE(facts.ipc_lock);
	end();
}

static void the_file_that_sets_memlock_is_found(void)
{
	begin();
	put("/etc/security/limits.conf", "# memlock is a limit\n");
	mst_doctor_read_host(host.root, &facts);
	CU_ASSERT_STRING_EQUAL(facts.memlock_file, "");
	put("/etc/security/limits.conf", "* soft memlock 64\n");
	mst_doctor_read_host(host.root, &facts);
	CU_ASSERT_STRING_EQUAL(facts.memlock_file, "/etc/security/limits.conf");
	put("/etc/security/limits.d/a.conf", "* - memlock 128\n");
	put("/etc/security/limits.d/b.bak", "* - memlock 256\n");
	mst_doctor_read_host(host.root, &facts);
	CU_ASSERT_STRING_EQUAL(facts.memlock_file, "/etc/security/limits.d/a.conf");
	end();
}

static void limits_of_sockets_are_read(void)
{
	begin();
	mst_doctor_read_host(host.root, &facts);
	CU_ASSERT_EQUAL(facts.somaxconn + facts.send_max + facts.receive_max, 0);
	put("/proc/sys/net/core/somaxconn", "4096\n");
	put("/proc/sys/net/ipv4/tcp_wmem", "4096\t16384\t4194304\n");
	put("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\n");
	put("/proc/sys/net/ipv4/tcp_congestion_control", "cubic\n");
	mst_doctor_read_host(host.root, &facts);
	CU_ASSERT_EQUAL(facts.somaxconn, 4096);
	CU_ASSERT_EQUAL(facts.send_max, 4 << 20);
	CU_ASSERT_EQUAL(facts.receive_max, 0); /* it is not three numbers */
	CU_ASSERT_STRING_EQUAL(facts.congestion, "cubic");
	end();
}

static void huge_pages_are_read(void)
{
	begin();
	put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
	put("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "always within_size [never]\n");
	put("/proc/meminfo", "MemTotal: 1 kB\nHugePages_Free:     12\nHugepagesize:   2048 kB\n");
	mst_doctor_read_host(host.root, &facts);
	CU_ASSERT_STRING_EQUAL(facts.thp, "madvise");
	CU_ASSERT_STRING_EQUAL(facts.thp_shmem, "never");
	CU_ASSERT_EQUAL(facts.huge_free, 12);
	CU_ASSERT_EQUAL(facts.huge_bytes, 2 << 20);
	end();
}

static void a_card_without_rdma_is_found(void)
{
	begin();
	put("/sys/bus/pci/devices/0000:00:01.0/class", "0x010000\n");
	put("/sys/bus/pci/devices/0000:3b:00.0/class", "0x020000\n");
	fix_folder_link(&host, "/sys/bus/pci/devices/0000:3b:00.0/driver",
			"../../drivers/mlx5_core");
	mst_doctor_read_host(host.root, &facts);
	CU_ASSERT_STRING_EQUAL(facts.card.slot, "0000:3b:00.0");
	CU_ASSERT_STRING_EQUAL(facts.card.rdma_module, "mlx5_ib");
	put("/sys/bus/pci/devices/0000:3b:00.0/infiniband/mlx5_0/x", "");
	memset(&facts.card, 0, sizeof(facts.card));
	mst_doctor_read_host(host.root, &facts);
	CU_ASSERT_STRING_EQUAL(facts.card.slot, "");
	put("/sys/bus/pci/devices/0000:5e:00.0/class", "0x020700\n");
	mst_doctor_read_host(host.root, &facts);
	CU_ASSERT_STRING_EQUAL(facts.card.slot, "0000:5e:00.0");
	CU_ASSERT_PTR_NULL(facts.card.rdma_module);
	end();
}

static CU_TestInfo cases[] = {
	{ "an empty host has nothing", an_empty_host_has_nothing },
	{ "a device is read with its port", a_device_is_read_with_its_port },
	{ "GIDs in use are read with type and interface",
	  gids_in_use_are_read_with_type_and_interface },
	{ "an iWARP card and InfiniBand are told", an_iwarp_card_and_infiniband_are_told },
	{ "interfaces are read", interfaces_are_read },
	{ "modules are loaded, built in, available or absent",
	  modules_are_loaded_built_in_available_or_absent },
	{ "containers are known by their marks", containers_are_known_by_their_marks },
	{ "the unit is read", the_unit_is_read },
	{ "the right to lock counts in the first namespace",
	  the_right_to_lock_counts_in_the_first_namespace },
	{ "the file that sets memlock is found", the_file_that_sets_memlock_is_found },
	{ "limits of sockets are read", limits_of_sockets_are_read },
	{ "huge pages are read", huge_pages_are_read },
	{ "a card without RDMA is found", a_card_without_rdma_is_found },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("doctor_sysfs", cases);
}
