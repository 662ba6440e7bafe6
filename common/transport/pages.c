/* SPDX-License-Identifier: MIT */
#include "common/transport/pages.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

#include "common/base/clock.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

static uintptr_t round_up(uintptr_t at)
{
	return (at + MST_PAGES_HUGE - 1) / MST_PAGES_HUGE * MST_PAGES_HUGE;
}

/* Address space is reserved first, larger than needed, so that the mapping can begin at a multiple
 * of MST_PAGES_HUGE in it. */
void *mst_pages_map(int fd, size_t bytes, int prot)
{
	size_t room = bytes + MST_PAGES_HUGE;
	void *base;

	if (bytes < MST_PAGES_LARGE) {
		base = mmap(NULL, bytes, prot, MAP_SHARED, fd, 0);
		return base == MAP_FAILED ? NULL : base;
	}
	void *reserved = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			      -1, 0);
	if (reserved == MAP_FAILED)
		return NULL;
	uintptr_t low = (uintptr_t)reserved, begin = round_up(low), end = begin + bytes;
	base = mmap((void *)begin, bytes, prot, MAP_SHARED | MAP_FIXED, fd, 0);
	if (base == MAP_FAILED) {
		int error = errno;
		munmap(reserved, room);
		errno = error;
		return NULL;
	}
	if (begin > low)
		munmap(reserved, begin - low);
	if (low + room > end)
		munmap((void *)end, low + room - end);
	return base;
}

/* For one huge page: as small ones it would take about this long. */
#define ONE_NS (2 * MST_MS)
#define BEHIND_MAX_NS (20 * MST_MS)

bool mst_pages_keeps_up(uint64_t *behind_ns, uint64_t took_ns)
{
	uint64_t all_ns = *behind_ns + took_ns;

	*behind_ns = all_ns > ONE_NS ? all_ns - ONE_NS : 0;
	return *behind_ns <= BEHIND_MAX_NS;
}

/* A huge page is made of one that has been used in part: something of it is, by reading it. */
static bool gather_one(uintptr_t at)
{
	(void)*(const volatile uint8_t *)at;
	return madvise((void *)at, MST_PAGES_HUGE, MADV_COLLAPSE) == 0;
}

bool mst_pages_gather(void *p, size_t bytes)
{
	uintptr_t begin = (uintptr_t)p / MST_PAGES_HUGE * MST_PAGES_HUGE;
	uintptr_t end = ((uintptr_t)p + bytes) / MST_PAGES_HUGE * MST_PAGES_HUGE;
	uint64_t behind_ns = 0, before_ns = mst_now_ns();
	bool all = bytes >= MST_PAGES_LARGE, goes_on = all;

	for (uintptr_t at = begin; goes_on && at < end; at += MST_PAGES_HUGE) {
		all &= gather_one(at);
		uint64_t now_ns = mst_now_ns();
		goes_on = mst_pages_keeps_up(&behind_ns, now_ns - before_ns);
		before_ns = now_ns;
	}
	return all && goes_on;
}

static bool is_whole(size_t at)
{
	return at % MST_PAGES_SMALL == 0;
}

/* An old size of 0 leaves the old mapping where it is: no descriptor need be kept for this. */
int mst_pages_view(const void *base, size_t has, size_t offset, size_t bytes, void *at)
{
	size_t end = (has + MST_PAGES_SMALL - 1) / MST_PAGES_SMALL * MST_PAGES_SMALL;

	if (base == NULL || bytes == 0 || offset > end || bytes > end - offset ||
	    !is_whole(offset) || !is_whole(bytes) || !is_whole((uintptr_t)at))
		return -EINVAL;
	void *from = (void *)((uintptr_t)base + offset);
	void *to = mremap(from, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at);
	if (to == at)
		return 0;
	return errno == EINVAL || errno == EFAULT ? -EINVAL : -ENOMEM;
}
