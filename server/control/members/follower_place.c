/* SPDX-License-Identifier: MIT */
#include "server/control/members/follower_place.h"

#include <string.h>

#include "common/transport/origins.h"
#include "server/control/members/token.h"

#define NEVER (-1)
#define AWAITED MST_FOLLOWER_PLACE_AWAITED
#define JOINED MST_FOLLOWER_PLACE_JOINED
#define APPOINTED MST_FOLLOWER_PLACE_APPOINTED
#define LINKED MST_FOLLOWER_PLACE_LINKED
#define READY MST_FOLLOWER_PLACE_READY
#define GONE MST_FOLLOWER_PLACE_GONE

static const int after[MST_FOLLOWER_PLACE_STATES][MST_FOLLOWER_PLACE_EVENTS] = {
	/*              JOIN    APPOINT    LINK    SERVE  LOSE     PART */
	[AWAITED] = { JOINED, NEVER, NEVER, NEVER, NEVER, NEVER },
	[JOINED] = { NEVER, APPOINTED, NEVER, NEVER, AWAITED, GONE },
	[APPOINTED] = { NEVER, NEVER, LINKED, NEVER, GONE, GONE },
	[LINKED] = { NEVER, NEVER, LINKED, READY, GONE, GONE },
	[READY] = { NEVER, NEVER, READY, NEVER, GONE, GONE },
	[GONE] = { NEVER, NEVER, NEVER, NEVER, NEVER, NEVER },
};

bool mst_follower_place_enter(enum mst_follower_place_state *state,
			      enum mst_follower_place_event event)
{
	int next = after[*state][event];

	if (next == NEVER)
		return false;
	*state = (enum mst_follower_place_state)next;
	return true;
}

bool mst_follower_place_expects(const struct mst_follower_place *s, const uint8_t *token)
{
	return s->state != GONE && s->token_is_unused && mst_token_is(s->token, token);
}

bool mst_follower_place_spend(struct mst_follower_place *s, const struct mst_link_request *request)
{
	if (!mst_follower_place_expects(s, request->token) ||
	    !mst_origins_cover(&s->origins, &request->from))
		return false;
	s->token_is_unused = false;
	return true;
}

void mst_follower_place_link_begins(struct mst_follower_place *s)
{
	s->linking = true;
	memcpy(s->linking_token, s->token, sizeof(s->linking_token));
}

bool mst_follower_place_link_made(struct mst_follower_place *s, const uint8_t *token)
{
	if (!s->linking || !mst_token_is(s->linking_token, token))
		return false;
	s->linking = false;
	return mst_token_is(s->token, token);
}
