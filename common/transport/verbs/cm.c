/* SPDX-License-Identifier: MIT */
/* Events of the connection manager, for links that are attached or being dialled. Each is
 * acknowledged when it has been dealt with: freeing a connection waits for that. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/transport/verbs/library.h"
#include "common/transport/verbs/verbs.h"

static int count_devices(void)
{
	int count = -1;
	struct ibv_device **list = ibv_get_device_list(&count);

	if (list != NULL)
		ibv_free_device_list(list);
	return count;
}

static int no_device(struct mst_reason *why)
{
	return mst_reason_fail(why, -ENODEV,
			       "this host has no RDMA device (muster doctor tells why)");
}

int mst_verbs_reaches(const char *address, struct mst_reason *why)
{
	(void)address;
	mst_reason_clear(why);
	int rc = mst_verbs_library();
	if (rc != 0)
		return mst_reason_fail(why, rc, "%s", mst_verbs_library_why());
	return count_devices() != 0 ? 0 : no_device(why);
}

/* librdmacm opens no channel without a device, and says so with an errno of several causes. */
static int explain(int error, struct mst_reason *why)
{
	if (count_devices() == 0)
		return no_device(why);
	return mst_reason_fail(why, -error,
			       "the RDMA connection manager is not there (%s): load the module "
			       "rdma_ucm; a container needs --device=/dev/infiniband",
			       strerror(error));
}

int mst_verbs_cm_open(struct rdma_event_channel **out, struct mst_reason *why)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	if (channel == NULL)
		return explain(errno, why);
	int flags = fcntl(channel->fd, F_GETFL);
	if (flags < 0 || fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) < 0) {
		int error = errno;
		rdma_destroy_event_channel(channel);
		return mst_reason_fail(why, -error, "cannot open the RDMA connection manager: %s",
				       strerror(error));
	}
	*out = channel;
	return 0;
}

static void take_answer(struct mst_verbs_rail *r, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *conn = &event->param.conn;

	r->answer_bytes = conn->private_data != NULL ? conn->private_data_len : 0;
	if (r->answer_bytes > sizeof(r->answer))
		r->answer_bytes = sizeof(r->answer); /* it may come padded */
	if (r->answer_bytes > 0)
		memcpy(&r->answer, conn->private_data, r->answer_bytes);
}

static void gone(struct mst_verbs_rail *r, const struct rdma_cm_event *event)
{
	struct mst_verbs_link *l = r->link;

	r->cm = MST_VERBS_CM_GONE;
	if (l->queue.state != MST_QUEUE_LIVE)
		return;
	mst_verbs_link_gather(l); /* a completion knows better why */
	mst_verbs_reason_gone(r, event);
	mst_verbs_link_end(l, -EPIPE);
}

/* The kernel has asked, and nobody has answered. Its timer and that of the step (dial.c) run side
 * by side, and on a busy host either may be seen first: that must make no difference. */
static bool is_silence(const struct rdma_cm_event *event)
{
	return (event->event == RDMA_CM_EVENT_ADDR_ERROR ||
		event->event == RDMA_CM_EVENT_ROUTE_ERROR) &&
	       event->status == -ETIMEDOUT;
}

void mst_verbs_cm_event(struct mst_verbs_rail *r, struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		r->cm = MST_VERBS_CM_ADDRESS;
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		r->cm = MST_VERBS_CM_ROUTE;
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		take_answer(r, event);
		r->cm = MST_VERBS_CM_ANSWERED;
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		if (r->link->queue.state == MST_QUEUE_LIVE) {
			gone(r, event);
			break;
		}
		if (is_silence(event)) {
			r->silent = true;
			break;
		}
		take_answer(r, event);
		mst_verbs_reason_dial(r, event);
		r->cm = MST_VERBS_CM_FAILED;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		gone(r, event);
		break;
	default: /* it is up, an address moved, a time-wait is over: nothing follows */
		break;
	}
}

void mst_verbs_cm_step(struct mst_verbs_net *net)
{
	struct rdma_cm_event *event;

	while (rdma_get_cm_event(net->cm, &event) == 0) {
		struct mst_verbs_rail *r = event->id->context;
		struct mst_verbs_device *removed = event->event == RDMA_CM_EVENT_DEVICE_REMOVAL
							   ? r->device
							   : NULL;
		mst_verbs_cm_event(r, event);
		rdma_ack_cm_event(event);
		if (removed != NULL)
			mst_verbs_net_lose(net, removed);
	}
}
