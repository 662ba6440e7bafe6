/* SPDX-License-Identifier: MIT */
#include "server/control/generations/line.h"

#include <string.h>

#include "common/wire/range.h"

/* Names in a manifest: a list each, of all generations of the line. */
#define NUMBERS "line.generations"
#define IDS "line.ids"
#define BEGAN "line.began"

static void drop_oldest(struct mst_job_line *l)
{
	memmove(&l->row[0], &l->row[1], --l->count * sizeof(l->row[0]));
}

/* What an earlier generation has begun with says nothing more, if a later one has begun with the
 * same version or an older one. */
void mst_job_line_add(struct mst_job_line *l, const struct mst_job_line_row *row)
{
	while (l->count > 0 && l->row[l->count - 1].began >= row->began)
		l->count--;
	if (l->count == MST_JOB_LINE_MAX)
		drop_oldest(l);
	l->row[l->count++] = *row;
}

/* Has this generation begun without what the worker had? If it is of the same number, the worker
 * may have been in another one, which began apart. */
static bool leaves_out(const struct mst_job_line_row *row, const struct mst_claimed *of)
{
	bool apart = row->number == of->number && of->made != row->id;

	return (row->number > of->number || apart) && of->version > row->began;
}

uint64_t mst_job_line_stands(const struct mst_job_line *l, const struct mst_claimed *of)
{
	for (uint32_t i = 0; i < l->count; i++) {
		if (leaves_out(&l->row[i], of))
			return l->row[i].began;
	}
	return of->version;
}

/* ---- in a manifest ---- */

static int add(const struct mst_job_line *l, struct mst_values *values, const char *name,
	       uint64_t (*figure)(const struct mst_job_line_row *row))
{
	uint64_t list[MST_JOB_LINE_MAX];

	for (uint32_t i = 0; i < l->count; i++)
		list[i] = figure(&l->row[i]);
	return mst_values_add_list(values, name, list, l->count);
}

static uint64_t number_of(const struct mst_job_line_row *row)
{
	return row->number;
}

static uint64_t id_of(const struct mst_job_line_row *row)
{
	return row->id;
}

static uint64_t began_of(const struct mst_job_line_row *row)
{
	return row->began;
}

int mst_job_line_write(const struct mst_job_line *l, struct mst_values *values)
{
	if (l->count == 0)
		return 0;
	int rc = add(l, values, NUMBERS, number_of);
	if (rc == 0)
		rc = add(l, values, IDS, id_of);
	if (rc == 0)
		rc = add(l, values, BEGAN, began_of);
	return rc;
}

static bool rises(const struct mst_job_line *l, const struct mst_job_line_row *row)
{
	const struct mst_job_line_row *last = l->count > 0 ? &l->row[l->count - 1] : NULL;

	return row->number > 0 && row->number <= MST_COUNT_MAX && row->began <= MST_COUNT_MAX &&
	       (last == NULL || (row->number > last->number && row->began > last->began));
}

void mst_job_line_read(struct mst_job_line *l, const struct mst_values *values)
{
	const uint64_t *number, *id, *began;
	uint32_t count, ids, begins;

	*l = (struct mst_job_line){ .count = 0 };
	if (mst_values_list(values, NUMBERS, &number, &count) != 0 ||
	    mst_values_list(values, IDS, &id, &ids) != 0 ||
	    mst_values_list(values, BEGAN, &began, &begins) != 0 || ids != count ||
	    begins != count || count > MST_JOB_LINE_MAX)
		return;
	for (uint32_t i = 0; i < count; i++) {
		struct mst_job_line_row row = { number[i], id[i], began[i] };
		if (!rises(l, &row)) {
			l->count = 0;
			return;
		}
		l->row[l->count++] = row;
	}
}
