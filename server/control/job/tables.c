/* SPDX-License-Identifier: MIT */
#include "server/control/job/tables.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"

const char *mst_tables_giver(int64_t rank, const char *peer, uint32_t pid, char out[MST_GIVER_LEN])
{
	if (rank >= 0)
		(void)snprintf(out, MST_GIVER_LEN, "rank %" PRId64 " (%.60s, process %" PRIu32 ")",
			       rank, peer, pid);
	else
		(void)snprintf(out, MST_GIVER_LEN,
			       "a worker without a rank (%.60s, process %" PRIu32 ")", peer, pid);
	return out;
}

/* In what do two tables of as many tensors differ? NULL: in nothing. */
static const char *difference(const struct mst_table *a, const struct mst_table *b)
{
	if (a->places != b->places)
		return "where tensors begin and end";
	return a->names != b->names ? "the names of tensors" : NULL;
}

#define FIX "give all workers of a job the same options.tensors"

/* Where both have given a table. */
static int check_tensors(const struct mst_tables *t, const struct mst_table *table,
			 const char *giver, struct mst_reason *why)
{
	if (table->tensors != t->table.tensors) {
		mst_reason_set(why,
			       "%s gives a table of %" PRIu32
			       " tensors, but %s has given one of %" PRIu32 ": " FIX,
			       giver, table->tensors, t->giver, t->table.tensors);
		return -EINVAL;
	}
	const char *what = difference(table, &t->table);
	if (what == NULL)
		return 0;
	mst_reason_set(why,
		       "the table of tensors that %s gives differs in %s from the one that %s has "
		       "given: " FIX,
		       giver, what, t->giver);
	return -EINVAL;
}

static int check_scales(const struct mst_tables *t, const struct mst_table *table,
			const char *giver, struct mst_reason *why)
{
	if (!t->fixed || (table->runs == t->runs && table->scales == t->scales))
		return 0;
	if (table->runs > 0 && t->runs > 0)
		mst_reason_set(why,
			       "the scales of tensors that %s gives differ from those that %s has "
			       "given: " FIX,
			       giver, t->giver);
	else
		mst_reason_set(
			why, "%s gives %sscales of tensors other than 1, but %s has given %s: " FIX,
			giver, table->runs > 0 ? "" : "no ", t->giver,
			t->runs > 0 ? "some" : "none");
	return -EINVAL;
}

/* Norms of tensors must not depend on whose table comes first. */
static int check_norms(const struct mst_tables *t, const struct mst_table *table, const char *giver,
		       struct mst_reason *why)
{
	bool gives = table->tensors > 0, given = t->table.tensors > 0;

	if (t->norms == NULL || gives == given)
		return 0;
	mst_reason_set(
		why,
		"%s gives %s table of tensors, but %s has given %s, and the optimiser %s takes "
		"the norms of tensors: " FIX,
		giver, gives ? "a" : "no", t->giver, given ? "one" : "none", t->norms);
	return -EINVAL;
}

int mst_tables_check(const struct mst_tables *t, const struct mst_table *table, const char *giver,
		     struct mst_reason *why)
{
	int rc = 0;

	if (t->table.tensors > 0 && table->tensors > 0)
		rc = check_tensors(t, table, giver, why);
	if (rc == 0)
		rc = check_norms(t, table, giver, why);
	return rc == 0 ? check_scales(t, table, giver, why) : rc;
}

void mst_tables_fix(struct mst_tables *t, const struct mst_table *table, const char *giver,
		    const char *norms)
{
	t->fixed = true;
	t->norms = norms;
	t->table = *table;
	t->runs = table->runs;
	t->scales = table->scales;
	(void)snprintf(t->giver, sizeof(t->giver), "%s", giver);
}

void mst_tables_take(struct mst_tables *t, const struct mst_table *table, const char *giver)
{
	if (t->taken || table->tensors == 0)
		return;
	t->taken = true;
	t->table = *table;
	(void)snprintf(t->giver, sizeof(t->giver), "%s", giver);
}

/* ---- which tensor ---- */

/* A tensor of one worker, or none. Names come from anybody, but are clean. */
static const char *describe(const char *name, uint64_t count, char out[96])
{
	if (count == 0)
		(void)snprintf(out, 96, "not there");
	else if (name[0] == '\0')
		(void)snprintf(out, 96, "one without a name, of %" PRIu64 " elements", count);
	else
		(void)snprintf(out, 96, "\"%.50s%s\" of %" PRIu64 " elements", name,
			       strlen(name) > 50 ? "..." : "", count);
	return out;
}

static bool is_same(const struct mst_tensor_row *row, const struct muster_tensor *tensor)
{
	return row->count == tensor->count && strcmp(row->name, tensor->name) == 0;
}

static void name_tensor(const struct mst_tables *t, uint32_t at, const char *theirs,
			const char *given, const char *giver, struct mst_reason *why)
{
	mst_reason_set(why,
		       "another model: tensor number %" PRIu32 " is %s at %s, and %s at %s: "
		       "give all workers of a job the same model, with its tensors in the same "
		       "order",
		       at, theirs, giver, given, t->giver);
	mst_text_clean(why->text); /* a name may have been cut within a character */
}

bool mst_tables_differ(const struct mst_tables *t, const struct mst_tensor_table *of,
		       const struct mst_tensor_piece *piece, const char *giver,
		       struct mst_reason *why)
{
	static const struct muster_tensor none = { .name = "" };
	const struct muster_tensor *given = mst_tensor_table_rows(of);
	uint32_t count = mst_tensor_table_count(of), at = piece->at;
	char text[2][96];

	for (uint32_t i = 0; i < piece->count; i++, at++) {
		const struct mst_tensor_row *row = &piece->row[i];
		const struct muster_tensor *other = at < count ? &given[at] : &none;
		if (is_same(row, other))
			continue;
		name_tensor(t, at, describe(row->name, row->count, text[0]),
			    describe(other->name, other->count, text[1]), giver, why);
		return true;
	}
	if (at < piece->total || at >= count)
		return false;
	name_tensor(t, at, "not there", describe(given[at].name, given[at].count, text[1]), giver,
		    why);
	return true;
}
