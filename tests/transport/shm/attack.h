/* SPDX-License-Identifier: MIT */
/*
 * An acceptor over shared memory that is attacked: its net and its listener, callers that speak to
 * the listener by hand, and links whose other end is a mapping and a socket of the test's. They
 * have the transport's own header, and keep to no rule of it.
 */
#ifndef MST_TESTS_TRANSPORT_SHM_ATTACK_H
#define MST_TESTS_TRANSPORT_SHM_ATTACK_H

#include "common/transport/shm/shm.h"
#include "tests/ut.h"

extern const struct mst_lanes lanes; /* of a link that is in order */

struct shm_target { /* what is attacked */
	struct mst_net *net;
	struct mst_link_listener *listener;
};

struct shm_target target_open(void);
void target_close(struct shm_target *h);
int call(const struct shm_target *h);
struct mst_shm_hello hello_of(const struct mst_lanes *l);
size_t memory_bytes(void); /* of a link with those lanes */
int memfd_of(size_t bytes, unsigned flags, int seals);
int good_memfd(void);
/* Says hello with @fd (and again, @fds times). Closes @fd. */
void say(int s, struct mst_shm_hello hello, int fd, unsigned fds);
/* The acceptor's word: what the welcome says, or -EPIPE if there is none. */
int answer_to(int s);

/* A link whose other end is this mapping and this socket. */
struct shm_attack {
	struct shm_target target;
	struct mst_link *link;
	struct mst_shm_control *control;
	int socket;
};

void attack_begin(struct shm_attack *g);
void attack_lift(struct shm_attack *g);
void set(_Atomic uint32_t *word, uint32_t value);
/* The link is lost with @error, and another one of the same net goes on. */
void expect_lost(struct shm_attack *g, int error);

/* Entries of a directory; its own descriptor, for /proc/self/fd, is counted each time alike. */
int entries(const char *path);
/* What callers have brought is closed by a thread, soon. Return: how many descriptors are open. */
int fds_in_the_end(int wanted);

#endif
