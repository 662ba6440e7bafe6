/* SPDX-License-Identifier: MIT */
/* muster policy: another policy for a job that runs. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "server/core/policy.h"
#include "tools/address.h"
#include "tools/command.h"
#include "tools/operands.h"
#include "tools/petition.h"
#include "tools/policy/options.h"
#include "tools/secure.h"

static int print_help(void)
{
	(void)puts("usage: muster policy [options] [HOST:PORT] POLICY\n\n"
		   "Asks the server at HOST:PORT (or MUSTER_SERVER, or " MST_ADDRESS_DEFAULT ")\n"
		   "to change the policy of its job while it runs. Whoever can connect to that\n"
		   "port may do so.\n\nOptions:");
	mst_options_help(mst_policy_table, stdout);
	(void)puts("\nPolicies:");
	for (unsigned i = 0; mst_policy_help(i) != NULL; i++)
		(void)printf("  %s\n", mst_policy_help(i));
	return MST_EXIT_DONE;
}

__attribute__((format(printf, 1, 2))) static int refuse(const char *fmt, ...)
{
	char why[512];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	mst_error("%s", why);
	mst_error("see muster policy --help");
	return MST_EXIT_USAGE;
}

static int ask(const char *address, const char *policy, const struct mst_policy_options *options)
{
	static struct mst_message msg = { .kind = MST_MSG_POLICY };
	char answer[MST_REASON_LEN];

	(void)snprintf(msg.change.policy, sizeof(msg.change.policy), "%s", policy);
	msg.change.force = options->force;
	int rc = mst_petition(address, &msg, options->timeout_ns, answer, sizeof(answer));
	if (rc == 0)
		(void)puts(answer);
	else
		mst_error("%s", answer);
	return rc == 0 ? MST_EXIT_DONE : MST_EXIT_FAILED;
}

static int change(const struct mst_policy_options *options, const struct mst_operands *operands)
{
	char address[MST_ADDRESS_LEN];

	if (options->help)
		return print_help();
	if (operands->count == 0)
		return refuse("the policy is missing, as in muster policy backup:4");
	const char *policy = operands->text[operands->count - 1];
	const char *typed = operands->count == 2 ? operands->text[0] : NULL;
	if (typed != NULL && !mst_address_is(typed))
		return refuse("\"%.60s\" is not HOST:PORT, such as " MST_ADDRESS_DEFAULT, typed);
	if (policy[0] == '\0' || strlen(policy) >= MST_POLICY_LEN)
		return refuse("\"%.60s\" is no policy, such as backup:4", policy);
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
	int exit_status = rc < 0 ? refuse("%s", parsed.why) : change(&options, &operands);
	mst_options_free(&parsed);
	return exit_status;
}
