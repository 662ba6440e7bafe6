/* SPDX-License-Identifier: MIT */
#include "server/control/connections/descriptors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/host/descriptors.h"
#include "server/control/connections/frontend.h"

/* The epoll descriptor, the eventfd that wakes it, the listener, and a file that is read now and
 * then. */
#define FRONTEND_OWN 4u
/* With TLS besides: the port, an epoll descriptor and an eventfd of the thread that shakes hands,
 * and what it has handed over (common/transport/tls). */
#define TLS_LISTENER_OWN (3u + 256u)
/* The most callers that shake hands; they take at most an eighth of what is allowed. */
#define TLS_CALLERS_MAX 1024u

static uint32_t claim(const struct mst_descriptors_cfg *cfg, const struct mst_lanes *lanes)
{
	struct mst_claim out = { 0 };

	if (cfg->transport->claim != NULL)
		cfg->transport->claim(cfg->net, lanes, true, &out);
	return out.descriptors;
}

void mst_descriptors_of(const struct mst_descriptors_cfg *cfg, struct mst_descriptors *out)
{
	uint32_t link = claim(cfg, &cfg->net->lanes);
	uint32_t connection = cfg->follower ? 0 : 1;

	*out = (struct mst_descriptors){ .workers = cfg->workers, .worker = link + connection };
	out->own = claim(cfg, NULL) + (uint64_t)cfg->peers * (link + connection) + FRONTEND_OWN;
	out->own += cfg->follower ? 1 : MST_FRONTEND_STRANGERS + MST_FRONTEND_WATCHERS;
	out->callers = cfg->tls && !cfg->follower;
	if (out->callers)
		out->own += TLS_LISTENER_OWN;
}

int mst_descriptors_check(const struct mst_descriptors *d, struct mst_reason *why)
{
	uint64_t open = mst_host_descriptors_open(""), allowed = mst_host_descriptors_max();
	uint64_t need = open + mst_descriptors_all(d);

	if (d->callers)
		allowed -= allowed / 8 < TLS_CALLERS_MAX ? allowed / 8 : TLS_CALLERS_MAX;
	if (need <= allowed)
		return 0;
	mst_reason_set(why,
		       "%" PRIu32 " workers need %" PRIu64 " file descriptors here (%" PRIu32
		       " each, %" PRIu64 " of the server's own, %" PRIu64
		       " that are open already), and %" PRIu64
		       " are allowed: raise the hard limit (ulimit -Hn, LimitNOFILE= of a systemd "
		       "unit, --ulimit nofile= of a container), or take fewer workers",
		       d->workers, need, d->worker, d->own, open, allowed);
	return -EMFILE;
}
