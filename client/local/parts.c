/* SPDX-License-Identifier: MIT */
#include "client/local/parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"

static_assert(MUSTER_PART_TEXT_MAX == MST_NAME_LEN - 1, "a text has a NUL on the wire");

static bool is_text(const char *text)
{
	return strlen(text) <= MUSTER_PART_TEXT_MAX && mst_text_is_clean(text);
}

/* What is wrong with a part; NULL: nothing. */
static const char *wrong_with(const struct muster_part *parts, size_t at)
{
	const struct muster_part *part = &parts[at];

	if (part->name == NULL || part->name[0] == '\0' || !is_text(part->name))
		return "needs a name of 1 to 63 bytes of UTF-8";
	if (part->value != NULL && !is_text(part->value))
		return "has a value that is no UTF-8, or longer than 63 bytes";
	if (part->kind != MUSTER_PART_STATE && part->kind != MUSTER_PART_KERNEL)
		return "is of no known kind";
	for (size_t i = 0; i < at; i++) {
		if (strcmp(parts[i].name, part->name) == 0)
			return "has the name of an earlier one";
	}
	return NULL;
}

int mst_parts_check(struct mst_reason *failure, const char *call, const struct muster_part *parts,
		    size_t count)
{
	if (count > MUSTER_PARTS_MAX || (parts == NULL && count > 0))
		return mst_reason_fail(failure, -EINVAL,
				       "%s takes at most %u parts of a state, and was given %zu",
				       call, MUSTER_PARTS_MAX, count);
	for (size_t i = 0; i < count; i++) {
		const char *wrong = wrong_with(parts, i);
		if (wrong != NULL)
			return mst_reason_fail(failure, -EINVAL, "%s: part %zu %s", call, i, wrong);
	}
	return 0;
}

static void fill(const struct muster_part *part, struct mst_claim_part *out)
{
	(void)snprintf(out->name, sizeof(out->name), "%s", part->name);
	(void)snprintf(out->value, sizeof(out->value), "%s",
		       part->value != NULL ? part->value : "");
	out->digest = part->digest;
	out->kind = part->kind;
}

void mst_parts_fill(const struct muster_part *parts, size_t count, struct mst_claim_part *out)
{
	for (size_t i = 0; i < count; i++)
		fill(&parts[i], &out[i]);
}
