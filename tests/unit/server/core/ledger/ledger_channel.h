/* SPDX-License-Identifier: MIT */
/* A channel of a simulated worker: what it has said and nobody has read yet, in order. */
#ifndef MST_TESTS_UNIT_SERVER_CORE_LEDGER_CHANNEL_H
#define MST_TESTS_UNIT_SERVER_CORE_LEDGER_CHANNEL_H

#include <stdlib.h>

#include "server/core/ledger/ledger.h"

struct channel {
	struct mst_ledger_event *event;
	size_t first, count, room;
};

static inline void channel_post(struct channel *c, const struct mst_ledger_event *ev)
{
	if (c->first + c->count == c->room) {
		c->room = c->room == 0 ? 16 : c->room * 2;
		c->event = realloc(c->event, c->room * sizeof(*c->event));
		if (c->event == NULL)
			abort();
	}
	c->event[c->first + c->count++] = *ev;
}

static inline bool channel_take(struct channel *c, struct mst_ledger_event *out)
{
	if (c->count == 0)
		return false;
	*out = c->event[c->first++];
	if (--c->count == 0)
		c->first = 0;
	return true;
}

#endif
