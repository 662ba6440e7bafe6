/* SPDX-License-Identifier: MIT */
#include "common/host/exit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio_ext.h>
#include <string.h>

#include "common/base/log.h"

static const struct {
	const char *shown, *means;
} rows[] = {
#define ROW(name, status, shown, means) { shown, means },
	MST_EXITS(ROW)
#undef ROW
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static bool told;

void mst_exit_told(void)
{
	told = true;
}

/* A stream that was closed already is no failure if nothing was to be written to it. */
int mst_exit_close(int status)
{
	bool waits = __fpending(stdout) > 0;
	bool lost = ferror(stdout) != 0;

	errno = 0;
	bool failed = fclose(stdout) != 0 && (waits || errno != EBADF);
	if (ferror(stderr) != 0)
		return mst_exit_incomplete(status);
	if (!lost && !failed)
		return status;
	if (errno != EPIPE && !told)
		mst_error("not all that was printed is there: cannot write to standard output%s%s",
			  errno != 0 ? ": " : "", errno != 0 ? strerror(errno) : "");
	return mst_exit_incomplete(status);
}

void mst_exit_help(FILE *out)
{
	(void)fputs("\nexit status:\n", out);
	for (size_t i = 0; i < ROWS; i++)
		(void)fprintf(out, "  %-6s %s\n", rows[i].shown, rows[i].means);
}

/* A hyphen that is typed is a minus for man(7). */
static void print_text(const char *text, FILE *out)
{
	for (; *text != '\0'; text++) {
		if (*text == '-')
			(void)fputc('\\', out);
		(void)fputc(*text, out);
	}
	(void)fputc('\n', out);
}

void mst_exit_man(FILE *out)
{
	for (size_t i = 0; i < ROWS; i++) {
		(void)fprintf(out, ".TP\n%s\n", rows[i].shown);
		print_text(rows[i].means, out);
	}
}
