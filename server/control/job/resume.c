/* SPDX-License-Identifier: MIT */
#include "server/control/job/resume.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/checkpoint/find.h"
#include "common/checkpoint/keep.h"
#include "common/checkpoint/load.h"
#include "common/kernels/isa.h"
#include "common/kernels/sum.h"
#include "server/control/job/kept.h"
#include "server/control/job/sentences.h"
#include "server/options/paths.h"
#include "server/options/rule.h"

void mst_resume_fini(struct mst_resume *r)
{
	if (r->dir == NULL)
		return;
	mst_checkpoint_manifest_fini(&r->manifest);
	free(r->kept.rank);
	*r = (struct mst_resume){ .dir = NULL };
}

static void warn_refused(void *arg, uint64_t version, const char *why)
{
	(void)arg;
	mst_warn("the checkpoint of version %" PRIu64 " cannot be used: %s", version, why);
}

/* ---- what the manifest keeps of the ledger ---- */

/* The names are those that a controller of this kind gives its figures.
 * Return: NULL, or the first one that the checkpoint does not have. */
static const char *read_figures(const struct mst_resume *r, struct mst_controller_figure *figure,
				uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (mst_values_real(&r->manifest.values, figure[i].name, &figure[i].value) != 0)
			return figure[i].name;
	return NULL;
}

struct mst_in_force mst_resume_in_force(const struct mst_resume *r)
{
	struct mst_in_force what;

	mst_kept_in_force(&r->manifest.values, &what);
	return what;
}

bool mst_resume_overrides(const struct mst_resume *r, const struct mst_server_options *o)
{
	return o->server_patience_ns != 0 && mst_resume_in_force(r).number > 0;
}

/* There may be fewer workers than before. */
void mst_resume_policy(const struct mst_resume *r, const struct mst_server_options *o,
		       struct mst_policy *policy)
{
	struct mst_controller_figure figure[MST_CONTROLLER_FIGURES];
	uint32_t count = mst_controller_keep(&policy->controller, figure);
	const char *missing = read_figures(r, figure, count);

	if (count == 0)
		return;
	if (missing != NULL) {
		mst_warn("the policy begins anew: version %" PRIu64
			 " was written under %s, and has no figure \"%s\" for %s to go on from",
			 r->kept.version, r->manifest.policy, missing, o->policy);
		return;
	}
	if (!mst_controller_resume(&policy->controller, figure, &policy->rule)) {
		mst_warn("the policy begins anew: version %" PRIu64
			 " was written under %s, and %s cannot go on from its figures",
			 r->kept.version, r->manifest.policy, o->policy);
		return;
	}
	if (policy->rule.quorum > (int32_t)o->workers)
		policy->rule.quorum = (int32_t)o->workers;
	mst_info("the policy goes on where it was in version %" PRIu64, r->kept.version);
}

/* ---- whether the job can go on from it ---- */

/* Vectors of another optimiser may have the same name and another meaning. */
static bool is_of(const struct mst_checkpoint_manifest *m, const struct mst_optim *row)
{
	size_t name = strcspn(m->optimizer, ":");

	return strlen(row->name) == name && memcmp(m->optimizer, row->name, name) == 0;
}

/* Parameters such as the rate may have changed. The vectors that the optimiser keeps must be
 * there. */
static int check_optimizer(const struct mst_resume *r, const struct mst_optimizer *o,
			   struct mst_reason *why)
{
	const struct mst_checkpoint_manifest *m = &r->manifest;

	for (unsigned i = 0; i < MST_STATES_MAX; i++) {
		if (!mst_optimizer_keeps(o, i) ||
		    (is_of(m, o->row) && mst_checkpoint_group(m, o->row->state[i].name) != NULL))
			continue;
		mst_reason_set(
			why,
			"the checkpoint of version %" PRIu64
			" in %s is of --optimizer %.100s, and has no \"%s\" for %s; start with "
			"that optimiser, or without --resume",
			m->id.version, r->dir, m->optimizer, o->row->state[i].name, o->row->name);
		return -EINVAL;
	}
	return 0;
}

static int check_options(const struct mst_resume *r, const struct mst_server_options *o,
			 const struct mst_optimizer *optimizer, struct mst_reason *why)
{
	const struct mst_checkpoint_manifest *m = &r->manifest;

	if (o->elems != 0 && m->id.elems != o->elems) {
		mst_reason_set(why,
			       "the checkpoint of version %" PRIu64
			       " in %s is of a vector of %" PRIu64
			       " elements, and --elems says %" PRIu64 ": leave --elems out",
			       m->id.version, r->dir, m->id.elems, o->elems);
		return -EINVAL;
	}
	if (m->owner != (enum muster_owner)o->owner) {
		mst_reason_set(why,
			       "the checkpoint of version %" PRIu64
			       " in %s is of a job with --owner %s, this one has --owner %s",
			       m->id.version, r->dir,
			       m->owner == MUSTER_WORKERS_OWN ? "workers" : "servers",
			       o->owner == MUSTER_WORKERS_OWN ? "workers" : "servers");
		return -EINVAL;
	}
	return o->owner == MUSTER_WORKERS_OWN ? 0 : check_optimizer(r, optimizer, why);
}

int mst_resume_check(const struct mst_resume *r, const struct mst_hello *hello,
		     struct mst_reason *why)
{
	const struct mst_checkpoint_manifest *m = &r->manifest;

	if (!mst_resume_is_set(r))
		return 0;
	if (m->id.elems == hello->elems && m->type == (enum muster_type)hello->type &&
	    m->result_type == (enum muster_type)hello->result_type)
		return 0;
	mst_reason_set(why,
		       "the job goes on from version %" PRIu64
		       " in %.100s, whose vector has %" PRIu64
		       " elements of %s with results of %s; this worker has %" PRIu64
		       " of %s with results of %s",
		       m->id.version, r->dir, m->id.elems, mst_type_name(m->type),
		       mst_type_name(m->result_type), hello->elems,
		       mst_type_name((enum muster_type)hello->type),
		       mst_type_name((enum muster_type)hello->result_type));
	return -EINVAL;
}

/* ---- finding it ---- */

static void tell_average(const struct mst_resume *r, const struct mst_server_options *o)
{
	bool has = mst_checkpoint_group(&r->manifest, MST_GROUP_AVERAGE) != NULL;

	if (o->average > 0 && !has)
		mst_info("job \"%s\": the moving average begins with the parameters of version "
			 "%" PRIu64 ", whose checkpoint has none",
			 o->job, r->manifest.id.version);
	else if (o->average == 0 && has)
		mst_info("job \"%s\": the moving average of the checkpoint is not kept on: say "
			 "--average, as before, for that",
			 o->job);
}

/* Where the policy outlives the servers, the start says which it is. */
static void tell_policy(const struct mst_resume *r, const struct mst_server_options *o)
{
	struct mst_in_force changed = mst_resume_in_force(r);

	if (mst_resume_overrides(r, o))
		return;
	if (changed.number > 0 && strcmp(changed.policy, o->policy) != 0)
		mst_info("job \"%s\": the policy is %s from now on, as the command line says; it "
			 "was changed to %s while the job ran, and muster policy %s changes it "
			 "again",
			 o->job, o->policy, changed.policy, changed.policy);
	else if (strcmp(r->manifest.policy, o->policy) != 0)
		mst_info("job \"%s\": the policy is %s from now on", o->job, o->policy);
}

static void tell(const struct mst_resume *r, const struct mst_server_options *o)
{
	const struct mst_checkpoint_manifest *m = &r->manifest;

	mst_info("job \"%s\" goes on from version %" PRIu64 " in %s: %.0f samples, %" PRIu64
		 " elements in %" PRIu32 " files, written under %s with %s",
		 o->job, m->id.version, r->dir, r->kept.samples, m->id.elems, m->parts, m->policy,
		 m->optimizer[0] != '\0' ? m->optimizer : "no optimiser");
	tell_policy(r, o);
	if (m->workers != o->workers)
		mst_info("job \"%s\": workers are %" PRIu32 " from now on, and were %" PRIu32,
			 o->job, o->workers, m->workers);
	tell_average(r, o);
}

/* Checkpoints that are newer than the one that is taken were refused. If this job writes to the
 * same directory, they would count as newer than its own. */
static int set_aside(const struct mst_resume *r, const struct mst_server_options *o,
		     struct mst_reason *why)
{
	if (!mst_server_options_saves(o) || !mst_server_paths_same(o->state, r->dir))
		return 0;
	return mst_checkpoint_set_aside(r->dir, r->manifest.id.version, why);
}

/* Reads all data once before any server loads them, and what is kept of the ledger. If they are
 * damaged, it looks for an older checkpoint. */
static int find_sound(struct mst_resume *r, struct mst_checkpoint_wanted *wanted,
		      struct mst_reason *why)
{
	struct mst_reason clause;
	int rc = mst_checkpoint_find(r->dir, wanted, &r->manifest, why);

	while (rc == 0) {
		rc = mst_checkpoint_verify(r->dir, &r->manifest, &clause);
		if (rc == 0)
			rc = mst_kept_read(&r->manifest, r->dir, &r->kept, &clause);
		if (rc == 0)
			return 0;
		if (!mst_checkpoint_is_damage(rc))
			return mst_checkpoint_unread(rc, r->dir, r->manifest.id.version,
						     clause.text, why);
		mst_reason_set(why, "%s", clause.text);
		warn_refused(NULL, r->manifest.id.version, why->text);
		wanted->before = r->manifest.id.version;
		mst_checkpoint_manifest_fini(&r->manifest);
		mst_checkpoint_manifest_init(&r->manifest);
		int older = mst_checkpoint_find(r->dir, wanted, &r->manifest, &clause);
		if (mst_checkpoint_is_damage(older))
			return rc; /* and why the newest cannot be used */
		if (older != 0)
			mst_reason_set(why, "%s", clause.text);
		rc = older;
	}
	return rc;
}

static void advise_to_begin(struct mst_reason *why)
{
	mst_reason_add(why,
		       ": fix --resume, or give --or-begin if the job is to begin with version 0");
}

/* What the options leave out of the optimiser is that of the checkpoint. The terms are read once
 * more, because other figures of theirs follow from the optimiser. */
static int take_optimizer(const struct mst_resume *r, const struct mst_server_options *o,
			  struct mst_terms *terms, struct mst_reason *why)
{
	char before[MST_OPTIM_TEXT_LEN], after[MST_OPTIM_TEXT_LEN], now[MST_OPTIM_TEXT_LEN];
	struct mst_server_options kept = *o;

	if (o->owner == MUSTER_WORKERS_OWN)
		return 0;
	kept.optimizer = mst_server_options_optimizer_kept(o, r->manifest.optimizer, after);
	mst_optimizer_text(&terms->optimizer, before);
	int rc = mst_server_rule_check(&kept, why);
	if (rc == 0)
		rc = mst_terms_read(&kept, terms, why);
	if (rc == 0 && strcmp(mst_optimizer_text(&terms->optimizer, now), before) != 0)
		mst_info("job \"%s\": the optimiser is %s, as in the checkpoint; a new job under "
			 "--policy %s would have %s, and --optimizer changes it",
			 o->job, now, o->policy, before);
	return rc;
}

int mst_resume_find(struct mst_resume *r, const struct mst_server_options *o,
		    struct mst_terms *terms, struct mst_reason *why)
{
	struct mst_checkpoint_wanted wanted = { .job = o->job, .refused = warn_refused };

	*r = (struct mst_resume){ .dir = mst_server_options_resume(o) };
	mst_checkpoint_manifest_init(&r->manifest);
	int rc = find_sound(r, &wanted, why);
	if (rc == -ENOENT && wanted.before == 0) {
		if (mst_server_options_or_begin(o))
			mst_info("job \"%s\" begins anew%s: there is no checkpoint in %s", o->job,
				 mst_server_options_succeeds(o)
					 ? ", unless a worker comes back to it"
					 : "",
				 r->dir);
		else
			advise_to_begin(why);
		mst_resume_fini(r);
		return mst_server_options_or_begin(o) ? 0 : rc;
	}
	if (rc == 0)
		rc = take_optimizer(r, o, terms, why);
	if (rc == 0)
		rc = check_options(r, o, &terms->optimizer, why);
	if (rc == 0)
		rc = set_aside(r, o, why);
	if (rc == 0)
		tell(r, o);
	else
		mst_resume_fini(r);
	return rc;
}

int mst_resume_follow(struct mst_resume *r, const struct mst_server_options *o,
		      const struct mst_appoint *appoint, struct mst_reason *why)
{
	const char *dir = mst_server_options_resume(o);

	if (dir == NULL) {
		mst_reason_set(
			why,
			"the job goes on from a checkpoint of version %" PRIu64
			": start this server with --resume and the leader's directory, which all "
			"servers must see",
			appoint->resumed_version);
		return -EINVAL;
	}
	*r = (struct mst_resume){ .dir = dir };
	mst_checkpoint_manifest_init(&r->manifest);
	int rc = mst_checkpoint_manifest_read(r->dir, appoint->resumed_version, &r->manifest, why);
	if (rc == 0 && strcmp(r->manifest.id.save, appoint->resumed_save) != 0) {
		mst_reason_set(
			why,
			"version %" PRIu64
			" in %s is of another run than the one that the leader goes on from (save "
			"%s, not %s): give all servers the same directory",
			appoint->resumed_version, r->dir, r->manifest.id.save,
			appoint->resumed_save);
		rc = -EINVAL;
	}
	if (rc == 0)
		rc = mst_checkpoint_check(r->dir, &r->manifest, why);
	if (rc != 0)
		mst_resume_fini(r);
	return rc;
}

/* ---- its vectors ---- */

static int load(const struct mst_resume *r, const struct mst_resume_range *range, const char *group,
		float *into, struct mst_reason *why)
{
	struct mst_checkpoint_loading what = { .group = group,
					       .type = MST_DTYPE_F32,
					       .first = range->first,
					       .count = range->count,
					       .into = into };

	return mst_checkpoint_load(r->dir, &r->manifest, &what, why);
}

/* An average that is new begins with the parameters. */
static int load_average(const struct mst_resume *r, const struct mst_resume_range *range,
			struct mst_reason *why)
{
	bool has = mst_checkpoint_group(&r->manifest, MST_GROUP_AVERAGE) != NULL;

	return load(r, range, has ? MST_GROUP_AVERAGE : MST_GROUP_PARAMETERS, range->into.average,
		    why);
}

/* The parameters are kept in f32. Where results have 16 bits, they are rounded as a commit rounds
 * them. */
int mst_resume_load(const struct mst_resume *r, const struct mst_resume_range *range,
		    struct mst_reason *why)
{
	const struct mst_resumed *into = &range->into;
	int rc;

	if (range->optimizer->row == NULL)
		return 0;
	rc = load(r, range, MST_GROUP_PARAMETERS, into->theta != NULL ? into->theta : into->result,
		  why);
	if (rc == 0 && into->theta != NULL)
		(void)mst_isa()->store(into->result, range->result_type, into->theta, range->count);
	for (unsigned i = 0; i < MST_STATES_MAX && rc == 0; i++)
		if (into->state[i] != NULL)
			rc = load(r, range, range->optimizer->row->state[i].name, into->state[i],
				  why);
	if (into->average != NULL && rc == 0)
		rc = load_average(r, range, why);
	return rc;
}
