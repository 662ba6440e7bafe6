/* SPDX-License-Identifier: MIT */
/*
 * Whatever bytes come, the decoder refuses them or gives a message that can be encoded, to no more
 * bytes than came: fields in another order, and those that are not known here, are not written
 * again. What has been decoded once comes back as it is.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/wire/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct mst_message message;

/* Return: how long the message is when it is encoded again, to @out; 0: it does not decode. */
static size_t there_and_back(const uint8_t *data, size_t size, uint8_t *out)
{
	struct mst_unknown unknown;

	/* What was there before makes no difference. */
	memset(&message, 0xa5, sizeof(message));
	if (mst_message_decode(data, size, &message, &unknown) != 0) {
		if (unknown.tag != 0)
			MST_ASSERT(mst_unknown_say(&unknown).text[0] != '\0');
		return 0;
	}
	int64_t length = mst_message_encode(&message, out, size);
	MST_ASSERT(length > 0);
	return (size_t)length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t once[MST_FRAME_HEADER + MST_FRAME_BODY_MAX], twice[sizeof(once)];
	uint32_t protocol;
	int64_t length = mst_frame_length(data, size, &protocol);

	if (length <= 0 || (uint64_t)length != size)
		return 0;
	size_t back = there_and_back(data, size, once);
	if (back > 0)
		MST_ASSERT(there_and_back(once, back, twice) == back &&
			   memcmp(once, twice, back) == 0);
	return 0;
}
