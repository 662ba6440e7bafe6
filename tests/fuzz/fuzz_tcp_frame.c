/* SPDX-License-Identifier: MIT */
/*
 * What may come over the connection of a link: whatever bytes there are, a frame that is taken lies
 * within the bounds, a hello that is taken asks for what can be, and both come back as they were.
 * The first byte says which of the two it is.
 */
#include <stdint.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/transport/tcp/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bounds, 6 bytes, and the frame. */
static void try_frame(const uint8_t *data, size_t size)
{
	uint8_t text[6 + MST_TCP_FRAME_BYTES] = { 0 }, back[MST_TCP_FRAME_BYTES];
	struct mst_tcp_frame f;
	struct mst_reason why = { "" };

	memcpy(text, data, size < sizeof(text) ? size : sizeof(text));
	struct mst_tcp_bounds b = { .bytes = (size_t)text[0] << 8 | text[1] };
	b.end = b.bytes - ((size_t)text[2] << 8 | text[3]) % (b.bytes + 1);
	b.from = b.end - ((size_t)text[4] << 8 | text[5]) % (b.end + 1);
	mst_tcp_frame_decode(text + 6, &f);
	mst_tcp_frame_encode(&f, back);
	MST_ASSERT(memcmp(back, text + 6, sizeof(back)) == 0);
	if (mst_tcp_frame_check(&f, &b, &why) != 0) {
		MST_ASSERT(why.text[0] != '\0');
		return;
	}
	MST_ASSERT(f.length <= b.bytes);
	if (f.length == 0)
		return;
	MST_ASSERT(f.offset < b.bytes && f.length <= b.bytes - f.offset);
	uint64_t last = f.offset + f.length - 1;
	MST_ASSERT((f.offset < b.from) == (last < b.from) && (f.offset < b.end) == (last < b.end));
}

static void try_hello(const uint8_t *data, size_t size)
{
	uint8_t text[MST_TCP_HELLO_BYTES] = { 0 }, back[MST_TCP_HELLO_BYTES];
	struct mst_tcp_hello h;

	memcpy(text, data, size < sizeof(text) ? size : sizeof(text));
	if (mst_tcp_hello_decode(text, &h) != 0)
		return;
	MST_ASSERT(mst_tcp_hello_begins(text, sizeof(text)));
	MST_ASSERT(mst_tcp_lanes_check(&h.lanes) == 0);
	MST_ASSERT(h.at <= h.lanes.down_bytes && h.bytes <= h.lanes.down_bytes - h.at);
	mst_tcp_hello_encode(&h, back);
	MST_ASSERT(memcmp(back, text, sizeof(back)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] % 2 == 0)
		try_frame(data + 1, size - 1);
	else
		try_hello(data + 1, size - 1);
	return 0;
}
