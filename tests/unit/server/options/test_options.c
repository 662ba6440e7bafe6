/* SPDX-License-Identifier: MIT */
/* The promises of server/options/options.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/reason.h"
#include "muster/muster.h"
#include "server/options/options.h"
#include "tests/policies.h"
#include "tests/ut.h"

struct options_case {
	struct mst_options options;
	struct mst_server_options fields;
	struct mst_reason why;
};

/* Reads the flags over the defaults, then checks all. Return: the first failure. */
static int flags_check(struct options_case *w, const char *const *flag)
{
	char *argv[32] = { "musterd" };
	int argc = 1, operand;

	for (; flag[argc - 1] != NULL; argc++)
		argv[argc] = (char *)(uintptr_t)flag[argc - 1];
	CU_ASSERT_FATAL(mst_options_init(&w->options, mst_server_table, &w->fields) == 0);
	int rc = mst_options_argv(&w->options, argc, argv, &operand);
	if (rc == 0)
		rc = mst_server_options_check(&w->fields, &w->why);
	else
		mst_reason_set(&w->why, "%s", w->options.why.text);
	return rc;
}

static bool accepts(const char *const *flag)
{
	struct options_case w;
	int rc = flags_check(&w, flag);

	mst_options_free(&w.options);
	if (rc != 0)
		fprintf(stderr, "refused: %s\n", w.why.text);
	return rc == 0;
}

static bool refuses(const char *says, const char *const *flag)
{
	struct options_case w;
	int rc = flags_check(&w, flag);

	mst_options_free(&w.options);
	if (rc == 0)
		fprintf(stderr, "accepted, though: %s\n", says);
	else if (strstr(w.why.text, says) == NULL)
		fprintf(stderr, "\"%s\" is not in: %s\n", says, w.why.text);
	return rc == -EINVAL && strstr(w.why.text, says) != NULL;
}
#define FLAGS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void defaults_are_those_of_the_manual(void)
{
	struct options_case w;

	CU_ASSERT(flags_check(&w, FLAGS("--workers", "5")) == 0);
	const struct mst_server_options *o = &w.fields;
	CU_ASSERT_STRING_EQUAL(o->listen, "127.0.0.1:17077");
	CU_ASSERT_STRING_EQUAL(o->job, "default");
	CU_ASSERT_STRING_EQUAL(o->policy, "bsp");
	CU_ASSERT_STRING_EQUAL(o->optimizer, "auto");
	CU_ASSERT_STRING_EQUAL(o->log_level, "info");
	CU_ASSERT(o->workers == 5 && o->owner == MUSTER_SERVERS_OWN && o->slots == 0);
	CU_ASSERT(o->memory == 0 && !o->force && o->commits == 0 && o->samples == 0);
	CU_ASSERT(o->lease_ns == UINT64_C(5000000000));
	CU_ASSERT(o->patience_ns == UINT64_C(300000000000));
	CU_ASSERT(o->join_timeout_ns == UINT64_C(60000000000));
	CU_ASSERT(mst_server_options_stop_timeout(o, 7) == 7);
	CU_ASSERT(mst_server_options_join_until(o, 5) == UINT64_C(60000000005));
	CU_ASSERT(o->on_loss == MST_LOSS_SHRINK && mst_server_options_min_workers(o) == 1 &&
		  o->chunk == 131072);
	CU_ASSERT(o->group == 8 && o->history == 8 && o->catch_up == 4 && o->buffers == 4);
	CU_ASSERT(o->spin_pauses == 0 && o->spin_yields == 2000);
	mst_options_free(&w.options);
}

static void stop_timeout_is_what_the_user_says(void)
{
	struct options_case w;

	CU_ASSERT(flags_check(&w, FLAGS("-n5", "--stop-timeout", "500ms")) == 0);
	CU_ASSERT(mst_server_options_stop_timeout(&w.fields, 7) == UINT64_C(500000000));
	mst_options_free(&w.options);
	CU_ASSERT(flags_check(&w, FLAGS("-n5", "--stop-timeout", "0")) == -EINVAL);
	CU_ASSERT(strstr(w.options.why.text, "or auto") != NULL);
	mst_options_free(&w.options);
}

static void join_timeout_may_be_never(void)
{
	struct options_case w;

	CU_ASSERT(flags_check(&w, FLAGS("-n5", "--join-timeout", "never")) == 0);
	CU_ASSERT(mst_server_options_join_until(&w.fields, 5) == MST_NEVER);
	mst_options_free(&w.options);
	CU_ASSERT(flags_check(&w, FLAGS("-n5", "--join-timeout", "0")) == -EINVAL);
	CU_ASSERT(strstr(w.options.why.text, "or never") != NULL);
	mst_options_free(&w.options);
}

/* A file of options gives all other times a unit. */
static void no_server_patience_may_have_a_unit(void)
{
	static const char *const none[] = { "0", "0s", "0ms" };
	struct options_case w;

	for (unsigned i = 0; i < 3; i++) {
		CU_ASSERT(flags_check(&w, FLAGS("-n5", "--server-patience", none[i])) == 0);
		CU_ASSERT_FALSE(mst_server_options_goes_on(&w.fields));
		mst_options_free(&w.options);
	}
	CU_ASSERT(flags_check(&w, FLAGS("-n5", "--server-patience", "1us")) == -EINVAL);
	mst_options_free(&w.options);
}

static uint64_t saved_every(const char *const *flags)
{
	struct options_case w;
	struct mst_saves saves = { .every_ns = 1 };
	struct mst_reason why;

	CU_ASSERT(flags_check(&w, flags) == 0);
	CU_ASSERT(mst_server_options_checkpoints(&w.fields, &saves, &why) == 0);
	mst_options_free(&w.options);
	return saves.every_ns;
}

/* Where servers own, what is not saved is lost with a server. */
static void versions_are_saved_more_often_where_a_server_may_be_lost(void)
{
	const uint64_t minute = UINT64_C(60000000000);

	CU_ASSERT_EQUAL(saved_every(FLAGS("-n5", "--state", "/tmp")), 10 * minute);
	CU_ASSERT_EQUAL(saved_every(FLAGS("-n5", "--state", "/tmp", "--server-patience", "5min")),
			minute);
	CU_ASSERT_EQUAL(saved_every(FLAGS("-n5", "--state", "/tmp", "--server-patience", "5min",
					  "--owner", "workers")),
			10 * minute);
	CU_ASSERT_EQUAL(saved_every(FLAGS("-n5", "--state", "/tmp", "--server-patience", "5min",
					  "--checkpoint-every", "2min")),
			2 * minute);
}

/* Each start has the same command line, and goes on from the newest checkpoint. */
static void state_is_what_another_server_goes_on_from(void)
{
	struct options_case w;

	CU_ASSERT(flags_check(&w, FLAGS("-n5", "--state", "/tmp")) == 0);
	CU_ASSERT(mst_server_options_resume(&w.fields) == NULL);
	CU_ASSERT_FALSE(mst_server_options_or_begin(&w.fields));
	mst_options_free(&w.options);
	CU_ASSERT(flags_check(&w, FLAGS("-n5", "--state", "/tmp", "--server-patience", "5min")) ==
		  0);
	CU_ASSERT_STRING_EQUAL(mst_server_options_resume(&w.fields), "/tmp");
	CU_ASSERT_TRUE(mst_server_options_or_begin(&w.fields));
	mst_options_free(&w.options);
	CU_ASSERT(flags_check(&w, FLAGS("-n5", "--state", "/tmp", "--server-patience", "5min",
					"--owner", "workers")) == 0);
	CU_ASSERT(mst_server_options_resume(&w.fields) == NULL);
	mst_options_free(&w.options);
	CU_ASSERT(flags_check(&w, FLAGS("-n5", "--state", "/tmp", "--resume", "/tmp/.",
					"--server-patience", "5min")) == 0);
	CU_ASSERT_FALSE(mst_server_options_or_begin(&w.fields));
	mst_options_free(&w.options);
}

static void another_server_goes_back_to_no_older_checkpoint(void)
{
	CU_ASSERT(refuses("leave --resume out", FLAGS("-n5", "--state", "/tmp", "--resume", "/",
						      "--or-begin", "--server-patience", "5min")));
	CU_ASSERT(refuses("give --state /", FLAGS("-n5", "--resume", "/", "--or-begin",
						  "--server-patience", "5min")));
}

static void words_of_choices_are_the_enums(void)
{
	struct options_case w;

	CU_ASSERT(flags_check(&w, FLAGS("-n5", "--owner", "workers", "--on-loss", "fail")) == 0);
	CU_ASSERT(w.fields.owner == MUSTER_WORKERS_OWN && w.fields.on_loss == MST_LOSS_FAIL);
	mst_options_free(&w.options);
}

static void every_fixed_policy_is_accepted(void)
{
	for (size_t i = 0; i < POLICY_ROWS; i++)
		CU_ASSERT(accepts(FLAGS("-n3", "--policy", policy_rows[i].text)));
}

static void what_cannot_be_is_refused_in_a_reason(void)
{
	CU_ASSERT(refuses("--workers is missing", FLAGS("--force")));
	CU_ASSERT(refuses("--min-workers 6 can never be met: the job has 5",
			  FLAGS("-n5", "--min-workers", "6")));
	CU_ASSERT(refuses("5000 bytes are not a multiple of 4K", FLAGS("-n5", "--chunk", "5000")));
	CU_ASSERT(refuses("would refuse what is as long as the median",
			  FLAGS("-n5", "--norm-limit", "0.5")));
	CU_ASSERT(refuses("needs 3 workers or more", FLAGS("-n2", "--norm-limit", "10")));
	CU_ASSERT(refuses("option --group: \"0\"", FLAGS("-n5", "--group", "0")));
	CU_ASSERT(refuses("\"17077\" is not HOST:PORT", FLAGS("-n5", "--listen", "17077")));
	CU_ASSERT(refuses("port from 0 to 65535", FLAGS("-n5", "--listen", "h:65536")));
	CU_ASSERT(refuses("option --job: \"\"", FLAGS("-n5", "--job=")));
	CU_ASSERT(refuses("option --job: the name has to be UTF-8", FLAGS("-n5", "--job=a\xff")));
	CU_ASSERT(refuses("\"loud\" is not error", FLAGS("-n5", "--log-level", "loud")));
	CU_ASSERT(refuses("unknown policy", FLAGS("-n5", "--policy", "bps")));
	CU_ASSERT(refuses("did you mean bsp?", FLAGS("-n5", "--policy", "BPS")));
	CU_ASSERT(refuses("did you mean backup:N?", FLAGS("-n5", "--policy", "bakcup:4")));
	CU_ASSERT(refuses("did you mean backup:N?", FLAGS("-n5", "--policy", "backup=4")));
	CU_ASSERT(refuses("there are bsp backup", FLAGS("-n5", "--policy", "quorum")));
	CU_ASSERT(refuses("backup needs a number", FLAGS("-n5", "--policy", "backup")));
	CU_ASSERT(refuses("--policy backup:6: ", FLAGS("-n5", "--policy", "backup:6")));
	CU_ASSERT(refuses("--policy backup:2: ", FLAGS("-n5", "--policy", "backup:2")));
	CU_ASSERT(accepts(FLAGS("-n5", "--policy", "backup:2", "--force")));
	CU_ASSERT(
		refuses("--policy async: ", FLAGS("-n5", "--policy", "async", "--owner=workers")));
	CU_ASSERT(refuses("--policy softsync:3: ",
			  FLAGS("-n5", "--policy", "softsync:3", "--slots=1")));
	CU_ASSERT(refuses("nothing to do with --owner workers",
			  FLAGS("-n5", "--owner=workers", "--optimizer=add")));
}

static void a_papers_name_leads_to_ours_or_to_a_reason(void)
{
	CU_ASSERT(refuses("did you mean backup:N?", FLAGS("-n5", "--policy", "Sync-Opt")));
	CU_ASSERT(refuses("did you mean backup:N?", FLAGS("-n5", "--policy", "backup_workers:4")));
	CU_ASSERT(refuses("did you mean ssp:S?", FLAGS("-n5", "--policy", "stale-synchronous:3")));
	CU_ASSERT(refuses("did you mean nonblocking[:MS[,AGE]]?",
			  FLAGS("-n5", "--policy", "Non-Blocking")));
	CU_ASSERT(refuses("did you mean ksync:K?", FLAGS("-n5", "--policy", "psync")));
	CU_ASSERT(refuses("did you mean async?", FLAGS("-n5", "--policy", "ASGD")));
	CU_ASSERT(refuses("\"Hogwild!\" is not offered: workers read whole versions",
			  FLAGS("-n5", "--policy", "Hogwild!")));
	CU_ASSERT(refuses("\"ako:4\" is not offered", FLAGS("-n5", "--policy", "ako:4")));
	CU_ASSERT(refuses("--optimizer adam", FLAGS("-n5", "--policy", "adam:lr=0.1")));
	CU_ASSERT(refuses("there are bsp backup", FLAGS("-n5", "--policy", "-")));
	CU_ASSERT(refuses(
		"there are bsp backup",
		FLAGS("-n5", "--policy", "hogwildandmanymoreletterswhicharetoomanyforaname")));
}

static void an_optimizer_that_cannot_be_is_refused(void)
{
	CU_ASSERT(refuses("option --optimizer: \"lion\" is neither sgd, adagrad, rmsprop, adam, "
			  "adamw, lars, lamb, add nor outer",
			  FLAGS("-n5", "--optimizer=lion")));
	CU_ASSERT(refuses("option --optimizer: lr 0 has to be above 0",
			  FLAGS("-n5", "--optimizer=sgd:lr=0")));
}

/* The rule of these flags, which must be right. */
static struct mst_rule rule_of(const char *const *flag)
{
	struct mst_policy policy = { .rule = { .quorum = 0 } };
	struct options_case w;

	CU_ASSERT_EQUAL(flags_check(&w, flag), 0);
	CU_ASSERT_EQUAL(mst_server_options_rule(&w.fields, &policy, &w.why), 0);
	mst_options_free(&w.options);
	return policy.rule;
}

static const char *optimizer_of(const char *const *flag)
{
	struct mst_optimizer optimizer = { .row = NULL };
	struct options_case w;

	CU_ASSERT_EQUAL(flags_check(&w, flag), 0);
	CU_ASSERT_EQUAL(mst_server_options_optimizer(&w.fields, &optimizer, &w.why), 0);
	mst_options_free(&w.options);
	return optimizer.row->name;
}

static void the_optimizer_follows_the_policy(void)
{
	CU_ASSERT_STRING_EQUAL(optimizer_of(FLAGS("-n5")), "sgd");
	CU_ASSERT_STRING_EQUAL(optimizer_of(FLAGS("-n5", "--policy", "downpour:2,2")), "sgd");
	CU_ASSERT_STRING_EQUAL(optimizer_of(FLAGS("-n5", "--policy", "local:4")), "add");
	CU_ASSERT_STRING_EQUAL(optimizer_of(FLAGS("-n5", "--policy", "easgd:4,0.1")), "add");
	CU_ASSERT_STRING_EQUAL(optimizer_of(FLAGS("-n5", "--policy", "easgdsync:4,0.1")), "add");
	CU_ASSERT_STRING_EQUAL(
		optimizer_of(FLAGS("-n5", "--policy", "easgd:4,0.1", "--optimizer", "add")), "add");
	CU_ASSERT_STRING_EQUAL(optimizer_of(FLAGS("-n5", "--optimizer", "add")), "add");
	CU_ASSERT(refuses("say --optimizer add",
			  FLAGS("-n5", "--policy", "local:4", "--optimizer", "sgd:lr=0.1")));
	CU_ASSERT(refuses("say --optimizer add",
			  FLAGS("-n5", "--policy", "easgd:4,0.1", "--optimizer", "adagrad")));
	CU_ASSERT(rule_of(FLAGS("-n5", "--policy", "local:4")).divide);
	CU_ASSERT_FALSE(rule_of(FLAGS("-n5", "--policy", "easgd:4,0.1")).divide);
	CU_ASSERT_FALSE(rule_of(FLAGS("-n5", "--optimizer", "add")).divide);
}

/* @kept: of the checkpoint that the job goes on from, or NULL. */
static const char *text_of(const char *const *flag, const char *kept)
{
	static char text[MST_OPTIM_TEXT_LEN], before[MST_OPTIM_TEXT_LEN];
	struct mst_optimizer optimizer = { .row = NULL };
	struct options_case w;

	CU_ASSERT_EQUAL(flags_check(&w, flag), 0);
	if (kept != NULL)
		w.fields.optimizer = mst_server_options_optimizer_kept(&w.fields, kept, before);
	CU_ASSERT_EQUAL(mst_server_options_optimizer(&w.fields, &optimizer, &w.why), 0);
	mst_options_free(&w.options);
	return mst_optimizer_text(&optimizer, text);
}

#define WITH "sgd:lr=0.1,momentum=0.9"
#define WITHOUT "sgd:lr=0.1,momentum=0"

static void momentum_that_is_left_out_follows_the_policy(void)
{
	static const struct {
		const char *policy, *text;
	} of[] = {
		{ "bsp", WITH },
		{ "backup:4", WITH },
		{ "ksync:3", WITH },
		{ "kbatchsync:5", WITH },
		{ "nonblocking", WITH },
		{ "nonblocking:0,16", WITH },
		{ "bounded:0", WITH },
		{ "async", WITHOUT },
		{ "bounded:2", WITHOUT },
		{ "ssp:1", WITHOUT },
		{ "kasync:4", WITHOUT },
		{ "kbatchasync:5", WITHOUT },
		{ "softsync:2", WITHOUT },
		{ "downpour:2,2", WITHOUT },
		/* Each waits for all. */
		{ "kasync:5", WITH },
		/* These change by themselves, and begin or end as bsp. */
		{ "adasync:kasync", WITH },
		{ "syncswitch:0.5", WITH },
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		CU_ASSERT_STRING_EQUAL(
			text_of(FLAGS("-n5", "--samples=9", "--policy", of[i].policy), NULL),
			of[i].text);
	CU_ASSERT_STRING_EQUAL(text_of(FLAGS("-n5", "--policy=async", "--optimizer=sgd"), NULL),
			       WITHOUT);
	CU_ASSERT_STRING_EQUAL(
		text_of(FLAGS("-n5", "--policy=async", "--optimizer=sgd:momentum=0.9"), NULL),
		WITH);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(text_of(FLAGS("-n5", "--policy=async", "--optimizer=sgd:nesterov=1"), NULL),
		       "momentum=0.9"));
	CU_ASSERT_PTR_NULL(strstr(text_of(FLAGS("-n5", "--policy=async", "--optimizer=adam"), NULL),
				  "momentum"));
}

static void what_is_left_out_goes_on_as_in_the_checkpoint(void)
{
	CU_ASSERT_STRING_EQUAL(text_of(FLAGS("-n5", "--policy=async"), WITH), WITH);
	CU_ASSERT_STRING_EQUAL(text_of(FLAGS("-n5"), WITHOUT), WITHOUT);
	CU_ASSERT_STRING_EQUAL(text_of(FLAGS("-n5"), "sgd:lr=0.3,momentum=0.5,clip=2"),
			       "sgd:lr=0.3,momentum=0.5,clip=2");
	CU_ASSERT_STRING_EQUAL(text_of(FLAGS("-n5", "--optimizer=sgd:lr=0.25"), WITHOUT),
			       "sgd:lr=0.25,momentum=0");
	/* of another row, or for another kind of contributions */
	CU_ASSERT_STRING_EQUAL(text_of(FLAGS("-n5", "--optimizer=sgd"), "adagrad:lr=0.5"), WITH);
	CU_ASSERT_STRING_EQUAL(text_of(FLAGS("-n5", "--policy=local:4"), WITH), "add");
	CU_ASSERT_STRING_EQUAL(text_of(FLAGS("-n5", "--policy=async"), "no such thing"), WITHOUT);
}

static void what_becomes_of_late_gradients_may_be_said(void)
{
	CU_ASSERT_EQUAL(rule_of(FLAGS("-n5", "--policy=bounded:2")).late, MST_LATE_REJECT);
	CU_ASSERT_EQUAL(rule_of(FLAGS("-n5", "--policy=bounded:2", "--late=drop")).late,
			MST_LATE_DROP);
	CU_ASSERT_EQUAL(rule_of(FLAGS("-n5", "--policy=backup:4", "--late=reject")).late,
			MST_LATE_REJECT);
	CU_ASSERT_EQUAL(rule_of(FLAGS("-n5", "--policy=backup:4")).late, MST_LATE_DROP);
	CU_ASSERT(refuses("--late reject does nothing under --policy async",
			  FLAGS("-n5", "--policy=async", "--late=reject")));
	CU_ASSERT(refuses("--late drop does nothing under --policy kasync:2",
			  FLAGS("-n5", "--policy=kasync:2", "--late=drop")));
}

static void late_starts_may_be_said(void)
{
	CU_ASSERT_EQUAL(rule_of(FLAGS("-n5")).late_start, MST_LATE_START_AUTO);
	CU_ASSERT_EQUAL(rule_of(FLAGS("-n5", "--late-start=now")).late_start, MST_LATE_START_NOW);
	CU_ASSERT_EQUAL(rule_of(FLAGS("-n5", "--late-start=commit")).late_start,
			MST_LATE_START_COMMIT);
}

static void staleness_may_be_compensated_where_it_can_be(void)
{
	struct mst_rule rule = rule_of(FLAGS("-n5", "--policy=async", "--compensate"));

	CU_ASSERT(rule.compensate && !rule.linear);
	CU_ASSERT(rule_of(FLAGS("-n5", "--policy=async", "--compensate", "--lr-scale=linear"))
			  .linear);
	CU_ASSERT_FALSE(rule_of(FLAGS("-n5", "--policy=async")).compensate);
	CU_ASSERT(rule_of(FLAGS("-n5", "--policy=bounded:1", "--compensate")).compensate);
	CU_ASSERT(refuses("--compensate does nothing under --policy bsp",
			  FLAGS("-n5", "--compensate")));
	CU_ASSERT(refuses("--compensate does nothing under --policy kbatchsync:3",
			  FLAGS("-n5", "--policy=kbatchsync:3", "--compensate")));
}

static void a_rate_that_ends_at_0_needs_a_job_that_ends_there(void)
{
	CU_ASSERT(accepts(FLAGS("-n5", "--lr-schedule=warmup:100+steps:0.1,1000")));
	CU_ASSERT(accepts(FLAGS("-n5", "--lr-schedule=cosine:1000,0.01")));
	CU_ASSERT(accepts(FLAGS("-n5", "--lr-schedule=cosine:1000", "--samples=1000")));
	CU_ASSERT(refuses("the rate is 0 from 1000 samples on",
			  FLAGS("-n5", "--lr-schedule=cosine:1000", "--samples=1001")));
	CU_ASSERT(refuses("a floor above 0, as in cosine:1000,0.01",
			  FLAGS("-n5", "--lr-schedule=warmup:10+cosine:1000,0")));
	CU_ASSERT(refuses("--samples 1000",
			  FLAGS("-n5", "--lr-schedule=linear:1000", "--commits=10")));
	CU_ASSERT(refuses("option --lr-schedule: \"cosin:5\": there is no schedule \"cosin\"",
			  FLAGS("-n5", "--lr-schedule=cosin:5")));
}

/* Only one of the policies averages differences of parameters. */
static void an_outer_optimiser_is_for_local_steps(void)
{
	CU_ASSERT(accepts(FLAGS("-n5", "--policy=local:4", "--optimizer=outer")));
	CU_ASSERT(accepts(FLAGS("-n5", "--policy=local:4,-1", "--optimizer=outer:momentum=0")));
	CU_ASSERT(rule_of(FLAGS("-n5", "--policy", "local:4", "--optimizer", "outer")).divide);
	CU_ASSERT_FALSE(
		rule_of(FLAGS("-n5", "--policy", "local:4", "--optimizer", "outer")).linear);
	CU_ASSERT_EQUAL(rule_of(FLAGS("-n5", "--policy=async", "--lr-scale=samples:2.5")).batch,
			2.5);
	CU_ASSERT_FALSE(rule_of(FLAGS("-n5", "--policy=async", "--lr-scale=samples:2.5")).linear);
	CU_ASSERT(rule_of(FLAGS("-n5", "--policy", "local:4", "--optimizer", "outer", "--lr-scale",
				"linear"))
			  .linear);
	CU_ASSERT(refuses("which only the policy local:T has",
			  FLAGS("-n5", "--policy=bsp", "--optimizer=outer")));
	CU_ASSERT(refuses("which only the policy local:T has",
			  FLAGS("-n5", "--policy=easgdsync:4,0.1", "--optimizer=outer")));
	CU_ASSERT(refuses("the optimiser outer takes the mean of differences",
			  FLAGS("-n5", "--policy=downpour:4,4", "--optimizer=outer")));
}

static void an_average_is_of_parameters_that_servers_have(void)
{
	CU_ASSERT(accepts(FLAGS("-n5", "--average=0.9999")));
	CU_ASSERT(accepts(FLAGS("-n5", "--average=0.9", "--policy=easgd:4,0.1")));
	CU_ASSERT(accepts(FLAGS("-n5", "--average=0", "--owner=workers")));
	CU_ASSERT(refuses("--average 0.5 has nothing to do with --owner workers",
			  FLAGS("-n5", "--average=0.5", "--owner=workers")));
	CU_ASSERT(refuses("from 0 to 1", FLAGS("-n5", "--average=1.5")));
	CU_ASSERT(refuses("the average would never change", FLAGS("-n5", "--average=1")));
	CU_ASSERT(refuses("which is 1 in float", FLAGS("-n5", "--average=0.9999999999")));
}

static void a_schedule_needs_a_rate_of_the_servers(void)
{
	CU_ASSERT(refuses("does nothing under --policy local:4: workers make steps of their own",
			  FLAGS("-n5", "--policy=local:4", "--lr-schedule=warmup:100")));
	CU_ASSERT(refuses("does nothing with --optimizer add",
			  FLAGS("-n5", "--optimizer=add", "--lr-schedule=warmup:100")));
	CU_ASSERT(refuses("does nothing under --policy downpour:2,3",
			  FLAGS("-n5", "--policy=downpour:2,3", "--lr-schedule=warmup:100")));
	CU_ASSERT(accepts(FLAGS("-n5", "--owner=workers", "--lr-schedule=warmup:100")));
	CU_ASSERT(accepts(FLAGS("-n5", "--optimizer=adagrad:lr=0.1", "--lr-schedule=warmup:9")));
}

static void a_distance_needs_versions_of_one_stale_gradient(void)
{
	CU_ASSERT(accepts(FLAGS("-n5", "--policy=async", "--lr-distance=0.1")));
	CU_ASSERT(accepts(FLAGS("-n5", "--policy=ssp:2", "--lr-distance=1e-6")));
	CU_ASSERT(accepts(FLAGS("-n5", "--policy=kasync:1", "--force", "--lr-distance=3")));
	CU_ASSERT(accepts(
		FLAGS("-n5", "--policy=syncswitch:0.5", "--samples=100", "--lr-distance=3")));
	CU_ASSERT(refuses("--lr-distance does nothing under --policy bsp, which counts no",
			  FLAGS("-n5", "--lr-distance=1")));
	CU_ASSERT(refuses("under --policy kasync:3: --lr-distance needs versions of one gradient",
			  FLAGS("-n5", "--policy=kasync:3", "--lr-distance=1")));
	CU_ASSERT(refuses("under --policy adasync:kasync: --lr-distance needs versions of one",
			  FLAGS("-n5", "--policy=adasync:kasync", "--force", "--lr-distance=1")));
	CU_ASSERT(refuses("each gradient is divided by its staleness already",
			  FLAGS("-n5", "--policy=async", "--compensate", "--lr-distance=1")));
	CU_ASSERT(refuses("workers make steps on parameters of their own",
			  FLAGS("-n5", "--policy=downpour:2,3", "--lr-distance=1")));
	CU_ASSERT(refuses("does nothing with --optimizer add, which has no rate",
			  FLAGS("-n5", "--policy=async", "--optimizer=add", "--lr-distance=1")));
	CU_ASSERT(refuses("has nothing to do with --owner workers",
			  FLAGS("-n5", "--owner=workers", "--lr-distance=1")));
	CU_ASSERT(refuses("--lr-distance", FLAGS("-n5", "--policy=async", "--lr-distance=-1")));
	CU_ASSERT(refuses("--lr-distance", FLAGS("-n5", "--policy=async", "--lr-distance=nan")));
}

static void a_limit_that_patience_comes_before_is_refused(void)
{
	CU_ASSERT(refuses("a deadline of 2000 ms has to be shorter than the patience of 2 s",
			  FLAGS("-n5", "--policy=anytime:2000", "--patience=2s")));
	CU_ASSERT(refuses("a deadline of 300000 ms", FLAGS("-n5", "--policy=deadline:300000,4")));
	CU_ASSERT(refuses("a grace of 2500 ms",
			  FLAGS("-n5", "--policy=nonblocking:2500", "--patience=2s")));
	CU_ASSERT(accepts(FLAGS("-n5", "--policy=nonblocking", "--patience=2s")));
	CU_ASSERT(accepts(FLAGS("-n5", "--policy=anytime:1999", "--patience=2s")));
}

static void the_fabric_is_verbs_defaults_unless_told(void)
{
	struct mst_fabric fabric, usual = MST_FABRIC_DEFAULT;
	struct options_case w;
	struct mst_reason why;

	CU_ASSERT(flags_check(&w, FLAGS("-n5")) == 0);
	CU_ASSERT_STRING_EQUAL(w.fields.transport, "auto");
	CU_ASSERT(mst_fabric_read(&w.fields.fabric, &fabric, &why) == 0);
	CU_ASSERT(fabric.addresses == NULL && fabric.devices == NULL);
	CU_ASSERT(fabric.gid_index == -1 && fabric.pkey == -1);
	CU_ASSERT(fabric.traffic_class == 0 && fabric.service_level == 0);
	CU_ASSERT(fabric.link_timeout_ns == usual.link_timeout_ns);
	CU_ASSERT(!fabric.relaxed_ordering && fabric.huge_pages && fabric.group == -1);
	mst_options_free(&w.options);
}

static void the_fabric_is_as_told(void)
{
	struct mst_fabric fabric;
	struct options_case w;
	struct mst_reason why;

	CU_ASSERT(flags_check(&w, FLAGS("-n5", "--transport", "verbs", "--data-address",
					"10.0.0.1,fd00::1", "--device", "mlx5_0,mlx5_1:2",
					"--gid-index", "0", "--pkey", "0x8001", "--traffic-class",
					"104", "--service-level", "5", "--link-timeout", "3s",
					"--data-port", "4711", "--relaxed-ordering", "--huge-pages",
					"off", "--shm-group", "4711")) == 0);
	CU_ASSERT_STRING_EQUAL(w.fields.transport, "verbs");
	CU_ASSERT(mst_fabric_read(&w.fields.fabric, &fabric, &why) == 0);
	CU_ASSERT_STRING_EQUAL(fabric.addresses, "10.0.0.1,fd00::1");
	CU_ASSERT_STRING_EQUAL(fabric.devices, "mlx5_0,mlx5_1:2");
	CU_ASSERT(fabric.gid_index == 0 && fabric.pkey == 0x8001);
	CU_ASSERT(fabric.traffic_class == 104 && fabric.service_level == 5);
	CU_ASSERT(fabric.link_timeout_ns == 3 * MST_SECOND && fabric.data_port == 4711);
	CU_ASSERT(fabric.relaxed_ordering && !fabric.huge_pages && fabric.group == 4711);
	mst_options_free(&w.options);
}

static void a_spread_is_a_weight_for_each_server(void)
{
	uint32_t weights[MST_SERVERS_MAX];
	struct options_case w;
	struct mst_reason why;

	CU_ASSERT(flags_check(&w, FLAGS("-n5", "--servers", "16")) == 0);
	CU_ASSERT(w.fields.join == NULL);
	CU_ASSERT(mst_server_options_partition(&w.fields, weights, &why) == 0);
	for (uint32_t i = 0; i < MST_SERVERS_MAX; i++)
		CU_ASSERT_EQUAL(weights[i], 1);
	mst_options_free(&w.options);
	CU_ASSERT(flags_check(&w, FLAGS("-n5", "--servers", "3", "--partition", "2,1,1000")) == 0);
	CU_ASSERT(mst_server_options_partition(&w.fields, weights, &why) == 0);
	CU_ASSERT(weights[0] == 2 && weights[1] == 1 && weights[2] == 1000);
	mst_options_free(&w.options);
}

static void a_spread_that_cannot_be_is_refused(void)
{
	static const char *const bad[] = { "2,1,",   ",2,1",  "2,,1", "0,1,1",  "1001,1,1", "a,1,1",
					   "-1,1,1", "2;1;1", "",     "1,1,1 ", "odd" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT(refuses("--partition", FLAGS("-n5", "--servers", "3", "--partition",
						       (char *)(uintptr_t)bad[i])));
	CU_ASSERT(refuses("2 numbers for 3 servers",
			  FLAGS("-n5", "--servers", "3", "--partition", "1,1")));
	CU_ASSERT(refuses("--servers", FLAGS("-n5", "--servers", "17")));
	CU_ASSERT(refuses("--servers", FLAGS("-n5", "--servers", "0")));
}

static void a_follower_needs_its_leader_and_no_more(void)
{
	struct options_case w;

	CU_ASSERT(flags_check(&w, FLAGS("--join", "10.0.0.1:17077", "--insecure")) == 0);
	CU_ASSERT_STRING_EQUAL(w.fields.join, "10.0.0.1:17077");
	mst_options_free(&w.options);
	CU_ASSERT(refuses("--join", FLAGS("--join", "10.0.0.1")));
	CU_ASSERT(refuses("--join", FLAGS("--join", "10.0.0.1:70000")));
	CU_ASSERT(refuses("is for the leader", FLAGS("--join", "a:1", "--servers", "2")));
	CU_ASSERT(refuses("--budget", FLAGS("--join", "a:1", "--budget", "4K")));
	CU_ASSERT(refuses("--budget", FLAGS("-n5", "--budget", "4098")));
	CU_ASSERT(
		refuses("--record is for the leader", FLAGS("--join", "a:1", "--record", "file")));
	CU_ASSERT(flags_check(&w, FLAGS("--join", "a:1", "--record=")) == 0);
	mst_options_free(&w.options);
}

static void a_user_that_cannot_be_is_refused(void)
{
	CU_ASSERT(refuses("option --user: there is no user \"nobody-has-this\"",
			  FLAGS("-n5", "--user", "nobody-has-this")));
	CU_ASSERT(refuses("option --user: the user \"root\" has all rights of root",
			  FLAGS("--join", "a:1", "--user", "root")));
	CU_ASSERT(accepts(FLAGS("-n5", "--user", "nobody", "--no-core")));
	CU_ASSERT(accepts(FLAGS("-n5", "--user=")));
}

static void a_fabric_that_cannot_be_is_refused(void)
{
	CU_ASSERT(refuses("--transport", FLAGS("-n5", "--transport", "pigeon")));
	CU_ASSERT(refuses("from 1s to 10min", FLAGS("-n5", "--link-timeout", "999ms")));
	CU_ASSERT(refuses("from 1s to 10min", FLAGS("-n5", "--link-timeout", "11min")));
	CU_ASSERT(accepts(FLAGS("-n5", "--link-timeout", "1s")));
	CU_ASSERT(accepts(FLAGS("-n5", "--link-timeout", "10min")));
	CU_ASSERT(refuses("--link-timeout", FLAGS("-n5", "--retries", "3")));
	CU_ASSERT(refuses("--link-timeout", FLAGS("-n5", "--ack-timeout=14")));
	CU_ASSERT(refuses("0 to 65535", FLAGS("-n5", "--data-port", "65536")));
	CU_ASSERT(refuses("0 to 255", FLAGS("-n5", "--traffic-class", "256")));
	CU_ASSERT(refuses("0 to 15", FLAGS("-n5", "--service-level", "16")));
	CU_ASSERT(refuses("option --shm-group: there is no group \"nobody-has-this\"",
			  FLAGS("-n5", "--shm-group", "nobody-has-this")));
	CU_ASSERT(accepts(FLAGS("-n5", "--shm-group", "root")));
	CU_ASSERT(refuses("option --gid-index: \"256\"", FLAGS("-n5", "--gid-index", "256")));
	CU_ASSERT(refuses("option --gid-index: \"-1\"", FLAGS("-n5", "--gid-index=-1")));
	CU_ASSERT(refuses("option --pkey: \"0\"", FLAGS("-n5", "--pkey", "0")));
	CU_ASSERT(refuses("option --pkey: \"0x10000\"", FLAGS("-n5", "--pkey", "0x10000")));
	CU_ASSERT(refuses("option --pkey: \" 1\"", FLAGS("-n5", "--pkey", " 1")));
	CU_ASSERT(accepts(FLAGS("-n5", "--pkey", "32769", "--gid-index", "auto")));
}

static void every_option_has_a_reason(void)
{
	for (const struct mst_option *row = mst_server_table; row->name != NULL; row++) {
		size_t len = strlen(row->help);
		CU_ASSERT(len > 10 && row->help[len - 1] != '.');
	}
}

static CU_TestInfo cases[] = {
	{ "defaults are those of the manual", defaults_are_those_of_the_manual },
	{ "the stop timeout is what the user says", stop_timeout_is_what_the_user_says },
	{ "the join timeout may be never", join_timeout_may_be_never },
	{ "no server patience may have a unit", no_server_patience_may_have_a_unit },
	{ "versions are saved more often where a server may be lost",
	  versions_are_saved_more_often_where_a_server_may_be_lost },
	{ "the state is what another server goes on from",
	  state_is_what_another_server_goes_on_from },
	{ "another server goes back to no older checkpoint",
	  another_server_goes_back_to_no_older_checkpoint },
	{ "words of choices are the enums", words_of_choices_are_the_enums },
	{ "every fixed policy is accepted", every_fixed_policy_is_accepted },
	{ "what cannot be is refused in a sentence", what_cannot_be_is_refused_in_a_reason },
	{ "a paper's name leads to ours, or to a reason",
	  a_papers_name_leads_to_ours_or_to_a_reason },
	{ "an optimizer that cannot be is refused", an_optimizer_that_cannot_be_is_refused },
	{ "the optimiser follows the policy", the_optimizer_follows_the_policy },
	{ "a momentum that is left out follows the policy",
	  momentum_that_is_left_out_follows_the_policy },
	{ "what is left out goes on as in the checkpoint",
	  what_is_left_out_goes_on_as_in_the_checkpoint },
	{ "what becomes of late gradients may be said",
	  what_becomes_of_late_gradients_may_be_said },
	{ "late starts may be said", late_starts_may_be_said },
	{ "staleness may be compensated where it can be",
	  staleness_may_be_compensated_where_it_can_be },
	{ "a rate that ends at 0 needs a job that ends there",
	  a_rate_that_ends_at_0_needs_a_job_that_ends_there },
	{ "an outer optimiser is for local steps", an_outer_optimiser_is_for_local_steps },
	{ "an average is of parameters that servers have",
	  an_average_is_of_parameters_that_servers_have },
	{ "a schedule needs a rate of the servers", a_schedule_needs_a_rate_of_the_servers },
	{ "a distance needs versions of one stale gradient",
	  a_distance_needs_versions_of_one_stale_gradient },
	{ "a limit that patience comes before is refused",
	  a_limit_that_patience_comes_before_is_refused },
	{ "the fabric is verbs' defaults unless told", the_fabric_is_verbs_defaults_unless_told },
	{ "the fabric is as told", the_fabric_is_as_told },
	{ "a fabric that cannot be is refused", a_fabric_that_cannot_be_is_refused },
	{ "a user that cannot be is refused", a_user_that_cannot_be_is_refused },
	{ "every option has a sentence", every_option_has_a_reason },
	{ "a spread is a weight for each server", a_spread_is_a_weight_for_each_server },
	{ "a spread that cannot be is refused", a_spread_that_cannot_be_is_refused },
	{ "a follower needs its leader and no more", a_follower_needs_its_leader_and_no_more },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("server options", cases);
}
