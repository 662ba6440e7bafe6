/* SPDX-License-Identifier: MIT */
/*
 * The secret token by which a link is bound to a control connection. A worker is told it with its
 * welcome, and shows it once to each server. A server takes it as spent the first time that it is
 * shown, also if it refuses the request; but what the transport drops before it is a whole request
 * (struct mst_link_listener_ops) is not shown. The token is of no use after its session, or after
 * its time.
 *
 * It is good from the addresses alone that its owner has announced. Shown from elsewhere it is not
 * known and not spent: else a peer that has read it could spend it from any host, and keep its
 * owner out. A caller gains nothing by further tries, since the address is no secret that it could
 * guess. Over shared memory there is no address: the listener's socket lets in processes of this
 * host, by their user.
 */
#ifndef MST_SERVER_CONTROL_MEMBERS_TOKEN_H
#define MST_SERVER_CONTROL_MEMBERS_TOKEN_H

#include <stdint.h>

#include "common/base/clock.h"
#include "common/transport/token.h"

/* How long after its welcome a worker may ask for its link, and a second more for so many bytes of
 * its memory at all servers. Time in which a server did not answer requests does not count. */
#define MST_TOKEN_NS (30 * MST_SECOND)
#define MST_TOKEN_BYTES (UINT64_C(256) << 20)

/* The token of a session for one of the job's servers, made in place from the one that the leader
 * has drawn. They differ so that a worker that was led to another server is known there to be
 * wrong: what should be the address of one host may be that of several. */
static inline void mst_token_of_server(uint8_t token[MST_TOKEN_LEN], uint32_t server)
{
	token[0] ^= (uint8_t)server;
}

#endif
