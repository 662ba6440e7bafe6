/* SPDX-License-Identifier: MIT */
#include "server/control/transfer/divergence.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "server/control/transfer/claims.h"

/* So many tensors are named. */
#define NAMED 3u

int mst_divergence_init(struct mst_divergence *d)
{
	const struct mst_job *j = &d->base->job;

	d->row = calloc(j->o->workers, sizeof(*d->row));
	return d->row == NULL ? -ENOMEM
			      : mst_comparisons_init(&d->comparisons, j->o->workers, j->present);
}

void mst_divergence_fini(struct mst_divergence *d)
{
	mst_comparisons_fini(&d->comparisons);
	free(d->row);
	d->row = NULL;
}

/* ---- in words ---- */

static void add_name(const struct mst_job *j, uint32_t tensor, struct mst_reason *out)
{
	const struct muster_tensor *rows = mst_tensor_table_rows(j->tensors);
	bool known = rows != NULL && tensor < mst_tensor_table_count(j->tensors);

	if (known && rows[tensor].name != NULL && rows[tensor].name[0] != '\0')
		mst_reason_add(out, "%s", rows[tensor].name);
	else
		mst_reason_add(out, "%" PRIu32, tensor);
}

/* The tensors that digest @at is of. */
static void add_names(const struct mst_job *j, const struct mst_comparison *said, uint32_t at,
		      struct mst_reason *out)
{
	uint32_t first = said->first + at * said->each, last = first + said->each - 1;
	uint32_t count = mst_tensor_table_count(j->tensors);

	if (first < count && last >= count)
		last = count - 1;
	add_name(j, first, out);
	if (last == first)
		return;
	mst_reason_add(out, " to ");
	add_name(j, last, out);
}

static void add_tensors(const struct mst_job *j, const struct mst_odd_rank *odd,
			struct mst_apart *apart)
{
	const struct mst_comparison *own = odd->own, *theirs = odd->theirs;
	struct mst_reason names = { .text = "" };
	uint32_t differ = 0;

	for (uint32_t i = 0; i < own->count; i++) {
		if (own->digest[i] == theirs->digest[i] || ++differ > NAMED)
			continue;
		mst_reason_add(&names, differ > 1 ? ", " : "");
		add_names(j, own, i, &names);
	}
	if (differ > NAMED)
		mst_reason_add(&names, " and %" PRIu32 " more", differ - NAMED);
	if (differ == 0)
		return;
	bool one = differ == 1 && own->each == 1;
	mst_apart_add(apart, "tensor%s %s: not %s of rank %" PRIu32, one ? "" : "s", names.text,
		      one ? "that" : "those", odd->from);
}

static struct mst_apart say(const struct mst_job *j, const struct mst_odd_rank *odd)
{
	const struct mst_comparison *own = odd->own, *theirs = odd->theirs;
	struct mst_apart apart = { .state = true };

	if (own == NULL) {
		mst_apart_add(&apart,
			      "what differs is not kept, as ranks have more than %u "
			      "different states",
			      MST_STATE_GROUPS);
		return apart;
	}
	apart = mst_claims_compare(&(struct mst_parts){ own->part, own->part_count },
				   &(struct mst_parts){ theirs->part, theirs->part_count },
				   odd->from);
	add_tensors(j, odd, &apart);
	return apart;
}

/* ---- who is told ---- */

/* Has one of the two come late, with other kernels? All know of kernels that differed at the
 * start. */
static bool have_other_kernels(struct mst_divergence *d, const struct mst_odd_rank *odd)
{
	const uint32_t ranks[] = { odd->rank, odd->from };

	for (size_t i = 0; i < 2; i++) {
		const struct mst_conn *c = mst_frontend_worker(&d->base->front,
							       d->row[ranks[i]].who);
		if (c != NULL && c->other_kernels)
			return true;
	}
	return false;
}

static void tell(struct mst_divergence *d, const struct mst_odd_rank *odd, const char *why)
{
	struct mst_conn *c = mst_frontend_worker(&d->base->front, d->row[odd->rank].who);

	if (c == NULL || c->left)
		return;
	struct mst_message *m = mst_frontend_draft(&d->base->front, MST_MSG_DIFFERS);
	m->differs = (struct mst_differs){ .version = odd->version,
					   .from = odd->from,
					   .kernels = have_other_kernels(d, odd) };
	memcpy(m->differs.why, why, sizeof(m->differs.why));
	mst_frontend_send(&d->base->front, c, m);
}

/* Last bits that other kernels have computed are not what was promised to be the same. */
static void note_end(struct mst_divergence *d, const struct mst_odd_rank *odd)
{
	struct mst_job *j = &d->base->job;

	if (odd->last && j->apart.text[0] == '\0' && !have_other_kernels(d, odd))
		mst_reason_set(&j->apart,
			       "the ranks have not ended with the same state: after version "
			       "%" PRIu64 " rank %" PRIu32 " differs from rank %" PRIu32,
			       odd->version, odd->rank, odd->from);
}

static void handle(struct mst_divergence *d, const struct mst_odd_rank *odd)
{
	struct mst_divergence_row *row = &d->row[odd->rank];
	struct mst_job *j = &d->base->job;
	bool takes = row->takes && !odd->last;

	if (row->takes && odd->is_right)
		return; /* of as many, the others take its state */
	struct mst_apart apart = say(j, odd);
	j->differences += !odd->again;
	note_end(d, odd);
	if (row->told) {
		mst_debug("rank %" PRIu32 " differs from rank %" PRIu32 " after version %" PRIu64
			  ": %s",
			  odd->rank, odd->from, odd->version, apart.why.text);
		return;
	}
	row->told = true;
	mst_comparisons_discount(&d->comparisons, odd->rank, odd->version);
	mst_warn("rank %" PRIu32 " differs from rank %" PRIu32 " after version %" PRIu64 ": %s%s",
		 odd->rank, odd->from, odd->version, apart.why.text,
		 takes ? "; it takes the state of another rank" : "");
	tell(d, odd, apart.why.text);
	if (takes && !row->strays) {
		row->strays = true;
		d->strays++;
	}
}

static void look(struct mst_divergence *d)
{
	struct mst_odd_rank odd;

	while (mst_comparisons_find(&d->comparisons, &odd))
		handle(d, &odd);
	mst_divergence_step(d);
}

/* ---- what happens ---- */

const char *mst_divergence_compare(struct mst_divergence *d, const struct mst_conn *c,
				   const struct mst_comparison *said)
{
	struct mst_divergence_row *row = &d->row[c->who.rank];

	bool both = said->part_count > 0 && said->count > 0;

	if (said->each == 0 || both || d->base->job.o->owner != MUSTER_WORKERS_OWN)
		return "broke the protocol: it compares what cannot be compared";
	if (row->who.incarnation != c->who.incarnation)
		mst_divergence_took(d, c->who.rank);
	row->who = c->who;
	row->takes = said->takes != 0;
	if (mst_comparisons_take(&d->comparisons, c->who.rank, said) != 0)
		return NULL; /* there are other versions to compare */
	look(d);
	return NULL;
}

void mst_divergence_took(struct mst_divergence *d, uint32_t rank)
{
	struct mst_divergence_row *row = &d->row[rank];

	mst_comparisons_forget(&d->comparisons, rank);
	d->strays -= row->strays;
	row->told = row->strays = false;
}

void mst_divergence_lost(struct mst_divergence *d)
{
	if (d->comparisons.count > 0)
		look(d);
}

void mst_divergence_step(struct mst_divergence *d)
{
	if (d->base->job.server == NULL)
		return;
	for (uint32_t rank = 0; d->strays > 0 && rank < d->base->job.o->workers; rank++) {
		struct mst_divergence_row *row = &d->row[rank];
		struct mst_ledger_event ev = { .kind = MST_EV_STRAYS, .who = row->who };
		if (!row->strays)
			continue;
		if (!mst_requests_event(&d->base->job.requests, &ev))
			return;
		row->strays = false;
		d->strays--;
	}
}
