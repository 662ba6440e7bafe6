/* SPDX-License-Identifier: MIT */
#include "server/options/rule.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/base/text.h"
#include "server/core/policy/policy.h"
#include "server/options/policy_names.h"

int mst_server_options_schedule(const struct mst_server_options *o, struct mst_schedule *out,
				struct mst_reason *why)
{
	if (mst_schedule_parse(o->lr_schedule, out, why) == 0)
		return 0;
	return mst_reason_fail(why, -EINVAL, "option --lr-schedule: %s", why->text);
}

/* B of "samples:B": so small or large that a rate of a job would not be finite, or be 0, is
 * refused. */
#define BATCH_MIN 1e-6
#define BATCH_MAX 1e15

int mst_server_options_lr_scale(const struct mst_server_options *o, struct mst_lr_scaling *out,
				struct mst_reason *why)
{
	static const char *const words[] = { "auto", "linear", "none" }, samples[] = "samples:";
	char *end = NULL;

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(o->lr_scale, words[i]) != 0)
			continue;
		*out = (struct mst_lr_scaling){ .by = i };
		return 0;
	}
	if (strncmp(o->lr_scale, samples, strlen(samples)) == 0) {
		const char *text = o->lr_scale + strlen(samples);
		double batch = mst_text_real(text, &end);
		if (end != text && *end == '\0' && batch >= BATCH_MIN && batch <= BATCH_MAX) {
			*out = (struct mst_lr_scaling){ MST_LR_SCALE_SAMPLES, batch };
			return 0;
		}
	}
	return mst_reason_fail(
		why, -EINVAL,
		"option --lr-scale: \"%.60s\" is none of auto, linear, none and samples:B, where B "
		"is the number of samples in a whole batch of one worker, %g or more, as in "
		"samples:32",
		o->lr_scale, BATCH_MIN);
}

/* What the options that hold under every policy make of a rule. */
static void rule_finish(const struct mst_server_options *o, const struct mst_optimizer *optimizer,
			const struct mst_lr_scaling *scaling, struct mst_rule *rule)
{
	if (o->late != MST_LATE_AUTO && rule->window != MST_WINDOW_MAX)
		rule->late = (enum mst_late)(o->late - 1);
	if (o->compensate && rule->window > 0)
		rule->compensate = true;
	rule->batch = scaling->batch;
	if (scaling->by == MST_LR_SCALE_AUTO)
		rule->linear = !rule->compensate && !(rule->deltas && optimizer->row->divides);
	else
		rule->linear = scaling->by == MST_LR_SCALE_LINEAR;
}

int mst_server_options_policy(const struct mst_server_options *o,
			      const struct mst_optimizer *optimizer, struct mst_policy *out,
			      struct mst_reason *why)
{
	struct mst_lr_scaling scaling;

	if (mst_server_options_lr_scale(o, &scaling, why) != 0)
		return -EINVAL;
	if (strlen(o->policy) >= MST_POLICY_LEN)
		return mst_reason_fail(why, -EINVAL, "\"%.60s...\" is too long", o->policy);
	out->rule = (struct mst_rule){
		.weigh = (enum mst_weigh)o->weigh,
		.divide = optimizer->row->divides,
		.late_start = (enum mst_late_start)o->late_start,
		.patience_ns = o->patience_ns,
		.on_loss = (enum mst_loss)o->on_loss,
		.min_workers = mst_server_options_min_workers(o),
	};
	if (mst_policy_parse(o->policy, out, why) != 0)
		return mst_policy_names_refuse(o->policy, why->text, why);
	if (optimizer->row->deltas && optimizer->row->divides &&
	    !(out->rule.deltas && out->rule.divide))
		return mst_reason_fail(
			why, -EINVAL,
			"the optimiser %s takes the mean of differences of parameters, which "
			"only the policy local:T has; choose that, or another optimiser",
			optimizer->row->name);
	struct mst_rule *then = mst_controller_then(&out->controller);
	rule_finish(o, optimizer, &scaling, &out->rule);
	if (then != NULL)
		rule_finish(o, optimizer, &scaling, then);
	return 0;
}

int mst_server_options_rule(const struct mst_server_options *o, struct mst_policy *out,
			    struct mst_reason *why)
{
	struct mst_optimizer optimizer;
	struct mst_lr_scaling scaling;
	int rc = mst_server_options_lr_scale(o, &scaling, why);

	if (rc == 0)
		rc = mst_server_options_optimizer_check(o, &optimizer, why);
	if (rc == 0 && mst_server_options_policy(o, &optimizer, out, why) != 0)
		rc = mst_reason_fail(why, -EINVAL, "option --policy: %s", why->text);
	return rc;
}

/* Options that would do nothing under any rule of the policy. */
static int late_check(const struct mst_server_options *o, const struct mst_policy *policy,
		      struct mst_reason *why)
{
	uint32_t window = policy->rule.window;
	uint32_t last = mst_controller_last(&policy->controller, &policy->rule, o->workers).window;

	if (o->late != MST_LATE_AUTO && window == MST_WINDOW_MAX && last == MST_WINDOW_MAX)
		return mst_reason_fail(
			why, -EINVAL,
			"--late %s does nothing under --policy %.60s, which counts every "
			"gradient however old it is; leave it out, or choose a policy that "
			"does not, such as backup:N or bounded:S",
			o->late == MST_LATE_DROP_CHOICE ? "drop" : "reject", o->policy);
	if (o->compensate && window == 0 && last == 0)
		return mst_reason_fail(
			why, -EINVAL,
			"--compensate does nothing under --policy %.60s, which counts no "
			"gradient of an older version; leave it out, or choose a policy that "
			"does, such as kasync:K or async",
			o->policy);
	return 0;
}

int mst_server_options_schedule_suits(const struct mst_schedule *schedule,
				      const struct mst_rule *rule, struct mst_reason *why)
{
	if (schedule->count == 0 || (rule->pace.local_steps == 0 && rule->pace.push_every == 0))
		return 0;
	return mst_reason_fail(
		why, -EINVAL,
		"workers make steps of their own under this policy, whose rate is the "
		"workers', and no schedule of the servers (--lr-schedule) reaches it");
}

int mst_server_options_schedule_lasts(const struct mst_server_options *o,
				      const struct mst_schedule *schedule, double samples,
				      struct mst_reason *why)
{
	double end = mst_schedule_end(schedule);

	if (!isfinite(end) || (samples > 0 && samples <= end))
		return 0;
	return mst_reason_fail(
		why, -EINVAL,
		"--lr-schedule %.60s: the rate is 0 from %.17g samples on, and the job may go "
		"on after that; let it end there (--samples %.17g), or give it a floor above "
		"0, as in cosine:%.17g,0.01 and linear:%.17g,0.01",
		o->lr_schedule, end, end, end, end);
}

static int schedule_check(const struct mst_server_options *o, const struct mst_rule *rule,
			  struct mst_reason *why)
{
	struct mst_optimizer optimizer;
	struct mst_schedule schedule;

	if (mst_server_options_schedule(o, &schedule, why) != 0 ||
	    mst_server_options_optimizer(o, &optimizer, why) != 0)
		return -EINVAL;
	if (mst_server_options_schedule_suits(&schedule, rule, why) != 0)
		return mst_reason_fail(why, -EINVAL,
				       "--lr-schedule does nothing under --policy %.60s: %s",
				       o->policy, why->text);
	if (schedule.count > 0 && o->owner == MUSTER_SERVERS_OWN && optimizer.row->scalars == NULL)
		return mst_reason_fail(
			why, -EINVAL,
			"--lr-schedule does nothing with --optimizer %.60s, which has no rate",
			o->optimizer);
	return mst_server_options_schedule_lasts(o, &schedule, o->samples, why);
}

/* Under a window of 0 there is no distance. Else a version has one gradient, and one distance. */
static int distance_suits(const struct mst_rule *rule, struct mst_reason *why)
{
	if (rule->deltas || rule->pace.push_every > 0)
		return mst_reason_fail(
			why, -EINVAL,
			"workers make steps on parameters of their own under this policy, "
			"and --lr-distance compares versions of the servers");
	if (rule->window > 0 && rule->quorum != 1)
		return mst_reason_fail(
			why, -EINVAL,
			"--lr-distance needs versions of one gradient each, which has one "
			"distance, as under async, bounded:S, ssp:S or kasync:1");
	if (rule->compensate)
		return mst_reason_fail(
			why, -EINVAL,
			"each gradient is divided by its staleness already (--compensate, "
			"softsync), and --lr-distance would discount it once more");
	return 0;
}

int mst_server_options_distance_suits(double distance, const struct mst_policy *policy,
				      uint32_t workers, struct mst_reason *why)
{
	struct mst_rule last = mst_controller_last(&policy->controller, &policy->rule, workers);

	if (distance == 0)
		return 0;
	int rc = distance_suits(&policy->rule, why);
	return rc != 0 ? rc : distance_suits(&last, why);
}

static int distance_check(const struct mst_server_options *o, const struct mst_policy *policy,
			  const struct mst_optimizer *optimizer, struct mst_reason *why)
{
	struct mst_rule last = mst_controller_last(&policy->controller, &policy->rule, o->workers);

	if (o->lr_distance == 0)
		return 0;
	if (o->owner == MUSTER_WORKERS_OWN)
		return mst_reason_fail(
			why, -EINVAL,
			"--lr-distance %.9g has nothing to do with --owner workers: there "
			"the servers have no parameters to compare",
			o->lr_distance);
	if (mst_server_options_distance_suits(o->lr_distance, policy, o->workers, why) != 0)
		return mst_reason_fail(why, -EINVAL, "--lr-distance %.9g under --policy %.60s: %s",
				       o->lr_distance, o->policy, why->text);
	if (optimizer->row->scalars == NULL)
		return mst_reason_fail(
			why, -EINVAL,
			"--lr-distance does nothing with --optimizer %.60s, which has no rate",
			o->optimizer);
	if (policy->rule.window == 0 && last.window == 0)
		return mst_reason_fail(
			why, -EINVAL,
			"--lr-distance does nothing under --policy %.60s, which counts no "
			"gradient of an older version; leave it out, or choose a policy that "
			"does, such as async",
			o->policy);
	return 0;
}

/* The same of a rule that scales by the samples. */
static int samples_check(const struct mst_server_options *o, const struct mst_policy *policy,
			 const struct mst_optimizer *optimizer, struct mst_reason *why)
{
	if (policy->rule.batch == 0 || o->owner == MUSTER_WORKERS_OWN ||
	    optimizer->row->scalars != NULL)
		return 0;
	return mst_reason_fail(
		why, -EINVAL,
		"--lr-scale %.60s does nothing with --optimizer %.60s, which has no rate",
		o->lr_scale, optimizer->row->name);
}

static int average_check(const struct mst_server_options *o, struct mst_reason *why)
{
	if (o->average > 0 && o->owner == MUSTER_WORKERS_OWN)
		return mst_reason_fail(
			why, -EINVAL,
			"--average %.9g has nothing to do with --owner workers: there the "
			"servers have no parameters; average them in the workers",
			o->average);
	if ((float)o->average < 1)
		return 0;
	return mst_reason_fail(
		why, -EINVAL,
		"option --average: with %.17g, which is 1 in float, the average would never "
		"change; it has to be less, such as 0.9999",
		o->average);
}

int mst_server_rule_check(const struct mst_server_options *o, struct mst_reason *why)
{
	struct mst_optimizer optimizer;
	struct mst_policy policy;

	if (mst_server_options_rule(o, &policy, why) != 0)
		return -EINVAL;
	if (mst_server_options_optimizer(o, &optimizer, why) != 0)
		return -EINVAL;
	struct mst_rule_context ctx = {
		.owner = (enum muster_owner)o->owner,
		.workers = o->workers,
		.slots = o->slots != 0 ? o->slots : mst_policy_slots(&policy, o->workers),
		.history = o->history,
		.samples_max = o->samples,
		.plain_step = o->owner == MUSTER_SERVERS_OWN && mst_optimizer_is_plain(&optimizer),
		.norms = true, /* a policy that the job starts with has them told */
		.force = o->force,
	};
	if (mst_policy_check(&policy, &ctx, why) != 0)
		return mst_reason_fail(why, -EINVAL, "--policy %s: %s", o->policy, why->text);
	if (schedule_check(o, &policy.rule, why) != 0 || average_check(o, why) != 0 ||
	    distance_check(o, &policy, &optimizer, why) != 0 ||
	    samples_check(o, &policy, &optimizer, why) != 0)
		return -EINVAL;
	return late_check(o, &policy, why);
}
