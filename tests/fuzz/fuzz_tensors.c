/* SPDX-License-Identifier: MIT */
/*
 * The input is a line with the bytes of data, and then the JSON of a part's header, which gets its
 * length and, where it has a place for one, a right checksum. It is refused in a clause, or its
 * tensors cover data and part, and it is composed to a header that is read back to the same.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/crc32c.h"
#include "common/base/reason.h"
#include "common/base/text.h"
#include "common/checkpoint/manifest/json.h"
#include "common/checkpoint/manifest/tensors.h"

#define CRC_KEY "\"header_crc32c\":\""
#define CRC_DIGITS 8u

static struct mst_reason why;

static void check(const struct mst_tensor_file *f)
{
	uint64_t end = 0;

	MST_ASSERT(f->first + f->count <= f->id.elems && f->part < f->parts);
	for (uint32_t i = 0; i < f->tensors; i++) {
		const struct mst_tensor_entry *t = &f->tensor[i];
		MST_ASSERT(t->begin == end && t->end > t->begin);
		MST_ASSERT(t->count == (t->end - t->begin) / mst_dtype_bytes(t->type));
		MST_ASSERT(t->first >= f->first && t->count <= f->count);
		MST_ASSERT(t->first - f->first <= f->count - t->count);
		MST_ASSERT(mst_text_is_clean(t->name) && mst_text_is_clean(t->group));
		end = t->end;
	}
	MST_ASSERT(f->data + end == f->bytes);
}

/* Composes it and reads that. Other lengths than the format's own, and texts that only a header of
 * another writer has, may be refused; what is taken is the same. */
static void check_again(struct mst_tensor_file *f)
{
	struct mst_tensor_file back;
	char *header = NULL;

	MST_ASSERT(mst_tensor_file_compose(f, &header) == 0);
	MST_ASSERT(f->data % MST_TENSORS_PAGE == 0);
	if (mst_tensor_file_parse(header, f->data, f->bytes, &back, &why) == 0) {
		MST_ASSERT(back.header_crc == f->header_crc && back.tensors == f->tensors);
		for (uint32_t i = 0; i < f->tensors; i++)
			MST_ASSERT(strcmp(back.tensor[i].name, f->tensor[i].name) == 0 &&
				   back.tensor[i].crc == f->tensor[i].crc);
		mst_tensor_file_fini(&back);
	}
	free(header);
}

static void put_length(char *header, uint64_t length)
{
	for (unsigned i = 0; i < MST_TENSORS_PREFIX; i++)
		header[i] = (char)(uint8_t)(length >> 8 * i);
}

/* Puts a right checksum where one belongs, if there is such a place. */
static void put_crc(char *header, size_t len)
{
	char *at = memmem(header, len, CRC_KEY, strlen(CRC_KEY));
	char digits[CRC_DIGITS + 1];

	if (at == NULL || (size_t)(header + len - at) < strlen(CRC_KEY) + CRC_DIGITS)
		return;
	at += strlen(CRC_KEY);
	memset(at, '0', CRC_DIGITS);
	(void)snprintf(digits, sizeof(digits), "%08" PRIx32, mst_crc32c(0, header, len));
	memcpy(at, digits, CRC_DIGITS);
}

static void parse(const char *header, size_t len, uint64_t bytes)
{
	struct mst_tensor_file f;

	why.text[0] = '\0';
	int rc = mst_tensor_file_parse(header, len, bytes, &f, &why);
	MST_ASSERT(rc <= 0 && (rc == 0) == (why.text[0] == '\0'));
	if (rc != 0)
		return;
	check(&f);
	check_again(&f);
	mst_tensor_file_fini(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	const char *json = size > 0 ? mst_json_digits(text, text + size, &(uint64_t){ 0 }) : NULL;
	uint64_t bytes = 0;

	if (json == NULL || json == text + size)
		return 0;
	(void)mst_json_digits(text, text + size, &bytes);
	json++;
	size_t len = MST_TENSORS_PREFIX + (size_t)(text + size - json);
	char *header = malloc(len);
	MST_ASSERT(header != NULL);
	put_length(header, len - MST_TENSORS_PREFIX);
	memcpy(header + MST_TENSORS_PREFIX, json, len - MST_TENSORS_PREFIX);
	parse(header, len, len + bytes);
	put_crc(header, len);
	parse(header, len, len + bytes);
	free(header);
	return 0;
}
