/* SPDX-License-Identifier: MIT */
#include "server/control/job/checkpointing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/host/memory.h"
#include "server/control/job/kept.h"

void mst_checkpointing_fini(struct mst_checkpointing *c)
{
	mst_checkpoint_manifest_fini(&c->next);
	mst_checkpoint_manifest_fini(&c->written);
}

/* ---- this server's part ---- */

static void fill_id(const struct mst_job *j, uint64_t version, struct mst_checkpoint_id *out)
{
	static_assert(MST_CHECKPOINT_SAVE_LEN == MST_RUN_LEN + 16, "a start and a version");
	*out = (struct mst_checkpoint_id){ .version = version, .elems = j->plan.vector.elems };
	snprintf(out->job, sizeof(out->job), "%s", j->o->job);
	snprintf(out->save, sizeof(out->save), "%s%016" PRIx64, j->saves, version);
}

static void add_vector(struct mst_checkpointing *c, const char *group, const void *base)
{
	uint32_t i = c->writing.vectors++;

	c->piece[i] = (struct mst_checkpoint_piece){ base, c->writing.count };
	c->vector[i] = (struct mst_checkpoint_vector){
		.group = group, .type = MST_DTYPE_F32, .piece = &c->piece[i], .pieces = 1
	};
}

static void write_part(struct mst_checkpointing *c)
{
	const struct mst_job *j = c->job;
	const struct mst_aggregator_cfg *a = &j->plan.server.aggregator;

	fill_id(j, c->saving.version, &c->id);
	c->writing = (struct mst_checkpoint_writing){
		.id = &c->id,
		.part = a->index,
		.parts = mst_job_servers(j),
		.first = j->plan.first,
		.count = j->plan.count,
		.table = mst_tensor_table_rows(j->tensors),
		.tensors = mst_tensor_table_count(j->tensors),
		.vector = c->vector,
		.pace.bytes_per_second = j->o->checkpoint_rate,
	};
	add_vector(c, MST_GROUP_PARAMETERS,
		   c->saving.theta != NULL ? (const void *)c->saving.theta : c->saving.result);
	for (unsigned i = 0; i < MST_STATES_MAX; i++)
		if (c->saving.state[i] != NULL)
			add_vector(c, a->optimizer.row->state[i].name, c->saving.state[i]);
	if (c->saving.average != NULL)
		add_vector(c, MST_GROUP_AVERAGE, c->saving.average);
	c->archive->ops->write(c->archive, &c->writing);
	c->work = MST_ARCHIVE_WRITES;
}

static void part_ended(struct mst_checkpointing *c, bool failed)
{
	c->failed = failed;
	c->report_due = true;
}

/* Where workers own, servers have no part, and the leader's manifest is the checkpoint. */
static void begin_part(struct mst_checkpointing *c)
{
	c->part_due = false;
	c->why_not.text[0] = '\0';
	if (c->saving.spoilt || c->job->plan.server.aggregator.owner == MUSTER_WORKERS_OWN)
		part_ended(c, c->saving.spoilt);
	else
		write_part(c);
}

static void report(struct mst_checkpointing *c)
{
	struct mst_ledger_event ev = { .kind = MST_EV_SAVED };

	ev.saved.shard = c->job->plan.server.aggregator.index;
	ev.saved.version = c->saving.version;
	ev.saved.failed = c->failed;
	c->report_due = !mst_requests_event(&c->job->requests, &ev);
}

/* ---- the leader's manifest ---- */

static void add_group(struct mst_checkpoint_manifest *m, const char *name)
{
	struct mst_checkpoint_group *g = &m->group[m->groups++];

	g->type = MST_DTYPE_F32;
	snprintf(g->name, sizeof(g->name), "%s", name);
}

static void fill_groups(const struct mst_aggregator_cfg *cfg, struct mst_checkpoint_manifest *m)
{
	const struct mst_optimizer *o = &cfg->optimizer;

	if (o->row == NULL)
		return;
	add_group(m, MST_GROUP_PARAMETERS);
	for (unsigned i = 0; i < MST_STATES_MAX; i++)
		if (mst_optimizer_keeps(o, i))
			add_group(m, o->row->state[i].name);
	if (cfg->averages)
		add_group(m, MST_GROUP_AVERAGE);
}

/* The policy is the one that is in force when the version is saved. */
static int fill_manifest(const struct mst_job *j, const struct mst_kept *kept,
			 struct mst_checkpoint_manifest *m, struct mst_reason *why)
{
	const struct mst_optimizer *optimizer = &j->plan.server.aggregator.optimizer;
	char text[MST_OPTIM_TEXT_LEN];

	mst_checkpoint_manifest_fini(m);
	mst_checkpoint_manifest_init(m);
	fill_id(j, kept->version, &m->id);
	m->type = j->plan.vector.type;
	m->result_type = j->plan.vector.result_type;
	m->owner = (enum muster_owner)j->o->owner;
	m->workers = j->o->workers;
	snprintf(m->optimizer, sizeof(m->optimizer), "%s", mst_optimizer_text(optimizer, text));
	snprintf(m->policy, sizeof(m->policy), "%s", mst_job_policy(j)->name);
	fill_groups(&j->plan.server.aggregator, m);
	m->parts = m->groups > 0 ? mst_job_servers(j) : 0;
	int rc = mst_kept_write(kept, m, why);
	if (rc == 0 && (mst_kept_write_in_force(&j->in_force.now, &m->values) != 0 ||
			mst_generation_save(&j->generation, m) != 0))
		rc = mst_reason_fail(why, -ENOMEM, "there is no memory for its manifest");
	return rc;
}

/* The newest checkpoint that a start would go on from; 0: none. */
static uint64_t newest_kept(const struct mst_checkpointing *c)
{
	bool succeeds = mst_server_options_succeeds(c->job->o);

	return c->last_version == 0 && succeeds ? mst_job_first_version(c->job) : c->last_version;
}

/* Servers own, and another server takes the place of one that is lost: says what that costs.
 * @version: the newest. */
static void add_costs(const struct mst_checkpointing *c, uint64_t version, const char *when,
		      struct mst_reason *out)
{
	if (mst_server_options_succeeds(c->job->o) && version > newest_kept(c))
		mst_reason_add(out, "; %s %" PRIu64 " versions", when, version - newest_kept(c));
}

void mst_checkpointing_tell(const struct mst_checkpointing *c, struct mst_status *out)
{
	const struct mst_server_options *o = c->job->o;
	uint64_t kept = newest_kept(c);

	if (c->archive != NULL && kept > 0)
		out->kept_version = kept;
	if (!mst_server_options_goes_on(o) || mst_job_is_over(c->job))
		return;
	if (o->owner == MUSTER_WORKERS_OWN)
		out->loss_costs = 0;
	else if (mst_server_options_succeeds(o))
		out->loss_costs = out->version > kept ? out->version - kept : 0;
}

/* What this server knows of its part says more than what the ledger says of all. */
static void warn(struct mst_checkpointing *c, uint64_t version, const char *why)
{
	bool goes_on = !mst_job_is_over(c->job) && !c->job->stopped;
	struct mst_reason last;

	mst_reason_set(&last, "there is none before");
	if (newest_kept(c) > 0)
		mst_reason_set(&last, "the last one is of version %" PRIu64, newest_kept(c));
	if (goes_on)
		add_costs(c, version, "a lost server would now cost at least", &last);
	mst_warn("job \"%s\": no checkpoint of version %" PRIu64 ": %s; %s%s", c->job->o->job,
		 version, why, goes_on ? "the job goes on, and " : "", last.text);
	if (c->why_not.text[0] == '\0')
		mst_reason_set(&c->why_not, "%s", why);
}

static void tell_complete(struct mst_checkpointing *c, const struct mst_archive_end *end,
			  uint64_t now_ns)
{
	uint64_t version = c->written.id.version;
	struct mst_reason costs = { .text = "" };
	char size[32];

	add_costs(c, version, "until then a lost server would have cost", &costs);
	c->last_version = version;
	mst_info("job \"%s\": checkpoint of version %" PRIu64 ": %s in %.2f s%s", c->job->o->job,
		 version, mst_memory_text(end->bytes, size, sizeof(size)),
		 (double)(now_ns - c->written_ns) / (double)MST_SECOND, costs.text);
}

static void begin_manifest(struct mst_checkpointing *c)
{
	c->manifest_due = false;
	c->work = MST_ARCHIVE_COMPLETES;
	c->archive->ops->complete(c->archive, &c->written);
}

/* ---- what the data side and the archive say ---- */

static void begins(struct mst_checkpointing *c, const struct mst_kept *kept, uint64_t now_ns)
{
	c->next_comes = false;
	c->begun++;
	c->next_ns = now_ns;
	if (fill_manifest(c->job, kept, &c->next, &c->refused) != 0)
		c->next.id.version = MST_VERSION_NONE; /* it is not completed */
}

static void all_reported(struct mst_checkpointing *c, const struct mst_notice *notice)
{
	bool complete = c->next.id.version == notice->saved.version;

	c->next_comes = notice->saved.again;
	if (!notice->saved.failed && complete) {
		struct mst_checkpoint_manifest before = c->written;
		/* this server's part was written when the manifest before had been */
		MST_ASSERT(!c->manifest_due && c->work != MST_ARCHIVE_COMPLETES);
		c->written = c->next;
		c->written_ns = c->next_ns;
		c->next = before;
		c->manifest_due = true;
		return;
	}
	c->ended++;
	warn(c, notice->saved.version,
	     complete ? "a server could not write its part" : c->refused.text);
}

void mst_checkpointing_notice(struct mst_checkpointing *c, const struct mst_notice *notice,
			      uint64_t now_ns)
{
	MST_ASSERT(c->archive != NULL);
	switch (notice->kind) {
	case MST_NOTE_SAVES:
		begins(c, notice->kept, now_ns);
		break;
	case MST_NOTE_SAVE:
		c->saving = notice->saving;
		c->part_due = true;
		break;
	default:
		all_reported(c, notice);
	}
}

static void take_end(struct mst_checkpointing *c, uint64_t now_ns)
{
	enum mst_checkpointing_work work = c->work;
	struct mst_archive_end end;

	if (work == MST_ARCHIVE_RESTS || !c->archive->ops->ended(c->archive, &end))
		return;
	c->work = MST_ARCHIVE_RESTS;
	if (work == MST_ARCHIVE_WRITES) {
		if (end.error != 0) {
			c->why_not = end.why;
			mst_warn("cannot write this server's part of version %" PRIu64 ": %s",
				 c->saving.version, end.why.text);
		}
		part_ended(c, end.error != 0);
		return;
	}
	c->ended++;
	if (end.error != 0)
		warn(c, c->written.id.version, end.why.text);
	else
		tell_complete(c, &end, now_ns);
}

void mst_checkpointing_step(struct mst_checkpointing *c, uint64_t now_ns)
{
	if (c->archive == NULL)
		return;
	/* the end of a job waits for its checkpoint */
	if (mst_job_is_over(c->job) || c->job->stopped)
		c->archive->ops->hurry(c->archive);
	take_end(c, now_ns);
	if (c->work == MST_ARCHIVE_RESTS && c->manifest_due)
		begin_manifest(c);
	else if (c->work == MST_ARCHIVE_RESTS && c->part_due)
		begin_part(c);
	if (c->report_due && c->job->server != NULL)
		report(c);
}

/* Adds a save that comes before that of the newest version. */
static void add_before(char *text, size_t len, uint64_t version, uint64_t ns)
{
	size_t used = strlen(text);

	snprintf(text + used, len - used, ", after that of version %" PRIu64 ", begun %.3g s ago",
		 version, (double)ns / (double)MST_SECOND);
}

void mst_checkpointing_stops(const struct mst_checkpointing *c, uint64_t newest, uint64_t now_ns)
{
	bool completes = c->manifest_due || c->work == MST_ARCHIVE_COMPLETES;
	bool saves = c->begun - c->ended > completes;
	char before[192] = "";

	if (!mst_checkpointing_is_busy(c))
		return;
	if (completes && c->written.id.version < newest)
		add_before(before, sizeof(before), c->written.id.version, now_ns - c->written_ns);
	if (saves && c->next.id.version < newest)
		add_before(before, sizeof(before), c->next.id.version, now_ns - c->next_ns);
	mst_warn("job \"%s\": this server ends when the checkpoint of version %" PRIu64
		 ", the newest, is written%s; at the latest in %.3g s (--patience), or at another "
		 "signal",
		 c->job->o->job, newest, before,
		 (double)c->job->o->patience_ns / (double)MST_SECOND);
}

void mst_checkpointing_ended(struct mst_checkpointing *c, uint64_t newest)
{
	if (c->archive != NULL && newest != MST_VERSION_NONE &&
	    newest > mst_job_first_version(c->job))
		c->due = newest;
}

bool mst_checkpointing_is_missing(const struct mst_checkpointing *c, struct mst_reason *out)
{
	bool told = c->why_not.text[0] != '\0';
	const char *why = told ? c->why_not.text : "it was not made, or not waited for";

	if (mst_job_follows(c->job)) {
		mst_reason_set(out,
			       "this server's part of the checkpoint of version %" PRIu64 ": %s",
			       c->saving.version, why);
		return c->failed && !c->saving.spoilt;
	}
	mst_reason_set(out, "the checkpoint of version %" PRIu64 ": %s", c->due, why);
	if (c->last_version > 0)
		mst_reason_add(out, "; the last one is of version %" PRIu64, c->last_version);
	return c->due != 0 && c->last_version != c->due;
}

void mst_checkpointing_give_up(const struct mst_checkpointing *c)
{
	if (mst_checkpointing_is_busy(c))
		mst_error("job \"%s\": the checkpoint that was being written is not complete, and "
			  "is not waited for any more; the newest that is complete is of version "
			  "%" PRIu64,
			  c->job->o->job, c->last_version);
}

bool mst_checkpointing_is_busy(const struct mst_checkpointing *c)
{
	return c->archive != NULL && (c->begun != c->ended || c->next_comes || c->part_due ||
				      c->report_due || c->work != MST_ARCHIVE_RESTS);
}
