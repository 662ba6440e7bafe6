/* SPDX-License-Identifier: MIT */
/*
 * Stand-ins for the calls the verbs transport makes, put in by the linker: any one of them can be
 * made to fail, and what they give is counted, so that nothing can be kept unseen.
 *
 * Faults are of the thread that asks for them. Memory fails with ENOMEM, all else with EIO. Only
 * ibv_is_fork_initialized() cannot fail: it answers as on a kernel that does not copy pinned pages.
 */
#ifndef MST_TESTS_TRANSPORT_VERBS_FAULTS_H
#define MST_TESTS_TRANSPORT_VERBS_FAULTS_H

#include <stdbool.h>

#define FAULTS(X)                                                                                  \
	X(calloc)                                                                                  \
	X(mmap)                                                                                    \
	X(madvise)                                                                                 \
	X(fcntl)                                                                                   \
	X(epoll_create1)                                                                           \
	X(epoll_ctl)                                                                               \
	X(eventfd)                                                                                 \
	X(getifaddrs)                                                                              \
	X(getrandom)                                                                               \
	X(ibv_get_device_list)                                                                     \
	X(ibv_open_device)                                                                         \
	X(ibv_query_device)                                                                        \
	X(ibv_query_gid_table)                                                                     \
	X(ibv_create_comp_channel)                                                                 \
	X(ibv_alloc_pd)                                                                            \
	X(ibv_create_cq)                                                                           \
	X(ibv_create_qp)                                                                           \
	X(ibv_modify_qp)                                                                           \
	X(ibv_is_fork_initialized)                                                                 \
	X(ibv_reg_mr)                                                                              \
	X(ibv_post_recv)                                                                           \
	X(ibv_post_send)                                                                           \
	X(rdma_create_event_channel)                                                               \
	X(rdma_create_id)                                                                          \
	X(rdma_bind_addr)                                                                          \
	X(rdma_listen)                                                                             \
	X(rdma_resolve_addr)                                                                       \
	X(rdma_resolve_route)                                                                      \
	X(rdma_init_qp_attr)                                                                       \
	X(rdma_connect)                                                                            \
	X(rdma_accept)                                                                             \
	X(rdma_establish)                                                                          \
	X(rdma_migrate_id)

#define FAULT_AS_ENUM(name) FAULT_##name,
enum fault { FAULTS(FAULT_AS_ENUM) FAULT_COUNT };

const char *fault_name(enum fault f);

/* From now on the @n-th call of this thread fails, counted from 1. */
void faults_arm(unsigned n);
/* The same, and it fails with @error. */
void faults_arm_with(unsigned n, int error);
/* No more. Return: what failed; FAULT_COUNT: there were fewer calls. */
enum fault faults_disarm(void);
/* How often it has been made to fail, in all threads. */
unsigned faults_of(enum fault f);

/* What is held now: devices, domains, queues, pairs, regions, channels, connections, mappings. */
#define HOLDINGS_MAX 10
struct holdings {
	int count[HOLDINGS_MAX];
};
struct holdings holdings_now(void);
bool holdings_same(const struct holdings *wanted);
/* And prints what there is more or less of. */
bool holdings_are(const struct holdings *wanted);

#endif
