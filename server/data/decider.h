/* SPDX-License-Identifier: MIT */
/*
 * The interface of what decides for a data side: its own ledger (local.c); or with several servers
 * a leader, or at a follower the link to its leader (server/cluster). What arrives goes in as an
 * event, what is to be done comes out as an order; the loop in server.c is the same for all, and so
 * is the aggregator.
 *
 * All calls come from the data thread.
 */
#ifndef MST_SERVER_DATA_DECIDER_H
#define MST_SERVER_DATA_DECIDER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/transport/transport.h"
#include "server/core/ledger/ledger.h"
#include "server/data/exchange.h"

/* A decision, and the data that executing it needs. Valid until next() is called again. */
struct mst_orders {
	struct mst_decision decision;
	const struct mst_record *record; /* COMMIT; RELEASE at the leader; else NULL */
	const struct mst_rule *rule;     /* in force; NULL at a follower */
};

struct mst_decider_ops;
struct mst_decider {
	const struct mst_decider_ops *ops;
	/* Tells the control side. */
	void (*note)(void *ctx, const struct mst_notice *notice);
	void *note_ctx;
};

/* No member is NULL. */
struct mst_decider_ops {
	void (*free)(struct mst_decider *d);
	/* Events can wait: what must be told first has no room yet. */
	bool (*takes)(const struct mst_decider *d);
	void (*handle)(struct mst_decider *d, const struct mst_ledger_event *ev, uint64_t now_ns);
	/* The next event that another server reports. False: none. */
	bool (*reported)(struct mst_decider *d, struct mst_ledger_event *out, uint64_t now_ns);
	/* The next order. False: none, or none that can be given now. */
	bool (*next)(struct mst_decider *d, struct mst_orders *out, uint64_t now_ns);
	/* The order cannot be executed: the decider breaks the protocol. For a follower alone. */
	void (*refuse)(struct mst_decider *d, uint64_t now_ns);
	/* The order has been executed. */
	void (*done)(struct mst_decider *d, const struct mst_orders *orders, uint64_t now_ns);
	/* Does the decider still know this session, that is, has it not ended it yet? */
	bool (*wants)(const struct mst_decider *d, struct mst_identity who);
	/* What the control side asks for that is about other servers, gathering, or a snapshot. */
	void (*request)(struct mst_decider *d, const struct mst_request *request, uint64_t now_ns);
	/* Something has come by another server's link. */
	void (*arrived)(struct mst_decider *d, const struct mst_net_event *ev, uint64_t now_ns);
	/* Puts to other servers what is to be told. False: a part has to wait. */
	bool (*flush)(struct mst_decider *d, uint64_t now_ns);
	/* What has arrived within the last @lag_ns may not have been handed over yet. */
	void (*lags)(struct mst_decider *d, uint64_t lag_ns);
	uint64_t (*deadline)(const struct mst_decider *d);
	/* Judges timers. */
	void (*tick)(struct mst_decider *d, uint64_t now_ns);
};

/* Bytes that mst_local_new() allocates. */
uint64_t mst_local_bytes(const struct mst_ledger_cfg *cfg, bool records);
/* The ledger, for a job of one server; and what a leader of several passes on. @recording: NULL, or
 * where each gradient's end is recorded. 0 or -errno; note and note_ctx are the caller's to set. */
struct mst_recording;
int mst_local_new(const struct mst_ledger_cfg *cfg, struct mst_recording *recording,
		  struct mst_decider **out);

#endif
