/* SPDX-License-Identifier: MIT */
/* Encodes messages. A wrong message is a mistake of this program, so it is asserted; only a buffer
 * that is too small is an error. */
#include <errno.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/wire/message_fields.h"

struct frame_head {
	uint32_t magic;
	uint16_t protocol, kind;
	uint32_t length; /* of the body */
};
static_assert(sizeof(struct frame_head) == MST_FRAME_HEADER, "on the wire: no padding");

int64_t mst_message_encode(const struct mst_message *msg, void *buffer, size_t room)
{
	const struct mst_body *body = mst_body_of((uint32_t)msg->kind);
	struct frame_head head = { MST_FRAME_MAGIC, MST_PROTOCOL, (uint16_t)msg->kind, 0 };

	MST_ASSERT(body != NULL);
	if (room < sizeof(head))
		return -ENOSPC;
	int64_t length = mst_fields_encode(&body->shape, (const uint8_t *)msg + body->base,
					   (uint8_t *)buffer + sizeof(head), room - sizeof(head));
	if (length < 0)
		return length;
	MST_ASSERT(length <= MST_FRAME_BODY_MAX);
	head.length = (uint32_t)length;
	memcpy(buffer, &head, sizeof(head));
	return (int64_t)sizeof(head) + length;
}
