/* SPDX-License-Identifier: MIT */
/*
 * What a hostile peer can do over shared memory, and that nothing is left behind. The other end
 * here speaks to the door by hand: it has the transport's own header, and keeps to no rule of it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/transport/shm/shm.h"
#include "tests/ut.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static const struct mst_lanes lanes = { 4096, 8192, 4, 4 };

struct house { /* what is besieged */
	struct mst_net *net;
	struct mst_door *door;
};

static struct house house_open(void)
{
	struct mst_net_cfg cfg = { .published_bytes = 4096, .links_max = 4 };
	struct house h;

	CU_ASSERT_EQUAL_FATAL(mst_shm.net_open(&cfg, &h.net), 0);
	CU_ASSERT_EQUAL_FATAL(mst_shm.door->open(h.net, &h.door), 0);
	return h;
}

static void house_close(struct house *h)
{
	mst_shm.door->close(h->door);
	mst_shm.net_close(h->net);
}

static int call(const struct house *h)
{
	struct sockaddr_un at;
	socklen_t len;
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	CU_ASSERT_EQUAL(mst_shm_address(h->door->address, &at, &len), 0);
	CU_ASSERT_EQUAL_FATAL(connect(s, (struct sockaddr *)&at, len), 0);
	return s;
}

static struct mst_shm_hello hello_of(const struct mst_lanes *l)
{
	return (struct mst_shm_hello){ .magic = MST_SHM_MAGIC,
				       .version = MST_SHM_VERSION,
				       .up_bytes = l->up_bytes,
				       .down_bytes = l->down_bytes,
				       .up_credits = l->up_credits,
				       .down_credits = l->down_credits };
}

static size_t memory_bytes(void)
{
	struct mst_shm_layout layout;

	mst_shm_layout(&lanes, &layout);
	return layout.bytes;
}

static int memfd_of(size_t bytes, unsigned flags, int seals)
{
	int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
		fcntl(fd, F_ADD_SEALS, seals);
	return fd;
}

static int good_memfd(void)
{
	return memfd_of(memory_bytes(), 0, SEALS);
}

/* Says hello with @fd (and again, @fds times). Closes @fd. */
static void say(int s, struct mst_shm_hello hello, int fd, unsigned fds)
{
	struct mst_shm_parcel p = { .body = &hello, .bytes = sizeof(hello), .fd_count = fds };

	for (unsigned i = 0; i < fds; i++)
		p.fd[i] = fd;
	CU_ASSERT_EQUAL(mst_shm_send(s, &p), 0);
	close(fd);
}

/* The acceptor's word: what the welcome says, or -EPIPE if there is none. */
static int answer_to(int s)
{
	struct mst_shm_welcome welcome = { 0 };
	struct mst_shm_parcel p = { .body = &welcome, .bytes = sizeof(welcome) };
	struct pollfd pfd = { .fd = s, .events = POLLIN };

	poll(&pfd, 1, 3000);
	int rc = mst_shm_receive(s, &p);
	mst_shm_parcel_close(&p);
	return rc < 0 ? rc : welcome.error;
}

/* One who says this is not shown to the owner of the door, and hears that it is not welcome. */
static void expect_unseen(const struct mst_shm_hello *hello, int fd, unsigned fds)
{
	struct house h = house_open();
	struct mst_knock knock;
	int s = call(&h);

	CU_ASSERT(fd >= 0);
	say(s, *hello, fd, fds);
	CU_ASSERT_EQUAL(mst_shm.door->knock(h.door, &knock), -EAGAIN);
	CU_ASSERT(answer_to(s) < 0);
	close(s);
	house_close(&h);
}

static void memory_of_the_wrong_kind_is_refused(void)
{
	struct mst_shm_hello hello = hello_of(&lanes);
	size_t right = memory_bytes();

	expect_unseen(&hello, memfd_of(right - 4096, 0, SEALS), 1);
	expect_unseen(&hello, memfd_of(right + 1, 0, SEALS), 1);
	expect_unseen(&hello, memfd_of(0, 0, SEALS), 1);
	expect_unseen(&hello, memfd_of(right, 0, F_SEAL_GROW | F_SEAL_SEAL), 1);
	expect_unseen(&hello, memfd_of(right, 0, F_SEAL_SHRINK | F_SEAL_SEAL), 1);
	expect_unseen(&hello, memfd_of(right, 0, F_SEAL_SHRINK | F_SEAL_GROW), 1);
	expect_unseen(&hello, memfd_of(right, 0, SEALS | F_SEAL_WRITE), 1);
	expect_unseen(&hello, memfd_of(right, 0, SEALS | F_SEAL_FUTURE_WRITE), 1);
	expect_unseen(&hello, open("/dev/zero", O_RDWR | O_CLOEXEC), 1);
	expect_unseen(&hello, open("/proc/self/exe", O_RDONLY | O_CLOEXEC), 1);
}

static void memory_of_huge_pages_is_refused(void)
{
	struct mst_lanes huge = { 2 * 1024 * 1024 - 2 * 4096, 4096, 4, 4 };
	struct mst_shm_hello hello = hello_of(&huge);
	struct mst_shm_layout layout;

	CU_ASSERT_EQUAL(mst_shm_layout(&huge, &layout), 0);
	CU_ASSERT_EQUAL(layout.bytes, 2 * 1024 * 1024); /* so that its size is not what is wrong */
	expect_unseen(&hello, memfd_of(layout.bytes, MFD_HUGETLB, SEALS), 1);
}

static void read_only_memory_is_refused(void)
{
	struct mst_shm_hello hello = hello_of(&lanes);
	int fd = good_memfd();
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	expect_unseen(&hello, open(path, O_RDONLY | O_CLOEXEC), 1);
	close(fd);
}

static void number_of_descriptors_is_one(void)
{
	struct mst_shm_hello hello = hello_of(&lanes);

	for (unsigned fds = 0; fds <= MST_SHM_PARCEL_FDS; fds++)
		if (fds != 1)
			expect_unseen(&hello, good_memfd(), fds);
}

static void hello_out_of_order_is_refused(void)
{
	struct mst_shm_hello magic = hello_of(&lanes), version = magic, credits = magic,
			     bytes = magic, other = magic;

	magic.magic++;
	version.version++;
	credits.up_credits = MST_SHM_CREDITS_MAX + 1;
	bytes.up_bytes = UINT64_MAX - 4095;
	other.down_bytes += 4096;
	expect_unseen(&magic, good_memfd(), 1);
	expect_unseen(&version, good_memfd(), 1);
	expect_unseen(&credits, good_memfd(), 1);
	expect_unseen(&bytes, good_memfd(), 1);
	expect_unseen(&other, good_memfd(), 1);
}

static void other_version_is_told_so(void)
{
	struct house h = house_open();
	struct mst_shm_hello hello = hello_of(&lanes);
	struct mst_knock knock;
	int s = call(&h);

	hello.version = 99;
	say(s, hello, good_memfd(), 1);
	CU_ASSERT_EQUAL(mst_shm.door->knock(h.door, &knock), -EAGAIN);
	CU_ASSERT_EQUAL(answer_to(s), -EPROTONOSUPPORT);
	close(s);
	house_close(&h);
}

static void rubbish_and_silence_keep_nobody_out(void)
{
	struct house h = house_open();
	char rubbish[3000];
	int silent[200];
	struct mst_knock knock;

	memset(rubbish, 'x', sizeof(rubbish));
	for (int i = 0; i < 200; i++) {
		silent[i] = call(&h);
		if (i % 2 == 1) {
			ssize_t n = send(silent[i], rubbish, i % 4 == 1 ? sizeof(rubbish) : 1, 0);
			CU_ASSERT(n > 0);
		}
		/* More come than may wait, before and after one who is in order. */
		if (i == 100)
			say(silent[i], hello_of(&lanes), good_memfd(), 1);
		if (i == 0 || i == 50)
			CU_ASSERT_EQUAL(mst_shm.door->knock(h.door, &knock), -EAGAIN);
	}
	int rc = -EAGAIN;
	for (int i = 0; i < 10 && rc == -EAGAIN; i++)
		rc = mst_shm.door->knock(h.door, &knock);
	CU_ASSERT_EQUAL(rc, 0);
	CU_ASSERT_EQUAL(mst_shm.door->answer(h.door, &knock, NULL), 0);
	CU_ASSERT_EQUAL(answer_to(silent[100]), -EACCES);
	for (int i = 0; i < 200; i++)
		close(silent[i]);
	house_close(&h);
}

static void silent_caller_is_sent_away_in_time(void)
{
	struct house h = house_open();
	struct mst_knock knock;
	int s = call(&h);

	CU_ASSERT_EQUAL(mst_shm.door->knock(h.door, &knock), -EAGAIN);
	mst_sleep_ns(1100 * MST_MS);
	CU_ASSERT_EQUAL(mst_shm.door->knock(h.door, &knock), -EAGAIN);
	CU_ASSERT_EQUAL(answer_to(s), -ETIMEDOUT);
	close(s);
	house_close(&h);
}

/* A link whose other end is this mapping and this socket. */
struct siege {
	struct house house;
	struct mst_link *link;
	struct mst_shm_control *control;
	int socket;
};

static void siege_lay(struct siege *g)
{
	struct mst_knock knock;
	int fd = good_memfd();

	g->control = mmap(NULL, memory_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CU_ASSERT_NOT_EQUAL_FATAL(g->control, MAP_FAILED);
	g->socket = call(&g->house);
	say(g->socket, hello_of(&lanes), fd, 1);
	CU_ASSERT_EQUAL_FATAL(mst_shm.door->knock(g->house.door, &knock), 0);
	CU_ASSERT_EQUAL_FATAL(mst_shm.door->answer(g->house.door, &knock, &g->link), 0);
	CU_ASSERT_EQUAL(mst_shm.attach(g->house.net, g->link), 0);
}

static void siege_lift(struct siege *g)
{
	mst_shm.detach(g->link);
	mst_shm.link_free(g->link);
	munmap(g->control, memory_bytes());
	close(g->socket);
}

static void set(_Atomic uint32_t *word, uint32_t value)
{
	atomic_store_explicit(word, value, memory_order_release);
}

/* The link is lost with @error, and another one of the same net goes on. */
static void expect_lost(struct siege *g, int error)
{
	struct siege other = { .house = g->house };
	struct mst_net_event ev[4];

	siege_lay(&other);
	set(&other.control->up.tail, 1);
	int lost = 0, arrived = 0;
	for (int i = 0; i < 100; i++) {
		int n = mst_shm.poll(g->house.net, ev, 4);
		for (int k = 0; k < n; k++) {
			lost += ev[k].kind == MST_LOST && ev[k].link == g->link &&
				ev[k].error == error;
			arrived += ev[k].kind == MST_ARRIVED && ev[k].link == other.link;
		}
		CU_ASSERT_EQUAL(mst_shm.wait(g->house.net, MST_MS), 0);
	}
	CU_ASSERT_EQUAL(lost, 1);
	CU_ASSERT_EQUAL(arrived, 1);
	siege_lift(&other);
}

static void impossible_tail_is_a_lost_link(void)
{
	static const uint32_t tails[] = { 5, 8, 100, 0x80000000u, UINT32_MAX };

	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		struct siege g = { .house = house_open() };
		siege_lay(&g);
		set(&g.control->up.tail, tails[i]);
		expect_lost(&g, -EPROTO);
		set(&g.control->up.tail, 1); /* too late */
		CU_ASSERT_EQUAL(mst_shm.poll(g.house.net, &(struct mst_net_event){ 0 }, 1), 0);
		siege_lift(&g);
		house_close(&g.house);
	}
}

static void tail_that_goes_back_is_a_lost_link(void)
{
	struct siege g = { .house = house_open() };
	struct mst_net_event ev[4];

	siege_lay(&g);
	set(&g.control->up.tail, 3);
	CU_ASSERT_EQUAL(mst_shm.poll(g.house.net, ev, 4), 3);
	set(&g.control->up.tail, 2);
	expect_lost(&g, -EPROTO);
	siege_lift(&g);
	house_close(&g.house);
}

static void impossible_head_is_a_lost_link(void)
{
	static const uint32_t heads[] = { 5, 1000, 0x80000000u, UINT32_MAX };
	struct mst_put put = { .notify = true };

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		struct siege g = { .house = house_open() };
		siege_lay(&g);
		for (int k = 0; k < 4; k++)
			CU_ASSERT_EQUAL(mst_shm.put(g.link, &put), 1);
		set(&g.control->down.head, heads[i]);
		CU_ASSERT_EQUAL(mst_shm.put(g.link, &put), -EPIPE);
		CU_ASSERT_EQUAL(mst_shm.put(g.link, &put), -EPIPE);
		expect_lost(&g, -EPROTO);
		siege_lift(&g);
		house_close(&g.house);
	}
}

static void words_on_the_socket_are_a_lost_link(void)
{
	struct siege g = { .house = house_open() };

	siege_lay(&g);
	CU_ASSERT_EQUAL(send(g.socket, "hello?", 6, 0), 6);
	expect_lost(&g, -EPROTO);
	siege_lift(&g);
	house_close(&g.house);
}

static void hole_punched_in_the_memory_reads_as_zero(void)
{
	struct siege g = { .house = house_open() };
	struct mst_net_event ev;
	int fd = good_memfd();
	struct mst_knock knock;

	g.control = mmap(NULL, memory_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	g.socket = call(&g.house);
	say(g.socket, hello_of(&lanes), dup(fd), 1);
	CU_ASSERT_EQUAL_FATAL(mst_shm.door->knock(g.house.door, &knock), 0);
	CU_ASSERT_EQUAL_FATAL(mst_shm.door->answer(g.house.door, &knock, &g.link), 0);
	CU_ASSERT_EQUAL(mst_shm.attach(g.house.net, g.link), 0);
	set(&g.control->up.tail, 1);
	CU_ASSERT_EQUAL(mst_shm.poll(g.house.net, &ev, 1), 1);
	CU_ASSERT(ftruncate(fd, 0) < 0);
	CU_ASSERT_EQUAL(
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)memory_bytes()),
		0);
	CU_ASSERT_EQUAL(*(uint8_t *)g.link->landing, 0);
	expect_lost(&g, -EPROTO); /* the tail went back, to 0 */
	close(fd);
	siege_lift(&g);
	house_close(&g.house);
}

/* The descriptor that the connector gets to hear the acceptor's bell by: nobody can ring with it,
 * and the bell it rings itself is one that the acceptor never reads. */
static void bells_cannot_make_the_acceptor_block(void)
{
	struct siege g = { .house = house_open() };
	struct mst_shm_welcome welcome;
	struct mst_shm_parcel p = { .body = &welcome, .bytes = sizeof(welcome) };
	uint64_t full = UINT64_MAX - 1;
	struct mst_put put = { .notify = true };

	siege_lay(&g);
	CU_ASSERT_EQUAL_FATAL(mst_shm_receive(g.socket, &p), 0);
	CU_ASSERT_EQUAL_FATAL(p.fd_count, MST_SHM_WELCOME_FDS);
	CU_ASSERT(write(p.fd[MST_SHM_FD_DOWN_EAR], &full, sizeof(full)) < 0);
	CU_ASSERT_EQUAL(write(p.fd[MST_SHM_FD_UP_BELL], &full, sizeof(full)), 8);
	CU_ASSERT_EQUAL(fcntl(p.fd[MST_SHM_FD_UP_BELL], F_SETFL, 0), 0);
	set(&g.control->asleep, 1);
	uint64_t begin = mst_now_ns();
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(mst_shm.put(g.link, &put), 1);
	for (int i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(mst_shm.wait(g.house.net, MST_MS), 0);
	CU_ASSERT(mst_now_ns() - begin < MST_SECOND);
	set(&g.control->up.tail, 1); /* and the link lives */
	CU_ASSERT_EQUAL(mst_shm.poll(g.house.net, &(struct mst_net_event){ 0 }, 1), 1);
	mst_shm_parcel_close(&p);
	siege_lift(&g);
	house_close(&g.house);
}

/* Lets this process open @more descriptors. Return: the limit that there was. */
static struct rlimit leave_descriptors(rlim_t more)
{
	struct rlimit was, low;
	int next = dup(STDIN_FILENO);

	close(next);
	getrlimit(RLIMIT_NOFILE, &was);
	low = was;
	low.rlim_cur = (rlim_t)next + more;
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &low), 0);
	return was;
}

static void want_of_descriptors_passes(void)
{
	struct house h = house_open();
	struct mst_link *link = NULL;
	struct mst_knock knock;
	int first = call(&h), second = call(&h);

	say(first, hello_of(&lanes), good_memfd(), 1);
	say(second, hello_of(&lanes), good_memfd(), 1);
	struct rlimit was = leave_descriptors(0);
	CU_ASSERT_EQUAL(mst_shm.door->knock(h.door, &knock), -EMFILE);
	setrlimit(RLIMIT_NOFILE, &was);
	CU_ASSERT_EQUAL(mst_shm.door->knock(h.door, &knock), 0);
	leave_descriptors(2); /* of the three that letting in takes */
	CU_ASSERT_EQUAL(mst_shm.door->answer(h.door, &knock, &link), -EMFILE);
	CU_ASSERT_PTR_NULL(link);
	CU_ASSERT_EQUAL(answer_to(first), -EMFILE);
	setrlimit(RLIMIT_NOFILE, &was);
	CU_ASSERT_EQUAL(mst_shm.door->knock(h.door, &knock), 0);
	CU_ASSERT_EQUAL(mst_shm.door->answer(h.door, &knock, &link), 0);
	mst_shm.link_free(link);
	close(first);
	close(second);
	house_close(&h);
}

static void ends_in_one_process_share_a_mapping(void)
{
	struct mst_shm_memory *made, *same, *other;

	CU_ASSERT_EQUAL_FATAL(mst_shm_memory_new(8192, MST_SHM_WRITABLE, false, &made), 0);
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

/* Entries of a directory; its own descriptor, for /proc/self/fd, is counted each time alike. */
static int entries(const char *path)
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

static void nothing_is_left_behind(void)
{
	int fds = entries("/proc/self/fd"), shm = entries("/dev/shm");
	int maps = entries("/proc/self/map_files");

	for (int i = 0; i < 300; i++) {
		struct siege g = { .house = house_open() };
		siege_lay(&g);
		siege_lift(&g);
		siege_lay(&g);
		siege_lift(&g);
		int unanswered = call(&g.house);
		house_close(&g.house);
		close(unanswered);
	}
	CU_ASSERT_EQUAL(entries("/proc/self/fd"), fds);
	CU_ASSERT_EQUAL(entries("/dev/shm"), shm);
	CU_ASSERT(entries("/proc/self/map_files") <= maps + 16); /* malloc's own may come */
}

static CU_TestInfo cases[] = {
	{ "memory of the wrong kind is refused", memory_of_the_wrong_kind_is_refused },
	{ "memory of huge pages is refused", memory_of_huge_pages_is_refused },
	{ "read-only memory is refused", read_only_memory_is_refused },
	{ "a hello has one descriptor", number_of_descriptors_is_one },
	{ "a hello out of order is refused", hello_out_of_order_is_refused },
	{ "another version is told so", other_version_is_told_so },
	{ "rubbish and silence keep nobody out", rubbish_and_silence_keep_nobody_out },
	{ "a silent caller is sent away in time", silent_caller_is_sent_away_in_time },
	{ "an impossible tail is a lost link, others go on", impossible_tail_is_a_lost_link },
	{ "a tail that goes back is a lost link", tail_that_goes_back_is_a_lost_link },
	{ "an impossible head is a lost link", impossible_head_is_a_lost_link },
	{ "words on the socket are a lost link", words_on_the_socket_are_a_lost_link },
	{ "a hole punched in the memory reads as zero", hole_punched_in_the_memory_reads_as_zero },
	{ "bells cannot make the acceptor block", bells_cannot_make_the_acceptor_block },
	{ "want of descriptors is told, and passes", want_of_descriptors_passes },
	{ "ends in one process share a mapping", ends_in_one_process_share_a_mapping },
	{ "nothing is left behind", nothing_is_left_behind },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("shm hostile", cases);
}
