/* SPDX-License-Identifier: MIT */
#include "server/control/members/follower_links.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/rand.h"
#include "common/base/reason.h"

void mst_follower_links_offer(struct mst_followers *f, uint32_t server,
			      uint8_t token[MST_TOKEN_LEN])
{
	struct mst_follower_place *s = &f->place[server];

	s->offers++;
	mst_sessions_look(&f->base->sessions, f->step_ns);
	s->offered_ns = f->base->sessions.answering.clock_ns;
	s->token_is_unused = mst_rand_secret(s->token, sizeof(s->token)) == 0;
	memcpy(token, s->token, sizeof(s->token));
}

void mst_follower_links_offer_again(struct mst_followers *f, uint32_t server)
{
	struct mst_message *m = mst_frontend_draft(&f->base->front, MST_MSG_RELINK);

	mst_follower_links_offer(f, server, m->token);
	mst_followers_send(f, server, m);
}

void mst_follower_links_lost(struct mst_followers *f, const struct mst_notice *notice)
{
	uint32_t server = notice->peer.server;
	const struct mst_follower_place *s = &f->place[server];

	if (s->state == MST_FOLLOWER_PLACE_GONE || mst_job_is_over(&f->base->job) ||
	    notice->peer.number != s->offers)
		return;
	mst_warn("the link with server %" PRIu32 " is lost; trying for %.3g s to make it anew",
		 server, mst_followers_lease_s(f));
	mst_follower_links_offer_again(f, server);
}

/* From an address that the follower has announced its token is spent, whatever comes of the
 * request; a follower that gets no link asks for another token. Time in which requests for links
 * had to wait does not count for the age of a token. */
static uint32_t spend(void *ctx, const struct mst_link_request *request, uint64_t *age_ns)
{
	struct mst_followers *f = ctx;

	for (uint32_t i = 1; i < mst_followers_servers(f); i++) {
		if (mst_follower_place_spend(&f->place[i], request)) {
			*age_ns = mst_sessions_since(&f->base->sessions, f->place[i].offered_ns);
			return i;
		}
	}
	return 0;
}

static uint32_t expecting(void *ctx, const uint8_t *token, const struct mst_origins **announced)
{
	struct mst_followers *f = ctx;

	for (uint32_t i = 1; i < mst_followers_servers(f); i++) {
		if (mst_follower_place_expects(&f->place[i], token)) {
			*announced = &f->place[i].origins;
			return i;
		}
	}
	return 0;
}

static void link_begins(void *ctx, uint32_t server)
{
	struct mst_followers *f = ctx;

	mst_follower_place_link_begins(&f->place[server]);
}

/* Gives the follower's link to the data side, or frees it if the follower is gone. */
static void let_in(struct mst_followers *f, uint32_t server, struct mst_link *link)
{
	struct mst_request request = { .kind = MST_REQ_PEER_LINKED };
	struct mst_follower_place *s = &f->place[server];

	if (!mst_follower_place_enter(&s->state, MST_FOLLOWER_PLACE_LINK)) {
		link->ops->link_free(link);
		return;
	}
	s->over = link->ops;
	if (!s->over->maps)
		mst_info("server %" PRIu32 " is linked over %s, %s", server, s->over->scheme,
			 mst_transport_privacy(s->over, f->base->job.terms.fabric.encrypted));
	request.peer.server = server;
	request.peer.number = s->offers;
	request.peer.link = link;
	mst_requests_put(&f->base->job.requests, &request);
}

/* A failure is only logged: the link is tried again until the follower's lease is over. */
static bool link_made(void *ctx, const struct mst_link_made *made)
{
	struct mst_followers *f = ctx;
	uint32_t server = 1;

	while (server < mst_followers_servers(f) &&
	       !mst_follower_place_link_made(&f->place[server], made->token))
		server++;
	if (server >= mst_followers_servers(f))
		return false;
	if (made->error != 0)
		mst_warn("server %" PRIu32 ": its link could not be set up: %s", server,
			 mst_reason_or_errno(&made->why, made->error));
	else
		let_in(f, server, made->link);
	return true;
}

const struct mst_linking_ops mst_follower_links = { expecting, spend, link_begins, link_made };
