/* SPDX-License-Identifier: MIT */
/*
 * The floor: what moving the bytes of a step over TCP takes, and nothing else. Each worker sends
 * its gradient over a connection of its own to one receiver, which, when it has all of them, sends
 * the gradient of rank 0 back to each. No sum, no frames, no timers. Started by compare.py; see
 * meter.h for the options.
 *
 * BENCH_NETNS in the environment is the beginning of the paths of network namespaces: the receiver
 * enters the one that ends with s, the workers those that end with w0, w1 ... BENCH_ADDRESS: where
 * the receiver listens, if not on 127.0.0.1.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/peers/meter.h"

#define LOOKS 200u /* before it sleeps: another process has the core, for a short time */
#define SHORT_BYTES (64 << 10) /* whoever moves more sleeps at once: another has it for long */
#define PIECE_BYTES ((size_t)1 << 20)

/* One connection, and how far it is in what is sent or received. */
struct peer {
	int fd;
	float *buffer;
	size_t done;
};

static int fail(const char *what)
{
	fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
	return -1;
}

/* The namespace "PREFIX<name>"; none where there is no prefix. */
static int enter(const char *prefix, const char *name)
{
	char path[256];

	if (prefix == NULL)
		return 0;
	snprintf(path, sizeof(path), "%s%s", prefix, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET) != 0)
		return fail(path);
	close(fd);
	return 0;
}

static int enter_worker(const char *prefix, unsigned rank)
{
	char name[16];

	snprintf(name, sizeof(name), "w%u", rank);
	return enter(prefix, name);
}

/* Moves what can be moved at once. Return: bytes, 0 for none; -1. */
static ssize_t move(struct peer *p, size_t bytes, bool receive)
{
	uint8_t *at = (uint8_t *)p->buffer + p->done;
	size_t left = bytes - p->done < PIECE_BYTES ? bytes - p->done : PIECE_BYTES;
	ssize_t n = receive ? recv(p->fd, at, left, MSG_DONTWAIT)
			    : send(p->fd, at, left, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -1;
	p->done += (size_t)n;
	return n;
}

static int sleep_for(struct peer *peers, unsigned count, size_t bytes, bool receive)
{
	struct pollfd pfd[METER_WORKERS_MAX];

	for (unsigned i = 0; i < count; i++)
		pfd[i] = (struct pollfd){ .fd = peers[i].done < bytes ? peers[i].fd : -1,
					  .events = receive ? POLLIN : POLLOUT };
	return poll(pfd, count, -1) < 0 && errno != EINTR ? -1 : 0;
}

/* All peers send or receive @bytes. Looks, yields, then sleeps. 0; -1. */
static int move_all(struct peer *peers, unsigned count, size_t bytes, bool receive)
{
	unsigned left = count, idle = 0, looks = bytes > SHORT_BYTES ? 0 : LOOKS;

	for (unsigned i = 0; i < count; i++)
		peers[i].done = 0;
	while (left > 0) {
		bool moved = false;
		for (unsigned i = 0; i < count; i++) {
			if (peers[i].done == bytes)
				continue;
			ssize_t n = move(&peers[i], bytes, receive);
			if (n < 0)
				return -1;
			moved |= n > 0;
			left -= n > 0 && peers[i].done == bytes;
		}
		idle = moved ? 0 : idle + 1;
		if (idle > looks && sleep_for(peers, count, bytes, receive) != 0)
			return -1;
		if (idle > 0 && idle <= looks)
			sched_yield();
	}
	return 0;
}

/* ---- the receiver ---- */

static int listen_at(struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*at);

	if (fd < 0 || bind(fd, (struct sockaddr *)at, sizeof(*at)) != 0 ||
	    listen(fd, METER_WORKERS_MAX) != 0 || getsockname(fd, (struct sockaddr *)at, &len) != 0)
		return fail("listen");
	return fd;
}

/* A connection begins with the rank. */
static int accept_all(int listener, struct peer *peers, unsigned count, size_t bytes)
{
	int on = 1;

	for (unsigned i = 0; i < count; i++) {
		uint32_t rank;
		int fd = accept(listener, NULL, NULL);
		if (fd < 0 || recv(fd, &rank, sizeof(rank), MSG_WAITALL) != sizeof(rank) ||
		    rank >= count)
			return fail("accept");
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		peers[rank] = (struct peer){ .fd = fd, .buffer = calloc(1, bytes) };
		if (peers[rank].buffer == NULL)
			return fail("memory");
	}
	return 0;
}

/* Until the workers end their connections. */
static int serve(int listener, unsigned count, size_t bytes)
{
	struct peer peers[METER_WORKERS_MAX], answers[METER_WORKERS_MAX];

	prctl(PR_SET_NAME, "receiver");
	if (accept_all(listener, peers, count, bytes) != 0)
		return EXIT_FAILURE;
	for (unsigned i = 0; i < count; i++)
		answers[i] = (struct peer){ .fd = peers[i].fd, .buffer = peers[0].buffer };
	while (move_all(peers, count, bytes, true) == 0 &&
	       move_all(answers, count, bytes, false) == 0)
		;
	return EXIT_SUCCESS;
}

/* ---- a worker ---- */

static int dial(const struct sockaddr_in *at, uint32_t rank)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0 || connect(fd, (const struct sockaddr *)at, sizeof(*at)) != 0 ||
	    send(fd, &rank, sizeof(rank), 0) != sizeof(rank))
		return fail("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

static int steps(struct meter *m, int fd, float *gradient, float *result)
{
	size_t bytes = meter_course(m)->elems * sizeof(float);
	struct peer up = { .fd = fd, .buffer = gradient }, down = { .fd = fd, .buffer = result };

	for (uint64_t tag = 0;; tag++) {
		meter_fill(m, gradient, tag);
		if (!meter_next(m))
			return 0;
		if (move_all(&up, 1, bytes, false) != 0 || move_all(&down, 1, bytes, true) != 0)
			return fail("the receiver is gone");
		meter_done(m);
		meter_meet(m);
		meter_check(m, result, tag, 1, 1);
	}
}

static int work(struct meter *m, const struct sockaddr_in *at, unsigned rank)
{
	uint64_t elems = meter_course(m)->elems;
	float *gradient = calloc(elems, sizeof(float)), *result = calloc(elems, sizeof(float));
	int rc = gradient == NULL || result == NULL ? fail("memory") : meter_join(m, rank);
	int fd = rc == 0 && enter_worker(getenv("BENCH_NETNS"), rank) == 0 ? dial(at, rank) : -1;

	if (fd >= 0)
		rc = steps(m, fd, gradient, result);
	int status = meter_close(m);
	free(gradient);
	free(result);
	return fd < 0 || rc != 0 ? EXIT_FAILURE : status;
}

int main(int argc, char **argv)
{
	struct meter *m = meter_open(argc, argv);
	const char *address = getenv("BENCH_ADDRESS");
	struct sockaddr_in at = { .sin_family = AF_INET };
	int status = EXIT_SUCCESS, one;

	if (m == NULL || meter_course(m)->delay_ms > 0 ||
	    inet_pton(AF_INET, address != NULL ? address : "127.0.0.1", &at.sin_addr) != 1)
		return 2;
	unsigned count = meter_course(m)->workers;
	if (enter(getenv("BENCH_NETNS"), "s") != 0)
		return EXIT_FAILURE;
	int listener = listen_at(&at);
	if (listener < 0)
		return EXIT_FAILURE;
	if (fork() == 0)
		_exit(serve(listener, count, meter_course(m)->elems * sizeof(float)));
	close(listener);
	for (unsigned rank = 0; rank < count; rank++)
		if (fork() == 0)
			_exit(work(m, &at, rank));
	while (wait(&one) > 0)
		status = one != 0 ? EXIT_FAILURE : status;
	return status;
}
