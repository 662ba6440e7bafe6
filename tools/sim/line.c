/* SPDX-License-Identifier: MIT */
/* From a command line to the jobs that are simulated. All that can be wrong is found here, before
 * anything is simulated. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/delay/delay.h"
#include "common/host/memory.h"
#include "common/wire/message.h"
#include "server/core/policy/rule.h"
#include "server/core/policy/switch.h"
#include "tools/report.h"
#include "tools/sim/figures.h"
#include "tools/sim/learn/trainer.h"
#include "tools/sim/options.h"
#include "tools/sim/paced.h"
#include "tools/sim/worker.h"

#define TICKETS "tickets"
#define SAMPLES_PER_WORKER 1000.0
#define STALENESS_MAX 1000000u
#define RAMP 20u /* commits for each of staleness, where --staleness-ramp is auto */
#define CHECKS_MAX 1000000u
#define DELAY_BYTES 1024u /* about what the model of a rank takes */

/* ---- figures of all jobs ---- */

static int check_figures(const struct mst_sim_line *line, struct mst_reason *why)
{
	const struct mst_sim_options *o = &line->options;

	if (o->server.workers == 0)
		return mst_reason_fail(
			why, -EINVAL,
			"--workers is missing: say how many workers the job has, such as "
			"-n 8");
	if (o->delay.count == 0)
		return mst_reason_fail(why, -EINVAL,
				       "--delay is missing: say how long a gradient takes, such as "
				       "--delay exp:20, in ms");
	if (o->bytes == 0 && (o->worker_rate > 0 || o->server_rate > 0))
		return mst_reason_fail(
			why, -EINVAL,
			"--%s-rate limits nothing while --size is 0: say how many bytes "
			"a gradient has, such as --size 100M",
			o->worker_rate > 0 ? "worker" : "server");
	if (o->bytes > 0 && o->worker_rate <= 0 && o->server_rate <= 0)
		return mst_reason_fail(
			why, -EINVAL,
			"--size takes no time without --worker-rate or --server-rate");
	if (o->json != NULL && o->csv != NULL && strcmp(o->json, "-") == 0 &&
	    strcmp(o->csv, "-") == 0)
		return mst_reason_fail(why, -EINVAL,
				       "--json - and --csv - both write to standard output");
	return 0;
}

static int read_checks(const char *text, uint32_t *out, struct mst_reason *why)
{
	uint64_t value = MST_SIM_AT_ONCE;

	if (strcmp(text, "inf") != 0 && (mst_parse_u64(text, &value) != 0 || value > CHECKS_MAX))
		return mst_reason_fail(
			why, -EINVAL,
			"option --checks: \"%.60s\" is not a whole number up to %u, or "
			"inf",
			text, CHECKS_MAX);
	*out = (uint32_t)value;
	return 0;
}

/* The specs as such, and that each names a rank of the job. */
static int check_specs(const struct mst_sim_options *o, struct mst_reason *why)
{
	for (uint32_t i = 0; i < o->delay.count; i++) {
		const char *spec = o->delay.item[i];
		size_t digits = strspn(spec, "0123456789");
		char number[24];
		uint64_t rank;

		(void)snprintf(number, sizeof(number), "%.*s", (int)digits, spec);
		if (digits > 0 && spec[digits] == ':' &&
		    (mst_parse_u64(number, &rank) != 0 || rank >= o->server.workers))
			return mst_reason_fail(why, -EINVAL,
					       "option --delay: \"%.60s\": the ranks of %" PRIu32
					       " workers are 0 to %" PRIu32,
					       spec, o->server.workers, o->server.workers - 1);
	}
	return 0;
}

/* Return: the first rank whose first gradient takes no time; @count: there is none. */
static uint32_t first_idle(struct mst_delay **delay, uint32_t count)
{
	uint32_t rank = 0;

	while (rank < count && mst_delay_next(delay[rank]) > 0)
		rank++;
	return rank;
}

/* A worker whose gradients take no time would contribute without end at one moment. */
static int check_delays(const struct mst_sim_options *o, struct mst_reason *why)
{
	struct mst_delay_options opt = { .spec = o->delay.item,
					 .spec_count = o->delay.count,
					 .seed = o->seed };
	uint32_t workers = o->server.workers;
	struct mst_delay **delay = calloc(workers, sizeof(struct mst_delay *));

	if (delay == NULL)
		return mst_reason_fail(why, -ENOMEM, "no memory for %" PRIu32 " workers", workers);
	int rc = mst_delay_new_each(&opt, workers, delay, why);
	if (rc == 0) {
		uint32_t idle = first_idle(delay, workers);
		if (idle < workers)
			rc = mst_reason_fail(why, -EINVAL,
					     "option --delay: a gradient of rank %" PRIu32
					     " takes no time; give a model for all ranks, such as "
					     "--delay const:20",
					     idle);
		for (uint32_t rank = 0; rank < workers; rank++)
			mst_delay_free(delay[rank]);
	}
	free(delay);
	return rc;
}

static int read_changes(struct mst_sim_line *line, struct mst_reason *why)
{
	int rc = 0;

	line->changes.workers = line->options.server.workers;
	for (int kind = 0; rc == 0 && kind <= MST_SIM_JOIN; kind++)
		rc = mst_sim_changes_read(&line->changes, (enum mst_sim_change_kind)kind,
					  &line->options.change[kind], why);
	return rc != 0 ? rc : mst_sim_changes_order(&line->changes, why);
}

/* ---- training ---- */

/* What is said of a training without there being one. */
static int check_untrained(const struct mst_sim_options *o, struct mst_reason *why)
{
	const char *idle = NULL;

	if (o->every != NULL)
		idle = "every";
	else if (strcmp(o->server.optimizer, "auto") != 0)
		idle = "optimizer";
	else if (strcmp(o->server.lr_schedule, "constant") != 0)
		idle = "lr-schedule";
	else if (o->server.lr_distance > 0)
		idle = "lr-distance";
	else if (strcmp(o->server.lr_scale, "auto") != 0)
		idle = "lr-scale";
	else if (o->staleness.count > 0)
		idle = "staleness";
	else if (o->table == MST_SIM_ERRORS)
		idle = "table errors";
	if (idle != NULL)
		return mst_reason_fail(
			why, -EINVAL,
			"--%s means nothing without --train: say what is trained, such as "
			"--train quadratic",
			idle);
	return 0;
}

static int check_staleness(const struct mst_sim_options *o, struct mst_reason *why)
{
	if (o->staleness.count == 0 && o->staleness_ramp > 0)
		return mst_reason_fail(why, -EINVAL,
				       "--staleness-ramp means nothing without --staleness");
	if (o->staleness.count == 0)
		return 0;
	if (o->policy.count > 0)
		return mst_reason_fail(
			why, -EINVAL,
			"--staleness has a rule of its own, with one worker: leave --policy "
			"out");
	if (o->rule_switch.count > 0)
		return mst_reason_fail(
			why, -EINVAL, "--staleness goes without --switch: its rule stays the same");
	if (o->server.workers != 1)
		return mst_reason_fail(why, -EINVAL,
				       "--staleness goes with one worker, and --workers is %" PRIu32
				       ": say -n 1",
				       o->server.workers);
	return 0;
}

static int read_problem(struct mst_sim_line *line, struct mst_reason *why)
{
	const struct mst_sim_options *o = &line->options;
	static struct mst_sim_problem_spec spec; /* too large for a stack */
	struct mst_sim_every every;

	if (o->train == NULL)
		return check_untrained(o, why);
	if (o->every != NULL && mst_sim_every_parse(o->every, &every) != 0)
		return mst_reason_fail(
			why, -EINVAL,
			"option --every: \"%.60s\" is neither a time nor a number of commits "
			"or samples, such as 500ms, 100commits or 6400samples",
			o->every);
	if (mst_sim_problem_parse(o->train, &spec, why) != 0)
		return mst_reason_fail(why, -EINVAL, "option --train: %s", why->text);
	int rc = check_staleness(o, why);
	if (rc != 0)
		return rc;
	spec.seed = o->seed;
	rc = mst_sim_problem_new(&spec, &line->problem, why);
	return rc != 0 ? mst_reason_fail(why, rc, "option --train: %s", why->text) : 0;
}

static int check_micro(const struct mst_sim_cfg *job, const struct mst_rule *rule,
		       const char *policy, struct mst_reason *why)
{
	if (job->problem == NULL || rule->trigger == MST_TRIGGER_NONE ||
	    job->problem->batch % job->micro == 0)
		return 0;
	return mst_reason_fail(why, -EINVAL,
			       "--policy %.40s takes parts of a batch: its %" PRIu64
			       " samples do not make "
			       "%" PRIu32 " equal micro-batches (--micro)",
			       policy, job->problem->batch, job->micro);
}

/* In the serial study of staleness the ledger counts no gradient as stale, though each is. */
static int check_distance(const struct mst_sim_line *line, const struct mst_sim_cfg *job,
			  struct mst_reason *why)
{
	double distance = line->options.server.lr_distance;
	struct mst_policy policy = { job->ledger.rule, job->ledger.controller };
	uint32_t workers = job->ledger.workers;
	bool stale = line->options.staleness.count > 0 || policy.rule.window > 0 ||
		     mst_controller_last(&policy.controller, &policy.rule, workers).window > 0;

	if (job->tickets > 0)
		return mst_reason_fail(
			why, -EINVAL,
			"--lr-distance goes with policies of the server, not with %.40s",
			job->policy);
	int rc = mst_server_options_distance_suits(distance, &policy, workers, why);
	for (uint32_t i = 0; rc == 0 && i < job->change_of_rule_count; i++) {
		policy = (struct mst_policy){ .rule = job->change_of_rule[i].rule };
		stale |= policy.rule.window > 0;
		rc = mst_server_options_distance_suits(distance, &policy, workers, why);
	}
	if (rc != 0)
		return mst_reason_fail(why, -EINVAL, "--lr-distance under --policy %.40s: %s",
				       job->policy, why->text);
	if (job->ledger.optimizer.row->scalars == NULL)
		return mst_reason_fail(
			why, -EINVAL,
			"--lr-distance does nothing with --optimizer %.60s, which has no rate",
			line->options.server.optimizer);
	return stale ? 0
		     : mst_reason_fail(
			       why, -EINVAL,
			       "--lr-distance does nothing under --policy %.40s, which counts no "
			       "gradient of an older version",
			       job->policy);
}

/* The schedule, and what only a training asks of a job. */
static int read_training(struct mst_sim_line *line, struct mst_sim_cfg *job, struct mst_reason *why)
{
	const struct mst_rule *rule = &job->ledger.rule;

	if (job->problem == NULL)
		return 0;
	if (mst_server_options_schedule(&line->options.server, &job->ledger.schedule, why) != 0)
		return -EINVAL;
	if (job->ledger.schedule.count > 0 &&
	    mst_server_options_schedule_suits(&job->ledger.schedule, rule, why) != 0)
		return mst_reason_fail(why, -EINVAL,
				       "--lr-schedule does nothing under --policy %.40s: %s",
				       job->policy, why->text);
	if (job->ledger.schedule.count > 0 && job->ledger.optimizer.row->scalars == NULL)
		return mst_reason_fail(
			why, -EINVAL,
			"--lr-schedule does nothing with --optimizer %.60s, which has no rate",
			line->options.server.optimizer);
	int rc = mst_server_options_schedule_lasts(&line->options.server, &job->ledger.schedule,
						   job->ledger.samples_max, why);
	if (rc == 0)
		rc = check_micro(job, rule, job->policy, why);
	job->ledger.distance = line->options.server.lr_distance;
	if (rc == 0 && job->ledger.distance > 0)
		rc = check_distance(line, job, why);
	job->paced = rule->pace.local_steps > 0 || rule->pace.push_every > 0;
	for (uint32_t i = 0; rc == 0 && i < job->change_of_rule_count; i++) {
		const struct mst_rule *later = &job->change_of_rule[i].rule;
		job->paced |= later->pace.local_steps > 0 || later->pace.push_every > 0;
		rc = check_micro(job, later, line->switches.text[i], why);
	}
	return rc;
}

/* ---- one job ---- */

static bool is_tickets(const char *policy)
{
	size_t len = strlen(TICKETS);

	return strncmp(policy, TICKETS, len) == 0 && (policy[len] == ':' || policy[len] == '\0');
}

static int read_tickets(struct mst_sim_line *line, struct mst_sim_cfg *job, struct mst_reason *why)
{
	uint32_t workers = line->options.server.workers;
	const char *colon = strchr(job->policy, ':');
	uint64_t quorum;

	if (colon == NULL || mst_parse_u64(colon + 1, &quorum) != 0 || quorum == 0)
		return mst_reason_fail(
			why, -EINVAL,
			"option --policy: \"%.40s\": tickets needs a number of gradients, 1 "
			"or more, as in tickets:4",
			job->policy);
	if (quorum > workers)
		return mst_reason_fail(why, -EINVAL,
				       "--policy %.40s: a quorum of %" PRIu64
				       " is more than there are tickets for %" PRIu32 " workers",
				       job->policy, quorum, workers);
	if (line->options.server.servers > 1)
		return mst_reason_fail(why, -EINVAL,
				       "--policy %.40s goes with one server only (--servers 1)",
				       job->policy);
	if (line->options.rule_switch.count > 0)
		return mst_reason_fail(
			why, -EINVAL,
			"--policy %.40s is no policy of the server, so --switch cannot "
			"change it",
			job->policy);
	job->tickets = (uint32_t)quorum;
	struct mst_lr_scaling scaling;
	if (mst_server_options_lr_scale(&line->options.server, &scaling, why) != 0)
		return -EINVAL;
	job->ledger.rule.linear = scaling.by <= MST_LR_SCALE_LINEAR;
	job->ledger.rule.batch = scaling.batch;
	line->options.server.policy = "bsp"; /* what decides on --optimizer auto */
	return mst_server_options_optimizer(&line->options.server, &job->ledger.optimizer, why);
}

static struct mst_rule_context context(const struct mst_sim_cfg *job, bool force)
{
	return (struct mst_rule_context){
		.owner = MUSTER_SERVERS_OWN,
		.workers = job->ledger.workers,
		.slots = job->ledger.slots,
		.quorum_max = mst_ledger_entries(&job->ledger),
		.samples_max = job->ledger.samples_max,
		.plain_step = mst_optimizer_is_plain(&job->ledger.optimizer),
		.norms = true,
		.force = force,
	};
}

/* As the server checks a change. A step has room for the quorum that the job starts with, and for
 * every slot. */
static int check_switch(const struct mst_sim_line *line, const struct mst_sim_cfg *job, uint32_t i,
			struct mst_reason *wrong)
{
	const struct mst_rule *first = &job->ledger.rule;
	const struct mst_rule *from = i > 0 ? &line->switches.at[i - 1].rule : first;
	struct mst_rule_context ctx = context(job, line->options.server.force);
	uint32_t planned = mst_rule_planned(first, job->ledger.workers);

	ctx.quorum_max = job->ledger.workers * job->ledger.slots;
	if (ctx.quorum_max < planned)
		ctx.quorum_max = planned;
	return mst_switch_check(from, &line->switches.at[i].rule, &ctx, wrong);
}

static int read_switches(struct mst_sim_line *line, struct mst_sim_cfg *job, struct mst_reason *why)
{
	const struct mst_sim_options *o = &line->options;

	line->switches.count = 0;
	int rc = mst_sim_switches_read(&line->switches, &o->rule_switch, &job->ledger.rule, why);
	for (uint32_t i = 0; rc == 0 && i < line->switches.count; i++) {
		uint32_t slots = mst_rule_slots(&line->switches.at[i].rule);
		job->ledger.slots = slots > job->ledger.slots ? slots : job->ledger.slots;
	}
	for (uint32_t i = 0; rc == 0 && i < line->switches.count; i++) {
		const struct mst_sim_switch *s = &line->switches.at[i];
		if (o->server.commits > 0 && s->version >= o->server.commits)
			return mst_reason_fail(
				why, -EINVAL,
				"option --switch: \"%.60s\": the job ends at version %" PRIu64
				" (--commits)",
				line->switches.text[i], o->server.commits);
		if (check_switch(line, job, i, why) != 0)
			return mst_reason_fail(
				why, -EINVAL, "option --switch: \"%.60s\", after %.40s: %s",
				line->switches.text[i],
				i > 0 ? line->switches.text[i - 1] : job->policy, why->text);
	}
	job->change_of_rule = line->switches.at;
	job->change_of_rule_count = line->switches.count;
	return rc;
}

static int read_rule(struct mst_sim_line *line, struct mst_sim_cfg *job, struct mst_reason *why)
{
	struct mst_server_options *server = &line->options.server;

	struct mst_policy policy;

	server->policy = job->policy;
	if (mst_server_options_rule(server, &policy, why) != 0 ||
	    mst_server_options_optimizer(server, &job->ledger.optimizer, why) != 0)
		return -EINVAL;
	if (mst_controller_by_loss(&policy.controller) && job->problem == NULL)
		return mst_reason_fail(
			why, -EINVAL,
			"--policy %.40s follows the loss, and gradients have one where "
			"something is trained only: say what, such as --train quadratic",
			job->policy);
	const char *metric = mst_controller_metric(&policy.controller);
	if (metric != NULL && strcmp(metric, MST_SIM_METRIC) != 0)
		return mst_reason_fail(
			why, -EINVAL,
			"--policy %.63s follows \"%.63s\", and the simulated workers report "
			"the error of the training alone, as \"%s\": say loss=%s",
			job->policy, metric, MST_SIM_METRIC, MST_SIM_METRIC);
	if (mst_controller_by_norms(&policy.controller))
		mst_optimizer_measure(&job->ledger.optimizer);
	job->ledger.rule = policy.rule;
	job->ledger.controller = policy.controller;
	job->ledger.slots = mst_policy_slots(&policy, job->ledger.workers);
	struct mst_rule_context ctx = context(job, server->force);
	if (mst_policy_check(&policy, &ctx, why) != 0)
		return mst_reason_fail(why, -EINVAL, "--policy %.40s: %s", job->policy, why->text);
	return read_switches(line, job, why);
}

/* Refused before it is allocated, with figures, and not ended by the kernel later. */
static int check_memory(const struct mst_sim_cfg *job, struct mst_reason *why)
{
	uint64_t workers = job->ledger.workers;
	uint64_t needed = mst_ledger_bytes(&job->ledger) +
			  mst_sim_figures_bytes(job->ledger.workers) +
			  workers * (sizeof(struct mst_sim_worker) + DELAY_BYTES) +
			  mst_sim_trainer_bytes(job);
	struct mst_host_memory host;
	char need[32], have[32], source[MST_CGROUP_PATH + 64];

	mst_host_memory("", &host);
	if (needed <= mst_host_memory_share(&host))
		return 0;
	return mst_reason_fail(
		why, -EINVAL,
		"--policy %.40s: the simulation needs %s and may use %s, three quarters "
		"%s",
		job->policy, mst_memory_text(needed, need, sizeof(need)),
		mst_memory_text(mst_host_memory_share(&host), have, sizeof(have)),
		mst_host_memory_source(&host, source, sizeof(source)));
}

static struct mst_ledger_cfg ledger_cfg(const struct mst_sim_line *line)
{
	const struct mst_sim_options *o = &line->options;
	double batch = line->problem != NULL ? (double)line->problem->batch : 1;
	bool carries = o->worker_rate > 0 || o->server_rate > 0;
	bool endless = o->server.commits == 0 && o->server.samples <= 0;

	return (struct mst_ledger_cfg){
		.workers = o->server.workers,
		.shards = o->server.servers,
		.slots = 1,
		.buffers = o->server.buffers,
		.in_place = !carries,
		.sent = carries,
		.owner = MUSTER_SERVERS_OWN,
		.commits_max = o->server.commits,
		.samples_max = endless ? SAMPLES_PER_WORKER * o->server.workers * batch
				       : o->server.samples,
		.lease_ns = o->server.lease_ns,
		.join_until_ns = MST_NEVER,
	};
}

static int read_job(struct mst_sim_line *line, const char *policy, uint32_t checks,
		    struct mst_reason *why)
{
	const struct mst_sim_options *o = &line->options;
	struct mst_sim_cfg *job = &line->job[line->job_count++];

	*job = (struct mst_sim_cfg){
		.policy = policy,
		.ledger = ledger_cfg(line),
		.net = { o->latency_ns, o->bytes, o->worker_rate, o->server_rate },
		.checks = checks,
		.micro = o->micro,
		.delay = o->delay.item,
		.delay_count = o->delay.count,
		.seed = o->seed,
		.problem = line->problem,
		.change = line->changes.at,
		.change_count = line->changes.count,
	};
	if (o->every != NULL)
		(void)mst_sim_every_parse(o->every, &job->every);
	int rc = is_tickets(policy) ? read_tickets(line, job, why) : read_rule(line, job, why);
	if (rc == 0)
		rc = read_training(line, job, why);
	return rc != 0 ? rc : check_memory(job, why);
}

/* One worker under bsp, whose gradients are stale. */
static int read_stale_job(struct mst_sim_line *line, uint32_t i, uint32_t checks,
			  struct mst_reason *why)
{
	const char *text = line->options.staleness.item[i];
	uint64_t ramp = line->options.staleness_ramp, staleness;

	if (mst_parse_u64(text, &staleness) != 0 || staleness > STALENESS_MAX)
		return mst_reason_fail(
			why, -EINVAL,
			"option --staleness: \"%.40s\" is not a whole number up to %u", text,
			STALENESS_MAX);
	int rc = read_job(line, "bsp", checks, why);
	if (rc != 0)
		return rc;
	struct mst_sim_cfg *job = &line->job[line->job_count - 1];
	job->staleness = (uint32_t)staleness;
	job->staleness_ramp = ramp > 0 ? (uint32_t)ramp : RAMP * job->staleness;
	(void)snprintf(line->name[i], MST_SIM_NAME_LEN, "staleness:%" PRIu64, staleness);
	job->policy = line->name[i];
	return check_memory(job, why);
}

/* ---- the line ---- */

static int read_jobs(struct mst_sim_line *line, struct mst_reason *why)
{
	const struct mst_option_list *policy = &line->options.policy;
	uint32_t checks = 0;
	int rc = read_checks(line->options.checks, &checks, why);

	for (uint32_t i = 0; rc == 0 && i < line->options.staleness.count; i++)
		rc = read_stale_job(line, i, checks, why);
	if (rc == 0 && policy->count == 0 && line->options.staleness.count == 0)
		rc = read_job(line, "bsp", checks, why);
	for (uint32_t i = 0; rc == 0 && i < policy->count; i++)
		rc = read_job(line, policy->item[i], checks, why);
	return rc;
}

static int check(struct mst_sim_line *line, struct mst_reason *why)
{
	int rc = check_figures(line, why);

	if (rc == 0)
		rc = check_specs(&line->options, why);
	if (rc == 0)
		rc = read_changes(line, why);
	if (rc == 0)
		rc = read_problem(line, why);
	if (rc == 0)
		rc = read_jobs(line, why);
	if (rc == 0)
		rc = check_delays(&line->options, why);
	if (rc == 0)
		rc = mst_report_check("json", line->options.json, why);
	return rc != 0 ? rc : mst_report_check("csv", line->options.csv, why);
}

/* Defaults for what is not offered, then for the rest, then what is typed. */
static int parse(struct mst_sim_line *line, int argc, char **argv, struct mst_reason *why)
{
	int operand = argc;
	int rc = mst_options_init(&line->fixed, mst_server_table, &line->options.server);

	if (rc == 0)
		rc = mst_options_init(&line->parsed, mst_sim_table, &line->options);
	if (rc == 0)
		rc = mst_options_argv(&line->parsed, argc, argv, &operand);
	if (rc < 0)
		return mst_reason_fail(why, rc, "%s", line->parsed.why.text);
	if (operand < argc)
		return mst_reason_fail(why, -EINVAL,
				       "what is \"%.60s\"? muster sim takes options only",
				       argv[operand]);
	return 0;
}

int mst_sim_line_init(struct mst_sim_line *line, int argc, char **argv, struct mst_reason *why)
{
	*line = (struct mst_sim_line){ .job_count = 0 };
	int rc = parse(line, argc, argv, why);
	if (rc == -ENOMEM)
		(void)mst_reason_fail(why, -EINVAL, "no memory");
	if (rc < 0 || line->options.help)
		return rc;
	return check(line, why);
}

void mst_sim_line_fini(struct mst_sim_line *line)
{
	mst_sim_problem_free(line->problem);
	mst_options_free(&line->parsed);
	mst_options_free(&line->fixed);
}
