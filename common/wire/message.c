/* SPDX-License-Identifier: MIT */
/* Encodes messages, and decodes frames, which may come from any peer. A wrong message is a mistake
 * of this program, so it is asserted when it is encoded; only a buffer that is too small is an
 * error. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
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

/* STATUS is read by any tool that looks at a job, also of another release: what its fields are
 * stays as it is, and the error that refuses it is a sentence. */
static bool is_for_all(uint16_t kind, uint16_t protocol)
{
	return protocol >= MST_PROTOCOL_FIELDS &&
	       (kind == MST_MSG_ASK_STATUS || kind == MST_MSG_STATUS ||
		kind == MST_MSG_STATUS_RANKS || kind == MST_MSG_ERROR);
}

int64_t mst_frame_length(const void *buffer, size_t have, uint32_t *protocol)
{
	const uint8_t *at = buffer;
	uint32_t magic = MST_FRAME_MAGIC, length;
	uint16_t spoken, kind;

	if (protocol != NULL)
		*protocol = 0;
	if (have == 0)
		return 0;
	/* A peer that speaks something else is recognised by the first byte that differs. */
	if (memcmp(at, &magic, have < sizeof(magic) ? have : sizeof(magic)) != 0)
		return -EPROTO;
	if (have < MST_FRAME_HEADER)
		return 0;
	memcpy(&spoken, at + 4, sizeof(spoken));
	memcpy(&kind, at + 6, sizeof(kind));
	memcpy(&length, at + 8, sizeof(length));
	if (protocol != NULL)
		*protocol = spoken;
	if (spoken != MST_PROTOCOL && !is_for_all(kind, spoken))
		return -EPROTO;
	if (length > MST_FRAME_BODY_MAX)
		return -EMSGSIZE;
	return (int64_t)MST_FRAME_HEADER + length;
}

int mst_message_decode(const void *frame, size_t length, struct mst_message *out,
		       struct mst_unknown *unknown)
{
	const uint8_t *at = frame;
	const struct mst_body *body;
	struct mst_unknown lacks = { 0, 0 };

	if (unknown != NULL)
		*unknown = lacks;
	if (length < MST_FRAME_HEADER || mst_frame_length(frame, length, NULL) != (int64_t)length)
		return -EPROTO;
	memcpy(&lacks.kind, at + 6, sizeof(lacks.kind));
	body = mst_body_of(lacks.kind);
	if (body == NULL)
		return -EPROTO;

	out->kind = (enum mst_message_kind)lacks.kind;
	int rc = mst_fields_decode(&body->shape, at + MST_FRAME_HEADER, length - MST_FRAME_HEADER,
				   (uint8_t *)out + body->base, &lacks.tag);
	if (unknown != NULL && lacks.tag != 0)
		*unknown = lacks;
	return rc;
}

struct mst_unknown_words mst_unknown_say(const struct mst_unknown *unknown)
{
	const struct mst_body *body = mst_body_of(unknown->kind);
	struct mst_unknown_words words;

	MST_ASSERT(body != NULL);
	(void)snprintf(
		words.text, sizeof(words.text),
		"sent a message %s with field %u, which this release of muster does not know "
		"and may not skip; use one release on both sides, or a newer one here",
		body->name, unknown->tag);
	return words;
}
