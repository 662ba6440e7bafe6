/* SPDX-License-Identifier: MIT */
#include "tools/bench/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/config/shared_rows.h"
#include "common/delay/delay.h"
#include "common/wire/lane.h"
#include "server/core/policy/rule.h"
#include "tools/bench/plan.h"
#include "tools/keys.h"
#include "tools/report.h"

#define FIELD(name) .offset = offsetof(struct mst_bench_options, name)
#define ITEM_LEN 32u

static const struct mst_option own_table[] = {
	{ .name = "workers",
	  .letter = 'n',
	  .kind = MST_OPTION_STRING,
	  FIELD(workers),
	  .value = "LIST",
	  .help = "how many workers, such as 2,4,8: all sizes are measured with each (default 4; "
		  "with --latency-of-last 8,16,32,64)" },
	{ .name = "sizes",
	  .kind = MST_OPTION_STRING,
	  FIELD(sizes),
	  .value = "LIST",
	  .help = "bytes of one worker's gradient (default 4K,64K,1M,25M,100M, those that "
		  "--servers can share; with --latency-of-last 1M)" },
	{ .name = "buffers",
	  .kind = MST_OPTION_CHOICE,
	  FIELD(buffers),
	  .fallback = "slot",
	  .choices = "slot|own",
	  .help = "slot: gradients are made where the server reads them, results read where it "
		  "made them; own: gradients are copied in from the caller's memory, and results "
		  "out to it, while the clock runs" },
	{ .name = "type",
	  .kind = MST_OPTION_CHOICE,
	  FIELD(type),
	  .fallback = "f32",
	  .choices = "f32|bf16|f16",
	  .help = "of gradients and results" },
	{ .name = "owner",
	  .kind = MST_OPTION_CHOICE,
	  FIELD(owner),
	  .fallback = "auto",
	  .choices = "auto|workers|servers",
	  .help = "workers: results are mean gradients, as of an all-reduce; servers: results are "
		  "parameters, by sgd without momentum; auto is workers under bsp, else servers" },
	{ .name = "samples",
	  .kind = MST_OPTION_U32,
	  FIELD(samples),
	  .fallback = "auto",
	  .min = 1,
	  .max = 10e6,
	  .automatic = "auto",
	  .help = "steps that are timed; auto is as many as --budget allows, 10000 at most" },
	{ .name = "warmup",
	  .kind = MST_OPTION_U32,
	  FIELD(warmup),
	  .fallback = "10",
	  .min = 1,
	  .max = 1e6,
	  .help = "steps before them that are not timed" },
	{ .name = "budget",
	  .kind = MST_OPTION_DURATION,
	  FIELD(budget_ns),
	  .fallback = "10s",
	  .min = 1e6,
	  .max = 86400e9,
	  .help = "time for the samples of one row, where --samples is auto; filling and checking "
		  "is part of it" },
	{ .name = "delay",
	  .kind = MST_OPTION_LIST,
	  FIELD(delay),
	  .value = "SPEC",
	  .help = "delay workers before they push: MODEL for all or RANK:MODEL, such as const:10 "
		  "or 3:exp:5, in ms; may be given again" },
	{ .name = "seed",
	  .kind = MST_OPTION_U64,
	  FIELD(seed),
	  .fallback = "1",
	  .max = 9e15,
	  .help = "of the delays" },
	{ .name = "latency-of-last",
	  .kind = MST_OPTION_FLAG,
	  FIELD(latency_of_last),
	  .help = "all workers but one push long before the last; measured is what it takes from "
		  "the last push" },
	{ .name = "settle",
	  .kind = MST_OPTION_DURATION,
	  FIELD(settle_ns),
	  .fallback = "10ms",
	  .max = 10e9,
	  .help = "with --latency-of-last: time between the other pushes and the last" },
	MST_FILE_ROW("json", FIELD(json),
		     "write the figures there as JSON; - is standard output, and the table then "
		     "goes to standard error"),
	MST_QUIET_ROW(FIELD(quiet), "no table"),
	MST_HELP_ROW(FIELD(help)),
	{ .name = NULL },
};

/* What the benchmark fixes itself, because what is measured or checked depends on it. */
static const char *const without[] = { "join",         "budget",   "config",      "listen",
				       "job",          "commits",  "on-loss",     "min-workers",
				       "optimizer",    "lr-scale", "lr-schedule", "lr-distance",
				       "print-config", "version",  "record",      "user",
				       "tls-ca",       "tls-cert", "tls-key",     NULL };
struct mst_passthrough mst_bench_passthrough = {
	.own = own_table,
	.server_offset = offsetof(struct mst_bench_options, server),
	.without = without,
};

/* "4K,1M" by @parse. Return: how many; -EINVAL and in @bad what is wrong; -E2BIG. */
static int parse_list(const char *text, int (*parse)(const char *text, uint64_t *out),
		      uint64_t *out, char bad[ITEM_LEN])
{
	for (int count = 0;; count++) {
		size_t len = strcspn(text, ",");

		if (count == MST_BENCH_LIST_MAX)
			return -E2BIG;
		(void)snprintf(bad, ITEM_LEN, "%.*s", (int)(len < ITEM_LEN ? len : ITEM_LEN - 1),
			       text);
		if (len >= ITEM_LEN || parse(bad, &out[count]) != 0)
			return -EINVAL;
		if (text[len] == '\0')
			return count + 1;
		text += len + 1;
	}
}

static int parse_sizes(struct mst_bench_line *line, struct mst_reason *why)
{
	const struct mst_bench_options *o = &line->options;
	const char *text = o->sizes != NULL     ? o->sizes
			   : o->latency_of_last ? "1M"
						: "4K,64K,1M,25M,100M";
	uint64_t each = o->type == MUSTER_F32 ? 4 : 2;
	char bad[ITEM_LEN];
	int count = parse_list(text, mst_parse_size, line->bytes, bad);

	if (count == -E2BIG)
		return mst_reason_fail(why, -EINVAL, "option --sizes: more than %u",
				       MST_BENCH_LIST_MAX);
	if (count < 0)
		return mst_reason_fail(
			why, -EINVAL,
			"option --sizes: \"%s\" is not a size such as 4096, 64K or 1M", bad);
	line->bytes_count = (uint32_t)count;
	for (int i = 0; i < count; i++) {
		if (line->bytes[i] == 0 || line->bytes[i] % each != 0)
			return mst_reason_fail(why, -EINVAL,
					       "option --sizes: %" PRIu64
					       " bytes are not a number of "
					       "elements of %" PRIu64 " bytes",
					       line->bytes[i], each);
	}
	return 0;
}

/* Each server has a part, of which the shortest vectors have not enough: those are left out where
 * nobody has asked for them. */
static int check_parts(struct mst_bench_line *line, struct mst_reason *why)
{
	const struct mst_bench_options *o = &line->options;
	uint64_t each = o->type == MUSTER_F32 ? 4 : 2;
	uint32_t weights[MST_SERVERS_MAX], kept = 0;

	if (o->server.servers == 1)
		return 0; /* with --partition as it may be: check_server() looks */
	if (mst_server_options_partition(&o->server, weights, why) != 0)
		return -EINVAL;
	for (uint32_t i = 0; i < line->bytes_count; i++) {
		uint64_t elems = line->bytes[i] / each;
		bool fits = mst_part_border(elems, o->server.servers, weights, 1) > 0;

		if (fits)
			line->bytes[kept++] = line->bytes[i];
		else if (o->sizes != NULL || o->latency_of_last)
			return mst_reason_fail(
				why, -EINVAL,
				"option --sizes: %" PRIu64 " bytes cannot be shared by %u "
				"servers (--partition %.60s): each needs %" PRIu64 " or more",
				line->bytes[i], o->server.servers, o->server.partition,
				MST_PART_ELEMS_MIN * each);
	}
	line->bytes_count = kept;
	return 0;
}

static int parse_workers(struct mst_bench_line *line, struct mst_reason *why)
{
	const struct mst_bench_options *o = &line->options;
	const char *text = o->workers != NULL   ? o->workers
			   : o->latency_of_last ? "8,16,32,64"
						: "4";
	uint64_t workers[MST_BENCH_LIST_MAX];
	char bad[ITEM_LEN];
	int count = parse_list(text, mst_parse_u64, workers, bad);

	if (count == -E2BIG)
		return mst_reason_fail(why, -EINVAL, "option --workers: more than %u",
				       MST_BENCH_LIST_MAX);
	if (count < 0)
		return mst_reason_fail(why, -EINVAL, "option --workers: \"%s\" is not a number",
				       bad);
	line->workers_count = (uint32_t)count;
	for (int i = 0; i < count; i++) {
		if (workers[i] < 1 || workers[i] > MST_WORKERS_MAX)
			return mst_reason_fail(why, -EINVAL,
					       "option --workers: %" PRIu64 " is not from 1 to %u",
					       workers[i], MST_WORKERS_MAX);
		line->workers[i] = (uint32_t)workers[i];
	}
	return 0;
}

/* Which results a policy makes has to follow from what a version tells of itself: that holds where
 * all in it were computed on the version before. */
static int check_policy(struct mst_bench_line *line, struct mst_reason *why)
{
	const struct mst_bench_options *o = &line->options;
	struct mst_policy policy;

	if (mst_server_options_rule(&o->server, &policy, why) != 0)
		return -EINVAL;
	const struct mst_rule *rule = &policy.rule;
	if (!mst_policy_is_fixed(&policy) || rule->release != MST_RELEASE_COMMIT ||
	    rule->window != 0)
		return mst_reason_fail(
			why, -EINVAL,
			"--policy %s: muster bench checks every result, which it can under "
			"bsp, backup:N and ksync:K",
			o->server.policy);
	bool all = rule->quorum == 0;
	line->owner = o->owner == MST_BENCH_OWNER_SERVERS ||
				      (o->owner == MST_BENCH_OWNER_AUTO && !all)
			      ? MUSTER_SERVERS_OWN
			      : MUSTER_WORKERS_OWN;
	if (o->latency_of_last && (!all || o->delay.count > 0))
		return mst_reason_fail(
			why, -EINVAL,
			"--latency-of-last goes with --policy bsp and without --delay");
	return 0;
}

static int check_delay(const struct mst_bench_options *o, struct mst_reason *why)
{
	struct mst_delay_options delay = {
		.spec = o->delay.item,
		.spec_count = o->delay.count,
		.seed = o->seed,
	};
	struct mst_delay *d;

	if (o->delay.count > MST_BENCH_DELAYS)
		return mst_reason_fail(why, -EINVAL, "option --delay: given more than %u times",
				       MST_BENCH_DELAYS);
	for (uint32_t i = 0; i < o->delay.count; i++)
		if (strlen(o->delay.item[i]) >= MST_BENCH_DELAY_LEN)
			return mst_reason_fail(why, -EINVAL,
					       "option --delay: \"%.60s...\" is too long",
					       o->delay.item[i]);
	int rc = mst_delay_new(&delay, &d, why);
	if (rc == 0)
		mst_delay_free(d);
	return rc;
}

/* With each number of workers, what musterd would find wrong, sooner. */
static int check_server(struct mst_bench_line *line, struct mst_reason *why)
{
	struct mst_server_options *server = &line->options.server;

	int rc = mst_keys_make(server, why);
	if (rc != 0)
		return rc;
	server->owner = line->owner;
	for (uint32_t i = 0; i < line->workers_count; i++) {
		server->workers = line->workers[i];
		if (mst_server_options_check(server, why) != 0)
			return -EINVAL;
		if (line->options.latency_of_last && server->workers < 2)
			return mst_reason_fail(why, -EINVAL,
					       "--latency-of-last needs two workers or more");
	}
	return 0;
}

static int check(struct mst_bench_line *line, struct mst_reason *why)
{
	int rc = parse_workers(line, why);

	if (rc == 0)
		rc = parse_sizes(line, why);
	if (rc == 0)
		rc = check_parts(line, why);
	if (rc == 0)
		rc = check_policy(line, why);
	if (rc == 0)
		rc = check_delay(&line->options, why);
	if (rc == 0)
		rc = check_server(line, why);
	if (rc == 0)
		rc = mst_report_check("json", line->options.json, why);
	return rc;
}

/* Defaults for what is not offered, then for the rest, then what is typed. */
static int parse(struct mst_bench_line *line, int argc, char **argv, struct mst_reason *why)
{
	int operand = argc;
	int rc = mst_options_init(&line->fixed, mst_server_table, &line->options.server);

	if (rc == 0)
		rc = mst_options_init(&line->parsed, mst_passthrough_table(&mst_bench_passthrough),
				      &line->options);
	/* Its gradients are finite, and a pass over them is not what it is to measure. */
	line->options.server.guard = MST_GUARD_WORKER;
	if (rc == 0)
		rc = mst_options_argv(&line->parsed, argc, argv, &operand);
	if (rc < 0)
		return mst_reason_fail(why, rc, "%s", line->parsed.why.text);
	if (operand < argc)
		return mst_reason_fail(why, -EINVAL,
				       "what is \"%.60s\"? muster bench takes options only",
				       argv[operand]);
	return mst_passthrough_collect(&mst_bench_passthrough, argv, argc, &line->flags);
}

int mst_bench_line_init(struct mst_bench_line *line, int argc, char **argv, struct mst_reason *why)
{
	*line = (struct mst_bench_line){ .workers_count = 0 };
	int rc = parse(line, argc, argv, why);
	if (rc == -ENOMEM)
		(void)mst_reason_fail(why, -EINVAL, "no memory");
	if (rc < 0 || line->options.help)
		return rc;
	return check(line, why);
}

void mst_bench_line_fini(struct mst_bench_line *line)
{
	free(line->flags);
	mst_options_free(&line->parsed);
	mst_options_free(&line->fixed);
}

uint32_t mst_bench_quorum(const struct mst_bench_line *line, uint32_t workers)
{
	struct mst_policy policy;
	struct mst_reason why;

	if (mst_server_options_rule(&line->options.server, &policy, &why) != 0 ||
	    policy.rule.quorum == 0)
		return workers;
	int32_t quorum = policy.rule.quorum;
	return quorum > 0 ? (uint32_t)quorum : workers - (uint32_t)(-quorum);
}
