/* SPDX-License-Identifier: MIT */
/* What doctor says of modules, devices, and who may use them. */
#include <errno.h>
#include <string.h>

#include "tests/unit/tools/doctor/doctor_case.h"

static void a_sound_host_is_sound(void)
{
	doctor_host();
	doctor_judge();
	CU_ASSERT_EQUAL(mst_findings_of(&doctor_found, MST_FINDING_FAIL), 0);
	CU_ASSERT_EQUAL(mst_findings_of(&doctor_found, MST_FINDING_WARNING), 0);
	for (uint32_t i = 0; i < doctor_found.count; i++) {
		CU_ASSERT_STRING_EQUAL(doctor_found.item[i].cause, "");
		CU_ASSERT_STRING_EQUAL(doctor_found.item[i].fix, "");
	}
	DOCTOR_SAYS("modules", "", MST_FINDING_OK, "are loaded", "", "");
	DOCTOR_SAYS("devices", "", MST_FINDING_OK, "1: rxe0", "", "");
	DOCTOR_SAYS("library", "rxe0", MST_FINDING_OK, "can open", "", "");
}

static void modules_that_are_there_are_loaded(void)
{
	doctor_host();
	doctor_facts.module[MST_MODULE_UCM] = MST_MODULE_AVAILABLE;
	doctor_judge();
	DOCTOR_SAYS("modules", "", MST_FINDING_FAIL, "not loaded: rdma_ucm", "nothing has asked",
		    "modprobe -a rdma_ucm");
	doctor_facts.module[MST_MODULE_UVERBS] = MST_MODULE_AVAILABLE;
	doctor_judge();
	DOCTOR_SAYS("modules", "", MST_FINDING_FAIL, "ib_uverbs rdma_ucm", "",
		    "modprobe -a ib_uverbs rdma_ucm");
	doctor_facts.module[MST_MODULE_UCM] = MST_MODULE_LOADED;
	doctor_judge();
	DOCTOR_SAYS("modules", "", MST_FINDING_FAIL, "not loaded: ib_uverbs", "",
		    "modprobe -a ib_uverbs");
}

static void modules_a_kernel_lacks_need_another_kernel(void)
{
	doctor_host();
	doctor_facts.module[MST_MODULE_UVERBS] = MST_MODULE_ABSENT;
	doctor_judge();
	DOCTOR_SAYS("modules", "", MST_FINDING_FAIL, "ib_uverbs",
		    "kernel 6.1.0-18-amd64 was built without", "linux-image-amd64");
}

static void where_modules_cannot_be_seen_that_is_said(void)
{
	doctor_host();
	doctor_facts.module[MST_MODULE_UVERBS] = MST_MODULE_UNKNOWN;
	DOCTOR_TEXT(doctor_facts.container, "docker");
	doctor_judge();
	DOCTOR_SAYS("modules", "", MST_FINDING_FAIL, "ib_uverbs", "cannot be told",
		    "on the host, not in this container: modprobe");
}

static void without_a_device_soft_roce_is_named(void)
{
	doctor_host();
	doctor_facts.device_count = 0;
	doctor_facts.module[MST_MODULE_RXE] = MST_MODULE_AVAILABLE;
	doctor_judge();
	DOCTOR_SAYS("devices", "", MST_FINDING_FAIL, "none", "has soft-RoCE",
		    "deploy/soft-roce.sh up eth0");
	CU_ASSERT_PTR_NULL(doctor_finding("node", ""));
	DOCTOR_TEXT(doctor_facts.netdev[0].state, "down");
	doctor_facts.module[MST_MODULE_RXE] = MST_MODULE_UNKNOWN;
	DOCTOR_TEXT(doctor_facts.container, "podman");
	doctor_judge();
	DOCTOR_SAYS("devices", "", MST_FINDING_FAIL, "none", "may have soft-RoCE",
		    "--device=/dev/infiniband");
	DOCTOR_SAYS("devices", "", MST_FINDING_FAIL, "none", "", "soft-roce.sh up IFACE");
}

static void a_kernel_for_clouds_is_named(void)
{
	doctor_host();
	doctor_facts.device_count = 0;
	doctor_facts.module[MST_MODULE_RXE] = MST_MODULE_ABSENT;
	doctor_judge();
	DOCTOR_SAYS("devices", "", MST_FINDING_FAIL, "none", "has no rdma_rxe",
		    "apt-get install linux-image-amd64");
	CU_ASSERT_PTR_NULL(strstr(doctor_finding("devices", "")->cause, "clouds"));
	DOCTOR_TEXT(doctor_facts.kernel, "6.1.0-18-cloud-amd64");
	doctor_judge();
	DOCTOR_SAYS("devices", "", MST_FINDING_FAIL, "none", "kernels for clouds leave it out",
		    "linux-image-amd64");
}

static void a_card_without_its_rdma_driver_is_named(void)
{
	doctor_host();
	doctor_facts.device_count = 0;
	doctor_facts.card = (struct mst_doctor_card){ .slot = "0000:3b:00.0",
						      .driver = "mlx5_core",
						      .rdma_module = "mlx5_ib" };
	doctor_judge();
	DOCTOR_SAYS("devices", "", MST_FINDING_FAIL, "none", "0000:3b:00.0, driver mlx5_core",
		    "modprobe mlx5_ib");
	doctor_facts.card = (struct mst_doctor_card){ .slot = "0000:3b:00.0" };
	doctor_judge();
	DOCTOR_SAYS("devices", "", MST_FINDING_FAIL, "none", "driver none",
		    "lspci -k -s 0000:3b:00.0");
}

static void a_device_asked_for_has_to_be_there(void)
{
	doctor_host();
	doctor_wish.devices = "rxe0,mlx5_0:2";
	doctor_judge();
	CU_ASSERT_EQUAL(mst_findings_of(&doctor_found, MST_FINDING_FAIL), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(doctor_found.item[2].found, "there is no mlx5_0:2 here"));
	CU_ASSERT_PTR_NOT_NULL(strstr(doctor_found.item[2].cause, "this host has rxe0"));
	doctor_wish.devices = "rxe0:2";
	doctor_judge();
	CU_ASSERT_TRUE(mst_findings_of(&doctor_found, MST_FINDING_FAIL) > 0);
	doctor_wish.devices = "rxe0:1";
	doctor_judge();
	CU_ASSERT_EQUAL(mst_findings_of(&doctor_found, MST_FINDING_FAIL), 0);
}

static void names_are_compared_whole(void)
{
	CU_ASSERT_TRUE(mst_doctor_names(NULL, "rxe0", 1));
	CU_ASSERT_TRUE(mst_doctor_names("a,rxe0", "rxe0", 1));
	CU_ASSERT_TRUE(mst_doctor_names("rxe0:1,b", "rxe0", 1));
	CU_ASSERT_TRUE(mst_doctor_names("rxe0:1", "rxe0", 0));
	CU_ASSERT_FALSE(mst_doctor_names("rxe0:1", "rxe0", 2));
	CU_ASSERT_FALSE(mst_doctor_names("rxe01", "rxe0", 1));
	CU_ASSERT_FALSE(mst_doctor_names("rxe", "rxe0", 1));
	CU_ASSERT_FALSE(mst_doctor_names("", "rxe0", 1));
}

static void a_node_that_is_not_there_is_named(void)
{
	doctor_host();
	doctor_facts.rdma_cm = (struct mst_doctor_node){ .name = "rdma_cm" };
	doctor_judge();
	CU_ASSERT_EQUAL(mst_findings_of(&doctor_found, MST_FINDING_FAIL), 1);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(doctor_found.item[2].found, "/dev/infiniband/rdma_cm is not there"));
	CU_ASSERT_PTR_NOT_NULL(strstr(doctor_found.item[2].fix, "modprobe -a ib_uverbs rdma_ucm"));
	doctor_facts.rdma_cm.exists = true;
	doctor_judge();
	CU_ASSERT_PTR_NOT_NULL(strstr(doctor_found.item[2].found, "may not be read and written"));
	CU_ASSERT_PTR_NOT_NULL(
		strstr(doctor_found.item[2].fix, "chmod 666 /dev/infiniband/rdma_cm"));
	DOCTOR_TEXT(doctor_facts.container, "docker");
	doctor_judge();
	CU_ASSERT_PTR_NOT_NULL(strstr(doctor_found.item[2].cause, "container (docker)"));
	CU_ASSERT_PTR_NOT_NULL(strstr(doctor_found.item[2].fix, "--device=/dev/infiniband"));
	CU_ASSERT_PTR_NOT_NULL(strstr(doctor_found.item[2].fix, "--ulimit memlock=-1"));
}

static void a_device_one_may_not_use_gives_no_port(void)
{
	struct mst_doctor_port port;

	doctor_host();
	CU_ASSERT_EQUAL(mst_doctor_ports(&doctor_facts, &doctor_wish, &port, 1), 1);
	CU_ASSERT_STRING_EQUAL(mst_doctor_ip(port.address).text, "10.0.0.1");
	doctor_facts.device[0].node.usable = false;
	doctor_judge();
	CU_ASSERT_EQUAL(mst_doctor_ports(&doctor_facts, &doctor_wish, &port, 1), 0);
	CU_ASSERT_EQUAL(mst_findings_of(&doctor_found, MST_FINDING_FAIL), 1);
	CU_ASSERT_PTR_NULL(doctor_finding("library", "rxe0"));
}

static void a_missing_provider_is_named(void)
{
	doctor_host();
	doctor_facts.device[0].listed = false;
	doctor_judge();
	DOCTOR_SAYS("library", "rxe0", MST_FINDING_FAIL, "does not offer", "missing",
		    "apt-get install ibverbs-providers");
	doctor_facts.library_error = -ENOSYS;
	doctor_judge();
	DOCTOR_SAYS("library", "rxe0", MST_FINDING_FAIL, "does not offer", "ib_uverbs",
		    "modprobe ib_uverbs");
	doctor_facts.library_error = -ELIBACC;
	doctor_judge();
	DOCTOR_SAYS("library", "rxe0", MST_FINDING_FAIL, "does not offer", "not on this host",
		    "apt-get install libibverbs1 librdmacm1");
}

/* The library of a device is not missing where the device belongs to another namespace. */
static void a_device_of_another_network_namespace_is_named(void)
{
	doctor_host();
	doctor_facts.netns_exclusive = true;
	doctor_judge();
	CU_ASSERT_EQUAL(mst_findings_of(&doctor_found, MST_FINDING_FAIL), 0);
	doctor_facts.device[0].listed = false;
	doctor_judge();
	DOCTOR_SAYS("library", "rxe0", MST_FINDING_FAIL, "does not offer", "netns exclusive",
		    "on the host: rdma dev set rxe0 netns NAME");
	doctor_facts.device[0].listed = true;
	doctor_facts.device[0].probe.error = -EPERM;
	doctor_judge();
	DOCTOR_SAYS("library", "rxe0", MST_FINDING_FAIL, strerror(EPERM), "netns exclusive",
		    "rdma dev set rxe0 netns NAME");
	doctor_facts.device_count = 0;
	doctor_judge();
	DOCTOR_SAYS("devices", "", MST_FINDING_FAIL, "none", "netns exclusive",
		    "rdma system set netns shared");
}

static void a_device_that_does_not_open_says_why(void)
{
	static const struct {
		int error;
		const char *cause, *fix;
	} row[] = { { -EPERM, "may not", "a user who may" },
		    { -ENOMEM, "limit is too small", "ulimit -l" },
		    { -EIO, "driver refused", "dmesg" } };

	doctor_host();
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		doctor_facts.device[0].probe.error = row[i].error;
		doctor_judge();
		DOCTOR_SAYS("library", "rxe0", MST_FINDING_FAIL, strerror(-row[i].error),
			    row[i].cause, row[i].fix);
	}
}

static void iwarp_is_refused(void)
{
	doctor_host();
	doctor_facts.device[0].probe.iwarp = true;
	doctor_judge();
	DOCTOR_SAYS("library", "rxe0", MST_FINDING_FAIL, "iWARP", "immediate", "RoCE");
}

static void beside_a_device_that_works_others_only_warn(void)
{
	doctor_host();
	doctor_add_device("mlx5_0");
	doctor_facts.device[1].listed = false;
	doctor_judge();
	DOCTOR_SAYS("library", "mlx5_0", MST_FINDING_WARNING, "does not offer", "", "");
	CU_ASSERT_EQUAL(mst_findings_of(&doctor_found, MST_FINDING_FAIL), 0);
	doctor_wish.devices = "mlx5_0";
	doctor_judge();
	DOCTOR_SAYS("library", "mlx5_0", MST_FINDING_FAIL, "does not offer", "", "");
	CU_ASSERT_PTR_NULL(doctor_finding("library", "rxe0"));
}

static void addresses_and_sockets_are_told(void)
{
	doctor_host();
	doctor_judge();
	DOCTOR_SAYS("addresses", "", MST_FINDING_OK, "eth0 10.0.0.1 (MTU 4200)", "", "");
	CU_ASSERT_PTR_NULL(strstr(doctor_finding("addresses", "")->found, "127.0.0.1"));
	DOCTOR_SAYS("sockets", "", MST_FINDING_OK,
		    "4096 callers may wait at a port; a connection sends from up to 4.00 MiB and "
		    "receives into up to 6.00 MiB, cubic",
		    "", "");
	doctor_facts.somaxconn = 16;
	doctor_facts.address_count = 0;
	doctor_judge();
	DOCTOR_SAYS("addresses", "", MST_FINDING_WARNING, "none", "but loopback", "ip addr add");
	DOCTOR_SAYS("sockets", "", MST_FINDING_WARNING, "16 callers",
		    "128 workers may call at once", "net.core.somaxconn=4096");
	doctor_wish.workers = 16;
	doctor_wish.elems = 1;
	doctor_judge();
	DOCTOR_SAYS("sockets", "", MST_FINDING_OK, "16 callers", "", "");
}

static void what_is_spare_is_a_warning(void)
{
	doctor_host();
	doctor_facts.device_count = 0;
	doctor_facts.has_certificate = true; /* with no role */
	doctor_facts.memlock = 64 << 10;
	doctor_facts.ipc_lock = false;
	doctor_judge();
	mst_findings_spare(&doctor_found, mst_doctor_is_of_rdma, "RDMA");
	DOCTOR_SAYS("devices", "", MST_FINDING_WARNING, "(only for RDMA)", "", "");
	DOCTOR_SAYS("memlock", "", MST_FINDING_WARNING, "(only for RDMA)", "", "");
	DOCTOR_SAYS("identity", "", MST_FINDING_FAIL, "role", "", "");
	CU_ASSERT_EQUAL(mst_findings_of(&doctor_found, MST_FINDING_FAIL), 1);
}

static void a_full_list_keeps_what_came_first(void)
{
	memset(&doctor_found, 0, sizeof(doctor_found));
	for (unsigned i = 0; i < MST_FINDINGS_MAX + 3; i++)
		(void)mst_finding_add(&doctor_found, MST_FINDING_OK, "x", "%u", i);
	CU_ASSERT_EQUAL(doctor_found.count, MST_FINDINGS_MAX);
	CU_ASSERT_STRING_EQUAL(doctor_found.item[0].found, "0");
}

static void bytes_are_written_for_people(void)
{
	CU_ASSERT_STRING_EQUAL(mst_bytes_text(0).text, "0 bytes");
	CU_ASSERT_STRING_EQUAL(mst_bytes_text(1023).text, "1023 bytes");
	CU_ASSERT_STRING_EQUAL(mst_bytes_text(65536).text, "64.0 KiB");
	CU_ASSERT_STRING_EQUAL(mst_bytes_text(8 << 20).text, "8.00 MiB");
	CU_ASSERT_STRING_EQUAL(mst_bytes_text(1023 << 10).text, "1.00 MiB");
	CU_ASSERT_STRING_EQUAL(mst_bytes_text(UINT64_MAX).text, "16.0 EiB");
}

static CU_TestInfo cases[] = {
	{ "a sound host is sound, and nothing is to be fixed", a_sound_host_is_sound },
	{ "modules that are there are to be loaded", modules_that_are_there_are_loaded },
	{ "modules a kernel lacks need another kernel",
	  modules_a_kernel_lacks_need_another_kernel },
	{ "where modules cannot be seen that is said", where_modules_cannot_be_seen_that_is_said },
	{ "without a device soft-RoCE is named", without_a_device_soft_roce_is_named },
	{ "a kernel for clouds is named", a_kernel_for_clouds_is_named },
	{ "a card without its RDMA driver is named", a_card_without_its_rdma_driver_is_named },
	{ "a device asked for has to be there", a_device_asked_for_has_to_be_there },
	{ "names are compared whole", names_are_compared_whole },
	{ "a node that is not there is named", a_node_that_is_not_there_is_named },
	{ "a device one may not use gives no port", a_device_one_may_not_use_gives_no_port },
	{ "a missing provider is named", a_missing_provider_is_named },
	{ "a device of another network namespace is named",
	  a_device_of_another_network_namespace_is_named },
	{ "a device that does not open says why", a_device_that_does_not_open_says_why },
	{ "iWARP is refused", iwarp_is_refused },
	{ "beside a device that works others only warn",
	  beside_a_device_that_works_others_only_warn },
	{ "addresses and sockets are told", addresses_and_sockets_are_told },
	{ "what is spare is a warning", what_is_spare_is_a_warning },
	{ "a full list keeps what came first", a_full_list_keeps_what_came_first },
	{ "bytes are written for people", bytes_are_written_for_people },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("doctor", cases);
}
