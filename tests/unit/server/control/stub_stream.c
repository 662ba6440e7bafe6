/* SPDX-License-Identifier: MIT */
#include "tests/unit/server/control/stub_stream.h"

#include "tests/ut.h"

void stub_stream_close(struct mst_stream *s)
{
	(void)s;
}

int stub_stream_fd(const struct mst_stream *s)
{
	(void)s;
	return -1;
}

void stub_stream_unlisten(struct mst_listener *l)
{
	CU_ASSERT_PTR_NULL(l);
}
