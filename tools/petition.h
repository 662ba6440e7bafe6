/* SPDX-License-Identifier: MIT */
/* Asks a job's leader for a change over the control connection, and waits for its answer. */
#ifndef MST_TOOLS_PETITION_H
#define MST_TOOLS_PETITION_H

#include <stdint.h>

#include "common/wire/message.h"

/* Sends @msg, a MST_MSG_POLICY, REST, EVICT or END_JOB, to @address and waits for the answer, at
 * most @timeout_ns in all. Prints the answer, or logs why it is a refusal or why there is none.
 * Return: the exit status of a command. */
int mst_petition(const char *address, const struct mst_message *msg, uint64_t timeout_ns);

#endif
