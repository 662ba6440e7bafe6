/* SPDX-License-Identifier: MIT */
/* The ring has records: a length and a line, or the length 0 and the number of lines dropped
 * there. */
#include "common/base/log_queue.h"

#include <assert.h>
#include <string.h>

#include "common/base/assert.h"

typedef uint16_t length;

#define GAP_BYTES (sizeof(length) + sizeof(uint64_t))

static_assert(MST_LOG_LINE_MAX <= UINT16_MAX, "a record's length holds the longest line");

static void push(struct mst_log_queue *q, const void *src, size_t len)
{
	size_t at = (q->first + q->used) % MST_LOG_QUEUE_BYTES;
	size_t to_end = MST_LOG_QUEUE_BYTES - at;
	size_t before = len < to_end ? len : to_end;

	memcpy(q->bytes + at, src, before);
	memcpy(q->bytes, (const unsigned char *)src + before, len - before);
	q->used += len;
}

static void pop(struct mst_log_queue *q, void *dst, size_t len)
{
	size_t to_end = MST_LOG_QUEUE_BYTES - q->first;
	size_t before = len < to_end ? len : to_end;

	memcpy(dst, q->bytes + q->first, before);
	memcpy((unsigned char *)dst + before, q->bytes, len - before);
	q->first = (q->first + len) % MST_LOG_QUEUE_BYTES;
	q->used -= len;
}

bool mst_log_queue_has_room(const struct mst_log_queue *q, size_t len, bool urgent)
{
	size_t taken = q->used + (urgent ? 0 : MST_LOG_QUEUE_RESERVE);
	size_t need = sizeof(length) + len + (q->dropped > 0 ? GAP_BYTES : 0);

	return taken + need <= MST_LOG_QUEUE_BYTES;
}

bool mst_log_queue_put(struct mst_log_queue *q, const char *line, size_t len, bool urgent)
{
	const length gap = 0, own = (length)len;

	MST_ASSERT(len > 0 && len <= MST_LOG_LINE_MAX);
	if (!mst_log_queue_has_room(q, len, urgent)) {
		q->dropped++;
		return false;
	}
	if (q->dropped > 0) {
		push(q, &gap, sizeof(gap));
		push(q, &q->dropped, sizeof(q->dropped));
		q->dropped = 0;
	}
	push(q, &own, sizeof(own));
	push(q, line, len);
	return true;
}

bool mst_log_queue_is_empty(const struct mst_log_queue *q)
{
	return q->used == 0 && q->dropped == 0;
}

size_t mst_log_queue_take(struct mst_log_queue *q, char line[MST_LOG_LINE_MAX], uint64_t *dropped)
{
	length len = 0;

	*dropped = 0;
	if (q->used == 0) {
		*dropped = q->dropped;
		q->dropped = 0;
		return 0;
	}
	pop(q, &len, sizeof(len));
	if (len == 0)
		pop(q, dropped, sizeof(*dropped));
	else
		pop(q, line, len);
	return len;
}
