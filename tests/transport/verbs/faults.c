/* SPDX-License-Identifier: MIT */
#include "tests/transport/verbs/faults.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "common/base/assert.h"
#include "common/transport/verbs/verbs.h"

/* ---- which call fails ---- */

static _Thread_local unsigned fail_at, seen;
static _Thread_local int fail_with; /* 0: as the call mostly does */
static _Thread_local enum fault failed = FAULT_COUNT;
static _Atomic unsigned times[FAULT_COUNT];

const char *fault_name(enum fault f)
{
#define FAULT_AS_TEXT(name) #name,
	static const char *const names[] = { FAULTS(FAULT_AS_TEXT) "nothing" };
	return names[f];
}

void faults_arm(unsigned n)
{
	faults_arm_with(n, 0);
}

void faults_arm_with(unsigned n, int error)
{
	fail_at = n;
	fail_with = error;
	seen = 0;
	failed = FAULT_COUNT;
}

enum fault faults_disarm(void)
{
	fail_at = 0;
	return failed;
}

unsigned faults_of(enum fault f)
{
	return times[f];
}

static bool fails(enum fault f, int error)
{
	if (fail_at == 0 || ++seen != fail_at)
		return false;
	failed = f;
	times[f]++;
	errno = fail_with != 0 ? fail_with : error;
	return true;
}

/* ---- what is held ---- */

enum holding {
	DEVICE,
	DOMAIN,
	QUEUE,
	PAIR,
	REGION,
	COMPLETIONS,
	EVENTS,
	CONNECTION,
	MAPPING,
	DESCRIPTOR,
};
static_assert(DESCRIPTOR + 1 == HOLDINGS_MAX, "all of them are counted");
static _Atomic int held[DESCRIPTOR];

static void *keep(enum holding h, void *got)
{
	held[h] += got != NULL;
	return got;
}

static int let_go(enum holding h, int rc)
{
	held[h] -= rc == 0;
	return rc;
}

static int count_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int count = 0;

	while (d != NULL && readdir(d) != NULL)
		count++;
	closedir(d);
	return count;
}

struct holdings holdings_now(void)
{
	struct holdings now;

	for (int i = 0; i < DESCRIPTOR; i++)
		now.count[i] = held[i];
	now.count[DESCRIPTOR] = count_descriptors();
	return now;
}

bool holdings_same(const struct holdings *wanted)
{
	struct holdings now = holdings_now();

	return memcmp(&now, wanted, sizeof(now)) == 0;
}

bool holdings_are(const struct holdings *wanted)
{
	static const char *const names[] = {
		"devices",  "protection domains", "queues",      "pairs",    "regions",
		"channels", "CM channels",        "connections", "mappings", "descriptors"
	};
	struct holdings now = holdings_now();
	bool same = true;

	for (int i = 0; i < HOLDINGS_MAX; i++) {
		if (now.count[i] == wanted->count[i])
			continue;
		printf("\n    %s: %d, not %d", names[i], now.count[i], wanted->count[i]);
		same = false;
	}
	return same;
}

/* ---- memory and descriptors ---- */

void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes)
{
	return fails(FAULT_calloc, ENOMEM) ? NULL : __real_calloc(count, bytes);
}

void *__real_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	if (fails(FAULT_mmap, ENOMEM))
		return MAP_FAILED;
	void *got = __real_mmap(at, bytes, prot, flags, fd, offset);
	held[MAPPING] += got != MAP_FAILED;
	return got;
}

int __real_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes)
{
	return let_go(MAPPING, __real_munmap(at, bytes));
}

int __real_madvise(void *at, size_t bytes, int advice);
int __wrap_madvise(void *at, size_t bytes, int advice);
int __wrap_madvise(void *at, size_t bytes, int advice)
{
	return fails(FAULT_madvise, EIO) ? -1 : __real_madvise(at, bytes, advice);
}

/* The transport sets flags only. */
int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...)
{
	va_list args;

	va_start(args, command);
	int flags = command == F_SETFL ? va_arg(args, int) : 0;
	va_end(args);
	MST_ASSERT(command == F_SETFL || command == F_GETFL);
	return fails(FAULT_fcntl, EIO) ? -1 : __real_fcntl(fd, command, flags);
}

int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags);
int __wrap_epoll_create1(int flags)
{
	return fails(FAULT_epoll_create1, EIO) ? -1 : __real_epoll_create1(flags);
}

int __real_epoll_ctl(int epoll, int what, int fd, struct epoll_event *ev);
int __wrap_epoll_ctl(int epoll, int what, int fd, struct epoll_event *ev);
int __wrap_epoll_ctl(int epoll, int what, int fd, struct epoll_event *ev)
{
	return fails(FAULT_epoll_ctl, EIO) ? -1 : __real_epoll_ctl(epoll, what, fd, ev);
}

int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags)
{
	return fails(FAULT_eventfd, EIO) ? -1 : __real_eventfd(count, flags);
}

int __real_getifaddrs(struct ifaddrs **out);
int __wrap_getifaddrs(struct ifaddrs **out);
int __wrap_getifaddrs(struct ifaddrs **out)
{
	return fails(FAULT_getifaddrs, EIO) ? -1 : __real_getifaddrs(out);
}

ssize_t __real_getrandom(void *out, size_t bytes, unsigned flags);
ssize_t __wrap_getrandom(void *out, size_t bytes, unsigned flags);
ssize_t __wrap_getrandom(void *out, size_t bytes, unsigned flags)
{
	return fails(FAULT_getrandom, EIO) ? -1 : __real_getrandom(out, bytes, flags);
}

/* ---- devices ---- */

struct ibv_device **__real_ibv_get_device_list(int *count);
struct ibv_device **__wrap_ibv_get_device_list(int *count);
struct ibv_device **__wrap_ibv_get_device_list(int *count)
{
	return fails(FAULT_ibv_get_device_list, EIO) ? NULL : __real_ibv_get_device_list(count);
}

/* Posting is no call of the library's but of the device's table. */
static struct ibv_context_ops posts;

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return fails(FAULT_ibv_post_recv, EIO) ? EIO : posts.post_recv(qp, wr, bad);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	return fails(FAULT_ibv_post_send, EIO) ? EIO : posts.post_send(qp, wr, bad);
}

struct ibv_context *__real_ibv_open_device(struct ibv_device *device);
struct ibv_context *__wrap_ibv_open_device(struct ibv_device *device);
struct ibv_context *__wrap_ibv_open_device(struct ibv_device *device)
{
	if (fails(FAULT_ibv_open_device, EIO))
		return NULL;
	struct ibv_context *context = keep(DEVICE, __real_ibv_open_device(device));
	if (context != NULL) {
		posts = context->ops; /* the same of every device here, all are of one driver */
		context->ops.post_recv = post_recv;
		context->ops.post_send = post_send;
	}
	return context;
}

int __real_ibv_close_device(struct ibv_context *context);
int __wrap_ibv_close_device(struct ibv_context *context);
int __wrap_ibv_close_device(struct ibv_context *context)
{
	return let_go(DEVICE, __real_ibv_close_device(context));
}

int __real_ibv_query_device(struct ibv_context *context, struct ibv_device_attr *out);
int __wrap_ibv_query_device(struct ibv_context *context, struct ibv_device_attr *out);
int __wrap_ibv_query_device(struct ibv_context *context, struct ibv_device_attr *out)
{
	return fails(FAULT_ibv_query_device, EIO) ? EIO : __real_ibv_query_device(context, out);
}

ssize_t __real__ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *out,
				    size_t max, uint32_t flags, size_t bytes);
ssize_t __wrap__ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *out,
				    size_t max, uint32_t flags, size_t bytes);
ssize_t __wrap__ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *out,
				    size_t max, uint32_t flags, size_t bytes)
{
	return fails(FAULT_ibv_query_gid_table, EIO)
		       ? -EIO
		       : __real__ibv_query_gid_table(context, out, max, flags, bytes);
}

struct ibv_comp_channel *__real_ibv_create_comp_channel(struct ibv_context *context);
struct ibv_comp_channel *__wrap_ibv_create_comp_channel(struct ibv_context *context);
struct ibv_comp_channel *__wrap_ibv_create_comp_channel(struct ibv_context *context)
{
	return fails(FAULT_ibv_create_comp_channel, EIO)
		       ? NULL
		       : keep(COMPLETIONS, __real_ibv_create_comp_channel(context));
}

int __real_ibv_destroy_comp_channel(struct ibv_comp_channel *channel);
int __wrap_ibv_destroy_comp_channel(struct ibv_comp_channel *channel);
int __wrap_ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	return let_go(COMPLETIONS, __real_ibv_destroy_comp_channel(channel));
}

/* ---- domains, queues, pairs, regions ---- */

struct ibv_pd *__real_ibv_alloc_pd(struct ibv_context *context);
struct ibv_pd *__wrap_ibv_alloc_pd(struct ibv_context *context);
struct ibv_pd *__wrap_ibv_alloc_pd(struct ibv_context *context)
{
	return fails(FAULT_ibv_alloc_pd, EIO) ? NULL : keep(DOMAIN, __real_ibv_alloc_pd(context));
}

int __real_ibv_dealloc_pd(struct ibv_pd *pd);
int __wrap_ibv_dealloc_pd(struct ibv_pd *pd);
int __wrap_ibv_dealloc_pd(struct ibv_pd *pd)
{
	return let_go(DOMAIN, __real_ibv_dealloc_pd(pd));
}

struct ibv_cq *__real_ibv_create_cq(struct ibv_context *context, int entries, void *user,
				    struct ibv_comp_channel *channel, int vector);
struct ibv_cq *__wrap_ibv_create_cq(struct ibv_context *context, int entries, void *user,
				    struct ibv_comp_channel *channel, int vector);
struct ibv_cq *__wrap_ibv_create_cq(struct ibv_context *context, int entries, void *user,
				    struct ibv_comp_channel *channel, int vector)
{
	return fails(FAULT_ibv_create_cq, EIO)
		       ? NULL
		       : keep(QUEUE, __real_ibv_create_cq(context, entries, user, channel, vector));
}

int __real_ibv_destroy_cq(struct ibv_cq *cq);
int __wrap_ibv_destroy_cq(struct ibv_cq *cq);
int __wrap_ibv_destroy_cq(struct ibv_cq *cq)
{
	return let_go(QUEUE, __real_ibv_destroy_cq(cq));
}

struct ibv_qp *__real_ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init);
struct ibv_qp *__wrap_ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init);
struct ibv_qp *__wrap_ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	return fails(FAULT_ibv_create_qp, EIO) ? NULL : keep(PAIR, __real_ibv_create_qp(pd, init));
}

int __real_ibv_destroy_qp(struct ibv_qp *qp);
int __wrap_ibv_destroy_qp(struct ibv_qp *qp);
int __wrap_ibv_destroy_qp(struct ibv_qp *qp)
{
	return let_go(PAIR, __real_ibv_destroy_qp(qp));
}

int __real_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int __wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int __wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	return fails(FAULT_ibv_modify_qp, EIO) ? EIO : __real_ibv_modify_qp(qp, attr, mask);
}

enum ibv_fork_status __real_ibv_is_fork_initialized(void);
enum ibv_fork_status __wrap_ibv_is_fork_initialized(void);
enum ibv_fork_status __wrap_ibv_is_fork_initialized(void)
{
	return fails(FAULT_ibv_is_fork_initialized, 0) ? IBV_FORK_ENABLED
						       : __real_ibv_is_fork_initialized();
}

/* Where access flags are not constant the header makes this of ibv_reg_mr(). */
struct ibv_mr *__real_ibv_reg_mr_iova2(struct ibv_pd *pd, void *at, size_t bytes, uint64_t iova,
				       unsigned access);
struct ibv_mr *__wrap_ibv_reg_mr_iova2(struct ibv_pd *pd, void *at, size_t bytes, uint64_t iova,
				       unsigned access);
struct ibv_mr *__wrap_ibv_reg_mr_iova2(struct ibv_pd *pd, void *at, size_t bytes, uint64_t iova,
				       unsigned access)
{
	return fails(FAULT_ibv_reg_mr, EIO)
		       ? NULL
		       : keep(REGION, __real_ibv_reg_mr_iova2(pd, at, bytes, iova, access));
}

int __real_ibv_dereg_mr(struct ibv_mr *mr);
int __wrap_ibv_dereg_mr(struct ibv_mr *mr);
int __wrap_ibv_dereg_mr(struct ibv_mr *mr)
{
	return let_go(REGION, __real_ibv_dereg_mr(mr));
}

/* ---- the connection manager ---- */

struct rdma_event_channel *__real_rdma_create_event_channel(void);
struct rdma_event_channel *__wrap_rdma_create_event_channel(void);
struct rdma_event_channel *__wrap_rdma_create_event_channel(void)
{
	return fails(FAULT_rdma_create_event_channel, EIO)
		       ? NULL
		       : keep(EVENTS, __real_rdma_create_event_channel());
}

void __real_rdma_destroy_event_channel(struct rdma_event_channel *channel);
void __wrap_rdma_destroy_event_channel(struct rdma_event_channel *channel);
void __wrap_rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	__real_rdma_destroy_event_channel(channel);
	(void)let_go(EVENTS, 0);
}

int __real_rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *user,
			  enum rdma_port_space space);
int __wrap_rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *user,
			  enum rdma_port_space space);
int __wrap_rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *user,
			  enum rdma_port_space space)
{
	if (fails(FAULT_rdma_create_id, EIO))
		return -1;
	int rc = __real_rdma_create_id(channel, out, user, space);
	held[CONNECTION] += rc == 0;
	return rc;
}

int __real_rdma_destroy_id(struct rdma_cm_id *id);
int __wrap_rdma_destroy_id(struct rdma_cm_id *id);
int __wrap_rdma_destroy_id(struct rdma_cm_id *id)
{
	return let_go(CONNECTION, __real_rdma_destroy_id(id));
}

/* A request comes with a connection of its own. */
int __real_rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **out);
int __wrap_rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **out);
int __wrap_rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **out)
{
	int rc = __real_rdma_get_cm_event(channel, out);

	held[CONNECTION] += rc == 0 && (*out)->event == RDMA_CM_EVENT_CONNECT_REQUEST;
	return rc;
}

int __real_rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *at);
int __wrap_rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *at);
int __wrap_rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *at)
{
	return fails(FAULT_rdma_bind_addr, EIO) ? -1 : __real_rdma_bind_addr(id, at);
}

int __real_rdma_listen(struct rdma_cm_id *id, int backlog);
int __wrap_rdma_listen(struct rdma_cm_id *id, int backlog);
int __wrap_rdma_listen(struct rdma_cm_id *id, int backlog)
{
	return fails(FAULT_rdma_listen, EIO) ? -1 : __real_rdma_listen(id, backlog);
}

int __real_rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *own, struct sockaddr *far,
			     int ms);
int __wrap_rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *own, struct sockaddr *far,
			     int ms);
int __wrap_rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *own, struct sockaddr *far,
			     int ms)
{
	return fails(FAULT_rdma_resolve_addr, EIO) ? -1
						   : __real_rdma_resolve_addr(id, own, far, ms);
}

int __real_rdma_resolve_route(struct rdma_cm_id *id, int ms);
int __wrap_rdma_resolve_route(struct rdma_cm_id *id, int ms);
int __wrap_rdma_resolve_route(struct rdma_cm_id *id, int ms)
{
	return fails(FAULT_rdma_resolve_route, EIO) ? -1 : __real_rdma_resolve_route(id, ms);
}

int __real_rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask);
int __wrap_rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask);
int __wrap_rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	return fails(FAULT_rdma_init_qp_attr, EIO) ? -1 : __real_rdma_init_qp_attr(id, attr, mask);
}

int __real_rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn);
int __wrap_rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn);
int __wrap_rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn)
{
	return fails(FAULT_rdma_connect, EIO) ? -1 : __real_rdma_connect(id, conn);
}

int __real_rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn);
int __wrap_rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn);
int __wrap_rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn)
{
	return fails(FAULT_rdma_accept, EIO) ? -1 : __real_rdma_accept(id, conn);
}

int __real_rdma_establish(struct rdma_cm_id *id);
int __wrap_rdma_establish(struct rdma_cm_id *id);
int __wrap_rdma_establish(struct rdma_cm_id *id)
{
	return fails(FAULT_rdma_establish, EIO) ? -1 : __real_rdma_establish(id);
}

int __real_rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel);
int __wrap_rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel);
int __wrap_rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	return fails(FAULT_rdma_migrate_id, EIO) ? -1 : __real_rdma_migrate_id(id, channel);
}
