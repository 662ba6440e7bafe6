/* SPDX-License-Identifier: MIT */
/* The ledger as a decider: every call is passed on. */
#include <errno.h>
#include <stdlib.h>

#include "tools/sim/decider.h"

struct mst_sim_ledger {
	struct mst_sim_decider decider; /* first */
	struct mst_ledger *ledger;
};

static struct mst_ledger *ledger_of(const struct mst_sim_decider *d)
{
	return ((const struct mst_sim_ledger *)d)->ledger;
}

static void ledger_free(struct mst_sim_decider *d)
{
	mst_ledger_free(ledger_of(d));
	free(d);
}

static void ledger_handle(struct mst_sim_decider *d, const struct mst_ledger_event *ev,
			  uint64_t now_ns)
{
	mst_ledger_handle(ledger_of(d), ev, now_ns);
}

static bool ledger_next(struct mst_sim_decider *d, struct mst_decision *out)
{
	return mst_ledger_next(ledger_of(d), out);
}

static void ledger_tick(struct mst_sim_decider *d, uint64_t now_ns)
{
	mst_ledger_tick(ledger_of(d), now_ns);
}

static uint64_t ledger_deadline(const struct mst_sim_decider *d)
{
	return mst_ledger_deadline(ledger_of(d));
}

static struct mst_sim_orders ledger_orders(const struct mst_sim_decider *d, uint64_t version)
{
	const struct mst_record *r = mst_ledger_record_of(ledger_of(d), version);

	return r != NULL ? (struct mst_sim_orders){ r->pace, r->until_asked }
			 : (struct mst_sim_orders){ .until_asked = false };
}

static const struct mst_record *ledger_record(const struct mst_sim_decider *d, uint64_t version)
{
	return mst_ledger_record_of(ledger_of(d), version);
}

static const struct mst_sim_decider_ops ops = {
	.free = ledger_free,
	.handle = ledger_handle,
	.next = ledger_next,
	.tick = ledger_tick,
	.deadline = ledger_deadline,
	.orders = ledger_orders,
	.record = ledger_record,
	.leases = true,
};

int mst_sim_ledger_new(const struct mst_ledger_cfg *cfg, struct mst_sim_decider **out)
{
	struct mst_sim_ledger *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return -ENOMEM;
	l->decider.ops = &ops;
	int rc = mst_ledger_new(cfg, &l->ledger);
	if (rc != 0) {
		free(l);
		return rc;
	}
	*out = &l->decider;
	return 0;
}
