/* SPDX-License-Identifier: MIT */
/*
 * What a worker sends. Data are composed in the link's outbox and put from there, long before their
 * header where they are handed over in ranges, so that they travel while the rest is computed.
 *
 * Over a transport that maps, the outbox is the slot itself: a put finds its data there, nothing is
 * ever on its way. Over others a slot's data are read until the last of their puts has been sent,
 * and as many puts can be on their way as the link has room for: one more waits.
 */
#include <errno.h>
#include <inttypes.h>

#include "client/client.h"
#include "common/base/clock.h"
#include "common/transport/pages.h"

int mst_client_tell(struct muster *m, const struct mst_message *msg)
{
	int rc = mst_control_send(m->control, msg);

	if (rc == 0 && mst_control_pending(m->control))
		mst_heartbeat_ring(m->heartbeat);
	return rc;
}

/* Why, the link tells with its last events; perhaps they have not been taken in yet. */
static int fail(struct muster *m)
{
	int rc = mst_client_update(m);

	if (rc != 0)
		return rc;
	mst_worker_fail(&m->worker, -ENOTCONN);
	mst_client_publish(m);
	return mst_client_ended(m);
}

/* As long as others wait for this worker: later, nobody wants its data any more. A link that is
 * dead has been reported lost long before. */
static uint64_t give_up_at(const struct muster *m)
{
	uint64_t patience_ns = m->welcome.patience_ns, lease_ns = m->welcome.lease_ns;

	return mst_client_deadline(patience_ns < MST_NEVER - lease_ns ? patience_ns + lease_ns
								      : MST_NEVER);
}

/* Sleeps until something has been sent, or anything else has come of it. */
static int await_room(struct muster *m, uint64_t deadline_ns)
{
	if (mst_client_sleep(m, deadline_ns) != -ETIMEDOUT)
		return mst_client_update(m);
	mst_worker_fail(&m->worker, -ENOTCONN);
	mst_client_publish(m);
	return mst_client_fail(m, -ENOTCONN,
			       "rank %" PRIu32
			       ": the link to the server has taken no more data for "
			       "as long as a step waits for a worker (--patience, --lease)",
			       m->job.rank);
}

/* Nobody looks at the data of a contribution any more once the job has ended. */
static bool is_moot(const struct muster *m, const struct mst_put *put)
{
	return put->signal && m->worker.last != MST_VERSION_NONE;
}

/* Return: as the put; a negative one has ended the session. Credits cannot run out: the grants and
 * the one ask that may be out see to that. So where nothing is ever on its way, -EAGAIN too means
 * that the link has failed. */
static int put(struct muster *m, const struct mst_put *put)
{
	uint64_t deadline_ns = 0;

	while (!is_moot(m, put)) {
		int rc = m->transport->put(m->link, put);
		if (rc >= 0)
			return rc;
		if (rc != -EAGAIN || m->transport->maps)
			return fail(m);
		if (deadline_ns == 0)
			deadline_ns = give_up_at(m);
		rc = await_room(m, deadline_ns);
		if (rc != 0)
			return rc;
	}
	return 1;
}

/* ---- data ---- */

static size_t gradient_at(const struct muster *m, int slot)
{
	return mst_lane_gradient(&m->layout, (uint32_t)slot, m->job.rank);
}

static char *gradient(const struct muster *m, int slot)
{
	return (char *)m->link->outbox + gradient_at(m, slot);
}

/* A slot that is never filled costs no memory, so this waits for the first to fill it. */
char *mst_client_compose(struct muster *m, int slot)
{
	if (m->link->huge_pages && !(m->gathered >> slot & 1u)) {
		m->gathered |= 1u << slot;
		(void)mst_pages_gather(gradient(m, slot), m->layout.slot_bytes);
	}
	return gradient(m, slot);
}

static int send_range(struct muster *m, int slot, const struct mst_range *range, bool more)
{
	uint32_t bytes = mst_type_size(m->job.type);

	if (range->begin == range->end)
		return 0;
	int rc = put(m, &(struct mst_put){
				.offset = gradient_at(m, slot) + range->begin * bytes,
				.src = gradient(m, slot) + range->begin * bytes,
				.bytes = (range->end - range->begin) * bytes,
				.more = more,
				.signal = true,
				.cookie = (uint64_t)slot,
			});

	if (rc == 0)
		mst_worker_posted(&m->worker);
	return rc < 0 ? rc : 0;
}

int mst_client_send_range(struct muster *m, int slot, const struct mst_range *range)
{
	return send_range(m, slot, range, false);
}

/* The header follows at once. */
int mst_client_send_rest(struct muster *m)
{
	int slot = mst_worker_fill(&m->worker);
	struct mst_range rest = { 0, 0 };
	int rc = 0;

	while (rc == 0 && mst_worker_rest(&m->worker, rest.end, &rest))
		rc = send_range(m, slot, &rest, true);
	return rc;
}

/* ---- records ---- */

static int send_record(struct muster *m, const struct mst_put *record)
{
	int rc = put(m, record);

	return rc < 0 ? rc : 0;
}

int mst_client_send_header(struct muster *m, const struct mst_lane_header *header)
{
	return send_record(m, &(struct mst_put){
				      .offset = m->layout.up_header[header->slot],
				      .src = header,
				      .bytes = sizeof(*header),
				      .notify = true,
				      .imm = mst_imm(MST_IMM_HEADER, header->slot, header->epoch),
			      });
}

/* No bytes: behind everything that was put before, it says that nothing follows. */
int mst_client_send_abandon(struct muster *m, int slot)
{
	uint64_t epoch = m->worker.slot[slot].epoch;

	return send_record(m, &(struct mst_put){
				      .src = m->link->outbox,
				      .notify = true,
				      .imm = mst_imm(MST_IMM_ABANDON, (uint32_t)slot, epoch),
			      });
}

int mst_client_send_ask(struct muster *m, const struct mst_lane_ask *ask)
{
	return send_record(m, &(struct mst_put){
				      .offset = m->layout.up_ask,
				      .src = ask,
				      .bytes = sizeof(*ask),
				      .notify = true,
				      .imm = mst_imm(MST_IMM_ASK, 0, 0),
			      });
}
