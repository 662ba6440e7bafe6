/* SPDX-License-Identifier: MIT */
#include "common/host/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/host/file.h"
#include "common/host/memory.h"

/* All programs need less. What people have is eight times as much. */
#define STACK_MIN ((uint64_t)1 << 20)

/* An error, and the limit that it can be due to. */
struct limit_row {
	int error;
	__rlimit_resource_t resource;
	const char *name, *what, *option, *unit;
	bool counts; /* a number, not bytes */
};

static const struct limit_row rows[] = {
	{ EFBIG, RLIMIT_FSIZE, "RLIMIT_FSIZE", "make files and shared memory of", "-f",
	  "LimitFSIZE", false },
	{ ENOMEM, RLIMIT_AS, "RLIMIT_AS", "map", "-v", "LimitAS", false },
	{ ENOMEM, RLIMIT_DATA, "RLIMIT_DATA", "have data of", "-d", "LimitDATA", false },
	{ EMFILE, RLIMIT_NOFILE, "RLIMIT_NOFILE", "open files up to number", "-n", "LimitNOFILE",
	  true },
};
static const struct limit_row stack = { ENOMEM, RLIMIT_STACK, "RLIMIT_STACK", "have a stack of",
					"-s",   "LimitSTACK", false };

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static bool is_limited(const struct limit_row *row, uint64_t *value)
{
	struct rlimit limit;

	if (getrlimit(row->resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return false;
	*value = limit.rlim_cur;
	return true;
}

/* What this process has mapped; 0: /proc does not say. */
static uint64_t mapped_bytes(void)
{
	char *text = mst_host_file("%s/proc/self/statm", "");
	uint64_t pages = text != NULL ? strtoull(text, NULL, 10) : 0;

	free(text);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* "; this process may map at most 64.0 MiB (RLIMIT_AS), has 60.0 MiB, ...: raise that (...)" */
static void add_limit(struct mst_reason *out, const struct limit_row *row, uint64_t value,
		      uint64_t bytes)
{
	char text[32];

	if (row->counts)
		(void)snprintf(text, sizeof(text), "%" PRIu64, value - 1);
	else
		(void)mst_memory_text(value, text, sizeof(text));
	mst_reason_add(out, "this process may %s at most %s (%s)", row->what, text, row->name);
	if (row->resource == RLIMIT_AS)
		mst_reason_add(out, ", has %s",
			       mst_memory_text(mapped_bytes(), text, sizeof(text)));
	if (bytes > 0 && !row->counts)
		mst_reason_add(out, ", and %s are needed",
			       mst_memory_text(bytes, text, sizeof(text)));
	mst_reason_add(out,
		       ": raise that (ulimit %s, %s= of a systemd unit, PropagateResourceLimits of "
		       "Slurm, --ulimit of a container)",
		       row->option, row->unit);
}

int mst_limit_file(uint64_t bytes, struct mst_reason *why)
{
	uint64_t value;

	return is_limited(&rows[0], &value) && bytes > value
		       ? mst_reason_fail(why, -EFBIG, "%s",
					 mst_limit_failed(-EFBIG, bytes, &(struct mst_reason){ 0 }))
		       : 0;
}

/* What threads get by default was read from the limit when the program was started. */
static void enlarge_threads(void)
{
	pthread_attr_t attr;
	size_t bytes;

	if (pthread_getattr_default_np(&attr) != 0)
		return;
	if (pthread_attr_getstacksize(&attr, &bytes) == 0 && bytes < STACK_MIN &&
	    pthread_attr_setstacksize(&attr, STACK_MIN) == 0)
		(void)pthread_setattr_default_np(&attr);
	(void)pthread_attr_destroy(&attr);
}

int mst_limit_stack(struct mst_reason *why)
{
	struct rlimit limit;

	enlarge_threads();
	if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= STACK_MIN)
		return 0;
	uint64_t had = limit.rlim_cur;
	limit.rlim_cur = STACK_MIN;
	if (limit.rlim_max < STACK_MIN)
		limit.rlim_max = STACK_MIN; /* root may */
	if (setrlimit(RLIMIT_STACK, &limit) == 0)
		return 0;
	why->text[0] = '\0';
	add_limit(why, &stack, had, STACK_MIN);
	return -ENOMEM;
}

const char *mst_limit_failed(int error, uint64_t bytes, struct mst_reason *out)
{
	const char *before = ": ";
	uint64_t value;

	mst_reason_set(out, "%s", strerror(-error));
	for (unsigned i = 0; i < ROWS; i++) {
		if (rows[i].error != -error || !is_limited(&rows[i], &value))
			continue;
		mst_reason_add(out, "%s", before);
		add_limit(out, &rows[i], value, bytes);
		before = "; ";
	}
	return out->text;
}

const char *mst_limit_refused(const char *name, int error, struct mst_reason *out)
{
	struct mst_reason cause;

	mst_reason_set(out, "%s: %s", name, mst_limit_failed(error, 0, &cause));
	if (error == -EPERM || error == -ENOSYS)
		mst_reason_add(out,
			       ": a filter of system calls (seccomp, of a container, a systemd "
			       "unit or a sandbox) may refuse %s: allow it there",
			       name);
	return out->text;
}
