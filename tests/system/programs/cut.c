/* SPDX-License-Identifier: MIT */
/*
 * A musterd whose links with other servers break: of the puts on each, every so many fails as on a
 * link that is lost (MUSTER_CUT), while both processes live. Workers' links are left alone. Wraps
 * the transport.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/transport/transport.h"

const struct mst_transport *__real_mst_networks_transport(const struct mst_networks *n);
const struct mst_transport *__wrap_mst_networks_transport(const struct mst_networks *n);

static const struct mst_transport *real;
static struct mst_transport ours;
static struct mst_link_listener_ops ours_listener;
static unsigned long every, count, cuts; /* puts; only the data thread's */

static int cut_put(struct mst_link *link, const struct mst_put *put)
{
	if (every > 0 && ++count % every == 0) {
		cuts++;
		return -EPIPE;
	}
	return real->put(link, put);
}

__attribute__((destructor)) static void tell(void)
{
	if (every > 0)
		(void)fprintf(stderr, "cuts: %lu\n", cuts);
}

static int cut_net_open(const struct mst_net_cfg *cfg, struct mst_net **out, struct mst_reason *why)
{
	int rc = real->net_open(cfg, out, why);

	if (rc == 0)
		(*out)->ops = &ours;
	return rc;
}

/* The only links a server dials. */
static int cut_dial(struct mst_net *net, const struct mst_dial *dial, struct mst_link **out,
		    struct mst_reason *why)
{
	int rc = real->dial(net, dial, out, why);

	if (rc == 0)
		(*out)->ops = &ours;
	return rc;
}

/* Between servers both lanes are alike, to workers they are not. */
static int cut_answer(struct mst_link_listener *listener, const struct mst_link_request *request,
		      struct mst_link **out, struct mst_reason *why)
{
	int rc = real->listener->answer(listener, request, out, why);

	if (rc == 0 && out != NULL && (*out)->lanes.up_bytes == (*out)->lanes.down_bytes)
		(*out)->ops = &ours;
	return rc;
}

const struct mst_transport *__wrap_mst_networks_transport(const struct mst_networks *n)
{
	const char *text = getenv("MUSTER_CUT");
	const struct mst_transport *found = __real_mst_networks_transport(n);

	if (found == NULL || found == &mst_joint) /* a follower's, until its leader has spoken */
		return found;
	if (found == real) /* set before there are threads */
		return &ours;
	real = found;
	every = text != NULL ? strtoul(text, NULL, 10) : 0;
	ours = *real;
	ours_listener = *real->listener;
	ours.listener = &ours_listener;
	ours.put = cut_put;
	ours.net_open = cut_net_open;
	ours.dial = cut_dial;
	ours_listener.answer = cut_answer;
	return &ours;
}
