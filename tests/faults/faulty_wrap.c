/* SPDX-License-Identifier: MIT */
/*
 * The wrappers that the linker puts in the places of the calls (-Wl,--wrap). A call that is struck
 * does nothing but fail.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tests/faults/faulty.h"

/* Fifty times the same three lines. */
#define WRAP(type, name, params, args, failure)                                                    \
	type __real_##name params;                                                                 \
	type __wrap_##name params;                                                                 \
	type __wrap_##name params                                                                  \
	{                                                                                          \
		return faulty_strikes(FAULTY_##name) ? (failure) : __real_##name args;             \
	}

/* Memory. */

WRAP(void *, malloc, (size_t bytes), (bytes), NULL)
WRAP(void *, calloc, (size_t count, size_t bytes), (count, bytes), NULL)
WRAP(void *, realloc, (void *old, size_t bytes), (old, bytes), NULL)
WRAP(void *, aligned_alloc, (size_t unit, size_t bytes), (unit, bytes), NULL)
WRAP(void *, mmap, (void *at, size_t bytes, int prot, int flags, int fd, off_t from),
     (at, bytes, prot, flags, fd, from), MAP_FAILED)
WRAP(int, madvise, (void *at, size_t bytes, int advice), (at, bytes, advice), -1)
WRAP(int, memfd_create, (const char *name, unsigned flags), (name, flags), -1)

/* Files. */

WRAP(int, ftruncate, (int fd, off_t bytes), (fd, bytes), -1)
WRAP(int, fallocate, (int fd, int mode, off_t from, off_t bytes), (fd, mode, from, bytes), -1)
WRAP(int, fstat, (int fd, struct stat *st), (fd, st), -1)
WRAP(int, stat, (const char *path, struct stat *st), (path, st), -1)
WRAP(int, fstatfs, (int fd, struct statfs *fs), (fd, fs), -1)
WRAP(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL)
WRAP(ssize_t, read, (int fd, void *to, size_t bytes), (fd, to, bytes), -1)
WRAP(ssize_t, write, (int fd, const void *from, size_t bytes), (fd, from, bytes), -1)
WRAP(ssize_t, readlink, (const char *path, char *out, size_t len), (path, out, len), -1)
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode), -1)
WRAP(int, rename, (const char *from, const char *to), (from, to), -1)
WRAP(int, unlink, (const char *path), (path), -1)
WRAP(int, fsync, (int fd), (fd), -1)
WRAP(ssize_t, pread, (int fd, void *to, size_t bytes, off_t at), (fd, to, bytes, at), -1)
WRAP(ssize_t, pwrite, (int fd, const void *from, size_t bytes, off_t at), (fd, from, bytes, at), -1)
WRAP(int, statvfs, (const char *path, struct statvfs *fs), (path, fs), -1)
WRAP(int, flock, (int fd, int op), (fd, op), -1)
WRAP(DIR *, opendir, (const char *path), (path), NULL)
WRAP(int, pipe2, (int *ends, int flags), (ends, flags), -1)
WRAP(int, dup2, (int from, int to), (from, to), -1)
WRAP(void *, gzopen, (const char *path, const char *mode), (path, mode), NULL)
WRAP(int, gzread, (void *file, void *to, unsigned bytes), (file, to, bytes), -1)
WRAP(int, scandir,
     (const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
      int (*compare)(const struct dirent **, const struct dirent **)),
     (path, list, filter, compare), -1)

/* A third argument of a word is handed on whether there was one or not, as the kernel does. */
int __real_fcntl(int fd, int op, ...);
int __wrap_fcntl(int fd, int op, ...);
int __wrap_fcntl(int fd, int op, ...)
{
	va_list args;

	va_start(args, op);
	long arg = va_arg(args, long);
	va_end(args);
	return faulty_strikes(FAULTY_fcntl) ? -1 : __real_fcntl(fd, op, arg);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	unsigned mode = va_arg(args, unsigned);
	va_end(args);
	return faulty_strikes(FAULTY_open) ? -1 : __real_open(path, flags, mode);
}

/* A file that fails while it is read says so at once, and afterwards. */
size_t __real_fread(void *to, size_t size, size_t count, FILE *f);
size_t __wrap_fread(void *to, size_t size, size_t count, FILE *f);
size_t __wrap_fread(void *to, size_t size, size_t count, FILE *f)
{
	if (!faulty_strikes(FAULTY_fread))
		return __real_fread(to, size, count, f);
	/* A directory cannot be read: the stream finds that out by itself. */
	FILE *broken = freopen("/", "r", f);
	return broken != NULL ? __real_fread(to, size, count, broken) : 0;
}

/* Sockets. */

WRAP(int, socket, (int family, int type, int protocol), (family, type, protocol), -1)
WRAP(int, bind, (int fd, const struct sockaddr *at, socklen_t len), (fd, at, len), -1)
WRAP(int, listen, (int fd, int backlog), (fd, backlog), -1)
WRAP(int, accept4, (int fd, struct sockaddr *from, socklen_t *len, int flags),
     (fd, from, len, flags), -1)
WRAP(int, connect, (int fd, const struct sockaddr *at, socklen_t len), (fd, at, len), -1)
WRAP(ssize_t, send, (int fd, const void *from, size_t bytes, int flags), (fd, from, bytes, flags),
     -1)
WRAP(ssize_t, recv, (int fd, void *to, size_t bytes, int flags), (fd, to, bytes, flags), -1)
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *msg, int flags), (fd, msg, flags), -1)
WRAP(ssize_t, recvmsg, (int fd, struct msghdr *msg, int flags), (fd, msg, flags), -1)
WRAP(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t len),
     (fd, level, name, value, len), -1)
WRAP(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *len),
     (fd, level, name, value, len), -1)
WRAP(int, getsockname, (int fd, struct sockaddr *out, socklen_t *len), (fd, out, len), -1)
WRAP(int, getpeername, (int fd, struct sockaddr *out, socklen_t *len), (fd, out, len), -1)
WRAP(int, getifaddrs, (struct ifaddrs * *out), (out), -1)
WRAP(int, getnameinfo,
     (const struct sockaddr *at, socklen_t len, char *host, socklen_t host_len, char *service,
      socklen_t service_len, int flags),
     (at, len, host, host_len, service, service_len, flags), EAI_MEMORY)
WRAP(int, shutdown, (int fd, int how), (fd, how), -1)
WRAP(int, getaddrinfo,
     (const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **out),
     (node, service, hints, out), EAI_MEMORY)

/* Waiting, and others. */

WRAP(int, poll, (struct pollfd * fds, nfds_t count, int ms), (fds, count, ms), -1)
WRAP(int, eventfd, (unsigned first, int flags), (first, flags), -1)
WRAP(int, epoll_create1, (int flags), (flags), -1)
WRAP(int, epoll_ctl, (int epoll, int op, int fd, struct epoll_event *ev), (epoll, op, fd, ev), -1)
WRAP(int, epoll_wait, (int epoll, struct epoll_event *ev, int max, int ms), (epoll, ev, max, ms),
     -1)
WRAP(ssize_t, getrandom, (void *out, size_t bytes, unsigned flags), (out, bytes, flags), -1)
WRAP(int, signalfd, (int fd, const sigset_t *set, int flags), (fd, set, flags), -1)
WRAP(int, sigprocmask, (int how, const sigset_t *set, sigset_t *old), (how, set, old), -1)
WRAP(pid_t, fork, (void), (), -1)
WRAP(int, setpgid, (pid_t pid, pid_t group), (pid, group), -1)
WRAP(int, execvp, (const char *file, char *const argv[]), (file, argv), -1)

WRAP(int, setpriority, (int which, id_t who, int nice), (which, who, nice), -1)
WRAP(int, sched_setscheduler, (pid_t pid, int policy, const struct sched_param *param),
     (pid, policy, param), -1)

/* A third argument of a word, as of fcntl(). */
int __real_ioctl(int fd, unsigned long op, ...);
int __wrap_ioctl(int fd, unsigned long op, ...);
int __wrap_ioctl(int fd, unsigned long op, ...)
{
	va_list args;

	va_start(args, op);
	unsigned long arg = va_arg(args, unsigned long);
	va_end(args);
	return faulty_strikes(FAULTY_ioctl) ? -1 : __real_ioctl(fd, op, arg);
}

void *__real_mremap(void *old, size_t had, size_t bytes, int flags, ...);
void *__wrap_mremap(void *old, size_t had, size_t bytes, int flags, ...);
void *__wrap_mremap(void *old, size_t had, size_t bytes, int flags, ...)
{
	va_list args;

	va_start(args, flags);
	void *at = va_arg(args, void *);
	va_end(args);
	return faulty_strikes(FAULTY_mremap) ? MAP_FAILED
					     : __real_mremap(old, had, bytes, flags, at);
}

int __real_prctl(int op, ...);
int __wrap_prctl(int op, ...);
int __wrap_prctl(int op, ...)
{
	va_list args;

	va_start(args, op);
	unsigned long arg = va_arg(args, unsigned long);
	va_end(args);
	return faulty_strikes(FAULTY_prctl) ? -1 : __real_prctl(op, arg, 0UL, 0UL, 0UL);
}

/* A thread belongs to the side of the thread that starts it. */
struct birth {
	void *(*main)(void *arg);
	void *arg;
	unsigned side;
};

static void *live(void *arg)
{
	struct birth b = *(struct birth *)arg;

	free(arg);
	faulty_enter(b.side);
	return b.main(b.arg);
}

void *__real_malloc(size_t bytes);
int __real_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*main)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*main)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*main)(void *),
			  void *arg)
{
	if (faulty_strikes(FAULTY_pthread_create))
		return EAGAIN;
	struct birth *b = __real_malloc(sizeof(*b));
	if (b == NULL)
		return EAGAIN;
	*b = (struct birth){ main, arg, faulty_enter(FAULTY_NOBODY) };
	faulty_enter(b->side);
	int rc = __real_pthread_create(out, attr, live, b);
	if (rc != 0)
		free(b);
	return rc;
}
