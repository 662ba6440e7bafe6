/* SPDX-License-Identifier: MIT */
/*
 * The ranks of a run, one by one: whose process a signal has ended and is started again
 * (--restarts), which session a rank had then, and who has not exited yet.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "tools/run/supervisor_state.h"

/* From the death of a process to the next start of its rank; each further one takes twice as long,
 * so that a program which crashes at once does not keep the host and the job busy. */
#define AGAIN_NS MST_SECOND
#define AGAIN_MOST_NS (32 * MST_SECOND)
/* Ranks that a line names. */
#define NAMED_MAX 8u

static uint32_t incarnation_of(const struct mst_job_snapshot *known, uint32_t rank)
{
	const struct mst_status_rank *row = mst_snapshot_rank(known, rank);

	return row != NULL ? row->incarnation : 0;
}

static uint64_t pause_ns(uint32_t restarts)
{
	uint64_t ns = AGAIN_NS;

	while (restarts-- > 0 && ns < AGAIN_MOST_NS)
		ns *= 2;
	return ns;
}

void mst_supervisor_rank_ended(struct mst_supervisor *s, const struct mst_child *worker)
{
	struct mst_rank_course *c = &s->course[worker - mst_supervisor_workers(s)];

	c->known = false;
	c->ask = s->asked;
}

bool mst_supervisor_rank_again(struct mst_supervisor *s, const struct mst_child *worker)
{
	struct mst_rank_course *c = &s->course[worker - mst_supervisor_workers(s)];
	char verdict[64];

	if (worker->status >= 0 || s->ending.signo != 0 || c->restarts >= s->options->restarts)
		return false;
	uint64_t ns = pause_ns(c->restarts);
	c->again_ns = mst_now_ns() + ns;
	mst_child_ending(worker, verdict, sizeof(verdict));
	mst_progress_clear(&s->progress);
	mst_warn("%s %s; it is started again in %" PRIu64 " s (%u of %u restarts)", worker->name,
		 verdict, ns / MST_SECOND, c->restarts + 1, s->options->restarts);
	return true;
}

uint64_t mst_supervisor_rank_next(const struct mst_supervisor *s)
{
	uint64_t next_ns = MST_NEVER;

	for (uint32_t rank = 0; rank < s->workers; rank++)
		if (s->course[rank].again_ns != 0 && s->course[rank].again_ns < next_ns)
			next_ns = s->course[rank].again_ns;
	return next_ns;
}

void mst_supervisor_ranks_start(struct mst_supervisor *s, uint64_t now_ns)
{
	for (uint32_t rank = 0; rank < s->workers && s->phase == MST_SUPERVISOR_RUNNING; rank++) {
		struct mst_rank_course *c = &s->course[rank];
		if (c->again_ns == 0 || now_ns < c->again_ns)
			continue;
		c->again_ns = 0;
		c->known = false; /* what is known is of the process before */
		c->restarts++;
		mst_supervisor_start_rank(s, rank);
	}
}

/* Under way, the policy decides what a loss means: it is named, and no more. @known: what musterd
 * has told since; NULL: nothing. */
static void name_loss(struct mst_supervisor *s, uint32_t rank, const struct mst_job_snapshot *known)
{
	const struct mst_child *worker = &mst_supervisor_workers(s)[rank];
	const struct mst_status_rank *row = known != NULL ? mst_snapshot_rank(known, rank) : NULL;
	char verdict[64], at[48] = "";

	s->course[rank].untold = false;
	mst_child_ending(worker, verdict, sizeof(verdict));
	if (known != NULL)
		(void)snprintf(at, sizeof(at), " at version %" PRIu64,
			       row != NULL && row->gone_at != MST_NOT_KNOWN ? row->gone_at
									    : known->job.version);
	mst_progress_clear(&s->progress);
	if (known != NULL && rank >= known->job.workers)
		mst_info("%s %s: the job goes on with %" PRIu32 " workers", worker->name, verdict,
			 known->job.workers);
	else
		mst_warn("%s %s%s; the policy decides how the job goes on", worker->name, verdict,
			 at);
}

void mst_supervisor_rank_lost(struct mst_supervisor *s, const struct mst_child *worker)
{
	s->course[worker - mst_supervisor_workers(s)].untold = worker->status != 0;
	if (worker->status != 0)
		mst_supervisor_ask(s);
}

void mst_supervisor_ranks_lost(struct mst_supervisor *s)
{
	for (uint32_t rank = 0; rank < s->workers; rank++)
		if (s->course[rank].untold)
			name_loss(s, rank, NULL);
}

void mst_supervisor_ranks_told(struct mst_supervisor *s, const struct mst_job_snapshot *known)
{
	for (uint32_t rank = 0; rank < s->workers; rank++) {
		struct mst_rank_course *c = &s->course[rank];
		const struct mst_child *worker = &mst_supervisor_workers(s)[rank];
		if (worker->pid == 0 || worker->alive || c->known || s->asked == c->ask)
			continue;
		c->known = true;
		c->incarnation = incarnation_of(known, rank);
		if (c->untold)
			name_loss(s, rank, known);
	}
}

__attribute__((format(printf, 3, 4))) static void add(char *out, size_t len, const char *fmt, ...)
{
	size_t used = strlen(out);
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(out + used, len - used, fmt, args);
	va_end(args);
}

uint32_t mst_supervisor_ranks_left(struct mst_supervisor *s, char *out, size_t len)
{
	uint32_t left = 0;

	out[0] = '\0';
	for (uint32_t rank = 0; rank < s->workers; rank++) {
		const struct mst_child *worker = &mst_supervisor_workers(s)[rank];
		if (!worker->alive)
			continue;
		if (left++ < NAMED_MAX)
			add(out, len, "%s%s (process %d)", left > 1 ? ", " : "", worker->name,
			    (int)worker->pid);
	}
	if (left > NAMED_MAX)
		add(out, len, " and %u more", left - NAMED_MAX);
	return left;
}
