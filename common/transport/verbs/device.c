/* SPDX-License-Identifier: MIT */
/* A device as one net uses it. Opened by name, apart from the connection manager's own context: so
 * it stays as long as the net does, whatever links come and go. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/transport/verbs/verbs.h"

static int open_named(const char *name, struct ibv_context **out, struct mst_reason *why)
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
	return mst_reason_fail(why, -error, "cannot open RDMA device %s: %s%s", name,
			       strerror(error),
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

static int make(struct mst_verbs_net *net, struct mst_verbs_device *d, struct mst_reason *why)
{
	const char *name = ibv_get_device_name(d->context->device);
	int rc = ibv_query_device(d->context, &d->limits);

	if (rc != 0)
		return mst_reason_fail(why, -rc, "cannot query RDMA device %s: %s", name,
				       strerror(rc));
	d->channel = ibv_create_comp_channel(d->context);
	d->pd = ibv_alloc_pd(d->context);
	if (d->channel == NULL || d->pd == NULL)
		return mst_reason_fail(why, -errno,
				       "RDMA device %s has no room for another user: %s", name,
				       strerror(errno));
	rc = no_block(d->channel->fd);
	if (rc == 0)
		rc = no_block(d->context->async_fd);
	if (rc == 0)
		rc = mst_verbs_watch(net, d->channel->fd);
	if (rc == 0)
		rc = mst_verbs_watch(net, d->context->async_fd);
	if (rc != 0)
		return mst_reason_fail(why, rc, "cannot watch RDMA device %s: %s", name,
				       strerror(-rc));
	mst_verbs_memory_near(&net->published, d->context);
	return mst_verbs_pin(d, &net->versions, "versions of the result", why);
}

static void unpin_from(struct mst_verbs_device *d, struct mst_region *r)
{
	if (r->pin[d->index] != NULL)
		ibv_dereg_mr(r->pin[d->index]);
	r->pin[d->index] = NULL;
}

/* The device takes over what is registered by now. The domain is locked. */
static int join_domain(struct mst_verbs_net *net, struct mst_verbs_device *d,
		       struct mst_reason *why)
{
	const struct mst_domain *domain = &net->net.domain;
	struct mst_region *r = NULL;
	int rc = 0;

	while (rc == 0 && (r = mst_domain_next(domain, r)) != NULL)
		rc = mst_verbs_pin_own(d, r, why);
	if (rc == 0) {
		net->device_count++;
		return 0;
	}
	for (r = mst_domain_next(domain, NULL); r != NULL; r = mst_domain_next(domain, r))
		unpin_from(d, r);
	return rc;
}

void mst_verbs_device_close(struct mst_verbs_device *d)
{
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

int mst_verbs_device_of(struct mst_verbs_net *net, const char *name, struct mst_verbs_device **out,
			struct mst_reason *why)
{
	*out = mst_verbs_device_known(net, name);
	if (*out != NULL)
		return (*out)->gone
			       ? mst_reason_fail(why, -ENODEV, "RDMA device %s was removed", name)
			       : 0;
	if (net->device_count == MST_RAILS_MAX)
		return mst_reason_fail(why, -ENOSPC, "more than %u RDMA devices", MST_RAILS_MAX);
	struct mst_verbs_device *d = &net->device[net->device_count];
	*d = (struct mst_verbs_device){ .index = net->device_count };
	int rc = open_named(name, &d->context, why);
	if (rc == 0)
		rc = make(net, d, why);
	if (rc == 0) {
		mst_domain_lock(&net->net.domain);
		rc = join_domain(net, d, why);
		mst_domain_unlock(&net->net.domain);
	}
	if (rc != 0) {
		unpin_from(d, &net->versions);
		mst_verbs_device_close(d);
		return rc;
	}
	*out = d;
	return 0;
}
