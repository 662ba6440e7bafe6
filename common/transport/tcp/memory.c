/* SPDX-License-Identifier: MIT */
/* Memory of links and nets. Nobody maps it but this process. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/host/limits.h"
#include "common/transport/pages.h"
#include "common/transport/tcp/tcp.h"

/* What has no name can be mapped once only. */
static void *map_viewed(size_t bytes, struct mst_reason *why)
{
	void *base = NULL;

	if (mst_limit_file(bytes, why) < 0) {
		errno = EFBIG;
		return NULL;
	}
	int fd = memfd_create("muster", MFD_CLOEXEC);
	if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
		base = mst_pages_map(fd, bytes, PROT_READ | PROT_WRITE);
	int error = errno;
	if (fd >= 0)
		close(fd);
	if (base != NULL)
		(void)madvise(base, bytes, MADV_DONTFORK);
	errno = error;
	return base;
}

static void *map_plain(size_t bytes)
{
	void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (base == MAP_FAILED)
		return NULL;
	if (bytes >= MST_PAGES_LARGE) /* where there are none it goes on with small ones */
		(void)madvise(base, bytes, MADV_HUGEPAGE);
	return base;
}

int mst_tcp_memory_new(size_t bytes, bool viewed, struct mst_tcp_memory *out,
		       struct mst_reason *why)
{
	size_t all = mst_tcp_round(bytes > 0 ? bytes : 1);
	void *base = viewed ? map_viewed(all, why) : map_plain(all);

	if (base == NULL && errno == EFBIG)
		return -EFBIG;
	if (base == NULL)
		return mst_reason_fail(why, -ENOMEM, "cannot map %zu bytes: %s", all,
				       strerror(errno));
	*out = (struct mst_tcp_memory){ .base = base, .bytes = all };
	return 0;
}

void mst_tcp_memory_free(struct mst_tcp_memory *m)
{
	if (m->base != NULL)
		munmap(m->base, m->bytes);
	*m = (struct mst_tcp_memory){ 0 };
}
