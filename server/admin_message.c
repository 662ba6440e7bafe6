/* SPDX-License-Identifier: MIT */
/* What workers and watchers say on their control connections. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/kernels/sum.h"
#include "server/admin_state.h"

/* What of a piece lies in this server's part goes straight into version 0's buffer. */
static void keep_state(struct mst_admin *a, const struct mst_state_piece *piece)
{
	uint64_t own = a->count * mst_type_bytes(a->result_type);
	uint64_t length = piece->length;

	if (piece->offset >= own)
		return;
	if (length > own - piece->offset)
		length = own - piece->offset;
	memcpy((char *)mst_server_start_buffer(a->server) + piece->offset, piece->data, length);
}

static bool take_state(struct mst_admin *a, struct mst_conn *c, const struct mst_state_piece *piece,
		       uint64_t now_ns)
{
	uint64_t total = a->elems * mst_type_bytes(a->result_type);

	if (!c->sends_state || piece->offset != c->state_received || piece->total != total ||
	    piece->length > total - piece->offset)
		return mst_admin_broken(a, c, "a start state that nobody asked for, or with a gap",
					now_ns);
	if (!mst_admin_state_room(a))
		return false;
	keep_state(a, piece);
	mst_admin_state_pass(a, piece);
	c->state_received += piece->length;
	if (c->state_received < total)
		return true;
	c->sends_state = false;
	a->passes_state = true;
	a->state_of = c->who;
	return true;
}

static bool take_leave(struct mst_admin *a, struct mst_conn *c, uint64_t seq)
{
	struct mst_ledger_event ev = { .kind = MST_EV_LEAVE, .who = c->who, .seq = seq };

	if (!mst_admin_event(a, &ev))
		return false;
	c->left = true;
	return true;
}

static bool take_finish(struct mst_admin *a, struct mst_conn *c, const char *why)
{
	struct mst_ledger_event ev = { .kind = MST_EV_FINISH, .who = c->who };

	if (!mst_admin_event(a, &ev))
		return false;
	if (a->asked[0] == '\0')
		snprintf(a->asked, sizeof(a->asked), "rank %" PRIu32 " finished the job%s%.400s",
			 c->who.rank, why[0] != '\0' ? ": " : "", why);
	return true;
}

static bool worker_message(struct mst_admin *a, struct mst_conn *c, const struct mst_message *msg,
			   uint64_t now_ns)
{
	struct mst_ledger_event ev = { .who = c->who };

	switch (msg->kind) {
	case MST_MSG_START:
		ev.kind = MST_EV_START;
		ev.offers = msg->offers != 0;
		return a->present[c->who.rank] = mst_admin_event(a, &ev);
	case MST_MSG_HEARTBEAT:
		ev.kind = MST_EV_HEARTBEAT;
		return mst_admin_event(a, &ev);
	case MST_MSG_STATE:
		return take_state(a, c, &msg->state, now_ns);
	case MST_MSG_LEAVE:
		return take_leave(a, c, msg->seq);
	case MST_MSG_FINISH:
		return take_finish(a, c, msg->why);
	default:
		return mst_admin_broken(a, c, "a message that is not a worker's", now_ns);
	}
}

static uint32_t watchers(const struct mst_admin *a)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < a->conn_max; i++)
		count += a->conn[i].stream != NULL && a->conn[i].role == MST_CONN_WATCHER;
	return count;
}

bool mst_admin_message(struct mst_admin *a, struct mst_conn *c, const struct mst_message *msg,
		       uint64_t now_ns)
{
	if (msg->kind == MST_MSG_ASK_STATUS && c->role != MST_CONN_JOINING &&
	    c->role != MST_CONN_LEAD) {
		if (c->role == MST_CONN_NEW && watchers(a) >= MST_ADMIN_WATCHERS) {
			mst_admin_error(a, c, -EBUSY, "too many ask for the status at once",
					now_ns);
			return true;
		}
		if (c->role == MST_CONN_NEW)
			c->role = MST_CONN_WATCHER;
		c->asks_status = true;
		c->watches |= msg->watch != 0;
		return true;
	}
	if (c->role == MST_CONN_WORKER)
		return worker_message(a, c, msg, now_ns);
	if (c->role == MST_CONN_SERVER)
		return mst_admin_server_message(a, c, msg, now_ns);
	if (c->role == MST_CONN_LEAD)
		return mst_admin_lead_message(a, c, msg, now_ns);
	if (c->role == MST_CONN_NEW && msg->kind == MST_MSG_HELLO)
		return mst_admin_hello(a, c, &msg->hello, now_ns);
	if (c->role == MST_CONN_NEW && msg->kind == MST_MSG_SERVE)
		return mst_admin_serve(a, c, &msg->serve, now_ns);
	return mst_admin_broken(a, c, "a message before its hello is answered", now_ns);
}

/* Status. */

static void fill_server(const struct mst_admin *a, uint32_t server, struct mst_status_server *out)
{
	const struct mst_seat *seat = &a->seat[server];
	const char *door = server > 0 ? seat->door : a->door != NULL ? a->door->address : "";

	if (a->elems != 0)
		mst_admin_part(a, server, &out->first, &out->count);
	snprintf(out->door, sizeof(out->door), "%s", door);
	if (server == 0)
		out->state = a->door != NULL ? MST_SERVER_READY : MST_SERVER_JOINED;
	else
		out->state = seat->gone    ? MST_SERVER_GONE
			     : seat->ready ? MST_SERVER_READY
			     : seat->taken ? MST_SERVER_JOINED
					   : MST_SERVER_AWAITED;
}

static void fill_status(const struct mst_admin *a, struct mst_status *s)
{
	snprintf(s->job, sizeof(s->job), "%s", a->o->job);
	snprintf(s->policy, sizeof(s->policy), "%s", a->o->policy);
	snprintf(s->why, sizeof(s->why), "%s", a->why);
	s->state = (uint32_t)a->state;
	s->workers = a->o->workers;
	s->shards = a->server != NULL ? mst_server_shards(a->server) : 0;
	s->server_count = mst_admin_servers(a);
	for (uint32_t i = 0; i < s->server_count; i++)
		fill_server(a, i, &s->server[i]);
	s->rank_count = a->server != NULL ? a->o->workers : 0;
}

static void send_rows(struct mst_admin *a, struct mst_conn *c, uint32_t first)
{
	struct mst_message *m = &a->message;
	uint32_t left = a->o->workers - first;

	memset(m, 0, sizeof(*m));
	m->kind = MST_MSG_STATUS_RANKS;
	m->ranks.count = left < MST_STATUS_RANKS ? left : MST_STATUS_RANKS;
	memcpy(m->ranks.row, a->snapshot.rank + first, m->ranks.count * sizeof(m->ranks.row[0]));
	mst_admin_send(a, c, m);
}

static void send_status(struct mst_admin *a, struct mst_conn *c)
{
	struct mst_message *m = &a->message;

	memset(m, 0, sizeof(*m));
	m->kind = MST_MSG_STATUS;
	m->status = a->snapshot.status;
	fill_status(a, &m->status);
	uint32_t rows = m->status.rank_count;
	mst_admin_send(a, c, m);
	for (uint32_t first = 0; first < rows && c->stream != NULL; first += MST_STATUS_RANKS)
		send_rows(a, c, first);
}

void mst_admin_status(struct mst_admin *a, bool final)
{
	for (uint32_t i = 0; i < a->conn_max; i++) {
		struct mst_conn *c = &a->conn[i];
		if (c->stream == NULL || (!c->asks_status && !(final && c->watches)))
			continue;
		c->asks_status = false;
		send_status(a, c);
	}
	a->final_told |= final;
}

static bool somebody_asks(const struct mst_admin *a)
{
	for (uint32_t i = 0; i < a->conn_max; i++) {
		if (a->conn[i].stream != NULL && a->conn[i].asks_status)
			return true;
	}
	return false;
}

void mst_admin_want_snapshot(struct mst_admin *a)
{
	struct mst_request request = { .kind = MST_REQ_SNAPSHOT, .snapshot = &a->snapshot };
	bool ended = a->state == MST_JOB_FINISHED || a->state == MST_JOB_FAILED;

	if (a->snapshot_lent || !(somebody_asks(a) || (ended && !a->final_told)))
		return;
	a->snapshot_lent = mst_server_request(a->server, &request);
}
