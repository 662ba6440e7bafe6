/* SPDX-License-Identifier: MIT */
/*
 * The server links of a leader: each is offered to one follower by a token. A link that is lost is
 * offered again until the follower's lease is over.
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_MEMBERS_FOLLOWER_LINKS_H
#define MST_SERVER_CONTROL_MEMBERS_FOLLOWER_LINKS_H

#include "server/control/members/followers.h"

/* Draws a token for the follower's next link. An offer before it is void. */
void mst_follower_links_offer(struct mst_followers *f, uint32_t server,
			      uint8_t token[MST_TOKEN_LEN]);
/* Offers the follower another link in place of the last one. */
void mst_follower_links_offer_again(struct mst_followers *f, uint32_t server);
/* The data side has lost a server link. */
void mst_follower_links_lost(struct mst_followers *f, const struct mst_notice *notice);

/* For a linking whose `ctx` is a leader's followers. */
extern const struct mst_linking_ops mst_follower_links;

#endif
