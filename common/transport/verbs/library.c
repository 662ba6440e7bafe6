/* SPDX-License-Identifier: MIT */
#include "common/transport/verbs/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>

#include "common/base/reason.h"

/* The headers have macros of these names, for their callers. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

enum library { IBVERBS, RDMACM, LIBRARIES };

static const char *const file[LIBRARIES] = { "libibverbs.so.1", "librdmacm.so.1" };

/* X(library, what it returns, its name, its parameters, the arguments that are passed on) */
#define FUNCTIONS(X)                                                                               \
	X(IBVERBS, ssize_t, _ibv_query_gid_table,                                                  \
	  (struct ibv_context * c, struct ibv_gid_entry * e, size_t n, uint32_t f, size_t z),      \
	  (c, e, n, f, z))                                                                         \
	X(IBVERBS, void, ibv_ack_async_event, (struct ibv_async_event * e), (e))                   \
	X(IBVERBS, void, ibv_ack_cq_events, (struct ibv_cq * cq, unsigned int n), (cq, n))         \
	X(IBVERBS, struct ibv_pd *, ibv_alloc_pd, (struct ibv_context * c), (c))                   \
	X(IBVERBS, int, ibv_close_device, (struct ibv_context * c), (c))                           \
	X(IBVERBS, struct ibv_comp_channel *, ibv_create_comp_channel, (struct ibv_context * c),   \
	  (c))                                                                                     \
	X(IBVERBS, struct ibv_cq *, ibv_create_cq,                                                 \
	  (struct ibv_context * c, int n, void *x, struct ibv_comp_channel *ch, int v),            \
	  (c, n, x, ch, v))                                                                        \
	X(IBVERBS, struct ibv_qp *, ibv_create_qp,                                                 \
	  (struct ibv_pd * pd, struct ibv_qp_init_attr * a), (pd, a))                              \
	X(IBVERBS, int, ibv_dealloc_pd, (struct ibv_pd * pd), (pd))                                \
	X(IBVERBS, int, ibv_dereg_mr, (struct ibv_mr * mr), (mr))                                  \
	X(IBVERBS, int, ibv_destroy_comp_channel, (struct ibv_comp_channel * c), (c))              \
	X(IBVERBS, int, ibv_destroy_cq, (struct ibv_cq * cq), (cq))                                \
	X(IBVERBS, int, ibv_destroy_qp, (struct ibv_qp * qp), (qp))                                \
	X(IBVERBS, const char *, ibv_event_type_str, (enum ibv_event_type t), (t))                 \
	X(IBVERBS, int, ibv_fork_init, (void), ())                                                 \
	X(IBVERBS, void, ibv_free_device_list, (struct ibv_device * *l), (l))                      \
	X(IBVERBS, int, ibv_get_async_event, (struct ibv_context * c, struct ibv_async_event * e), \
	  (c, e))                                                                                  \
	X(IBVERBS, int, ibv_get_cq_event,                                                          \
	  (struct ibv_comp_channel * c, struct ibv_cq * *cq, void **x), (c, cq, x))                \
	X(IBVERBS, struct ibv_device **, ibv_get_device_list, (int *n), (n))                       \
	X(IBVERBS, const char *, ibv_get_device_name, (struct ibv_device * d), (d))                \
	X(IBVERBS, int, ibv_get_pkey_index, (struct ibv_context * c, uint8_t p, __be16 k),         \
	  (c, p, k))                                                                               \
	X(IBVERBS, enum ibv_fork_status, ibv_is_fork_initialized, (void), ())                      \
	X(IBVERBS, int, ibv_modify_qp, (struct ibv_qp * qp, struct ibv_qp_attr * a, int m),        \
	  (qp, a, m))                                                                              \
	X(IBVERBS, struct ibv_context *, ibv_open_device, (struct ibv_device * d), (d))            \
	X(IBVERBS, const char *, ibv_port_state_str, (enum ibv_port_state s), (s))                 \
	X(IBVERBS, int, ibv_query_device, (struct ibv_context * c, struct ibv_device_attr * a),    \
	  (c, a))                                                                                  \
	X(IBVERBS, int, ibv_query_port,                                                            \
	  (struct ibv_context * c, uint8_t p, struct _compat_ibv_port_attr * a), (c, p, a))        \
	X(IBVERBS, int, ibv_query_qp,                                                              \
	  (struct ibv_qp * qp, struct ibv_qp_attr * a, int m, struct ibv_qp_init_attr *i),         \
	  (qp, a, m, i))                                                                           \
	X(IBVERBS, struct ibv_mr *, ibv_reg_mr, (struct ibv_pd * pd, void *at, size_t n, int f),   \
	  (pd, at, n, f))                                                                          \
	X(IBVERBS, struct ibv_mr *, ibv_reg_mr_iova2,                                              \
	  (struct ibv_pd * pd, void *at, size_t n, uint64_t v, unsigned int f), (pd, at, n, v, f)) \
	X(IBVERBS, const char *, ibv_wc_status_str, (enum ibv_wc_status s), (s))                   \
	X(RDMACM, int, rdma_accept, (struct rdma_cm_id * id, struct rdma_conn_param * p), (id, p)) \
	X(RDMACM, int, rdma_ack_cm_event, (struct rdma_cm_event * e), (e))                         \
	X(RDMACM, int, rdma_bind_addr, (struct rdma_cm_id * id, struct sockaddr * a), (id, a))     \
	X(RDMACM, int, rdma_connect, (struct rdma_cm_id * id, struct rdma_conn_param * p),         \
	  (id, p))                                                                                 \
	X(RDMACM, struct rdma_event_channel *, rdma_create_event_channel, (void), ())              \
	X(RDMACM, int, rdma_create_id,                                                             \
	  (struct rdma_event_channel * c, struct rdma_cm_id * *id, void *x,                        \
	   enum rdma_port_space s),                                                                \
	  (c, id, x, s))                                                                           \
	X(RDMACM, void, rdma_destroy_event_channel, (struct rdma_event_channel * c), (c))          \
	X(RDMACM, int, rdma_destroy_id, (struct rdma_cm_id * id), (id))                            \
	X(RDMACM, int, rdma_disconnect, (struct rdma_cm_id * id), (id))                            \
	X(RDMACM, int, rdma_establish, (struct rdma_cm_id * id), (id))                             \
	X(RDMACM, const char *, rdma_event_str, (enum rdma_cm_event_type t), (t))                  \
	X(RDMACM, int, rdma_get_cm_event,                                                          \
	  (struct rdma_event_channel * c, struct rdma_cm_event * *e), (c, e))                      \
	X(RDMACM, __be16, rdma_get_src_port, (struct rdma_cm_id * id), (id))                       \
	X(RDMACM, int, rdma_init_qp_attr,                                                          \
	  (struct rdma_cm_id * id, struct ibv_qp_attr * a, int *m), (id, a, m))                    \
	X(RDMACM, int, rdma_listen, (struct rdma_cm_id * id, int n), (id, n))                      \
	X(RDMACM, int, rdma_migrate_id, (struct rdma_cm_id * id, struct rdma_event_channel * c),   \
	  (id, c))                                                                                 \
	X(RDMACM, int, rdma_reject, (struct rdma_cm_id * id, const void *d, uint8_t n),            \
	  (id, d, n))                                                                              \
	X(RDMACM, int, rdma_resolve_addr,                                                          \
	  (struct rdma_cm_id * id, struct sockaddr * s, struct sockaddr * d, int t),               \
	  (id, s, d, t))                                                                           \
	X(RDMACM, int, rdma_resolve_route, (struct rdma_cm_id * id, int t), (id, t))               \
	X(RDMACM, int, rdma_set_option, (struct rdma_cm_id * id, int l, int o, void *v, size_t n), \
	  (id, l, o, v, n))

/* What was found, by name. */
#define AS_POINTER(library, type, name, parameters, arguments) type(*name) parameters;
static struct {
	FUNCTIONS(AS_POINTER)
} found;

#define AS_FUNCTION(library, type, name, parameters, arguments)                                    \
	type name parameters                                                                       \
	{                                                                                          \
		return found.name arguments;                                                       \
	}
FUNCTIONS(AS_FUNCTION)

static const struct {
	enum library library;
	const char *name;
	void *at;
} wanted[] = {
#define AS_ROW(library, type, name, parameters, arguments) { library, #name, &found.name },
	FUNCTIONS(AS_ROW)
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int outcome;
static struct mst_reason why;

/* The libraries stay loaded until the process ends, since threads of theirs may run. */
static void find_all(void)
{
	void *library[LIBRARIES];

	outcome = -ELIBACC;
	for (int i = 0; i < LIBRARIES; i++) {
		library[i] = dlopen(file[i], RTLD_NOW | RTLD_LOCAL);
		if (library[i] == NULL) {
			mst_reason_set(&why,
				       "the RDMA libraries are not on this host (%s): install "
				       "libibverbs1, librdmacm1 and ibverbs-providers, or what "
				       "rdma-core is called there",
				       dlerror());
			return;
		}
	}
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		*(void **)wanted[i].at = dlsym(library[wanted[i].library], wanted[i].name);
		if (*(void **)wanted[i].at == NULL) {
			mst_reason_set(&why,
				       "%s of this host has no %s: it is too old, install one of a "
				       "newer rdma-core",
				       file[wanted[i].library], wanted[i].name);
			return;
		}
	}
	outcome = 0;
}

int mst_verbs_library(void)
{
	pthread_once(&once, find_all);
	return outcome;
}

const char *mst_verbs_library_why(void)
{
	return why.text;
}
