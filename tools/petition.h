/* SPDX-License-Identifier: MIT */
/* Asks a job's leader for a change over the control connection, and waits for its answer. */
#ifndef MST_TOOLS_PETITION_H
#define MST_TOOLS_PETITION_H

#include <stddef.h>
#include <stdint.h>

#include "common/wire/message.h"

/* Sends @msg, a MST_MSG_POLICY, REST, EVICT or END_JOB, to @address and waits for the answer, at
 * most @timeout_ns in all.
 * @answer: a sentence: what will be, or why not.
 * Return: 0: it is done; or -errno, of the leader's refusal or of the connection. */
int mst_petition(const char *address, const struct mst_message *msg, uint64_t timeout_ns,
		 char *answer, size_t len);
/* The same for a command: prints the answer.
 * Return: its exit status. */
int mst_petition_and_tell(const char *address, const struct mst_message *msg, uint64_t timeout_ns);

#endif
