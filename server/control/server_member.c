/* SPDX-License-Identifier: MIT */
#include "server/control/server_member.h"

#include <string.h>

#define NEVER (-1)
#define AWAITED MST_SERVER_MEMBER_AWAITED
#define JOINED MST_SERVER_MEMBER_JOINED
#define APPOINTED MST_SERVER_MEMBER_APPOINTED
#define LINKED MST_SERVER_MEMBER_LINKED
#define READY MST_SERVER_MEMBER_READY
#define GONE MST_SERVER_MEMBER_GONE

static const int after[MST_SERVER_MEMBER_STATES][MST_SERVER_MEMBER_EVENTS] = {
	/*              JOIN    APPOINT    LINK    SERVE  LOSE     PART */
	[AWAITED] = { JOINED, NEVER, NEVER, NEVER, NEVER, NEVER },
	[JOINED] = { NEVER, APPOINTED, NEVER, NEVER, AWAITED, GONE },
	[APPOINTED] = { NEVER, NEVER, LINKED, NEVER, GONE, GONE },
	[LINKED] = { NEVER, NEVER, LINKED, READY, GONE, GONE },
	[READY] = { NEVER, NEVER, READY, NEVER, GONE, GONE },
	[GONE] = { NEVER, NEVER, NEVER, NEVER, NEVER, NEVER },
};

bool mst_server_member_enter(enum mst_server_member_state *state,
			     enum mst_server_member_event event)
{
	int next = after[*state][event];

	if (next == NEVER)
		return false;
	*state = (enum mst_server_member_state)next;
	return true;
}

void mst_server_member_link_begins(struct mst_server_member *s)
{
	s->token_is_unused = false;
	s->linking = true;
	memcpy(s->linking_token, s->token, sizeof(s->linking_token));
}

bool mst_server_member_link_made(struct mst_server_member *s, const uint8_t *token)
{
	if (!s->linking || memcmp(s->linking_token, token, sizeof(s->linking_token)) != 0)
		return false;
	s->linking = false;
	return memcmp(s->token, token, sizeof(s->token)) == 0;
}
