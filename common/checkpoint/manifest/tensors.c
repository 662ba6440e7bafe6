/* SPDX-License-Identifier: MIT */
/* Composes the header. */
#include "common/checkpoint/manifest/tensors.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/crc32c.h"
#include "common/checkpoint/manifest/json_out.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "safetensors is little-endian");

#define NO_CRC "00000000"
#define CRC_KEY "\"header_crc32c\":\""

void mst_tensor_file_fini(struct mst_tensor_file *f)
{
	free(f->tensor);
	free(f->names);
	f->tensor = NULL;
	f->names = NULL;
}

/* In place of its own checksum it has zeros. Return: where they are, in bytes. */
static size_t compose_common(struct mst_json_out *o, const struct mst_tensor_file *f)
{
	mst_json_out_format(o,
			    "{\"__metadata__\":{\"format\":\"muster-checkpoint\","
			    "\"format_version\":\"%u\"," CRC_KEY,
			    MST_CHECKPOINT_FORMAT);
	size_t at = o->len;
	mst_json_out_format(o, NO_CRC "\",\"job\":");
	mst_json_out_text(o, f->id.job);
	mst_json_out_format(
		o, ",\"save\":\"%s\",\"version\":\"%" PRIu64 "\",\"elems\":\"%" PRIu64 "\"",
		f->id.save, f->id.version, f->id.elems);
	mst_json_out_format(o, ",\"part\":\"%" PRIu32 "\",\"parts\":\"%" PRIu32 "\"", f->part,
			    f->parts);
	mst_json_out_format(o, ",\"first\":\"%" PRIu64 "\",\"count\":\"%" PRIu64 "\"", f->first,
			    f->count);
	return at;
}

static void compose_about(struct mst_json_out *o, const struct mst_tensor_entry *t)
{
	mst_json_out_format(o, ",");
	mst_json_out_prefixed_text(o, "tensor/", t->name);
	mst_json_out_format(o,
			    ":\"group=%s first=%" PRIu64 " offset=%" PRIu64 " of=%" PRIu64
			    " crc32c=%08" PRIx32 "\"",
			    t->group, t->first, t->offset, t->total, t->crc);
}

static void compose_tensor(struct mst_json_out *o, const struct mst_tensor_entry *t)
{
	mst_json_out_format(o, ",\n");
	mst_json_out_text(o, t->name);
	mst_json_out_format(o,
			    ":{\"dtype\":\"%s\",\"shape\":[%" PRIu64 "],\"data_offsets\":[%" PRIu64
			    ",%" PRIu64 "]}",
			    mst_dtype_name(t->type), t->count, t->begin, t->end);
}

/* Spaces, so that data begin with a page. */
static void pad(struct mst_json_out *o)
{
	size_t used = o->len % MST_TENSORS_PAGE;

	if (used > 0)
		mst_json_out_format(o, "%*s", (int)(MST_TENSORS_PAGE - used), "");
}

static void put_length(char *header, uint64_t length)
{
	for (unsigned i = 0; i < MST_TENSORS_PREFIX; i++)
		header[i] = (char)(uint8_t)(length >> 8 * i);
}

int mst_tensor_file_compose(struct mst_tensor_file *f, char **out)
{
	struct mst_json_out o = { 0 };
	char crc[sizeof(NO_CRC)];

	mst_json_out_format(&o, "%*s", (int)MST_TENSORS_PREFIX, "");
	size_t at = compose_common(&o, f);
	for (uint32_t i = 0; i < f->tensors && !o.failed; i++)
		compose_about(&o, &f->tensor[i]);
	mst_json_out_format(&o, "}");
	for (uint32_t i = 0; i < f->tensors && !o.failed; i++)
		compose_tensor(&o, &f->tensor[i]);
	mst_json_out_format(&o, "}");
	pad(&o);
	if (o.failed || o.len > MST_TENSORS_HEADER_MAX) {
		free(o.text);
		return o.failed ? -ENOMEM : -E2BIG;
	}
	put_length(o.text, o.len - MST_TENSORS_PREFIX);
	f->header_crc = mst_crc32c(0, o.text, o.len);
	(void)snprintf(crc, sizeof(crc), "%08" PRIx32, f->header_crc);
	memcpy(o.text + at, crc, sizeof(crc) - 1);
	f->data = o.len;
	f->bytes = o.len + (f->tensors > 0 ? f->tensor[f->tensors - 1].end : 0);
	*out = o.text;
	return 0;
}
