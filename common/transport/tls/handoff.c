/* SPDX-License-Identifier: MIT */
#include "common/transport/tls/handoff.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/transport/tls/stream.h"

int mst_handoff_init(struct mst_handoff *h, uint32_t max)
{
	h->max = max;
	h->first = h->count = 0;
	h->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (h->fd < 0)
		return -errno;
	pthread_mutex_init(&h->lock, NULL);
	return 0;
}

int mst_handoff_take(struct mst_handoff *h, struct mst_handoff_item *out)
{
	uint64_t given;

	pthread_mutex_lock(&h->lock);
	bool found = h->count > 0;
	if (found) {
		*out = h->item[h->first];
		h->first = (h->first + 1) % MST_HANDOFF_MAX;
		h->count--;
	}
	if (h->count == 0)
		(void)!read(h->fd, &given, sizeof(given));
	pthread_mutex_unlock(&h->lock);
	return found ? 0 : -EAGAIN;
}

void mst_handoff_fini(struct mst_handoff *h)
{
	struct mst_handoff_item left;

	while (mst_handoff_take(h, &left) == 0)
		mst_tls_stream_close(left.stream);
	pthread_mutex_destroy(&h->lock);
	close(h->fd);
}

int mst_handoff_give(struct mst_handoff *h, struct mst_stream *stream, const char *peer)
{
	uint64_t one = 1;
	int rc = 0;

	pthread_mutex_lock(&h->lock);
	if (h->count == h->max)
		rc = -ENOBUFS;
	else if (write(h->fd, &one, sizeof(one)) != (ssize_t)sizeof(one))
		rc = -errno;
	if (rc == 0) {
		struct mst_handoff_item *item = &h->item[(h->first + h->count++) % MST_HANDOFF_MAX];
		item->stream = stream;
		(void)snprintf(item->peer, sizeof(item->peer), "%s", peer);
	}
	pthread_mutex_unlock(&h->lock);
	return rc;
}
