/* SPDX-License-Identifier: MIT */
/*
 * Finds the reason why a session has ended, and its sentence. The leader may have said so on the
 * control connection, a server by its session word, and a link by how it broke; often several of
 * them tell of the same end, and some know more than others. Here it is decided who is believed,
 * and the sentence is made.
 */
#ifndef MST_CLIENT_SESSION_END_CAUSE_H
#define MST_CLIENT_SESSION_END_CAUSE_H

#include "client/session/inbound.h"
#include "client/session/session.h"
#include "common/base/reason.h"

struct mst_end_cause {
	struct mst_client_session *session;
	const struct mst_links *links;
	const struct mst_inbound *inbound;
	const struct mst_worker *worker;
	struct mst_reason *failure;

	bool waited; /* this call has already waited for what the leader may still say */
};

/* The session has ended. Return: the error that ended it, which has its sentence. */
int mst_end_cause_tell(const struct mst_end_cause *e);

#endif
