/* SPDX-License-Identifier: MIT */
/*
 * One call of the system that fails: the n-th of a kind, by a thread of one side. So every failure
 * path of a scenario runs, by arming n = 1, 2, ... until a run makes fewer such calls.
 *
 * Threads of no side are never struck: a test's own, and CUnit. What a thread of a side starts
 * belongs to that side too, and so do processes that it forks.
 */
#ifndef MST_TESTS_FAULTS_FAULTY_H
#define MST_TESTS_FAULTS_FAULTY_H

#include <stdbool.h>

/* The calls that a fault may strike, and the errno that it leaves: one that the manual page of the
 * call has, and that a full host or a peer that dies really gives. CMakeLists.txt reads the names
 * from here, to have the linker put the wrappers of faulty_wrap.c in their places. */
#define FAULTY_CALLS(X)                                                                            \
	X(malloc, ENOMEM)                                                                          \
	X(calloc, ENOMEM)                                                                          \
	X(realloc, ENOMEM)                                                                         \
	X(aligned_alloc, ENOMEM)                                                                   \
	X(mmap, ENOMEM)                                                                            \
	X(memfd_create, EMFILE)                                                                    \
	X(ftruncate, EFBIG)                                                                        \
	X(fallocate, ENOSPC)                                                                       \
	X(fcntl, EPERM)                                                                            \
	X(fstat, EIO)                                                                              \
	X(fstatfs, EIO)                                                                            \
	X(open, EMFILE)                                                                            \
	X(fopen, EMFILE)                                                                           \
	X(fread, EIO)                                                                              \
	X(read, EIO)                                                                               \
	X(write, EAGAIN)                                                                           \
	X(gzopen, EMFILE)                                                                          \
	X(gzread, EIO)                                                                             \
	X(scandir, ENOMEM)                                                                         \
	X(readlink, EIO)                                                                           \
	X(mkdir, EDQUOT)                                                                           \
	X(rename, ENOSPC)                                                                          \
	X(unlink, EIO)                                                                             \
	X(fsync, EIO)                                                                              \
	X(pread, EIO)                                                                              \
	X(pwrite, ENOSPC)                                                                          \
	X(statvfs, EIO)                                                                            \
	X(flock, ENOLCK)                                                                           \
	X(opendir, EMFILE)                                                                         \
	X(socket, EMFILE)                                                                          \
	X(bind, EADDRINUSE)                                                                        \
	X(listen, EADDRINUSE)                                                                      \
	X(accept4, EMFILE)                                                                         \
	X(connect, EADDRNOTAVAIL)                                                                  \
	X(send, ECONNRESET)                                                                        \
	X(recv, ECONNRESET)                                                                        \
	X(sendmsg, ENOBUFS)                                                                        \
	X(recvmsg, ECONNRESET)                                                                     \
	X(setsockopt, ENOBUFS)                                                                     \
	X(getsockopt, ENOBUFS)                                                                     \
	X(getsockname, ENOBUFS)                                                                    \
	X(getpeername, ENOTCONN)                                                                   \
	X(getaddrinfo, ENOMEM)                                                                     \
	X(getnameinfo, ENOMEM)                                                                     \
	X(getifaddrs, ENOBUFS)                                                                     \
	X(getrandom, ENOSYS)                                                                       \
	X(poll, ENOMEM)                                                                            \
	X(eventfd, EMFILE)                                                                         \
	X(ioctl, EINVAL)                                                                           \
	X(shutdown, ENOTCONN)                                                                      \
	X(madvise, EINVAL)                                                                         \
	X(mremap, ENOMEM)                                                                          \
	X(stat, EIO)                                                                               \
	X(setpriority, EACCES)                                                                     \
	X(sched_setscheduler, EPERM)                                                               \
	X(epoll_create1, EMFILE)                                                                   \
	X(epoll_ctl, ENOSPC)                                                                       \
	X(epoll_wait, EINTR)                                                                       \
	X(pthread_create, EAGAIN)                                                                  \
	X(pipe2, EMFILE)                                                                           \
	X(dup2, EMFILE)                                                                            \
	X(fork, EAGAIN)                                                                            \
	X(execvp, ENOMEM)                                                                          \
	X(signalfd, EMFILE)                                                                        \
	X(sigprocmask, EINVAL)                                                                     \
	X(setpgid, EPERM)                                                                          \
	X(prctl, EINVAL)

enum faulty_call {
#define FAULTY_AS_FOLLOWER(name, error) FAULTY_##name,
	FAULTY_CALLS(FAULTY_AS_FOLLOWER) FAULTY_CALL_COUNT
};

#define FAULTY_NOBODY 0u

/* From now on the calling thread is of this side. Return: of which it was. */
unsigned faulty_enter(unsigned side);
/* The @n-th call of the kind fails, counted from now. */
void faulty_arm(unsigned side, enum faulty_call call, unsigned n);
/* The call that is armed leaves this errno instead of the one above. */
void faulty_leave(int error);
/* From now on a call that is struck ends its process at once, as SIGKILL does. For a process of a
 * test's own. */
void faulty_kill(void);
/* No call fails. Return: how many of the kind there were since faulty_arm(). */
unsigned faulty_disarm(void);
/* How many calls of this kind the side has made since faulty_arm(), up to faulty_disarm(). */
unsigned faulty_made(enum faulty_call call);
/* Has the armed fault struck? */
bool faulty_struck(void);
/* What is armed: whose call, which, and the errno that it leaves. */
unsigned faulty_side(void);
enum faulty_call faulty_armed(void);
int faulty_error(void);

/* For the wrappers: counts a call; true: it is to fail, and errno is set. */
bool faulty_strikes(enum faulty_call call);

const char *faulty_name(enum faulty_call call);
/* What is armed, or was last: "recv 3". */
const char *faulty_text(void);

#endif
