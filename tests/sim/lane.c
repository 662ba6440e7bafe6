/* SPDX-License-Identifier: MIT */
/*
 * One way of a link: what is put on it lands at the other end later, oldest first, a piece at a
 * time. A source is read when its piece lands; so whoever touches it too early spoils what arrives.
 */
#include <errno.h>
#include <string.h>

#include "common/base/assert.h"
#include "tests/sim/net_state.h"

static const char silence[] = "nothing that was put has been acknowledged for too long: the path "
			      "to the peer is dead, or its host has no power; look at both";
static const char goodbye[] = "the process at the other end has closed the link, or was killed: "
			      "look at its log";

/* ---- queues ---- */

static void push(struct sim_queue *q, struct sim_entry *e)
{
	e->next = NULL;
	if (q->head == NULL)
		q->head = e;
	else
		q->tail->next = e;
	q->tail = e;
	q->count++;
}

static struct sim_entry *pop(struct sim_queue *q)
{
	struct sim_entry *e = q->head;

	q->head = e->next;
	q->count--;
	return e;
}

static struct sim_entry *entry_new(struct sim_lane *lane)
{
	struct sim_entry *e = lane->spare;

	if (e == NULL)
		return sim_alloc(sizeof(*e));
	lane->spare = e->next;
	return e;
}

static void recycle(struct sim_lane *lane, struct sim_entry *e)
{
	if (e->lent != NULL)
		mst_region_take_back(e->lent);
	e->lent = NULL;
	e->next = lane->spare;
	lane->spare = e;
}

static void drop_all(struct sim_lane *lane, struct sim_queue *q)
{
	while (q->head != NULL)
		recycle(lane, pop(q));
}

/* ---- inbound region ---- */

static const char *way(const struct sim_lane *lane)
{
	return lane == &lane->from->session->up ? "up" : "down";
}

void sim_lane_init(struct sim_lane *lane, struct sim_end *from, struct sim_end *to)
{
	const struct mst_lanes *lanes = &from->link.lanes;

	lane->from = from;
	lane->to = to;
	lane->bytes = from->connector ? lanes->up_bytes : lanes->down_bytes;
	lane->credits = from->connector ? lanes->up_credits : lanes->down_credits;
	lane->inbound = sim_alloc(lane->bytes + 8);
	lane->imm = sim_alloc((lane->credits + 1) * sizeof(*lane->imm));
}

void sim_lane_write(struct sim_lane *lane, size_t offset, const void *src, size_t bytes)
{
	const struct mst_export *e = &lane->export;
	const uint8_t *from = src;

	for (size_t i = 0; i < bytes && !lane->freed && e->region != NULL; i++) {
		bool apart = offset + i >= e->at && offset + i - e->at < e->bytes;
		if (apart && lane->revoked)
			continue;
		uint8_t *to = apart ? e->region->base + e->offset - e->at : lane->inbound;
		to[offset + i] = from[i];
	}
	if (!lane->freed && bytes > 0 && e->region == NULL)
		memmove(lane->inbound + offset, src, bytes);
}

/* Ends on a bound of 8 bytes of the inbound region, so that no aligned word is ever torn. */
static size_t piece_of(size_t offset, size_t left)
{
	size_t piece = sim_between(1, sim_manner.piece_bytes / 8) * 8 - offset % 8;

	return piece < left ? piece : left;
}

static void arrive(struct sim_lane *lane, uint32_t imm)
{
	struct sim_end *to = lane->to;

	if (to->state == SIM_END_GONE || to->error != 0 || to->owner->dead)
		return;
	MST_ASSERT(lane->arrived < lane->credits);
	lane->imm[(lane->first + lane->arrived++) % lane->credits] = imm;
	if (to->net != NULL)
		sim_net_ring(to->net);
}

uint32_t sim_lane_take_arrival(struct sim_lane *lane)
{
	uint32_t imm = lane->imm[lane->first];

	MST_ASSERT(lane->arrived > 0);
	lane->first = (lane->first + 1) % lane->credits;
	lane->arrived--;
	lane->polled++;
	if (lane->to->session->near)
		lane->returned = lane->polled;
	return imm;
}

/* ---- on the way ---- */

static void move(void *ctx, uint64_t unused);

static bool is_active(const struct sim_end *e)
{
	return (e->state == SIM_END_IDLE || e->state == SIM_END_LIVE) && e->error == 0;
}

static uint64_t stands_until(const struct sim_lane *lane)
{
	if (lane->from->session->near)
		return 0;
	return sim_path_free_at(lane->from->owner, lane->to->owner);
}

static void go(struct sim_lane *lane)
{
	const struct sim_entry *e = lane->way.head;
	uint64_t now_ns = sim_now();

	if (lane->moving || lane->to_go == 0)
		return;
	uint64_t due_ns = e->put_ns + sim_manner.latency_ns + sim_below(sim_manner.jitter_ns + 1);
	if (due_ns < lane->due_ns)
		due_ns = lane->due_ns;
	lane->piece = piece_of(e->offset + e->done, e->bytes - e->done);
	due_ns += lane->piece * sim_manner.ns_per_kib / 1024;
	if (!lane->from->session->near && sim_chance(sim_manner.slow_chance))
		due_ns += sim_manner.slow_ns;
	lane->due_ns = due_ns > now_ns ? due_ns : now_ns;
	lane->moving = true;
	sim_after(lane->due_ns - now_ns, move, lane, 0);
}

/* Nothing of @e moves, or is acknowledged, until @until_ns, or ever (MST_NEVER): the link may be
 * lost for that. Return: in which time to look again. */
static uint64_t hold(struct sim_lane *lane, const struct sim_entry *e, uint64_t until_ns)
{
	uint64_t since_ns = e->put_ns > lane->progress_ns ? e->put_ns : lane->progress_ns;
	uint64_t give_up_ns = since_ns + sim_manner.give_up_ns;

	if (is_active(lane->from) && sim_now() >= give_up_ns) {
		lane->from->deaf = true;
		sim_end_lose(lane->from, -EPIPE, silence);
	}
	if (is_active(lane->from) && until_ns > give_up_ns)
		until_ns = give_up_ns;
	return until_ns == MST_NEVER ? sim_manner.latency_ns : until_ns - sim_now();
}

static uint64_t sum_of(const uint8_t *bytes, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i += sizeof(sum)) {
		uint64_t word = 0;
		memcpy(&word, bytes + i, count - i < sizeof(word) ? count - i : sizeof(word));
		sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		sum ^= sum >> 32;
	}
	return sum;
}

/* Until it is acknowledged a put may be sent again, and would be read again. */
static void check_source(const struct sim_lane *lane, const struct sim_entry *e)
{
	if (sim_nets_watch()->spoiled != NULL && sum_of(e->src, e->bytes) != e->sum)
		sim_nets_watch()->spoiled(&lane->from->link);
}

/* In the order in which they landed; there is at least one happening for each. */
static void acknowledge(void *ctx, uint64_t unused)
{
	struct sim_lane *lane = ctx;

	(void)unused;
	while (lane->acks.head != NULL && lane->acks.head->sent_ns <= sim_now()) {
		uint64_t until_ns = lane->to->deaf ? MST_NEVER : stands_until(lane);
		if (until_ns > 0) {
			sim_after(hold(lane, lane->acks.head, until_ns), acknowledge, lane, 0);
			return;
		}
		lane->progress_ns = sim_now();
		check_source(lane, lane->acks.head);
		struct sim_entry *e = pop(&lane->acks);
		if (e->signal)
			push(&lane->sent, e);
		else
			recycle(lane, e);
		if (lane->from->net != NULL)
			sim_net_ring(lane->from->net);
	}
}

static void put_landed(struct sim_lane *lane, struct sim_entry *e)
{
	uint64_t sent_ns = sim_now() + sim_below(sim_manner.linger_ns + 1);

	lane->travelling--;
	if (e->notify)
		arrive(lane, e->imm);
	if ((!e->signal && e->lent == NULL) || !is_active(lane->from)) {
		recycle(lane, e);
		return;
	}
	e->sent_ns = sent_ns > lane->ack_due_ns ? sent_ns : lane->ack_due_ns;
	lane->ack_due_ns = e->sent_ns;
	push(&lane->acks, e);
	sim_after(e->sent_ns - sim_now(), acknowledge, lane, 0);
}

static void landed(struct sim_lane *lane)
{
	struct sim_entry *e = pop(&lane->way);

	lane->to_go--;
	if (e->kind == SIM_ENTRY_PUT) {
		put_landed(lane, e);
		return;
	}
	if (e->kind == SIM_ENTRY_CREDIT)
		lane->from->in->returned = e->polled;
	else if (is_active(lane->to))
		sim_end_lose(lane->to, -EPIPE, goodbye);
	recycle(lane, e);
}

static void move(void *ctx, uint64_t unused)
{
	struct sim_lane *lane = ctx;
	struct sim_entry *e = lane->way.head;

	(void)unused;
	if (lane->to_go == 0) {
		lane->moving = false;
		return;
	}
	bool nobody = lane->to->deaf && is_active(lane->from);
	uint64_t until_ns = nobody ? MST_NEVER : stands_until(lane);
	if (until_ns > 0) {
		sim_after(hold(lane, e, until_ns), move, lane, 0);
		return;
	}
	lane->moving = false;
	/* A lane that was severed may have less to go than was planned. */
	size_t left = e->bytes - e->done, piece = lane->piece < left ? lane->piece : left;
	sim_lane_write(lane, e->offset + e->done, e->src + e->done, piece);
	if (piece > 0 && !lane->freed && sim_nets_watch()->landed != NULL)
		sim_nets_watch()->landed(&lane->to->link, !lane->to->connector);
	e->done += piece;
	lane->due_ns = lane->progress_ns = sim_now();
	if (e->done == e->bytes)
		landed(lane);
	go(lane);
}

static struct sim_entry *enqueue(struct sim_lane *lane, const struct sim_entry *what)
{
	struct sim_entry *e = entry_new(lane);

	*e = *what;
	e->put_ns = sim_now();
	if (e->lent != NULL)
		mst_region_lend(e->lent);
	if (e->signal || e->lent != NULL)
		e->sum = sum_of(e->src, e->bytes);
	push(&lane->way, e);
	lane->travelling += e->kind == SIM_ENTRY_PUT;
	return e;
}

void sim_lane_flush(struct sim_lane *lane)
{
	lane->to_go = lane->way.count;
	go(lane);
}

void sim_lane_tell(struct sim_lane *in)
{
	if (in->told == in->polled || in->to->hung || in->to->session->near)
		return;
	in->told = in->polled;
	enqueue(in->to->out, &(struct sim_entry){ .kind = SIM_ENTRY_CREDIT, .polled = in->polled });
	sim_lane_flush(in->to->out);
}

void sim_lane_hang_up(struct sim_lane *lane)
{
	enqueue(lane, &(struct sim_entry){ .kind = SIM_ENTRY_HANG_UP });
	sim_lane_flush(lane);
}

void sim_lane_forget_sent(struct sim_lane *lane)
{
	drop_all(lane, &lane->acks);
	drop_all(lane, &lane->sent);
}

uint64_t sim_lane_take_sent(struct sim_lane *lane)
{
	struct sim_entry *e = pop(&lane->sent);

	recycle(lane, e);
	return e->cookie;
}

static void take_back(struct sim_queue *q)
{
	for (struct sim_entry *e = q->head; e != NULL; e = e->next) {
		if (e->lent != NULL)
			mst_region_take_back(e->lent);
		e->lent = NULL;
	}
}

void sim_lane_take_back(struct sim_lane *lane)
{
	take_back(&lane->way);
	take_back(&lane->acks);
	take_back(&lane->sent);
}

/* ---- an end of it ---- */

/* From here on its bytes are in the network. */
static void keep(struct sim_entry *e)
{
	size_t left = e->bytes - e->done;

	if (left == 0)
		return;
	uint8_t *copy = sim_alloc(left);
	memcpy(copy, e->src + e->done, left);
	e->src = copy;
	if (e->lent != NULL)
		mst_region_take_back(e->lent);
	e->lent = NULL;
	e->offset += e->done;
	e->bytes = left;
	e->done = 0;
}

/* It ends somewhere in its middle. */
static void cut(struct sim_entry *e)
{
	size_t words = (e->bytes - e->done) / 8;

	e->bytes = e->done + sim_below(words + 1) * 8;
	e->notify = e->signal = false;
}

void sim_lane_sever(struct sim_lane *lane, bool all)
{
	struct sim_queue old = lane->way;
	uint32_t left = all ? old.count : lane->to_go;

	sim_lane_forget_sent(lane);
	if (lane->from->session->near)
		return; /* it has landed already */
	lane->way = (struct sim_queue){ 0 };
	while (old.head != NULL) {
		struct sim_entry *e = pop(&old);
		if (left > 0 && !all && sim_chance(0.3)) {
			cut(e);
			left = 1;
		}
		if (left == 0) {
			recycle(lane, e);
			continue;
		}
		keep(e);
		push(&lane->way, e);
		left--;
	}
	sim_lane_flush(lane);
}

/* ---- put ---- */

static int admit(const struct sim_end *e, const struct mst_put *put)
{
	const struct sim_lane *lane = e->out;

	MST_ASSERT(e->net != NULL);
	if (put->offset > lane->bytes || put->bytes > lane->bytes - put->offset)
		return -EINVAL;
	if (put->region != NULL && !mst_region_has(put->region, put->src, put->bytes))
		return -EINVAL;
	if (e->state != SIM_END_LIVE)
		return -EPIPE;
	return put->notify && lane->notified - lane->returned == lane->credits ? -EAGAIN : 0;
}

static void taken(struct sim_end *e, const struct mst_put *put)
{
	const struct sim_net_watch *watch = sim_nets_watch();

	e->out->notified += put->notify;
	if (put->notify)
		e->last_imm = put->imm;
	sim_mix(put->offset ^ (uint64_t)put->bytes << 20 ^ (uint64_t)put->imm << 32);
	if (put->notify)
		sim_say("link %u %s: put %zu+%zu, imm %08x", e->session->number, way(e->out),
			put->offset, put->bytes, put->imm);
	else
		sim_say("link %u %s: put %zu+%zu", e->session->number, way(e->out), put->offset,
			put->bytes);
	if (watch->put != NULL)
		watch->put(&e->link, e->connector, put);
}

/* Others may run between the pieces, and this process may die there. */
static void copy_over(struct sim_end *e, const struct mst_put *put)
{
	const uint8_t *src = put->src;
	size_t done = 0;

	if (put->bytes == 0 || src == (uint8_t *)e->link.outbound + put->offset)
		return;
	e->link.copied += put->bytes;
	while (done < put->bytes && !e->owner->dead) {
		size_t piece = piece_of(put->offset + done, put->bytes - done);
		sim_lane_write(e->out, put->offset + done, src + done, piece);
		done += piece;
		if (done < put->bytes)
			sim_preempt();
	}
}

int sim_lane_put_near(struct mst_link *link, const struct mst_put *put)
{
	struct sim_end *e = (struct sim_end *)link;
	int rc = admit(e, put);

	if (rc < 0)
		return rc;
	taken(e, put);
	copy_over(e, put);
	if (put->notify) {
		enqueue(e->out, &(struct sim_entry){ .notify = true, .imm = put->imm });
		sim_lane_flush(e->out);
	}
	sim_preempt();
	return 1;
}

/* Read where it lies, but not in the outbound region. */
static bool lies_apart(const struct sim_net *net, const struct mst_put *put)
{
	uintptr_t at = (uintptr_t)put->src, base = (uintptr_t)net->net.published;

	if (put->region != NULL)
		return true;
	return base != 0 && at >= base && at - base <= net->net.published_bytes &&
	       put->bytes <= net->net.published_bytes - (at - base);
}

/* A word that is put again and again need not queue up: its source is read when it lands. */
static bool is_queued_already(const struct sim_lane *lane, const struct mst_put *put,
			      const uint8_t *src)
{
	const struct sim_entry *last = lane->way.tail;

	return lane->way.count > 0 && last->kind == SIM_ENTRY_PUT && last->done == 0 &&
	       last->src == src && last->offset == put->offset && last->bytes == put->bytes &&
	       !last->notify && !last->signal && last->lent == NULL && !put->notify &&
	       !put->signal && put->region == NULL;
}

int sim_lane_put_far(struct mst_link *link, const struct mst_put *put)
{
	struct sim_end *e = (struct sim_end *)link;
	bool apart = put->bytes > 0 && lies_apart(e->net, put);
	int rc = admit(e, put);

	if (rc != -EINVAL && !apart && put->bytes > 0 &&
	    put->offset + put->bytes > link->outbound_bytes)
		return -EINVAL;
	if (rc < 0)
		return rc;
	uint8_t *there = apart ? NULL : (uint8_t *)link->outbound + put->offset;
	const uint8_t *src = apart ? put->src : there;
	bool in_place = put->bytes > 0 && put->src == src;
	bool queued = is_queued_already(e->out, put, src);
	if (e->out->travelling == e->room && !queued)
		return -EAGAIN;
	taken(e, put);
	if (!in_place && put->bytes > 0) {
		memmove(there, put->src, put->bytes);
		link->copied += put->bytes;
	}
	if (!queued)
		enqueue(e->out, &(struct sim_entry){ .offset = put->offset,
						     .bytes = put->bytes,
						     .src = src,
						     .notify = put->notify,
						     .imm = put->imm,
						     .signal = put->signal && in_place,
						     .lent = in_place ? put->region : NULL,
						     .cookie = put->cookie });
	if (!put->more)
		sim_lane_flush(e->out);
	sim_preempt();
	return in_place ? 0 : 1;
}
