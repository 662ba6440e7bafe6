/* SPDX-License-Identifier: MIT */
/* muster rest: a worker of a running job rests, or returns. */
#include <inttypes.h>
#include <stdio.h>

#include "common/base/text.h"
#include "tools/address.h"
#include "tools/command.h"
#include "tools/operands.h"
#include "tools/petition.h"
#include "tools/refuse.h"
#include "tools/rest/options.h"
#include "tools/secure.h"

static int print_help(void)
{
	(void)puts("usage: muster rest [options] RANK [HOST:PORT]\n\n"
		   "Asks the server at HOST:PORT (or MUSTER_SERVER, or " MST_ADDRESS_DEFAULT ")\n"
		   "to go on without the worker of this rank, whose session stays, until it is\n"
		   "told to return. It takes the role of an operator.\n\nOptions:");
	mst_options_help(mst_rest_table, stdout);
	return MST_EXIT_DONE;
}

static int ask(const char *address, uint32_t rank, const struct mst_rest_options *options)
{
	static struct mst_message msg = { .kind = MST_MSG_REST };

	msg.rest.rank = rank;
	msg.rest.rests = !options->returns;
	return mst_petition_and_tell(address, &msg, options->timeout_ns);
}

static int rest(const struct mst_rest_options *options, const struct mst_operands *operands)
{
	char address[MST_ADDRESS_LEN];
	uint64_t rank;

	if (options->help)
		return print_help();
	if (operands->count == 0)
		return mst_refuse("rest", "the rank is missing, as in muster rest 3");
	if (mst_parse_u64(operands->text[0], &rank) != 0 || rank >= MST_WORKERS_MAX)
		return mst_refuse("rest",
				  "\"%.60s\" is no rank: a whole number from 0 to %u is wanted",
				  operands->text[0], MST_WORKERS_MAX - 1);
	const char *typed = operands->count == 2 ? operands->text[1] : NULL;
	if (typed != NULL && !mst_address_is(typed))
		return mst_refuse(
			"rest", "\"%.60s\" is not HOST:PORT, such as " MST_ADDRESS_DEFAULT, typed);
	mst_address_choose(typed, address, sizeof(address));
	if (mst_secure_open(&options->tls) != 0)
		return MST_EXIT_USAGE;
	return ask(address, (uint32_t)rank, options);
}

int mst_rest_command(int argc, char **argv)
{
	struct mst_rest_options options;
	struct mst_operands operands;
	struct mst_options parsed;

	if (mst_options_init(&parsed, mst_rest_table, &options) < 0)
		return MST_EXIT_FAILED;
	int rc = mst_operands_read(&parsed, argc, argv, &operands);
	int exit_status = rc < 0 ? mst_refuse("rest", "%s", parsed.why) : rest(&options, &operands);
	mst_options_free(&parsed);
	return exit_status;
}
