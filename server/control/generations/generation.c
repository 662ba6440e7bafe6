/* SPDX-License-Identifier: MIT */
#include "server/control/generations/generation.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/checkpoint/part.h"
#include "common/wire/range.h"
#include "server/core/policy/in_force.h"

int mst_generation_init(struct mst_job_generation *g, const struct mst_server_options *o,
			struct mst_reason *why)
{
	char drawn[MST_CHECKPOINT_SAVE_LEN];
	int rc = mst_checkpoint_draw(drawn);

	*g = (struct mst_job_generation){ .counts = o->server_patience_ns != 0 };
	if (rc != 0) {
		mst_reason_set(why, "cannot draw a name for this run: %s", strerror(-rc));
		return rc;
	}
	snprintf(g->now.run, sizeof(g->now.run), "%.*s", (int)sizeof(g->now.run) - 1, drawn);
	if (g->counts) /* 0 is none */
		g->now.id = strtoull(drawn + sizeof(g->now.run) - 1, NULL, 16) | 1u;
	return 0;
}

/* ---- claims ---- */

/* More than any job gets to: what is counted on from a claim does not wrap. */
#define INCARNATION_MAX (UINT32_MAX / 2)
#define NUMBER_MAX (UINT64_MAX / 4)

static bool is_run(const char *run)
{
	return strlen(run) == MST_RUN_LEN - 1 && strspn(run, "0123456789abcdef") == MST_RUN_LEN - 1;
}

static bool is_sane(const struct mst_hello *hello)
{
	const struct mst_returning *r = &hello->returning;

	return hello->rank >= 0 && r->incarnation > 0 && r->incarnation <= INCARNATION_MAX &&
	       is_run(r->run) && r->number > 0 && r->number <= NUMBER_MAX &&
	       r->version <= NUMBER_MAX && r->samples >= 0 && r->samples <= MST_SAMPLES_MAX &&
	       mst_in_force_is_sane(&r->in_force);
}

static int not_counted(const struct mst_hello *hello, const struct mst_server_options *o,
		       struct mst_reason *why)
{
	mst_reason_set(
		why,
		"rank %" PRId32 " comes back with version %" PRIu64
		" of run %s, and this server of job \"%s\" takes nothing that workers bring: "
		"start it with --server-patience, as the server before it",
		hello->rank, hello->returning.version, hello->returning.run, o->job);
	return -EINVAL;
}

static int another_run(const struct mst_job_generation *g, const struct mst_hello *hello,
		       const struct mst_server_options *o, struct mst_reason *why)
{
	mst_reason_set(why,
		       "rank %" PRId32 " comes back with version %" PRIu64
		       " of run %s, and this server of job \"%s\" is of run %s: end the workers "
		       "that are left of an earlier run, and give each job a port or a --job of "
		       "its own",
		       hello->rank, hello->returning.version, hello->returning.run, o->job,
		       g->now.run);
	/* Before the start the others may be the wrong ones: this worker tries on. */
	return g->now.number > 0 ? -EINVAL : -EBUSY;
}

static int too_new(const struct mst_job_generation *g, const struct mst_hello *hello,
		   struct mst_reason *why)
{
	mst_reason_set(why,
		       "rank %" PRId32 " comes back from generation %" PRIu64
		       " of run %s, and this server is of generation %" PRIu64
		       ": another server has taken its place meanwhile; end this one",
		       hello->rank, hello->returning.number, g->now.run, g->now.number);
	return MST_AGAIN;
}

int mst_generation_check(struct mst_job_generation *g, const struct mst_hello *hello,
			 const struct mst_server_options *o, struct mst_reason *why)
{
	const struct mst_returning *of = &hello->returning;

	if (!mst_hello_returns(hello))
		return 0;
	if (!is_sane(hello))
		return mst_reason_fail(why, -EPROTO,
				       "broke the protocol: it comes back from a generation that "
				       "cannot be");
	if (!g->counts)
		return not_counted(hello, o, why);
	if (g->is_run_known && strcmp(of->run, g->now.run) != 0)
		return another_run(g, hello, o, why);
	if (g->now.number > 0 && of->number > g->now.number)
		return too_new(g, hello, why);
	if (!g->is_run_known)
		snprintf(g->now.run, sizeof(g->now.run), "%s", of->run);
	g->is_run_known = true;
	return 0;
}

struct mst_claimed mst_generation_claimed(const struct mst_hello *hello)
{
	const struct mst_returning *r = &hello->returning;

	if (!mst_hello_returns(hello))
		return (struct mst_claimed){ 0 };
	return (struct mst_claimed){ .number = r->number,
				     .version = r->version,
				     .made = r->made,
				     .made_before = r->made_before,
				     .samples = r->samples };
}

void mst_generation_begins(struct mst_job_generation *g, const struct mst_generation_view *view)
{
	if (!g->counts)
		return;
	g->now.number = view->number;
	g->now.began = view->began;
	g->now.made = view->newest.made;
	g->now.made_before = view->newest.made_before;
	g->newest = view->newest;
	g->is_run_known = true;
}
