/* SPDX-License-Identifier: MIT */
/* The names that papers and other programs give to policies, and to schemes that muster has not. */
#ifndef MST_SERVER_OPTIONS_POLICY_NAMES_H
#define MST_SERVER_OPTIONS_POLICY_NAMES_H

#include "common/base/reason.h"

/* Refuses a policy that could not be read. The sentence names the policy that the user may have
 * meant. Of a scheme that is not offered it says why, and which policy comes nearest.
 * @wrong: what the parser has said, which is the sentence where nothing better is known; it may lie
 * in @why.
 * Return: -EINVAL. */
int mst_policy_names_refuse(const char *policy, const char *wrong, struct mst_reason *why);

#endif
