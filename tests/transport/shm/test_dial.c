/* SPDX-License-Identifier: MIT */
/*
 * What a connector over shared memory is given: addresses that cannot be, and the answers of an
 * acceptor that keeps to no rule. What could make it fault, or read beyond a mapping, is refused.
 * And how both ends map what they share.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/transport/shm/shm.h"
#include "tests/ut.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int memfd_of(size_t bytes, int seals)
{
	int fd = memfd_create("impostor", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
		fcntl(fd, F_ADD_SEALS, seals);
	return fd;
}

struct shm_impostor {
	int listener;
	struct mst_shm_welcome welcome; /* what it answers, */
	size_t bytes;                   /* of the welcome, */
	unsigned fds;                   /* with so many descriptors: */
	int fd, notify_fd;              /* the memory, then eventfds */
};

static void *answer_once(void *arg)
{
	struct shm_impostor *it = arg;
	struct mst_shm_fd_message p = { .body = &it->welcome, .bytes = it->bytes };
	int s = accept4(it->listener, NULL, NULL, SOCK_CLOEXEC);

	p.fd_count = it->fds;
	for (unsigned i = 0; i < it->fds; i++)
		p.fd[i] = i == MST_SHM_FD_NET ? it->fd : it->notify_fd;
	(void)mst_shm_send(s, &p);
	return (void *)(intptr_t)s;
}

/* What comes of a dial that the impostor answers. */
static int dial_impostor(struct shm_impostor *it)
{
	struct mst_net_cfg cfg = { .links_max = 1 };
	char address[MST_SHM_PATH_LEN];
	struct mst_dial dial = { .address = address,
				 .lanes = { 4096, 8192, 4, 4 },
				 .timeout_ns = 60 * MST_SECOND };
	struct mst_link *link = NULL;
	struct mst_net *net;
	pthread_t thread;
	void *s;

	it->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CU_ASSERT_EQUAL_FATAL(mst_shm_listen(it->listener, -1, address, UT_UNREAD), 0);
	CU_ASSERT_EQUAL_FATAL(mst_shm.net_open(&cfg, &net, UT_UNREAD), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, answer_once, it), 0);
	int rc = mst_shm.dial(net, &dial, &link, UT_UNREAD);
	pthread_join(thread, &s);
	if (rc == 0) {
		mst_shm.detach(link);
		mst_shm.link_free(link);
	}
	mst_shm.net_close(net);
	close((int)(intptr_t)s);
	close(it->listener);
	unlink(address);
	close(it->fd);
	close(it->notify_fd);
	return rc;
}

/* One that answers as it should, with a page of published memory. */
static struct shm_impostor impostor(void)
{
	return (struct shm_impostor){
		.welcome = { MST_SHM_MAGIC, MST_SHM_VERSION, .published_bytes = 4096 },
		.bytes = sizeof(struct mst_shm_welcome),
		.fds = MST_SHM_WELCOME_FDS,
		.fd = memfd_of(8192, SEALS),
		.notify_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
	};
}

static void welcome_out_of_order_is_refused(void)
{
	static const int error[] = { 0,       -EPROTONOSUPPORT, -EPROTONOSUPPORT, -EACCES, -EPROTO,
				     -EPROTO, -EPROTO,          -EPROTO,          -EPROTO };
	enum { CASES = sizeof(error) / sizeof(error[0]) };

	for (int i = 0; i < CASES; i++) {
		struct shm_impostor it = impostor();
		it.welcome.magic += i == 1;
		it.welcome.version += i == 2;
		it.welcome.error = i == 3 ? -EACCES : 0;
		it.bytes -= i == 4;
		it.fds -= i == 5;
		it.fds += i == 6;
		if (i == 7) { /* with the page after it this comes round to a page */
			it.welcome.published_bytes = UINT64_MAX;
			close(it.fd);
			it.fd = memfd_of(4096, SEALS);
		}
		it.welcome.published_bytes += i == 8; /* a page more */
		CU_ASSERT_EQUAL(dial_impostor(&it), error[i]);
	}
}

static void published_memory_of_the_wrong_kind_is_refused(void)
{
	const int wrong[] = { memfd_of(4096, SEALS), memfd_of(12288, SEALS),
			      memfd_of(8192, F_SEAL_GROW | F_SEAL_SEAL),
			      open("/dev/zero", O_RDWR | O_CLOEXEC) };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct shm_impostor it = impostor();
		close(it.fd);
		it.fd = wrong[i];
		CU_ASSERT_EQUAL(dial_impostor(&it), -EPROTO);
	}
}

static void more_than_can_be_is_not_published(void)
{
	/* With the page after it, rounded up to pages, this comes round to a page. */
	struct mst_net_cfg cfg = { .published_bytes = SIZE_MAX, .links_max = 1 };
	struct mst_net *net;

	CU_ASSERT_EQUAL(mst_shm.net_open(&cfg, &net, UT_UNREAD), -EINVAL);
}

static void addresses_that_cannot_be_are_refused(void)
{
	char longest[sizeof(((struct sockaddr_un *)NULL)->sun_path) + 1];
	struct sockaddr_un at;
	socklen_t len;

	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	longest[sizeof(longest) - 1] = '\0';
	CU_ASSERT_EQUAL(mst_shm_address(longest, &at, &len), -EINVAL);
	longest[sizeof(longest) - 2] = '\0';
	CU_ASSERT_EQUAL(mst_shm_address(longest, &at, &len), 0);
	CU_ASSERT(len <= sizeof(at));
	CU_ASSERT_EQUAL(mst_shm_address("/", &at, &len), -EINVAL);
	CU_ASSERT_EQUAL(mst_shm_address("@xy", &at, &len), -EINVAL);
	CU_ASSERT_EQUAL(mst_shm_address("", &at, &len), -EINVAL);
}

static void ends_in_one_process_share_a_mapping(void)
{
	struct mst_shm_memory *made, *same, *other;

	CU_ASSERT_EQUAL_FATAL(mst_shm_memory_new(8192, MST_SHM_WRITABLE, false, &made, UT_UNREAD),
			      0);
	struct mst_shm_mapping how = { made->fd, 8192, MST_SHM_WRITABLE, true };
	CU_ASSERT_EQUAL(mst_shm_memory_map(&how, &same), 0);
	how.own_process = false;
	CU_ASSERT_EQUAL(mst_shm_memory_map(&how, &other), 0);
	CU_ASSERT_PTR_EQUAL(same->base, made->base);
	CU_ASSERT_PTR_NOT_EQUAL(other->base, made->base);
	mst_shm_memory_drop(made);
	same->base[8191] = 5; /* it is there as long as anyone needs it */
	CU_ASSERT_EQUAL(other->base[8191], 5);
	mst_shm_memory_drop(same);
	mst_shm_memory_drop(other);
}

static CU_TestInfo cases[] = {
	{ "ends in one process share a mapping", ends_in_one_process_share_a_mapping },
	{ "more than can be is not published", more_than_can_be_is_not_published },
	{ "addresses that cannot be are refused", addresses_that_cannot_be_are_refused },
	{ "a welcome out of order is refused", welcome_out_of_order_is_refused },
	{ "published memory of the wrong kind is refused",
	  published_memory_of_the_wrong_kind_is_refused },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("shm dial", cases);
}
