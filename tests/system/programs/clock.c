/* SPDX-License-Identifier: MIT */
/*
 * A wall clock that jumps, for a process that loads this library first (LD_PRELOAD). The file
 * MUSTER_TEST_CLOCK has by how many seconds the clock is wrong, as 8 bytes; whoever writes there
 * makes the clock jump while the process runs. Clocks that cannot be set are left alone.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const _Atomic int64_t *wrong_s; /* NULL: the clock is right */

__attribute__((constructor)) static void find_clock(void)
{
	const char *path = getenv("MUSTER_TEST_CLOCK");
	int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	void *at = mmap(NULL, sizeof(*wrong_s), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (at != MAP_FAILED)
		wrong_s = at;
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, out);

	if (rc == 0 && wrong_s != NULL &&
	    (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		out->tv_sec += *wrong_s;
	return rc;
}

time_t time(time_t *out)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (out != NULL)
		*out = now.tv_sec;
	return now.tv_sec;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	*out = (struct timeval){ .tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000 };
	return 0;
}
