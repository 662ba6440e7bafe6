/* SPDX-License-Identifier: MIT */
/*
 * The place of one follower at its leader, and what the leader knows of the follower that has it.
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_MEMBERS_FOLLOWER_PLACE_H
#define MST_SERVER_CONTROL_MEMBERS_FOLLOWER_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/transport/transport.h"
#include "common/wire/message.h"

enum mst_follower_place_state {
	MST_FOLLOWER_PLACE_AWAITED,   /* no follower has the place */
	MST_FOLLOWER_PLACE_JOINED,    /* a follower has the place */
	MST_FOLLOWER_PLACE_APPOINTED, /* the follower has been told the job */
	MST_FOLLOWER_PLACE_LINKED,    /* its server link was up, once or more */
	MST_FOLLOWER_PLACE_READY,     /* workers may ask it for links */
	MST_FOLLOWER_PLACE_GONE,      /* the follower is lost for good */
	MST_FOLLOWER_PLACE_STATES
};

enum mst_follower_place_event {
	MST_FOLLOWER_PLACE_JOIN,
	MST_FOLLOWER_PLACE_APPOINT,
	MST_FOLLOWER_PLACE_LINK, /* the server link is up, for the first time or again */
	MST_FOLLOWER_PLACE_SERVE,
	/* the follower is lost while the job goes on; before its appointment it can be replaced */
	MST_FOLLOWER_PLACE_LOSE,
	MST_FOLLOWER_PLACE_PART, /* the follower is gone, and the job is over */
	MST_FOLLOWER_PLACE_EVENTS
};

/* As mst_job_enter(). */
bool mst_follower_place_enter(enum mst_follower_place_state *state,
			      enum mst_follower_place_event event);

struct mst_follower_place {
	enum mst_follower_place_state state;
	char peer[64];
	struct mst_origins origins; /* that it dials its server link from */
	char listener[MST_LISTENER_LEN];
	/* The last link that was offered to the follower: its token, whether that may still be
	 * used, and its number, from 1. */
	uint8_t token[MST_TOKEN_LEN];
	bool token_is_unused;
	uint64_t offers;
	uint64_t offered_ns; /* when it was, by the clock of mst_sessions */
	/* A link with this token is being made, perhaps of an earlier offer: the follower may know
	 * of the link before this server does. */
	bool linking;
	uint8_t linking_token[MST_TOKEN_LEN];
	const struct mst_transport *over; /* of its newest link; NULL: it has had none */
	/* The last sign of life, by the clock of mst_hearing. Once the follower is ready, only
	 * rounds of its data thread count as one. */
	uint64_t heard_ns;
	uint64_t passes; /* rounds of the follower's data thread, as it has reported last */
	/* Start states that were passed on completely, and that the follower says have arrived. */
	uint64_t states_sent, states_done;
};

/* Is @token the one that was offered last, unused?
 * Return: false: it is not, or the follower is gone. */
bool mst_follower_place_expects(const struct mst_follower_place *s, const uint8_t *token);
/* Spends the token of @request, if it is expected, and from there.
 * Return: false: it is not; then nothing is spent. */
bool mst_follower_place_spend(struct mst_follower_place *s, const struct mst_link_request *request);
/* The link of the token that was spent is being made. An earlier link that is still being made is
 * not needed any more. */
void mst_follower_place_link_begins(struct mst_follower_place *s);
/* The link of @token has been made, or could not be.
 * Return: is it the link that was offered last? */
bool mst_follower_place_link_made(struct mst_follower_place *s, const uint8_t *token);

#endif
