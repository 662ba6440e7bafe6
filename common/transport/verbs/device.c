/* SPDX-License-Identifier: MIT */
/* A device as one net uses it. Opened by name, apart from the connection manager's own context: so
 * it stays as long as the net does, whatever links come and go. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/transport/verbs/verbs.h"
#include "common/transport/why.h"

static int open_named(const char *name, struct ibv_context **out)
{
	int count;
	struct ibv_device **list = ibv_get_device_list(&count);

	errno = ENODEV;
	for (int i = 0; list != NULL && i < count; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			*out = ibv_open_device(list[i]);
	int error = errno;
	if (list != NULL)
		ibv_free_device_list(list);
	if (*out != NULL)
		return 0;
	return mst_fail(-error, "cannot open RDMA device %s: %s%s", name, strerror(error),
			error == EACCES || error == EPERM
				? "; the user needs /dev/infiniband/uverbs*, a container "
				  "--device=/dev/infiniband"
				: "");
}

static int no_block(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 ? 0 : -errno;
}

static int make(struct mst_verbs_net *net, struct mst_verbs_device *d)
{
	const char *name = ibv_get_device_name(d->context->device);
	int rc = ibv_query_device(d->context, &d->limits);

	if (rc != 0)
		return mst_fail(-rc, "cannot query RDMA device %s: %s", name, strerror(rc));
	d->channel = ibv_create_comp_channel(d->context);
	d->pd = ibv_alloc_pd(d->context);
	if (d->channel == NULL || d->pd == NULL)
		return mst_fail(-errno, "RDMA device %s has no room for another user: %s", name,
				strerror(errno));
	rc = no_block(d->channel->fd);
	if (rc == 0)
		rc = no_block(d->context->async_fd);
	if (rc == 0)
		rc = mst_verbs_watch(net, d->channel->fd);
	if (rc == 0)
		rc = mst_verbs_watch(net, d->context->async_fd);
	if (rc != 0)
		return mst_fail(rc, "cannot watch RDMA device %s: %s", name, strerror(-rc));
	if (net->published.bytes == 0)
		return 0;
	mst_verbs_memory_near(&net->published, d->context);
	return mst_verbs_register(d->pd, &net->published, 0, "versions of the result",
				  &d->published);
}

void mst_verbs_device_close(struct mst_verbs_device *d)
{
	if (d->published != NULL)
		ibv_dereg_mr(d->published);
	if (d->pd != NULL)
		ibv_dealloc_pd(d->pd);
	if (d->channel != NULL)
		ibv_destroy_comp_channel(d->channel);
	if (d->context != NULL)
		ibv_close_device(d->context);
	*d = (struct mst_verbs_device){ 0 };
}

struct mst_verbs_device *mst_verbs_device_known(struct mst_verbs_net *net, const char *name)
{
	for (uint32_t i = 0; i < net->device_count; i++)
		if (strcmp(ibv_get_device_name(net->device[i].context->device), name) == 0)
			return &net->device[i];
	return NULL;
}

int mst_verbs_device_of(struct mst_verbs_net *net, const char *name, struct mst_verbs_device **out)
{
	*out = mst_verbs_device_known(net, name);
	if (*out != NULL)
		return (*out)->gone ? mst_fail(-ENODEV, "RDMA device %s was removed", name) : 0;
	if (net->device_count == MST_VERBS_RAILS_MAX)
		return mst_fail(-ENOSPC, "more than %u RDMA devices", MST_VERBS_RAILS_MAX);
	struct mst_verbs_device *d = &net->device[net->device_count];
	*d = (struct mst_verbs_device){ 0 };
	int rc = open_named(name, &d->context);
	if (rc == 0)
		rc = make(net, d);
	if (rc != 0) {
		mst_verbs_device_close(d);
		return rc;
	}
	net->device_count++;
	*out = d;
	return 0;
}
