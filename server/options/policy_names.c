/* SPDX-License-Identifier: MIT */
/*
 * Which policy somebody means who comes from a paper. docs/policies.md has the same table with the
 * papers, "From a paper's name to ours"; tests/tidy/policies.py holds the two together.
 *
 * Names are compared without case, and without what is no letter or digit: "Sync-Opt", "sync_opt"
 * and "syncopt" are one name.
 */
#include "server/options/policy_names.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/config/option.h"
#include "server/core/policy/policy.h"

#define POLICIES_MAX 32u /* most names that a mistyped one is compared with */
#define NAME_LEN 40u

/* What others call a policy. The nearest name of ours would often be another one. */
static const struct {
	const char *name, *ours;
} called[] = {
	{ "sync", "bsp" },
	{ "synchronous", "bsp" },
	{ "bulksynchronous", "bsp" },
	{ "bulksynchronousparallel", "bsp" },
	{ "syncsgd", "bsp" },
	{ "ssgd", "bsp" },
	{ "fullsync", "bsp" },
	{ "hardsync", "bsp" },
	{ "allreduce", "bsp" },
	{ "ddp", "bsp" },
	{ "syncopt", "backup" },
	{ "backupworkers", "backup" },
	{ "syncreplicas", "backup" },
	{ "syncreplicasoptimizer", "backup" },
	{ "asp", "async" },
	{ "asgd", "async" },
	{ "asynchronous", "async" },
	{ "asyncsgd", "async" },
	{ "asyncopt", "async" },
	{ "eventual", "async" },
	{ "distbelief", "downpour" },
	{ "stale", "ssp" },
	{ "stalesync", "ssp" },
	{ "stalesynchronous", "ssp" },
	{ "stalesynchronousparallel", "ssp" },
	{ "petuum", "ssp" },
	{ "boundeddelay", "ssp" },
	{ "elasticdl", "bounded" },
	{ "nsoftsync", "softsync" },
	{ "stalenessaware", "softsync" },
	{ "localsgd", "local" },
	{ "fedavg", "local" },
	{ "federated", "local" },
	{ "diloco", "local" },
	{ "modelaveraging", "local" },
	{ "elastic", "easgd" },
	{ "elasticaveraging", "easgd" },
	{ "eamsgd", "easgd" },
	{ "anytimeminibatch", "anytime" },
	{ "dynamicbackup", "dbw" },
};

/* Schemes that muster has not, and why, in a few words. */
static const struct {
	const char *name, *reason;
} absent[] = {
	{ "hogwild", "workers read whole versions here, and none is written while it is read; "
		     "nobody waits under async" },
	{ "ako", "workers send gradients to servers here, and never a part to each other; local:T "
		 "and downpour:P,F send less" },
	{ "projectadam",
	  "its early end of an epoch is --samples N, which counts what was computed, "
	  "whoever did it; nobody waits under async" },
	{ "adam",
	  "Adam is an optimiser (--optimizer adam), and goes with any policy of gradients" },
	{ "asaga", "the servers keep no gradient of each sample; correct gradients in the program, "
		   "and push them under async" },
	{ "saga", "the servers keep no gradient of each sample; correct gradients in the program, "
		  "and push them under bsp or async" },
	{ "svrg", "the servers compute no gradient over all samples; correct gradients in the "
		  "program, and push them under bsp or async" },
	{ "asyncsvrg", "the servers compute no gradient over all samples; correct gradients in the "
		       "program, and push them under async" },
	{ "splash", "samples are not weighed anew for each worker; local:T averages parameters" },
	{ "dpsgd", "workers do not exchange with neighbours; local:T averages with all" },
	{ "adpsgd",
	  "workers do not exchange with neighbours; easgd:T,A exchanges with the servers" },
	{ "matcha", "workers do not exchange with neighbours; local:T averages with all" },
	{ "gossip",
	  "workers do not exchange with neighbours; easgd:T,A exchanges with the servers" },
	{ "saina", "no number of workers follows the signs of the gradient; adasync:ksync follows "
		   "the loss, and dbw the gain of a step" },
	{ "tickets", "it is in the simulator only (muster sim); backup:N waits for the same number "
		     "of gradients" },
};

/* Writes the letters and digits of what stands before a number, all small. */
static void plain(const char *policy, char out[NAME_LEN])
{
	size_t len = 0;

	for (; *policy != '\0' && strchr(":=[", *policy) == NULL && len + 1 < NAME_LEN; policy++) {
		if (isalnum((unsigned char)*policy))
			out[len++] = (char)tolower((unsigned char)*policy);
	}
	out[len] = '\0';
}

static const char *policy_near(const char *policy, const char *typed, const char *const *names)
{
	char name[NAME_LEN];

	plain(policy, name);
	for (size_t i = 0; names[i] != NULL; i++)
		if (strcmp(name, names[i]) == 0)
			return names[i];
	for (size_t i = 0; i < sizeof(called) / sizeof(called[0]); i++)
		if (strcmp(name, called[i].name) == 0)
			return called[i].ours;
	return mst_nearest(typed, names);
}

static const char *policy_absent(const char *policy)
{
	char name[NAME_LEN];

	plain(policy, name);
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		if (strcmp(name, absent[i].name) == 0)
			return absent[i].reason;
	return NULL;
}

/* In the help a name ends where its number or its help begins. */
int mst_policy_names_refuse(const char *policy, const char *wrong, struct mst_reason *why)
{
	char known[POLICIES_MAX][16], typed[NAME_LEN];
	const char *names[POLICIES_MAX + 1] = { NULL };
	const char *reason = policy_absent(policy);

	if (reason != NULL)
		return mst_reason_fail(why, -EINVAL, "policy \"%.40s\" is not offered: %s", policy,
				       reason);
	snprintf(typed, sizeof(typed), "%.*s", (int)strcspn(policy, ":[= "), policy);
	for (unsigned i = 0; i < POLICIES_MAX && mst_policy_help(i) != NULL; i++) {
		const char *help = mst_policy_help(i);
		snprintf(known[i], sizeof(known[i]), "%.*s", (int)strcspn(help, "[: "), help);
		names[i] = known[i];
	}
	const char *near = policy_near(policy, typed, names);
	char after = policy[strlen(typed)];
	if (near == NULL || (strcmp(near, typed) == 0 && (after == ':' || after == '\0')))
		return mst_reason_fail(why, -EINVAL, "%s", wrong);
	unsigned i = 0;
	while (strcmp(names[i], near) != 0)
		i++;
	return mst_reason_fail(why, -EINVAL, "unknown policy \"%.40s\": did you mean %.*s?", policy,
			       (int)strcspn(mst_policy_help(i), " "), mst_policy_help(i));
}
