/* SPDX-License-Identifier: MIT */
/*
 * A musterd whose links with other servers break: of the puts on each, every so many fails as on a
 * link that is lost (MUSTER_CUT), while both processes live. Workers' links are left alone. Wraps
 * the transport.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/transport/interposed.h"

static unsigned long every, count, cuts; /* puts; only the data thread's */

static int cut_put(struct mst_link *link, const struct mst_put *put)
{
	if (every > 0 && ++count % every == 0) {
		cuts++;
		return -EPIPE;
	}
	return interposed_real->put(link, put);
}

__attribute__((destructor)) static void tell(void)
{
	if (every > 0)
		(void)fprintf(stderr, "cuts: %lu\n", cuts);
}

/* Between servers both lanes are alike, to workers they are not. */
static int cut_answer(struct mst_link_listener *listener, const struct mst_link_request *request,
		      struct mst_link **out, struct mst_reason *why)
{
	int rc = interposed_real->listener->answer(listener, request, out, why);

	if (rc == 0 && out != NULL && (*out)->lanes.up_bytes == (*out)->lanes.down_bytes)
		(*out)->ops = &interposed_ours;
	return rc;
}

/* The only links that a server dials are to other servers. */
bool interpose(struct mst_transport *ours, struct mst_link_listener_ops *listeners)
{
	const char *text = getenv("MUSTER_CUT");

	every = text != NULL ? strtoul(text, NULL, 10) : 0;
	ours->put = cut_put;
	listeners->answer = cut_answer;
	return true;
}
