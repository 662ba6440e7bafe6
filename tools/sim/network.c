/* SPDX-License-Identifier: MIT */
#include "tools/sim/network.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"

/* ---- queue ---- */

#define ROOM_MIN 64u

void mst_sim_queue_fini(struct mst_sim_queue *q)
{
	free(q->ring);
	*q = (struct mst_sim_queue){ .ring = NULL };
}

/* Doubles the room. The messages lie at the front of the new ring, in their order. */
static bool grow(struct mst_sim_queue *q)
{
	uint32_t room = q->room > 0 ? 2 * q->room : ROOM_MIN, front = q->room - q->head;
	struct mst_sim_message *ring = room > q->room ? calloc(room, sizeof(*ring)) : NULL;

	if (ring == NULL)
		return false;
	if (q->count > 0) {
		memcpy(ring, q->ring + q->head, front * sizeof(*ring));
		memcpy(ring + front, q->ring, q->head * sizeof(*ring));
	}
	free(q->ring);
	q->ring = ring;
	q->room = room;
	q->head = 0;
	return true;
}

struct mst_sim_message *mst_sim_queue_add(struct mst_sim_queue *q)
{
	if (q->count == q->room && !grow(q))
		return NULL;
	return &q->ring[(q->head + q->count++) & (q->room - 1)];
}

void mst_sim_queue_take(struct mst_sim_queue *q, struct mst_sim_message *out)
{
	MST_ASSERT(q->count > 0);
	*out = q->ring[q->head];
	q->head = (q->head + 1) & (q->room - 1);
	q->count--;
}

/* ---- link ---- */

/* Bytes per ns of each message now. */
static double share(const struct mst_sim_link *l)
{
	double equal = l->rate / l->queue.count;

	if (l->rate_each > 0 && (l->rate <= 0 || l->rate_each < equal))
		return l->rate_each;
	return equal;
}

static void advance(struct mst_sim_link *l, uint64_t now_ns)
{
	if (l->queue.count > 0)
		l->sent += share(l) * (double)(now_ns - l->at_ns);
	else
		l->sent = 0; /* begin again, so that the sum stays exact to the byte */
	l->at_ns = now_ns;
}

struct mst_sim_message *mst_sim_link_begin(struct mst_sim_link *l, uint64_t now_ns)
{
	MST_ASSERT(mst_sim_link_limits(l) && now_ns >= l->at_ns);
	advance(l, now_ns);
	struct mst_sim_message *m = mst_sim_queue_add(&l->queue);
	if (m != NULL)
		m->due_bytes = l->sent + l->bytes;
	return m;
}

uint64_t mst_sim_link_due(const struct mst_sim_link *l)
{
	if (l->queue.count == 0)
		return MST_NEVER;
	double left = mst_sim_queue_first(&l->queue)->due_bytes - l->sent;
	double ns = left > 0 ? ceil(left / share(l)) : 0;
	return ns < (double)(MST_NEVER / 2 - l->at_ns) ? l->at_ns + (uint64_t)ns : MST_NEVER;
}

void mst_sim_link_end(struct mst_sim_link *l, struct mst_sim_message *out, uint64_t now_ns)
{
	advance(l, now_ns);
	mst_sim_queue_take(&l->queue, out);
}

/* A worker sends its parts to all servers at the same time, so its own link is shared by them. */
static struct mst_sim_link link_of(const struct mst_sim_net_cfg *cfg, uint32_t servers)
{
	return (struct mst_sim_link){
		.rate = cfg->server_rate,
		.rate_each = cfg->worker_rate / servers,
		.bytes = (double)cfg->bytes / servers,
	};
}

int mst_sim_network_init(struct mst_sim_network *n, const struct mst_sim_net_cfg *cfg,
			 uint32_t servers)
{
	*n = (struct mst_sim_network){ .latency_ns = cfg->latency_ns, .servers = servers };
	n->up = calloc(servers, sizeof(*n->up));
	n->down = calloc(servers, sizeof(*n->down));
	if (n->up == NULL || n->down == NULL)
		return -ENOMEM;
	for (uint32_t s = 0; s < servers; s++)
		n->up[s] = n->down[s] = link_of(cfg, servers);
	return mst_heap_init(&n->busy, 2 * servers);
}

void mst_sim_network_fini(struct mst_sim_network *n)
{
	for (uint32_t s = 0; n->up != NULL && n->down != NULL && s < n->servers; s++) {
		mst_sim_queue_fini(&n->up[s].queue);
		mst_sim_queue_fini(&n->down[s].queue);
	}
	free(n->up);
	free(n->down);
	mst_heap_fini(&n->busy);
	mst_sim_queue_fini(&n->mail);
	mst_sim_queue_fini(&n->ready);
	*n = (struct mst_sim_network){ .servers = 0 };
}

/* ---- what is put on its way ---- */

/* For a further server, or from one, it is sent on once more. */
static uint32_t hops_of(uint32_t server)
{
	return server > 0 ? 1 : 0;
}

static int put(struct mst_sim_queue *q, const struct mst_sim_message *m)
{
	struct mst_sim_message *room = mst_sim_queue_add(q);

	if (room == NULL)
		return -ENOMEM;
	*room = *m;
	return 0;
}

static int mail(struct mst_sim_network *n, struct mst_sim_message *m, uint64_t now_ns)
{
	m->due_ns = now_ns + n->latency_ns;
	return put(&n->mail, m);
}

/* @index: as in n->busy. */
static struct mst_sim_link *link_at(struct mst_sim_network *n, uint32_t index)
{
	return index < n->servers ? &n->up[index] : &n->down[index - n->servers];
}

static void look(struct mst_sim_network *n, uint32_t index)
{
	uint64_t due_ns = mst_sim_link_due(link_at(n, index));

	if (due_ns == MST_NEVER)
		mst_heap_remove(&n->busy, index);
	else
		mst_heap_set(&n->busy, index, due_ns);
}

static int load(struct mst_sim_network *n, uint32_t index, const struct mst_sim_message *m,
		uint64_t now_ns)
{
	struct mst_sim_message *room = mst_sim_link_begin(link_at(n, index), now_ns);

	if (room == NULL)
		return -ENOMEM;
	double due_bytes = room->due_bytes;
	*room = *m;
	room->due_bytes = due_bytes;
	look(n, index);
	return 0;
}

static int send_to(struct mst_sim_network *n, struct mst_sim_message *m, uint64_t now_ns)
{
	bool carries = m->event.kind == MST_EV_FULL && mst_sim_link_limits(&n->up[m->server]);

	m->hops = hops_of(m->server);
	return carries ? load(n, m->server, m, now_ns) : mail(n, m, now_ns);
}

int mst_sim_network_send(struct mst_sim_network *n, const struct mst_ledger_event *ev,
			 uint64_t now_ns)
{
	struct mst_sim_message m = { .kind = MST_SIM_EVENT, .event = *ev };
	uint32_t servers = ev->kind == MST_EV_FULL ? n->servers : 1;
	int rc = 0;

	for (; rc == 0 && m.server < servers; m.server++) {
		if (ev->kind == MST_EV_FULL)
			m.event.full.shard = m.server;
		rc = send_to(n, &m, now_ns);
	}
	return rc;
}

int mst_sim_network_post(struct mst_sim_network *n, const struct mst_ledger_event *ev,
			 uint64_t now_ns)
{
	struct mst_sim_message m = { .kind = MST_SIM_EVENT, .due_ns = now_ns, .event = *ev };

	return put(&n->ready, &m);
}

/* Tells the ledger that a server has sent its part of a result. */
static int report_sent(struct mst_sim_network *n, const struct mst_sim_message *m, uint64_t now_ns)
{
	struct mst_ledger_event ev = { .kind = MST_EV_ANSWERED, .who = m->order.who };
	struct mst_sim_message report = { .kind = MST_SIM_EVENT };

	ev.answered.shard = m->server;
	ev.answered.number = m->order.answer.number;
	report.event = ev;
	return m->server == 0 ? mst_sim_network_post(n, &ev, now_ns) : mail(n, &report, now_ns);
}

/* The server has sent its part; the worker has it a latency later. */
static int part_sent(struct mst_sim_network *n, struct mst_sim_message *m, uint64_t now_ns)
{
	int rc = report_sent(n, m, now_ns);

	return rc != 0 ? rc : mail(n, m, now_ns);
}

/* The server begins to send its part. */
static int send_part(struct mst_sim_network *n, struct mst_sim_message *m, uint64_t now_ns)
{
	m->kind = MST_SIM_ORDER;
	m->hops = 0;
	if (mst_sim_link_limits(&n->down[m->server]))
		return load(n, n->servers + m->server, m, now_ns);
	return part_sent(n, m, now_ns);
}

/* The leader's part of a result is sent at once, that of the others when they have the order. What
 * is no result has no parts to be sent. */
static int tell_from(struct mst_sim_network *n, struct mst_sim_message *m, uint64_t now_ns)
{
	bool carries = m->order.kind == MST_DO_RELEASE && m->order.answer.where == MST_WHERE_COPIED;

	if (carries && m->server == 0)
		return send_part(n, m, now_ns);
	m->kind = carries ? MST_SIM_RELAY : MST_SIM_ORDER;
	m->hops = carries ? 0 : hops_of(m->server);
	return mail(n, m, now_ns);
}

int mst_sim_network_tell(struct mst_sim_network *n, const struct mst_decision *order,
			 uint64_t now_ns)
{
	struct mst_sim_message m = { .order = *order };
	uint32_t servers = order->kind == MST_DO_RELEASE ? n->servers : 1;
	int rc = 0;

	for (; rc == 0 && m.server < servers; m.server++)
		rc = tell_from(n, &m, now_ns);
	return rc;
}

/* ---- what happens ---- */

uint64_t mst_sim_network_due(const struct mst_sim_network *n)
{
	uint64_t mail_ns = n->mail.count > 0 ? mst_sim_queue_first(&n->mail)->due_ns : MST_NEVER;
	uint64_t link_ns = mst_heap_least(&n->busy);

	if (n->ready.count > 0)
		return mst_sim_queue_first(&n->ready)->due_ns;
	return mail_ns < link_ns ? mail_ns : link_ns;
}

static int end_link(struct mst_sim_network *n, uint64_t now_ns)
{
	uint32_t index = mst_heap_first(&n->busy);
	struct mst_sim_message m;

	mst_sim_link_end(link_at(n, index), &m, now_ns);
	look(n, index);
	return m.kind == MST_SIM_ORDER ? part_sent(n, &m, now_ns) : mail(n, &m, now_ns);
}

/* Return: as mst_sim_network_step(). */
static int end_mail(struct mst_sim_network *n, uint64_t now_ns, struct mst_sim_message *out)
{
	mst_sim_queue_take(&n->mail, out);
	if (out->kind == MST_SIM_RELAY)
		return send_part(n, out, now_ns);
	if (out->hops == 0)
		return 1;
	out->hops--;
	return mail(n, out, now_ns);
}

int mst_sim_network_step(struct mst_sim_network *n, uint64_t now_ns, struct mst_sim_message *out)
{
	MST_ASSERT(mst_sim_network_due(n) <= now_ns);
	if (n->ready.count > 0) {
		mst_sim_queue_take(&n->ready, out);
		return 1;
	}
	if (n->mail.count > 0 && mst_sim_queue_first(&n->mail)->due_ns <= now_ns)
		return end_mail(n, now_ns, out);
	return end_link(n, now_ns);
}
