/* SPDX-License-Identifier: MIT */
#include "tools/sim/tickets.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/assert.h"

struct ticket_worker {
	uint32_t incarnation;
	bool live, started;
	uint64_t ask; /* number of the last one */
};

struct mst_sim_tickets {
	uint32_t workers, quorum;
	uint64_t commits_max;
	double samples_max;
	uint64_t step;  /* the newest version */
	uint32_t count; /* gradients in the open step */
	double samples;
	uint32_t old, fresh; /* tickets of earlier steps, and of the newest */
	uint32_t started;
	bool in_place, begun, ended;
	struct ticket_worker *worker;
	uint32_t *waiting; /* ring of ranks that want a ticket */
	uint32_t waiting_head, waiting_count;
	struct mst_decision *queue; /* of one event; a commit serves each worker at most once */
	uint32_t queue_size, queue_head, queue_count;
};

static struct mst_decision *decide(struct mst_sim_tickets *t, enum mst_decision_kind kind,
				   uint32_t rank)
{
	MST_ASSERT(t->queue_count < t->queue_size);
	struct mst_decision *d = &t->queue[t->queue_count++];

	*d = (struct mst_decision){ .kind = kind, .who = { rank, t->worker[rank].incarnation } };
	return d;
}

static void serve(struct mst_sim_tickets *t, uint32_t rank, uint64_t step)
{
	struct mst_decision *d = decide(t, MST_DO_RELEASE, rank);

	d->answer.number = t->worker[rank].ask;
	d->answer.version = step;
	d->answer.newest = t->step;
	d->answer.where = t->in_place ? MST_WHERE_IN_PLACE : MST_WHERE_COPIED;
}

/* Gives tickets to those that wait, the older ones first. */
static void hand_out(struct mst_sim_tickets *t)
{
	while (t->waiting_count > 0 && t->old + t->fresh > 0) {
		uint32_t rank = t->waiting[t->waiting_head];

		t->waiting_head = (t->waiting_head + 1) % t->workers;
		t->waiting_count--;
		bool is_old = t->old > 0;
		t->old -= is_old;
		t->fresh -= !is_old;
		serve(t, rank, is_old ? t->step - 1 : t->step);
	}
}

static void finish(struct mst_sim_tickets *t, enum mst_finish_why why)
{
	struct mst_decision *d = decide(t, MST_DO_FINISH, 0);

	d->finish.why = why;
	d->finish.version = t->step;
	t->ended = true;
}

static void commit(struct mst_sim_tickets *t)
{
	t->count = 0;
	t->step++;
	t->old += t->fresh;
	t->fresh = t->workers;
	decide(t, MST_DO_COMMIT, 0)->commit.version = t->step;
	if (t->commits_max > 0 && t->step >= t->commits_max)
		finish(t, MST_FINISH_COMMITS);
	else if (t->samples_max > 0 && t->samples >= t->samples_max)
		finish(t, MST_FINISH_SAMPLES);
	else
		hand_out(t);
}

static void take_gradient(struct mst_sim_tickets *t, uint32_t rank, const struct mst_lane_header *h)
{
	bool counts = h->tag >= t->step;
	struct mst_decision *d = decide(t, MST_DO_VERDICT, rank);

	d->verdict.seq = h->seq;
	d->verdict.tag = h->tag;
	d->verdict.verdict = counts ? MUSTER_COUNTED : MUSTER_LATE;
	d->verdict.counted_in = counts ? t->step + 1 : 0;
	decide(t, MST_DO_REGRANT, rank)->grant.epoch = h->epoch + 1;
	t->count += counts;
	t->samples += counts ? h->weight : 0;
	t->worker[rank].ask = h->ask.number;
	MST_ASSERT(t->waiting_count < t->workers);
	t->waiting[(t->waiting_head + t->waiting_count++) % t->workers] = rank;
	if (t->count == t->quorum)
		commit(t);
	else
		hand_out(t);
}

/* A worker computes its first gradient without a ticket, on the newest version. */
static void start(struct mst_sim_tickets *t, uint32_t rank)
{
	t->worker[rank].started = true;
	t->worker[rank].ask = 1;
	t->started++;
	if (t->begun) {
		serve(t, rank, t->step);
	} else if (t->started == t->workers) {
		t->begun = true;
		decide(t, MST_DO_START, rank);
		for (uint32_t i = 0; i < t->workers; i++)
			serve(t, i, 0);
	}
}

static void join(struct mst_sim_tickets *t, uint32_t rank)
{
	if (t->worker[rank].live) {
		struct mst_decision *d = decide(t, MST_DO_REFUSE, rank);
		d->join.cookie = rank;
		d->join.error = -EEXIST;
		return;
	}
	t->worker[rank].live = true;
	t->worker[rank].incarnation++;
	decide(t, MST_DO_ADMIT, rank)->join.cookie = rank;
}

/* A worker that dies while it waits takes no ticket; one that dies later takes its ticket with
 * it. */
static void lose(struct mst_sim_tickets *t, uint32_t rank)
{
	uint32_t waited = t->waiting_count;

	t->waiting_count = 0;
	for (uint32_t i = 0; i < waited; i++) {
		uint32_t other = t->waiting[(t->waiting_head + i) % t->workers];
		if (other != rank)
			t->waiting[(t->waiting_head + t->waiting_count++) % t->workers] = other;
	}
	t->worker[rank].live = t->worker[rank].started = false;
	decide(t, MST_DO_EVICT, rank)->evict = MST_EVICT_LOST;
}

void mst_sim_tickets_handle(struct mst_sim_tickets *t, const struct mst_ledger_event *ev)
{
	uint32_t rank = ev->kind == MST_EV_JOIN ? (uint32_t)ev->join.rank : ev->who.rank;

	MST_ASSERT(t->queue_head == t->queue_count && rank < t->workers);
	t->queue_head = t->queue_count = 0;
	if (ev->kind == MST_EV_JOIN)
		join(t, rank);
	else if (ev->kind == MST_EV_SPOILT && !t->ended)
		finish(t, MST_FINISH_SPOILT);
	else if (t->ended || !t->worker[rank].live ||
		 ev->who.incarnation != t->worker[rank].incarnation)
		return;
	else if (ev->kind == MST_EV_START)
		start(t, rank);
	else if (ev->kind == MST_EV_FULL)
		take_gradient(t, rank, &ev->full.header);
	else if (ev->kind == MST_EV_LOST)
		lose(t, rank);
}

bool mst_sim_tickets_next(struct mst_sim_tickets *t, struct mst_decision *out)
{
	if (t->queue_head == t->queue_count)
		return false;
	*out = t->queue[t->queue_head++];
	return true;
}

void mst_sim_tickets_free(struct mst_sim_tickets *t)
{
	if (t == NULL)
		return;
	free(t->worker);
	free(t->waiting);
	free(t->queue);
	free(t);
}

int mst_sim_tickets_new(const struct mst_ledger_cfg *cfg, uint32_t quorum,
			struct mst_sim_tickets **out)
{
	struct mst_sim_tickets *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return -ENOMEM;
	MST_ASSERT(quorum >= 1 && quorum <= cfg->workers);
	t->workers = cfg->workers;
	t->quorum = quorum;
	t->in_place = cfg->in_place;
	t->commits_max = cfg->commits_max;
	t->samples_max = cfg->samples_max;
	t->queue_size = cfg->workers + 8;
	t->worker = calloc(t->workers, sizeof(*t->worker));
	t->waiting = calloc(t->workers, sizeof(*t->waiting));
	t->queue = calloc(t->queue_size, sizeof(*t->queue));
	if (t->worker == NULL || t->waiting == NULL || t->queue == NULL) {
		mst_sim_tickets_free(t);
		return -ENOMEM;
	}
	*out = t;
	return 0;
}
