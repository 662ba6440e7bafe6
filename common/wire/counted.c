/* SPDX-License-Identifier: MIT */
#include "common/wire/counted.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/base/text.h"

struct mst_counted mst_counted_of(double counted, double pushed)
{
	struct mst_counted words;

	(void)mst_text_print(words.text, sizeof(words.text), "%.10g of %.10g", counted, pushed);
	return words;
}

struct counted_text {
	char *text;
	size_t have;
};

static __attribute__((format(printf, 2, 3))) void add(struct counted_text *line, const char *fmt,
						      ...)
{
	va_list args;

	if (line->have >= MST_COUNTED_LEN)
		return;
	va_start(args, fmt);
	int more = vsnprintf(line->text + line->have, MST_COUNTED_LEN - line->have, fmt, args);
	va_end(args);
	line->have += more > 0 ? (size_t)more : 0;
}

static void add_rank(struct counted_text *line, const struct mst_status_rank *row,
		     const char *before)
{
	add(line, "%srank %" PRIu32 " %s", before, row->rank,
	    mst_counted_of(row->samples_counted, row->samples_pushed).text);
}

static void add_each(struct counted_text *line, const struct mst_status_rank *row, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		add_rank(line, &row[i], i > 0 ? ", " : "");
		if (i == 0)
			add(line, " samples");
	}
}

/* Does @a come before @b, by the share of its samples that counted? Of equal ones the lower rank
 * does. */
static bool is_lower(const struct mst_status_rank *a, const struct mst_status_rank *b)
{
	double share_a = a->samples_counted / a->samples_pushed;
	double share_b = b->samples_counted / b->samples_pushed;

	return share_a != share_b ? share_a < share_b : a->rank < b->rank;
}

/* The one with the lowest share of those that come after @last; NULL: there is none. */
static const struct mst_status_rank *lowest_after(const struct mst_status_rank *row, uint32_t count,
						  const struct mst_status_rank *last)
{
	const struct mst_status_rank *lowest = NULL;

	for (uint32_t i = 0; i < count; i++) {
		bool is_left = row[i].samples_pushed > 0 &&
			       (last == NULL || is_lower(last, &row[i]));
		if (is_left && (lowest == NULL || is_lower(&row[i], lowest)))
			lowest = &row[i];
	}
	return lowest;
}

static void add_lowest(struct counted_text *line, const struct mst_status_rank *row, uint32_t count)
{
	const struct mst_status_rank *last = NULL;

	for (uint32_t i = 0; i < MST_COUNTED_LOWEST; i++) {
		last = lowest_after(row, count, last);
		if (last == NULL)
			return;
		add_rank(line, last, i > 0 ? ", " : "; the lowest shares: ");
	}
}

void mst_counted_line(const struct mst_status_rank *row, uint32_t count, char out[MST_COUNTED_LEN])
{
	struct counted_text line = { out, 0 };
	double counted = 0, pushed = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < count; i++) {
		counted += row[i].samples_counted;
		pushed += row[i].samples_pushed;
	}
	if (!(pushed > 0))
		return;
	if (count <= MST_COUNTED_EACH) {
		add_each(&line, row, count);
		return;
	}
	add(&line, "%s samples of %" PRIu32 " ranks", mst_counted_of(counted, pushed).text, count);
	add_lowest(&line, row, count);
}
