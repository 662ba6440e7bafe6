/* SPDX-License-Identifier: MIT */
/*
 * What the net's thread and the thread of its io leave to each other, and what of a link comes
 * first. No clock decides: the linker puts stand-ins before some calls, in which the io's thread is
 * held until the net's thread, which is the test's, has done its part.
 */
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/transport/tcp/attack.h"

#define LINKS 3

int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __real_mst_tcp_in_step(struct mst_tcp_link *l);
int __wrap_mst_tcp_in_step(struct mst_tcp_link *l);
bool __real_mst_spsc_pop(struct mst_spsc *ring, void *element);
bool __wrap_mst_spsc_pop(struct mst_spsc *ring, void *element);

/* ---- where the io's thread is held ---- */

/* It stops the thread once. */
struct halt {
	atomic_bool set;
	sem_t reached, released;
};

static struct {
	pthread_t owner;   /* the net's thread */
	struct halt sleep; /* where the io's thread would sleep; then it only looks: */
	_Atomic int epoll; /* that it would sleep on */
	sem_t looked;
	_Atomic bool heard; /* something would have woken it */

	struct halt turn;   /* where it receives; then it waits until the net's thread is next */
	_Atomic int turns;  /* links at which it has received since */
	_Atomic int before; /* how many there were when the net's thread received */
	struct mst_tcp_io *io;

	struct halt pop; /* where it takes a write from this ring: */
	_Atomic(struct mst_spsc *) ring;

	_Atomic(struct mst_net *) waiting; /* it is woken once the io's thread has parked: */
	atomic_bool parked;
	sem_t unparked;

	bool bounded; /* steps of the net's thread end before their first byte */
} stand;

static bool is_owner(void)
{
	return pthread_equal(pthread_self(), stand.owner) != 0;
}

static void await(sem_t *event)
{
	uint64_t until_ns = mst_deadline_ns(PATIENCE_NS);

	while (sem_trywait(event) != 0 && mst_left_ns(until_ns) > 0)
		(void)__real_poll(NULL, 0, 1);
	CU_ASSERT_FATAL(mst_left_ns(until_ns) > 0);
}

/* The io's thread. Return: it was held. */
static bool hold(struct halt *halt)
{
	if (is_owner() || !atomic_exchange(&halt->set, false))
		return false;
	sem_post(&halt->reached);
	while (sem_wait(&halt->released) != 0)
		continue;
	return true;
}

/* Return: as poll(). */
static int park(struct pollfd *fds, nfds_t count)
{
	atomic_store(&stand.parked, true);
	mst_tcp.wake(atomic_load(&stand.waiting));
	int heard = __real_poll(fds, count, (int)(PATIENCE_NS / MST_MS));

	if (heard == 1)
		sem_post(&stand.unparked);
	return heard;
}

/* Where the io's thread would sleep, it looks instead whether it has been woken. */
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	if (!is_owner() && timeout_ms < 0)
		return park(fds, count);
	if (fds == NULL || fds->fd != atomic_load(&stand.epoll) || !hold(&stand.sleep))
		return __real_poll(fds, count, timeout_ms);
	int heard = __real_poll(fds, count, 0);
	atomic_store(&stand.heard, heard > 0);
	sem_post(&stand.looked);
	return heard > 0 ? heard : __real_poll(fds, count, timeout_ms);
}

/* The net's thread holds `turn` while it waits for a step to end. */
static void await_owner_s_turn(void)
{
	uint64_t until_ns = mst_deadline_ns(PATIENCE_NS);

	while (pthread_mutex_trylock(&stand.io->turn) == 0 && mst_left_ns(until_ns) > 0) {
		pthread_mutex_unlock(&stand.io->turn);
		sched_yield();
	}
}

int __wrap_mst_tcp_in_step(struct mst_tcp_link *l)
{
	if (is_owner())
		atomic_store(&stand.before, atomic_load(&stand.turns));
	else
		atomic_fetch_add(&stand.turns, 1);
	if (is_owner() && stand.bounded)
		return 1;
	if (hold(&stand.turn))
		await_owner_s_turn();
	return __real_mst_tcp_in_step(l);
}

bool __wrap_mst_spsc_pop(struct mst_spsc *ring, void *element)
{
	if (ring == atomic_load(&stand.ring))
		(void)hold(&stand.pop);
	return __real_mst_spsc_pop(ring, element);
}

/* ---- the scene ---- */

static struct mst_tcp_io *io_of(const struct mst_net *net)
{
	return &((struct mst_tcp_net *)net)->io[1];
}

/* Its thread comes there soon. */
static void await_at(struct halt *halt, const struct mst_tcp_io *io)
{
	atomic_store(&halt->set, true);
	mst_tcp_io_notify(io);
	await(&halt->reached);
}

/* A target whose io's thread is about to sleep. */
static void begin(struct tcp_attack *g)
{
	attack_begin(g);
	atomic_store(&stand.epoll, io_of(g->target.net)->epoll);
	await_at(&stand.sleep, io_of(g->target.net));
}

static void end(struct tcp_attack *g)
{
	atomic_store(&stand.epoll, -1);
	attack_end(g);
}

/* Sends a word, and returns once it is at the link. */
static void send_word(const struct mst_link *link, int fd, uint64_t word)
{
	struct pollfd pfd = { .fd = ((const struct mst_tcp_link *)link)->conn.fd,
			      .events = POLLIN };

	send_frame(fd, (struct mst_tcp_frame){ .kind = MST_TCP_WRITE, .length = sizeof(word) },
		   &word);
	CU_ASSERT_EQUAL_FATAL(__real_poll(&pfd, 1, (int)(PATIENCE_NS / MST_MS)), 1);
}

static void expect_word(const struct mst_link *link, uint64_t word)
{
	uint64_t until_ns = mst_deadline_ns(PATIENCE_NS);
	const _Atomic uint64_t *at = link->inbound;

	while (atomic_load(at) != word && mst_left_ns(until_ns) > 0)
		sched_yield();
	CU_ASSERT_EQUAL(atomic_load(at), word);
}

/* ---- cases ---- */

/* The net's thread has taken the event of a connection, has not received all, and goes away. No
 * other event comes of what is there: it has to wake the thread of the io. */
static void leave_work(bool waits)
{
	struct tcp_attack g;
	struct mst_net_event ev;

	begin(&g);
	send_word(g.link, g.fd, 7);
	stand.bounded = true;
	CU_ASSERT_EQUAL(waits ? mst_tcp.wait(g.target.net, 0) : mst_tcp.poll(g.target.net, &ev, 1),
			0);
	stand.bounded = false;
	sem_post(&stand.sleep.released);
	await(&stand.looked);
	CU_ASSERT(atomic_load(&stand.heard));
	if (atomic_load(&stand.heard))
		expect_word(g.link, 7);
	end(&g);
}

static void what_a_poll_leaves_is_received_by_the_thread(void)
{
	leave_work(false);
}

static void what_a_wait_leaves_is_received_by_the_thread(void)
{
	leave_work(true);
}

/* It parks, because the net's thread waits and nothing comes. Then that thread goes away. */
static void a_thread_that_has_parked_takes_over_after_the_wait(void)
{
	uint64_t word = 7, until_ns = mst_deadline_ns(PATIENCE_NS);
	struct tcp_attack g;

	target_fabric.link_timeout_ns = MST_SECOND; /* it looks by itself who does the work */
	attack_begin(&g);
	atomic_store(&stand.waiting, g.target.net);
	while (!atomic_load(&stand.parked) && mst_left_ns(until_ns) > 0)
		CU_ASSERT_EQUAL(mst_tcp.wait(g.target.net, PATIENCE_NS), 0);
	await(&stand.unparked);
	send_frame(g.fd, (struct mst_tcp_frame){ .kind = MST_TCP_WRITE, .length = sizeof(word) },
		   &word);
	expect_word(g.link, 7);
	attack_end(&g);
	target_fabric.link_timeout_ns = MST_LINK_TIMEOUT_MAX_NS;
}

/* Three links have something, and the io's thread is at the first of them. */
static void who_wants_a_link_waits_for_the_step_of_one(void)
{
	struct tcp_attack g;
	struct mst_link *link[LINKS];
	int fd[LINKS];

	attack_begin(&g);
	for (int i = 0; i < LINKS; i++)
		link[i] = i > 0 ? let_in(&g.target, &fd[i]) : g.link;
	fd[0] = g.fd;
	stand.io = io_of(g.target.net);
	atomic_store(&stand.epoll, stand.io->epoll);
	await_at(&stand.sleep, stand.io);
	for (int i = 0; i < LINKS; i++)
		send_word(link[i], fd[i], 7);
	atomic_store(&stand.turns, 0);
	atomic_store(&stand.turn.set, true);
	sem_post(&stand.sleep.released);
	await(&stand.turn.reached);
	sem_post(&stand.turn.released);
	mst_tcp_io_catch_up(stand.io, (struct mst_tcp_link *)link[0]);
	CU_ASSERT_EQUAL(atomic_load(&stand.before), 1);
	await(&stand.looked);
	for (int i = 0; i < LINKS; i++)
		expect_word(link[i], 7);
	for (int i = 1; i < LINKS; i++) {
		mst_tcp.detach(link[i]);
		mst_tcp.link_free(link[i]);
		close(fd[i]);
	}
	end(&g);
}

static void receive_frame(int fd, struct mst_tcp_frame *f, uint64_t *word)
{
	uint8_t head[MST_TCP_FRAME_BYTES];
	struct timeval patience = { .tv_sec = PATIENCE_NS / MST_SECOND };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	CU_ASSERT_EQUAL_FATAL(recv(fd, head, sizeof(head), MSG_WAITALL), (ssize_t)sizeof(head));
	mst_tcp_frame_decode(head, f);
	CU_ASSERT_FATAL(f->length <= sizeof(*word));
	if (f->length > 0)
		CU_ASSERT_EQUAL(recv(fd, word, f->length, MSG_WAITALL), (ssize_t)f->length);
}

/* Both are put while the io's thread, which has found nothing to send yet, is about to look for the
 * notice. */
static void an_urgent_word_is_composed_before_a_later_notice(void)
{
	static const uint64_t said = UINT64_C(0x0123456789abcdef);
	struct mst_put urgent = { .offset = 8, .src = &said, .bytes = 8, .urgent = true };
	struct mst_put notice = { .notify = true, .imm = 5 };
	struct mst_tcp_frame f = { 0 };
	struct tcp_attack g;
	uint64_t word = 0;

	attack_begin(&g);
	atomic_store(&stand.ring, ((struct mst_tcp_link *)g.link)->writes);
	await_at(&stand.pop, io_of(g.target.net));
	CU_ASSERT_EQUAL(mst_tcp.put(g.link, &urgent), 1);
	CU_ASSERT(mst_tcp.put(g.link, &notice) >= 0);
	sem_post(&stand.pop.released);
	receive_frame(g.fd, &f, &word);
	CU_ASSERT(f.kind == MST_TCP_WRITE && f.offset == 8 && word == said);
	receive_frame(g.fd, &f, &word);
	CU_ASSERT(f.kind == MST_TCP_NOTIFY && f.imm == 5);
	atomic_store(&stand.ring, NULL);
	end(&g);
}

int main(void)
{
	static CU_TestInfo cases[] = {
		{ "what a poll leaves is received by the thread",
		  what_a_poll_leaves_is_received_by_the_thread },
		{ "what a wait leaves is received by the thread",
		  what_a_wait_leaves_is_received_by_the_thread },
		{ "a thread that has parked takes over after the wait",
		  a_thread_that_has_parked_takes_over_after_the_wait },
		{ "who wants a link waits for the step of one",
		  who_wants_a_link_waits_for_the_step_of_one },
		{ "an urgent word is composed before a later notice",
		  an_urgent_word_is_composed_before_a_later_notice },
		CU_TEST_INFO_NULL,
	};
	sem_t *event[] = { &stand.sleep.reached, &stand.sleep.released, &stand.looked,
			   &stand.turn.reached,  &stand.turn.released,  &stand.pop.reached,
			   &stand.pop.released,  &stand.unparked };

	for (size_t i = 0; i < sizeof(event) / sizeof(event[0]); i++)
		sem_init(event[i], 0, 0);
	stand.owner = pthread_self();
	atomic_store(&stand.epoll, -1);
	target_fabric.io_threads = 1;
	target_fabric.link_timeout_ns = MST_LINK_TIMEOUT_MAX_NS; /* nobody looks by itself */
	return ut_main("tcp_io", cases);
}
