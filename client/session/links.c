/* SPDX-License-Identifier: MIT */
#include "client/session/links.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/reason.h"
#include "common/host/descriptors.h"
#include "common/host/limits.h"
#include "common/host/processors.h"
#include "common/transport/pages.h"
#include "common/transport/spin.h"

/* A server zeroes and registers the memory of its workers' links one after another. This is how
 * fast a slow host does it. */
#define PINNED_BYTES_PER_NS 0.25

/* How long a waiting worker polls before it sleeps. It is short, because there are usually more
 * workers than cores. */
#define SPIN_YIELDS 2000u

/* Why a call of the transport failed: the transport's sentence, or else what the error says. */
static const char *cause(int error, struct mst_reason *why)
{
	return why->text[0] != '\0' ? why->text : mst_limit_failed(error, 0, why);
}

/* ---- the net ---- */

int mst_links_open(struct mst_links *l, const struct mst_links_cfg *how)
{
	const struct mst_settings *s = how->settings;
	const struct mst_welcome *w = how->welcome;
	struct mst_fabric fabric = s->fabric;
	struct mst_net_cfg cfg = { .fabric = &fabric,
				   .channels = mst_channels_of(s->credentials),
				   .links_max = w->server_count,
				   .views = w->server_count > 1,
				   .spin_yields = SPIN_YIELDS };
	struct mst_reason why;
	int rc = mst_network_choice_take(how->choice, w, &l->transport, l->failure);

	if (rc != 0) {
		l->transport = NULL;
		return rc;
	}
	/* Over a transport that maps, all of the job is on this host; otherwise this worker may
	 * have a host to itself. */
	uint32_t processes = l->transport->maps ? w->workers + w->server_count : 1;
	cfg.spin_pauses = mst_spin_pauses_of(processes, mst_host_processors(""));
	mst_fabric_follow(&fabric, &w->path);
	struct mst_descriptors_held held; /* for the libraries of RDMA */

	mst_descriptors_hold(&held);
	rc = l->transport->net_open(&cfg, &l->net, &why);
	mst_descriptors_release(&held);
	if (rc != 0)
		return mst_reason_fail(l->failure, rc, "cannot open %s: %s", l->transport->scheme,
				       cause(rc, &why));
	(void)mst_wakeup_watch(l->wakeup, l->transport, l->net); /* if it fails, tries do it */
	return 0;
}

/* ---- dialling ---- */

const char *mst_links_name(const struct mst_links *l, const struct mst_part *p, char *out)
{
	if (l->count == 1)
		(void)snprintf(out, MST_LINKS_NAME_LEN, "the server");
	else
		(void)snprintf(out, MST_LINKS_NAME_LEN, "server %" PRIu32 " (of 0 to %" PRIu32 ")",
			       p->number, l->count - 1);
	return out;
}

void mst_part_place(struct mst_part *p, uint32_t rank)
{
	for (uint32_t slot = 0; slot < p->layout.slots; slot++)
		p->gradient_at[slot] = mst_lane_gradient(&p->layout, slot, rank);
	p->stride = (p->layout.result_bytes + MST_PAGES_SMALL - 1) / MST_PAGES_SMALL *
		    MST_PAGES_SMALL;
}

static void lay_out(struct mst_links *l, struct mst_part *p, const struct mst_links_cfg *cfg)
{
	const struct mst_welcome *w = cfg->welcome;
	const struct mst_welcome_server *server = &w->server[p->number];

	p->first = server->first;
	p->count = server->count;
	mst_lane_layout(
		&(struct mst_lane_figures){
			.elems = p->count,
			.type_bytes = mst_type_size(cfg->settings->type),
			.result_type_bytes = mst_type_size(cfg->settings->result_type),
			.slots = w->slots,
			.workers = w->record_ranks,
			.parted = w->server_count > 1,
		},
		&p->layout);
	mst_part_place(p, l->rank);
	p->marks = w->buffers * p->stride;
}

static int no_link(struct mst_links *l, const struct mst_part *p, const char *address, int error,
		   struct mst_reason *why)
{
	char name[MST_LINKS_NAME_LEN];

	(void)mst_links_name(l, p, name);
	return mst_reason_fail(l->failure, error,
			       "cannot link rank %" PRIu32 " to %s's listener %.100s over %s: %s",
			       l->rank, name, address, l->transport->scheme, cause(error, why));
}

/* May the next servers ask for a version, for a worker that takes no state? The program may write
 * to its own memory, so what it reads there is a copy. */
static bool keeps_results(const struct mst_links *l, const struct mst_settings *s)
{
	return l->marked && !s->comes_back;
}

/* What peers map they do not write elsewhere: over such a transport results are copied. */
static int register_result(struct mst_links *l, const struct mst_settings *s)
{
	struct mst_reason why;

	if (s->result_into == NULL || l->transport->maps || keeps_results(l, s))
		return 0;
	int rc = mst_region_register_target(&l->net->domain, s->result_into,
					    mst_settings_result_bytes(s), &l->result_into, &why);
	if (rc == 0)
		return 0;
	return mst_reason_fail(l->failure, rc, "options.result_into cannot be used over %s: %s",
			       l->transport->scheme, why.text);
}

/* Each server writes its part of the caller's memory, and no other. */
static struct mst_export export_of(const struct mst_links *l, const struct mst_part *p,
				   const struct mst_settings *s)
{
	if (l->result_into == NULL)
		return (struct mst_export){ 0 };
	return (struct mst_export){ .region = l->result_into,
				    .offset = p->first * mst_type_size(s->result_type),
				    .bytes = p->layout.result_bytes,
				    .at = p->layout.down_result };
}

static int dial(struct mst_links *l, struct mst_part *p, const struct mst_links_cfg *cfg)
{
	const struct mst_welcome *w = cfg->welcome;
	const struct mst_welcome_server *server = &w->server[p->number];
	const struct mst_lane_layout *lay = &p->layout;
	uint64_t bytes = (lay->up_bytes + lay->down_bytes) * w->workers;
	char address[MST_ADDRESS_LEN] = "";
	struct mst_dial how = {
		.address = address,
		.lanes = { lay->up_bytes, lay->down_bytes, lay->up_credits, lay->down_credits },
		.timeout_ns = mst_left_ns(cfg->deadline_ns),
		.busy_ns = (uint64_t)((double)bytes / PINNED_BYTES_PER_NS),
		.export = export_of(l, p, cfg->settings),
		.unwanted = cfg->unwanted,
		.ctx = cfg->ctx,
	};
	struct mst_reason why;

	static_assert(sizeof(how.token) == sizeof(server->token), "one kind of token");
	static_assert(sizeof(server->address) == MST_ADDRESS_LEN,
		      "a welcome has room for any listener");
	memcpy(how.token, server->token, sizeof(how.token));
	(void)mst_transport_address(l->transport, server->address, address);
	struct mst_descriptors_held held;

	mst_descriptors_hold(&held);
	int rc = l->transport->dial(l->net, &how, &p->link, &why);
	mst_descriptors_release(&held);
	if (rc != 0)
		return no_link(l, p, address, rc, &why);
	p->link->user = p;
	return 0;
}

/* Are there as many published versions as the welcome says, and their marks? Nothing is published
 * over a transport that does not map: results come into this end's own inbound region. */
static int check_link(struct mst_links *l, const struct mst_part *p, uint32_t buffers)
{
	uint64_t published = p->marks + (l->marked ? mst_lane_marks_bytes(buffers) : 0);
	char name[MST_LINKS_NAME_LEN];

	if (!l->transport->maps || (p->link->shared != NULL && p->link->shared_bytes >= published))
		return 0;
	return mst_reason_fail(l->failure, -EPROTO,
			       "%s publishes %zu bytes of versions, %" PRIu32
			       " buffers%s need %" PRIu64,
			       mst_links_name(l, p, name), p->link->shared_bytes, buffers,
			       l->marked ? " with marks" : "", published);
}

int mst_links_dial(struct mst_links *l, const struct mst_links_cfg *cfg)
{
	l->rank = cfg->welcome->rank;
	l->count = cfg->welcome->server_count;
	l->first = l->rank % l->count;
	l->marked = mst_lane_marks(cfg->welcome->owner, cfg->welcome->server_patience_ns);
	int rc = register_result(l, cfg->settings);
	for (uint32_t k = 0; k < l->count; k++) {
		l->part[k].number = k;
		lay_out(l, &l->part[k], cfg);
	}
	for (uint32_t i = 0; i < l->count && rc == 0; i++) {
		struct mst_part *p = &l->part[(l->first + i) % l->count];
		rc = dial(l, p, cfg);
		if (rc == 0)
			rc = check_link(l, p, cfg->welcome->buffers);
	}
	return rc;
}

/* ---- ends ---- */

bool mst_links_withdraw(struct mst_links *l)
{
	if (l->result_into == NULL || l->detached)
		return false;
	for (uint32_t k = 0; k < l->count; k++) {
		if (l->part[k].link != NULL)
			l->transport->detach(l->part[k].link);
	}
	l->detached = true;
	return true;
}

void mst_links_free(struct mst_links *l, bool inherited)
{
	for (uint32_t k = 0; k < l->count; k++) {
		struct mst_part *p = &l->part[k];
		if (p->link == NULL)
			continue;
		if (!inherited &&
		    !l->detached) /* else it has been detached, perhaps with its net */
			l->transport->detach(p->link);
		l->transport->link_free(p->link);
		p->link = NULL;
	}
}

/* What outlives a net stays. */
static void reset(struct mst_links *l)
{
	l->transport = NULL;
	l->net = NULL;
	memset(l->part, 0, sizeof(l->part));
	l->count = l->first = l->rank = l->moved = 0;
	l->copied = 0;
	l->lost = l->detached = l->marked = false;
	l->result_into = NULL;
}

void mst_links_close(struct mst_links *l)
{
	if (l->net != NULL) {
		mst_wakeup_let_go(l->wakeup);
		l->transport->net_close(l->net);
	}
	reset(l);
}

void mst_links_disown(struct mst_links *l)
{
	if (l->net != NULL && l->transport->disown != NULL) /* else it is being replaced */
		l->transport->disown(l->net);
}
