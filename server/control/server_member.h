/* SPDX-License-Identifier: MIT */
/*
 * The place of one follower at its leader, and what the leader knows of the follower that has it.
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_SERVER_MEMBER_H
#define MST_SERVER_CONTROL_SERVER_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/transport/transport.h"
#include "common/wire/message.h"

enum mst_server_member_state {
	MST_SERVER_MEMBER_AWAITED,   /* no follower has the place */
	MST_SERVER_MEMBER_JOINED,    /* a follower has the place */
	MST_SERVER_MEMBER_APPOINTED, /* the follower has been told the job */
	MST_SERVER_MEMBER_LINKED,    /* its server link was up, once or more */
	MST_SERVER_MEMBER_READY,     /* workers may ask it for links */
	MST_SERVER_MEMBER_GONE,      /* the follower is lost for good */
	MST_SERVER_MEMBER_STATES
};

enum mst_server_member_event {
	MST_SERVER_MEMBER_JOIN,
	MST_SERVER_MEMBER_APPOINT,
	MST_SERVER_MEMBER_LINK, /* the server link is up, for the first time or again */
	MST_SERVER_MEMBER_SERVE,
	/* the follower is lost while the job goes on; before its appointment it can be replaced */
	MST_SERVER_MEMBER_LOSE,
	MST_SERVER_MEMBER_PART, /* the follower is gone, and the job is over */
	MST_SERVER_MEMBER_EVENTS
};

/* As mst_job_enter(). */
bool mst_server_member_enter(enum mst_server_member_state *state,
			     enum mst_server_member_event event);

struct mst_server_member {
	enum mst_server_member_state state;
	char peer[64];
	char listener[MST_LISTENER_LEN];
	/* The last link that was offered to the follower: its token, whether that may still be
	 * used, and its number, from 1. */
	uint8_t token[MST_TOKEN_LEN];
	bool token_is_unused;
	uint64_t offers;
	/* A link with this token is being made, perhaps of an earlier offer: the follower may know
	 * of the link before this server does. */
	bool linking;
	uint8_t linking_token[MST_TOKEN_LEN];
	/* The last sign of life, by the clock of mst_hearing. Once the follower is ready, only
	 * rounds of its data thread count as one. */
	uint64_t heard_ns;
	uint64_t passes; /* rounds of the follower's data thread, as it has reported last */
	/* Start states that were passed on completely, and that the follower says have arrived. */
	uint64_t states_sent, states_done;
};

/* The follower has used its token: a link is being made. An earlier link that is still being made
 * is not needed any more. */
void mst_server_member_link_begins(struct mst_server_member *s);
/* The link of @token has been made, or could not be.
 * Return: is it the link that was offered last? */
bool mst_server_member_link_made(struct mst_server_member *s, const uint8_t *token);

#endif
