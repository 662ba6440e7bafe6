/* SPDX-License-Identifier: MIT */
/* muster evict: the session of a worker ends. */
#include <inttypes.h>
#include <stdio.h>

#include "common/base/text.h"
#include "tools/address.h"
#include "tools/command.h"
#include "tools/evict/options.h"
#include "tools/operands.h"
#include "tools/petition.h"
#include "tools/refuse.h"
#include "tools/secure.h"

static int print_help(void)
{
	(void)puts(
		"usage: muster evict [options] RANK [HOST:PORT]\n\n"
		"Asks the server at HOST:PORT (or MUSTER_SERVER, or " MST_ADDRESS_DEFAULT ")\n"
		"to end the session of the worker of this rank, which is told so. The job goes on\n"
		"as after any loss of a worker, and the rank is free for the next that joins. It\n"
		"takes the role of an operator.\n\n"
		"Options:");
	mst_options_help(mst_evict_table, stdout);
	return MST_EXIT_DONE;
}

static int ask(const char *address, uint32_t rank, uint64_t timeout_ns)
{
	static struct mst_message msg = { .kind = MST_MSG_EVICT };

	msg.evicted = rank;
	return mst_petition_and_tell(address, &msg, timeout_ns);
}

static int evict(const struct mst_evict_options *options, const struct mst_operands *operands)
{
	char address[MST_ADDRESS_LEN];
	uint64_t rank;

	if (options->help)
		return print_help();
	if (operands->count == 0)
		return mst_refuse("evict", "the rank is missing, as in muster evict 3");
	if (mst_parse_u64(operands->text[0], &rank) != 0 || rank >= MST_WORKERS_MAX)
		return mst_refuse("evict",
				  "\"%.60s\" is no rank: a whole number from 0 to %u is wanted",
				  operands->text[0], MST_WORKERS_MAX - 1);
	const char *typed = operands->count == 2 ? operands->text[1] : NULL;
	if (typed != NULL && !mst_address_is(typed))
		return mst_refuse(
			"evict", "\"%.60s\" is not HOST:PORT, such as " MST_ADDRESS_DEFAULT, typed);
	mst_address_choose(typed, address, sizeof(address));
	if (mst_secure_open(&options->tls) != 0)
		return MST_EXIT_USAGE;
	return ask(address, (uint32_t)rank, options->timeout_ns);
}

int mst_evict_command(int argc, char **argv)
{
	struct mst_evict_options options;
	struct mst_operands operands;
	struct mst_options parsed;

	if (mst_options_init(&parsed, mst_evict_table, &options) < 0)
		return MST_EXIT_FAILED;
	int rc = mst_operands_read(&parsed, argc, argv, &operands);
	int exit_status = rc < 0 ? mst_refuse("evict", "%s", parsed.why)
				 : evict(&options, &operands);
	mst_options_free(&parsed);
	return exit_status;
}
