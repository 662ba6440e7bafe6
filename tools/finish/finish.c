/* SPDX-License-Identifier: MIT */
/* muster finish: a running job ends well. */
#include <stdio.h>

#include "common/base/text.h"
#include "tools/address.h"
#include "tools/command.h"
#include "tools/finish/options.h"
#include "tools/operands.h"
#include "tools/petition.h"
#include "tools/refuse.h"
#include "tools/secure.h"

static int print_help(void)
{
	(void)puts("usage: muster finish [options] [HOST:PORT]\n\n"
		   "Asks the server at HOST:PORT (or MUSTER_SERVER, or " MST_ADDRESS_DEFAULT ")\n"
		   "to end its job well, as a worker does with muster_finish(), and waits for the\n"
		   "end. It takes the role of an operator.\n\nOptions:");
	mst_options_help(mst_finish_table, stdout);
	return MST_EXIT_DONE;
}

static int ask(const char *address, const struct mst_finish_options *options)
{
	static struct mst_message msg = { .kind = MST_MSG_END_JOB };

	(void)snprintf(msg.why, sizeof(msg.why), "%s", options->why != NULL ? options->why : "");
	return mst_petition_and_tell(address, &msg, options->timeout_ns);
}

static int finish(const struct mst_finish_options *options, const struct mst_operands *operands)
{
	char address[MST_ADDRESS_LEN];
	const char *typed = operands->count > 0 ? operands->text[0] : NULL;

	if (options->help)
		return print_help();
	if (operands->count > 1)
		return mst_refuse("finish", "what is \"%.60s\"? one address at a time",
				  operands->text[1]);
	if (typed != NULL && !mst_address_is(typed))
		return mst_refuse("finish",
				  "\"%.60s\" is not HOST:PORT, such as " MST_ADDRESS_DEFAULT,
				  typed);
	mst_address_choose(typed, address, sizeof(address));
	if (mst_secure_open(&options->tls) != 0)
		return MST_EXIT_USAGE;
	return ask(address, options);
}

int mst_finish_command(int argc, char **argv)
{
	struct mst_finish_options options;
	struct mst_operands operands;
	struct mst_options parsed;

	if (mst_options_init(&parsed, mst_finish_table, &options) < 0)
		return MST_EXIT_FAILED;
	int rc = mst_operands_read(&parsed, argc, argv, &operands);
	int exit_status = rc < 0 ? mst_refuse("finish", "%s", parsed.why)
				 : finish(&options, &operands);
	mst_options_free(&parsed);
	return exit_status;
}
