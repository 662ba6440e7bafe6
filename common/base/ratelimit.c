/* SPDX-License-Identifier: MIT */
#include "common/base/ratelimit.h"

static bool is_in_window(const struct mst_ratelimit *r, uint64_t now_ns)
{
	return r->said > 0 && now_ns - r->began_ns < r->window_ns;
}

bool mst_ratelimit_pass(struct mst_ratelimit *r, uint64_t now_ns)
{
	if (!is_in_window(r, now_ns)) {
		r->began_ns = now_ns;
		r->said = 0;
	}
	if (r->said == r->burst) {
		r->held_back++;
		return false;
	}
	r->said++;
	return true;
}

uint64_t mst_ratelimit_take(struct mst_ratelimit *r, uint64_t now_ns)
{
	uint64_t held_back = r->held_back;

	if (held_back == 0 || is_in_window(r, now_ns))
		return 0;
	r->held_back = 0;
	return held_back;
}
