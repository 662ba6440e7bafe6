/* SPDX-License-Identifier: MIT */
/* What doctor says of ports, the addresses that lead to them, and their MTUs. */
#include <string.h>

#include "tests/unit/tools/doctor/doctor_case.h"

static uint32_t usable(void)
{
	struct mst_doctor_port port[8];

	return mst_doctor_ports(&doctor_facts, &doctor_wish, port, 8);
}

static void a_good_port_tells_its_figures(void)
{
	doctor_host();
	doctor_judge();
	DOCTOR_SAYS("port", "rxe0/1", MST_FINDING_OK, "active, Ethernet, 100 Gbit/s", "", "");
	DOCTOR_SAYS("gid", "rxe0/1", MST_FINDING_OK, "GID 1 is RoCE v2 for 10.0.0.1 of eth0", "",
		    "");
	DOCTOR_SAYS("mtu", "rxe0/1", MST_FINDING_OK, "4096 bytes", "", "");
	CU_ASSERT_EQUAL(usable(), 1);
}

static void a_port_is_down_with_its_interface(void)
{
	doctor_host();
	doctor_port()->state = MST_PROBE_DOWN;
	doctor_port()->phys_state = 3;
	DOCTOR_TEXT(doctor_facts.netdev[0].state, "down");
	doctor_judge();
	DOCTOR_SAYS("port", "rxe0/1", MST_FINDING_FAIL, "link is disabled", "eth0 is down",
		    "ip link set eth0 up");
	CU_ASSERT_PTR_NULL(doctor_finding("mtu", "rxe0/1"));
	CU_ASSERT_EQUAL(usable(), 0);
	DOCTOR_TEXT(doctor_facts.netdev[0].state, "up");
	doctor_judge();
	DOCTOR_SAYS("port", "rxe0/1", MST_FINDING_FAIL, "down", "no carrier", "cable");
	doctor_port()->phys_state = 99;
	doctor_judge();
	DOCTOR_SAYS("port", "rxe0/1", MST_FINDING_FAIL, "unknown state", "", "");
}

static void a_second_port_that_is_down_only_warns(void)
{
	doctor_host();
	doctor_add_device("mlx5_0");
	doctor_facts.device[1].probe.port[0].state = MST_PROBE_DOWN;
	doctor_judge();
	DOCTOR_SAYS("port", "mlx5_0/1", MST_FINDING_WARNING, "down", "", "");
	CU_ASSERT_PTR_NULL(doctor_finding("gid", "mlx5_0/1"));
	doctor_wish.devices = "rxe0,mlx5_0";
	doctor_judge();
	DOCTOR_SAYS("port", "mlx5_0/1", MST_FINDING_FAIL, "down", "", "");
	DOCTOR_SAYS("gid", "mlx5_0/1", MST_FINDING_FAIL, "no GID", "", "");
}

static void an_interface_without_address_is_named(void)
{
	doctor_host();
	doctor_facts.address_count = 0;
	doctor_port()->gid_count = 1; /* the link-local one, which is always there */
	doctor_judge();
	DOCTOR_SAYS("gid", "rxe0/1", MST_FINDING_FAIL, "no GID of an IP address",
		    "eth0 has no IP address", "ip addr add ADDRESS/24 dev eth0");
	doctor_port()->gid_count = 0;
	doctor_judge();
	DOCTOR_SAYS("gid", "rxe0/1", MST_FINDING_FAIL, "no GID", "its network interface",
		    "dev IFACE");
}

static void a_stale_gid_is_told_from_a_good_one(void)
{
	doctor_host();
	doctor_address(doctor_facts.address[0].raw, "10.0.0.2");
	doctor_judge();
	DOCTOR_SAYS("gid", "rxe0/1", MST_FINDING_FAIL,
		    "GID 1 is of 10.0.0.1, which eth0 has no more", "eth0 has 10.0.0.2 now",
		    "ip link set eth0 down; ip link set eth0 up");
	CU_ASSERT_EQUAL(usable(), 0);
	/* The address has moved to another interface. */
	doctor_host();
	DOCTOR_TEXT(doctor_facts.address[0].netdev, "lo");
	doctor_judge();
	DOCTOR_SAYS("gid", "rxe0/1", MST_FINDING_FAIL, "has no more", "eth0 has no IP address",
		    "ip addr add");
}

static void a_gid_beside_a_stale_one_is_taken(void)
{
	doctor_host();
	doctor_port()->gid[2] = doctor_port()->gid[1];
	doctor_port()->gid[2].index = 7;
	doctor_port()->gid_count = 3;
	doctor_address(doctor_port()->gid[1].raw, "10.0.0.9");
	doctor_judge();
	DOCTOR_SAYS("gid", "rxe0/1", MST_FINDING_OK, "GID 7 is RoCE v2 for 10.0.0.1", "", "");
}

static void a_link_local_address_alone_is_no_way(void)
{
	doctor_host();
	doctor_address(doctor_facts.address[0].raw, "fe80::1");
	doctor_port()->gid_count = 1;
	doctor_judge();
	DOCTOR_SAYS("gid", "rxe0/1", MST_FINDING_FAIL, "link-local address, fe80::1 of eth0",
		    "eth0 has no IP address", "ip addr add");
}

static void an_ipv6_address_is_a_way(void)
{
	doctor_host();
	doctor_address(doctor_facts.address[0].raw, "fd00::1");
	doctor_address(doctor_port()->gid[1].raw, "fd00::1");
	doctor_judge();
	DOCTOR_SAYS("gid", "rxe0/1", MST_FINDING_OK, "RoCE v2 for fd00::1", "", "");
}

static void roce_v1_alone_is_no_way(void)
{
	doctor_host();
	doctor_port()->gid[1].type = MST_PROBE_GID_ROCE_V1;
	doctor_judge();
	DOCTOR_SAYS("gid", "rxe0/1", MST_FINDING_FAIL, "GID 1 is RoCE v1 for 10.0.0.1",
		    "no RoCE v2 GID", "firmware");
}

static void loopback_stands_for_no_device(void)
{
	doctor_host();
	DOCTOR_TEXT(doctor_port()->gid[1].netdev, "lo");
	doctor_address(doctor_port()->gid[1].raw, "127.0.0.1");
	doctor_judge();
	DOCTOR_SAYS("gid", "rxe0/1", MST_FINDING_FAIL, "127.0.0.1 of lo", "no address of lo",
		    "deploy/soft-roce.sh down rxe0");
}

static void an_interface_of_another_namespace_is_told(void)
{
	doctor_host();
	DOCTOR_TEXT(doctor_facts.netdev[0].name, "eth7");
	DOCTOR_TEXT(doctor_facts.address[0].netdev, "eth7");
	doctor_judge();
	DOCTOR_SAYS("gid", "rxe0/1", MST_FINDING_FAIL, "eth0 is not here", "namespace", "nsenter");
	DOCTOR_TEXT(doctor_facts.container, "docker");
	doctor_judge();
	DOCTOR_SAYS("gid", "rxe0/1", MST_FINDING_FAIL, "eth0 is not here", "namespace",
		    "--network=host");
}

static void small_packets_are_told_with_their_cause(void)
{
	doctor_host();
	doctor_port()->mtu = 1024;
	doctor_facts.netdev[0].mtu = 1500;
	doctor_judge();
	DOCTOR_SAYS("mtu", "rxe0/1", MST_FINDING_WARNING,
		    "1024 bytes where the device could do 4096", "eth0 has MTU 1500",
		    "ip link set eth0 mtu 4200");
	CU_ASSERT_EQUAL(usable(), 1);
	doctor_facts.netdev[0].mtu = 9000;
	doctor_judge();
	DOCTOR_SAYS("mtu", "rxe0/1", MST_FINDING_WARNING, "1024", "MTU 9000",
		    "ip link set eth0 down");
	doctor_port()->mtu = 0; /* the device could not be opened */
	doctor_judge();
	CU_ASSERT_PTR_NULL(doctor_finding("mtu", "rxe0/1"));
}

/* rxe0 becomes an InfiniBand device, eth0 its IP interface ib0. */
static void infiniband_host(void)
{
	doctor_host();
	doctor_port()->link = MST_PROBE_INFINIBAND;
	doctor_port()->lid = 12;
	doctor_port()->gid[0].type = doctor_port()->gid[1].type = MST_PROBE_GID_IB;
	doctor_facts.netdev[0] = (struct mst_doctor_netdev){ .name = "ib0",
							     .state = "up",
							     .mtu = 2044,
							     .infiniband = true,
							     .device = "rxe0",
							     .port = 1 };
	DOCTOR_TEXT(doctor_facts.address[0].netdev, "ib0");
}

static void infiniband_goes_by_its_ip_interface(void)
{
	infiniband_host();
	doctor_judge();
	DOCTOR_SAYS("port", "rxe0/1", MST_FINDING_OK, "InfiniBand, 100 Gbit/s, LID 12", "", "");
	DOCTOR_SAYS("address", "rxe0/1", MST_FINDING_OK, "10.0.0.1 of ib0", "", "");
	CU_ASSERT_PTR_NULL(doctor_finding("gid", "rxe0/1"));
	CU_ASSERT_EQUAL(usable(), 1);
	doctor_facts.address_count = 0;
	doctor_judge();
	DOCTOR_SAYS("address", "rxe0/1", MST_FINDING_FAIL, "no IP address", "ib0 has none",
		    "ip addr add ADDRESS/24 dev ib0");
	doctor_facts.address_count = 1;
	doctor_address(doctor_facts.address[0].raw, "fe80::1");
	doctor_judge();
	DOCTOR_SAYS("address", "rxe0/1", MST_FINDING_FAIL, "no IP address", "link-local one only",
		    "ip addr add");
	doctor_facts.netdev[0].port = 2; /* of the other port */
	doctor_judge();
	DOCTOR_SAYS("address", "rxe0/1", MST_FINDING_FAIL, "no IP address", "no IP-over-InfiniBand",
		    "modprobe ib_ipoib");
}

static void infiniband_without_subnet_manager_is_told(void)
{
	infiniband_host();
	doctor_port()->state = MST_PROBE_INIT;
	doctor_judge();
	DOCTOR_SAYS("port", "rxe0/1", MST_FINDING_FAIL, "initialising", "no subnet manager",
		    "opensm");
	doctor_port()->state = MST_PROBE_ARMED;
	doctor_judge();
	DOCTOR_SAYS("port", "rxe0/1", MST_FINDING_FAIL, "armed", "no subnet manager", "opensm");
	doctor_port()->state = MST_PROBE_DOWN;
	doctor_port()->phys_state = 2;
	doctor_judge();
	DOCTOR_SAYS("port", "rxe0/1", MST_FINDING_FAIL, "polling", "no cable", "ibstat rxe0");
}

static CU_TestInfo cases[] = {
	{ "a good port tells its figures", a_good_port_tells_its_figures },
	{ "a port is down with its interface", a_port_is_down_with_its_interface },
	{ "a second port that is down only warns", a_second_port_that_is_down_only_warns },
	{ "an interface without an address is named", an_interface_without_address_is_named },
	{ "a stale GID is told from a good one", a_stale_gid_is_told_from_a_good_one },
	{ "a good GID beside a stale one is taken", a_gid_beside_a_stale_one_is_taken },
	{ "a link-local address alone is no way", a_link_local_address_alone_is_no_way },
	{ "an IPv6 address is a way", an_ipv6_address_is_a_way },
	{ "RoCE v1 alone is no way", roce_v1_alone_is_no_way },
	{ "loopback stands for no device", loopback_stands_for_no_device },
	{ "an interface of another namespace is told", an_interface_of_another_namespace_is_told },
	{ "small packets are told with their cause", small_packets_are_told_with_their_cause },
	{ "InfiniBand goes by its IP interface", infiniband_goes_by_its_ip_interface },
	{ "InfiniBand without a subnet manager is told",
	  infiniband_without_subnet_manager_is_told },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("doctor_port", cases);
}
