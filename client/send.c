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
static int put(struct muster *m, const struct mst_client_part *to, const struct mst_put *put)
{
	uint64_t deadline_ns = 0;

	while (!is_moot(m, put)) {
		int rc = m->transport->put(to->link, put);
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

/* Ranks begin with different servers, so that not all are sent to the same one at a time. */
static const struct mst_client_part *in_turn(const struct muster *m, uint32_t i)
{
	return &m->part[(m->job.rank + i) % m->part_count];
}

/* ---- data ---- */

static char *part_of(const struct muster *m, const struct mst_client_part *p, int slot)
{
	return (char *)p->link->outbox + mst_client_gradient_at(m, p, (uint32_t)slot);
}

/* A slot that is never filled costs no memory, so this waits for the first to fill it. */
char *mst_client_compose(struct muster *m, int slot)
{
	if (!(m->gathered >> slot & 1u)) {
		m->gathered |= 1u << slot;
		for (const struct mst_client_part *p = m->part; p < m->part + m->part_count; p++)
			if (p->link->huge_pages)
				(void)mst_pages_gather(part_of(m, p, slot), p->layout.slot_bytes);
	}
	return mst_client_gradient(m, slot);
}

/* What of @range is in a server's part, counted from its beginning. False: nothing. */
static bool in_part(const struct mst_client_part *p, const struct mst_range *range,
		    struct mst_range *out)
{
	uint64_t end = p->first + p->count;

	out->begin = (range->begin > p->first ? range->begin : p->first) - p->first;
	out->end = (range->end < end ? range->end : end);
	if (out->end <= p->first + out->begin)
		return false;
	out->end -= p->first;
	return true;
}

static int send_to(struct muster *m, const struct mst_client_part *p, int slot,
		   const struct mst_put *how, const struct mst_range *range)
{
	uint32_t bytes = mst_type_size(m->job.type);
	struct mst_put data = *how;

	data.offset = mst_client_gradient_at(m, p, (uint32_t)slot) + range->begin * bytes;
	data.src = part_of(m, p, slot) + range->begin * bytes;
	data.bytes = (range->end - range->begin) * bytes;
	int rc = put(m, p, &data);
	if (rc == 0)
		mst_worker_posted(&m->worker);
	return rc < 0 ? rc : 0;
}

static int send_range(struct muster *m, int slot, const struct mst_range *range, bool more)
{
	struct mst_put how = { .more = more, .signal = true, .cookie = (uint64_t)slot };
	struct mst_range part;
	int rc = 0;

	for (uint32_t i = 0; i < m->part_count && rc == 0; i++) {
		const struct mst_client_part *p = in_turn(m, i);
		if (in_part(p, range, &part))
			rc = send_to(m, p, slot, &how, &part);
	}
	return rc;
}

int mst_client_send_range(struct muster *m, int slot, const struct mst_range *range)
{
	return send_range(m, slot, range, false);
}

/* The header follows at once; not where all other servers' data come before it. */
int mst_client_send_rest(struct muster *m)
{
	int slot = mst_worker_fill(&m->worker);
	struct mst_range rest = { 0, 0 };
	int rc = 0;

	while (rc == 0 && mst_worker_rest(&m->worker, rest.end, &rest))
		rc = send_range(m, slot, &rest, m->part_count == 1);
	return rc;
}

/* ---- records ---- */

static int send_record(struct muster *m, const struct mst_client_part *to,
		       const struct mst_put *record)
{
	int rc = put(m, to, record);

	return rc < 0 ? rc : 0;
}

/* To every server, behind the data that went there. */
int mst_client_send_header(struct muster *m, const struct mst_lane_header *header)
{
	int rc = 0;

	for (uint32_t i = 0; i < m->part_count && rc == 0; i++) {
		const struct mst_client_part *p = in_turn(m, i);
		rc = send_record(
			m, p,
			&(struct mst_put){
				.offset = p->layout.up_header[header->slot],
				.src = header,
				.bytes = sizeof(*header),
				.notify = true,
				.imm = mst_imm(MST_IMM_HEADER, header->slot, header->epoch),
			});
	}
	return rc;
}

/* No bytes: behind everything that was put before, it says that nothing follows. To every server,
 * whoever got data. */
int mst_client_send_abandon(struct muster *m, int slot)
{
	uint64_t epoch = m->worker.slot[slot].epoch;
	int rc = 0;

	for (uint32_t i = 0; i < m->part_count && rc == 0; i++) {
		const struct mst_client_part *p = in_turn(m, i);
		rc = send_record(m, p,
				 &(struct mst_put){
					 .src = p->link->outbox,
					 .notify = true,
					 .imm = mst_imm(MST_IMM_ABANDON, (uint32_t)slot, epoch),
				 });
	}
	return rc;
}

/* To the lead, who decides; the others hear of it from there. */
int mst_client_send_ask(struct muster *m, const struct mst_lane_ask *ask)
{
	return send_record(m, m->part,
			   &(struct mst_put){
				   .offset = m->part[0].layout.up_ask,
				   .src = ask,
				   .bytes = sizeof(*ask),
				   .notify = true,
				   .imm = mst_imm(MST_IMM_ASK, 0, 0),
			   });
}
