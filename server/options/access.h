/* SPDX-License-Identifier: MIT */
/* Decides which peers may join a job, and refuses to start a server that anybody could join.
 * Pure. */
#ifndef MST_SERVER_OPTIONS_ACCESS_H
#define MST_SERVER_OPTIONS_ACCESS_H

#include <stdbool.h>

#include "common/base/reason.h"
#include "common/transport/reach.h"
#include "common/wire/message.h"

struct mst_access_facts {
	const char *address; /* that the server listens on; of a follower, its leader's */
	bool joins;          /* it is the leader's */
	enum mst_reach reach;
	const char *data_address; /* that gradients come to, where that may be read on the way */
	enum mst_reach data_reach;
	bool has_certificates;
	bool insecure; /* the user means it */
};

/* What is not known is decided when the server listens or connects, which fails then.
 * @why: a sentence with the fix.
 * Return: 0 or -EINVAL. */
int mst_access_judge(const struct mst_access_facts *facts, enum mst_access *out,
		     struct mst_reason *why);

#endif
