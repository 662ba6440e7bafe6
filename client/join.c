/* SPDX-License-Identifier: MIT */
/*
 * Joining: find the lead, say hello, check the welcome, dial the door it names. Everything here
 * runs against one deadline, and whatever fails says to whom and with which figures.
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

/* A server zeroes and registers the memory of one worker's link after the other's. Slow hosts
 * manage this much. */
#define PINNED_BYTES_PER_NS 0.25

/* How long a waiting worker looks before it sleeps. Workers outnumber cores more often than not. */
#define SPIN_PAUSES 5u
#define SPIN_YIELDS 2000u

static double seconds(uint64_t ns)
{
	return (double)ns / (double)MST_SECOND;
}

static uint64_t left_ns(uint64_t deadline_ns)
{
	uint64_t now_ns = mst_now_ns();

	return now_ns < deadline_ns ? deadline_ns - now_ns : 0;
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
	uint64_t left = left_ns(deadline_ns);
	int rc;

	while ((rc = m->stream->connect(server, left, out)) != 0 && may_come_later(rc)) {
		left = left_ns(deadline_ns);
		if (left == 0)
			return mst_client_fail(m, -ETIMEDOUT,
					       "no server answered at %s within %.1f s (%s): start "
					       "one with musterd or muster run, or set "
					       "MUSTER_SERVER",
					       server, seconds(m->settings.join_ns), strerror(-rc));
		mst_sleep_ns(left < RETRY_NS ? left : RETRY_NS);
		left = left_ns(deadline_ns);
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
		if (left_ns(deadline_ns) == 0)
			return mst_client_fail(m, -ETIMEDOUT,
					       "the server at %s took the connection, but has not "
					       "answered the hello within %.1f s",
					       m->settings.server, seconds(m->settings.join_ns));
		mst_control_sleep(m->control, -1, deadline_ns);
	}
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
	if (w->shards != 1)
		return "is to several shards, this library links one";
	if (w->lease_ns < MST_MS || w->address[0] == '\0')
		return "has no lease, or names no door";
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

/* ---- the link ---- */

/* What is known of a failure: the transport's sentence, or what the error number stands for. */
static const char *cause(int error)
{
	return mst_why()[0] != '\0' ? mst_why() : strerror(-error);
}

/* A transport that was asked for must be the door's; otherwise the door's it is. */
static int choose_transport(struct muster *m)
{
	const char *address = m->welcome.address;
	const struct mst_transport *of_door = mst_transport_of(address);
	const struct mst_transport *wanted = m->settings.transport;

	if (of_door == NULL)
		return mst_client_fail(m, -EPROTONOSUPPORT,
				       "the server's door %.200s is for a transport that this "
				       "build does not have",
				       address);
	if (wanted != NULL && wanted != of_door)
		return mst_client_fail(m, -EINVAL,
				       "the server's door %.200s is for %s, MUSTER_TRANSPORT says "
				       "%s: set it to auto or %s, or start the server with "
				       "--transport %s",
				       address, of_door->scheme, wanted->scheme, of_door->scheme,
				       wanted->scheme);
	m->transport = of_door;
	return 0;
}

static const char *text_or_null(const char *text)
{
	return text[0] != '\0' ? text : NULL;
}

static int open_net(struct muster *m)
{
	const struct mst_settings *s = &m->settings;
	const struct mst_welcome *w = &m->welcome;
	struct mst_fabric fabric = MST_FABRIC_DEFAULT;
	struct mst_net_cfg cfg = { .fabric = &fabric,
				   .links_max = 1,
				   .spin_pauses = SPIN_PAUSES,
				   .spin_yields = SPIN_YIELDS };

	fabric.devices = text_or_null(s->devices);
	fabric.addresses = text_or_null(s->addresses);
	fabric.gid_index = s->gid_index;
	fabric.pkey = w->pkey;
	fabric.traffic_class = (uint8_t)w->traffic_class;
	fabric.service_level = (uint8_t)w->service_level;
	fabric.ack_timeout = (uint8_t)w->ack_timeout;
	fabric.retries = (uint8_t)w->retries;
	int rc = m->transport->net_open(&cfg, &m->net);
	if (rc != 0)
		return mst_client_fail(m, rc, "cannot open %s: %s", m->transport->scheme,
				       cause(rc));
	return 0;
}

static void lay_out(struct muster *m)
{
	const struct mst_welcome *w = &m->welcome;
	struct mst_lane_figures figures = {
		.elems = w->elems,
		.type_bytes = mst_type_size(m->settings.type),
		.result_type_bytes = mst_type_size(m->settings.result_type),
		.slots = w->slots,
		.workers = w->workers,
	};

	mst_lane_layout(&figures, &m->layout);
}

/* The lead's own word, if it has said one, is the reason: it may be that of a dial given up. */
static int no_link(struct muster *m, int error)
{
	const struct mst_welcome *w = &m->welcome;

	mst_control_look(m->control, &m->told);
	if (m->told.error != 0)
		return mst_client_fail(m, m->told.error, "%s", m->told.sentence);
	if (m->told.finished)
		return mst_client_fail(m, -ESHUTDOWN, "the job is over: %s", m->told.sentence);
	if (m->transport == &mst_shm && error == -ECONNREFUSED)
		return mst_client_fail(m, error,
				       "the server offers shared memory only, and there is no door "
				       "%.110s on this host: start rank %" PRIu32
				       " on the server's host, in its network namespace, or the "
				       "server with --transport verbs",
				       w->address, w->rank);
	return mst_client_fail(
		m, error, "cannot link rank %" PRIu32 " to the server's door %.100s over %s: %s",
		w->rank, w->address, m->transport->scheme, cause(error));
}

static bool is_over(void *ctx)
{
	return mst_control_over(((struct muster *)ctx)->control);
}

static int dial(struct muster *m, uint64_t deadline_ns)
{
	const struct mst_welcome *w = &m->welcome;
	uint64_t bytes = (m->layout.up_bytes + m->layout.down_bytes) * w->workers;
	struct mst_dial how = {
		.address = w->address,
		.lanes = { m->layout.up_bytes, m->layout.down_bytes, m->layout.up_credits,
			   m->layout.down_credits },
		.timeout_ns = left_ns(deadline_ns),
		.busy_ns = (uint64_t)((double)bytes / PINNED_BYTES_PER_NS),
		.unwanted = is_over,
		.ctx = m,
	};

	static_assert(sizeof(how.token) == sizeof(w->token), "one kind of token");
	static_assert(sizeof(w->address) == MST_ADDRESS_LEN, "a welcome has room for any door");
	memcpy(how.token, w->token, sizeof(how.token));
	int rc = m->transport->dial(m->net, &how, &m->link);
	return rc == 0 ? 0 : no_link(m, rc);
}

/* Over a transport that does not map, results come into this end's own landing. */
static int check_link(struct muster *m)
{
	uint64_t published = m->welcome.buffers * mst_client_stride(m);

	if (!m->transport->maps || (m->link->shared != NULL && m->link->shared_bytes >= published))
		return 0;
	return mst_client_fail(m, -EPROTO,
			       "the server publishes %zu bytes of versions, %" PRIu32
			       " buffers need %" PRIu64,
			       m->link->shared_bytes, m->welcome.buffers, published);
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
		rc = choose_transport(m);
	if (rc == 0)
		rc = open_net(m);
	if (rc == 0)
		rc = start_heart(m);
	if (rc != 0)
		return rc;
	lay_out(m);
	rc = dial(m, deadline_ns);
	if (rc == 0)
		rc = check_link(m);
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
	if (m->link != NULL) {
		transport->detach(m->link);
		transport->link_free(m->link);
	}
	if (m->net != NULL)
		transport->net_close(m->net);
	mst_worker_fini(&m->worker);
	free(m);
}
