/* SPDX-License-Identifier: MIT */
/* Linked into state_transfer: the states that it gives break the protocol, as STATE_TRANSFER_LIE
 * says. */
#include <stdlib.h>
#include <string.h>

#include "common/wire/message.h"

int64_t __real_mst_message_encode(const struct mst_message *msg, void *buffer, size_t room);
int64_t __wrap_mst_message_encode(const struct mst_message *msg, void *buffer, size_t room);

static void lie(const char *how, struct mst_handed *h)
{
	bool begins = h->piece.offset == 0;

	if (strcmp(how, "newer") == 0) /* a version that it cannot have */
		h->version += 1000;
	else if (strcmp(how, "older") == 0) /* one that it has left behind */
		h->version = 1;
	else if (strcmp(how, "unasked") == 0)
		h->number++;
	else if (strcmp(how, "gap") == 0 && !begins)
		h->piece.offset--;
	else if (strcmp(how, "mixed") == 0 && !begins) /* of two versions */
		h->version++;
	else if (strcmp(how, "cut") == 0 && !begins) /* shorter than it said at first */
		h->piece.total--, h->piece.length--;
}

int64_t __wrap_mst_message_encode(const struct mst_message *msg, void *buffer, size_t room)
{
	static _Thread_local struct mst_message lies;
	const char *how = getenv("STATE_TRANSFER_LIE");

	if (how == NULL || msg->kind != MST_MSG_GIVE)
		return __real_mst_message_encode(msg, buffer, room);
	lies.kind = msg->kind;
	lies.handed = msg->handed;
	lie(how, &lies.handed);
	return __real_mst_message_encode(&lies, buffer, room);
}
