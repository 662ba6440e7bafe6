/* SPDX-License-Identifier: MIT */
#include "server/control/connections/complaint.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/base/log.h"

static const char *const what_more[] = {
	[MST_COMPLAINT_REFUSED] = "callers were refused",
	[MST_COMPLAINT_BROKEN] = "callers broke the protocol",
	[MST_COMPLAINT_SILENT] = "callers said nothing",
	[MST_COMPLAINT_UNREAD] = "callers did not read what they asked for",
	[MST_COMPLAINT_REQUEST] = "link requests had no valid token",
	[MST_COMPLAINT_ORIGIN] = "link requests came from addresses that nobody had announced",
	[MST_COMPLAINT_STATE] = "states were larger than --state-max",
	[MST_COMPLAINT_OUTRUN] = "states were too old when their workers had taken them",
	[MST_COMPLAINT_GOAL] = "versions to end with differed from the job's",
};

void mst_complaints_init(struct mst_complaints *c)
{
	for (unsigned i = 0; i < MST_COMPLAINT_KINDS; i++)
		c->kind[i] = (struct mst_ratelimit){ .window_ns = MST_COMPLAINT_WINDOW_NS,
						     .burst = MST_COMPLAINT_BURST };
}

void mst_complaints_step(struct mst_complaints *c, uint64_t now_ns)
{
	c->now_ns = now_ns;
	for (unsigned i = 0; i < MST_COMPLAINT_KINDS; i++) {
		uint64_t more = mst_ratelimit_take(&c->kind[i], now_ns);
		if (more > 0)
			mst_warn("%" PRIu64 " more %s in the last %.0f s", more, what_more[i],
				 (double)MST_COMPLAINT_WINDOW_NS / (double)MST_SECOND);
	}
}

void mst_complain(struct mst_complaints *c, enum mst_complaint kind, const char *fmt, ...)
{
	char text[MST_LOG_LINE_MAX];
	va_list args;

	if (!mst_ratelimit_pass(&c->kind[kind], c->now_ns))
		return;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	mst_warn("%s", text);
}
