/* SPDX-License-Identifier: MIT */
/* What a job needs, and what doctor says of limits and huge pages. */
#include <string.h>

#include "tests/unit/tools/doctor/doctor_case.h"

#define MIB (UINT64_C(1) << 20)

/* 8 workers with a million floats: a worker registers 11.5 MiB, the server 76.5. */
static void a_job(void)
{
	doctor_host();
	doctor_wish.workers = 8;
	doctor_wish.elems = 1000000;
}

static void a_job_registers_what_it_will_use(void)
{
	struct mst_doctor_need one, two;

	a_job();
	mst_doctor_need(&doctor_wish, &one);
	/* Two gradients and a result; and of each worker two gradients, and four versions. */
	CU_ASSERT_TRUE(one.worker_bytes >= 12000000 && one.worker_bytes < 12100000);
	CU_ASSERT_TRUE(one.server_bytes >= 80000000 && one.server_bytes < 80500000);
	CU_ASSERT_TRUE(one.region_bytes >= 16000000 && one.region_bytes < 16100000);
	CU_ASSERT_EQUAL(one.qp, 16);
	CU_ASSERT_EQUAL(one.cq, 8);
	CU_ASSERT_EQUAL(one.mr, 17);
	CU_ASSERT_EQUAL(one.pd, 9);
	doctor_wish.devices = "a,b"; /* each registers all of it */
	mst_doctor_need(&doctor_wish, &two);
	CU_ASSERT_EQUAL(two.worker_bytes, 2 * one.worker_bytes);
	CU_ASSERT_EQUAL(two.server_bytes, 2 * one.server_bytes);
	CU_ASSERT_EQUAL(two.qp, one.qp);
	doctor_wish.role = MST_DOCTOR_WORKER;
	doctor_wish.type_bytes = 2;
	mst_doctor_need(&doctor_wish, &two);
	CU_ASSERT_EQUAL(two.qp, 2);
	CU_ASSERT_EQUAL(two.mr, 3);
	CU_ASSERT_TRUE(two.region_bytes < 4100000);
}

static void a_limit_is_only_told_without_a_job(void)
{
	doctor_host();
	doctor_judge();
	DOCTOR_SAYS("memlock", "", MST_FINDING_OK, "no limit", "", "");
	doctor_facts.memlock = 1024 * MIB;
	doctor_judge();
	DOCTOR_SAYS("memlock", "", MST_FINDING_OK, "1.00 GiB", "", "");
	doctor_facts.memlock = 8 * MIB;
	doctor_judge();
	DOCTOR_SAYS("memlock", "", MST_FINDING_WARNING, "8.00 MiB", "shell's own", "ulimit -l");
	doctor_facts.ipc_lock = true;
	doctor_judge();
	DOCTOR_SAYS("memlock", "", MST_FINDING_OK, "CAP_IPC_LOCK", "", "");
}

static void a_job_that_fits_tells_its_figures(void)
{
	a_job();
	doctor_judge();
	DOCTOR_SAYS("memlock", "", MST_FINDING_OK,
		    "no limit; a worker registers 11.5 MiB, the server 76.5 MiB", "", "");
	DOCTOR_SAYS("limits", "rxe0", MST_FINDING_OK, "16 of 65536 queue pairs, 8 of 65536", "",
		    "");
	DOCTOR_SAYS("limits", "rxe0", MST_FINDING_OK, "regions of 15.3 MiB", "", "");
	doctor_facts.memlock = 77 * MIB;
	doctor_judge();
	DOCTOR_SAYS("memlock", "", MST_FINDING_OK, "may lock 77.0 MiB; a worker", "", "");
	doctor_facts.memlock = 76 * MIB;
	doctor_judge();
	DOCTOR_SAYS("memlock", "", MST_FINDING_FAIL, "may lock 76.0 MiB", "", "--role worker");
	doctor_wish.role = MST_DOCTOR_SERVER;
	doctor_judge();
	DOCTOR_SAYS("memlock", "", MST_FINDING_FAIL, "; the server registers 76.5 MiB", "", "");
	doctor_wish.role = MST_DOCTOR_WORKER;
	doctor_judge();
	DOCTOR_SAYS("memlock", "", MST_FINDING_OK, "; a worker registers 11.5 MiB", "", "");
}

static void each_source_of_a_limit_has_its_fix(void)
{
	a_job();
	doctor_facts.memlock = doctor_facts.memlock_hard = 65536;
	doctor_judge();
	DOCTOR_SAYS("memlock", "", MST_FINDING_FAIL, "64.0 KiB", "the default for logins",
		    "/etc/security/limits.d/");
	DOCTOR_TEXT(doctor_facts.memlock_file, "/etc/security/limits.conf");
	doctor_judge();
	DOCTOR_SAYS("memlock", "", MST_FINDING_FAIL, "", "set in /etc/security/limits.conf",
		    "memlock unlimited");
	doctor_facts.memlock_hard = 1024 * MIB;
	doctor_judge();
	DOCTOR_SAYS("memlock", "", MST_FINDING_FAIL, "", "shell's own limit", "ulimit -l hard");
	doctor_facts.memlock_hard = MST_DOCTOR_UNLIMITED;
	doctor_judge();
	DOCTOR_SAYS("memlock", "", MST_FINDING_FAIL, "", "shell's own limit",
		    "ulimit -l unlimited");
	DOCTOR_TEXT(doctor_facts.unit, "slurmd.service");
	doctor_judge();
	DOCTOR_SAYS("memlock", "", MST_FINDING_FAIL, "", "systemd unit slurmd.service",
		    "systemctl edit slurmd.service");
	DOCTOR_SAYS("memlock", "", MST_FINDING_FAIL, "", "", "LimitMEMLOCK=infinity");
	DOCTOR_TEXT(doctor_facts.container, "docker");
	doctor_judge();
	DOCTOR_SAYS("memlock", "", MST_FINDING_FAIL, "", "containers (docker)",
		    "--ulimit memlock=-1");
}

static void each_limit_of_a_device_is_told(void)
{
	static const struct {
		size_t offset;
		const char *says;
	} row[] = {
		{ offsetof(struct mst_probe_limits, max_qp), "16 of 1 queue pairs" },
		{ offsetof(struct mst_probe_limits, max_cq), "8 of 1 completion queues" },
		{ offsetof(struct mst_probe_limits, max_pd), "9 of 1 protection domains" },
		{ offsetof(struct mst_probe_limits, max_mr), "17 of 1 memory regions" },
		{ offsetof(struct mst_probe_limits, max_cqe), "of 1 completions a queue" },
		{ offsetof(struct mst_probe_limits, max_qp_wr), "of 1 requests a queue" },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		a_job();
		uint32_t one = 1;
		memcpy((char *)&doctor_facts.device[0].probe.limits + row[i].offset, &one,
		       sizeof(one));
		doctor_judge();
		DOCTOR_SAYS("limits", "rxe0", MST_FINDING_FAIL, row[i].says, "no more",
			    "fewer workers");
		CU_ASSERT_PTR_NULL(strchr(doctor_finding("limits", "rxe0")->found, ','));
	}
	a_job();
	doctor_facts.device[0].probe.limits.max_mr_size = 2 * MIB;
	doctor_judge();
	DOCTOR_SAYS("limits", "rxe0", MST_FINDING_FAIL, "regions of 15.3 MiB of 2.00 MiB", "", "");
}

static void without_a_job_a_devices_limits_are_only_told(void)
{
	doctor_host();
	doctor_judge();
	DOCTOR_SAYS("limits", "rxe0", MST_FINDING_OK, "65536 memory regions of any size", "", "");
	doctor_facts.device[0].probe.limits.max_mr_size = 2 * MIB;
	doctor_judge();
	DOCTOR_SAYS("limits", "rxe0", MST_FINDING_OK, "regions of 2.00 MiB", "", "");
}

static void huge_pages_that_are_off_warn(void)
{
	doctor_host();
	doctor_facts.huge_free = 12;
	doctor_facts.huge_bytes = 2 * MIB;
	doctor_judge();
	DOCTOR_SAYS("huge pages", "", MST_FINDING_OK,
		    "madvise, for shared memory: never, 12 of 2.00 MiB", "", "");
	DOCTOR_TEXT(doctor_facts.thp, "never");
	doctor_judge();
	DOCTOR_SAYS("huge pages", "", MST_FINDING_WARNING, "never", "switched off", "echo madvise");
	DOCTOR_TEXT(doctor_facts.thp, "");
	doctor_judge();
	DOCTOR_SAYS("huge pages", "", MST_FINDING_OK, "does not tell", "", "");
}

static void descriptors_are_held_against_the_hard_limit(void)
{
	doctor_host();
	doctor_judge();
	DOCTOR_SAYS("files", "", MST_FINDING_OK,
		    "may open 524288 files (it raises the soft limit, "
		    "1024, itself); 64 workers take",
		    "", "");
	DOCTOR_SAYS("files", "", MST_FINDING_OK, "; 1000 workers take 4", "", "");
	doctor_facts.files_soft = doctor_facts.files_hard = 256;
	doctor_judge();
	DOCTOR_SAYS("files", "", MST_FINDING_WARNING, "may open 256 files; 64", "ulimit -Hn",
		    "nofile 4");
	DOCTOR_SAYS("files", "", MST_FINDING_WARNING, "", "", "or no more than 19 workers");
	DOCTOR_TEXT(doctor_facts.unit, "slurmd.service");
	doctor_judge();
	DOCTOR_SAYS("files", "", MST_FINDING_WARNING, "", "slurmd.service", "LimitNOFILE=4");
	DOCTOR_TEXT(doctor_facts.container, "docker");
	doctor_judge();
	DOCTOR_SAYS("files", "", MST_FINDING_WARNING, "", "(docker)", "--ulimit nofile=4");
	doctor_facts.files_hard = 4;
	doctor_judge();
	DOCTOR_SAYS("files", "", MST_FINDING_WARNING, "", "", "no more than 0 workers");
}

/* What workers take at most is what a server of so many is not refused with. */
static void a_jobs_descriptors_fail_where_it_cannot_run(void)
{
	a_job();
	doctor_wish.workers = 1000;
	doctor_facts.files_hard = 4096;
	doctor_judge();
	DOCTOR_SAYS("files", "", MST_FINDING_WARNING, "1000 workers take", "",
		    "no more than 979 workers");
	doctor_facts.files_hard = 1024;
	doctor_judge();
	DOCTOR_SAYS("files", "", MST_FINDING_FAIL, "1000 workers take", "",
		    "no more than 211 workers");
	doctor_wish.role = MST_DOCTOR_WORKER;
	doctor_judge();
	CU_ASSERT_PTR_NULL(doctor_finding("files", ""));
}

static void certificates_are_looked_at_where_they_are_named(void)
{
	doctor_host();
	doctor_judge();
	CU_ASSERT_PTR_NULL(doctor_finding("identity", ""));
	doctor_facts.has_certificate = true;
	doctor_facts.identity.roles = MST_ROLE_WORKER;
	DOCTOR_TEXT(doctor_facts.identity.name, "job worker");
	doctor_judge();
	DOCTOR_SAYS("identity", "", MST_FINDING_OK, "\"job worker\"", "", "");
	doctor_wish.role = MST_DOCTOR_SERVER;
	doctor_judge();
	DOCTOR_SAYS("identity", "", MST_FINDING_FAIL, "not the role server", "worker", "key show");
	DOCTOR_TEXT(doctor_facts.certificate_why.text, "cannot read x.pem");
	doctor_judge();
	DOCTOR_SAYS("identity", "", MST_FINDING_FAIL, "cannot be used", "x.pem", "muster key new");
}

static void a_directory_that_does_not_do_fails(void)
{
	doctor_host();
	doctor_judge();
	DOCTOR_SAYS("directory", "", MST_FINDING_OK, "/run/user/1000/muster", "", "");
	DOCTOR_TEXT(doctor_facts.directory_why.text,
		    "the directory /x has mode 0755, and: it must not; chmod");
	doctor_judge();
	DOCTOR_SAYS("directory", "", MST_FINDING_FAIL, "no place", "and: it must not", "chmod");
	CU_ASSERT_STRING_EQUAL(doctor_finding("directory", "")->fix, "chmod");
	DOCTOR_TEXT(doctor_facts.directory_why.text, "something");
	doctor_judge();
	DOCTOR_SAYS("directory", "", MST_FINDING_FAIL, "no place", "something", "XDG_RUNTIME_DIR");
}

static CU_TestInfo cases[] = {
	{ "a job registers what it will use", a_job_registers_what_it_will_use },
	{ "without a job a limit is only told", a_limit_is_only_told_without_a_job },
	{ "a job that fits tells its figures", a_job_that_fits_tells_its_figures },
	{ "each source of a limit has its fix", each_source_of_a_limit_has_its_fix },
	{ "each limit of a device is told", each_limit_of_a_device_is_told },
	{ "without a job a device's limits are only told",
	  without_a_job_a_devices_limits_are_only_told },
	{ "descriptors are held against the hard limit",
	  descriptors_are_held_against_the_hard_limit },
	{ "a job's descriptors fail where it cannot run",
	  a_jobs_descriptors_fail_where_it_cannot_run },
	{ "certificates are looked at where they are named",
	  certificates_are_looked_at_where_they_are_named },
	{ "a directory that does not do fails", a_directory_that_does_not_do_fails },
	{ "huge pages that are off warn", huge_pages_that_are_off_warn },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("doctor_limits", cases);
}
