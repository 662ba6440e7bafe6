/* SPDX-License-Identifier: MIT */
/*
 * The commands that ask the leader of a job that runs for a change: muster policy, rest, evict,
 * workers and finish. Each is a row of one table.
 *
 * Such a command sends one message and prints the sentence that comes back. A new one is a row of
 * requests[], the rows of its options, and the function that fills its message.
 */
#include "tools/command.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/config/shared_rows.h"
#include "common/transport/stream.h"
#include "common/transport/tls/options.h"
#include "common/wire/message.h"
#include "server/core/policy/policy.h"
#include "tools/address.h"
#include "tools/secure.h"
#include "tools/watch.h"

/* ---- asks the leader over the control connection, and waits for its answer ---- */

#define SILENT_NS (5 * MST_SECOND) /* for a connection; and before the user is told that we wait */
#define FRAME_BYTES 2048u          /* holds a request, and its answer with a sentence */

struct question {
	const struct mst_stream_ops *ops;
	struct mst_stream *stream;
	struct mst_reason *answer;
	size_t have;
	unsigned char frame[FRAME_BYTES];
};

__attribute__((format(printf, 3, 4))) static int fail(struct question *p, int error,
						      const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	mst_reason_vset(p->answer, fmt, args);
	va_end(args);
	return error;
}

static int say(struct question *p, const struct mst_message *msg)
{
	int64_t length = mst_message_encode(msg, p->frame, sizeof(p->frame));

	MST_ASSERT(length > 0);
	/* the socket is new, so its buffer has room for all of it */
	ssize_t sent = p->ops->send(p->stream, p->frame, (size_t)length);
	if (sent == length)
		return 0;
	return fail(p, sent < 0 ? (int)sent : -EPIPE, "cannot ask: %s",
		    strerror(sent < 0 ? (int)-sent : EPIPE));
}

/* The frame is whole. */
static int take(struct question *p, size_t length)
{
	struct mst_message *msg = malloc(sizeof(*msg));

	if (msg == NULL)
		return fail(p, -ENOMEM, "no memory for the answer");
	struct mst_unknown unknown;
	int rc = mst_message_decode(p->frame, length, msg, &unknown);
	if (rc == 0 && msg->kind == MST_MSG_DONE)
		(void)fail(p, 0, "%s", msg->why);
	else if (rc == 0 && msg->kind == MST_MSG_ERROR)
		rc = fail(p, msg->error.code, "%s", msg->error.reason);
	else if (unknown.tag != 0)
		(void)fail(p, rc, "musterd %s", mst_unknown_say(&unknown).text);
	else
		rc = fail(p, -EPROTO, "what listens there does not answer as musterd does");
	free(msg);
	return rc;
}

/* Return: the length of the answer; 0: it is not all there; -errno. */
static int64_t length_of(struct question *p)
{
	uint32_t protocol = 0;
	int64_t length = mst_frame_length(p->frame, p->have, &protocol);

	if (length == -EPROTO && protocol != 0)
		return fail(p, -EPROTO, "musterd speaks protocol %u, this program %u", protocol,
			    MST_PROTOCOL);
	if (length < 0 || length > (int64_t)sizeof(p->frame))
		return fail(p, -EPROTO, "what listens there is not musterd");
	return length <= (int64_t)p->have ? length : 0;
}

/* Return: 0, or -errno: the connection is of no use any more. */
static int receive(struct question *p)
{
	ssize_t got = p->ops->receive(p->stream, p->frame + p->have, sizeof(p->frame) - p->have);

	if (got == 0)
		return fail(p, -EPIPE, "musterd has closed the connection without an answer");
	if (got < 0 && p->ops->why(p->stream) != NULL)
		return fail(p, (int)got, "%s", p->ops->why(p->stream));
	if (got < 0 && got != -EAGAIN)
		return fail(p, (int)got, "the connection to musterd broke: %s",
			    strerror((int)-got));
	p->have += got > 0 ? (size_t)got : 0;
	return 0;
}

/* Tells once that there is no answer yet. */
static void tell_silence(uint64_t *tell_ns, uint64_t deadline_ns, uint64_t now_ns)
{
	if (now_ns < *tell_ns)
		return;
	*tell_ns = MST_NEVER;
	mst_warn("musterd has not answered for %d s; waiting for %.3g s more (--timeout)",
		 (int)(SILENT_NS / MST_SECOND),
		 (double)(deadline_ns - now_ns) / (double)MST_SECOND);
}

static int await(struct question *p, uint64_t deadline_ns)
{
	uint64_t tell_ns = mst_now_ns() + SILENT_NS;

	for (;;) {
		int rc = receive(p);
		if (rc != 0)
			return rc;
		int64_t length = length_of(p);
		if (length != 0)
			return length > 0 ? take(p, (size_t)length) : (int)length;
		uint64_t now_ns = mst_now_ns();
		if (now_ns >= deadline_ns)
			return fail(p, -ETIMEDOUT,
				    "musterd has not answered in time; muster status says whether "
				    "it has done it");
		tell_silence(&tell_ns, deadline_ns, now_ns);
		uint64_t until_ns = tell_ns < deadline_ns ? tell_ns : deadline_ns;
		struct pollfd fd = { .fd = p->ops->stream_fd(p->stream), .events = POLLIN };
		(void)poll(&fd, 1, (int)((until_ns - now_ns) / MST_MS) + 1);
	}
}

/* @answer: a sentence: what will be, or why not.
 * Return: 0: it is done; or -errno, of the leader's refusal or of the connection. */
static int exchange(const char *address, const struct mst_message *msg, uint64_t timeout_ns,
		    struct mst_reason *answer)
{
	struct question p = { .ops = mst_secure_stream(), .answer = answer };
	struct mst_proof proof = { .own = mst_secure() };
	uint64_t deadline_ns = mst_now_ns() + timeout_ns;

	uint64_t connect_ns = timeout_ns < SILENT_NS ? timeout_ns : SILENT_NS;
	int rc = p.ops->connect(address, connect_ns, &proof, &p.stream);
	if (rc < 0 && proof.why.text[0] != '\0')
		return fail(&p, mst_watch_unproven(rc), "%s", proof.why.text);
	if (rc < 0) {
		mst_watch_explain(rc, address, answer);
		return rc;
	}
	rc = say(&p, msg);
	if (rc == 0)
		rc = await(&p, deadline_ns);
	p.ops->close(p.stream);
	return rc;
}

/* Sends @msg, a MST_MSG_POLICY, REST, EVICT, WORKERS or END_JOB, to @address and waits for the
 * answer, at most @timeout_ns in all. Prints the answer, or logs why it is a refusal or why there
 * is none.
 * Return: the exit status of a command. */
static int ask_leader(const char *address, const struct mst_message *msg, uint64_t timeout_ns)
{
	struct mst_reason answer;
	int rc = exchange(address, msg, timeout_ns, &answer);

	if (rc == 0)
		(void)printf("%s: %s\n", address, answer.text);
	else
		mst_error("%s", answer.text);
	return mst_secure_exit(rc);
}

/* ---- the commands ---- */

/* What is typed after any of these commands; the rows of a command fill some of the fields. */
struct request_line {
	const char *subject; /* the operand that is no address; NULL: the command takes none */
	const char *address; /* as typed; NULL: it was not */
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

static const struct mst_option workers_table[] = {
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

static bool is_policy(const char *text, struct mst_reason *why)
{
	struct mst_policy policy;

	return mst_policy_parse(text, &policy, why) == 0;
}

/* What is a policy the server says, which may be of another release. But an address is none.
 * Return: 0; anything else: refused, with a sentence. */
static int check_policy(const struct request_line *line)
{
	struct mst_reason why;

	if (is_policy(line->subject, &why))
		return 0;
	if (mst_address_has_port(line->subject) && line->address == NULL)
		return mst_refuse("policy", "which policy? As in muster policy %.60s backup:4",
				  line->subject);
	if (mst_address_has_port(line->subject) && is_policy(line->address, &why))
		return mst_refuse("policy", "the address comes first: muster policy %.60s %.60s",
				  line->subject, line->address);
	if (line->address == NULL && !mst_address_is_known())
		return mst_refuse("policy",
				  "%s; as in muster policy " MST_ADDRESS_DEFAULT " backup:4",
				  why.text);
	return 0;
}

static int fill_policy(const struct request_line *line, struct mst_message *msg)
{
	if (line->subject[0] == '\0' || strlen(line->subject) >= MST_POLICY_LEN)
		return mst_refuse("policy", "\"%.60s\" is no policy, such as backup:4",
				  line->subject);
	int rc = check_policy(line);
	if (rc != 0)
		return rc;
	(void)snprintf(msg->change.policy, sizeof(msg->change.policy), "%s", line->subject);
	msg->change.force = line->force;
	return 0;
}

static int take_rank(const char *command, const struct request_line *line, uint32_t *out)
{
	const char *typed = line->subject;
	uint64_t rank;

	if (mst_address_has_port(typed) && line->address == NULL)
		return mst_refuse(command, "which rank? As in muster %s 3 %.60s", command, typed);
	if (mst_address_has_port(typed) && mst_parse_u64(line->address, &rank) == 0)
		return mst_refuse(command, "the rank comes first: muster %s %.60s %.60s", command,
				  line->address, typed);
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
	return take_rank("rest", line, &msg->rest.rank);
}

static int fill_evict(const struct request_line *line, struct mst_message *msg)
{
	return take_rank("evict", line, &msg->evicted);
}

static int fill_workers(const struct request_line *line, struct mst_message *msg)
{
	const char *typed = line->subject;
	uint64_t workers;

	if (mst_address_has_port(typed) && line->address == NULL)
		return mst_refuse("workers", "how many workers? As in muster workers 8 %.60s",
				  typed);
	if (mst_address_has_port(typed) && mst_parse_u64(line->address, &workers) == 0)
		return mst_refuse("workers", "the number comes first: muster workers %.60s %.60s",
				  line->address, typed);
	if (mst_parse_u64(typed, &workers) != 0 || workers == 0 || workers > MST_WORKERS_MAX)
		return mst_refuse("workers",
				  "\"%.60s\" is no number of workers: a whole number from 1 to %u "
				  "is wanted",
				  typed, MST_WORKERS_MAX);
	msg->workforce.workers = (uint32_t)workers;
	return 0;
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
	const char *operands;    /* as the usage has them */
	const char *subject;     /* the operand that is no address; NULL: there is none */
	const char *example;     /* what is typed after muster */
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
	  .example = "policy " MST_ADDRESS_DEFAULT " backup:4",
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
	  .example = "rest 3 " MST_ADDRESS_DEFAULT,
	  .about = "to go on without the worker of this rank, whose session stays, until it is\n"
		   "told to return. It takes the role of an operator.",
	  .table = rest_table,
	  .kind = MST_MSG_REST,
	  .fill = fill_rest },
	{ .name = "evict",
	  .operands = "RANK [HOST:PORT]",
	  .subject = "rank",
	  .example = "evict 3 " MST_ADDRESS_DEFAULT,
	  .about = "to end the session of the worker of this rank, which is told so. The job goes "
		   "on\nas after any loss of a worker, and the rank is free for the next that "
		   "joins. It\ntakes the role of an operator.",
	  .table = evict_table,
	  .kind = MST_MSG_EVICT,
	  .fill = fill_evict },
	{ .name = "workers",
	  .operands = "N [HOST:PORT]",
	  .subject = "number of workers",
	  .example = "workers 8 " MST_ADDRESS_DEFAULT,
	  .about = "to go on with N workers. The generation ends, and the next begins at the same "
		   "servers\nwhen ranks 0 to N-1 are there: those that were not are for you to "
		   "start, and ranks\nfrom N on are over. It needs --server-patience, and takes "
		   "the role of an operator.",
	  .table = workers_table,
	  .kind = MST_MSG_WORKERS,
	  .fill = fill_workers },
	{ .name = "finish",
	  .operands = "[HOST:PORT]",
	  .example = "finish " MST_ADDRESS_DEFAULT,
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
		     "Asks the server at HOST:PORT, or at the address in MUSTER_SERVER,\n"
		     "%s\n\nOptions:\n",
		     r->name, r->operands, r->about);
	mst_options_help(r->table, stdout);
	if (r->more_help != NULL)
		r->more_help();
	return MST_EXIT_DONE;
}

/* Tells the subject from the address.
 * Return: 0; anything else: refused, with a sentence. */
static int take_operands(const struct request *r, const struct mst_operands *operands,
			 struct request_line *line)
{
	int last = operands->count - 1, subjects = r->subject != NULL;

	if (operands->count < subjects)
		return mst_refuse(r->name, "the %s is missing, as in muster %s", r->subject,
				  r->example);
	if (operands->count > subjects + 1)
		return mst_refuse(r->name, "what is \"%.60s\"? one address at a time",
				  operands->text[last]);
	line->subject = subjects ? operands->text[r->subject_last ? last : 0] : NULL;
	line->address = last == subjects ? operands->text[r->subject_last ? 0 : last] : NULL;
	return 0;
}

static int ask(const struct request *r, const struct mst_operands *operands,
	       struct request_line *line)
{
	static struct mst_message msg; /* too large for a stack */
	char address[MST_SERVER_ADDRESS_LEN];

	msg.kind = r->kind;
	if (take_operands(r, operands, line) != 0 || r->fill(line, &msg) != 0 ||
	    mst_address_need(r->name, r->example, line->address, address) != 0 ||
	    mst_secure_open(&line->tls) != 0)
		return MST_EXIT_USAGE;
	return ask_leader(address, &msg, line->timeout_ns);
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
		exit_status = mst_refuse(r->name, "%s", parsed.why.text);
	else
		exit_status = line.help ? print_help(r) : ask(r, &operands, &line);
	mst_options_free(&parsed);
	return exit_status;
}
