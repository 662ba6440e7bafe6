/* SPDX-License-Identifier: MIT */
/*
 * Who may say what: the role that each kind of message asks for. The plane asks here before it
 * handles a message of anybody; nothing else in the control plane looks at roles. Pure.
 *
 * A peer that has proven nothing has all roles: there its address decides
 * (server/options/access.h).
 */
#ifndef MST_SERVER_CONTROL_CONNECTIONS_ROLES_H
#define MST_SERVER_CONTROL_CONNECTIONS_ROLES_H

#include "common/transport/principal.h"
#include "common/wire/message.h"
#include "server/control/connections/conn.h"

/* The roles whose holders may send a message of this kind, each of them alone, over a connection
 * with a peer of this @role; 0: nobody may. */
uint32_t mst_roles_for(enum mst_message_kind kind, enum mst_conn_role role);

/* May the peer of @c send a message of this kind?
 * @why: if not, a sentence without its subject: what it may not do, which role its certificate
 * gives, and which is needed. */
bool mst_roles_allow(const struct mst_conn *c, enum mst_message_kind kind, char *why, size_t len);

/* Has the peer of @c proven that it is an operator, and not every role at once? */
static inline bool mst_roles_is_operator(const struct mst_conn *c)
{
	return c->principal.proven && (c->principal.roles & MST_ROLE_OPERATOR) != 0;
}

/* Has it proven that it may see the status, and not every role at once? */
static inline bool mst_roles_is_observer(const struct mst_conn *c)
{
	return c->principal.proven && (c->principal.roles & MST_ROLE_OBSERVER) != 0;
}

#endif
