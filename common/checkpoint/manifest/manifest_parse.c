/* SPDX-License-Identifier: MIT */
/* Parses the text of a manifest, and checks every value. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/crc32c.h"
#include "common/base/reason.h"
#include "common/checkpoint/manifest/json.h"
#include "common/checkpoint/manifest/manifest_fields.h"

#define CRC_LEN 9u /* with NUL */
#define LIST_MAX 1048576u

/* What is read, before it is a manifest. */
struct manifest_reading {
	struct mst_json json;
	struct mst_checkpoint_manifest *m;
	uint64_t format;
	uint64_t seen; /* the fields, by their bits */
	bool no_memory;
};

static bool refuse(struct manifest_reading *r, const char *wrong)
{
	return mst_json_refuse(&r->json, wrong);
}

/* ---- fields ---- */

static bool read_u32(struct mst_json *j, uint32_t *out)
{
	uint64_t number;

	if (!mst_json_u64(j, &number))
		return false;
	if (number > UINT32_MAX)
		return mst_json_refuse(j, "a number is too large");
	*out = (uint32_t)number;
	return true;
}

static bool read_crc(struct mst_json *j, uint32_t *out)
{
	char text[CRC_LEN];

	if (!mst_json_text(j, text, sizeof(text)))
		return false;
	if (strspn(text, "0123456789abcdef") != CRC_LEN - 1)
		return mst_json_refuse(j, "a checksum is not 8 hexadecimal digits");
	*out = (uint32_t)strtoul(text, NULL, 16);
	return true;
}

static bool read_format(struct manifest_reading *r)
{
	char text[32];

	if (!mst_json_text(&r->json, text, sizeof(text)))
		return false;
	return strcmp(text, MST_MANIFEST_FORMAT) == 0 ||
	       refuse(r, "it is no manifest of a checkpoint of muster");
}

static bool read_format_version(struct manifest_reading *r)
{
	return mst_json_u64(&r->json, &r->format) &&
	       (r->format == MST_CHECKPOINT_FORMAT || refuse(r, "its format is a later one"));
}

static bool read_muster(struct manifest_reading *r)
{
	return mst_json_text(&r->json, r->m->muster, sizeof(r->m->muster));
}

static bool read_job(struct manifest_reading *r)
{
	return mst_json_text(&r->json, r->m->id.job, sizeof(r->m->id.job));
}

static bool read_save(struct manifest_reading *r)
{
	return mst_json_text(&r->json, r->m->id.save, sizeof(r->m->id.save));
}

static bool read_version(struct manifest_reading *r)
{
	return mst_json_u64(&r->json, &r->m->id.version);
}

static bool read_samples(struct manifest_reading *r)
{
	return mst_json_u64(&r->json, &r->m->samples);
}

static bool read_run(struct manifest_reading *r)
{
	return mst_json_text(&r->json, r->m->run, sizeof(r->m->run));
}

static bool read_generation(struct manifest_reading *r)
{
	return mst_json_u64(&r->json, &r->m->generation);
}

static bool read_written(struct manifest_reading *r)
{
	uint64_t ms;

	if (!mst_json_u64(&r->json, &ms))
		return false;
	r->m->written_ms = (int64_t)(ms & INT64_MAX);
	return ms <= INT64_MAX || refuse(r, "its time is impossible");
}

static bool read_elems(struct manifest_reading *r)
{
	return mst_json_u64(&r->json, &r->m->id.elems) &&
	       (r->m->id.elems > 0 || refuse(r, "its vector has no elements"));
}

static bool read_type(struct manifest_reading *r, enum muster_type *out)
{
	char name[16];

	if (!mst_json_text(&r->json, name, sizeof(name)))
		return false;
	for (unsigned i = 0; i < MST_MANIFEST_TYPES; i++)
		if (strcmp(name, mst_manifest_type((enum muster_type)i)) == 0) {
			*out = (enum muster_type)i;
			return true;
		}
	return refuse(r, "there is no such type of elements");
}

static bool read_gradient_type(struct manifest_reading *r)
{
	return read_type(r, &r->m->type);
}

static bool read_result_type(struct manifest_reading *r)
{
	return read_type(r, &r->m->result_type);
}

static bool read_owner(struct manifest_reading *r)
{
	char name[16];

	if (!mst_json_text(&r->json, name, sizeof(name)))
		return false;
	for (unsigned i = 0; i < MST_MANIFEST_OWNERS; i++)
		if (strcmp(name, mst_manifest_owner((enum muster_owner)i)) == 0) {
			r->m->owner = (enum muster_owner)i;
			return true;
		}
	return refuse(r, "there is no such owner");
}

static bool read_workers(struct manifest_reading *r)
{
	return read_u32(&r->json, &r->m->workers);
}

static bool read_optimizer(struct manifest_reading *r)
{
	return mst_json_text(&r->json, r->m->optimizer, sizeof(r->m->optimizer));
}

static bool read_policy(struct manifest_reading *r)
{
	return mst_json_text(&r->json, r->m->policy, sizeof(r->m->policy));
}

static bool read_groups(struct manifest_reading *r)
{
	struct mst_checkpoint_manifest *m = r->m;
	char type[16];

	if (!mst_json_enter(&r->json, '{'))
		return false;
	while (mst_json_more(&r->json)) {
		struct mst_checkpoint_group *g = &m->group[m->groups];
		if (m->groups == MST_CHECKPOINT_GROUPS_MAX)
			return refuse(r, "it names too many vectors");
		if (!mst_json_key(&r->json, g->name, sizeof(g->name)) ||
		    !mst_json_text(&r->json, type, sizeof(type)))
			return false;
		if (mst_dtype_parse(type, &g->type) != 0)
			return refuse(r, "a vector has a dtype that is none of ours");
		m->groups++;
	}
	return r->json.wrong == NULL;
}

/* ---- parts ---- */

static bool read_part_field(struct mst_json *j, struct mst_checkpoint_part *p, unsigned field)
{
	if (field == 0)
		return mst_json_text(j, p->file, sizeof(p->file));
	if (field == 4)
		return read_crc(j, &p->header_crc);
	return mst_json_u64(j, field == 1 ? &p->bytes : field == 2 ? &p->first : &p->count);
}

static bool read_part(struct mst_json *j, struct mst_checkpoint_part *p)
{
	static const char *const keys[] = { "file", "bytes", "first", "count", "header_crc32c" };
	unsigned seen = 0, field;
	char key[16];

	if (!mst_json_enter(j, '{'))
		return false;
	while (mst_json_more(j)) {
		if (!mst_json_key(j, key, sizeof(key)))
			return false;
		for (field = 0; field < 5 && strcmp(key, keys[field]) != 0; field++)
			;
		if (field == 5 || (seen & 1u << field) != 0)
			return mst_json_refuse(j,
					       "a part has a key twice, or one that is not ours");
		seen |= 1u << field;
		if (!read_part_field(j, p, field))
			return false;
	}
	return seen == 31 || mst_json_refuse(j, "a part lacks a key");
}

static bool read_parts(struct manifest_reading *r)
{
	struct mst_checkpoint_manifest *m = r->m;

	if (!mst_json_enter(&r->json, '['))
		return false;
	while (mst_json_more(&r->json)) {
		if (m->parts == MST_CHECKPOINT_PARTS_MAX)
			return refuse(r, "it names too many parts");
		if (!read_part(&r->json, &m->part[m->parts]))
			return false;
		m->parts++;
	}
	return r->json.wrong == NULL;
}

/* ---- values ---- */

/* Counts the elements of the array that comes next, at most as many as there are commas. */
static uint32_t list_room(const struct mst_json *j)
{
	uint32_t commas = 0;

	for (const char *at = j->at; at < j->end && *at != ']' && commas < LIST_MAX; at++)
		commas += *at == ',';
	return commas + 1;
}

static bool read_list(struct manifest_reading *r, uint64_t *list, uint32_t room, uint32_t *count)
{
	if (!mst_json_enter(&r->json, '['))
		return false;
	for (*count = 0; mst_json_more(&r->json); (*count)++) {
		if (*count == room)
			return refuse(r, "a list is too long");
		if (!mst_json_u64(&r->json, &list[*count]))
			return false;
	}
	return r->json.wrong == NULL;
}

static bool added(struct manifest_reading *r, int rc)
{
	r->no_memory |= rc == -ENOMEM;
	return rc == 0 || refuse(r, rc == -EEXIST ? "a value has a name that another one has"
						  : "it has too many values");
}

static bool read_value_list(struct manifest_reading *r, const char *name)
{
	uint32_t room = list_room(&r->json), count = 0;
	uint64_t *list = malloc(room * sizeof(*list));

	if (list == NULL)
		return added(r, -ENOMEM);
	bool fine = read_list(r, list, room, &count) &&
		    added(r, mst_values_add_list(&r->m->values, name, list, count));
	free(list);
	return fine;
}

static bool read_value_text(struct manifest_reading *r, const char *name)
{
	size_t room = (size_t)(r->json.end - r->json.at);
	const char *quote = memchr(r->json.at + 1, '"', room - 1);

	/* An escaped quote makes the text longer: then all that is left is room enough. */
	if (quote != NULL && quote[-1] != '\\')
		room = (size_t)(quote - r->json.at);
	char *text = malloc(room + 1);
	if (text == NULL)
		return added(r, -ENOMEM);
	bool fine = mst_json_text(&r->json, text, room + 1) &&
		    added(r, mst_values_add_text(&r->m->values, name, text));
	free(text);
	return fine;
}

/* A number stays as it is written. */
static bool read_value_number(struct manifest_reading *r, const char *name)
{
	char number[MST_JSON_NUMBER_LEN];

	return mst_json_number(&r->json, number) &&
	       added(r, mst_values_add_number(&r->m->values, name, number));
}

static bool read_value(struct manifest_reading *r)
{
	char name[MST_CHECKPOINT_TEXT_LEN];

	if (!mst_json_key(&r->json, name, sizeof(name)))
		return false;
	char c = mst_json_peek(&r->json);
	if (c == '[')
		return read_value_list(r, name);
	return c == '"' ? read_value_text(r, name) : read_value_number(r, name);
}

static bool read_values(struct manifest_reading *r)
{
	if (!mst_json_enter(&r->json, '{'))
		return false;
	while (mst_json_more(&r->json))
		if (!read_value(r))
			return false;
	return r->json.wrong == NULL;
}

/* ---- the manifest ---- */

static bool read_end(struct manifest_reading *r)
{
	uint32_t crc; /* it has been compared */

	return read_crc(&r->json, &crc);
}

static const struct {
	const char *key;
	bool (*read)(struct manifest_reading *r);
} fields[] = {
	{ "format", read_format },
	{ "format_version", read_format_version },
	{ "muster", read_muster },
	{ "job", read_job },
	{ "save", read_save },
	{ "version", read_version },
	{ "samples", read_samples },
	{ "written_ms", read_written },
	{ "elems", read_elems },
	{ "type", read_gradient_type },
	{ "result_type", read_result_type },
	{ "owner", read_owner },
	{ "workers", read_workers },
	{ "optimizer", read_optimizer },
	{ "policy", read_policy },
	{ "groups", read_groups },
	{ "parts", read_parts },
	{ "values", read_values },
	{ "crc32c", read_end },
	/* Manifests of earlier releases lack what follows. */
	{ "run", read_run },
	{ "generation", read_generation },
};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))
#define LATER_FIELDS 2u
#define NEEDED ((UINT64_C(1) << (FIELDS - LATER_FIELDS)) - 1)

/* A field that this release does not know is passed over. */
static bool read_field(struct manifest_reading *r)
{
	char key[MST_CHECKPOINT_TEXT_LEN];
	unsigned i = 0;

	if (!mst_json_key(&r->json, key, sizeof(key)))
		return false;
	while (i < FIELDS && strcmp(key, fields[i].key) != 0)
		i++;
	if (i == FIELDS)
		return mst_json_skip(&r->json);
	if ((r->seen & UINT64_C(1) << i) != 0)
		return refuse(r, "a key is there twice");
	r->seen |= UINT64_C(1) << i;
	return fields[i].read(r);
}

static bool read_manifest(struct manifest_reading *r)
{
	if (!mst_json_enter(&r->json, '{'))
		return false;
	while (mst_json_more(&r->json))
		if (!read_field(r))
			return false;
	if (!mst_json_end(&r->json))
		return false;
	if ((r->seen & NEEDED) != NEEDED)
		return refuse(r, "a key that every manifest has is missing");
	const char *wrong = mst_manifest_wrong(r->m);
	return wrong == NULL || refuse(r, wrong);
}

/* The last lines, byte by byte. Return: whether the checksum in them is right. */
static bool check_end(const char *text, size_t len)
{
	char end[64];
	int end_len = snprintf(end, sizeof(end), MST_MANIFEST_END_BEGIN "%08x" MST_MANIFEST_END_END,
			       0u);

	if (len < (size_t)end_len)
		return false;
	size_t body = len - (size_t)end_len;
	(void)snprintf(end, sizeof(end), MST_MANIFEST_END_BEGIN "%08" PRIx32 MST_MANIFEST_END_END,
		       mst_crc32c(0, text, body));
	return memcmp(text + body, end, (size_t)end_len) == 0;
}

static int conclude(const struct manifest_reading *r, bool fine, struct mst_reason *why)
{
	if (fine)
		return 0;
	if (r->no_memory)
		return mst_reason_fail(why, -ENOMEM, "no memory for its values");
	if (r->format != MST_CHECKPOINT_FORMAT)
		return mst_reason_fail(why, -ENOTSUP,
				       "its format is %" PRIu64 ", and this release reads %u",
				       r->format, MST_CHECKPOINT_FORMAT);
	return mst_reason_fail(why, -EBADMSG, "%s", r->json.wrong);
}

int mst_checkpoint_manifest_parse(const char *text, size_t text_len,
				  struct mst_checkpoint_manifest *out, struct mst_reason *why)
{
	struct manifest_reading r = { .m = calloc(1, sizeof(*r.m)),
				      .format = MST_CHECKPOINT_FORMAT };

	if (r.m == NULL)
		return mst_reason_fail(why, -ENOMEM, "no memory for a manifest");
	mst_checkpoint_manifest_init(r.m);
	mst_json_init(&r.json, text, text_len);
	int rc = -EBADMSG;
	if (check_end(text, text_len))
		rc = conclude(&r, read_manifest(&r), why);
	else
		(void)mst_reason_fail(why, rc,
				      "it is cut or damaged: its checksum is "
				      "missing or wrong");
	if (rc == 0)
		*out = *r.m;
	else
		mst_checkpoint_manifest_fini(r.m);
	free(r.m);
	return rc;
}
