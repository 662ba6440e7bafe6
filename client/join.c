/* SPDX-License-Identifier: MIT */
/*
 * Joining: find the lead, say hello, check the welcome, link with whom it names (links.c).
 * Everything here runs against one deadline, and whatever fails says to whom and with which
 * figures.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/client.h"
#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/log.h"

#define RETRY_NS (50 * MST_MS)
#define BEAT_MAX_NS MST_SECOND
#define BUFFERS_MAX 65536u /* beyond all reason, and sizes still fit */

static double seconds(uint64_t ns)
{
	return (double)ns / (double)MST_SECOND;
}

/* ---- the lead ---- */

static bool may_come_later(int error)
{
	return error == -ECONNREFUSED || error == -EHOSTUNREACH || error == -ETIMEDOUT ||
	       error == -ECONNRESET;
}

/* Tries until the deadline: whoever starts the server may do so later. */
static int find_lead(struct muster *m, uint64_t deadline_ns, struct mst_stream **out)
{
	const char *server = m->settings.server;
	uint64_t left = mst_client_left_ns(deadline_ns);
	int rc;

	while ((rc = m->stream->connect(server, left, out)) != 0 && may_come_later(rc)) {
		left = mst_client_left_ns(deadline_ns);
		if (left == 0)
			return mst_client_fail(m, -ETIMEDOUT,
					       "no server answered at %s within %.1f s (%s): start "
					       "one with musterd or muster run, or set "
					       "MUSTER_SERVER",
					       server, seconds(m->settings.join_ns), strerror(-rc));
		mst_sleep_ns(left < RETRY_NS ? left : RETRY_NS);
		left = mst_client_left_ns(deadline_ns);
	}
	if (rc == -EINVAL)
		return mst_client_fail(m, rc, "the server's address \"%s\" is not HOST:PORT",
				       server);
	if (rc == -ENOENT)
		return mst_client_fail(m, -EINVAL,
				       "there is no host of the name in \"%s\": mend "
				       "options.server or MUSTER_SERVER",
				       server);
	if (rc != 0)
		return mst_client_fail(m, rc, "cannot connect to the server at %s: %s", server,
				       strerror(-rc));
	return 0;
}

/* Before the net is opened this thread is the one that steps, and needs no waking; the heartbeat's
 * is started afterwards. */
static void wake(void *ctx)
{
	struct muster *m = ctx;

	if (m->net != NULL)
		m->transport->wake(m->net);
}

static int open_control(struct muster *m, uint64_t deadline_ns)
{
	struct mst_control_cfg cfg = {
		.ops = m->stream, .server = m->settings.server, .wake = wake, .ctx = m
	};
	int rc = find_lead(m, deadline_ns, &cfg.stream);

	if (rc != 0)
		return rc;
	rc = mst_control_new(&cfg, &m->control);
	if (rc == 0)
		return 0;
	m->stream->close(cfg.stream);
	return mst_client_fail(m, rc, "no memory for the control connection");
}

/* ---- hello and welcome ---- */

static int say_hello(struct muster *m)
{
	struct mst_message *msg = calloc(1, sizeof(*msg));
	const struct mst_settings *s = &m->settings;

	if (msg == NULL)
		return mst_client_fail(m, -ENOMEM, "no memory for a hello");
	msg->kind = MST_MSG_HELLO;
	msg->hello = (struct mst_hello){ .rank = s->rank,
					 .elems = s->elems,
					 .type = (uint32_t)s->type,
					 .result_type = (uint32_t)s->result_type,
					 .owner = (uint32_t)s->owner,
					 .pid = (uint32_t)getpid() };
	memcpy(msg->hello.job, s->job, sizeof(msg->hello.job));
	int rc = mst_control_send(m->control, msg);
	free(msg);
	MST_ASSERT(rc != -EAGAIN);
	return 0; /* a connection that has broken by now says so when it is listened to */
}

static int await_welcome(struct muster *m, uint64_t deadline_ns)
{
	for (;;) {
		mst_control_step(m->control, mst_now_ns());
		mst_control_look(m->control, &m->told);
		if (m->told.error != 0)
			return mst_client_fail(m, m->told.error, "%s", m->told.sentence);
		if (m->told.welcomed) {
			m->welcome = m->told.welcome;
			return 0;
		}
		if (m->told.finished)
			return mst_client_fail(m, -ESHUTDOWN, "the job is over: %s",
					       m->told.sentence);
		if (mst_client_left_ns(deadline_ns) == 0)
			return mst_client_fail(m, -ETIMEDOUT,
					       "the server at %s took the connection, but has not "
					       "answered the hello within %.1f s",
					       m->settings.server, seconds(m->settings.join_ns));
		mst_control_sleep(m->control, -1, deadline_ns);
	}
}

/* Each server has a part, and a door; one behind the other they are the whole. */
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

/* What a lead of this release cannot have meant. */
static const char *absurdity(const struct mst_settings *s, const struct mst_welcome *w)
{
	if (strcmp(w->job, s->job) != 0)
		return "is into another job";
	if (w->elems != s->elems || w->type != (uint32_t)s->type ||
	    w->result_type != (uint32_t)s->result_type || w->owner != (uint32_t)s->owner)
		return "has another length, other types or another owner than the hello";
	if (w->workers == 0 || w->workers > MST_WORKERS_MAX || w->rank >= w->workers)
		return "has a rank or a number of workers that cannot be";
	if (s->rank >= 0 && w->rank != (uint32_t)s->rank)
		return "gives another rank than was asked for";
	if (w->incarnation == 0 || w->slots == 0 || w->slots > MST_SLOTS_MAX || w->buffers == 0 ||
	    w->buffers > BUFFERS_MAX)
		return "has an incarnation, slots or buffers that cannot be";
	if (w->lease_ns < MST_MS || w->server[0].address[0] == '\0')
		return "has no lease, or names no door";
	if (!parts_fit(w))
		return "names servers whose parts are not the vector";
	if (w->ack_timeout == 0 || w->pkey < -1 || w->pkey > UINT16_MAX)
		return "has a timer or a partition key that cannot be";
	return NULL;
}

static int check_welcome(struct muster *m)
{
	const char *wrong = absurdity(&m->settings, &m->welcome);

	if (wrong == NULL)
		return 0;
	return mst_client_fail(m, -EPROTO, "the welcome of the server at %s %s", m->settings.server,
			       wrong);
}

/* ---- the whole ---- */

/* From the welcome on the lease counts, so the heart beats before the link is made. */
static int start_heart(struct muster *m)
{
	uint64_t beat_ns = m->welcome.lease_ns / 4;

	mst_control_beat(m->control, beat_ns < BEAT_MAX_NS ? beat_ns : BEAT_MAX_NS, mst_now_ns());
	int rc = mst_heartbeat_new(m->control, &m->heartbeat);
	if (rc != 0)
		return mst_client_fail(m, rc, "cannot start the heartbeat's thread: %s",
				       strerror(-rc));
	return 0;
}

static uint32_t to_ms(uint64_t ns)
{
	return ns / MST_MS < UINT32_MAX ? (uint32_t)(ns / MST_MS) : UINT32_MAX;
}

static int begin_session(struct muster *m)
{
	const struct mst_welcome *w = &m->welcome;
	struct mst_worker_cfg cfg = { .elems = w->elems,
				      .slots = w->slots,
				      .workers = w->workers,
				      .servers = w->server_count,
				      /* Else there is nothing to read in place. */
				      .buffers = m->transport->maps ? w->buffers : 0,
				      .in_order = w->owner == MUSTER_WORKERS_OWN };

	m->job = (struct muster_job){
		.size = sizeof(m->job),
		.name = w->job,
		.policy = w->policy,
		.rank = w->rank,
		.incarnation = w->incarnation,
		.workers = w->workers,
		.slots = w->slots,
		.elems = w->elems,
		.type = m->settings.type,
		.result_type = m->settings.result_type,
		.owner = m->settings.owner,
		.lease_ms = to_ms(w->lease_ns),
		.patience_ms = to_ms(w->patience_ns),
		.fates = w->fate,
		.fate_count = w->fate_count,
	};
	m->wait_ns = m->settings.wait_ns;
	if (m->wait_ns == 0)
		m->wait_ns = w->patience_ns < MST_NEVER - w->lease_ns ? w->patience_ns + w->lease_ns
								      : MST_NEVER;
	if (mst_worker_init(&m->worker, &cfg) != 0)
		return mst_client_fail(m, -ENOMEM, "no memory for %" PRIu32 " workers' shares",
				       w->workers);
	mst_client_publish(m);
	return 0;
}

int mst_client_join(struct muster *m)
{
	uint64_t deadline_ns = mst_client_deadline(m->settings.join_ns);
	int rc = open_control(m, deadline_ns);

	if (rc == 0)
		rc = say_hello(m);
	if (rc == 0)
		rc = await_welcome(m, deadline_ns);
	if (rc == 0)
		rc = check_welcome(m);
	if (rc == 0)
		rc = mst_client_open_net(m);
	if (rc == 0)
		rc = start_heart(m);
	if (rc == 0)
		rc = mst_client_link(m, deadline_ns);
	if (rc == 0)
		rc = mst_client_join_parts(m);
	if (rc == 0)
		rc = begin_session(m);
	if (rc == 0)
		mst_debug("rank %" PRIu32 " of %" PRIu32 " in job \"%s\" of %s, over %s",
			  m->job.rank, m->job.workers, m->job.name, m->settings.server,
			  m->transport->scheme);
	return rc;
}

void mst_client_free(struct muster *m)
{
	const struct mst_transport *transport = m->transport;

	mst_heartbeat_free(m->heartbeat);
	mst_control_free(m->control);
	mst_client_unlink(m);
	mst_client_free_rooms(m);
	if (m->net != NULL)
		transport->net_close(m->net);
	mst_worker_fini(&m->worker);
	free(m);
}
