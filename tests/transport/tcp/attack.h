/* SPDX-License-Identifier: MIT */
/*
 * An acceptor over TCP that is attacked: its net and its listener, callers that speak to it by
 * hand, and links whose other end is a socket of the test's, which keeps to no rule.
 */
#ifndef MST_TESTS_TRANSPORT_TCP_ATTACK_H
#define MST_TESTS_TRANSPORT_TCP_ATTACK_H

#include "common/base/clock.h"
#include "common/transport/tcp/tcp.h"
#include "tests/ut.h"

#define PATIENCE_NS (60 * MST_SECOND)
#define LANE 4096u
#define CREDITS 4u

struct tcp_target {
	struct mst_net *net;
	struct mst_link_listener *listener;
};

/* What a link's inbound region has, at the target's end: LANE if a test sets nothing else. */
extern size_t target_lane;
/* The options of all targets; 0 and the usual time if a test does not set them. */
extern struct mst_fabric target_fabric;

struct tcp_target target_open(void);
void target_close(struct tcp_target *h);
/* A connection to its listener. */
int call(const struct tcp_target *h);
void say(int fd, const void *bytes, size_t count);
struct mst_tcp_hello hello_of(uint8_t token);
void say_hello(int fd, const struct mst_tcp_hello *hello);
/* What the acceptor's answer says; -EPIPE: it hung up without one. */
int answer_to(int fd);
/* The next at the listener; -EAGAIN: nobody came. */
int next_request(struct tcp_target *h, struct mst_link_request *out);

/* A link of the target's whose other end is @fd. */
struct tcp_attack {
	struct tcp_target target;
	struct mst_link *link;
	int fd;
};

/* One of a target that is there; and one with a target of its own. */
struct mst_link *let_in(struct tcp_target *h, int *fd);
void attack_begin(struct tcp_attack *g);
void attack_end(struct tcp_attack *g);
void send_frame(int fd, struct mst_tcp_frame f, const void *payload);
/* Polls until @count events have come, or @timeout_ns is over. Return: how many. */
int poll_for(struct mst_net *net, struct mst_net_event *ev, int count, uint64_t timeout_ns);
/* The next event is that the link is lost with @error, for a reason that has these words; and then
 * nothing comes. */
void expect_lost(struct tcp_attack *g, int error, const char *words);

/* From now on its kernel drops what comes to this socket: to the other end its host is dead. */
void play_dead(int fd);

/* Descriptors of this process. */
int descriptors(void);

#endif
