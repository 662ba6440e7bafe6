/* SPDX-License-Identifier: MIT */
#include "tests/transport/tcp/attack.h"

#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

size_t target_lane = LANE;
struct mst_fabric target_fabric = MST_FABRIC_DEFAULT;

struct tcp_target target_open(void)
{
	struct mst_net_cfg cfg = { .published_bytes = (size_t)64 << 20,
				   .links_max = 8,
				   .fabric = &target_fabric };
	struct tcp_target h;

	target_fabric.addresses = "127.0.0.1";
	CU_ASSERT_EQUAL_FATAL(mst_tcp.net_open(&cfg, &h.net, UT_UNREAD), 0);
	CU_ASSERT_EQUAL_FATAL(mst_tcp_listener.open(h.net, &h.listener, UT_UNREAD), 0);
	return h;
}

void target_close(struct tcp_target *h)
{
	mst_tcp_listener.close(h->listener);
	mst_tcp.net_close(h->net);
}

int call(const struct tcp_target *h)
{
	struct mst_endpoints at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CU_ASSERT_EQUAL_FATAL(mst_endpoints_parse(h->listener->address, &mst_tcp, &at, UT_UNREAD),
			      0);
	CU_ASSERT_EQUAL_FATAL(connect(fd, &at.at[0].any, mst_endpoint_bytes(&at.at[0])), 0);
	mst_tcp_socket_prepare(fd);
	return fd;
}

void say(int fd, const void *bytes, size_t count)
{
	CU_ASSERT_EQUAL(send(fd, bytes, count, MSG_NOSIGNAL), (ssize_t)count);
}

struct mst_tcp_hello hello_of(uint8_t token)
{
	struct mst_tcp_hello hello = { .version = MST_TCP_VERSION,
				       .lanes = { target_lane, (size_t)32 << 20, CREDITS,
						  CREDITS } };

	memset(hello.token, token, sizeof(hello.token));
	return hello;
}

void say_hello(int fd, const struct mst_tcp_hello *hello)
{
	uint8_t text[MST_TCP_HELLO_BYTES];

	mst_tcp_hello_encode(hello, text);
	say(fd, text, sizeof(text));
}

int answer_to(int fd)
{
	uint8_t text[MST_TCP_ANSWER_BYTES];
	struct mst_tcp_answer answer;
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	CU_ASSERT_EQUAL(poll(&pfd, 1, (int)(PATIENCE_NS / MST_MS)), 1);
	if (recv(fd, text, sizeof(text), MSG_WAITALL) != (ssize_t)sizeof(text))
		return -EPIPE;
	CU_ASSERT_EQUAL(mst_tcp_answer_decode(text, &answer), 0);
	return answer.error;
}

int next_request(struct tcp_target *h, struct mst_link_request *out)
{
	struct pollfd pfd = { .fd = mst_tcp_listener.fd(h->listener), .events = POLLIN };
	int rc = mst_tcp_listener.next_request(h->listener, out, UT_UNREAD);

	for (int i = 0; i < 600 && rc == -EAGAIN; i++) {
		(void)poll(&pfd, 1, 100);
		rc = mst_tcp_listener.next_request(h->listener, out, UT_UNREAD);
	}
	return rc;
}

struct mst_link *let_in(struct tcp_target *h, int *fd)
{
	struct mst_tcp_hello hello = hello_of(1);
	struct mst_link_request request;
	struct mst_link *link = NULL;

	*fd = call(h);
	say_hello(*fd, &hello);
	CU_ASSERT_EQUAL_FATAL(next_request(h, &request), 0);
	CU_ASSERT_EQUAL_FATAL(mst_tcp_listener.answer(h->listener, &request, &link, UT_UNREAD), 0);
	CU_ASSERT_EQUAL_FATAL(mst_tcp.attach(h->net, link, UT_UNREAD), 0);
	CU_ASSERT_EQUAL(answer_to(*fd), 0);
	return link;
}

void attack_begin(struct tcp_attack *g)
{
	g->target = target_open();
	g->link = let_in(&g->target, &g->fd);
}

void attack_end(struct tcp_attack *g)
{
	mst_tcp.detach(g->link);
	mst_tcp.link_free(g->link);
	if (g->fd >= 0)
		close(g->fd);
	target_close(&g->target);
}

void send_frame(int fd, struct mst_tcp_frame f, const void *payload)
{
	uint8_t head[MST_TCP_FRAME_BYTES];

	mst_tcp_frame_encode(&f, head);
	say(fd, head, sizeof(head));
	if (payload != NULL)
		say(fd, payload, f.length);
}

int poll_for(struct mst_net *net, struct mst_net_event *ev, int count, uint64_t timeout_ns)
{
	uint64_t until_ns = mst_deadline_ns(timeout_ns);
	int got = 0;

	while (got < count && mst_left_ns(until_ns) > 0) {
		int n = mst_tcp.poll(net, ev + got, count - got);
		got += n;
		if (n == 0)
			mst_tcp.wait(net, 10 * MST_MS);
	}
	return got;
}

void expect_lost(struct tcp_attack *g, int error, const char *words)
{
	struct mst_net_event ev = { 0 };

	CU_ASSERT_EQUAL(poll_for(g->target.net, &ev, 1, PATIENCE_NS), 1);
	CU_ASSERT_EQUAL(ev.kind, MST_LOST);
	CU_ASSERT_PTR_EQUAL(ev.link, g->link);
	CU_ASSERT_EQUAL(ev.error, error);
	CU_ASSERT_PTR_NOT_NULL(strstr(g->link->why.text, words));
	CU_ASSERT_EQUAL(poll_for(g->target.net, &ev, 1, 20 * MST_MS), 0);
}

void play_dead(int fd)
{
	struct sock_filter none = { BPF_RET | BPF_K, 0, 0, 0 };
	struct sock_fprog drop = { 1, &none };

	CU_ASSERT_EQUAL(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &drop, sizeof(drop)), 0);
}

int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int count = -3; /* of the two dots, and its own */

	while (d != NULL && readdir(d) != NULL)
		count++;
	if (d != NULL)
		closedir(d);
	return count;
}
