/* SPDX-License-Identifier: MIT */
/* What is to happen in a simulated job, and when: "3@20s", "async@500". Read, and put in order. */
#ifndef MST_TOOLS_SIM_SCHEDULE_H
#define MST_TOOLS_SIM_SCHEDULE_H

#include "common/base/reason.h"
#include "common/config/option.h"
#include "tools/sim/cfg.h"

#define MST_SIM_CHANGES_MAX (4u * MST_OPTION_LIST_MAX)

/* The options, by the kind of the change: "kill", "freeze", "nap", "join". */
const char *mst_sim_change_option(enum mst_sim_change_kind kind);

struct mst_sim_changes {
	uint32_t workers; /* to be set before */
	uint32_t count;
	struct mst_sim_change at[MST_SIM_CHANGES_MAX]; /* in order of time */
};

/* Adds the changes of one kind, each RANK@TIME, or RANK@TIME,LENGTH for a nap, with a rank below
 * c->workers.
 * @why: a sentence that names option and text.
 * Return: 0 or -EINVAL. */
int mst_sim_changes_read(struct mst_sim_changes *c, enum mst_sim_change_kind kind,
			 const struct mst_option_list *list, struct mst_reason *why);
/* Puts all changes in order, and checks that each can happen after those before it: a process that
 * is there can be killed or frozen or take a nap, and a frozen one can be killed; a rank can be
 * joined after that.
 * Return: 0 or -EINVAL. */
int mst_sim_changes_order(struct mst_sim_changes *c, struct mst_reason *why);

struct mst_sim_switches {
	uint32_t count;
	struct mst_sim_switch at[MST_OPTION_LIST_MAX]; /* in order of versions */
	const char *text[MST_OPTION_LIST_MAX];         /* as typed, in the same order */
};

/* Reads switches, each POLICY@VERSION. What a policy does not determine is as in @base.
 * Return: 0 or -EINVAL. */
int mst_sim_switches_read(struct mst_sim_switches *s, const struct mst_option_list *list,
			  const struct mst_rule *base, struct mst_reason *why);

#endif
