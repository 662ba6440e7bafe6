/* SPDX-License-Identifier: MIT */
/* Memory that a device may reach: where it comes from, and its registration. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/host/limits.h"
#include "common/host/memlock.h"
#include "common/transport/pages.h"
#include "common/transport/verbs/verbs.h"

#define HUGE_PAGE ((size_t)2 << 20)
#define NODES_MAX 1024
#define MEMORY_PREFERRED 1 /* MPOL_PREFERRED of linux/mempolicy.h */

int mst_verbs_memory_new(size_t bytes, bool huge_pages, struct mst_verbs_memory *out,
			 struct mst_reason *why)
{
	bool huge = huge_pages && bytes >= HUGE_PAGE;
	size_t mapped = bytes + (huge ? HUGE_PAGE : 0);
	void *mapping = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0);

	if (mapping == MAP_FAILED)
		return mst_reason_fail(why, -ENOMEM, "cannot map %zu bytes: %s", mapped,
				       strerror(errno));
	uintptr_t base = (uintptr_t)mapping;
	if (huge) {
		base = (base + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
		/* Where there are none it goes on with small ones. */
		(void)madvise((void *)base, bytes, MADV_HUGEPAGE);
	}
	*out = (struct mst_verbs_memory){
		.base = (uint8_t *)base, .bytes = bytes, .mapping = mapping, .mapped = mapped
	};
	return 0;
}

/* What has no name can be mapped once only. Children have no part in it: what they wrote would be
 * sent. */
int mst_verbs_memory_new_viewed(size_t bytes, struct mst_verbs_memory *out, struct mst_reason *why)
{
	void *base = NULL;
	int rc = mst_limit_file(bytes, why);

	if (rc < 0)
		return rc;
	int fd = memfd_create("muster", MFD_CLOEXEC);
	if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
		base = mst_pages_map(fd, bytes, PROT_READ | PROT_WRITE);
	int error = errno;
	if (fd >= 0)
		close(fd);
	if (base == NULL)
		return mst_reason_fail(why, -ENOMEM, "cannot map %zu bytes of shared memory: %s",
				       bytes, strerror(error));
	(void)madvise(base, bytes, MADV_DONTFORK);
	*out = (struct mst_verbs_memory){
		.base = base, .bytes = bytes, .mapping = base, .mapped = bytes
	};
	return 0;
}

void mst_verbs_memory_gather(const struct mst_verbs_memory *m)
{
	(void)mst_pages_gather(m->base, m->bytes);
}

void mst_verbs_memory_free(struct mst_verbs_memory *m)
{
	if (m->mapping != NULL)
		munmap(m->mapping, m->mapped);
	*m = (struct mst_verbs_memory){ 0 };
}

static int node_of(const struct ibv_context *device)
{
	char path[sizeof(device->device->ibdev_path) + 32];
	int node = -1;

	(void)snprintf(path, sizeof(path), "%s/device/numa_node", device->device->ibdev_path);
	FILE *f = fopen(path, "re");
	if (f == NULL)
		return -1;
	if (fscanf(f, "%d", &node) != 1)
		node = -1;
	fclose(f);
	return node;
}

void mst_verbs_memory_near(const struct mst_verbs_memory *m, const struct ibv_context *device)
{
	unsigned long mask[NODES_MAX / (8 * sizeof(unsigned long))] = { 0 };
	const size_t bits = 8 * sizeof(mask[0]);
	int node = node_of(device);

	if (node < 0 || node >= NODES_MAX || m->base == NULL)
		return;
	mask[(size_t)node / bits] = 1ul << ((size_t)node % bits);
	/* Preferred, not bound: a full node makes it slower, not impossible. */
	(void)syscall(SYS_mbind, m->base, m->bytes, MEMORY_PREFERRED, mask,
		      (unsigned long)NODES_MAX, 0);
}

/* The pages that it lies in. Return: their bytes. */
static size_t pages_of(const void *base, size_t bytes, void **out)
{
	uintptr_t from = (uintptr_t)base / MST_VERBS_PAGE * MST_VERBS_PAGE;

	*out = (void *)from;
	return mst_verbs_round((uintptr_t)base + bytes - from);
}

/* An ENOMEM has one of three causes: a hole, the limit of what a process may lock, or a device or
 * kernel that has no room left. */
static int explain_no_memory(const struct mst_verbs_registration *how, struct mst_reason *why)
{
	const char *device = ibv_get_device_name(how->pd->context->device);
	struct mst_memlock lock;
	void *from;
	size_t bytes = pages_of(how->base, how->bytes, &from);

	mst_host_memlock("", &lock);
	if (mst_memlock_forbids(&lock, bytes))
		return mst_reason_fail(
			why, -ENOMEM,
			"cannot register %zu bytes (%s) with %s: this process may lock "
			"%" PRIu64 " bytes of memory and has pinned %" PRIu64
			"; raise the limit: ulimit -l unlimited, LimitMEMLOCK=infinity in "
			"a systemd unit, --ulimit memlock=-1 of a container; muster doctor "
			"checks it",
			how->bytes, how->what, device, lock.soft_bytes, lock.pinned_bytes);
	return mst_reason_fail(
		why, -ENOMEM,
		"cannot register %zu bytes (%s) with %s: the device has no room for "
		"another region, or the kernel no memory to keep a record of one; this "
		"process has pinned %" PRIu64 " bytes, and its limit is not the cause: "
		"register fewer and larger regions, or let fewer processes use the device",
		how->bytes, how->what, device, lock.pinned_bytes);
}

static bool is_mapped(const struct mst_verbs_registration *how)
{
	void *from;
	size_t bytes = pages_of(how->base, how->bytes, &from);

	return msync(from, bytes, MS_ASYNC) == 0;
}

static int explain(const struct mst_verbs_registration *how, int error, struct mst_reason *why)
{
	const char *device = ibv_get_device_name(how->pd->context->device);

	if (error == EFAULT || (error == ENOMEM && !is_mapped(how)))
		return mst_reason_fail(
			why, -EFAULT,
			"cannot register %zu bytes (%s) with %s: not all of it is mapped, "
			"or it is a file's or a device's, or may not be written: copy it "
			"to memory of the process",
			how->bytes, how->what, device);
	if (error == ENOMEM)
		return explain_no_memory(how, why);
	return mst_reason_fail(why, -error, "cannot register %zu bytes (%s) with %s: %s",
			       how->bytes, how->what, device, strerror(error));
}

int mst_verbs_register(const struct mst_verbs_registration *how, struct ibv_mr **out,
		       struct mst_reason *why)
{
	*out = ibv_reg_mr(how->pd, how->base, how->bytes, how->access);
	return *out != NULL ? 0 : explain(how, errno, why);
}

/* ---- regions ---- */

int mst_verbs_pin(struct mst_verbs_device *d, struct mst_region *r, const char *what,
		  struct mst_reason *why)
{
	struct mst_verbs_registration how = { .pd = d->pd,
					      .base = r->base,
					      .bytes = r->bytes,
					      .access = 0, /* this end reads it */
					      .what = what };
	struct ibv_mr *mr;

	if (r->bytes == 0 || r->pin[d->index] != NULL)
		return 0;
	int rc = mst_verbs_register(&how, &mr, why);
	if (rc == 0)
		r->pin[d->index] = mr;
	return rc;
}

void mst_verbs_unpin(struct mst_region *r)
{
	for (uint32_t i = 0; i < MST_DEVICES_MAX; i++) {
		if (r->pin[i] != NULL)
			ibv_dereg_mr(r->pin[i]);
		r->pin[i] = NULL;
	}
}

/* Where the kernel does not copy pinned pages for a child, libibverbs has to keep them from it. */
static int check_fork(struct mst_reason *why)
{
	if (ibv_is_fork_initialized() == IBV_FORK_UNNEEDED)
		return 0;
	return mst_reason_fail(
		why, -ENOTSUP,
		"memory of the program's own cannot be registered here: forked children "
		"would lose it, for this kernel, or its RDMA library, does not copy pinned "
		"pages for them; Linux 5.12 does");
}

/* libibverbs keeps them even where it need not, once anybody in the process (this transport, NCCL)
 * has called ibv_fork_init(): seen with rdma-core 44. */
static int keep_in_children(const struct mst_region *r, struct mst_reason *why)
{
	void *from;
	size_t bytes = pages_of(r->base, r->bytes, &from);

	if (madvise(from, bytes, MADV_DOFORK) == 0)
		return 0;
	return mst_reason_fail(why, -ENOTSUP,
			       "%zu bytes at %p are no memory that a forked child can have: %s",
			       r->bytes, (void *)r->base, strerror(errno));
}

int mst_verbs_pin_own(struct mst_verbs_device *d, struct mst_region *r, struct mst_reason *why)
{
	if (r->target)
		return 0;
	int rc = mst_verbs_pin(d, r, "the program's own", why);
	return rc != 0 ? rc : keep_in_children(r, why);
}

int mst_verbs_export(struct mst_verbs_rail *r, unsigned access, struct mst_reason *why)
{
	const struct mst_export *e = &r->link->export;
	struct mst_verbs_registration how = { .pd = r->pd,
					      .base = e->region->base + e->offset,
					      .bytes = e->bytes,
					      .access = access,
					      .what = "where the peer's results go" };
	int rc = mst_verbs_register(&how, &r->exported, why);

	return rc != 0 ? rc : keep_in_children(e->region, why);
}

static int pin(void *ctx, struct mst_region *r, struct mst_reason *why)
{
	struct mst_verbs_net *net = ctx;
	int rc = check_fork(why);

	for (uint32_t i = 0; i < net->device_count && rc == 0; i++)
		if (!net->device[i].gone)
			rc = mst_verbs_pin_own(&net->device[i], r, why);
	if (rc != 0)
		mst_verbs_unpin(r);
	return rc;
}

static void unpin(void *ctx, struct mst_region *r)
{
	(void)ctx;
	mst_verbs_unpin(r);
}

const struct mst_domain_ops mst_verbs_domain = { .pin = pin, .unpin = unpin };
