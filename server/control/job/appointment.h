/* SPDX-License-Identifier: MIT */
/* What a leader appoints a follower to, as the follower checks it. Pure. */
#ifndef MST_SERVER_CONTROL_JOB_APPOINTMENT_H
#define MST_SERVER_CONTROL_JOB_APPOINTMENT_H

#include "common/base/reason.h"
#include "common/wire/message.h"

/* Can there be such a job, and a server of this release in it? @leader: its address.
 * @why: a sentence.
 * Return: 0 or -EPROTO. */
int mst_appointment_check(const struct mst_appoint *p, const char *leader, struct mst_reason *why);

#endif
