/* SPDX-License-Identifier: MIT */
/*
 * The input is a manifest without its last lines. As it is it is refused; with the lines that give
 * it a right checksum it is refused in a sentence, or is a manifest whose figures agree, and which
 * is composed to a text that is read back to the same.
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
#include "common/checkpoint/manifest/manifest_fields.h"

static struct mst_reason why;

static void check(const struct mst_checkpoint_manifest *m)
{
	uint64_t end = 0;

	MST_ASSERT(m->parts > 0 && m->parts <= MST_CHECKPOINT_PARTS_MAX);
	MST_ASSERT(m->groups > 0 && m->groups <= MST_CHECKPOINT_GROUPS_MAX);
	for (uint32_t i = 0; i < m->parts; i++) {
		MST_ASSERT(m->part[i].first == end && m->part[i].count > 0);
		MST_ASSERT(strchr(m->part[i].file, '/') == NULL);
		end += m->part[i].count;
	}
	MST_ASSERT(end == m->id.elems);
	MST_ASSERT(strlen(m->id.save) == MST_CHECKPOINT_SAVE_LEN - 1);
	MST_ASSERT(mst_text_is_clean(m->id.job) && mst_text_is_clean(m->policy));
	for (uint32_t i = 0; i < m->values.count; i++) {
		double real;
		(void)mst_values_real(&m->values, m->values.value[i].name, &real);
		MST_ASSERT(mst_text_is_clean(m->values.value[i].name));
	}
}

/* Composing what was composed and parsed changes nothing. */
static void check_again(const struct mst_checkpoint_manifest *m)
{
	struct mst_checkpoint_manifest back;
	char *first = NULL, *second = NULL;
	size_t first_len = 0, second_len = 0;

	MST_ASSERT(mst_checkpoint_manifest_compose(m, &first, &first_len, &why) == 0);
	MST_ASSERT(mst_checkpoint_manifest_parse(first, first_len, &back, &why) == 0);
	MST_ASSERT(mst_checkpoint_manifest_compose(&back, &second, &second_len, &why) == 0);
	MST_ASSERT(first_len == second_len && memcmp(first, second, first_len) == 0);
	free(first);
	free(second);
	mst_checkpoint_manifest_fini(&back);
}

/* Return: whether it was a manifest. */
static bool parse(const char *text, size_t len)
{
	struct mst_checkpoint_manifest m;

	why.text[0] = '\0';
	int rc = mst_checkpoint_manifest_parse(text, len, &m, &why);
	MST_ASSERT(rc <= 0 && (rc == 0) == (why.text[0] == '\0'));
	if (rc != 0)
		return false;
	check(&m);
	check_again(&m);
	mst_checkpoint_manifest_fini(&m);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 64);

	MST_ASSERT(text != NULL);
	if (size > 0)
		memcpy(text, data, size);
	(void)parse(text, size);
	int end = snprintf(text + size, 64,
			   MST_MANIFEST_END_BEGIN "%08" PRIx32 MST_MANIFEST_END_END,
			   mst_crc32c(0, text, size));
	(void)parse(text, size + (size_t)end);
	free(text);
	return 0;
}
