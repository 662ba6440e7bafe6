/* SPDX-License-Identifier: MIT */
/* All facts of a host: sysfs first, then what libibverbs and the kernel add to it. */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/base/reason.h"
#include "common/base/text.h"
#include "common/host/descriptors.h"
#include "common/transport/shm/shm.h"
#include "tools/doctor/facts.h"

/* Return: is this an address that could be a GID? */
static bool read_address(const struct ifaddrs *entry, struct mst_doctor_address *out)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	const struct sockaddr *address = entry->ifa_addr;

	*out = (struct mst_doctor_address){ 0 };
	if (address != NULL && address->sa_family == AF_INET) {
		memcpy(out->raw, mapped, sizeof(mapped));
		memcpy(&out->raw[12],
		       &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
	} else if (address != NULL && address->sa_family == AF_INET6) {
		memcpy(out->raw, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr,
		       16);
	} else {
		return false;
	}
	/* An alias such as eth0:1 is eth0's. */
	(void)snprintf(out->netdev, sizeof(out->netdev), "%.*s", (int)strcspn(entry->ifa_name, ":"),
		       entry->ifa_name);
	return true;
}

static int read_addresses(struct mst_doctor_facts *out)
{
	struct ifaddrs *list = NULL;
	size_t count = 0;

	if (getifaddrs(&list) < 0)
		list = NULL;
	for (const struct ifaddrs *i = list; i != NULL; i = i->ifa_next)
		count++;
	out->address = calloc(count + 1, sizeof(out->address[0]));
	for (const struct ifaddrs *i = list; i != NULL && out->address != NULL; i = i->ifa_next)
		out->address_count += read_address(i, &out->address[out->address_count]);
	freeifaddrs(list);
	return out->address != NULL ? 0 : -ENOMEM;
}

static void add_port(const struct mst_probe_device *seen, struct mst_probe_port *port)
{
	for (uint32_t i = 0; i < seen->port_count; i++)
		if (seen->port[i].number == port->number) {
			port->mtu = seen->port[i].mtu;
			port->mtu_max = seen->port[i].mtu_max;
		}
}

static void add_device(const struct mst_probe_device *seen, struct mst_doctor_device *d)
{
	d->listed = true;
	d->probe.error = seen->error;
	d->probe.limits = seen->limits;
	for (uint32_t i = 0; i < d->probe.port_count; i++)
		add_port(seen, &d->probe.port[i]);
}

/* What libibverbs says of the devices that sysfs has. */
static void add_library(struct mst_doctor_facts *out)
{
	struct mst_probe seen = { 0 };

	out->library_error = mst_probe_open(&seen);
	for (uint32_t i = 0; i < seen.count; i++)
		for (uint32_t k = 0; k < out->device_count; k++)
			if (strcmp(seen.device[i].name, out->device[k].probe.name) == 0)
				add_device(&seen.device[i], &out->device[k]);
	mst_probe_close(&seen);
}

/* A process may see the interfaces of another network namespace in its sysfs. */
static void drop_foreign_netdevs(struct mst_doctor_facts *out)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < out->netdev_count; i++)
		if (if_nametoindex(out->netdev[i].name) != 0)
			out->netdev[kept++] = out->netdev[i];
	out->netdev_count = kept;
}

static uint64_t count_of(rlim_t limit)
{
	return limit == RLIM_INFINITY ? MST_DOCTOR_UNLIMITED : limit;
}

/* Facts of this process, as they would be of a server that is started in its place. */
static void read_process(struct mst_doctor_facts *out)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	char directory[MST_SHM_PATH_LEN] = "";

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	out->files_soft = count_of(limit.rlim_cur);
	out->files_hard = count_of(limit.rlim_max);
	out->files_open = mst_host_descriptors_open("");
	(void)mst_shm_directory(-1, directory, &out->directory_why);
	(void)snprintf(out->directory, sizeof(out->directory), "%s", directory);
	mst_text_clean(out->directory_why.text); /* the environment has named it */
	mst_text_clean(out->directory);
}

void mst_doctor_read_certificate(const struct mst_tls_files *files, struct mst_doctor_facts *out)
{
	struct mst_credentials *own = NULL;
	struct mst_tls_files all = *files;

	mst_tls_files_environment(&all);
	int rc = mst_credentials_load(&all, &own, &out->certificate_why);
	mst_text_clean(out->certificate_why.text);
	out->has_certificate = rc != 0 || own != NULL;
	if (own != NULL)
		mst_credentials_principal(own, &out->identity);
	mst_credentials_free(own);
}

int mst_doctor_gather(struct mst_doctor_facts *out)
{
	*out = (struct mst_doctor_facts){ 0 };
	mst_doctor_read_host("", out);
	read_process(out);
	int rc = mst_doctor_read_devices("", out);
	if (rc == 0)
		rc = mst_doctor_read_netdevs("", out);
	drop_foreign_netdevs(out);
	if (rc == 0)
		rc = read_addresses(out);
	if (rc == 0)
		add_library(out);
	else
		mst_doctor_forget(out);
	return rc;
}

void mst_doctor_forget(struct mst_doctor_facts *f)
{
	for (uint32_t i = 0; i < f->device_count; i++) {
		for (uint32_t k = 0; k < f->device[i].probe.port_count; k++)
			free(f->device[i].probe.port[k].gid);
		free(f->device[i].probe.port);
	}
	free(f->device);
	free(f->netdev);
	free(f->address);
	*f = (struct mst_doctor_facts){ 0 };
}
