/* SPDX-License-Identifier: MIT */
#include "server/core/policy/starts.h"

void mst_starts_open(struct mst_starts *a, uint64_t version, uint32_t before, uint64_t now_ns)
{
	a->step[version % MST_STARTS_KEPT] = (struct mst_start){
		.version = version, .opened_ns = now_ns, .before = before, .known = true
	};
}

bool mst_starts_add(struct mst_starts *a, uint64_t version, uint64_t now_ns,
		    struct mst_arrival *out)
{
	struct mst_start *s = &a->step[version % MST_STARTS_KEPT];

	if (!s->known || s->version != version || now_ns < s->opened_ns)
		return false;
	*out = (struct mst_arrival){
		.before = s->before,
		.number = ++s->count,
		.after_s = (double)(now_ns - s->opened_ns) / 1e9,
	};
	return true;
}
