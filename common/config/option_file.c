/* SPDX-License-Identifier: MIT */
/*
 * Reads options from a libconfig file. A setting is turned into the text that a flag would have,
 * and then handled as a flag. Here it is only checked that its type suits the row, so that `job =
 * 5` is refused as `--workers five` is.
 */
#include <errno.h>
#include <inttypes.h>
#include <libconfig.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/config/row.h"

#define FILE_BYTES_MAX (UINT32_C(1) << 20)

/* The file being read. */
struct reading {
	struct mst_options *o;
	const char *path;
	struct mst_pass pass;
};

/* Editors may begin a file with the mark U+FEFF. */
static void skip_mark(char *text)
{
	static const char mark[] = "\xef\xbb\xbf";

	if (strncmp(text, mark, strlen(mark)) == 0)
		memmove(text, text + strlen(mark), strlen(text) - strlen(mark) + 1);
}

/* Reads to the end of @f into @text, which has room for two bytes more than a file may have.
 * Return: 0 or -errno. */
static int text_fill(FILE *f, char *text)
{
	struct stat st;

	/* fopen() opens a folder without an error. */
	if (fstat(fileno(f), &st) == 0 && S_ISDIR(st.st_mode))
		return -EISDIR;
	size_t bytes = fread(text, 1, FILE_BYTES_MAX + 1, f);
	if (ferror(f))
		return -EIO;
	if (bytes > FILE_BYTES_MAX)
		return -EFBIG;
	if (memchr(text, '\0', bytes) != NULL)
		return -EILSEQ;
	/* libconfig accepts a comment only if its line ends. */
	memcpy(text + bytes, "\n", 2);
	skip_mark(text);
	return 0;
}

/* Reads the whole file into a string.
 * Return: 0 or -errno. */
static int text_load(const char *path, char **out)
{
	FILE *f = fopen(path, "re");

	if (f == NULL)
		return -errno;
	char *text = malloc(FILE_BYTES_MAX + 2);
	int rc = text != NULL ? text_fill(f, text) : -ENOMEM;
	fclose(f);
	if (rc != 0) {
		free(text);
		return rc;
	}
	*out = text;
	return 0;
}

/* May a setting of this type set the row? A number in quotes may: numbers that libconfig cannot
 * hold are written so. */
static bool type_suits(const struct mst_option *row, int type)
{
	switch (row->kind) {
	case MST_OPTION_FLAG:
		return type == CONFIG_TYPE_BOOL;
	case MST_OPTION_U32:
	case MST_OPTION_U64:
	case MST_OPTION_SIZE:
		return type == CONFIG_TYPE_STRING || type == CONFIG_TYPE_INT ||
		       type == CONFIG_TYPE_INT64;
	case MST_OPTION_REAL:
		return type == CONFIG_TYPE_STRING || type == CONFIG_TYPE_INT ||
		       type == CONFIG_TYPE_INT64 || type == CONFIG_TYPE_FLOAT;
	default:
		return type == CONFIG_TYPE_STRING;
	}
}

/* The text that a flag would have. @number: room for a value that is not a string. */
static const char *setting_text(const config_setting_t *s, char *number, size_t len)
{
	switch (config_setting_type(s)) {
	case CONFIG_TYPE_STRING:
		return config_setting_get_string(s);
	case CONFIG_TYPE_BOOL:
		return config_setting_get_bool(s) ? "true" : "false";
	case CONFIG_TYPE_FLOAT:
		mst_format_real(config_setting_get_float(s), number, len);
		return number;
	case CONFIG_TYPE_INT:
		snprintf(number, len, "%d", config_setting_get_int(s));
		return number;
	default:
		snprintf(number, len, "%lld", config_setting_get_int64(s));
		return number;
	}
}

static int scalar_apply(struct reading *r, const struct mst_option *row, const config_setting_t *s,
			const char *label)
{
	char number[MST_ROW_TEXT_MAX], expects[MST_ROW_EXPECTS_MAX];

	if (!type_suits(row, config_setting_type(s))) {
		bool quotes = row->kind == MST_OPTION_STRING || row->kind == MST_OPTION_LIST ||
			      row->kind == MST_OPTION_CHOICE || row->kind == MST_OPTION_DURATION;
		mst_row_expects(row, expects, sizeof(expects));
		return mst_options_refuse(r->o, "%s: needs %s%s", label, expects,
					  quotes ? ", in quotes" : "");
	}
	return mst_row_set(r->o, row, setting_text(s, number, sizeof(number)), label);
}

static int list_apply(struct reading *r, const struct mst_option *row, const config_setting_t *s,
		      const char *label)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < config_setting_length(s); i++)
		rc = scalar_apply(r, row, config_setting_get_elem(s, (unsigned)i), label);
	return rc;
}

/* Return: the row whose name is @key with '_' for '-', or NULL. */
static const struct mst_option *row_of_key(const struct mst_option *table, const char *key)
{
	char name[MST_ROW_TEXT_MAX];
	size_t len = 0;

	for (; key[len] != '\0' && key[len] != '-' && len < sizeof(name); len++)
		name[len] = (char)(key[len] == '_' ? '-' : key[len]);
	return key[len] == '\0' ? mst_row_find(table, name, len) : NULL;
}

static int setting_apply(struct reading *r, const config_setting_t *s)
{
	const char *key = config_setting_name(s);
	const struct mst_option *row = row_of_key(r->o->table, key);
	unsigned line = config_setting_source_line(s);
	char label[MST_ROW_LABEL_MAX];

	if (row == NULL) {
		snprintf(label, sizeof(label), "%.160s:%u: ", r->path, line);
		return mst_options_unknown(r->o, label, key, true);
	}
	snprintf(label, sizeof(label), "%.120s:%u: %.60s", r->path, line, key);
	if (row->typed_only)
		return mst_options_refuse(r->o, "%s: is a flag only, not a key of a file", label);
	mst_row_begin(r->o, row, &r->pass);
	if (row->kind == MST_OPTION_LIST &&
	    (config_setting_is_array(s) || config_setting_is_list(s)))
		return list_apply(r, row, s, label);
	return scalar_apply(r, row, s, label);
}

/* What libconfig wants and does not say. */
#define WANTED ": a setting is written key = value; and a text is in double quotes"

static int settings_apply(struct reading *r, const char *text)
{
	config_t config;
	int rc = 0;

	config_init(&config);
	if (config_read_string(&config, text) != CONFIG_TRUE) {
		const char *error = config_error_text(&config);
		bool syntax = strcmp(error, "syntax error") == 0;
		rc = mst_options_refuse(r->o, "%.160s:%d: %s%s", r->path,
					config_error_line(&config), error, syntax ? WANTED : "");
	} else {
		const config_setting_t *root = config_root_setting(&config);
		for (int i = 0; rc == 0 && i < config_setting_length(root); i++)
			rc = setting_apply(r, config_setting_get_elem(root, (unsigned)i));
	}
	config_destroy(&config);
	return rc;
}

/* Is this what is left of a file that was printed, or of any? A file without settings says nothing,
 * and is most likely what a full disk has left. Editors may have added lines after the last one. */
static bool is_cut(const char *text)
{
	static const char first[] = MST_OPTIONS_FIRST_LINE "\n";
	static const char last[] = "\n" MST_OPTIONS_LAST_LINE "\n";
	size_t length = strlen(text) - 1; /* without the line's end that text_fill() has added */

	if (length < sizeof(first) - 1)
		return strncmp(text, first, length) == 0;
	return strncmp(text, first, sizeof(first) - 1) == 0 && strstr(text, last) == NULL;
}

int mst_options_file(struct mst_options *o, const char *path)
{
	struct reading r = { .o = o, .path = path };
	unsigned line;
	char *text = NULL;
	int rc = text_load(path, &text);

	if (rc == -EILSEQ || rc == -EFBIG) {
		return mst_options_refuse(o, "%.160s: is not a configuration: %s", path,
					  rc == -EFBIG ? "larger than 1 MiB" : "has a zero byte");
	}
	if (rc != 0) {
		mst_options_refuse(o, "cannot read %.160s: %s", path, strerror(-rc));
		return rc;
	}
	const char *wrong = mst_options_scan(text, &line);
	if (is_cut(text))
		rc = mst_options_refuse(
			o,
			"%.160s: %s: it is refused, so that nothing runs with other options than "
			"those that were meant",
			path,
			text[1] == '\0' ? "is empty"
					: "is cut off: its last line \"" MST_OPTIONS_LAST_LINE
					  "\" is missing");
	else if (wrong != NULL)
		rc = mst_options_refuse(o, "%.160s:%u: %s", path, line, wrong);
	else
		rc = settings_apply(&r, text);
	free(text);
	return rc;
}
