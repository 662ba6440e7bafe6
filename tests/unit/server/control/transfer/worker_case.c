/* SPDX-License-Identifier: MIT */
#include "tests/unit/server/control/transfer/worker_case.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/server/control/stub_stream.h"
#include "tests/ut.h"

static ssize_t take(struct mst_stream *s, const void *data, size_t len)
{
	struct worker_case *w = (struct worker_case *)s;
	static struct mst_message m;
	int64_t length;

	len = len < sizeof(w->in) - w->have ? len : sizeof(w->in) - w->have;
	memcpy(w->in + w->have, data, len);
	w->have += len;
	while ((length = mst_frame_length(w->in, w->have, NULL)) > 0 && (size_t)length <= w->have) {
		CU_ASSERT_EQUAL_FATAL(mst_message_decode(w->in, (size_t)length, &m, NULL), 0);
		w->hear(w, &m);
		w->have -= (size_t)length;
		memmove(w->in, w->in + length, w->have);
	}
	return (ssize_t)len;
}

static ssize_t nothing(struct mst_stream *s, void *data, size_t len)
{
	(void)s;
	(void)data;
	(void)len;
	return -EAGAIN;
}

static void hang_up(struct mst_stream *s)
{
	((struct worker_case *)s)->conn = NULL;
}

static const struct mst_stream_ops stream = {
	.send = take, .receive = nothing, .close = hang_up, STUB_STREAM
};

static void gone(void *ctx, struct mst_conn *c)
{
	(void)ctx;
	(void)c;
}

static const struct mst_frontend_ops ops = { .gone = gone };

void worker_case_open(struct mst_frontend *front, uint32_t workers)
{
	struct mst_frontend_cfg cfg = {
		.stream = &stream, .members = workers + 2, .workers = workers, .ops = &ops
	};
	struct mst_reason why;

	CU_ASSERT_EQUAL_FATAL(mst_frontend_open(front, &cfg, &why), 0);
}

void worker_case_join(struct worker_case *w, struct mst_frontend *front, struct mst_identity who,
		      void (*hear)(struct worker_case *w, const struct mst_message *m))
{
	w->have = 0;
	w->hear = hear;
	w->conn = mst_frontend_adopt(front, (struct mst_stream *)w, "10.0.0.7:5", MST_CONN_HELLO);
	CU_ASSERT_PTR_NOT_NULL_FATAL(w->conn);
	mst_frontend_admit(front, w->conn, who);
}
