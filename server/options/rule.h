/* SPDX-License-Identifier: MIT */
/*
 * The rule of a job: what --policy, --optimizer, --lr-schedule and the options beside them mean
 * together, and which of them do nothing, or harm, beside each other.
 */
#ifndef MST_SERVER_OPTIONS_RULE_H
#define MST_SERVER_OPTIONS_RULE_H

#include "server/options/options.h"

/* What mst_server_options_check() refuses of them. Return: 0; -EINVAL, with a sentence. */
int mst_server_rule_check(const struct mst_server_options *o, struct mst_reason *why);

#endif
