/* SPDX-License-Identifier: MIT */
#include "client/session/outbound.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/base/crc32c.h"
#include "common/base/reason.h"

/* ---- one put ---- */

/* Sleeps until something has been sent, or anything else has changed. */
static int await_room(struct mst_outbound *o, uint64_t deadline_ns, struct mst_engine_watch *watch)
{
	int rc = mst_engine_watch(o->engine, watch);

	if (rc != 0)
		return rc;
	if (mst_engine_sleep(o->engine, deadline_ns) != -ETIMEDOUT)
		return mst_engine_update(o->engine);
	if (mst_client_session_returns(o->engine->session)) {
		mst_worker_go_adrift(o->worker);
		return 0;
	}
	mst_engine_fail(o->engine, -ENOTCONN);
	return mst_reason_fail(o->engine->failure, -ENOTCONN,
			       "rank %" PRIu32
			       ": the link to the server has taken no more data for as "
			       "long as a step waits for a worker (--patience, --lease)",
			       o->links->rank);
}

/* A worker that may come back goes on as if it had been sent. */
static int refused(struct mst_outbound *o)
{
	if (!mst_client_session_returns(o->engine->session))
		return mst_engine_refused(o->engine);
	int rc = mst_engine_take(o->engine);
	if (rc == 0)
		mst_worker_go_adrift(o->worker);
	return rc == 0 ? 1 : mst_engine_refused(o->engine);
}

/* Return: as the put; a negative one has ended the session. Credits cannot run out: the grants and
 * the one ask that may be out see to that. So where nothing is ever on its way, -EAGAIN too means
 * that the link has failed. The wait for room ends when nobody waits for this worker any more; a
 * link that is dead has been reported lost long before. */
static int put(struct mst_outbound *o, const struct mst_part *to, const struct mst_put *put)
{
	struct mst_engine_watch watch = { .goes_on = true };
	uint64_t deadline_ns = 0;

	/* Nobody looks at the data of a contribution any more once the job has ended. */
	while (!put->signal || o->worker->last == MST_VERSION_NONE) {
		if (o->worker->adrift)
			return 1;
		if (o->links->detached)
			return refused(o);
		int rc = o->links->transport->put(to->link, put);
		if (rc >= 0)
			return rc;
		if (rc != -EAGAIN || o->links->transport->maps)
			return refused(o);
		if (deadline_ns == 0)
			deadline_ns = mst_deadline_ns(
				mst_client_session_patience(o->engine->session));
		rc = await_room(o, deadline_ns, &watch);
		if (rc != 0)
			return rc;
	}
	return 1;
}

static const struct mst_part *in_turn(const struct mst_links *l, uint32_t i)
{
	return &l->part[(l->first + i) % l->count];
}

/* ---- data ---- */

/* What of @range is in a server's part, counted from its beginning. False: nothing. */
static bool in_part(const struct mst_part *p, const struct mst_range *range, struct mst_range *out)
{
	uint64_t end = p->first + p->count;

	out->begin = (range->begin > p->first ? range->begin : p->first) - p->first;
	out->end = (range->end < end ? range->end : end);
	if (out->end <= p->first + out->begin)
		return false;
	out->end -= p->first;
	return true;
}

/* Data for a part, from its element @begin to @end, are about to be put. */
static void check(struct mst_outbound *o, const struct mst_part *p, const struct mst_range *part,
		  const void *src)
{
	uint64_t bytes = (part->end - part->begin) * o->type_size;
	uint64_t behind = (p->count - part->end) * o->type_size;

	if (o->checks)
		o->sum[p - o->links->part] ^= mst_crc32c_place(mst_crc32c_linear(0, src, bytes),
							       behind);
}

static void check_anew(struct mst_outbound *o)
{
	memset(o->sum, 0, sizeof(o->sum));
}

void mst_outbound_begin(struct mst_outbound *o)
{
	o->given_up = 0;
	check_anew(o);
}

int mst_outbound_data(struct mst_outbound *o, int slot, const struct mst_range *range, bool ends)
{
	uint64_t bytes = o->type_size;
	struct mst_range part;
	int rc = 0;

	for (uint32_t i = 0; i < o->links->count && rc >= 0; i++) {
		const struct mst_part *p = in_turn(o->links, i);
		if (!in_part(p, range, &part))
			continue;
		size_t at = p->gradient_at[slot] + part.begin * bytes;
		check(o, p, &part, (const char *)p->link->outbound + at);
		rc = put(o, p,
			 &(struct mst_put){
				 .offset = at,
				 .src = (const char *)p->link->outbound + at,
				 .bytes = (part.end - part.begin) * bytes,
				 /* Not if data for other servers go out before the header. */
				 .more = ends && o->links->count == 1,
				 .signal = true,
				 .cookie = (uint64_t)slot,
			 });
		if (rc == 0)
			mst_worker_posted(o->worker);
	}
	return rc < 0 ? rc : 0;
}

int mst_outbound_lend(struct mst_outbound *o, int slot, const struct mst_range *range,
		      const struct mst_source *source)
{
	uint64_t bytes = o->type_size;
	struct mst_range part;
	int rc = 0;

	for (uint32_t i = 0; i < o->links->count && rc >= 0; i++) {
		const struct mst_part *p = in_turn(o->links, i);
		if (!in_part(p, range, &part))
			continue;
		uint64_t skipped = p->first + part.begin - range->begin;
		check(o, p, &part, source->at + skipped * bytes);
		rc = put(o, p,
			 &(struct mst_put){
				 .offset = p->gradient_at[slot] + part.begin * bytes,
				 .src = source->at + skipped * bytes,
				 .region = source->region,
				 .bytes = (part.end - part.begin) * bytes,
				 .signal = true,
				 .cookie = (uint64_t)slot | MST_SENT_LENT,
			 });
		if (rc == 0) {
			mst_worker_posted(o->worker);
			mst_worker_lent(o->worker);
		}
	}
	return rc < 0 ? rc : 0;
}

/* ---- records ---- */

/* To every server, after the data that went there. */
int mst_outbound_header(struct mst_outbound *o, const struct mst_lane_header *header)
{
	bool has_data = !(header->flags & (MST_HEADER_EMPTY | MST_HEADER_PASS));
	struct mst_lane_header sent = *header;
	int rc = 0;

	if (o->checks && has_data)
		sent.flags |= MST_HEADER_CHECKED;
	for (uint32_t i = 0; i < o->links->count && rc >= 0; i++) {
		const struct mst_part *p = in_turn(o->links, i);
		sent.sum = o->sum[p - o->links->part];
		rc = put(o, p,
			 &(struct mst_put){
				 .offset = p->layout.up_header[header->slot],
				 .src = &sent,
				 .bytes = sizeof(sent),
				 .notify = true,
				 .imm = mst_imm(MST_IMM_HEADER, header->slot, header->epoch),
			 });
	}
	check_anew(o);
	return rc < 0 ? rc : 0;
}

/* A put without bytes. It comes after everything that was put before, and says that nothing
 * follows. It goes to every server, also to one that got no data. */
static int send_abandon(struct mst_outbound *o, int slot)
{
	uint64_t epoch = o->worker->slot[slot].epoch;
	int rc = 0;

	for (uint32_t i = 0; i < o->links->count && rc >= 0; i++) {
		const struct mst_part *p = in_turn(o->links, i);
		rc = put(o, p,
			 &(struct mst_put){
				 .src = p->link->outbound,
				 .notify = true,
				 .imm = mst_imm(MST_IMM_ABANDON, (uint32_t)slot, epoch),
			 });
	}
	return rc < 0 ? rc : 0;
}

int mst_outbound_abandon(struct mst_outbound *o)
{
	int slot = mst_worker_abandon(o->worker);

	check_anew(o);
	mst_hint_publish(o->engine->hint);
	return slot >= 0 ? send_abandon(o, slot) : 0;
}

int mst_outbound_pass(struct mst_outbound *o)
{
	struct mst_lane_header header;

	if (!mst_worker_pass(o->worker, &header))
		return mst_outbound_abandon(o);
	mst_hint_publish(o->engine->hint);
	return mst_outbound_header(o, &header);
}

/* To the leader, who decides; the others hear of it from there. */
int mst_outbound_ask(struct mst_outbound *o, const struct mst_lane_ask *ask)
{
	const struct mst_part *leader = &o->links->part[0];
	struct mst_lane_lone_ask lone = { .ask = *ask, .given_up = o->given_up };
	int rc = put(o, leader,
		     &(struct mst_put){
			     .offset = leader->layout.up_ask,
			     .src = &lone,
			     .bytes = sizeof(lone),
			     .notify = true,
			     .imm = mst_imm(MST_IMM_ASK, 0, 0),
		     });

	return rc < 0 ? rc : 0;
}
