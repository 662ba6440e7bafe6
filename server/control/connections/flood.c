/* SPDX-License-Identifier: MIT */
#include "server/control/connections/flood.h"

/* A period in which everything that had come was handled ends the count. */
static void begin_period(struct mst_flood *f, uint64_t now_ns)
{
	if (!f->more)
		f->periods = 0;
	f->more = false;
	f->since_ns = now_ns;
	f->handled = 0;
}

bool mst_flood_admits(struct mst_flood *f, uint64_t now_ns)
{
	if (mst_flood_is_one(f))
		return false;
	if (now_ns - f->since_ns >= MST_FLOOD_PERIOD_NS)
		begin_period(f, now_ns);
	if (f->handled < MST_FLOOD_MESSAGES) {
		f->handled++;
		return true;
	}
	f->periods += !f->more;
	f->more = true;
	return false;
}

void mst_flood_again(struct mst_flood *f)
{
	f->handled--;
}
