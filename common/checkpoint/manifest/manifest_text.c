/* SPDX-License-Identifier: MIT */
/* Composes the text of a manifest. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/crc32c.h"
#include "common/base/reason.h"
#include "common/base/text.h"
#include "common/checkpoint/manifest/json_out.h"
#include "common/checkpoint/manifest/manifest_fields.h"
#include "common/checkpoint/names.h"

const char *mst_manifest_type(enum muster_type type)
{
	static const char *const names[MST_MANIFEST_TYPES] = {
		[MUSTER_F32] = "f32", [MUSTER_BF16] = "bf16", [MUSTER_F16] = "f16"
	};

	return names[type];
}

const char *mst_manifest_owner(enum muster_owner owner)
{
	return owner == MUSTER_SERVERS_OWN ? "servers" : "workers";
}

/* ---- what must agree ---- */

/* Where workers own, servers keep no vectors: the manifest is all there is. */
static bool is_alone(const struct mst_checkpoint_manifest *m)
{
	return m->owner == MUSTER_WORKERS_OWN && m->parts == 0 && m->groups == 0;
}

static const char *wrong_parts(const struct mst_checkpoint_manifest *m)
{
	uint64_t end = 0;

	if (is_alone(m))
		return NULL;
	if (m->parts == 0 || m->parts > MST_CHECKPOINT_PARTS_MAX)
		return "it names no parts, or too many";
	for (uint32_t i = 0; i < m->parts; i++) {
		const struct mst_checkpoint_part *p = &m->part[i];
		if (!mst_checkpoint_is_part_name(p->file))
			return "a part of it has a name that no part has";
		if (p->first < end)
			return "two of its parts have the same elements";
		if (p->first > end || p->count == 0)
			return "its parts leave elements of the vector out";
		if (p->count > m->id.elems - end)
			return "its parts have more elements than the vector";
		end += p->count;
	}
	return end == m->id.elems ? NULL : "its parts leave elements of the vector out";
}

static const char *wrong_groups(const struct mst_checkpoint_manifest *m)
{
	if (is_alone(m))
		return NULL;
	if (m->groups == 0 || m->groups > MST_CHECKPOINT_GROUPS_MAX)
		return "it names no vectors, or too many";
	for (uint32_t i = 0; i < m->groups; i++) {
		if (m->group[i].name[0] == '\0')
			return "a vector of it has no name";
		for (uint32_t k = 0; k < i; k++)
			if (strcmp(m->group[i].name, m->group[k].name) == 0)
				return "two of its vectors have the same name";
	}
	return NULL;
}

static bool is_run(const char *run)
{
	return strlen(run) == MST_CHECKPOINT_RUN_LEN - 1 &&
	       strspn(run, "0123456789abcdef") == MST_CHECKPOINT_RUN_LEN - 1;
}

const char *mst_manifest_wrong(const struct mst_checkpoint_manifest *m)
{
	if (m->id.version == 0)
		return "version 0 is where every job begins";
	if (!mst_checkpoint_is_save(m->id.save))
		return "its save id is not 32 hexadecimal digits";
	if (m->run[0] != '\0' && !is_run(m->run))
		return "its run is not 16 hexadecimal digits";
	const char *wrong = wrong_groups(m);
	return wrong != NULL ? wrong : wrong_parts(m);
}

/* ---- the text ---- */

/* Texts of users are cleaned: @room is that of a field of the manifest. */
static void compose_text(struct mst_json_out *o, const char *key, const char *text)
{
	char clean[MST_CHECKPOINT_TEXT_LEN];

	(void)snprintf(clean, sizeof(clean), "%s", text);
	mst_text_clean(clean);
	mst_json_out_format(o, "  \"%s\": ", key);
	mst_json_out_text(o, clean);
	mst_json_out_format(o, ",\n");
}

static void compose_number(struct mst_json_out *o, const char *key, uint64_t number)
{
	mst_json_out_format(o, "  \"%s\": %" PRIu64 ",\n", key, number);
}

static void compose_groups(struct mst_json_out *o, const struct mst_checkpoint_manifest *m)
{
	mst_json_out_format(o, "  \"groups\": {");
	for (uint32_t i = 0; i < m->groups; i++) {
		mst_json_out_format(o, "%s", i > 0 ? ", " : "");
		mst_json_out_text(o, m->group[i].name);
		mst_json_out_format(o, ": \"%s\"", mst_dtype_name(m->group[i].type));
	}
	mst_json_out_format(o, "},\n");
}

static void compose_parts(struct mst_json_out *o, const struct mst_checkpoint_manifest *m)
{
	mst_json_out_format(o, "  \"parts\": [\n");
	for (uint32_t i = 0; i < m->parts; i++) {
		const struct mst_checkpoint_part *p = &m->part[i];
		mst_json_out_format(o,
				    "    {\"file\": \"%s\", \"bytes\": %" PRIu64
				    ", \"first\": %" PRIu64 ", \"count\": %" PRIu64
				    ", \"header_crc32c\": \"%08" PRIx32 "\"}%s\n",
				    p->file, p->bytes, p->first, p->count, p->header_crc,
				    i + 1 < m->parts ? "," : "");
	}
	mst_json_out_format(o, "  ],\n");
}

static void compose_value(struct mst_json_out *o, const struct mst_value *value)
{
	mst_json_out_text(o, value->name);
	mst_json_out_format(o, ": ");
	if (value->kind == MST_VALUE_TEXT)
		mst_json_out_text(o, value->text);
	else if (value->kind == MST_VALUE_NUMBER)
		mst_json_out_format(o, "%s", value->text);
	else
		mst_json_out_format(o, "[");
	if (value->kind != MST_VALUE_LIST)
		return;
	for (uint32_t i = 0; i < value->count; i++)
		mst_json_out_format(o, "%s%" PRIu64, i > 0 ? ", " : "", value->list[i]);
	mst_json_out_format(o, "]");
}

static void compose_values(struct mst_json_out *o, const struct mst_values *values)
{
	mst_json_out_format(o, "  \"values\": {");
	for (uint32_t i = 0; i < values->count; i++) {
		mst_json_out_format(o, "%s\n    ", i > 0 ? "," : "");
		compose_value(o, &values->value[i]);
	}
	mst_json_out_format(o, "%s},\n", values->count > 0 ? "\n  " : "");
}

static void compose_all(struct mst_json_out *o, const struct mst_checkpoint_manifest *m)
{
	mst_json_out_format(o, "{\n");
	compose_text(o, "format", MST_MANIFEST_FORMAT);
	compose_number(o, "format_version", MST_CHECKPOINT_FORMAT);
	compose_text(o, "muster", m->muster);
	compose_text(o, "job", m->id.job);
	compose_text(o, "save", m->id.save);
	compose_number(o, "version", m->id.version);
	compose_number(o, "samples", m->samples);
	if (m->run[0] != '\0')
		compose_text(o, "run", m->run);
	compose_number(o, "generation", m->generation);
	compose_number(o, "written_ms", (uint64_t)(m->written_ms > 0 ? m->written_ms : 0));
	compose_number(o, "elems", m->id.elems);
	compose_text(o, "type", mst_manifest_type(m->type));
	compose_text(o, "result_type", mst_manifest_type(m->result_type));
	compose_text(o, "owner", mst_manifest_owner(m->owner));
	compose_number(o, "workers", m->workers);
	compose_text(o, "optimizer", m->optimizer);
	compose_text(o, "policy", m->policy);
	compose_groups(o, m);
	compose_parts(o, m);
	compose_values(o, &m->values);
}

int mst_checkpoint_manifest_compose(const struct mst_checkpoint_manifest *m, char **out,
				    size_t *out_len, struct mst_reason *why)
{
	struct mst_json_out o = { 0 };
	const char *wrong = mst_manifest_wrong(m);

	if (wrong != NULL)
		return mst_reason_fail(why, -EINVAL,
				       "the manifest of version %" PRIu64 " cannot be written: %s",
				       m->id.version, wrong);
	compose_all(&o, m);
	uint32_t crc = o.failed ? 0 : mst_crc32c(0, o.text, o.len);
	mst_json_out_format(&o, MST_MANIFEST_END_BEGIN "%08" PRIx32 MST_MANIFEST_END_END, crc);
	if (o.failed) {
		free(o.text);
		return mst_reason_fail(why, -ENOMEM,
				       "no memory for the manifest of version %" PRIu64,
				       m->id.version);
	}
	*out = o.text;
	*out_len = o.len;
	return 0;
}
