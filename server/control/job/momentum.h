/* SPDX-License-Identifier: MIT */
/*
 * Two momenta at once. Gradients on old versions move the parameters as a momentum does: with M
 * workers that do not wait for each other it is 1 - 1/M (Mitliagkas, Zhang, Hadjis, Re 2016). A
 * momentum of the optimiser comes on top of that, and a job may learn nothing.
 */
#ifndef MST_SERVER_CONTROL_JOB_MOMENTUM_H
#define MST_SERVER_CONTROL_JOB_MOMENTUM_H

#include "server/plan/plan.h"

/* At the start: says what the momentum is, where it follows from the policy, and warns of one that
 * was kept on from a checkpoint. */
void mst_momentum_tell(const struct mst_server_options *o, const struct mst_terms *terms,
		       bool resumed);
/* Does a change to this policy add a second momentum? @out: a sentence with figures.
 * @before: the rule in force.
 * Return: false: it does not, and nothing is written. */
bool mst_momentum_adds(struct mst_reason *out, const struct mst_server_options *o,
		       const struct mst_optimizer *optimizer, const struct mst_rule *before,
		       const struct mst_policy *next);

#endif
