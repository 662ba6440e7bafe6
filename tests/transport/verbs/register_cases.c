/* SPDX-License-Identifier: MIT */
/* Memory of the program's own that a device does not get, and what is said of it. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tests/transport/verbs/ladder.h"

#define READ_ONLY_BYTES 65536

/* Which call of a registration it is. */
static unsigned place_of(struct mst_net *net, enum fault which)
{
	enum fault f;
	unsigned n = 0;

	do
		(void)ladder_register(net, ++n, 0, &f);
	while (f != which && f != FAULT_COUNT);
	CU_ASSERT_EQUAL(f, which);
	return n;
}

static void expect_kept_from_children(struct mst_net *net, enum fault which, const char *words)
{
	struct holdings before = holdings_now();
	enum fault f;
	struct ladder_outcome o = ladder_register(net, place_of(net, which), 0, &f);

	CU_ASSERT_EQUAL(f, which);
	CU_ASSERT_EQUAL(o.rc, -ENOTSUP);
	CU_ASSERT_PTR_NOT_NULL(strstr(o.why.text, words));
	CU_ASSERT(holdings_are(&before));
	CU_ASSERT_PTR_NULL(net->domain.regions);
}

/* An old kernel, or one that does not give pinned pages back, would let a forked child die. */
static void memory_that_children_would_lose_is_refused(void)
{
	struct mst_net *net = ladder_net(NULL);
	struct mst_link_listener *listener = NULL;

	CU_ASSERT_EQUAL_FATAL(mst_verbs.listener->open(net, &listener, UT_UNREAD), 0);
	expect_kept_from_children(net, FAULT_ibv_is_fork_initialized,
				  "forked children would lose it");
	expect_kept_from_children(net, FAULT_madvise, "no memory that a forked child can have");
	mst_verbs.listener->close(listener);
	mst_verbs.net_close(net);
}

/* One registration by a user without rights, whose limit is what counts. */
struct nobody {
	struct mst_net *net;
	unsigned n; /* the call that fails for want of memory; 0: none */
	struct mst_region *region;
	struct ladder_outcome outcome;
	long became; /* as setresuid() */
};

/* Only this thread is that user. The kernel takes no request on a file from a process that has
 * changed its user since the file was opened, so a listener could not even be closed after
 * setresuid() of the C library, which is for all threads. */
static void *register_as_nobody(void *arg)
{
	struct nobody *n = arg;

	n->became = syscall(SYS_setresuid, -1, 65534, -1);
	faults_arm_with(n->n, ENOMEM);
	n->outcome.rc = mst_region_register(&n->net->domain, ladder_own, sizeof(ladder_own),
					    &n->region, &n->outcome.why);
	return NULL;
}

static struct ladder_outcome register_unprivileged(struct mst_net *net, rlim_t limit, unsigned n)
{
	struct nobody nobody = { .net = net, .n = n };
	struct rlimit was, low;
	pthread_t thread;

	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_MEMLOCK, &was), 0);
	low = (struct rlimit){ limit, limit < was.rlim_max ? was.rlim_max : limit };
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_MEMLOCK, &low), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, register_as_nobody, &nobody), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_join(thread, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_MEMLOCK, &was), 0);
	CU_ASSERT_EQUAL(nobody.became, 0);
	CU_ASSERT_PTR_NULL(nobody.region);
	return nobody.outcome;
}

static void expect_blamed(const struct ladder_outcome *o, const char *words, const char *never)
{
	CU_ASSERT_EQUAL(o->rc, -ENOMEM);
	CU_ASSERT_PTR_NOT_NULL(strstr(o->why.text, words));
	CU_ASSERT_PTR_NULL(strstr(o->why.text, never));
}

/* The kernel has one number for both. As root: whom the limit concerns, and whom it does not. */
static void a_limit_is_told_from_a_device_that_is_full(void)
{
	static const char *const limit = "may lock 65536 bytes of memory and has pinned";
	static const char *const device = "no room for another region";
	struct mst_net *net = ladder_net(NULL);
	struct mst_link_listener *listener = NULL;
	enum fault f;

	CU_ASSERT_EQUAL_FATAL(mst_verbs.listener->open(net, &listener, UT_UNREAD), 0);
	unsigned n = place_of(net, FAULT_ibv_reg_mr);
	if (geteuid() == 0) {
		struct ladder_outcome o = register_unprivileged(net, 65536, 0);
		expect_blamed(&o, limit, device);
		CU_ASSERT_PTR_NOT_NULL(strstr(o.why.text, "muster doctor"));
		o = register_unprivileged(net, (rlim_t)1 << 30, n);
		expect_blamed(&o, device, "may lock");
		o = ladder_register(net, n, ENOMEM, &f);
		expect_blamed(&o, device, "may lock");
		CU_ASSERT_EQUAL(f, FAULT_ibv_reg_mr);
	}
	mst_verbs.listener->close(listener);
	mst_verbs.net_close(net);
}

static void memory_that_cannot_be_pinned_is_refused_in_words(void)
{
	struct mst_net *net = ladder_net(NULL);
	struct mst_link_listener *listener = NULL;
	struct mst_region *region = NULL;
	uint8_t *hole = mmap(NULL, 2 * sizeof(ladder_own), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CU_ASSERT_EQUAL_FATAL(munmap(hole + sizeof(ladder_own), sizeof(ladder_own)), 0);
	CU_ASSERT_EQUAL_FATAL(mst_verbs.listener->open(net, &listener, UT_UNREAD), 0);
	struct ladder_outcome o = { 0 };
	o.rc = mst_region_register(&net->domain, hole, 2 * sizeof(ladder_own), &region, &o.why);
	CU_ASSERT_EQUAL(o.rc, -EFAULT);
	CU_ASSERT_PTR_NOT_NULL(strstr(o.why.text, "not all of it is mapped"));
	CU_ASSERT_EQUAL(mst_region_register(&net->domain, ladder_own, sizeof(ladder_own), &region,
					    UT_UNREAD),
			0);
	CU_ASSERT_EQUAL(mst_region_unregister(region, UT_UNREAD), 0);
	munmap(hole, sizeof(ladder_own));
	mst_verbs.listener->close(listener);
	mst_verbs.net_close(net);
}

/* ---- memory that may only be read ---- */

/* Linux before 6.2 pins memory as if the device wrote to it, even if it is only read: of a private
 * mapping a copy is pinned, of a shared one nothing (ib_umem_get()). */
static bool pins_as_if_written(void)
{
	unsigned major = 0, minor = 0;
	struct utsname name;

	CU_ASSERT_EQUAL_FATAL(uname(&name), 0);
	CU_ASSERT_EQUAL_FATAL(sscanf(name.release, "%u.%u", &major, &minor), 2);
	return major < 6 || (major == 6 && minor < 2);
}

static struct ladder_outcome register_once(struct mst_net *net, void *base)
{
	struct mst_region *region = NULL;
	struct ladder_outcome o = { 0 };

	o.rc = mst_region_register(&net->domain, base, READ_ONLY_BYTES, &region, &o.why);
	CU_ASSERT_EQUAL(mst_region_unregister(region, UT_UNREAD), 0);
	return o;
}

/* A file that is mapped shared, by a descriptor that may not write. */
static void *map_read_only_file(void)
{
	FILE *f = tmpfile();
	char path[40];

	CU_ASSERT_FATAL(f != NULL && ftruncate(fileno(f), READ_ONLY_BYTES) == 0);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(f));
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *at = mmap(NULL, READ_ONLY_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	CU_ASSERT_FATAL(fd >= 0 && at != MAP_FAILED);
	close(fd);
	fclose(f);
	return at;
}

static void memory_that_may_only_be_read_is_pinned_if_it_is_private(void)
{
	struct mst_net *net = ladder_net(NULL);
	struct mst_link_listener *listener = NULL;
	void *of_own = mmap(NULL, READ_ONLY_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *of_file = map_read_only_file();

	CU_ASSERT_FATAL(of_own != MAP_FAILED);
	CU_ASSERT_EQUAL_FATAL(mst_verbs.listener->open(net, &listener, UT_UNREAD), 0);
	CU_ASSERT_EQUAL(register_once(net, of_own).rc, 0);
	struct ladder_outcome o = register_once(net, of_file);
	CU_ASSERT(o.rc == -EFAULT || (o.rc == 0 && !pins_as_if_written()));
	CU_ASSERT(o.rc == 0 || strstr(o.why.text, "may not be written: copy it") != NULL);
	munmap(of_own, READ_ONLY_BYTES);
	munmap(of_file, READ_ONLY_BYTES);
	mst_verbs.listener->close(listener);
	mst_verbs.net_close(net);
}

CU_TestInfo ladder_register_cases[] = {
	{ "memory that forked children would lose is refused",
	  memory_that_children_would_lose_is_refused },
	{ "memory that cannot be pinned is refused in words",
	  memory_that_cannot_be_pinned_is_refused_in_words },
	{ "memory that may only be read is pinned if it is private",
	  memory_that_may_only_be_read_is_pinned_if_it_is_private },
	{ "a limit is told from a device that is full",
	  a_limit_is_told_from_a_device_that_is_full },
	CU_TEST_INFO_NULL,
};
