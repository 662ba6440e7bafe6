/* SPDX-License-Identifier: MIT */
/*
 * Recorded arrival times: a CSV of step,worker,ready_us with a header line. Workers must be
 * numbered from 0 without gaps, since rank r uses the times of worker r mod (workers in the file).
 * The file comes from a user, so every line is checked, and the memory needed depends only on the
 * number of lines.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/delay/model.h"

#define HEADER "step,worker,ready_us"
#define LINE_BYTES 128      /* no valid line is longer */
#define MARK "\xef\xbb\xbf" /* U+FEFF */
#define NS_PER_US 1000.0

struct trace_row {
	uint32_t worker;
	uint64_t ns;
};

struct mst_trace_file {
	struct trace_row *row;
	size_t count, room;
	uint32_t workers; /* the largest number seen, plus one */
};

static int table_add(struct mst_trace_file *t, struct trace_row row)
{
	if (t->count == t->room) {
		size_t room = t->room > 0 ? 2 * t->room : 1024;
		struct trace_row *grown = reallocarray(t->row, room, sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		t->row = grown;
		t->room = room;
	}
	t->row[t->count++] = row;
	if (row.worker >= t->workers)
		t->workers = row.worker + 1;
	return 0;
}

/* Removes the end of the line.
 * Return: false: the line is too long, so it has no end. */
static bool line_trim(char *line, FILE *f)
{
	size_t len = strcspn(line, "\r\n");

	if (line[len] == '\0' && !feof(f))
		return false;
	line[len] = '\0';
	return true;
}

/* Copies a cell without the blanks around it, and without its quotes. Return: the end of the copy.
 */
static char *cell_copy(char *to, const char *begin, const char *end)
{
	while (begin < end && (*begin == ' ' || *begin == '\t'))
		begin++;
	while (end > begin && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	if (end - begin >= 2 && *begin == '"' && end[-1] == '"') {
		begin++;
		end--;
	}
	memmove(to, begin, (size_t)(end - begin));
	return to + (end - begin);
}

/* Programs that write tables may begin the file with a mark, put blanks around cells, and cells in
 * quotes. */
static void line_clean(char *line)
{
	const char *at = strncmp(line, MARK, strlen(MARK)) == 0 ? line + strlen(MARK) : line;
	char *to = line;

	for (;;) {
		const char *end = at + strcspn(at, ",");
		bool is_last = *end == '\0';
		to = cell_copy(to, at, end);
		*to = is_last ? '\0' : ',';
		if (is_last)
			return;
		to++;
		at = end + 1;
	}
}

static bool row_parse(const char *line, struct trace_row *out)
{
	double step, worker, ready_us;
	const char *at = mst_delay_number(line, &step);

	if (at == NULL || *at != ',')
		return false;
	at = mst_delay_number(at + 1, &worker);
	if (at == NULL || *at != ',' || worker >= UINT32_MAX || worker != (uint32_t)worker)
		return false;
	at = mst_delay_number(at + 1, &ready_us);
	if (at == NULL || *at != '\0' || ready_us * NS_PER_US > (double)MST_DELAY_MAX)
		return false;
	*out = (struct trace_row){ .worker = (uint32_t)worker,
				   .ns = (uint64_t)(ready_us * NS_PER_US) };
	return true;
}

/* Reads all lines. Return: 0, -ENOMEM, or -EINVAL with the number of the wrong line in @wrong. */
static int table_read(struct mst_trace_file *t, FILE *f, size_t *wrong)
{
	char line[LINE_BYTES];
	struct trace_row row;

	for (*wrong = 1; fgets(line, sizeof(line), f) != NULL; (*wrong)++) {
		if (!line_trim(line, f))
			return -EINVAL;
		line_clean(line);
		if (*wrong == 1) {
			if (strcmp(line, HEADER) != 0)
				return -EINVAL;
			continue;
		}
		if (!row_parse(line, &row))
			return -EINVAL;
		int rc = table_add(t, row);
		if (rc != 0)
			return rc;
	}
	return ferror(f) ? -errno : 0;
}

/* Return: the lowest worker without a line, t->workers if there is none; -ENOMEM. */
static int64_t table_gap(const struct mst_trace_file *t)
{
	/* If there are more workers than lines, one of the first count + 1 workers has no line. So
	 * it is not necessary to look further, nor to trust the file and allocate for its largest
	 * number. */
	size_t workers = t->workers <= t->count ? t->workers : t->count + 1;
	bool *seen = calloc(workers + 1, sizeof(*seen));
	int64_t gap = 0;

	if (seen == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < t->count; i++) {
		if (t->row[i].worker < workers)
			seen[t->row[i].worker] = true;
	}
	while (gap < (int64_t)t->workers && seen[gap])
		gap++;
	free(seen);
	return gap;
}

static int traces_check(const struct mst_trace_file *f, struct mst_reason *why)
{
	if (f->count == 0) {
		mst_reason_set(why, "the file has no line below its header");
		return -EINVAL;
	}
	int64_t gap = table_gap(f);
	if (gap >= 0 && gap < (int64_t)f->workers) {
		mst_reason_set(why, "worker %lld has no line, though worker %u has", (long long)gap,
			       f->workers - 1);
		return -EINVAL;
	}
	return gap < 0 ? (int)gap : 0;
}

static int traces_load(struct mst_trace_file *t, FILE *f, struct mst_reason *why)
{
	size_t line;
	int rc = table_read(t, f, &line);

	if (rc == 0)
		return traces_check(t, why);
	if (rc == -EINVAL)
		mst_reason_set(why, "line %zu of the file is not %s", line, HEADER);
	else
		mst_reason_set(why, "cannot read the file: %s", strerror(-rc));
	return rc;
}

int mst_trace_file_read(const char *path, struct mst_trace_file **out, struct mst_reason *why)
{
	struct mst_trace_file *t = calloc(1, sizeof(*t));
	FILE *f = t != NULL ? fopen(path, "re") : NULL;

	if (f == NULL) {
		int rc = t != NULL ? -errno : -ENOMEM;
		mst_reason_set(why, "cannot open the file: %s", strerror(-rc));
		free(t);
		return rc;
	}
	int rc = traces_load(t, f, why);
	fclose(f);
	if (rc != 0) {
		mst_trace_file_free(t);
		return rc;
	}
	*out = t;
	return 0;
}

void mst_trace_file_free(struct mst_trace_file *f)
{
	if (f == NULL)
		return;
	free(f->row);
	free(f);
}

int mst_trace_pick(struct mst_trace *t, const struct mst_trace_file *f, uint32_t rank)
{
	uint32_t worker = rank % f->workers;
	size_t count = 0;

	for (size_t i = 0; i < f->count; i++)
		count += f->row[i].worker == worker;
	uint64_t *ns = calloc(count, sizeof(*ns));
	if (ns == NULL)
		return -ENOMEM;
	count = 0;
	for (size_t i = 0; i < f->count; i++) {
		if (f->row[i].worker == worker)
			ns[count++] = f->row[i].ns;
	}
	*t = (struct mst_trace){ .ns = ns, .count = count };
	return 0;
}

void mst_trace_free(struct mst_trace *t)
{
	free(t->ns);
	t->ns = NULL;
}

uint64_t mst_trace_next(struct mst_trace *t)
{
	uint64_t ns = t->ns[t->next];

	t->next = (t->next + 1) % t->count;
	return ns;
}
