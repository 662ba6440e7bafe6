/* SPDX-License-Identifier: MIT */
#include "client/session/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/host/limits.h"
#include "common/host/tasks.h"
#include "common/transport/called.h"
#include "common/transport/hostport.h"
#include "common/transport/origins.h"

#define RETRY_NS (50 * MST_MS)
/* So long a worker waits for a server in silence. */
#define TELL_NS (5 * MST_SECOND)
/* How often a hello is said. A server that many strangers connect to makes room by closing the
 * oldest connections, and may close one whose hello has not arrived yet. */
#define HELLOS_MAX 10
/* A server that cannot take a worker yet is asked again after this time. */
#define BUSY_NS (200 * MST_MS)
#define BEAT_MAX_NS MST_SECOND
#define LOOK_NS (10 * MST_MS) /* at what the leader says, while a reason is waited for */
#define ORIGIN_LEN 64u
#define BUFFERS_MAX 65536u /* beyond all reason, and sizes still fit */
#define HISTORY_MAX 65536u

static double seconds(uint64_t ns)
{
	return (double)ns / (double)MST_SECOND;
}

/* ---- the leader ---- */

static bool is_unwanted(const struct mst_client_session *s)
{
	return s->unwanted != NULL && atomic_load_explicit(s->unwanted, memory_order_acquire);
}

/* A name that a server had may be missing while another server takes its place. */
static bool may_come_later(const struct mst_client_session *s, int error)
{
	if (s->unwanted != NULL && error == -ENOENT)
		return true;
	return error == -ECONNREFUSED || error == -EHOSTUNREACH || error == -ETIMEDOUT ||
	       error == -ECONNRESET;
}

/* Where the address is from, if the user did not give it: what has to be fixed. */
static const char *whose_address(const struct mst_settings *settings, char *out, size_t len)
{
	out[0] = '\0';
	if (settings->server_from != NULL)
		(void)snprintf(out, len, ", which is from %s", settings->server_from);
	return out;
}

/* About a server that has not answered; nothing more where @why has said what is wrong. */
static const char *what_to_do(const struct mst_client_session *s, int error,
			      const struct mst_reason *why, struct mst_reason *out)
{
	struct mst_reason start;

	if (why->text[0] != '\0')
		mst_reason_set(out, "is MUSTER_SERVER right?");
	else if (error != -ECONNREFUSED)
		(void)mst_hostport_advice(s->settings->server, error, out);
	else
		mst_reason_set(out, "%s, or set MUSTER_SERVER",
			       mst_hostport_advice(s->settings->server, error, &start));
	return out->text;
}

/* Says once that nobody is there yet: a minute without a word looks like a program that hangs. */
static void tell_waiting(const struct mst_client_session *s, uint64_t *tell_ns, const char *from,
			 int error, const struct mst_reason *why)
{
	struct mst_reason advice;

	if (mst_left_ns(*tell_ns) > 0)
		return;
	*tell_ns = MST_NEVER;
	mst_warn("job \"%s\": no server answers at %s%s (%s): trying again, for %.3g s in all; %s",
		 s->settings->job, s->settings->server, from, mst_reason_or_errno(why, error),
		 seconds(s->settings->join_ns), what_to_do(s, error, why, &advice));
}

/* How long one call may take, of the time that is left. */
static uint64_t at_once(const struct mst_client_session *s, uint64_t left_ns)
{
	uint64_t most_ns = s->unwanted != NULL ? MST_SECOND : TELL_NS;

	return left_ns < most_ns ? left_ns : most_ns;
}

/* A worker that comes back is told elsewhere how long it has tried in all. */
static int found_none(const struct mst_client_session *s, int error, const struct mst_reason *why)
{
	struct mst_reason advice, time = { .text = "" };
	char from[ORIGIN_LEN];

	if (s->unwanted == NULL)
		mst_reason_set(&time, " within %.1f s", seconds(s->settings->join_ns));
	return mst_reason_fail(s->failure, -ETIMEDOUT, "no server answered at %s%s%s (%s): %s",
			       s->settings->server, whose_address(s->settings, from, sizeof(from)),
			       time.text, mst_reason_or_errno(why, error),
			       what_to_do(s, error, why, &advice));
}

/* Tries until the deadline, because the server may be started later than its workers. */
static int find_leader(struct mst_client_session *s, uint64_t deadline_ns, struct mst_stream **out)
{
	const char *server = s->settings->server;
	struct mst_proof proof = { .own = s->settings->credentials };
	uint64_t left = mst_left_ns(deadline_ns), tell_ns = mst_deadline_ns(TELL_NS);
	char from[ORIGIN_LEN];
	int rc;

	(void)whose_address(s->settings, from, sizeof(from));

	/* An address that swallows calls is told of in time, too. */
	left = at_once(s, left);
	while ((rc = s->stream->connect(server, left, &proof, out)) != 0 && may_come_later(s, rc)) {
		if (s->unwanted == NULL)
			tell_waiting(s, &tell_ns, from, rc, &proof.why);
		left = mst_left_ns(deadline_ns);
		if (left == 0 || is_unwanted(s))
			return found_none(s, rc, &proof.why);
		mst_sleep_ns(left < RETRY_NS ? left : RETRY_NS);
		left = s->unwanted == NULL ? mst_left_ns(deadline_ns)
					   : at_once(s, mst_left_ns(deadline_ns));
	}
	if (rc != 0 && proof.why.text[0] != '\0')
		return mst_reason_fail(s->failure, rc, "%s", proof.why.text);
	if (rc == -EINVAL)
		return mst_reason_fail(s->failure, rc,
				       "the server's address is no address: \"%s\"%s: fix "
				       "options.server or MUSTER_SERVER",
				       server, from);
	if (rc == -ENOENT)
		return mst_reason_fail(s->failure, -EINVAL,
				       "there is no host of the name in \"%s\"%s: fix "
				       "options.server or MUSTER_SERVER",
				       server, from);
	if (rc != 0)
		return mst_reason_fail(s->failure, rc, "cannot connect to the server at %s: %s",
				       server, strerror(-rc));
	return 0;
}

/* Before the net is opened the user's thread steps the connection itself, and needs no waking; the
 * heartbeat's thread is started afterwards. */
static void wake(void *ctx)
{
	mst_wakeup_ring(ctx);
}

/* A child of fork() finds it whole, or none. */
static void drop_control(struct mst_client_session *s)
{
	struct mst_control *old = s->control;

	s->control = NULL;
	mst_control_free(old);
}

static int use_stream(struct mst_client_session *s, struct mst_stream *stream)
{
	struct mst_control_cfg cfg = { .ops = s->stream,
				       .stream = stream,
				       .server = s->settings->server,
				       .wake = wake,
				       .ctx = s->links->wakeup };
	int rc = mst_control_new(&cfg, &s->control);

	if (rc == 0)
		return 0;
	s->stream->close(stream);
	return mst_reason_fail(s->failure, rc, "no memory for the control connection");
}

static int open_control(struct mst_client_session *s, uint64_t deadline_ns)
{
	struct mst_stream *stream;
	int rc = find_leader(s, deadline_ns, &stream);

	return rc == 0 ? use_stream(s, stream) : rc;
}

/* Makes another connection to a leader that has answered before. */
static int reopen_control(struct mst_client_session *s, uint64_t deadline_ns)
{
	struct mst_proof proof = { .own = s->settings->credentials };
	struct mst_stream *stream;
	int rc;

	uint64_t left_ns = mst_left_ns(deadline_ns);
	/* A worker that comes back tries anew by itself: its handle may be closed meanwhile. */
	uint64_t most_ns = s->unwanted != NULL ? at_once(s, left_ns) : left_ns;

	/* Over TLS a server that is there turns callers away while it has too many. */
	while ((rc = s->stream->connect(s->settings->server, most_ns, &proof, &stream)) ==
		       -ECONNRESET &&
	       (left_ns = mst_left_ns(deadline_ns)) > 0 && !is_unwanted(s)) {
		mst_sleep_ns(RETRY_NS);
		most_ns = left_ns < most_ns ? left_ns : most_ns;
	}
	if (rc != 0)
		return rc;
	drop_control(s);
	return use_stream(s, stream);
}

/* ---- hello and welcome ---- */

/* Over shared memory a worker is let in without them. */
static void find_origins(struct mst_client_session *s)
{
	int rc = mst_origins_own(&s->settings->fabric, &s->origins);

	if (rc != 0)
		mst_warn("cannot list the addresses of this host (%s): over RDMA and TCP "
			 "servers let in links from that of the control connection alone; name "
			 "those of the data network with MUSTER_DATA_ADDRESS",
			 strerror(-rc));
}

/* A worker that comes back takes the rank that it had. */
static int32_t wanted_rank(const struct mst_client_session *s)
{
	return s->unwanted != NULL ? s->rank : s->settings->rank;
}

static int say_hello(struct mst_client_session *s)
{
	struct mst_message *msg = calloc(1, sizeof(*msg));
	const struct mst_settings *settings = s->settings;

	if (msg == NULL)
		return mst_reason_fail(s->failure, -ENOMEM,
				       "no memory for the message that joins the job");
	msg->kind = MST_MSG_HELLO;
	msg->hello = (struct mst_hello){ .rank = wanted_rank(s),
					 .elems = settings->elems,
					 .type = (uint32_t)settings->type,
					 .result_type = (uint32_t)settings->result_type,
					 .owner = (uint32_t)settings->owner,
					 .pid = (uint32_t)getpid(),
					 .comes_back = settings->comes_back,
					 .table = mst_tensors_table(settings->tensors),
					 .origins = s->origins,
					 .returning = s->returning,
					 .workforce = s->workforce };
	memcpy(msg->hello.job, settings->job, sizeof(msg->hello.job));
	int rc = mst_control_send(s->control, msg);
	free(msg);
	MST_ASSERT(rc != -EAGAIN);
	s->table_sent = 0;
	return 0; /* if the connection has broken by now, the next look at it says so */
}

/* Passes on why the leader has refused the hello. If the rank is taken, the sentence also says
 * which variable this process has its rank from: the variable may be left over from another run, or
 * be the same for many processes. */
static int refused(struct mst_client_session *s)
{
	const char *from = s->settings->rank_from;
	int error = s->told.error;

	if (error != -EEXIST || from == NULL)
		return mst_reason_fail(s->failure, error, "%s", s->told.reason.text);
	return mst_reason_fail(s->failure, error,
			       "%s; this one has its rank from %s=%" PRId32
			       " in the environment: is that left over, or the same for all?",
			       s->told.reason.text, from, s->settings->rank);
}

static int job_is_over(struct mst_client_session *s)
{
	return mst_reason_fail(s->failure, -ESHUTDOWN, "the job is over: %s", s->told.reason.text);
}

/* Sends as much of the tensor table as there is room for now, in messages as short as those of a
 * stranger have to be. Return: all has been sent. */
static bool send_table(struct mst_client_session *s)
{
	const struct mst_tensors *tensors = s->settings->tensors;
	struct mst_message *msg = calloc(1, sizeof(*msg));
	uint32_t total = mst_tensors_table(tensors).tensors;
	int rc = msg != NULL ? 0 : -ENOMEM; /* then it is tried again */

	while (rc == 0 && s->table_sent < total) {
		uint32_t behind = mst_tensors_piece(tensors, s->table_sent, MST_TENSORS_FEW,
						    &msg->piece);
		msg->kind = MST_MSG_TENSORS;
		rc = mst_control_send(s->control, msg);
		s->table_sent = rc == 0 ? behind : s->table_sent;
	}
	free(msg);
	return s->table_sent == total;
}

static int await_welcome(struct mst_client_session *s, uint64_t deadline_ns)
{
	uint64_t all_ns = s->unwanted == NULL ? s->settings->join_ns : mst_left_ns(deadline_ns);

	for (;;) {
		mst_control_step(s->control, mst_now_ns());
		mst_control_look(s->control, &s->told);
		/* The end of the connection may come with the welcome: a session has begun, and is
		 * lost. */
		bool lost = s->told.welcomed && s->told.again;
		if (s->told.error != 0 && !lost)
			return refused(s);
		if (s->told.welcomed && (lost || !s->told.send_table || send_table(s))) {
			s->welcome = s->told.welcome;
			return 0;
		}
		if (s->told.finished)
			return job_is_over(s);
		if (s->told.send_table && !s->told.welcomed)
			(void)send_table(s); /* what comes next is a refusal */
		if (mst_left_ns(deadline_ns) == 0 || is_unwanted(s))
			return mst_reason_fail(s->failure, -ETIMEDOUT,
					       "the server at %s took the connection, but has not "
					       "answered the hello within %.1f s",
					       s->settings->server, seconds(all_ns));
		mst_control_sleep(s->control, -1, deadline_ns);
	}
}

/* Is another hello to be said? A server that is busy takes the worker later; @unheard hellos were
 * not heard. */
static bool is_to_ask_again(const struct mst_client_session *s, int unheard, int rc,
			    uint64_t deadline_ns)
{
	uint64_t left_ns = mst_left_ns(deadline_ns);

	if (is_unwanted(s))
		return false;
	if (rc == -EBUSY)
		mst_sleep_ns(left_ns < BUSY_NS ? left_ns : BUSY_NS);
	else if (s->told.unheard && unheard < HELLOS_MAX)
		mst_sleep_ns(RETRY_NS);
	else
		return false;
	return mst_left_ns(deadline_ns) > 0 || s->told.unheard;
}

/* The server is about to end, and another one takes its place. */
static int wait_for_next(struct mst_client_session *s, uint64_t deadline_ns)
{
	mst_sleep_ns(RETRY_NS);
	drop_control(s);
	s->told = (struct mst_told){ 0 };
	return open_control(s, deadline_ns);
}

/* Makes the connection of another hello, to this server, or to one that takes its place. */
static int open_again(struct mst_client_session *s, uint64_t deadline_ns)
{
	struct mst_reason said = *s->failure;
	int rc = reopen_control(s, deadline_ns);

	if (rc == 0 || s->unwanted != NULL || !may_come_later(s, rc))
		return rc;
	rc = wait_for_next(s, deadline_ns);
	if (rc == 0)
		return 0;
	return mst_reason_fail(s->failure, rc, "%s; since then %s", said.text, s->failure->text);
}

/* Says hello, and says it again on another connection if the server is busy, or has closed the last
 * one without a word. */
static int be_welcomed(struct mst_client_session *s, uint64_t deadline_ns)
{
	int rc = open_control(s, deadline_ns), unheard = 0;

	while (rc == 0) {
		rc = say_hello(s);
		if (rc == 0)
			rc = await_welcome(s, deadline_ns);
		unheard += s->told.unheard;
		if (rc != 0 && s->told.asked_again && mst_left_ns(deadline_ns) > 0) {
			rc = wait_for_next(s, deadline_ns);
			continue;
		}
		if (rc == 0 || !is_to_ask_again(s, unheard, rc, deadline_ns))
			break;
		rc = open_again(s, deadline_ns);
	}
	return rc;
}

/* Does each server have a listener, and do the parts, one after another, make up the vector? */
static bool parts_fit(const struct mst_welcome *w)
{
	uint64_t end = 0;

	if (w->server_count == 0 || w->server_count > MST_SERVERS_MAX)
		return false;
	for (uint32_t k = 0; k < w->server_count; k++) {
		const struct mst_welcome_server *s = &w->server[k];
		if (s->address[0] == '\0' || s->first != end || s->count == 0 ||
		    s->count > w->elems - end || s->first % MST_PART_ELEMS_MIN != 0)
			return false;
		end += s->count;
	}
	return end == w->elems;
}

/* What is wrong with a welcome that no leader of this release would send; NULL: nothing. */
static const char *absurdity(const struct mst_client_session *of, const struct mst_welcome *w)
{
	const struct mst_settings *s = of->settings;
	int32_t rank = wanted_rank(of);

	if (strcmp(w->job, s->job) != 0)
		return "is into another job";
	if (w->elems != s->elems || w->type != (uint32_t)s->type ||
	    w->result_type != (uint32_t)s->result_type || w->owner != (uint32_t)s->owner)
		return "has another length, other types or another owner than the hello";
	if (w->workers == 0 || w->workers > MST_WORKERS_MAX || w->rank >= w->workers)
		return "has a rank or a number of workers that cannot be";
	if (rank >= 0 && w->rank != (uint32_t)rank)
		return "gives another rank than was asked for";
	if (w->incarnation == 0 || w->slots == 0 || w->slots > MST_SLOTS_MAX || w->buffers == 0 ||
	    w->buffers > BUFFERS_MAX)
		return "has an incarnation, slots or buffers that cannot be";
	if (w->history > HISTORY_MAX)
		return "has a history that cannot be";
	if (w->lease_ns < MST_MS || w->server[0].address[0] == '\0')
		return "has no lease, or names no listener";
	if (w->server_lease_ns < w->lease_ns)
		return "has a lease of servers that is shorter than that of workers";
	if (!parts_fit(w))
		return "names servers whose parts are not the vector";
	if (!mst_path_is_sane(&w->path))
		return "has a timer or a partition key that cannot be";
	return NULL;
}

static uint32_t to_ms(uint64_t ns)
{
	return ns / MST_MS < UINT32_MAX ? (uint32_t)(ns / MST_MS) : UINT32_MAX;
}

/* Where a listener is at the host that has been called: here that is the other end of the control
 * connection, since the leader has put its own followers' in their places. */
static void find_servers(const struct mst_client_session *s, struct mst_welcome *w)
{
	char host[MST_CALLED_LEN];

	(void)mst_control_host(s->control, host);
	for (uint32_t k = 0; k < w->server_count; k++)
		mst_called_fill(w->server[k].address, sizeof(w->server[k].address), host);
}

static void describe_job(const struct mst_settings *settings, const struct mst_welcome *w,
			 struct muster_job *out)
{
	*out = (struct muster_job){
		.size = sizeof(*out),
		.name = w->job,
		.policy = w->policy,
		.rank = w->rank,
		.incarnation = w->incarnation,
		.workers = w->workers,
		.slots = w->slots,
		.elems = w->elems,
		.type = settings->type,
		.result_type = settings->result_type,
		.owner = settings->owner,
		.lease_ms = to_ms(w->lease_ns),
		.patience_ms = to_ms(w->patience_ns),
		.verdicts = w->verdict,
		.verdict_count = w->verdict_count,
		.first_version = w->first_version,
		.first_samples = w->first_samples,
	};
}

int mst_client_session_join(struct mst_client_session *s, uint64_t deadline_ns)
{
	int rc;

	find_origins(s);
	rc = be_welcomed(s, deadline_ns);

	if (rc != 0)
		return rc;
	const char *wrong = absurdity(s, &s->welcome);
	if (wrong != NULL)
		return mst_reason_fail(s->failure, -EPROTO, "the welcome of the server at %s %s",
				       s->settings->server, wrong);
	if (s->welcome.record_ranks < s->welcome.workers)
		s->welcome.record_ranks = s->welcome.workers;
	find_servers(s, &s->welcome);
	describe_job(s->settings, &s->welcome, &s->job);
	return 0;
}

/* ---- after the welcome ---- */

void mst_client_session_beat_on(struct mst_client_session *s)
{
	uint64_t beat_ns = s->welcome.lease_ns / 4;

	mst_control_beat(s->control, &s->welcome, beat_ns < BEAT_MAX_NS ? beat_ns : BEAT_MAX_NS,
			 mst_now_ns());
}

int mst_client_session_beat(struct mst_client_session *s, const struct mst_heartbeat_next *next)
{
	struct mst_reason cause;

	mst_client_session_beat_on(s);
	int rc = mst_heartbeat_new(s->control, next, &s->heartbeat);
	if (rc != 0)
		return mst_reason_fail(s->failure, rc, "cannot start the heartbeat's thread: %s",
				       rc == -EAGAIN ? mst_host_tasks_failed(rc, &cause)
						     : mst_limit_failed(rc, 0, &cause));
	return 0;
}

void mst_client_session_adopt(struct mst_client_session *s, struct mst_client_session *next)
{
	struct muster_job first = s->job;

	struct mst_control *old = s->control;

	s->control = next->control;
	next->control = NULL;
	mst_control_free(old);
	s->told = next->told;
	s->table_sent = next->table_sent;
	s->welcome = next->welcome;
	describe_job(s->settings, &s->welcome, &s->job);
	s->job.first_version = first.first_version;
	s->job.first_samples = first.first_samples;
}

void mst_client_session_look(struct mst_client_session *s)
{
	mst_control_look(s->control, &s->told);
	if (s->told.policy[0] != '\0')
		memcpy(s->welcome.policy, s->told.policy, sizeof(s->welcome.policy));
}

/* Does an error of a link look as it does when the session has ended? */
static bool is_of_an_end(int error)
{
	return error == -EACCES || error == -ECONNREFUSED || error == -ECONNRESET ||
	       error == -EPIPE || error == -ENOTCONN;
}

static bool has_said_why(struct mst_client_session *s)
{
	mst_control_step(s->control, mst_now_ns());
	mst_control_look(s->control, &s->told);
	return s->told.error != 0 || s->told.finished || s->told.closed;
}

int mst_client_session_reason(struct mst_client_session *s, int error)
{
	uint64_t deadline_ns = mst_deadline_ns(is_of_an_end(error) ? MST_LAST_WORDS_NS : 0);

	while (!has_said_why(s) && mst_left_ns(deadline_ns) > 0)
		mst_sleep_ns(LOOK_NS);
	if (s->told.error != 0)
		return mst_reason_fail(s->failure, s->told.error, "%s", s->told.reason.text);
	if (s->told.finished)
		return job_is_over(s);
	return error;
}

int mst_client_session_tell(struct mst_client_session *s, const struct mst_message *msg)
{
	int rc = mst_control_send(s->control, msg);

	if (rc == 0 && mst_control_pending(s->control))
		mst_heartbeat_ring(s->heartbeat);
	return rc;
}

int mst_client_session_give(struct mst_client_session *s, const struct mst_gift *gift)
{
	int rc = mst_control_give(s->control, gift);

	if (rc == 0)
		mst_heartbeat_ring(s->heartbeat);
	return rc;
}

void mst_client_session_disown(struct mst_client_session *s)
{
	mst_heartbeat_disown(s->heartbeat);
	mst_control_disown(s->control);
}

void mst_client_session_fini(struct mst_client_session *s)
{
	mst_heartbeat_free(s->heartbeat);
	mst_control_free(s->control);
	s->heartbeat = NULL;
	s->control = NULL;
}
