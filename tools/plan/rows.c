/* SPDX-License-Identifier: MIT */
#include "tools/plan/rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/config/option.h"

#define LINE_BYTES 512u /* no valid line is longer */
#define COLUMNS_MAX 32u
#define KINDS                                                                                      \
	"a trace has the columns step,worker,ready_us, and a recording of musterd --record "       \
	"rank,version,start_us,ready_us,verdict"

/* What a column means. The first three are of both kinds of file. */
enum field { STEP, RANK, READY, START, VERDICT, FIELDS };

static const char *const trace_names[FIELDS] = { "step", "worker", "ready_us", NULL, NULL };
static const char *const recorded_names[FIELDS] = { "version", "rank", "ready_us", "start_us",
						    "verdict" };

struct row_reader {
	FILE *f;
	const struct mst_rows_cfg *cfg;
	struct mst_arrival_rows *rows;
	const char *const *names;
	int column[FIELDS]; /* of each field */
	int generation;     /* the column; -1: there is none */
	uint32_t before;    /* the generation of the last row */
	uint32_t *nth;      /* by rank: its rows so far; NULL unless they are paired by order */
	uint32_t line;
	char text[LINE_BYTES];
	char *cell[COLUMNS_MAX];
	unsigned cells;
	struct mst_reason *why;
};

static int refuse(struct row_reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int refuse(struct row_reader *r, const char *fmt, ...)
{
	va_list args;

	mst_reason_set(r->why, "line %" PRIu32 ": ", r->line);
	va_start(args, fmt);
	mst_reason_vadd(r->why, fmt, args);
	va_end(args);
	return -EINVAL;
}

/* ---- lines and cells ---- */

/* Reads the next line without its end.
 * Return: 1; 0 at the end of the file; -EINVAL; the errno of reading. */
static int next_line(struct row_reader *r)
{
	size_t used = 0;
	int c;

	r->line++;
	errno = 0;
	while ((c = getc(r->f)) != EOF && c != '\n') {
		if (c == 0 || (c < ' ' && c != '\t' && c != '\r'))
			return refuse(r, "there is a byte 0x%02x: this is no text", (unsigned)c);
		if (used + 1 == LINE_BYTES)
			return refuse(r, "it is longer than %u bytes: this is no trace",
				      LINE_BYTES - 1);
		r->text[used++] = (char)c;
	}
	if (c == EOF && ferror(r->f))
		return errno != 0 ? -errno : -EIO;
	if (used > 0 && r->text[used - 1] == '\r')
		used--;
	r->text[used] = '\0';
	return c != EOF || used > 0;
}

static char *skip_blanks(char *at)
{
	return at + strspn(at, " \t");
}

/* Takes the quotes off a cell that begins at @at with one; two of them within it are one.
 * Return: what follows the cell; NULL: its end is missing, or is not the cell's. */
static char *unquote(char *at)
{
	char *to = at, *from = at + 1;

	for (; *from != '\0'; from++) {
		if (*from == '"' && *++from != '"') {
			*to = '\0';
			from = skip_blanks(from);
			return *from == ',' || *from == '\0' ? from : NULL;
		}
		*to++ = *from;
	}
	return NULL;
}

/* Takes blanks off the end of a cell. Return: what follows the cell. */
static char *trim(char *at)
{
	char *behind = at + strcspn(at, ","), *end = behind;

	while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	if (end < behind)
		*end = '\0';
	return behind;
}

/* Cuts the line at its commas. Cells may have blanks around them, and may stand in quotes, as
 * programs write tables. */
static int cut(struct row_reader *r)
{
	char *at = r->text;

	r->cells = 0;
	for (;;) {
		if (r->cells == COLUMNS_MAX)
			return refuse(r, "it has more than %u columns", COLUMNS_MAX);
		at = skip_blanks(at);
		r->cell[r->cells++] = at;
		at = *at == '"' ? unquote(at) : trim(at);
		if (at == NULL)
			return refuse(r, "column %u begins with a quote and does not end with one",
				      r->cells);
		if (*at == '\0')
			return 0;
		*at++ = '\0';
	}
}

/* ---- the header ---- */

static int find_column(const struct row_reader *r, const char *name)
{
	for (unsigned i = 0; i < r->cells; i++)
		if (strcmp(r->cell[i], name) == 0)
			return (int)i;
	return -1;
}

static int find_columns(struct row_reader *r)
{
	for (unsigned i = 0; i < FIELDS && r->names[i] != NULL; i++) {
		r->column[i] = find_column(r, r->names[i]);
		if (r->column[i] < 0)
			return refuse(r, "there is no column %s: %s", r->names[i], KINDS);
		for (unsigned j = (unsigned)r->column[i] + 1; j < r->cells; j++)
			if (strcmp(r->cell[j], r->names[i]) == 0)
				return refuse(r, "the column %s is there twice", r->names[i]);
	}
	return 0;
}

/* Programs that write tables may begin a file with the mark U+FEFF. */
static void skip_mark(struct row_reader *r)
{
	static const char mark[] = "\xef\xbb\xbf";

	if (strncmp(r->text, mark, strlen(mark)) == 0)
		memmove(r->text, r->text + strlen(mark), strlen(r->text) - strlen(mark) + 1);
}

static int read_header(struct row_reader *r)
{
	int rc = next_line(r);

	if (rc == 0) {
		mst_reason_set(r->why, "the file is empty: %s", KINDS);
		return -EINVAL;
	}
	skip_mark(r);
	if (rc > 0)
		rc = cut(r);
	if (rc != 0)
		return rc;
	r->rows->recorded = find_column(r, recorded_names[STEP]) >= 0 ||
			    find_column(r, recorded_names[VERDICT]) >= 0;
	r->names = r->rows->recorded ? recorded_names : trace_names;
	r->generation = r->rows->recorded ? find_column(r, "generation") : -1;
	return find_columns(r);
}

/* ---- rows ---- */

struct verdict_meaning {
	const char *name;
	bool known, counted;
};

/* A gradient that was cancelled or given up would have taken longer than it was computed for. */
static const struct verdict_meaning verdicts[] = {
	{ "counted", true, true },     { "late", true, false },      { "stale", true, false },
	{ "refused", true, false },    { "outlier", true, false },   { "damaged", true, false },
	{ "cancelled", false, false }, { "given_up", false, false },
};

static const char *cell_of(const struct row_reader *r, enum field field)
{
	return r->cell[r->column[field]];
}

static int read_whole(struct row_reader *r, enum field field, uint64_t max, uint64_t *out)
{
	const char *text = cell_of(r, field);

	if (mst_parse_u64(text, out) != 0 || *out > max)
		return refuse(r, "%s is \"%.40s\", and has to be a whole number from 0 to %" PRIu64,
			      r->names[field], text, max);
	return 0;
}

/* @max: MST_ARRIVAL_MAX_US, or that of a clock's reading, of which only differences count. */
static int read_time(struct row_reader *r, enum field field, double max, double *out)
{
	const char *text = cell_of(r, field);
	bool is_time = mst_parse_real(text, out) == 0 && *out >= 0 && *out <= MST_CLOCK_MAX_US;

	if (is_time && *out <= max)
		return 0;
	if (is_time)
		return refuse(r,
			      "%s is %.40s, which looks like a time since 1970: a trace has the "
			      "microseconds from the beginning of the step; with the time of each "
			      "beginning too it can be written as a recording (%s)",
			      r->names[field], text, KINDS);
	return refuse(r, "%s is \"%.40s\", and has to be a number of microseconds from 0 to %.0e",
		      r->names[field], text, max);
}

static int read_verdict(struct row_reader *r, struct mst_arrival_row *row)
{
	const char *text = cell_of(r, VERDICT);

	for (size_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++) {
		if (strcmp(text, verdicts[i].name) != 0)
			continue;
		row->known = verdicts[i].known;
		row->counted = verdicts[i].counted;
		return 0;
	}
	return refuse(r,
		      "verdict is \"%.40s\", and has to be counted, late, stale, refused, "
		      "outlier, damaged, cancelled or given_up",
		      text);
}

/* How long the gradient of a recording took. Return: 1; 0: it is not known; -EINVAL. */
static int read_span(struct row_reader *r, struct mst_arrival_row *row)
{
	double start, ready;
	int rc = read_verdict(r, row);

	if (rc == 0)
		rc = read_time(r, READY, MST_CLOCK_MAX_US, &ready);
	if (rc != 0 || cell_of(r, START)[0] == '\0')
		return rc;
	rc = read_time(r, START, MST_CLOCK_MAX_US, &start);
	if (rc != 0)
		return rc;
	if (ready < start)
		return refuse(r, "the gradient is ready at %.40s, before its start at %.40s",
			      cell_of(r, READY), cell_of(r, START));
	row->us = ready - start;
	return 1;
}

/* Servers were replaced, and each generation of them has made versions of its own. They come one
 * after the other. */
static int read_generation(struct row_reader *r, struct mst_arrival_row *row)
{
	uint64_t number;

	if (r->generation < 0)
		return 0;
	if ((unsigned)r->generation >= r->cells)
		return refuse(r, "it ends before the column generation");
	const char *text = r->cell[r->generation];
	if (mst_parse_u64(text, &number) != 0 || number == 0 || number > UINT32_MAX)
		return refuse(r,
			      "generation is \"%.40s\", and has to be a whole number from 1 to %u",
			      text, UINT32_MAX);
	if (number < r->before)
		return refuse(r, "generation is %.40s, after rows of generation %" PRIu32, text,
			      r->before);
	row->generation = (uint32_t)number;
	return 0;
}

/* Return: 1; 0: the row says nothing; -EINVAL. */
static int read_row(struct row_reader *r, struct mst_arrival_row *row)
{
	uint64_t rank;

	*row = (struct mst_arrival_row){ .line = r->line, .known = true, .counted = true };
	for (unsigned i = 0; i < FIELDS && r->names[i] != NULL; i++)
		if ((unsigned)r->column[i] >= r->cells)
			return refuse(r, "it ends before the column %s", r->names[i]);
	int rc = read_whole(r, STEP, UINT64_MAX - 1, &row->step);
	if (rc == 0)
		rc = read_whole(r, RANK, MST_ARRIVAL_RANKS_MAX - 1, &rank);
	if (rc == 0)
		rc = read_generation(r, row);
	if (rc != 0)
		return rc;
	row->rank = (uint32_t)rank;
	if (r->rows->recorded)
		return read_span(r, row);
	rc = read_time(r, READY, MST_ARRIVAL_MAX_US, &row->us);
	return rc != 0 ? rc : 1;
}

static int add(struct row_reader *r, const struct mst_arrival_row *row)
{
	struct mst_arrival_rows *rows = r->rows;

	if (rows->count == MST_ARRIVAL_ROWS_MAX)
		return refuse(r,
			      "there are more than %u rows: read a part of the steps, with --from "
			      "and --to",
			      MST_ARRIVAL_ROWS_MAX);
	if (rows->count == rows->room) {
		size_t room = rows->room > 0 ? 2 * rows->room : 1024;
		struct mst_arrival_row *grown = reallocarray(rows->row, room, sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		rows->row = grown;
		rows->room = room;
	}
	rows->row[rows->count++] = *row;
	return 0;
}

/* The n-th gradients of the ranks are paired within each generation. */
static void enter_generation(struct row_reader *r, uint32_t generation)
{
	if (generation == r->before)
		return;
	r->rows->generations++;
	r->before = generation;
	if (r->nth != NULL)
		memset(r->nth, 0, MST_ARRIVAL_RANKS_MAX * sizeof(*r->nth));
}

static int take_row(struct row_reader *r)
{
	struct mst_arrival_row row;
	int rc = cut(r);

	if (rc == 0)
		rc = read_row(r, &row);
	if (rc < 0)
		return rc;
	enter_generation(r, row.generation);
	r->rows->lines++;
	if (rc == 0) {
		r->rows->untimed++;
		return 0;
	}
	if (r->nth != NULL)
		row.step = r->nth[row.rank]++;
	if (row.step < r->cfg->from || row.step > r->cfg->to) {
		r->rows->outside++;
		return 0;
	}
	return add(r, &row);
}

/* "# 17 rows are missing", as musterd writes it; any other remark is ignored. */
static void take_remark(struct row_reader *r)
{
	uint64_t missing;

	if (sscanf(r->text, "# %" SCNu64 " rows are missing", &missing) == 1)
		r->rows->gone_missing += missing;
}

static int read_all(struct row_reader *r)
{
	int rc = read_header(r);

	if (rc == 0 && r->rows->recorded && r->cfg->pair == MST_PAIR_ORDER) {
		r->nth = calloc(MST_ARRIVAL_RANKS_MAX, sizeof(*r->nth));
		rc = r->nth != NULL ? 0 : -ENOMEM;
	}
	while (rc == 0 && (rc = next_line(r)) > 0) {
		if (r->text[0] == '#')
			take_remark(r);
		rc = r->text[0] == '#' ? 0 : take_row(r);
	}
	return rc;
}

int mst_rows_read(FILE *f, const struct mst_rows_cfg *cfg, struct mst_arrival_rows *out,
		  struct mst_reason *why)
{
	struct mst_arrival_rows rows = { 0 };
	struct row_reader r = { .f = f, .cfg = cfg, .rows = &rows, .why = why };
	int rc = read_all(&r);

	free(r.nth);
	if (rc == -ENOMEM)
		mst_reason_set(why, "no memory for %zu rows (%zu MiB)", 2 * rows.room,
			       2 * rows.room * sizeof(*rows.row) >> 20);
	else if (rc != 0 && rc != -EINVAL)
		mst_reason_set(why, "cannot read it: %s", strerror(-rc));
	if (rc != 0) {
		mst_rows_free(&rows);
		return rc;
	}
	*out = rows;
	return 0;
}

void mst_rows_free(struct mst_arrival_rows *rows)
{
	free(rows->row);
	rows->row = NULL;
}
