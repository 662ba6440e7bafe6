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

	static_assert(MST_CHECKPOINT_SAVE_LEN == 2 * MST_RUN_LEN - 1, "two names are drawn");
	*g = (struct mst_job_generation){ .counts = mst_server_options_goes_on(o) };
	if (rc != 0) {
		mst_reason_set(why, "cannot draw a name for this run: %s", strerror(-rc));
		return rc;
	}
	snprintf(g->now.run, sizeof(g->now.run), "%.*s", (int)sizeof(g->now.run) - 1, drawn);
	uint64_t id = strtoull(drawn + sizeof(g->now.run) - 1, NULL, 16) | 1u; /* 0 is none */
	snprintf(g->drawn, sizeof(g->drawn), "%016" PRIx64, id);
	if (g->counts)
		g->now.id = id;
	return 0;
}

/* ---- checkpoints ---- */

void mst_generation_resume(struct mst_job_generation *g, const struct mst_checkpoint_manifest *m,
			   const char *dir)
{
	static_assert(sizeof(m->run) == sizeof(g->now.run), "the same names");
	mst_job_line_read(&g->line, &m->values);
	if (m->run[0] == '\0')
		return; /* a worker that comes back says it, or it is a new one */
	snprintf(g->now.run, sizeof(g->now.run), "%s", m->run);
	g->is_run_known = true;
	g->saved_in = dir;
	g->saved = m->id.version;
}

/* All that a start saves begins with the id that it has drawn. */
uint64_t mst_generation_maker(const struct mst_checkpoint_manifest *m)
{
	char drawn[MST_RUN_LEN];

	snprintf(drawn, sizeof(drawn), "%.*s", (int)sizeof(drawn) - 1, m->id.save);
	return m->generation > 0 ? strtoull(drawn, NULL, 16) : 0;
}

int mst_generation_save(const struct mst_job_generation *g, struct mst_checkpoint_manifest *m)
{
	snprintf(m->run, sizeof(m->run), "%s", g->now.run);
	m->generation = g->now.number;
	return mst_job_line_write(&g->line, &m->values);
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
	bool has = r->number > 0 || (r->seen > 0 && r->version == 0);

	return has && hello->rank >= 0 && r->incarnation > 0 && r->incarnation <= INCARNATION_MAX &&
	       is_run(r->run) && r->number <= NUMBER_MAX && r->version <= NUMBER_MAX &&
	       r->seen <= NUMBER_MAX && r->samples >= 0 && r->samples <= MST_SAMPLES_MAX &&
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

/* Before the start the others may be the wrong ones, or the directory: this worker tries on. */
static int wrong_checkpoint(const struct mst_job_generation *g, const struct mst_hello *hello,
			    const struct mst_server_options *o, struct mst_reason *why)
{
	return mst_reason_fail(
		why, -EBUSY,
		"rank %" PRId32 " comes back with version %" PRIu64
		" of run %s, and the newest sound checkpoint in %.200s (--state of job \"%s\"), of "
		"version %" PRIu64
		", is of run %s: start this server with the directory of the workers' run, or end "
		"the workers that are left of it",
		hello->rank, hello->returning.version, hello->returning.run, g->saved_in, o->job,
		g->saved, g->now.run);
}

static int another_run(const struct mst_job_generation *g, const struct mst_hello *hello,
		       const struct mst_server_options *o, struct mst_reason *why)
{
	if (g->saved_in != NULL && g->now.number == 0)
		return wrong_checkpoint(g, hello, o, why);
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

/* What is claimed before the start. If the start never comes, the reason names it. */
static void note_absent(struct mst_job_generation *g, const struct mst_returning *of)
{
	struct mst_claimed *most = &g->absent;
	bool more = of->number > most->number ||
		    (of->number == most->number && of->version > most->version);

	if (g->now.number == 0 && more)
		*most = (struct mst_claimed){ .number = of->number, .version = of->version };
}

bool mst_generation_is_another(const struct mst_job_generation *g, const struct mst_hello *hello)
{
	return g->counts && g->is_run_known && mst_hello_returns(hello) &&
	       strcmp(hello->returning.run, g->now.run) != 0;
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
	if (mst_generation_is_another(g, hello))
		return another_run(g, hello, o, why);
	if (!g->is_run_known)
		snprintf(g->now.run, sizeof(g->now.run), "%s", of->run);
	g->is_run_known = true;
	note_absent(g, of);
	return 0;
}

struct mst_claimed mst_generation_claimed(const struct mst_hello *hello)
{
	const struct mst_returning *r = &hello->returning;

	if (!mst_hello_returns(hello))
		return (struct mst_claimed){ 0 };
	return (struct mst_claimed){ .number = r->number,
				     .workers = r->workers,
				     .version = r->version,
				     .made = r->made,
				     .made_before = r->made_before,
				     .samples = r->samples,
				     .seen = r->seen,
				     .seen_id = r->seen_id,
				     .taken = r->taken != 0 };
}

uint64_t mst_generation_stands(const struct mst_job_generation *g, const struct mst_claimed *of)
{
	return mst_job_line_stands(&g->line, of);
}

void mst_generation_tell(const struct mst_job_generation *g, struct mst_status *out)
{
	if (!g->counts)
		return;
	out->generation = g->now.number;
	if (g->is_run_known)
		snprintf(out->run, sizeof(out->run), "%s", g->now.run);
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
	struct mst_job_line_row row = { g->now.number, g->now.id, g->now.began };
	mst_job_line_add(&g->line, &row);
}
