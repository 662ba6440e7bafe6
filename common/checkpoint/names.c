/* SPDX-License-Identifier: MIT */
#include "common/checkpoint/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/checkpoint/manifest/json.h"

#define VERSION_DIGITS 10
#define SAVE_DIGITS 8

void mst_checkpoint_manifest_name(uint64_t version, char out[MST_CHECKPOINT_FILE_LEN])
{
	(void)snprintf(out, MST_CHECKPOINT_FILE_LEN, "v%0*" PRIu64 ".json", VERSION_DIGITS,
		       version);
}

void mst_checkpoint_part_name(const struct mst_checkpoint_id *id, uint32_t part, uint32_t parts,
			      char out[MST_CHECKPOINT_FILE_LEN])
{
	(void)snprintf(out, MST_CHECKPOINT_FILE_LEN,
		       "v%0*" PRIu64 "-%.*s.part%" PRIu32 "-of-%" PRIu32 ".safetensors",
		       VERSION_DIGITS, id->version, SAVE_DIGITS, id->save, part, parts);
}

/* Takes @word. Return: what is after it; NULL: it is not there, or @at is NULL. */
static const char *take(const char *at, const char *word)
{
	size_t len = strlen(word);

	return at != NULL && strncmp(at, word, len) == 0 ? at + len : NULL;
}

static const char *take_number(const char *at, uint64_t *out)
{
	return at != NULL ? mst_json_digits(at, at + strlen(at), out) : NULL;
}

/* "v0000000123": ten digits, or more that do not begin with 0. */
static const char *take_version(const char *name, uint64_t *out)
{
	const char *first = take(name, "v"), *at = first;

	if (first == NULL)
		return NULL;
	size_t digits = strspn(first, "0123456789");
	while (*at == '0' && at[1] >= '0' && at[1] <= '9')
		at++;
	if (digits < VERSION_DIGITS || (digits > VERSION_DIGITS && at != first))
		return NULL;
	return take_number(at, out);
}

static const char *take_save(const char *at)
{
	return at != NULL && strspn(at, "0123456789abcdef") == SAVE_DIGITS ? at + SAVE_DIGITS
									   : NULL;
}

/* The rest of a part's name, after its version. */
static const char *take_part(const char *at)
{
	uint64_t part = 0, parts = 0;

	at = take_number(take(take_save(take(at, "-")), ".part"), &part);
	at = take(take_number(take(at, "-of-"), &parts), ".safetensors");
	return part < parts && parts <= MST_CHECKPOINT_PARTS_MAX ? at : NULL;
}

bool mst_checkpoint_name_parse(const char *name, enum mst_checkpoint_kind *kind, uint64_t *version)
{
	const char *at = take_version(name, version);
	const char *part = take_part(at), *manifest = take(at, ".json");
	const char *rest = part != NULL ? part : manifest;

	if (rest == NULL)
		return false;
	if (*rest == '\0')
		*kind = part != NULL ? MST_CHECKPOINT_IS_PART : MST_CHECKPOINT_IS_MANIFEST;
	else if (strcmp(rest, MST_CHECKPOINT_TEMPORARY) == 0)
		*kind = MST_CHECKPOINT_IS_TEMPORARY;
	else if (part == NULL && strcmp(rest, MST_CHECKPOINT_REFUSED) == 0)
		*kind = MST_CHECKPOINT_IS_REFUSED;
	else
		return false;
	return true;
}

bool mst_checkpoint_is_save(const char *save)
{
	size_t len = strlen(save);

	return len == MST_CHECKPOINT_SAVE_LEN - 1 && strspn(save, "0123456789abcdef") == len;
}

bool mst_checkpoint_is_part_name(const char *name)
{
	enum mst_checkpoint_kind kind;
	uint64_t version;

	return mst_checkpoint_name_parse(name, &kind, &version) && kind == MST_CHECKPOINT_IS_PART;
}
