/* SPDX-License-Identifier: MIT */
/* The ring has records: a length and a line, or the length 0 and how many lines were dropped from
 * the beginning up to there. That number may be taken before its record is: where the ring is
 * empty, the number is taken without one. The record then tells nothing new, and is passed over. */
#include "common/base/log_queue.h"

#include <assert.h>
#include <string.h>

#include "common/base/assert.h"

typedef uint16_t length;

#define GAP_BYTES (sizeof(length) + sizeof(uint64_t))

static_assert(MST_LOG_LINE_MAX <= UINT16_MAX, "a record's length holds the longest line");

static_assert((MST_LOG_QUEUE_BYTES & (MST_LOG_QUEUE_BYTES - 1)) == 0,
	      "places in the ring stay right when the count of bytes wraps");

/* Return: the place after it. */
static size_t push(struct mst_log_queue *q, size_t at, const void *src, size_t len)
{
	size_t to_end = MST_LOG_QUEUE_BYTES - at % MST_LOG_QUEUE_BYTES;
	size_t before = len < to_end ? len : to_end;

	memcpy(q->bytes + at % MST_LOG_QUEUE_BYTES, src, before);
	memcpy(q->bytes, (const unsigned char *)src + before, len - before);
	return at + len;
}

static size_t pop(const struct mst_log_queue *q, size_t at, void *dst, size_t len)
{
	size_t to_end = MST_LOG_QUEUE_BYTES - at % MST_LOG_QUEUE_BYTES;
	size_t before = len < to_end ? len : to_end;

	memcpy(dst, q->bytes + at % MST_LOG_QUEUE_BYTES, before);
	memcpy((unsigned char *)dst + before, q->bytes, len - before);
	return at + len;
}

/* ---- the thread that puts ---- */

static bool must_tell(const struct mst_log_queue *q)
{
	return atomic_load_explicit(&q->dropped, memory_order_relaxed) != q->noted;
}

bool mst_log_queue_has_room(const struct mst_log_queue *q, size_t len, bool urgent)
{
	/* Acquire: pairs with mst_log_queue_take(), which has read what is overwritten. */
	size_t used = atomic_load_explicit(&q->put, memory_order_relaxed) -
		      atomic_load_explicit(&q->taken, memory_order_acquire);
	size_t need = sizeof(length) + len + (must_tell(q) ? GAP_BYTES : 0);

	return used + (urgent ? 0 : MST_LOG_QUEUE_RESERVE) + need <= MST_LOG_QUEUE_BYTES;
}

bool mst_log_queue_put(struct mst_log_queue *q, const char *line, size_t len, bool urgent)
{
	const length gap = 0, own = (length)len;
	size_t at = atomic_load_explicit(&q->put, memory_order_relaxed);
	uint64_t dropped = atomic_load_explicit(&q->dropped, memory_order_relaxed);

	MST_ASSERT(len > 0 && len <= MST_LOG_LINE_MAX);
	if (!mst_log_queue_has_room(q, len, urgent)) {
		/* Release: the taker sees the lines before those that are missing. */
		atomic_store_explicit(&q->dropped, dropped + 1, memory_order_release);
		return false;
	}
	if (must_tell(q)) {
		at = push(q, at, &gap, sizeof(gap));
		at = push(q, at, &dropped, sizeof(dropped));
		q->noted = dropped;
	}
	at = push(q, at, &own, sizeof(own));
	at = push(q, at, line, len);
	/* Release: pairs with mst_log_queue_take(). */
	atomic_store_explicit(&q->put, at, memory_order_release);
	return true;
}

/* ---- the thread that takes ---- */

bool mst_log_queue_is_empty(const struct mst_log_queue *q)
{
	/* Acquire: pairs with the putting and the taking thread. A thread that finds the queue
	 * empty sees what they did before. */
	return atomic_load_explicit(&q->taken, memory_order_acquire) ==
		       atomic_load_explicit(&q->put, memory_order_acquire) &&
	       atomic_load_explicit(&q->told, memory_order_acquire) ==
		       atomic_load_explicit(&q->dropped, memory_order_acquire);
}

/* @dropped: lines from the beginning on.
 * Return: those of them whose number was not taken yet. */
static uint64_t take_dropped(struct mst_log_queue *q, uint64_t dropped)
{
	uint64_t told = atomic_load_explicit(&q->told, memory_order_relaxed);

	if (dropped <= told)
		return 0;
	/* Release: pairs with mst_log_queue_is_empty(). */
	atomic_store_explicit(&q->told, dropped, memory_order_release);
	return dropped - told;
}

size_t mst_log_queue_take(struct mst_log_queue *q, char line[MST_LOG_LINE_MAX], uint64_t *dropped)
{
	size_t at = atomic_load_explicit(&q->taken, memory_order_relaxed);
	length len = 0;

	*dropped = 0;
	while (len == 0 && *dropped == 0) {
		/* Acquire, and before the look at the ring: if the ring is empty then, all lines
		 * before those that are missing were taken. */
		uint64_t in_all = atomic_load_explicit(&q->dropped, memory_order_acquire);
		/* Acquire: pairs with mst_log_queue_put(). */
		if (at == atomic_load_explicit(&q->put, memory_order_acquire)) {
			*dropped = take_dropped(q, in_all);
			break;
		}
		at = pop(q, at, &len, sizeof(len));
		at = len > 0 ? pop(q, at, line, len) : pop(q, at, &in_all, sizeof(in_all));
		/* Release: pairs with mst_log_queue_has_room(). Before the number is taken: if a
		 * signal handler takes between the two, the number comes later, and is not lost. */
		atomic_store_explicit(&q->taken, at, memory_order_release);
		if (len == 0)
			*dropped = take_dropped(q, in_all);
	}
	return len;
}

void mst_log_queue_clear(struct mst_log_queue *q)
{
	uint64_t dropped = atomic_load_explicit(&q->dropped, memory_order_relaxed);

	q->noted = dropped;
	atomic_store_explicit(&q->told, dropped, memory_order_relaxed);
	atomic_store_explicit(&q->taken, atomic_load_explicit(&q->put, memory_order_relaxed),
			      memory_order_relaxed);
}
