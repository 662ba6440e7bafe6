/* SPDX-License-Identifier: MIT */
/* What wakes the thread of a handle, and the descriptor that a program polls, while nets come and
 * go. The nets are eventfds. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/session/wakeup.h"
#include "common/base/clock.h"
#include "tests/ut.h"

#define ROUNDS 2000

/* A net whose descriptor is readable while something has come that no arm() has taken. */
struct rung_net {
	struct mst_net net;
	int fd;
	_Atomic uint32_t wakes;
};

static int arm(struct mst_net *net)
{
	struct rung_net *n = (struct rung_net *)net;
	uint64_t unread;

	(void)!read(n->fd, &unread, sizeof(unread));
	return n->fd;
}

static void wake(struct mst_net *net)
{
	atomic_fetch_add(&((struct rung_net *)net)->wakes, 1);
}

static int refuse(struct mst_net *net)
{
	(void)net;
	return -EBADF;
}

static const struct mst_transport polled = { .arm = arm, .wake = wake };
static const struct mst_transport unpolled = { .wake = wake };
static const struct mst_transport broken = { .arm = refuse, .wake = wake };

static struct mst_wakeup wakeup;

static struct rung_net *new_net(void)
{
	struct rung_net *n = calloc(1, sizeof(*n));

	CU_ASSERT_PTR_NOT_NULL_FATAL(n);
	n->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	CU_ASSERT_FATAL(n->fd >= 0);
	return n;
}

static void arrives(struct rung_net *n)
{
	uint64_t one = 1;

	CU_ASSERT_EQUAL(write(n->fd, &one, sizeof(one)), sizeof(one));
}

static void close_net(struct rung_net *n)
{
	mst_wakeup_let_go(&wakeup);
	close(n->fd);
	free(n);
}

static bool is_readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1 && pfd.revents == POLLIN;
}

static void the_descriptor_stays_while_nets_come_and_go(void)
{
	mst_wakeup_init(&wakeup);
	struct rung_net *first = new_net(), *second = new_net();
	CU_ASSERT_EQUAL(mst_wakeup_watch(&wakeup, &polled, &first->net), 0);
	CU_ASSERT(!mst_wakeup_has_fd(&wakeup));
	int fd = mst_wakeup_fd(&wakeup);
	CU_ASSERT_FATAL(fd > STDERR_FILENO);
	CU_ASSERT(mst_wakeup_has_fd(&wakeup));
	CU_ASSERT(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	CU_ASSERT(fcntl(wakeup.notify_fd, F_GETFD) & FD_CLOEXEC);
	CU_ASSERT(!is_readable(fd));
	arrives(first);
	CU_ASSERT(is_readable(fd));
	CU_ASSERT(is_readable(fd)); /* until it is armed anew */
	mst_wakeup_arm(&wakeup);
	CU_ASSERT(!is_readable(fd));
	arrives(first);
	mst_wakeup_let_go(&wakeup);
	CU_ASSERT(!is_readable(fd));
	CU_ASSERT_EQUAL(mst_wakeup_fd(&wakeup), fd);
	CU_ASSERT_EQUAL(mst_wakeup_watch(&wakeup, &polled, &second->net), 0);
	CU_ASSERT_EQUAL(mst_wakeup_fd(&wakeup), fd);
	CU_ASSERT(!is_readable(fd));
	arrives(second);
	CU_ASSERT(is_readable(fd));
	mst_wakeup_arm(&wakeup);
	arrives(first); /* which nobody watches any more */
	CU_ASSERT(!is_readable(fd));
	close_net(second);
	close(first->fd);
	free(first);
	mst_wakeup_fini(&wakeup);
	CU_ASSERT_EQUAL(fcntl(fd, F_GETFD), -1);
}

static void to_ring_makes_it_readable(void)
{
	mst_wakeup_init(&wakeup);
	int fd = mst_wakeup_fd(&wakeup); /* without a net */
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT(!is_readable(fd));
	mst_wakeup_ring(&wakeup);
	mst_wakeup_ring(&wakeup);
	CU_ASSERT(is_readable(fd));
	mst_wakeup_arm(&wakeup);
	CU_ASSERT(!is_readable(fd));
	struct rung_net *net = new_net();
	CU_ASSERT_EQUAL(mst_wakeup_watch(&wakeup, &polled, &net->net), 0);
	mst_wakeup_ring(&wakeup);
	CU_ASSERT(is_readable(fd));
	CU_ASSERT_EQUAL(net->wakes, 1);
	close_net(net);
	CU_ASSERT(is_readable(fd));
	mst_wakeup_fini(&wakeup);
}

/* Waits inside the net need no descriptor. */
static void without_a_descriptor_the_net_is_woken(void)
{
	mst_wakeup_init(&wakeup);
	mst_wakeup_ring(&wakeup); /* nobody there */
	struct rung_net *net = new_net();
	CU_ASSERT_EQUAL(mst_wakeup_watch(&wakeup, &unpolled, &net->net), 0);
	mst_wakeup_ring(&wakeup);
	mst_wakeup_arm(&wakeup);
	CU_ASSERT_EQUAL(net->wakes, 1);
	mst_wakeup_let_go(&wakeup);
	mst_wakeup_ring(&wakeup);
	CU_ASSERT_EQUAL(net->wakes, 1);
	close_net(net);
	mst_wakeup_fini(&wakeup);
}

/* A program that has a descriptor must not sleep on it for ever. */
static void a_net_that_cannot_be_watched_leaves_it_readable(void)
{
	const struct mst_transport *type[] = { &unpolled, &broken };
	const int error[] = { -ENOTSUP, -EBADF };

	for (int i = 0; i < 2; i++) {
		mst_wakeup_init(&wakeup);
		int fd = mst_wakeup_fd(&wakeup);
		struct rung_net *blind = new_net(), *seen = new_net(), *before = new_net();
		CU_ASSERT_EQUAL(mst_wakeup_watch(&wakeup, &polled, &before->net), 0);
		close_net(before);
		CU_ASSERT_EQUAL(mst_wakeup_watch(&wakeup, type[i], &blind->net), error[i]);
		CU_ASSERT(is_readable(fd));
		mst_wakeup_arm(&wakeup);
		CU_ASSERT(is_readable(fd));
		close_net(blind);
		CU_ASSERT_EQUAL(mst_wakeup_watch(&wakeup, &polled, &seen->net), 0);
		mst_wakeup_arm(&wakeup);
		CU_ASSERT(!is_readable(fd));
		close_net(seen);
		mst_wakeup_fini(&wakeup);
	}
}

static void standard_files_stay_free(void)
{
	int kept = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10);

	CU_ASSERT_FATAL(kept >= 0);
	mst_wakeup_init(&wakeup);
	close(STDIN_FILENO);
	int fd = mst_wakeup_fd(&wakeup);
	bool is_free = fcntl(STDIN_FILENO, F_GETFD) < 0;
	dup2(kept, STDIN_FILENO);
	close(kept);
	CU_ASSERT(is_free);
	CU_ASSERT(fd > STDERR_FILENO && wakeup.notify_fd > STDERR_FILENO);
	mst_wakeup_fini(&wakeup);
}

static void without_room_for_descriptors_there_is_none(void)
{
	struct rlimit before, none;
	int next = dup(STDERR_FILENO); /* the lowest that is free */

	CU_ASSERT_FATAL(next >= 0);
	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	mst_wakeup_init(&wakeup);
	none.rlim_cur = (rlim_t)next + 1; /* room for neither, and for one */
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &none), 0);
	CU_ASSERT_EQUAL(mst_wakeup_fd(&wakeup), -EMFILE);
	close(next);
	CU_ASSERT_EQUAL(mst_wakeup_fd(&wakeup), -EMFILE);
	CU_ASSERT(!mst_wakeup_has_fd(&wakeup));
	CU_ASSERT_EQUAL(fcntl(next, F_GETFD), -1);
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &before), 0);
	CU_ASSERT(mst_wakeup_fd(&wakeup) >= 0);
	mst_wakeup_fini(&wakeup);
}

static int open_in_child(int fd, int notify_fd, struct rung_net *net)
{
	mst_wakeup_disown(&wakeup);
	mst_wakeup_ring(&wakeup);
	mst_wakeup_let_go(&wakeup);
	mst_wakeup_fini(&wakeup);
	return (fcntl(fd, F_GETFD) >= 0) + (fcntl(notify_fd, F_GETFD) >= 0) +
	       (atomic_load(&net->wakes) != 0);
}

static void a_child_closes_them_and_the_parent_keeps_them(void)
{
	mst_wakeup_init(&wakeup);
	struct rung_net *net = new_net();
	CU_ASSERT_EQUAL(mst_wakeup_watch(&wakeup, &polled, &net->net), 0);
	int fd = mst_wakeup_fd(&wakeup), status = -1;
	pid_t child = fork();
	if (child == 0)
		_exit(open_in_child(fd, wakeup.notify_fd, net));
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT(!is_readable(fd));
	arrives(net);
	CU_ASSERT(is_readable(fd));
	close_net(net);
	mst_wakeup_fini(&wakeup);
}

/* ---- a net that is closed while somebody rings ---- */

static _Atomic bool inside, may_leave, has_let_go;

static void wake_slowly(struct mst_net *net)
{
	(void)net;
	atomic_store(&inside, true);
	while (!atomic_load(&may_leave))
		sched_yield();
	atomic_store(&inside, false);
}

static void *ring_once(void *unused)
{
	mst_wakeup_ring(&wakeup);
	return unused;
}

static void *let_go(void *unused)
{
	mst_wakeup_let_go(&wakeup);
	CU_ASSERT(!atomic_load(&inside));
	atomic_store(&has_let_go, true);
	return unused;
}

static void to_let_go_waits_for_whoever_rings(void)
{
	const struct mst_transport slow = { .wake = wake_slowly };
	pthread_t ringer, closer;

	mst_wakeup_init(&wakeup);
	struct rung_net *net = new_net();
	(void)mst_wakeup_watch(&wakeup, &slow, &net->net);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&ringer, NULL, ring_once, NULL), 0);
	while (!atomic_load(&inside))
		sched_yield();
	CU_ASSERT_EQUAL_FATAL(pthread_create(&closer, NULL, let_go, NULL), 0);
	uint64_t until_ns = mst_deadline_ns(50 * MST_MS); /* time enough to be wrong */
	while (!atomic_load(&has_let_go) && mst_left_ns(until_ns) > 0)
		sched_yield();
	atomic_store(&may_leave, true);
	pthread_join(closer, NULL);
	pthread_join(ringer, NULL);
	close_net(net);
	mst_wakeup_fini(&wakeup);
}

static _Atomic bool stop;

static void *ring_on(void *unused)
{
	while (!atomic_load(&stop))
		mst_wakeup_ring(&wakeup);
	return unused;
}

/* Whether it does, the sanitisers say: a net that is closed is freed. */
static void no_net_is_woken_that_has_been_closed(void)
{
	pthread_t thread;

	mst_wakeup_init(&wakeup);
	atomic_store(&stop, false);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, ring_on, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct rung_net *net = new_net();
		(void)mst_wakeup_watch(&wakeup, i % 2 == 0 ? &polled : &unpolled, &net->net);
		if (i == ROUNDS / 2)
			CU_ASSERT(mst_wakeup_fd(&wakeup) >= 0);
		mst_wakeup_let_go(&wakeup);
		uint32_t wakes = atomic_load(&net->wakes);
		sched_yield();
		CU_ASSERT_EQUAL(atomic_load(&net->wakes), wakes);
		close_net(net);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	mst_wakeup_fini(&wakeup);
}

static CU_TestInfo cases[] = {
	{ "the descriptor stays while nets come and go",
	  the_descriptor_stays_while_nets_come_and_go },
	{ "to ring makes it readable, with a net and without", to_ring_makes_it_readable },
	{ "without a descriptor the net is woken", without_a_descriptor_the_net_is_woken },
	{ "a net that cannot be watched leaves it readable",
	  a_net_that_cannot_be_watched_leaves_it_readable },
	{ "standard files stay free", standard_files_stay_free },
	{ "without room for descriptors there is none",
	  without_room_for_descriptors_there_is_none },
	{ "a child closes them, and the parent keeps them",
	  a_child_closes_them_and_the_parent_keeps_them },
	{ "to let go waits for whoever rings", to_let_go_waits_for_whoever_rings },
	{ "no net is woken that has been closed", no_net_is_woken_that_has_been_closed },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("wakeup", cases);
}
