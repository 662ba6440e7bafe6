/* SPDX-License-Identifier: MIT */
/* The host around the devices: kernel and modules, container, limits, huge pages. */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/host/memlock.h"
#include "tools/doctor/facts.h"
#include "tools/doctor/file.h"

static const char *const module_name[MST_MODULES] = {
	[MST_MODULE_UVERBS] = "ib_uverbs",
	[MST_MODULE_UCM] = "rdma_ucm",
	[MST_MODULE_RXE] = "rdma_rxe",
};

static enum mst_module_state module_state(const char *root, const char *kernel, const char *name)
{
	char list[MST_FILE_PATH], word[MST_DOCTOR_WORD];

	if (mst_file_exists("%s/sys/module/%s", root, name))
		return MST_MODULE_LOADED;
	(void)snprintf(word, sizeof(word), "/%s.ko", name);
	(void)snprintf(list, sizeof(list), "%s/lib/modules/%s/modules.builtin", root, kernel);
	if (mst_file_holds(list, word, NULL, 0))
		return MST_MODULE_LOADED;
	(void)snprintf(list, sizeof(list), "%s/lib/modules/%s/modules.dep", root, kernel);
	if (access(list, R_OK) != 0)
		return MST_MODULE_UNKNOWN;
	return mst_file_holds(list, word, NULL, 0) ? MST_MODULE_AVAILABLE : MST_MODULE_ABSENT;
}

/* Network drivers and the modules that make RDMA devices of their cards. */
static const struct {
	const char *driver, *rdma_module;
} card_modules[] = {
	{ "mlx5_core", "mlx5_ib" }, { "mlx4_core", "mlx4_ib" },   { "bnxt_en", "bnxt_re" },
	{ "ice", "irdma" },         { "hns3", "hns_roce_hw_v2" }, { "qede", "qedr" },
};

static const char *rdma_module_of(const char *driver)
{
	for (size_t i = 0; i < sizeof(card_modules) / sizeof(card_modules[0]); i++)
		if (strcmp(card_modules[i].driver, driver) == 0)
			return card_modules[i].rdma_module;
	return NULL;
}

/* Is this a card that could do RDMA, and does not? */
static bool read_card(const char *root, const char *slot, struct mst_doctor_card *out)
{
	char path[MST_FILE_PATH], link[MST_FILE_PATH + 8], driver[MST_FILE_PATH] = "";
	char class[16];

	(void)snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s", root, slot);
	if (mst_file_exists("%s/infiniband", path))
		return false;
	(void)snprintf(link, sizeof(link), "%s/driver", path);
	ssize_t len = readlink(link, driver, sizeof(driver) - 1);
	driver[len > 0 ? len : 0] = '\0';
	const char *name = strrchr(driver, '/') != NULL ? strrchr(driver, '/') + 1 : driver;
	(void)mst_file_line(class, sizeof(class), "%s/class", path);
	if (rdma_module_of(name) == NULL && strncmp(class, "0x0207", 6) != 0)
		return false;
	*out = (struct mst_doctor_card){ .rdma_module = rdma_module_of(name) };
	(void)snprintf(out->slot, sizeof(out->slot), "%.31s", slot);
	(void)snprintf(out->driver, sizeof(out->driver), "%.31s", name);
	return true;
}

static void find_card(const char *root, struct mst_doctor_facts *out)
{
	struct mst_file_names slots;
	bool found = false;

	mst_file_names(&slots, "%s/sys/bus/pci/devices", root);
	for (uint32_t i = 0; i < slots.count && !found; i++)
		found = read_card(root, slots.entry[i]->d_name, &out->card);
	mst_file_names_free(&slots);
}

/* Words of /proc/1/cgroup, and what they stand for. */
static const struct {
	const char *word, *name;
} container_marks[] = {
	{ "docker", "docker" },
	{ "kubepods", "kubernetes" },
	{ "containerd", "containerd" },
	{ "/lxc", "lxc" },
};

/* The namespaces that every process begins in. The kernel never changes their numbers. */
static const struct {
	const char *name, *first;
} namespaces[] = {
	{ "cgroup", "cgroup:[4026531835]" },
	{ "pid", "pid:[4026531836]" },
	{ "uts", "uts:[4026531838]" },
	{ "ipc", "ipc:[4026531839]" },
};

/* No container leaves a process in all of them. */
static bool in_first_namespaces(const char *root)
{
	char path[MST_FILE_PATH], link[64];

	for (size_t i = 0; i < sizeof(namespaces) / sizeof(namespaces[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/proc/self/ns/%s", root, namespaces[i].name);
		ssize_t len = readlink(path, link, sizeof(link) - 1);
		link[len > 0 ? len : 0] = '\0';
		if (strcmp(link, namespaces[i].first) != 0)
			return false;
	}
	return true;
}

static const char *container_name(const char *root)
{
	char cgroup[MST_FILE_PATH];

	if (in_first_namespaces(root))
		return "";
	if (mst_file_exists("%s/run/.containerenv", root))
		return "podman";
	if (mst_file_exists("%s/.dockerenv", root))
		return "docker";
	(void)snprintf(cgroup, sizeof(cgroup), "%s/proc/1/cgroup", root);
	for (size_t i = 0; i < sizeof(container_marks) / sizeof(container_marks[0]); i++)
		if (mst_file_holds(cgroup, container_marks[i].word, NULL, 0))
			return container_marks[i].name;
	return "";
}

/* "0::/system.slice/slurmd.service" is of slurmd.service; a login's scope is of none. */
static void read_unit(const char *root, char *out, size_t len)
{
	char path[MST_FILE_PATH], line[MST_FILE_PATH];

	(void)snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	out[0] = '\0';
	if (!mst_file_holds(path, ".service", line, sizeof(line)))
		return;
	char *end = strstr(line, ".service") + strlen(".service");
	*end = '\0';
	const char *begin = strrchr(line, '/');
	(void)snprintf(out, len, "%.63s", begin != NULL ? begin + 1 : line);
}

/* If there are several files, the last one wins. */
static void find_memlock_file(const char *root, char *out, size_t len)
{
	struct mst_file_names files;
	char path[MST_FILE_PATH];

	out[0] = '\0';
	(void)snprintf(path, sizeof(path), "%s/etc/security/limits.conf", root);
	if (mst_file_holds(path, "memlock", NULL, 0))
		(void)snprintf(out, len, "%s", path + strlen(root));
	mst_file_names(&files, "%s/etc/security/limits.d", root);
	for (uint32_t i = 0; i < files.count; i++) {
		(void)snprintf(path, sizeof(path), "%s/etc/security/limits.d/%s", root,
			       files.entry[i]->d_name);
		if (strstr(path, ".conf") != NULL && mst_file_holds(path, "memlock", NULL, 0))
			(void)snprintf(out, len, "%s", path + strlen(root));
	}
	mst_file_names_free(&files);
}

static_assert(MST_DOCTOR_UNLIMITED == MST_MEMLOCK_UNLIMITED, "a limit is handed on as it is");

static void read_memlock(const char *root, struct mst_doctor_facts *out)
{
	struct mst_memlock lock;

	mst_host_memlock(root, &lock);
	out->memlock = lock.soft_bytes;
	out->memlock_hard = lock.hard_bytes;
	out->ipc_lock = lock.exempt;
	find_memlock_file(root, out->memlock_file, sizeof(out->memlock_file));
}

/* Reads the word in brackets, as in "always [madvise] never". */
static void read_choice(const char *root, const char *name, char *out, size_t len)
{
	char line[128];

	(void)mst_file_line(line, sizeof(line), "%s/sys/kernel/mm/transparent_hugepage/%s", root,
			    name);
	char *begin = strchr(line, '['), *end = strchr(line, ']');
	if (begin != NULL && end > begin)
		(void)snprintf(out, len, "%.*s", (int)(end - begin - 1), begin + 1);
}

static uint64_t meminfo(const char *root, const char *key)
{
	char path[MST_FILE_PATH], line[128];

	(void)snprintf(path, sizeof(path), "%s/proc/meminfo", root);
	if (!mst_file_holds(path, key, line, sizeof(line)))
		return 0;
	return strtoull(line + strcspn(line, "0123456789"), NULL, 10);
}

/* The third of "4096 131072 6291456". */
static uint64_t largest(const char *root, const char *name)
{
	char line[128];
	unsigned long long at[3] = { 0 };

	(void)mst_file_line(line, sizeof(line), "%s/proc/sys/net/ipv4/%s", root, name);
	return sscanf(line, "%llu %llu %llu", &at[0], &at[1], &at[2]) == 3 ? at[2] : 0;
}

static void read_sockets(const char *root, struct mst_doctor_facts *out)
{
	out->somaxconn = mst_file_number("%s/proc/sys/net/core/somaxconn", root);
	out->send_max = largest(root, "tcp_wmem");
	out->receive_max = largest(root, "tcp_rmem");
	(void)mst_file_line(out->congestion, sizeof(out->congestion),
			    "%s/proc/sys/net/ipv4/tcp_congestion_control", root);
}

/* Where there is no such parameter, as in old kernels, all namespaces share all devices. */
static bool is_netns_exclusive(const char *root)
{
	char shared[8];

	return mst_file_line(shared, sizeof(shared), "%s/sys/module/ib_core/parameters/netns_mode",
			     root) &&
	       shared[0] == 'N';
}

void mst_doctor_read_host(const char *root, struct mst_doctor_facts *out)
{
	if (!mst_file_line(out->kernel, sizeof(out->kernel), "%s/proc/sys/kernel/osrelease", root))
		(void)snprintf(out->kernel, sizeof(out->kernel), "?");
	for (unsigned i = 0; i < MST_MODULES; i++)
		out->module[i] = module_state(root, out->kernel, module_name[i]);
	out->netns_exclusive = is_netns_exclusive(root);
	find_card(root, out);
	(void)snprintf(out->container, sizeof(out->container), "%s", container_name(root));
	read_unit(root, out->unit, sizeof(out->unit));
	out->root = geteuid() == 0;
	read_memlock(root, out);
	read_sockets(root, out);
	read_choice(root, "enabled", out->thp, sizeof(out->thp));
	read_choice(root, "shmem_enabled", out->thp_shmem, sizeof(out->thp_shmem));
	out->huge_free = meminfo(root, "HugePages_Free:");
	out->huge_bytes = meminfo(root, "Hugepagesize:") * 1024;
}
