/* SPDX-License-Identifier: MIT */
#include "server/control/job/requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"

static uint32_t most(const struct mst_requests_cfg *cfg)
{
	uint32_t losses = cfg->workers, links = cfg->sessions, of_servers = 2 * (cfg->servers - 1);

	return losses + links + of_servers;
}

uint64_t mst_requests_bytes(const struct mst_requests_cfg *cfg)
{
	return most(cfg) * sizeof(struct mst_request);
}

int mst_requests_init(struct mst_requests *r, const struct mst_requests_cfg *cfg)
{
	*r = (struct mst_requests){ .max = most(cfg) };
	r->waiting = calloc(r->max, sizeof(*r->waiting));
	return r->waiting != NULL ? 0 : -ENOMEM;
}

void mst_requests_fini(struct mst_requests *r)
{
	MST_ASSERT(r->count == 0);
	free(r->waiting);
	r->waiting = NULL;
}

void mst_requests_open(struct mst_requests *r, struct mst_server *server)
{
	MST_ASSERT(r->count == 0);
	r->server = server;
}

static void free_link(const struct mst_request *request)
{
	if (request->kind == MST_REQ_PEER_LINKED)
		request->peer.link->ops->link_free(request->peer.link);
}

void mst_requests_close(struct mst_requests *r)
{
	for (uint32_t i = 0; i < r->count; i++)
		free_link(&r->waiting[i]);
	r->count = 0;
	r->server = NULL;
}

static void remove_from(struct mst_requests *r, uint32_t at, uint32_t count)
{
	r->count -= count;
	memmove(&r->waiting[at], &r->waiting[at + count], (r->count - at) * sizeof(r->waiting[0]));
}

void mst_requests_step(struct mst_requests *r)
{
	uint32_t taken = 0;

	while (taken < r->count && mst_server_request(r->server, &r->waiting[taken]))
		taken++;
	if (taken > 0)
		remove_from(r, 0, taken);
}

bool mst_requests_wait(const struct mst_requests *r)
{
	return r->count > 0;
}

bool mst_requests_offer(struct mst_requests *r, const struct mst_request *request)
{
	mst_requests_step(r);
	return r->count == 0 && mst_server_request(r->server, request);
}

/* Does @newer make @older unnecessary? */
static bool replaces(const struct mst_request *newer, const struct mst_request *older)
{
	if (newer->kind != older->kind)
		return false;
	switch (newer->kind) {
	case MST_REQ_EVENT:
		return newer->event.who.rank == older->event.who.rank;
	case MST_REQ_LINKED:
		return newer->session == older->session;
	default:
		return newer->peer.server == older->peer.server;
	}
}

static bool has_place(const struct mst_request *request)
{
	return request->kind == MST_REQ_LINKED || request->kind == MST_REQ_PEER_LINKED ||
	       request->kind == MST_REQ_PEER_GONE ||
	       (request->kind == MST_REQ_EVENT && request->event.kind == MST_EV_LOST);
}

void mst_requests_put(struct mst_requests *r, const struct mst_request *request)
{
	MST_ASSERT(has_place(request));
	if (mst_requests_offer(r, request))
		return;
	for (uint32_t i = 0; i < r->count; i++) {
		if (!replaces(request, &r->waiting[i]))
			continue;
		free_link(&r->waiting[i]);
		remove_from(r, i, 1);
		break;
	}
	MST_ASSERT(r->count < r->max);
	r->waiting[r->count++] = *request;
}

bool mst_requests_event(struct mst_requests *r, const struct mst_ledger_event *ev)
{
	struct mst_request request = { .kind = MST_REQ_EVENT, .event = *ev };

	return mst_requests_offer(r, &request);
}

void mst_requests_lose(struct mst_requests *r, struct mst_identity who)
{
	struct mst_request request = {
		.kind = MST_REQ_EVENT,
		.event = { .kind = MST_EV_LOST, .who = who, .error = -EPIPE },
	};

	mst_requests_put(r, &request);
}
