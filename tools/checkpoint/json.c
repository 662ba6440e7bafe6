/* SPDX-License-Identifier: MIT */
/* A directory of checkpoints as JSON. */
#include "common/checkpoint/manifest/manifest_fields.h"
#include "tools/checkpoint/print.h"

static json_t *tensor_json(const struct mst_tensor_entry *t, uint32_t part)
{
	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "name", t->name, "group",
			 t->group, "type", mst_dtype_name(t->type), "part", (json_int_t)part,
			 "elements", (json_int_t)t->count, "first", (json_int_t)t->first, "offset",
			 (json_int_t)t->offset, "of", (json_int_t)t->total);
}

static json_t *tensors_json(const struct mst_stock_row *row)
{
	json_t *out = json_array();
	int failed = out == NULL;

	for (uint32_t i = 0; i < row->files && !failed; i++)
		for (uint32_t k = 0; k < row->file[i].tensors && !failed; k++)
			failed = json_array_append_new(out,
						       tensor_json(&row->file[i].tensor[k], i));
	if (failed) {
		json_decref(out);
		return NULL;
	}
	return out;
}

static json_t *known_json(const struct mst_checkpoint_manifest *m)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}",
			 "samples", (json_int_t)m->samples, "written_ms", (json_int_t)m->written_ms,
			 "parts", (json_int_t)m->parts, "bytes", (json_int_t)mst_stock_bytes(m),
			 "elems", (json_int_t)m->id.elems, "workers", (json_int_t)m->workers, "job",
			 m->id.job, "save", m->id.save, "muster", m->muster, "policy", m->policy,
			 "optimizer", m->optimizer, "type", mst_manifest_type(m->type),
			 "result_type", mst_manifest_type(m->result_type), "owner",
			 mst_manifest_owner(m->owner));
}

static json_t *row_json(const struct mst_stock *s, const struct mst_stock_row *row)
{
	json_t *out = row->known ? known_json(&row->m) : json_object();

	if (json_object_set_new(out, "version", json_integer((json_int_t)row->version)) != 0 ||
	    json_object_set_new(out, "state", json_string(mst_stock_state(s, row))) != 0 ||
	    (!row->fine && json_object_set_new(out, "why", json_string(row->why)) != 0) ||
	    (row->files > 0 && json_object_set_new(out, "tensors", tensors_json(row)) != 0)) {
		json_decref(out);
		return NULL;
	}
	return out;
}

json_t *mst_stock_json(const struct mst_stock *s)
{
	json_t *rows = json_array();

	for (uint32_t i = 0; i < s->rows; i++)
		if (json_array_append_new(rows, row_json(s, &s->row[i])) != 0) {
			json_decref(rows);
			return NULL;
		}
	return json_pack("{s:s, s:o}", "directory", s->dir, "checkpoints", rows);
}
