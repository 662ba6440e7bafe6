/* SPDX-License-Identifier: MIT */
/* Modules, devices, and who may use them; port.c and limits.c judge the rest. Pure. */
#include "tools/doctor/judge.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CONTAINER_FLAGS "--device=/dev/infiniband --cap-add=IPC_LOCK --ulimit memlock=-1"

/* Where a command has to be typed that a container cannot do. */
static const char *on_host(const struct mst_doctor_facts *f)
{
	return f->container[0] != '\0' ? "on the host, not in this container: " : "";
}

static void judge_missing_modules(const struct mst_doctor_facts *f, const char *names,
				  enum mst_module_state state, struct mst_findings *out)
{
	struct mst_finding *new = mst_finding_add(out, MST_FINDING_FAIL, "modules",
						  "not loaded: %s", names);

	if (state == MST_MODULE_ABSENT) {
		mst_finding_cause(new, "kernel %s was built without", f->kernel);
		mst_finding_fix(new, "boot a kernel that has it; Debian's: "
				     "apt-get install linux-image-amd64, then reboot");
		return;
	}
	if (state == MST_MODULE_UNKNOWN)
		mst_finding_cause(new,
				  "whether kernel %s has it cannot be told: its modules are "
				  "not in /lib/modules here",
				  f->kernel);
	else
		mst_finding_cause(new, "nothing has asked for RDMA since this host was started");
	mst_finding_fix(new, "%smodprobe -a %s", on_host(f), names);
}

void mst_doctor_judge_modules(const struct mst_doctor_facts *f, struct mst_findings *out)
{
	enum mst_module_state verbs = f->module[MST_MODULE_UVERBS];
	enum mst_module_state cm = f->module[MST_MODULE_UCM];

	if (verbs == MST_MODULE_LOADED && cm == MST_MODULE_LOADED)
		(void)mst_finding_add(out, MST_FINDING_OK, "modules",
				      "ib_uverbs and rdma_ucm are loaded");
	else if (verbs == MST_MODULE_LOADED)
		judge_missing_modules(f, "rdma_ucm", cm, out);
	else if (cm == MST_MODULE_LOADED)
		judge_missing_modules(f, "ib_uverbs", verbs, out);
	else
		judge_missing_modules(f, "ib_uverbs rdma_ucm", verbs, out);
}

/* An interface that soft-RoCE could be put on: up, with an address, no loopback. */
static const char *likely_netdev(const struct mst_doctor_facts *f)
{
	for (uint32_t i = 0; i < f->netdev_count; i++) {
		const struct mst_doctor_netdev *n = &f->netdev[i];
		if (n->loopback || n->vlan || n->infiniband || strcmp(n->state, "down") == 0)
			continue;
		for (uint32_t k = 0; k < f->address_count; k++)
			if (strcmp(f->address[k].netdev, n->name) == 0)
				return n->name;
	}
	return "IFACE";
}

static void fix_with_soft_roce(const struct mst_doctor_facts *f, struct mst_finding *new)
{
	enum mst_module_state rxe = f->module[MST_MODULE_RXE];

	if (rxe == MST_MODULE_ABSENT) {
		mst_finding_cause(new,
				  "there is no RDMA card, and kernel %s has no rdma_rxe, the "
				  "driver for ordinary ones%s",
				  f->kernel,
				  strstr(f->kernel, "cloud") != NULL
					  ? ": Debian's kernels for clouds leave it out"
					  : "");
		mst_finding_fix(new, "%sapt-get install linux-image-amd64, reboot into it",
				on_host(f));
		mst_finding_fix(new, "then deploy/soft-roce.sh up %s", likely_netdev(f));
		return;
	}
	mst_finding_cause(new, "there is no RDMA card; kernel %s %s", f->kernel,
			  rxe == MST_MODULE_UNKNOWN
				  ? "may have soft-RoCE for ordinary ones: its modules are not in "
				    "/lib/modules here, so that cannot be told"
				  : "has soft-RoCE for ordinary ones");
	mst_finding_fix(new, "%sdeploy/soft-roce.sh up %s", on_host(f), likely_netdev(f));
	if (f->container[0] != '\0')
		mst_finding_fix(new, "then start the container with " CONTAINER_FLAGS);
}

/* @name: of the device; "DEVICE": it is not known here. */
static void judge_other_namespace(struct mst_finding *new, const char *name)
{
	mst_finding_cause(new, "each RDMA device of this host is in one network namespace (rdma "
			       "system: netns exclusive), and not in that of this process");
	mst_finding_fix(new,
			"on the host: rdma dev set %s netns NAME, with the namespace of this "
			"process",
			name);
	mst_finding_fix(new, "or, before there is any namespace: rdma system set netns shared");
}

static void judge_no_device(const struct mst_doctor_facts *f, struct mst_findings *out)
{
	struct mst_finding *new = mst_finding_add(out, MST_FINDING_FAIL, "devices",
						  "none: nothing in /sys/class/infiniband");

	if (f->netns_exclusive) {
		judge_other_namespace(new, "DEVICE");
		return;
	}
	if (f->card.slot[0] == '\0') {
		fix_with_soft_roce(f, new);
		return;
	}
	mst_finding_cause(new, "there is a card at %s, driver %s, but nothing drives its RDMA part",
			  f->card.slot, f->card.driver[0] != '\0' ? f->card.driver : "none");
	if (f->card.rdma_module != NULL)
		mst_finding_fix(new, "%smodprobe %s", on_host(f), f->card.rdma_module);
	else
		mst_finding_fix(new, "%slspci -k -s %s, then load its driver", on_host(f),
				f->card.slot);
}

/* Names, separated by commas, as far as they fit. */
static void list_devices(const struct mst_doctor_facts *f, char *out, size_t len)
{
	size_t used = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < f->device_count && used + MST_PROBE_NAME_LEN + 3 < len; i++)
		used += (size_t)snprintf(out + used, len - used, "%s%s", i > 0 ? ", " : "",
					 f->device[i].probe.name);
}

static bool is_there(const struct mst_doctor_facts *f, const char *name)
{
	for (uint32_t i = 0; i < f->device_count; i++) {
		const struct mst_probe_device *d = &f->device[i].probe;
		if (mst_doctor_names(name, d->name, 0) && strchr(name, ':') == NULL)
			return true;
		for (uint32_t k = 0; k < d->port_count; k++)
			if (mst_doctor_names(name, d->name, d->port[k].number))
				return true;
	}
	return false;
}

/* Each of "mlx5_0,mlx5_1:2" must be there. */
static void judge_names(const struct mst_doctor_facts *f, const char *names, const char *list,
			struct mst_findings *out)
{
	char name[MST_PROBE_NAME_LEN + 16];

	for (size_t len; *names != '\0'; names += len + (names[len] == ',')) {
		len = strcspn(names, ",");
		(void)snprintf(name, sizeof(name), "%.*s", (int)len, names);
		if (is_there(f, name))
			continue;
		struct mst_finding *new = mst_finding_add(out, MST_FINDING_FAIL, "devices",
							  "there is no %s here", name);
		mst_finding_cause(new, "this host has %s", list);
		mst_finding_fix(new, "--device NAME or NAME:PORT, or leave it out");
	}
}

void mst_doctor_judge_devices(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
			      struct mst_findings *out)
{
	char list[200];

	if (f->device_count == 0) {
		judge_no_device(f, out);
		return;
	}
	list_devices(f, list, sizeof(list));
	(void)mst_finding_add(out, MST_FINDING_OK, "devices", "%u: %s", f->device_count, list);
	if (wish->devices != NULL)
		judge_names(f, wish->devices, list, out);
}

static void judge_node(const struct mst_doctor_facts *f, const struct mst_doctor_node *node,
		       enum mst_finding_level bad, struct mst_findings *out)
{
	struct mst_finding *new;

	if (node->usable) {
		(void)mst_finding_add(out, MST_FINDING_OK, "node",
				      "/dev/infiniband/%s can be read and written", node->name);
		return;
	}
	new = mst_finding_add(out, bad, "node", "/dev/infiniband/%s %s", node->name,
			      node->exists ? "may not be read and written" : "is not there");
	if (f->container[0] != '\0') {
		mst_finding_cause(new, "this is a container (%s) that was not given it",
				  f->container);
		mst_finding_fix(new, "start the container with " CONTAINER_FLAGS);
	} else if (node->exists) {
		mst_finding_cause(new, "its permissions keep this user out");
		mst_finding_fix(new,
				"as root: chmod 666 /dev/infiniband/%s; for good: "
				"apt-get install rdma-core, whose rules do it",
				node->name);
	} else {
		mst_finding_cause(new, "nothing has made it: udev is not running, or the module "
				       "is not loaded");
		mst_finding_fix(new, "as root: modprobe -a ib_uverbs rdma_ucm; udevadm trigger");
	}
}

/* The device is in sysfs, but libibverbs does not offer it. */
static void judge_unlisted(const struct mst_doctor_facts *f, const struct mst_doctor_device *d,
			   enum mst_finding_level bad, struct mst_findings *out)
{
	struct mst_finding *new = mst_finding_add(out, bad, "library",
						  "libibverbs does not offer this device");

	mst_finding_subject(new, "%s", d->probe.name);
	if (f->library_error == -ELIBACC) {
		mst_finding_cause(new, "libibverbs or librdmacm is not on this host, or too old");
		mst_finding_fix(new, "apt-get install libibverbs1 librdmacm1 ibverbs-providers");
		return;
	}
	if (f->library_error == -ENOSYS || f->module[MST_MODULE_UVERBS] != MST_MODULE_LOADED) {
		mst_finding_cause(new, "the kernel's ib_uverbs is not loaded");
		mst_finding_fix(new, "modprobe ib_uverbs");
		return;
	}
	if (f->netns_exclusive) {
		judge_other_namespace(new, d->probe.name);
		mst_finding_fix(new, "if it is in this one: apt-get install ibverbs-providers");
		return;
	}
	mst_finding_cause(new, "the library that drives it from user space is missing, or too old "
			       "for this kernel");
	mst_finding_fix(new, "apt-get install ibverbs-providers");
}

static void judge_unopened(const struct mst_doctor_facts *f, const struct mst_doctor_device *d,
			   enum mst_finding_level bad, struct mst_findings *out)
{
	struct mst_finding *new = mst_finding_add(out, bad, "library", "cannot be opened: %s",
						  strerror(-d->probe.error));

	mst_finding_subject(new, "%s", d->probe.name);
	switch (-d->probe.error) {
	case EPERM:
	case EACCES:
		if (f->netns_exclusive) {
			judge_other_namespace(new, d->probe.name);
			break;
		}
		mst_finding_cause(new, "this process may not; in a container its device rules "
				       "count, too");
		mst_finding_fix(new, "as a user who may, or a container started with " //
				CONTAINER_FLAGS);
		break;
	case ENOMEM:
		mst_finding_cause(new, "it locks memory of its own, and the limit is too small");
		mst_finding_fix(new, "ulimit -l unlimited");
		break;
	default:
		mst_finding_cause(new, "the driver refused; the kernel's log says more");
		mst_finding_fix(new, "dmesg | tail");
	}
}

static void judge_library(const struct mst_doctor_facts *f, const struct mst_doctor_device *d,
			  enum mst_finding_level bad, struct mst_findings *out)
{
	struct mst_finding *new;

	if (!d->listed) {
		judge_unlisted(f, d, bad, out);
	} else if (d->probe.error != 0) {
		judge_unopened(f, d, bad, out);
	} else if (d->probe.iwarp) {
		new = mst_finding_add(out, bad, "library", "an iWARP device");
		mst_finding_subject(new, "%s", d->probe.name);
		mst_finding_cause(new, "iWARP has no writes with immediate data, which tell a "
				       "server that a gradient is there");
		mst_finding_fix(new, "a card that does InfiniBand or RoCE; some can be switched "
				     "to it");
	} else {
		new = mst_finding_add(out, MST_FINDING_OK, "library", "libibverbs can open it");
		mst_finding_subject(new, "%s", d->probe.name);
	}
}

void mst_doctor_judge_access(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
			     struct mst_findings *out)
{
	bool any = false;

	if (f->device_count == 0)
		return;
	for (uint32_t i = 0; i < f->device_count; i++)
		any |= mst_doctor_device_works(&f->device[i]) &&
		       mst_doctor_names(wish->devices, f->device[i].probe.name, 0);
	judge_node(f, &f->rdma_cm, MST_FINDING_FAIL, out);
	for (uint32_t i = 0; i < f->device_count; i++) {
		const struct mst_doctor_device *d = &f->device[i];
		enum mst_finding_level bad = any && wish->devices == NULL ? MST_FINDING_WARNING
									  : MST_FINDING_FAIL;

		if (!mst_doctor_names(wish->devices, d->probe.name, 0))
			continue;
		if (d->node.name[0] != '\0')
			judge_node(f, &d->node, bad, out);
		if (d->node.name[0] == '\0' || d->node.usable)
			judge_library(f, d, bad, out);
	}
}

bool mst_doctor_is_of_rdma(const char *check)
{
	static const char *const words[] = { "modules", "devices", "node",    "library",
					     "port",    "gid",     "address", "mtu",
					     "limits",  "memlock", "write" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(check, words[i]) == 0)
			return true;
	return false;
}

void mst_doctor_judge(const struct mst_doctor_facts *f, const struct mst_doctor_wish *wish,
		      struct mst_findings *out)
{
	mst_doctor_judge_modules(f, out);
	mst_doctor_judge_devices(f, wish, out);
	mst_doctor_judge_access(f, wish, out);
	mst_doctor_judge_ports(f, wish, out);
	mst_doctor_judge_limits(f, wish, out);
	mst_doctor_judge_memory(f, wish, out);
	mst_doctor_judge_tcp(f, wish, out);
	mst_doctor_judge_process(f, wish, out);
}
