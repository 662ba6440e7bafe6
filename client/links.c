/* SPDX-License-Identifier: MIT */
/* The links of a session: one to each server, all over the same transport. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/client.h"
#include "common/base/assert.h"
#include "common/base/clock.h"

/* A server zeroes and registers the memory of one worker's link after the other's. Slow hosts
 * manage this much. */
#define PINNED_BYTES_PER_NS 0.25

/* How long a waiting worker looks before it sleeps. Workers outnumber cores more often than not. */
#define SPIN_PAUSES 5u
#define SPIN_YIELDS 2000u

/* What is known of a failure: the transport's sentence, or what the error number stands for. */
static const char *cause(int error)
{
	return mst_why()[0] != '\0' ? mst_why() : strerror(-error);
}

/* ---- the net ---- */

/* A transport that was asked for must be the door's; otherwise the door's it is. */
static int choose_transport(struct muster *m)
{
	const char *address = m->welcome.server[0].address;
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
	for (uint32_t k = 1; k < m->welcome.server_count; k++) {
		if (mst_transport_of(m->welcome.server[k].address) != of_door)
			return mst_client_fail(m, -EPROTO,
					       "the doors %.200s and %.200s of the job's servers "
					       "are for different transports: start all servers "
					       "with the same --transport",
					       address, m->welcome.server[k].address);
	}
	m->transport = of_door;
	return 0;
}

static const char *text_or_null(const char *text)
{
	return text[0] != '\0' ? text : NULL;
}

int mst_client_open_net(struct muster *m)
{
	const struct mst_settings *s = &m->settings;
	const struct mst_welcome *w = &m->welcome;
	struct mst_fabric fabric = MST_FABRIC_DEFAULT;
	struct mst_net_cfg cfg = { .fabric = &fabric,
				   .links_max = w->server_count,
				   .views = w->server_count > 1,
				   .spin_pauses = SPIN_PAUSES,
				   .spin_yields = SPIN_YIELDS };
	int rc = choose_transport(m);

	if (rc != 0)
		return rc;
	fabric.devices = text_or_null(s->devices);
	fabric.addresses = text_or_null(s->addresses);
	fabric.gid_index = s->gid_index;
	fabric.pkey = w->pkey;
	fabric.traffic_class = (uint8_t)w->traffic_class;
	fabric.service_level = (uint8_t)w->service_level;
	fabric.ack_timeout = (uint8_t)w->ack_timeout;
	fabric.retries = (uint8_t)w->retries;
	rc = m->transport->net_open(&cfg, &m->net);
	if (rc != 0)
		return mst_client_fail(m, rc, "cannot open %s: %s", m->transport->scheme,
				       cause(rc));
	return 0;
}

/* ---- dialling ---- */

const char *mst_client_name(const struct muster *m, const struct mst_client_part *p, char *out)
{
	if (m->part_count == 1)
		(void)snprintf(out, MST_CLIENT_NAME_LEN, "the server");
	else
		(void)snprintf(out, MST_CLIENT_NAME_LEN, "server %d (of 0 to %" PRIu32 ")",
			       (int)(p - m->part), m->part_count - 1);
	return out;
}

static const struct mst_welcome_server *server_of(const struct muster *m,
						  const struct mst_client_part *p)
{
	return &m->welcome.server[p - m->part];
}

static void lay_out(struct muster *m, struct mst_client_part *p)
{
	const struct mst_welcome *w = &m->welcome;

	p->first = server_of(m, p)->first;
	p->count = server_of(m, p)->count;
	mst_lane_layout(
		&(struct mst_lane_figures){
			.elems = p->count,
			.type_bytes = mst_type_size(m->settings.type),
			.result_type_bytes = mst_type_size(m->settings.result_type),
			.slots = w->slots,
			.workers = w->workers,
			.parted = w->server_count > 1,
		},
		&p->layout);
}

/* The lead's own word, if it has said one, is the reason: it may be that of a dial given up. */
static int no_link(struct muster *m, const struct mst_client_part *p, int error)
{
	const char *address = server_of(m, p)->address;
	char name[MST_CLIENT_NAME_LEN];

	mst_control_look(m->control, &m->told);
	if (m->told.error != 0)
		return mst_client_fail(m, m->told.error, "%s", m->told.sentence);
	if (m->told.finished)
		return mst_client_fail(m, -ESHUTDOWN, "the job is over: %s", m->told.sentence);
	(void)mst_client_name(m, p, name);
	if (m->transport == &mst_shm && error == -ECONNREFUSED)
		return mst_client_fail(m, error,
				       "%s offers shared memory only, and there is no door "
				       "%.110s on this host: start rank %" PRIu32
				       " on the server's host, in its network namespace, or the "
				       "server with --transport verbs",
				       name, address, m->welcome.rank);
	return mst_client_fail(m, error,
			       "cannot link rank %" PRIu32 " to %s's door %.100s over %s: %s",
			       m->welcome.rank, name, address, m->transport->scheme, cause(error));
}

static bool is_over(void *ctx)
{
	return mst_control_over(((struct muster *)ctx)->control);
}

static int dial(struct muster *m, struct mst_client_part *p, uint64_t deadline_ns)
{
	const struct mst_welcome_server *server = server_of(m, p);
	const struct mst_lane_layout *l = &p->layout;
	uint64_t bytes = (l->up_bytes + l->down_bytes) * m->welcome.workers;
	struct mst_dial how = {
		.address = server->address,
		.lanes = { l->up_bytes, l->down_bytes, l->up_credits, l->down_credits },
		.timeout_ns = mst_client_left_ns(deadline_ns),
		.busy_ns = (uint64_t)((double)bytes / PINNED_BYTES_PER_NS),
		.unwanted = is_over,
		.ctx = m,
	};

	static_assert(sizeof(how.token) == sizeof(server->token), "one kind of token");
	static_assert(sizeof(server->address) == MST_ADDRESS_LEN,
		      "a welcome has room for any door");
	memcpy(how.token, server->token, sizeof(how.token));
	int rc = m->transport->dial(m->net, &how, &p->link);
	return rc == 0 ? 0 : no_link(m, p, rc);
}

/* Over a transport that does not map, results come into this end's own landing. */
static int check_link(struct muster *m, const struct mst_client_part *p)
{
	uint64_t published = m->welcome.buffers * mst_client_stride(p);
	char name[MST_CLIENT_NAME_LEN];

	if (!m->transport->maps || (p->link->shared != NULL && p->link->shared_bytes >= published))
		return 0;
	return mst_client_fail(
		m, -EPROTO, "%s publishes %zu bytes of versions, %" PRIu32 " buffers need %" PRIu64,
		mst_client_name(m, p, name), p->link->shared_bytes, m->welcome.buffers, published);
}

/* Each rank begins with another server, so that not all are at the same door at once. */
int mst_client_link(struct muster *m, uint64_t deadline_ns)
{
	uint32_t count = m->welcome.server_count;
	int rc = 0;

	m->part_count = count;
	for (uint32_t k = 0; k < count; k++)
		lay_out(m, &m->part[k]);
	for (uint32_t i = 0; i < count && rc == 0; i++) {
		struct mst_client_part *p = &m->part[(m->welcome.rank + i) % count];
		rc = dial(m, p, deadline_ns);
		if (rc == 0)
			rc = check_link(m, p);
	}
	return rc;
}

void mst_client_unlink(struct muster *m)
{
	for (uint32_t k = 0; k < m->part_count; k++) {
		struct mst_client_part *p = &m->part[k];
		if (p->link == NULL)
			continue;
		m->transport->detach(p->link);
		m->transport->link_free(p->link);
		p->link = NULL;
	}
}

const struct mst_client_part *mst_client_lost(const struct muster *m)
{
	for (uint32_t k = 0; k < m->part_count; k++)
		if (m->part[k].lost)
			return &m->part[k];
	return NULL;
}
