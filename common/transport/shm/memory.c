/* SPDX-License-Identifier: MIT */
/*
 * Memory that two processes share: memfds, sealed so that no one who holds the descriptor can make
 * an access of ours fault.
 *
 * All memory of this process is on one list under one lock, which only opening, dialling, letting
 * in and freeing take. There two ends in one process find that they hold the same memfd.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/host/descriptors.h"
#include "common/host/limits.h"
#include "common/transport/pages.h"
#include "common/transport/shm/shm.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif

#define SEALS_NEEDED (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct mst_shm_memory *list;

static int memfd_open(struct mst_reason *why)
{
	int fd = memfd_create("muster", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL) /* a kernel that does not know the last flag */
		fd = memfd_create("muster", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	fd = mst_descriptor_lift(fd);
	if (fd >= 0)
		return fd;
	int rc = -errno;
	(void)mst_limit_refused("memfd_create", rc, why);
	return rc;
}

/* A signal undoes what one call has taken so far. In pieces there is progress. */
#define TAKEN_AT_ONCE ((size_t)64 << 20)

static int take_range(int fd, size_t begin, size_t bytes)
{
	size_t taken = 0;

	while (taken < bytes) {
		size_t left = bytes - taken, piece = left < TAKEN_AT_ONCE ? left : TAKEN_AT_ONCE;
		if (fallocate(fd, 0, (off_t)(begin + taken), (off_t)piece) == 0)
			taken += piece;
		else if (errno != EINTR)
			return errno == ENOSPC ? -ENOMEM : -errno; /* no device is full */
	}
	return 0;
}

/* Asked for as huge pages before it is taken as small ones: those would have to be copied. One of
 * each must be there by then. */
static int take_huge(int fd, const struct mst_shm_memory *m)
{
	int rc = 0;

	for (size_t at = 0; at < m->bytes && rc == 0; at += MST_PAGES_HUGE)
		rc = take_range(fd, at, MST_SHM_PAGE);
	if (rc == 0)
		(void)mst_pages_gather(m->base, m->bytes);
	return rc;
}

/* What is published is all used, so all of it is taken now: what the host has not got shows here,
 * and not as a SIGBUS in the middle of a step. A link's memory is taken as it is touched, for much
 * of it never is (docs/decisions.md). */
static int take_all(int fd, const struct mst_shm_memory *m, bool huge_pages)
{
	int rc = huge_pages && m->bytes >= MST_PAGES_LARGE ? take_huge(fd, m) : 0;

	return rc == 0 ? take_range(fd, 0, m->bytes) : rc;
}

static void hold_list(void)
{
	pthread_mutex_lock(&list_lock);
}

static void let_go_of_list(void)
{
	pthread_mutex_unlock(&list_lock);
}

/* Else a child that is forked while another thread holds the lock would wait for it for ever. That
 * the handlers cannot be had leaves that small chance, and is no reason to have no memory. */
static void guard_list(void)
{
	(void)pthread_atfork(hold_list, let_go_of_list, let_go_of_list);
}

static void list_add(struct mst_shm_memory *m)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, guard_list);
	pthread_mutex_lock(&list_lock);
	m->next = list;
	list = m;
	pthread_mutex_unlock(&list_lock);
}

/* The memory of this process with that inode, kept once more; NULL: there is none. */
static struct mst_shm_memory *list_find(const struct stat *st)
{
	pthread_mutex_lock(&list_lock);
	struct mst_shm_memory *m = list;
	while (m != NULL && (m->device != st->st_dev || m->inode != st->st_ino))
		m = m->next;
	if (m != NULL)
		m->refs++;
	pthread_mutex_unlock(&list_lock);
	return m;
}

/* Maps all of @fd and lists it. */
static int map_new(int fd, size_t bytes, int prot, struct mst_shm_memory **out)
{
	struct stat st;
	struct mst_shm_memory *m = calloc(1, sizeof(*m));
	int rc = -ENOMEM;

	if (m == NULL)
		return rc;
	if (fstat(fd, &st) < 0) {
		rc = -errno;
		goto err_free;
	}
	void *base = mst_pages_map(fd, bytes, prot);
	if (base == NULL) {
		rc = -errno;
		goto err_free;
	}
	*m = (struct mst_shm_memory){ .base = base, .bytes = bytes, .fd = -1, .refs = 1 };
	m->device = st.st_dev;
	m->inode = st.st_ino;
	list_add(m);
	*out = m;
	return 0;

err_free:
	free(m);
	return rc;
}

int mst_shm_memory_new(size_t bytes, enum mst_shm_access access, bool huge_pages,
		       struct mst_shm_memory **out, struct mst_reason *why)
{
	int seals = SEALS_NEEDED | (access == MST_SHM_READABLE ? F_SEAL_FUTURE_WRITE : 0);
	struct mst_shm_memory *m;
	int rc = mst_limit_file(bytes, why);

	if (rc < 0)
		return rc;
	int fd = memfd_open(why);
	if (fd < 0)
		return fd;
	if (ftruncate(fd, (off_t)bytes) < 0) {
		rc = -errno;
		goto err_close;
	}
	/* Mapped before it is sealed: later nobody gets a writable mapping of READABLE memory. */
	rc = map_new(fd, bytes, PROT_READ | PROT_WRITE, &m);
	if (rc < 0) {
		(void)mst_limit_failed(rc, bytes, why);
		goto err_close;
	}
	if (access == MST_SHM_READABLE)
		rc = take_all(fd, m, huge_pages);
	if (rc < 0)
		goto err_drop;
	if (fcntl(fd, F_ADD_SEALS, seals) < 0) {
		rc = -errno;
		goto err_drop;
	}
	m->fd = fd;
	*out = m;
	return 0;

err_drop:
	mst_shm_memory_drop(m);
err_close:
	close(fd);
	return rc;
}

int mst_shm_memory_check(int fd, size_t bytes, enum mst_shm_access access)
{
	struct statfs fs;
	struct stat st;

	/* First, for only memory has seals: other files may have a server that takes its time to
	 * answer what follows. Contained, not equal: newer kernels add F_SEAL_EXEC. */
	int seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & SEALS_NEEDED) != SEALS_NEEDED)
		return -EPROTO;
	/* tmpfs: a memfd of huge pages takes the same seals, and a hole in it is SIGBUS. */
	if (fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC)
		return -EPROTO;
	if (fstat(fd, &st) < 0 || st.st_size < 0 || (size_t)st.st_size != bytes)
		return -EPROTO;
	if (access == MST_SHM_READABLE)
		return 0;
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || (flags & O_ACCMODE) != O_RDWR)
		return -EPROTO;
	return seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE) ? -EPROTO : 0;
}

int mst_shm_memory_map(const struct mst_shm_mapping *how, struct mst_shm_memory **out)
{
	if (how->own_process) {
		struct stat st;
		if (fstat(how->fd, &st) < 0)
			return -errno;
		struct mst_shm_memory *m = list_find(&st);
		if (m != NULL) {
			MST_ASSERT(m->bytes == how->bytes);
			*out = m;
			return 0;
		}
	}
	int prot = how->access == MST_SHM_WRITABLE ? PROT_READ | PROT_WRITE : PROT_READ;
	return map_new(how->fd, how->bytes, prot, out);
}

struct mst_shm_memory *mst_shm_memory_keep(struct mst_shm_memory *m)
{
	pthread_mutex_lock(&list_lock);
	MST_ASSERT(m->refs > 0);
	m->refs++;
	pthread_mutex_unlock(&list_lock);
	return m;
}

/* Takes @m off the list with its last reference. */
static bool list_release(struct mst_shm_memory *m)
{
	pthread_mutex_lock(&list_lock);
	MST_ASSERT(m->refs > 0);
	bool last = --m->refs == 0;
	struct mst_shm_memory **at = &list;
	while (last && *at != m)
		at = &(*at)->next;
	if (last)
		*at = m->next;
	pthread_mutex_unlock(&list_lock);
	return last;
}

void mst_shm_memory_drop(struct mst_shm_memory *m)
{
	if (m == NULL || !list_release(m))
		return;
	mst_shm_memory_close_fd(m);
	munmap(m->base, m->bytes);
	free(m);
}

void mst_shm_memory_close_fd(struct mst_shm_memory *m)
{
	mst_shm_close(&m->fd);
}
