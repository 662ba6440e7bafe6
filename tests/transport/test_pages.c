/* SPDX-License-Identifier: MIT */
/* Huge pages: where memory is mapped, what gathering takes and what it leaves alone. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/transport/pages.h"
#include "common/transport/shm/shm.h"
#include "tests/ut.h"

#define MIB ((size_t)1 << 20)
#define HUGE MST_PAGES_HUGE

static int memory_of(size_t bytes)
{
	int fd = memfd_create("pages", MFD_CLOEXEC);

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL_FATAL(ftruncate(fd, (off_t)bytes), 0);
	return fd;
}

static uint8_t *mapped(int fd, size_t bytes, int prot)
{
	uint8_t *p = mst_pages_map(fd, bytes, prot);

	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	return p;
}

static size_t taken(int fd)
{
	struct stat st;

	CU_ASSERT_EQUAL_FATAL(fstat(fd, &st), 0);
	return (size_t)st.st_blocks * 512;
}

/* A figure in /proc/self/smaps of the mapping that begins at @p, in bytes. */
static size_t figure_of(const void *p, const char *name)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	char line[256];
	bool here = false;
	size_t kib = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		uintptr_t begin, end;
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2)
			here = begin == (uintptr_t)p;
		else if (here && strncmp(line, name, strlen(name)) == 0)
			kib = strtoul(line + strlen(name), NULL, 10);
	}
	fclose(f);
	return kib * 1024;
}

/* Bytes of this process's address space that are reserved and hold nothing. */
static size_t reserved(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	uintptr_t begin, end;
	char line[256], how[8];
	size_t bytes = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s", &begin, &end, how) == 3 &&
		    strcmp(how, "---p") == 0)
			bytes += end - begin;
	fclose(f);
	return bytes;
}

static void large_mappings_begin_on_a_huge_page(void)
{
	for (size_t bytes = MST_PAGES_LARGE; bytes < MST_PAGES_LARGE + 40960; bytes += 4096) {
		int fd = memory_of(bytes);
		uint8_t *p = mapped(fd, bytes, PROT_READ | PROT_WRITE);

		CU_ASSERT_EQUAL((uintptr_t)p % HUGE, 0);
		p[0] = 1;
		p[bytes - 1] = 2;
		CU_ASSERT_EQUAL(munmap(p, bytes), 0);
		close(fd);
	}
}

static void nothing_else_stays_mapped(void)
{
	int fd = memory_of(9 * MIB);
	size_t before = reserved();
	uint8_t *p[8];

	for (int i = 0; i < 8; i++)
		p[i] = mapped(fd, 9 * MIB, PROT_READ);
	CU_ASSERT_EQUAL(reserved(), before);
	for (int i = 0; i < 8; i++)
		munmap(p[i], 9 * MIB);
	close(fd);
}

static void what_cannot_be_mapped_is_told(void)
{
	size_t before = reserved();

	CU_ASSERT_PTR_NULL(mst_pages_map(-1, 8 * MIB, PROT_READ));
	CU_ASSERT_PTR_NULL(mst_pages_map(-1, MIB, PROT_READ));
	CU_ASSERT_EQUAL(reserved(), before);
}

static void gathering_changes_no_byte(void)
{
	const size_t bytes = 9 * MIB;
	int fd = memory_of(bytes);
	uint8_t *p = mapped(fd, bytes, PROT_READ | PROT_WRITE);

	for (size_t i = 0; i < bytes; i += 3 * 4096) /* a page of three, and holes between them */
		memset(p + i, (int)(i >> 12), 4096);
	(void)mst_pages_gather(p + 12345, bytes - 12345);
	for (size_t i = 0; i < bytes; i += 4096) {
		uint8_t value = i % (3 * 4096) == 0 ? (uint8_t)(i >> 12) : 0;
		CU_ASSERT_FATAL(p[i] == value && p[i + 4095] == value);
	}
	munmap(p, bytes);
	close(fd);
}

/* One end asks; the other's mapping, read-only and made before or after, has them too. */
static void both_ends_have_them(void)
{
	const size_t bytes = 8 * MIB + 4096;
	int fd = memory_of(bytes);
	uint8_t *p = mapped(fd, bytes, PROT_READ | PROT_WRITE);
	uint8_t *before = mapped(fd, bytes, PROT_READ);
	volatile uint8_t sum = before[MIB];

	if (!mst_pages_gather(p, bytes)) {
		printf("\n    this host gathers no huge pages: nothing to be seen here\n");
	} else {
		uint8_t *after = mapped(fd, bytes, PROT_READ);
		for (size_t i = 0; i < bytes; i += 4096)
			sum = (uint8_t)(sum + before[i] + after[i] + p[i]);
		CU_ASSERT_EQUAL(figure_of(p, "ShmemPmdMapped:"), 8 * MIB);
		CU_ASSERT_EQUAL(figure_of(before, "ShmemPmdMapped:"), 8 * MIB);
		CU_ASSERT_EQUAL(figure_of(after, "ShmemPmdMapped:"), 8 * MIB);
		munmap(after, bytes);
	}
	munmap(before, bytes);
	munmap(p, bytes);
	close(fd);
}

/* Where each huge page costs the move of other memory: a start of 7 s was seen. */
static void gathering_ends_when_it_is_slower_than_small_pages(void)
{
	uint64_t behind_ns = 0;
	unsigned slow = 0;

	for (int i = 0; i < 1000; i++)
		CU_ASSERT(mst_pages_keeps_up(&behind_ns, MST_MS / 3));
	while (slow < 1000 && mst_pages_keeps_up(&behind_ns, 5 * MST_MS))
		slow++;
	CU_ASSERT(slow > 1 && slow < 10); /* the fast ones before do not pay for them */
	behind_ns = 0;
	for (int i = 0; i < 1000; i++) { /* one is slow now and then */
		CU_ASSERT(mst_pages_keeps_up(&behind_ns, 15 * MST_MS));
		for (int k = 0; k < 10; k++)
			CU_ASSERT(mst_pages_keeps_up(&behind_ns, MST_MS / 3));
	}
	CU_ASSERT(!mst_pages_keeps_up(&behind_ns, 30 * MST_MS));
}

static void only_what_is_asked_for_is_taken(void)
{
	int fd = memory_of(32 * MIB);
	uint8_t *p = mapped(fd, 32 * MIB, PROT_READ | PROT_WRITE);

	CU_ASSERT(!mst_pages_gather(p, MST_PAGES_LARGE - 4096));
	CU_ASSERT_EQUAL(taken(fd), 0);
	(void)mst_pages_gather(p + MIB, 8 * MIB);
	CU_ASSERT(taken(fd) <= 10 * MIB);
	munmap(p, 32 * MIB);
	close(fd);
}

static void what_is_published_is_all_taken(void)
{
	static const size_t sizes[] = { 8192, 3 * MIB, 4 * MIB, 9 * MIB + 4096 };

	for (unsigned i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t bytes = sizes[i / 2];
		struct mst_shm_memory *m;

		CU_ASSERT_EQUAL_FATAL(
			mst_shm_memory_new(bytes, MST_SHM_READABLE, i % 2, &m, UT_UNREAD), 0);
		CU_ASSERT(taken(m->fd) >= bytes);
		CU_ASSERT(taken(m->fd) < bytes + HUGE);
		for (size_t at = 0; at < bytes; at += 4096)
			CU_ASSERT_EQUAL_FATAL(m->base[at], 0);
		if (i % 2 == 0)
			CU_ASSERT_EQUAL(figure_of(m->base, "ShmemPmdMapped:"), 0);
		mst_shm_memory_drop(m);
	}
}

static void what_a_worker_lends_is_not(void)
{
	struct mst_shm_memory *m;

	CU_ASSERT_EQUAL_FATAL(mst_shm_memory_new(64 * MIB, MST_SHM_WRITABLE, true, &m, UT_UNREAD),
			      0);
	CU_ASSERT_EQUAL(taken(m->fd), 0);
	mst_shm_memory_drop(m);
}

static const struct mst_lanes lanes = { 4096, 4096, 4, 4 };

struct connector {
	pthread_t thread;
	struct mst_dial dial;
	struct mst_net *net;
	struct mst_link *link;
	int rc;
};

static void *dial(void *arg)
{
	struct connector *c = arg;

	c->rc = mst_shm.dial(c->net, &c->dial, &c->link, UT_UNREAD);
	return NULL;
}

static struct mst_net *net_open(bool huge_pages)
{
	struct mst_fabric fabric = MST_FABRIC_DEFAULT;
	struct mst_net_cfg cfg = { .fabric = &fabric, .links_max = 1 };
	struct mst_net *net;

	fabric.huge_pages = huge_pages;
	CU_ASSERT_EQUAL_FATAL(mst_shm.net_open(&cfg, &net, UT_UNREAD), 0);
	return net;
}

/* What the connector's link says when the acceptor wants huge pages, or does not. */
static bool link_says(bool wanted)
{
	struct mst_net *net = net_open(wanted);
	struct mst_link *link;
	struct mst_link_request request;
	struct mst_link_listener *listener;
	int rc;

	CU_ASSERT_EQUAL_FATAL(mst_shm.listener->open(net, &listener, UT_UNREAD), 0);
	struct connector c = { .net = net_open(!wanted),
			       .dial = { .address = listener->address,
					 .lanes = lanes,
					 .timeout_ns = 60 * MST_SECOND } };
	pthread_create(&c.thread, NULL, dial, &c);
	while ((rc = mst_shm.listener->next_request(listener, &request, UT_UNREAD)) == -EAGAIN)
		mst_sleep_ns(MST_MS);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	CU_ASSERT_EQUAL_FATAL(mst_shm.listener->answer(listener, &request, &link, UT_UNREAD), 0);
	pthread_join(c.thread, NULL);
	CU_ASSERT_EQUAL_FATAL(c.rc, 0);
	bool says = c.link->huge_pages;
	mst_shm.detach(c.link);
	mst_shm.link_free(c.link);
	mst_shm.link_free(link);
	mst_shm.listener->close(listener);
	mst_shm.net_close(c.net);
	mst_shm.net_close(net);
	return says;
}

static void the_acceptor_has_the_say(void)
{
	CU_ASSERT(link_says(true));
	CU_ASSERT(!link_says(false));
}

static CU_TestInfo cases[] = {
	{ "large mappings begin on a huge page", large_mappings_begin_on_a_huge_page },
	{ "nothing else stays mapped", nothing_else_stays_mapped },
	{ "what cannot be mapped is told", what_cannot_be_mapped_is_told },
	{ "gathering changes no byte", gathering_changes_no_byte },
	{ "both ends have them", both_ends_have_them },
	{ "gathering ends when it is slower than small pages",
	  gathering_ends_when_it_is_slower_than_small_pages },
	{ "only what is asked for is taken", only_what_is_asked_for_is_taken },
	{ "what is published is all taken", what_is_published_is_all_taken },
	{ "what a worker lends is not", what_a_worker_lends_is_not },
	{ "the acceptor has the say", the_acceptor_has_the_say },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("pages", cases);
}
