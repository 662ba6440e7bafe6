/* SPDX-License-Identifier: MIT */
/*
 * Whatever bytes come, the decoder refuses them or gives a message that encodes to the same bytes:
 * nothing but what the encoder could have written gets in.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct mst_message message;
	static uint8_t again[MST_FRAME_HEADER + MST_FRAME_BODY_MAX];
	uint32_t protocol;
	int64_t length = mst_frame_length(data, size, &protocol);

	if (length <= 0 || (uint64_t)length != size)
		return 0;
	memset(&message, 0, sizeof(message));
	if (mst_message_decode(data, size, &message) != 0)
		return 0;
	if (mst_message_encode(&message, again, sizeof(again)) != length ||
	    memcmp(data, again, size) != 0)
		abort();
	return 0;
}
