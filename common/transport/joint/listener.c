/* SPDX-License-Identifier: MIT */
/* A listener of each part; its address is the list of theirs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/host/descriptors.h"
#include "common/host/limits.h"
#include "common/transport/joint/joint.h"

struct joint_listener {
	struct mst_link_listener listener;
	int epoll; /* of the parts' descriptors */
	uint32_t count, first;
	struct mst_link_listener *part[MST_NETWORKS_MAX];
};

/* Each part asks by the filter that the owner has set for all. */
static bool expects(void *ctx, const uint8_t token[MST_TOKEN_LEN], const struct mst_origin *from)
{
	return mst_link_expected(ctx, token, from);
}

static void listener_close(struct mst_link_listener *l)
{
	struct joint_listener *listener = (struct joint_listener *)l;

	if (listener == NULL)
		return;
	while (listener->count > 0) {
		struct mst_link_listener *part = listener->part[--listener->count];
		part->ops->listener->close(part);
	}
	if (listener->epoll >= 0)
		close(listener->epoll);
	free(listener);
}

/* "/run/muster/4711|tcp:10.0.0.1:4711" */
static int add_address(struct joint_listener *listener, const char *address)
{
	char *all = listener->listener.address;
	size_t used = strlen(all), room = sizeof(listener->listener.address) - used;
	int n = snprintf(all + used, room, "%s%s", used > 0 ? "|" : "", address);

	if (n >= 0 && (size_t)n < room)
		return 0;
	all[used] = '\0';
	return -ENAMETOOLONG;
}

static int open_part(struct joint_listener *listener, struct mst_net *of, struct mst_reason *why)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct mst_link_listener *part;

	int rc = of->ops->listener->open(of, &part, why);
	if (rc != 0)
		return rc;
	part->filter = (struct mst_link_filter){ expects, &listener->listener };
	listener->part[listener->count++] = part;
	if (epoll_ctl(listener->epoll, EPOLL_CTL_ADD, of->ops->listener->fd(part), &ev) != 0)
		return -errno;
	return add_address(listener, part->address);
}

static int open_parts(struct joint_listener *listener, const struct mst_joint_net *net,
		      struct mst_reason *why)
{
	struct mst_reason one;
	int rc = 0;

	listener->epoll = mst_descriptor_lift(epoll_create1(EPOLL_CLOEXEC));
	if (listener->epoll < 0) {
		rc = -errno;
		(void)mst_limit_refused("epoll_create1", rc, why);
		return rc;
	}
	for (uint32_t i = 0; i < net->count && rc == 0; i++) {
		rc = open_part(listener, net->part[i], &one);
		if (rc == 0)
			continue;
		mst_reason_set(why, "%s: %s", net->part[i]->ops->scheme,
			       mst_reason_or_errno(&one, rc));
		if (net->optional) {
			mst_warn("workers cannot come over %s", why->text);
			rc = 0;
		}
	}
	return rc == 0 && listener->count == 0 ? -EIO : rc;
}

static int listener_open(struct mst_net *n, struct mst_link_listener **out, struct mst_reason *why)
{
	struct joint_listener *listener = calloc(1, sizeof(*listener));

	mst_reason_clear(why);
	if (listener == NULL)
		return -ENOMEM;
	listener->listener.ops = &mst_joint;
	listener->epoll = -1;
	int rc = open_parts(listener, (struct mst_joint_net *)n, why);
	if (rc != 0) {
		listener_close(&listener->listener);
		return rc;
	}
	mst_reason_clear(why);
	*out = &listener->listener;
	return 0;
}

static int listener_fd(const struct mst_link_listener *l)
{
	return ((const struct joint_listener *)l)->epoll;
}

static int next_request(struct mst_link_listener *l, struct mst_link_request *out,
			struct mst_reason *why)
{
	struct joint_listener *listener = (struct joint_listener *)l;
	int rc = -EAGAIN;

	mst_reason_clear(why);
	for (uint32_t i = 0; i < listener->count && rc == -EAGAIN; i++) {
		struct mst_link_listener *part = listener->part[listener->first];
		rc = part->ops->listener->next_request(part, out, why);
		out->part = listener->first;
		listener->first = (listener->first + 1) % listener->count;
	}
	return rc;
}

static int answer(struct mst_link_listener *l, const struct mst_link_request *request,
		  struct mst_link **out, struct mst_reason *why)
{
	struct mst_link_listener *part = ((struct joint_listener *)l)->part[request->part];

	return part->ops->listener->answer(part, request, out, why);
}

const struct mst_link_listener_ops mst_joint_listener = {
	.open = listener_open,
	.close = listener_close,
	.fd = listener_fd,
	.next_request = next_request,
	.answer = answer,
};
