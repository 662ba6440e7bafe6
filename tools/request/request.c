/* SPDX-License-Identifier: MIT */
/*
 * Such a command sends one message and prints the sentence that comes back. A new one is a row of
 * requests[], the rows of its options, and the function that fills its message.
 */
#include "tools/request/request.h"

#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/text.h"
#include "common/config/shared_rows.h"
#include "common/transport/tls/options.h"
#include "server/core/policy/policy.h"
#include "tools/address.h"
#include "tools/command.h"
#include "tools/operands.h"
#include "tools/petition.h"
#include "tools/refuse.h"
#include "tools/secure.h"

/* What is typed after any of these commands; the rows of a command fill some of the fields. */
struct request_line {
	const char *subject; /* the operand that is no address; NULL: the command takes none */
	bool force, returns;
	const char *why; /* NULL: no reason was typed */
	uint64_t timeout_ns;
	struct mst_tls_files tls;
	bool help;
};

#define FIELD(name) .offset = offsetof(struct request_line, name)

/* The last rows of each command. */
#define COMMON_ROWS(timeout, wait)                                                                 \
	MST_TIMEOUT_ROW(FIELD(timeout_ns), timeout, wait),                                         \
		MST_TLS_COMMAND_OPTIONS(struct request_line, tls), MST_HELP_ROW(FIELD(help)),      \
	{                                                                                          \
		.name = NULL                                                                       \
	}

static const struct mst_option policy_table[] = {
	{ .name = "force",
	  .kind = MST_OPTION_FLAG,
	  FIELD(force),
	  .help = "accept a quorum under half of the workers" },
	COMMON_ROWS("5s", "how long to wait for the answer"),
};

static const struct mst_option rest_table[] = {
	{ .name = "return",
	  .kind = MST_OPTION_FLAG,
	  FIELD(returns),
	  .help = "the worker is to take part again, instead" },
	COMMON_ROWS("5s", "how long to wait for the answer"),
};

static const struct mst_option evict_table[] = {
	COMMON_ROWS("5s", "how long to wait for the answer"),
};

static const struct mst_option finish_table[] = {
	{ .name = "why",
	  .kind = MST_OPTION_STRING,
	  FIELD(why),
	  .value = "TEXT",
	  .help = "a reason, which the server's log, the workers and the status tell" },
	COMMON_ROWS("5min",
		    "how long to wait for the end of the job, which may be that of a whole step"),
};

static int fill_policy(const struct request_line *line, struct mst_message *msg)
{
	if (line->subject[0] == '\0' || strlen(line->subject) >= MST_POLICY_LEN)
		return mst_refuse("policy", "\"%.60s\" is no policy, such as backup:4",
				  line->subject);
	(void)snprintf(msg->change.policy, sizeof(msg->change.policy), "%s", line->subject);
	msg->change.force = line->force;
	return 0;
}

static int take_rank(const char *command, const char *typed, uint32_t *out)
{
	uint64_t rank;

	if (mst_parse_u64(typed, &rank) != 0 || rank >= MST_WORKERS_MAX)
		return mst_refuse(command,
				  "\"%.60s\" is no rank: a whole number from 0 to %u is wanted",
				  typed, MST_WORKERS_MAX - 1);
	*out = (uint32_t)rank;
	return 0;
}

static int fill_rest(const struct request_line *line, struct mst_message *msg)
{
	msg->rest.rests = !line->returns;
	return take_rank("rest", line->subject, &msg->rest.rank);
}

static int fill_evict(const struct request_line *line, struct mst_message *msg)
{
	return take_rank("evict", line->subject, &msg->evicted);
}

static int fill_finish(const struct request_line *line, struct mst_message *msg)
{
	(void)snprintf(msg->why, sizeof(msg->why), "%s", line->why != NULL ? line->why : "");
	return 0;
}

static void list_policies(void)
{
	(void)puts("\nPolicies:");
	for (unsigned i = 0; mst_policy_help(i) != NULL; i++)
		(void)printf("  %s\n", mst_policy_help(i));
}

struct request {
	const char *name;
	const char *operands; /* as the usage has them */
	/* The operand that is no address, and an example; NULL: an address is the only operand. */
	const char *subject, *example;
	bool subject_last;       /* it stands after the address */
	const char *about;       /* ends a sentence of print_help() */
	void (*more_help)(void); /* NULL: none */
	const struct mst_option *table;
	enum mst_message_kind kind;
	/* Return: 0; anything else: the subject is refused, with a sentence. */
	int (*fill)(const struct request_line *line, struct mst_message *msg);
};

static const struct request requests[] = {
	{ .name = "policy",
	  .operands = "[HOST:PORT] POLICY",
	  .subject = "policy",
	  .example = "backup:4",
	  .subject_last = true,
	  .about = "to change the policy of its job while it runs. It takes the role of an\n"
		   "operator.",
	  .more_help = list_policies,
	  .table = policy_table,
	  .kind = MST_MSG_POLICY,
	  .fill = fill_policy },
	{ .name = "rest",
	  .operands = "RANK [HOST:PORT]",
	  .subject = "rank",
	  .example = "3",
	  .about = "to go on without the worker of this rank, whose session stays, until it is\n"
		   "told to return. It takes the role of an operator.",
	  .table = rest_table,
	  .kind = MST_MSG_REST,
	  .fill = fill_rest },
	{ .name = "evict",
	  .operands = "RANK [HOST:PORT]",
	  .subject = "rank",
	  .example = "3",
	  .about = "to end the session of the worker of this rank, which is told so. The job goes "
		   "on\nas after any loss of a worker, and the rank is free for the next that "
		   "joins. It\ntakes the role of an operator.",
	  .table = evict_table,
	  .kind = MST_MSG_EVICT,
	  .fill = fill_evict },
	{ .name = "finish",
	  .operands = "[HOST:PORT]",
	  .about = "to end its job well, as a worker does with muster_finish(), and waits for the\n"
		   "end. It takes the role of an operator.",
	  .table = finish_table,
	  .kind = MST_MSG_END_JOB,
	  .fill = fill_finish },
};

static const struct request *find(const char *command)
{
	for (unsigned i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		if (strcmp(command, requests[i].name) == 0)
			return &requests[i];
	return NULL;
}

const struct mst_option *mst_request_table(const char *command)
{
	const struct request *r = find(command);

	return r != NULL ? r->table : NULL;
}

static int print_help(const struct request *r)
{
	(void)printf("usage: muster %s [options] %s\n\n"
		     "Asks the server at HOST:PORT (or MUSTER_SERVER, or " MST_ADDRESS_DEFAULT ")\n"
		     "%s\n\nOptions:\n",
		     r->name, r->operands, r->about);
	mst_options_help(r->table, stdout);
	if (r->more_help != NULL)
		r->more_help();
	return MST_EXIT_DONE;
}

/* Tells the subject from the address. @address: NULL: none was typed.
 * Return: 0; anything else: refused, with a sentence. */
static int take_operands(const struct request *r, const struct mst_operands *operands,
			 struct request_line *line, const char **address)
{
	int last = operands->count - 1, subjects = r->subject != NULL;

	if (operands->count < subjects)
		return mst_refuse(r->name, "the %s is missing, as in muster %s %s", r->subject,
				  r->name, r->example);
	if (operands->count > subjects + 1)
		return mst_refuse(r->name, "what is \"%.60s\"? one address at a time",
				  operands->text[last]);
	line->subject = subjects ? operands->text[r->subject_last ? last : 0] : NULL;
	*address = last == subjects ? operands->text[r->subject_last ? 0 : last] : NULL;
	return 0;
}

static int ask(const struct request *r, const struct mst_operands *operands,
	       struct request_line *line)
{
	static struct mst_message msg; /* too large for a stack */
	char address[MST_ADDRESS_LEN];
	const char *typed = NULL;

	msg.kind = r->kind;
	if (take_operands(r, operands, line, &typed) != 0 || r->fill(line, &msg) != 0 ||
	    mst_address_choose(r->name, typed, address) != 0 || mst_secure_open(&line->tls) != 0)
		return MST_EXIT_USAGE;
	return mst_petition(address, &msg, line->timeout_ns);
}

int mst_request_command(int argc, char **argv)
{
	const struct request *r = find(argv[0]);
	struct request_line line = { .subject = NULL };
	struct mst_operands operands;
	struct mst_options parsed;
	int exit_status;

	MST_ASSERT(r != NULL);
	if (mst_options_init(&parsed, r->table, &line) < 0)
		return MST_EXIT_FAILED;
	if (mst_operands_read(&parsed, argc, argv, &operands) < 0)
		exit_status = mst_refuse(r->name, "%s", parsed.why);
	else
		exit_status = line.help ? print_help(r) : ask(r, &operands, &line);
	mst_options_free(&parsed);
	return exit_status;
}
