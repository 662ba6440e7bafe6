/* SPDX-License-Identifier: MIT */
/*
 * What a remote key for each grant would cost, over RDMA: how long it takes to open a slot for one
 * write of a peer and to close it again, beside how long that write takes.
 *
 * usage: bench_keys [BYTES ...]     of the slot; 4096 1048576 104857600 by default
 *
 * Both ends are queue pairs of this process, over the first device of this host. In each round a
 * slot is written once, from the call that posts the write until the other end has the completion
 * of its receive, and opened and closed once in each way. So all share whatever else goes on; the
 * medians of the rounds are printed.
 *
 * Before that, each way shows that it does what it is for: a write with the key of an open slot
 * arrives, and one with the same key after the slot was closed is refused. A way that the device
 * does not have, or that does not do this, is named with the reason, and not measured.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/transport/verbs/library.h"
#include "common/transport/verbs/verbs.h"

#define PORT 1
#define GIDS_MAX 256
#define PSN 1
#define ROUNDS_MAX 501
#define CHECKED_BYTES ((size_t)4096)
#define PATIENCE_NS (60 * MST_SECOND)
#define SKIPPED 77

static const unsigned open_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

struct end {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

struct device {
	struct ibv_context *context;
	const char *name;
	struct ibv_port_attr port;
	struct ibv_gid_entry gid;
};

/* A slot, and the two ends of a link. */
struct key_bench {
	size_t bytes;
	uint8_t *source, *slot;
	struct end near, far; /* what writes, and what has the slot */
	struct ibv_mr *sent, *session;
	struct ibv_mr *grant;   /* of the way "register" */
	struct ibv_mr *lasting; /* of the way "reregister" */
	struct ibv_mw *window;  /* of the way "window" */
	uint32_t key;           /* of the slot, since it was opened last */
};

/* ---- the ways to open and close a slot; each call returns 0 or an errno ---- */

/* Exported by libibverbs; muster itself has no use for it. */
static int (*rereg_mr)(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		       int access);

static int failed(void)
{
	return errno != 0 ? errno : EIO;
}

/* The next completion at an end; what is not successful is in wc->status. */
static int await(const struct end *e, struct ibv_wc *wc)
{
	uint64_t limit = mst_now_ns() + PATIENCE_NS;
	int n;

	while ((n = ibv_poll_cq(e->cq, 1, wc)) == 0)
		if (mst_now_ns() > limit)
			return ETIMEDOUT;
	return n < 0 ? EIO : 0;
}

static int execute(const struct end *e, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int rc = ibv_post_send(e->qp, wr, &bad);

	if (rc == 0)
		rc = await(e, &wc);
	if (rc == 0 && wc.status != IBV_WC_SUCCESS)
		rc = EPROTO;
	return rc;
}

static int session_open(struct key_bench *b)
{
	b->key = b->session->rkey;
	return 0;
}

static int session_close(struct key_bench *b)
{
	(void)b;
	return 0;
}

static int register_open(struct key_bench *b)
{
	b->grant = ibv_reg_mr(b->far.pd, b->slot, b->bytes, open_access);
	if (b->grant == NULL)
		return failed();
	b->key = b->grant->rkey;
	return 0;
}

static int register_close(struct key_bench *b)
{
	int rc = ibv_dereg_mr(b->grant);

	b->grant = NULL;
	return rc;
}

/* The device may keep the key: then it is good again whenever the slot is open. */
static int rereg(struct key_bench *b, unsigned access)
{
	int rc = rereg_mr(b->lasting, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, (int)access);

	return rc != 0 ? failed() : 0;
}

static int reregister_open(struct key_bench *b)
{
	if (b->lasting == NULL)
		b->lasting = ibv_reg_mr(b->far.pd, b->slot, b->bytes, IBV_ACCESS_LOCAL_WRITE);
	if (b->lasting == NULL)
		return failed();
	int rc = rereg(b, open_access);
	b->key = b->lasting->rkey;
	return rc;
}

static int reregister_close(struct key_bench *b)
{
	return rereg(b, IBV_ACCESS_LOCAL_WRITE);
}

/* Opens a window of type 2, which can be written through this queue pair alone. */
static int window_open(struct key_bench *b)
{
	if (b->window == NULL) {
		b->window = ibv_alloc_mw(b->far.pd, IBV_MW_TYPE_2);
		if (b->window == NULL)
			return failed();
	}
	b->key = ibv_inc_rkey(b->window->rkey);
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED };
	wr.bind_mw.mw = b->window;
	wr.bind_mw.rkey = b->key;
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = b->session,
		.addr = (uintptr_t)b->slot,
		.length = b->bytes,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE
	};
	int rc = execute(&b->far, &wr);
	if (rc == 0)
		b->window->rkey = b->key;
	return rc;
}

static int window_close(struct key_bench *b)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_LOCAL_INV,
				  .send_flags = IBV_SEND_SIGNALED,
				  .invalidate_rkey = b->key };

	return execute(&b->far, &wr);
}

static const struct key_way {
	const char *name;
	int (*open)(struct key_bench *b);
	int (*close)(struct key_bench *b);
	unsigned session; /* access to the region of the session */
	bool closes;      /* refuses what comes later */
} ways[] = {
	{ "session", session_open, session_close, IBV_ACCESS_REMOTE_WRITE, false },
	{ "register", register_open, register_close, 0, true },
	{ "reregister", reregister_open, reregister_close, 0, true },
	{ "window", window_open, window_close, IBV_ACCESS_MW_BIND, true },
};

#define WAYS (sizeof(ways) / sizeof(ways[0]))

/* ---- two ends ---- */

static int end_make(const struct device *d, struct end *e)
{
	e->pd = ibv_alloc_pd(d->context);
	e->cq = ibv_create_cq(d->context, 16, NULL, NULL, 0);
	if (e->pd == NULL || e->cq == NULL)
		return failed();
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 }
	};
	e->qp = ibv_create_qp(e->pd, &init);
	return e->qp == NULL ? failed() : 0;
}

static void end_destroy(struct end *e)
{
	if (e->qp != NULL)
		ibv_destroy_qp(e->qp);
	if (e->cq != NULL)
		ibv_destroy_cq(e->cq);
	if (e->pd != NULL)
		ibv_dealloc_pd(e->pd);
}

static int end_connect(const struct device *d, struct end *e, const struct end *peer)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT,
				    .port_num = PORT,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	struct ibv_qp_attr receive = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = d->port.active_mtu,
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = PSN,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = MST_VERBS_RNR_TIMER,
		.ah_attr = { .is_global = 1, .dlid = d->port.lid, .port_num = PORT }
	};
	struct ibv_qp_attr send = { .qp_state = IBV_QPS_RTS,
				    .sq_psn = PSN,
				    .timeout = 16,
				    .retry_cnt = 6,
				    .rnr_retry = 6,
				    .max_rd_atomic = 1 };

	receive.ah_attr.grh.dgid = d->gid.gid;
	receive.ah_attr.grh.sgid_index = (uint8_t)d->gid.gid_index;
	receive.ah_attr.grh.hop_limit = 1;
	int rc = ibv_modify_qp(
		e->qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (rc == 0)
		rc = ibv_modify_qp(e->qp, &receive,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					   IBV_QP_MIN_RNR_TIMER);
	if (rc == 0)
		rc = ibv_modify_qp(e->qp, &send,
				   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					   IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					   IBV_QP_MAX_QP_RD_ATOMIC);
	return rc;
}

/* Destroys whatever has been made. */
static void bench_destroy(struct key_bench *b)
{
	end_destroy(&(struct end){ .qp = b->near.qp });
	end_destroy(&(struct end){ .qp = b->far.qp });
	b->near.qp = b->far.qp = NULL;
	if (b->window != NULL)
		(void)ibv_dealloc_mw(b->window);
	struct ibv_mr *const regions[] = { b->grant, b->lasting, b->session, b->sent };
	for (size_t i = 0; i < sizeof(regions) / sizeof(regions[0]); i++)
		if (regions[i] != NULL)
			ibv_dereg_mr(regions[i]);
	end_destroy(&b->near);
	end_destroy(&b->far);
	free(b->slot);
	free(b->source);
}

/* access: from afar, to the region of the session. 0 or an errno; to be destroyed either way. */
static int bench_make(const struct device *d, size_t bytes, unsigned access, struct key_bench *b)
{
	size_t whole = mst_verbs_round(bytes);

	*b = (struct key_bench){ .bytes = bytes };
	b->source = aligned_alloc(MST_VERBS_PAGE, whole);
	b->slot = aligned_alloc(MST_VERBS_PAGE, whole);
	if (b->source == NULL || b->slot == NULL)
		return ENOMEM;
	memset(b->source, 1, whole);
	memset(b->slot, 0, whole);
	int rc = end_make(d, &b->near);
	if (rc == 0)
		rc = end_make(d, &b->far);
	if (rc == 0)
		rc = end_connect(d, &b->near, &b->far);
	if (rc == 0)
		rc = end_connect(d, &b->far, &b->near);
	if (rc != 0)
		return rc;
	b->sent = ibv_reg_mr(b->near.pd, b->source, whole, IBV_ACCESS_LOCAL_WRITE);
	b->session = ibv_reg_mr(b->far.pd, b->slot, whole, IBV_ACCESS_LOCAL_WRITE | access);
	return b->sent == NULL || b->session == NULL ? failed() : 0;
}

/* ---- a write ---- */

static int post_write(struct key_bench *b, uint32_t key)
{
	struct ibv_sge piece = { (uintptr_t)b->source, (uint32_t)b->bytes, b->sent->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				  .send_flags = IBV_SEND_SIGNALED,
				  .sg_list = &piece,
				  .num_sge = 1,
				  .wr.rdma = { (uintptr_t)b->slot, key } };
	struct ibv_send_wr *bad;

	return ibv_post_send(b->near.qp, &wr, &bad);
}

/* How a write with this key ends for the peer that writes, and how long it took one way if it
 * arrived. 0 or an errno. */
static int write_slot(struct key_bench *b, uint32_t key, enum ibv_wc_status *status,
		      uint64_t *took_ns)
{
	struct ibv_recv_wr receive = { 0 }, *bad;
	bool arrived = false, answered = false;
	struct ibv_wc wc;
	int rc = ibv_post_recv(b->far.qp, &receive, &bad);
	uint64_t begin = mst_now_ns();

	if (rc == 0)
		rc = post_write(b, key);
	*status = IBV_WC_SUCCESS;
	while (rc == 0 && *status == IBV_WC_SUCCESS && !(arrived && answered)) {
		if (!arrived && ibv_poll_cq(b->far.cq, 1, &wc) == 1) {
			*took_ns = mst_now_ns() - begin;
			arrived = wc.status == IBV_WC_SUCCESS;
		}
		if (!answered && ibv_poll_cq(b->near.cq, 1, &wc) == 1) {
			*status = wc.status;
			answered = true;
		}
		if (mst_now_ns() - begin > PATIENCE_NS)
			rc = ETIMEDOUT;
	}
	return rc;
}

/* ---- what is shown ---- */

/* Opens, writes, closes, writes again with the same key. NULL: as the way promises; else what was
 * not so. */
static const char *try_way(struct key_bench *b, const struct key_way *way, enum ibv_wc_status *late)
{
	enum ibv_wc_status status;
	uint64_t took;
	int rc = way->open(b);

	if (rc != 0)
		return strerror(rc);
	uint32_t key = b->key;
	if (write_slot(b, key, &status, &took) != 0 || status != IBV_WC_SUCCESS ||
	    memcmp(b->source, b->slot, b->bytes) != 0)
		return "a write with the key of the open slot did not arrive";
	if (way->close(b) != 0)
		return "it did not close the slot";
	if (write_slot(b, key, late, &took) != 0)
		return "a write with an old key has no end";
	if (*late != (way->closes ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS))
		return way->closes ? "a write with an old key was not refused"
				   : "a write with the key of the session did not arrive";
	return NULL;
}

static int check_way(const struct device *d, const struct key_way *way, bool *usable)
{
	enum ibv_wc_status late = IBV_WC_SUCCESS;
	const char *wrong;
	struct key_bench b;
	int rc = bench_make(d, CHECKED_BYTES, way->session, &b);

	if (rc == 0) {
		wrong = try_way(&b, way, &late);
		*usable = wrong == NULL;
		printf("%-10s  %s%s\n", way->name,
		       wrong != NULL ? "not measured: " : "a write with an old key: ",
		       wrong != NULL ? wrong : ibv_wc_status_str(late));
	}
	bench_destroy(&b);
	return rc;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double median_us(uint64_t *ns, size_t count)
{
	qsort(ns, count, sizeof(*ns), compare);
	return (double)ns[count / 2] / 1e3;
}

static size_t rounds_of(size_t bytes)
{
	return bytes <= 65536 ? ROUNDS_MAX : bytes <= 16 << 20 ? 101 : 11;
}

static int round_of(struct key_bench *b, const bool *usable, uint64_t *write_ns,
		    uint64_t way_ns[WAYS])
{
	enum ibv_wc_status status;
	int rc = write_slot(b, b->session->rkey, &status, write_ns);

	if (rc == 0 && status != IBV_WC_SUCCESS)
		rc = EPROTO;
	for (size_t w = 0; w < WAYS && rc == 0; w++) {
		if (!usable[w] || !ways[w].closes)
			continue;
		uint64_t begin = mst_now_ns();
		rc = ways[w].open(b);
		if (rc == 0)
			rc = ways[w].close(b);
		way_ns[w] = mst_now_ns() - begin;
	}
	return rc;
}

static int measure(const struct device *d, size_t bytes, const bool *usable)
{
	static uint64_t write_ns[ROUNDS_MAX], way_ns[WAYS][ROUNDS_MAX];
	size_t rounds = rounds_of(bytes);
	uint64_t last[WAYS] = { 0 };
	struct key_bench b;
	int rc = bench_make(d, bytes, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND, &b);

	/* Pages of the program and of the kernel are touched for the first time. */
	if (rc == 0)
		rc = round_of(&b, usable, &write_ns[0], last);
	for (size_t i = 0; i < rounds && rc == 0; i++) {
		rc = round_of(&b, usable, &write_ns[i], last);
		for (size_t w = 0; w < WAYS; w++)
			way_ns[w][i] = last[w];
	}
	bench_destroy(&b);
	if (rc != 0)
		return rc;
	double write_us = median_us(write_ns, rounds);
	printf("%10zu %7zu %11.1f", bytes, rounds, write_us);
	for (size_t w = 0; w < WAYS; w++) {
		if (!ways[w].closes)
			continue;
		double us = median_us(way_ns[w], rounds);
		if (usable[w])
			printf(" %12.1f %6.2f%%", us, 100 * us / write_us);
		else
			printf(" %12s %7s", "-", "");
	}
	printf("\n");
	fflush(stdout);
	return 0;
}

/* ---- the device ---- */

/* Takes a GID of RoCE version 2 with an address that others can route to, or else the first. */
static int find_gid(struct device *d)
{
	static struct ibv_gid_entry entry[GIDS_MAX];
	ssize_t count = ibv_query_gid_table(d->context, entry, GIDS_MAX, 0);
	bool found = false;

	for (ssize_t i = 0; i < count && !found; i++) {
		if (entry[i].port_num != PORT)
			continue;
		found = entry[i].gid_type == IBV_GID_TYPE_ROCE_V2 && entry[i].gid.raw[0] != 0xfe;
		if (found || d->gid.port_num == 0)
			d->gid = entry[i];
	}
	return d->gid.port_num == 0 ? ENODEV : 0;
}

static int device_open(struct device *d)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);

	if (list == NULL || list[0] == NULL || library == NULL)
		return ENODEV;
	*(void **)&rereg_mr = dlsym(library, "ibv_rereg_mr");
	errno = 0;
	d->context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (d->context == NULL)
		return failed();
	if (rereg_mr == NULL)
		return ENOSYS;
	d->name = ibv_get_device_name(d->context->device);
	int rc = ibv_query_port(d->context, PORT, &d->port);
	return rc != 0 ? rc : find_gid(d);
}

static int all(const struct device *d, size_t count, const size_t *bytes)
{
	bool usable[WAYS];
	int rc = 0;

	for (size_t w = 0; w < WAYS && rc == 0; w++)
		rc = check_way(d, &ways[w], &usable[w]);
	printf("\nto open and close a slot on %s, medians in us, with the share of a write\n",
	       d->name);
	printf("%10s %7s %11s", "bytes", "rounds", "write");
	for (size_t w = 0; w < WAYS; w++)
		if (ways[w].closes)
			printf(" %12s %7s", ways[w].name, "");
	printf("\n");
	for (size_t i = 0; i < count && rc == 0; i++)
		rc = measure(d, bytes[i], usable);
	return rc;
}

int main(int argc, char **argv)
{
	size_t bytes[16] = { 4096, 1 << 20, 100 << 20 }, count = 3;
	struct device d = { 0 };

	if (argc > 1)
		count = 0;
	for (int i = 1; i < argc; i++) {
		char *end;
		size_t n = strtoull(argv[i], &end, 10);
		if (*end != '\0' || n == 0 || n > 1 << 30 || count == 16) {
			fprintf(stderr,
				"usage: bench_keys [BYTES ...]   up to 16, each 1 to 1 GiB\n");
			return 2;
		}
		bytes[count++] = n;
	}
	if (mst_verbs_library() != 0) {
		printf("skipped: %s\n", mst_verbs_library_why());
		return SKIPPED;
	}
	int rc = device_open(&d);
	if (rc == ENODEV) {
		printf("skipped: this host has no RDMA device\n");
		return SKIPPED;
	}
	if (rc == 0)
		rc = all(&d, count, bytes);
	if (d.context != NULL)
		ibv_close_device(d.context);
	if (rc != 0)
		fprintf(stderr, "bench_keys: %s\n", strerror(rc));
	return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
