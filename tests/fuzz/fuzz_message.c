/* SPDX-License-Identifier: MIT */
/*
 * Whatever bytes come, the decoder refuses them or gives a message that encodes to the same bytes,
 * but for bytes of texts that became '?': nothing but what the encoder could have written gets in,
 * and what has been decoded once comes back as it is.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/wire/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct mst_message message;

/* Return: does @data decode? Then @out is what the message encodes to, as long as @data. */
static int there_and_back(const uint8_t *data, size_t size, uint8_t *out)
{
	memset(&message, 0, sizeof(message));
	if (mst_message_decode(data, size, &message) != 0)
		return 0;
	MST_ASSERT(mst_message_encode(&message, out, MST_FRAME_HEADER + MST_FRAME_BODY_MAX) ==
		   (int64_t)size);
	return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t once[MST_FRAME_HEADER + MST_FRAME_BODY_MAX], twice[sizeof(once)];
	uint32_t protocol;
	int64_t length = mst_frame_length(data, size, &protocol);

	if (length <= 0 || (uint64_t)length != size || !there_and_back(data, size, once))
		return 0;
	for (size_t i = 0; i < size; i++)
		MST_ASSERT(once[i] == data[i] || once[i] == '?');
	MST_ASSERT(there_and_back(once, size, twice) && memcmp(once, twice, size) == 0);
	return 0;
}
