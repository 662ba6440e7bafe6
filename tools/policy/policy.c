/* SPDX-License-Identifier: MIT */
/* muster policy: another policy for a job that runs. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/core/policy.h"
#include "tools/address.h"
#include "tools/command.h"
#include "tools/operands.h"
#include "tools/petition.h"
#include "tools/policy/options.h"
#include "tools/refuse.h"
#include "tools/secure.h"

static int print_help(void)
{
	(void)puts("usage: muster policy [options] [HOST:PORT] POLICY\n\n"
		   "Asks the server at HOST:PORT (or MUSTER_SERVER, or " MST_ADDRESS_DEFAULT ")\n"
		   "to change the policy of its job while it runs. It takes the role of an\n"
		   "operator.\n\nOptions:");
	mst_options_help(mst_policy_table, stdout);
	(void)puts("\nPolicies:");
	for (unsigned i = 0; mst_policy_help(i) != NULL; i++)
		(void)printf("  %s\n", mst_policy_help(i));
	return MST_EXIT_DONE;
}

static int ask(const char *address, const char *policy, const struct mst_policy_options *options)
{
	static struct mst_message msg = { .kind = MST_MSG_POLICY };

	(void)snprintf(msg.change.policy, sizeof(msg.change.policy), "%s", policy);
	msg.change.force = options->force;
	return mst_petition_and_tell(address, &msg, options->timeout_ns);
}

static int change(const struct mst_policy_options *options, const struct mst_operands *operands)
{
	char address[MST_ADDRESS_LEN];

	if (options->help)
		return print_help();
	if (operands->count == 0)
		return mst_refuse("policy", "the policy is missing, as in muster policy backup:4");
	const char *policy = operands->text[operands->count - 1];
	const char *typed = operands->count == 2 ? operands->text[0] : NULL;
	if (typed != NULL && !mst_address_is(typed))
		return mst_refuse("policy",
				  "\"%.60s\" is not HOST:PORT, such as " MST_ADDRESS_DEFAULT,
				  typed);
	if (policy[0] == '\0' || strlen(policy) >= MST_POLICY_LEN)
		return mst_refuse("policy", "\"%.60s\" is no policy, such as backup:4", policy);
	mst_address_choose(typed, address, sizeof(address));
	if (mst_secure_open(&options->tls) != 0)
		return MST_EXIT_USAGE;
	return ask(address, policy, options);
}

int mst_policy_command(int argc, char **argv)
{
	struct mst_policy_options options;
	struct mst_operands operands;
	struct mst_options parsed;

	if (mst_options_init(&parsed, mst_policy_table, &options) < 0)
		return MST_EXIT_FAILED;
	int rc = mst_operands_read(&parsed, argc, argv, &operands);
	int exit_status = rc < 0 ? mst_refuse("policy", "%s", parsed.why)
				 : change(&options, &operands);
	mst_options_free(&parsed);
	return exit_status;
}
