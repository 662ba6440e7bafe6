/* SPDX-License-Identifier: MIT */
#include "tests/unit/common/checkpoint/checkpoint_case.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/reason.h"

const char *const checkpoint_groups[CHECKPOINT_VECTORS] = { "parameters", "momentum", "average" };
const enum mst_dtype checkpoint_types[CHECKPOINT_VECTORS] = { MST_DTYPE_F32, MST_DTYPE_F32,
							      MST_DTYPE_BF16 };

uint32_t checkpoint_element(uint64_t version, unsigned vector, uint64_t index)
{
	uint64_t which = index + 1 + 5003 * version + 1000003 * (uint64_t)vector;
	uint64_t mixed = which * UINT64_C(0x9e3779b97f4a7c15);
	float number = (float)(mixed >> 40) / 256.0f - 1000.0f;
	uint32_t bits;

	memcpy(&bits, &number, sizeof(bits));
	return checkpoint_types[vector] == MST_DTYPE_BF16 ? bits >> 16 : bits;
}

static uint32_t parts_of(const struct checkpoint_case *c)
{
	return c->parts > 0 ? c->parts : 1;
}

uint64_t checkpoint_border(const struct checkpoint_case *c, uint32_t k)
{
	return c->elems * k / parts_of(c);
}

/* ---- writing ---- */

static void fill(void *into, const struct checkpoint_case *c, unsigned vector, uint64_t first,
		 uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		uint32_t bits = checkpoint_element(c->version, vector, first + i);
		if (checkpoint_types[vector] == MST_DTYPE_BF16)
			((uint16_t *)into)[i] = (uint16_t)bits;
		else
			((uint32_t *)into)[i] = bits;
	}
}

static int write_part(const char *dir, const struct checkpoint_case *c,
		      struct mst_checkpoint_manifest *m, uint32_t part, struct mst_reason *why)
{
	static uint32_t memory[CHECKPOINT_VECTORS][CHECKPOINT_ELEMS_MAX];
	struct mst_checkpoint_piece piece[CHECKPOINT_VECTORS][2];
	struct mst_checkpoint_vector vector[CHECKPOINT_VECTORS];
	uint64_t first = checkpoint_border(c, part);
	struct mst_checkpoint_writing w = {
		.id = &m->id,
		.part = part,
		.parts = parts_of(c),
		.first = first,
		.count = checkpoint_border(c, part + 1) - first,
		.table = c->table,
		.tensors = c->tensors,
		.vector = vector,
		.vectors = CHECKPOINT_VECTORS,
		.pace = c->pace,
	};

	for (unsigned v = 0; v < CHECKPOINT_VECTORS; v++) {
		size_t size = mst_dtype_bytes(checkpoint_types[v]);
		uint64_t half = w.count / 2; /* of the elements: two pieces each */
		fill(memory[v], c, v, first, w.count);
		piece[v][0] = (struct mst_checkpoint_piece){ memory[v], half };
		piece[v][1] = (struct mst_checkpoint_piece){ (char *)memory[v] + half * size,
							     w.count - half };
		vector[v] = (struct mst_checkpoint_vector){ checkpoint_groups[v],
							    checkpoint_types[v], piece[v], 2 };
	}
	return mst_checkpoint_part_write(dir, &w, &m->part[part], why);
}

static void describe(struct mst_checkpoint_manifest *m, const struct checkpoint_case *c)
{
	m->id.version = c->version;
	m->id.elems = c->elems;
	m->samples = 320 * c->version;
	m->workers = 8;
	m->type = MUSTER_BF16;
	(void)snprintf(m->id.job, sizeof(m->id.job), "%s", c->job != NULL ? c->job : "night");
	(void)snprintf(m->optimizer, sizeof(m->optimizer), "sgd:lr=0.1,momentum=0.9");
	(void)snprintf(m->policy, sizeof(m->policy), "backup:6");
	m->parts = parts_of(c);
	m->groups = CHECKPOINT_VECTORS;
	for (unsigned v = 0; v < CHECKPOINT_VECTORS; v++) {
		(void)snprintf(m->group[v].name, sizeof(m->group[v].name), "%s",
			       checkpoint_groups[v]);
		m->group[v].type = checkpoint_types[v];
	}
}

int checkpoint_write_parts(const char *dir, const struct checkpoint_case *c,
			   struct mst_checkpoint_manifest *m, struct mst_reason *why)
{
	mst_checkpoint_manifest_init(m);
	describe(m, c);
	int rc = mst_checkpoint_draw(m->id.save);
	if (rc != 0)
		mst_reason_set(why, "no random numbers for a save id");
	for (uint32_t part = 0; part < m->parts && rc == 0; part++)
		rc = write_part(dir, c, m, part, why);
	return rc;
}

/* One of the case's own, and what every job keeps. */
static int add_values(struct mst_values *v, uint64_t version)
{
	uint64_t one = 1;
	int rc = mst_values_add_u64(v, "ledger.clock", version);

	if (rc == 0)
		rc = mst_values_add_real(v, "samples", (double)version);
	if (rc == 0)
		rc = mst_values_add_list(v, "clocks", &version, 1);
	return rc == 0 ? mst_values_add_list(v, "incarnations", &one, 1) : rc;
}

int checkpoint_write(const char *dir, const struct checkpoint_case *c, struct mst_reason *why)
{
	struct mst_checkpoint_manifest m;
	int rc = checkpoint_write_parts(dir, c, &m, why);

	if (rc == 0) {
		rc = add_values(&m.values, c->version);
		mst_reason_set(why, "no memory for the values of the manifest");
	}
	if (rc == 0)
		rc = mst_checkpoint_manifest_write(dir, &m, why);
	mst_checkpoint_manifest_fini(&m);
	return rc;
}

/* ---- reading ---- */

static bool compare(const void *from, uint64_t version, unsigned vector, uint64_t first,
		    uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		uint32_t bits = checkpoint_types[vector] == MST_DTYPE_BF16
					? ((const uint16_t *)from)[i]
					: ((const uint32_t *)from)[i];
		if (bits != checkpoint_element(version, vector, first + i))
			return false;
	}
	return true;
}

int checkpoint_read(const char *dir, const struct mst_checkpoint_manifest *m, uint64_t first,
		    uint64_t count, struct mst_reason *why)
{
	static uint32_t into[CHECKPOINT_ELEMS_MAX];

	for (unsigned v = 0; v < CHECKPOINT_VECTORS; v++) {
		struct mst_checkpoint_loading what = { checkpoint_groups[v], checkpoint_types[v],
						       first, count, into };
		memset(into, 0xee, sizeof(into));
		int rc = mst_checkpoint_load(dir, m, &what, why);
		if (rc != 0)
			return rc;
		if (!compare(into, m->id.version, v, first, count)) {
			mst_reason_set(why, "%s has other elements", checkpoint_groups[v]);
			return -EILSEQ;
		}
	}
	return 0;
}

bool checkpoint_says(const char *why, const char *part)
{
	if (strstr(why, part) != NULL)
		return true;
	fprintf(stderr, "\"%s\" does not say \"%s\"\n", why, part);
	return false;
}
