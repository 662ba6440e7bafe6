/* SPDX-License-Identifier: MIT */
#include "server/control/connections/roles.h"

#include <stdio.h>
#include <string.h>

#define WORKER MST_ROLE_WORKER
#define SERVER MST_ROLE_SERVER
#define OPERATOR MST_ROLE_OPERATOR
#define ALL MST_ROLES_ALL

/* What a leader is told. Kinds that no peer sends to a leader are not in the table: they break the
 * protocol, whoever sends them. */
static const struct right {
	uint32_t roles;
	const char *what; /* "may not ..." */
} rights[] = {
	[MST_MSG_HELLO] = { WORKER, "join as a worker" },
	[MST_MSG_START] = { WORKER, "act as a worker" },
	[MST_MSG_STATE] = { WORKER, "act as a worker" },
	[MST_MSG_HEARTBEAT] = { WORKER, "act as a worker" },
	[MST_MSG_LEAVE] = { WORKER, "act as a worker" },
	[MST_MSG_FINISH] = { WORKER, "act as a worker" },
	[MST_MSG_TENSORS] = { WORKER, "act as a worker" },
	[MST_MSG_REPORT] = { WORKER, "act as a worker" },
	[MST_MSG_CLAIM] = { WORKER, "act as a worker" },
	[MST_MSG_SET] = { WORKER, "act as a worker" },
	[MST_MSG_COMPARE] = { WORKER, "act as a worker" },
	[MST_MSG_GIVE] = { WORKER, "act as a worker" },
	[MST_MSG_TOOK] = { WORKER, "act as a worker" },
	[MST_MSG_ASK_AVERAGE] = { WORKER, "act as a worker" },
	[MST_MSG_AVERAGE] = { SERVER, "act as a server" },
	[MST_MSG_ASK_STATUS] = { ALL, "see the status" },
	[MST_MSG_SERVE] = { SERVER, "join as a server" },
	[MST_MSG_ERROR] = { SERVER, "act as a server" },
	[MST_MSG_READY] = { SERVER, "act as a server" },
	[MST_MSG_EXPECT] = { SERVER, "act as a server" },
	[MST_MSG_STATE_DONE] = { SERVER, "act as a server" },
	[MST_MSG_RELINK] = { SERVER, "act as a server" },
	[MST_MSG_BEAT] = { SERVER, "act as a server" },
	[MST_MSG_POLICY] = { OPERATOR, "change the policy of the job" },
	[MST_MSG_REST] = { OPERATOR, "have a worker rest or return" },
	[MST_MSG_EVICT] = { OPERATOR, "evict a worker" },
	[MST_MSG_END_JOB] = { OPERATOR, "finish the job" },
	[MST_MSG_WORKERS] = { OPERATOR, "change the number of workers" },
};

static const struct right *right_of(enum mst_message_kind kind)
{
	static const struct right nobody = { 0, "say this to a server" };
	size_t at = (size_t)kind;

	return at < sizeof(rights) / sizeof(rights[0]) && rights[at].what != NULL ? &rights[at]
										  : &nobody;
}

/* Whatever a leader says to a follower is believed of a server alone. */
uint32_t mst_roles_for(enum mst_message_kind kind, enum mst_conn_role role)
{
	return role == MST_CONN_LEAD ? SERVER : right_of(kind)->roles;
}

static void name_roles(uint32_t roles, char *out, size_t len)
{
	static const char *const name[] = { "worker", "server", "operator", "observer" };
	size_t used = 0;

	(void)snprintf(out, len, "none");
	for (unsigned i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		if ((roles & 1u << i) != 0 && used < len)
			used += (size_t)snprintf(out + used, len - used, "%s%s",
						 used > 0 ? ", " : "", name[i]);
	}
}

bool mst_roles_allow(const struct mst_conn *c, enum mst_message_kind kind, struct mst_reason *why)
{
	bool leads = c->role == MST_CONN_LEAD;
	uint32_t needed = mst_roles_for(kind, c->role);
	char has[64], wants[64];

	if (needed == 0 || (c->principal.roles & needed) != 0)
		return true;
	name_roles(c->principal.roles, has, sizeof(has));
	name_roles(needed, wants, sizeof(wants));
	mst_reason_set(why,
		       "(certificate \"%.63s\") may not %s: its certificate gives the role %s, and "
		       "the role %s is needed; use a certificate of that role",
		       c->principal.name, leads ? "lead this server" : right_of(kind)->what, has,
		       wants);
	return false;
}
