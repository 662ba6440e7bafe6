/* SPDX-License-Identifier: MIT */
/*
 * The role that a peer needs to send each kind of message. The plane asks this module before it
 * handles any message; nothing else in the control plane looks at roles. Pure.
 *
 * A peer without a certificate has all roles: its address decides whether it may connect at all
 * (server/options/access.h).
 */
#ifndef MST_SERVER_CONTROL_CONNECTIONS_ROLES_H
#define MST_SERVER_CONTROL_CONNECTIONS_ROLES_H

#include "common/base/reason.h"
#include "common/transport/principal.h"
#include "common/wire/message.h"
#include "server/control/connections/conn.h"

/* The set of roles that allow a peer to send a message of this kind: any one of them is enough.
 * @role: what the connection is to this server. Return: 0: no role allows it. */
uint32_t mst_roles_for(enum mst_message_kind kind, enum mst_conn_role role);

/* May the peer of @c send a message of this kind?
 * @why: if not, a sentence without its subject: what it may not do, which role its certificate
 * gives, and which is needed. */
bool mst_roles_allow(const struct mst_conn *c, enum mst_message_kind kind, struct mst_reason *why);

/* Has the peer of @c a certificate with the role of an operator? (A peer without a certificate has
 * every role, and does not count.) */
static inline bool mst_roles_is_operator(const struct mst_conn *c)
{
	return c->principal.proven && (c->principal.roles & MST_ROLE_OPERATOR) != 0;
}

/* Has the peer of @c a certificate with the role of an observer? */
static inline bool mst_roles_is_observer(const struct mst_conn *c)
{
	return c->principal.proven && (c->principal.roles & MST_ROLE_OBSERVER) != 0;
}

#endif
