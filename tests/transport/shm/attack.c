/* SPDX-License-Identifier: MIT */
#include "tests/transport/shm/attack.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/clock.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

const struct mst_lanes lanes = { 4096, 8192, 4, 4 };

struct shm_target target_open(void)
{
	struct mst_net_cfg cfg = { .published_bytes = 4096, .links_max = 4 };
	struct shm_target h;

	CU_ASSERT_EQUAL_FATAL(mst_shm.net_open(&cfg, &h.net, UT_UNREAD), 0);
	CU_ASSERT_EQUAL_FATAL(mst_shm.listener->open(h.net, &h.listener, UT_UNREAD), 0);
	return h;
}

void target_close(struct shm_target *h)
{
	mst_shm.listener->close(h->listener);
	mst_shm.net_close(h->net);
}

int call(const struct shm_target *h)
{
	struct sockaddr_un at;
	socklen_t len;
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	CU_ASSERT_EQUAL(mst_shm_address(h->listener->address, &at, &len), 0);
	CU_ASSERT_EQUAL_FATAL(connect(s, (struct sockaddr *)&at, len), 0);
	return s;
}

struct mst_shm_hello hello_of(const struct mst_lanes *l)
{
	return (struct mst_shm_hello){ .magic = MST_SHM_MAGIC,
				       .version = MST_SHM_VERSION,
				       .up_bytes = l->up_bytes,
				       .down_bytes = l->down_bytes,
				       .up_credits = l->up_credits,
				       .down_credits = l->down_credits };
}

size_t memory_bytes(void)
{
	struct mst_shm_layout layout;

	mst_shm_layout(&lanes, &layout);
	return layout.bytes;
}

int memfd_of(size_t bytes, unsigned flags, int seals)
{
	int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
		fcntl(fd, F_ADD_SEALS, seals);
	return fd;
}

int good_memfd(void)
{
	return memfd_of(memory_bytes(), 0, SEALS);
}

void say(int s, struct mst_shm_hello hello, int fd, unsigned fds)
{
	struct mst_shm_fd_message p = { .body = &hello, .bytes = sizeof(hello), .fd_count = fds };

	for (unsigned i = 0; i < fds; i++)
		p.fd[i] = fd;
	CU_ASSERT_EQUAL(mst_shm_send(s, &p), 0);
	close(fd);
}

int answer_to(int s)
{
	struct mst_shm_welcome welcome = { 0 };
	struct mst_shm_fd_message p = { .body = &welcome, .bytes = sizeof(welcome) };
	struct pollfd pfd = { .fd = s, .events = POLLIN };

	poll(&pfd, 1, 60000);
	int rc = mst_shm_receive(s, &p);
	mst_shm_fd_message_close(&p);
	return rc < 0 ? rc : welcome.error;
}

void attack_begin(struct shm_attack *g)
{
	struct mst_link_request request;
	int fd = good_memfd();

	g->control = mmap(NULL, memory_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CU_ASSERT_NOT_EQUAL_FATAL(g->control, MAP_FAILED);
	g->socket = call(&g->target);
	say(g->socket, hello_of(&lanes), fd, 1);
	CU_ASSERT_EQUAL_FATAL(
		mst_shm.listener->next_request(g->target.listener, &request, UT_UNREAD), 0);
	CU_ASSERT_EQUAL_FATAL(
		mst_shm.listener->answer(g->target.listener, &request, &g->link, UT_UNREAD), 0);
	CU_ASSERT_EQUAL(mst_shm.attach(g->target.net, g->link, UT_UNREAD), 0);
}

void attack_lift(struct shm_attack *g)
{
	mst_shm.detach(g->link);
	mst_shm.link_free(g->link);
	munmap(g->control, memory_bytes());
	close(g->socket);
}

void set(_Atomic uint32_t *word, uint32_t value)
{
	atomic_store_explicit(word, value, memory_order_release);
}

void expect_lost(struct shm_attack *g, int error)
{
	struct shm_attack other = { .target = g->target };
	struct mst_net_event ev[4];

	attack_begin(&other);
	set(&other.control->up.tail, 1);
	int lost = 0, arrived = 0;
	for (int i = 0; i < 100; i++) {
		int n = mst_shm.poll(g->target.net, ev, 4);
		for (int k = 0; k < n; k++) {
			lost += ev[k].kind == MST_LOST && ev[k].link == g->link &&
				ev[k].error == error;
			arrived += ev[k].kind == MST_ARRIVED && ev[k].link == other.link;
		}
		CU_ASSERT_EQUAL(mst_shm.wait(g->target.net, MST_MS), 0);
	}
	CU_ASSERT_EQUAL(lost, 1);
	CU_ASSERT_EQUAL(arrived, 1);
	attack_lift(&other);
}

int entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	if (dir == NULL)
		return -1;
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

int fds_in_the_end(int wanted)
{
	uint64_t end = mst_now_ns() + 60 * MST_SECOND;
	int fds;

	while ((fds = entries("/proc/self/fd")) != wanted && mst_now_ns() < end)
		mst_sleep_ns(MST_MS);
	return fds;
}
