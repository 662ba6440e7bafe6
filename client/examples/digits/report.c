/* SPDX-License-Identifier: MIT */
/* What a worker learnt, for people and for programs. */
#include "client/examples/digits/worker.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void report_print(const struct report *r)
{
	printf("rank %" PRIu32 ": %" PRIu64 " versions, loss %.2f, test accuracy %.3f\n", r->rank,
	       r->versions, r->loss, r->accuracy);
	fflush(stdout);
}

static void put_text(FILE *f, const char *text)
{
	fputc('"', f);
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;
		if (byte == '"' || byte == '\\')
			fprintf(f, "\\%c", byte);
		else if (byte < ' ')
			fprintf(f, "\\u%04x", byte);
		else
			fputc(byte, f);
	}
	fputc('"', f);
}

/* JSON has no word for what is not a number; a loss that ran away is null. */
static void put_real(FILE *f, double value)
{
	if (isfinite(value))
		fprintf(f, "%.6g", value);
	else
		fputs("null", f);
}

static void put_report(FILE *f, const struct report *r)
{
	fprintf(f, "{\"rank\": %" PRIu32 ", \"versions\": %" PRIu64 ", \"loss\": ", r->rank,
		r->versions);
	put_real(f, r->loss);
	fputs(", \"accuracy\": ", f);
	put_real(f, r->accuracy);
	fprintf(f,
		", \"train\": %" PRIu32 ", \"test\": %" PRIu32 ", \"parameters\": %" PRIu64
		", \"data\": ",
		r->train, r->test, r->parameters);
	put_text(f, r->data ? r->data : "drawn");
	fputs(", \"product\": ", f);
	put_text(f, r->product);
	fputs("}\n", f);
}

/* Return: 0 or -ENAMETOOLONG. */
static int name_file(char path[PATH_MAX], const char *file, uint32_t rank)
{
	const char *mark = strstr(file, "%r");
	int n;

	if (mark)
		n = snprintf(path, PATH_MAX, "%.*s%" PRIu32 "%s", (int)(mark - file), file, rank,
			     mark + 2);
	else
		n = snprintf(path, PATH_MAX, "%s", file);
	return n >= 0 && n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int report_write(const struct report *r, const char *file, struct mst_reason *why)
{
	char path[PATH_MAX];
	int rc = name_file(path, file, r->rank);
	FILE *f = rc ? NULL : fopen(path, "w");

	if (f) {
		put_report(f, r);
		rc = ferror(f) ? -EIO : 0;
		if (fclose(f) && rc == 0)
			rc = -errno;
	} else if (rc == 0) {
		rc = -errno;
	}
	if (rc)
		mst_reason_set(why, "%s: the result cannot be written: %s", file, strerror(-rc));
	return rc;
}
