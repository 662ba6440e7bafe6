/* SPDX-License-Identifier: MIT */
/*
 * One row of a table: which texts it accepts, what its field holds, and how that is written as
 * text. Internal to common/config. Flags, the file and everything printed use these functions, so
 * that a value means the same everywhere.
 */
#ifndef MST_CONFIG_ROW_H
#define MST_CONFIG_ROW_H

#include "common/config/option.h"

#define MST_ROWS_MAX 128u
#define MST_ROW_TEXT_MAX 48u     /* a number as text */
#define MST_ROW_EXPECTS_MAX 192u /* "a whole number from 1 to 64, or auto" */
#define MST_ROW_LABEL_MAX 200u   /* "option --workers", "muster.conf:3: workers" */

/* One pass over flags or over a file: which lists it has begun. */
struct mst_pass {
	uint64_t begun[MST_ROWS_MAX / 64];
};

/* Return: the row called @name (@len characters), or NULL. */
const struct mst_option *mst_row_find(const struct mst_option *table, const char *name, size_t len);

static inline void *mst_row_field(const struct mst_options *o, const struct mst_option *row)
{
	return (char *)o->fields + row->offset;
}

/* What --help calls the value: "DURATION", "shrink|fail"; NULL: the option takes no value. */
const char *mst_row_value(const struct mst_option *row);
/* Writes in words what a row accepts. */
void mst_row_expects(const struct mst_option *row, char *out, size_t len);

/* Sets the field to 0, false, NULL or empty. */
void mst_row_clear(struct mst_options *o, const struct mst_option *row);
/* Empties a list at its first value of this pass; other fields are simply overwritten. */
void mst_row_begin(struct mst_options *o, const struct mst_option *row, struct mst_pass *pass);
/* Reads @text into the field; a list gets one more item. @label names the value in o->why.
 * Return: 0, -EINVAL or -ENOMEM. */
int mst_row_set(struct mst_options *o, const struct mst_option *row, const char *text,
		const char *label);

/* Does the field hold what mst_row_clear() left? */
bool mst_row_unset(const struct mst_options *o, const struct mst_option *row);
/* Writes what the field of a row holds, as a user would type it; not for STRING and LIST. */
void mst_row_text(const struct mst_options *o, const struct mst_option *row, char *out, size_t len);

/* Copies the choice at @index out of "a|b|c".
 * Return: false: there is none. */
bool mst_row_choice(const struct mst_option *row, unsigned index, char *out, size_t len);

/* Writes a sentence to o->why.
 * Return: -EINVAL. */
int mst_options_refuse(struct mst_options *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Writes to o->why that there is no such option, and which is nearest. @key: names are written as
 * in a file. @prefix: "muster.conf:3: ", or "".
 * Return: -EINVAL. */
int mst_options_unknown(struct mst_options *o, const char *prefix, const char *name, bool key);

/* The reverse of mst_parse_*(): reading the text gives the same value. */
void mst_format_u64(uint64_t value, char *out, size_t len);
void mst_format_real(double value, char *out, size_t len);
void mst_format_size(uint64_t value, char *out, size_t len);
void mst_format_duration(uint64_t value, char *out, size_t len);

/* Looks for what libconfig would accept silently, or what would end the process (option_scan.c).
 * @line: where it is.
 * Return: NULL, or what is wrong. */
const char *mst_options_scan(const char *text, unsigned *line);

/* The first and the last line of a printed file. */
#define MST_OPTIONS_FIRST_LINE                                                                     \
	"# All options of musterd; the last line is \"" MST_OPTIONS_LAST_LINE "\"."
#define MST_OPTIONS_LAST_LINE "# end of options"

#endif
