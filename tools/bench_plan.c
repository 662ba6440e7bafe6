/* SPDX-License-Identifier: MIT */
#include "tools/bench_plan.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/assert.h"

/* A gate is a cache line of its own, and so nobody waits for a neighbour's. */
#define LINE 64u
static_assert(sizeof(struct mst_bench_gate) <= LINE, "a gate lies in one line");

static size_t gates_at(void)
{
	return (sizeof(struct mst_bench_plan) + LINE - 1) / LINE * LINE;
}

static size_t records_at(const struct mst_bench_plan *p)
{
	return gates_at() + ((size_t)p->steps + 1) * LINE;
}

static int map(int fd, size_t bytes, struct mst_bench_plan **out)
{
	void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	*out = base;
	return 0;
}

int mst_bench_plan_new(const struct mst_bench_plan *want, struct mst_bench_plan **out, int *fd)
{
	size_t records = (size_t)want->workers * want->steps;
	size_t bytes = records_at(want) + records * sizeof(struct mst_bench_record);
	int memory = memfd_create("muster-bench", MFD_CLOEXEC);

	if (memory < 0)
		return -errno;
	int rc = ftruncate(memory, (off_t)bytes) < 0 ? -errno : map(memory, bytes, out);
	if (rc < 0) {
		(void)close(memory);
		return rc;
	}
	**out = *want;
	(*out)->bytes = bytes;
	*fd = memory;
	return 0;
}

int mst_bench_plan_map(const char *path, struct mst_bench_plan **out)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	int rc = fstat(fd, &st) < 0 ? -errno : 0;
	if (rc == 0 && (size_t)st.st_size < sizeof(struct mst_bench_plan))
		rc = -EINVAL;
	if (rc == 0)
		rc = map(fd, (size_t)st.st_size, out);
	(void)close(fd);
	return rc;
}

void mst_bench_plan_free(struct mst_bench_plan *p)
{
	if (p != NULL)
		(void)munmap(p, p->bytes);
}

struct mst_bench_gate *mst_bench_gate_of(struct mst_bench_plan *p, uint64_t step)
{
	MST_ASSERT(step <= p->steps);
	return (struct mst_bench_gate *)((char *)p + gates_at() + step * LINE);
}

struct mst_bench_record *mst_bench_record_of(struct mst_bench_plan *p, uint32_t rank, uint64_t step)
{
	MST_ASSERT(rank < p->workers && step < p->steps);
	struct mst_bench_record *first = (struct mst_bench_record *)((char *)p + records_at(p));
	return first + (size_t)rank * p->steps + step;
}
