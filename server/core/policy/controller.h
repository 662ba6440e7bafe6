/* SPDX-License-Identifier: MIT */
/*
 * Controllers: policies that change their rule while the job runs. At each commit the ledger tells
 * the controller what that commit is made of, and the controller says which rule the next step is
 * made under. So a change costs no step, and a replay and the simulator decide the same.
 *
 * Pure. A controller is plain data without pointers: it can be copied and stored. Each kind is a
 * row of the table in controller.c and a file of its own, controller_KIND.c. docs/policies.md
 * explains the kinds and names their papers.
 */
#ifndef MST_SERVER_CORE_POLICY_CONTROLLER_H
#define MST_SERVER_CORE_POLICY_CONTROLLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/reason.h"
#include "common/wire/message.h"
#include "common/wire/rule.h"
#include "server/core/policy/adaptive/arrival_times.h"
#include "server/core/policy/adaptive/quorum_gain.h"
#include "server/core/policy/adaptive/quorum_time.h"
#include "server/core/policy/rule.h"
#include "server/core/policy/starts.h"

enum mst_controller_kind {
	MST_CONTROLLER_NONE, /* the rule is fixed */
	MST_CONTROLLER_ADASYNC,
	MST_CONTROLLER_SYNCSWITCH,
	MST_CONTROLLER_DBW,
	MST_CONTROLLERS
};

/* AdaSync: the quorum K follows the loss. */
struct mst_adasync {
	uint32_t form;     /* index of the policy that K belongs to */
	uint32_t start;    /* K at first; 0: the times say it */
	uint32_t interval; /* K is chosen anew after so many gradients */
	uint32_t wanted;   /* K as it was chosen last; fewer live workers make it less */
	uint32_t live;     /* workers, at the last commit */
	/* A name that workers report the loss under; "": it is that of the gradients. */
	char metric[MST_NAME_LEN];
	uint32_t gradients; /* of the interval that runs; at most `interval` */
	/* The sum of the losses, in MST_LOSS_UNIT, and the samples, or reports, of it. */
	double loss, samples;
	/* By the measured times of distinct workers; else by the paper's rule. */
	bool measures;
	bool paper;      /* the user wants that rule */
	uint32_t looks;  /* so many of the next steps wait for all, and tell the times */
	uint32_t quorum; /* of the open step */
	double since_s;  /* the time of all steps since the last look, and that of the look */
	double look_s;
	struct mst_arrival_times times;
	bool has_first;       /* `first` is known */
	double first, newest; /* the mean loss of the first interval, and of the last */
	enum { MST_ADASYNC_FINE, MST_ADASYNC_UNTOLD, MST_ADASYNC_NO_RATIO } trouble;
};

/* Which workers are stragglers. */
struct mst_straggler_test {
	bool paper;        /* by the test of the paper; else by the judge, server/core/stragglers */
	double deviations; /* so many standard deviations below the mean a throughput is slow */
	uint32_t windows;  /* in which it has to be, in a row */
};

/* Sync-Switch: bsp, and after a share of the job's samples async. */
struct mst_syncswitch {
	double share;
	/* What is done about a straggler before that: nothing; async while there is one; or it
	 * rests until the change. */
	enum { MST_SYNCSWITCH_OFFLINE, MST_SYNCSWITCH_GREEDY, MST_SYNCSWITCH_ELASTIC } online;
	struct mst_straggler_test test;
	bool is_away;          /* GREEDY: async is in force for a while */
	double away;           /* the samples that were counted in such whiles */
	uint32_t stragglers;   /* at the last commit */
	struct mst_rule other; /* of bsp and async the one that is not in force */
	bool is_done;
	double at; /* all samples, at the last commit of bsp */
};

/* Dynamic backup workers: the quorum with the most gain per second. */
struct mst_dbw {
	uint32_t least;  /* the quorum is never less; 0: than half of the workers */
	uint32_t wanted; /* the quorum as it was chosen last; 0: it was not yet, and all are */
	uint32_t live;   /* workers, at the last commit */
	uint32_t commits;
	struct mst_quorum_gain gain;
	struct mst_quorum_time time;
	bool gains; /* some quorum does */
	enum { MST_DBW_FINE, MST_DBW_NO_LOSS, MST_DBW_NO_NORMS } trouble;
};

struct mst_controller {
	enum mst_controller_kind kind;
	union {
		struct mst_adasync adasync;
		struct mst_syncswitch syncswitch;
		struct mst_dbw dbw;
	};
};

/* What a commit tells. */
struct mst_commit_view {
	uint32_t gradients;   /* counted in it */
	uint32_t stragglers;  /* of these, if mst_controller_watches() */
	uint32_t live;        /* workers that the next step waits for */
	double loss;          /* mean of the losses that workers told; NaN: no worker told one */
	double loss_samples;  /* the samples that the mean is over */
	double samples;       /* of the gradients counted in it */
	double samples_total; /* in all commits */
	double samples_max;   /* the job ends there; 0: never */
	uint32_t workers;     /* of the job */
	double rate;          /* of the step that it makes; 0: the servers have none */
	bool linear;          /* the rate is in proportion to the number of gradients */
	/* Norms of the version that the gradients are computed on, if mst_controller_by_norms(). */
	struct mst_commit_norms norms;
};

/* Reads an adaptive policy, such as "adasync:ksync". @rule: in: the fields that mst_rule_parse()
 * leaves as they are; out: the rule of the first step.
 * @why: a sentence.
 * Return: 0; -ENOENT: the name is no adaptive policy's, and nothing is written; -EINVAL. */
int mst_controller_parse(const char *policy, struct mst_controller *out, struct mst_rule *rule,
			 struct mst_reason *why);
/* A line for --help on the kind with this index; NULL: there are no more. */
const char *mst_controller_help(unsigned index);

/* The rule, apart from the first, that other options than --policy determine; NULL: none. */
struct mst_rule *mst_controller_then(struct mst_controller *c);
/* The rule that is the furthest from @first of all that the controller may answer with: if both
 * suit a job, all do. Without a controller it is @first. */
struct mst_rule mst_controller_last(const struct mst_controller *c, const struct mst_rule *first,
				    uint32_t workers);
/* What is to be checked besides these two rules.
 * @why: a sentence with numbers.
 * Return: 0 or -EINVAL. */
int mst_controller_check(const struct mst_controller *c, const struct mst_rule_context *ctx,
			 struct mst_reason *why);

/* What a checkpoint keeps of a controller: figures with names, "adasync.wanted". What the user has
 * typed is not among them. */
#define MST_CONTROLLER_FIGURES 8u
struct mst_controller_figure {
	const char *name; /* a constant */
	double value;
};
/* Return: how many there are; 0 without a controller. */
uint32_t mst_controller_keep(const struct mst_controller *c,
			     struct mst_controller_figure out[MST_CONTROLLER_FIGURES]);
/* The reverse, for a controller as it was parsed. @figure: as mst_controller_keep() gives them.
 * @rule: out: of the next step.
 * Return: false: the figures cannot be such a controller's, and nothing has changed. */
bool mst_controller_resume(struct mst_controller *c,
			   const struct mst_controller_figure figure[MST_CONTROLLER_FIGURES],
			   struct mst_rule *rule);

/* Does it decide by the losses that workers tell? */
bool mst_controller_by_loss(const struct mst_controller *c);
/* The name under which workers report the loss that it decides by; NULL: there is none. */
const char *mst_controller_metric(const struct mst_controller *c);
/* Does it decide by the norms of gradients and of their mean? */
bool mst_controller_by_norms(const struct mst_controller *c);
/* Does it decide by the times at which gradients arrive? */
bool mst_controller_by_times(const struct mst_controller *c);

/* A gradient has arrived. To be told only if mst_controller_by_times(). */
void mst_controller_arrived(struct mst_controller *c, const struct mst_arrival *arrival,
			    uint32_t workers);

/* A worker has reported a value, which is finite. Values of other names than
 * mst_controller_metric() are not taken. */
void mst_controller_reported(struct mst_controller *c, const struct mst_metric *said);

/* @rule: in: of the step that has been committed; out: of the next one.
 * Return: true if the rule has changed. */
bool mst_controller_decide(struct mst_controller *c, const struct mst_commit_view *commit,
			   struct mst_rule *rule);

/* Does the controller look for stragglers, and how? Are those who are to rest? If not, those who
 * have been put to rest for it return. */
bool mst_controller_watches(const struct mst_controller *c, struct mst_straggler_test *out);
bool mst_controller_rests_stragglers(const struct mst_controller *c,
				     struct mst_straggler_test *out);

/* For people. The fixed policy that is in force, "ksync:3", and why, "loss 2.3 -> 0.57, 4 live
 * workers". Both are "" without a controller. */
void mst_controller_now(const struct mst_controller *c, const struct mst_rule *rule, char *out,
			size_t len);
void mst_controller_why(const struct mst_controller *c, const struct mst_rule *rule, char *out,
			size_t len);
/* Does the controller lack what it decides by? mst_controller_why() says what. */
bool mst_controller_is_stuck(const struct mst_controller *c);

/* The K of AdaSync, before it is rounded: at least 1, at most @workers. */
struct mst_adasync_at {
	bool in_proportion; /* a step takes a time in proportion to K */
	double start;       /* K at the first loss */
	double workers;
	double ratio; /* of the first loss to the newest */
};
double mst_adasync_k(const struct mst_adasync_at *at);

#endif
