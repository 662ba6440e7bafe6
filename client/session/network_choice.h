/* SPDX-License-Identifier: MIT */
/*
 * Which network a worker's links go over: the first of those that it may use which all servers of
 * the job offer and which works to all of them. A network that has failed is passed over when the
 * worker joins the next time.
 */
#ifndef MST_CLIENT_SESSION_NETWORK_CHOICE_H
#define MST_CLIENT_SESSION_NETWORK_CHOICE_H

#include "common/transport/transport.h"
#include "common/wire/message.h"

struct mst_network_choice {
	struct mst_networks may;  /* be used, as MUSTER_TRANSPORT says */
	struct mst_networks left; /* that may still be taken */
	struct mst_reason passed; /* over which, and why: "not shm: ..."; "": none */
};

void mst_network_choice_init(struct mst_network_choice *c, const struct mst_networks *may);
/* The first network that is left, by the welcome's listeners, and by what this host can tell
 * without asking anybody. @why: on failure a sentence.
 * Return: 0; -EINVAL, -EPROTO: none is offered by all that may be used; -EPROTONOSUPPORT: none that
 * this build has; or why the last of them cannot be. */
int mst_network_choice_take(struct mst_network_choice *c, const struct mst_welcome *welcome,
			    const struct mst_transport **out, struct mst_reason *why);
/* It has failed. Return: another is left. */
bool mst_network_choice_pass(struct mst_network_choice *c, const struct mst_transport *failed,
			     const char *why);

#endif
