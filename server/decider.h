/* SPDX-License-Identifier: MIT */
/*
 * Who decides for a data side: at the lead its ledger (lead.c), at a member the lead, over a link
 * (uplink.c). What arrives goes in as an event, what is to be done comes out as an order; the loop
 * in server.c is the same for both, and so is the aggregator.
 *
 * All calls come from the data thread.
 */
#ifndef MST_SERVER_DECIDER_H
#define MST_SERVER_DECIDER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/transport/transport.h"
#include "server/core/ledger.h"
#include "server/exchange.h"

/* A decision, and what executing it needs; valid until the next is asked for. */
struct mst_orders {
	struct mst_decision decision;
	const struct mst_record *record; /* COMMIT; RELEASE at the lead; else NULL */
	const struct mst_rule *rule;
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
	/* It cannot be: whoever decided it breaks the protocol. A member's alone. */
	void (*refuse)(struct mst_decider *d, uint64_t now_ns);
	/* It has been executed. */
	void (*done)(struct mst_decider *d, const struct mst_orders *orders, uint64_t now_ns);
	/* Has this session not been ended yet? */
	bool (*wants)(const struct mst_decider *d, struct mst_identity who);
	/* What the control side asks for that is about other servers, or a snapshot. */
	void (*request)(struct mst_decider *d, const struct mst_request *request, uint64_t now_ns);
	/* Something has come by another server's link. */
	void (*arrived)(struct mst_decider *d, const struct mst_net_event *ev, uint64_t now_ns);
	/* Puts to other servers what is to be told. False: a part has to wait. */
	bool (*flush)(struct mst_decider *d, uint64_t now_ns);
	uint64_t (*deadline)(const struct mst_decider *d);
	/* Judges timers. */
	void (*tick)(struct mst_decider *d, uint64_t now_ns);
};

struct mst_lead_cfg {
	struct mst_ledger_cfg ledger;
	struct mst_net *net; /* that members' links are attached to */
	uint32_t window;     /* of the relays */
};
/* 0 or -errno; note and note_ctx are the caller's to set. */
int mst_lead_new(const struct mst_lead_cfg *cfg, struct mst_decider **out);

struct mst_uplink_cfg {
	struct mst_net *net;
	uint32_t window;
	uint32_t workers, slots, buffers;
	uint64_t lease_ns;   /* without a link for so long, it is cut off */
	const char *address; /* the lead's door; copied */
};
int mst_uplink_new(const struct mst_uplink_cfg *cfg, struct mst_decider **out);

#endif
