/* SPDX-License-Identifier: MIT */
/*
 * The control plane of a leader. Its parts see only those above them in this list:
 *
 *   followers  the other servers, each with a follower_place; follower_links: their links
 *   leading    what it does with what they say, and with their silence
 *   comparing  has a worker the model of the others?
 *   joining    from hello to welcome
 *   state_transfer   a worker's state for another one; lending: the average for a worker
 *   start_sender  the worker whose start state the job begins with
 *   workers    messages from and to workers; finishing: the end of the job
 *   reporting  the status
 *   switching, resting, ending, resizing  changes that an operator asks for
 *   stopping   it is told to end
 */
#ifndef MST_SERVER_CONTROL_LEADER_PLANE_H
#define MST_SERVER_CONTROL_LEADER_PLANE_H

#include "common/base/reason.h"
#include "server/control/members/joining.h"
#include "server/control/members/leading.h"
#include "server/control/members/workers.h"
#include "server/control/operator/ending.h"
#include "server/control/operator/reporting.h"
#include "server/control/operator/resizing.h"
#include "server/control/operator/resting.h"
#include "server/control/operator/straggling.h"
#include "server/control/operator/switching.h"
#include "server/control/plane_role.h"
#include "server/control/stopping.h"
#include "server/control/transfer/lending.h"
#include "server/control/transfer/state_transfer.h"

struct mst_leader_plane {
	struct mst_base *base;
	struct mst_leading leading;
	struct mst_joining joining;
	struct mst_state_transfer state_transfer;
	struct mst_lending lending;
	struct mst_workers workers;
	struct mst_reporting reporting;
	struct mst_switching switching;
	struct mst_resting resting;
	struct mst_endings ending;
	struct mst_stopping stopping;
};

extern const struct mst_plane_role mst_leader_role;

/* The base's job is there. @access: for the status.
 * @why: on failure a sentence.
 * Return: 0 or -errno. */
int mst_leader_plane_init(struct mst_leader_plane *p, struct mst_base *base, enum mst_access access,
			  struct mst_reason *why);

#endif
