/* SPDX-License-Identifier: MIT */
/* Defaults, flags, and single options by name: the parts of option.h that need no file. */
#include "common/config/option.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/config/habits.h"
#include "common/config/row.h"

int mst_options_refuse(struct mst_options *o, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	mst_reason_vset(&o->why, fmt, args);
	va_end(args);
	return -EINVAL;
}

/* In a file a name is written with '_' in place of '-'. */
static void key_spell(char *name)
{
	for (; *name != '\0'; name++) {
		if (*name == '-')
			*name = '_';
	}
}

int mst_options_unknown(struct mst_options *o, const char *prefix, const char *name, bool key)
{
	const char *names[MST_ROWS_MAX + 1];
	char near[MST_ROW_LABEL_MAX] = "";
	const char *dashes = key ? "" : "--";
	size_t count = 0;

	for (const struct mst_option *row = o->table; row->name != NULL; row++) {
		if (!key || !row->typed_only)
			names[count++] = row->name;
	}
	names[count] = NULL;
	const char *habit = key ? NULL : mst_habit_say(o->table, name);
	if (habit != NULL)
		return mst_options_refuse(o, "%sunknown option --%.60s: %s", prefix, name, habit);
	const char *nearest = mst_nearest(name, names);
	if (nearest == NULL)
		return mst_options_refuse(o, "%sunknown option %s%.60s", prefix, dashes, name);
	snprintf(near, sizeof(near), "%s", nearest);
	if (key)
		key_spell(near);
	return mst_options_refuse(o, "%sunknown option %s%.60s: did you mean %s%s?", prefix, dashes,
				  name, dashes, near);
}

/* Asserts that the table is valid: a bad one is a mistake of the program. */
static void table_check(const struct mst_option *table)
{
	size_t count = 0;

	for (; table[count].name != NULL; count++) {
		const struct mst_option *row = &table[count];
		MST_ASSERT(mst_row_find(table, row->name, strlen(row->name)) == row);
		MST_ASSERT(strlen(row->name) < MST_ROW_TEXT_MAX);
		MST_ASSERT(row->min <= row->max);
		MST_ASSERT(row->min >= 0 || row->kind == MST_OPTION_REAL);
		MST_ASSERT((row->kind == MST_OPTION_CHOICE) == (row->choices != NULL));
		MST_ASSERT(row->help != NULL);
	}
	MST_ASSERT(count <= MST_ROWS_MAX);
}

int mst_options_init(struct mst_options *o, const struct mst_option *table, void *fields)
{
	table_check(table);
	*o = (struct mst_options){ .table = table, .fields = fields };
	for (const struct mst_option *row = table; row->name != NULL; row++) {
		mst_row_clear(o, row);
		if (row->fallback == NULL)
			continue;
		int rc = mst_row_set(o, row, row->fallback, row->name);
		if (rc == -ENOMEM) {
			mst_options_free(o);
			return rc;
		}
		MST_ASSERT(rc == 0);
	}
	return 0;
}

int mst_options_set(struct mst_options *o, const char *name, const char *value)
{
	const struct mst_option *row = mst_row_find(o->table, name, strlen(name));
	char label[MST_ROW_LABEL_MAX];

	if (row == NULL)
		return mst_options_unknown(o, "", name, false);
	snprintf(label, sizeof(label), "option --%s", name);
	return mst_row_set(o, row, value, label);
}

/* A flag of the command line. */
struct flag {
	const struct mst_option *row;
	const char *value; /* if it is written together with the flag; else NULL */
	char label[MST_ROW_LABEL_MAX];
};

static int flag_find_long(struct mst_options *o, const char *arg, struct flag *out)
{
	size_t len = strcspn(arg + 2, "=");

	out->row = mst_row_find(o->table, arg + 2, len);
	out->value = arg[2 + len] == '=' ? arg + 2 + len + 1 : NULL;
	snprintf(out->label, sizeof(out->label), "option --%.*s", (int)(len < 64 ? len : 64),
		 arg + 2);
	if (out->row == NULL)
		return mst_options_unknown(o, "", out->label + strlen("option --"), false);
	return 0;
}

/* Refuses words such as -workers and -np, also where there is a letter n with a value.
 * Return: 0: @arg is none of them. */
static int flag_refuse_word(struct mst_options *o, const char *arg)
{
	size_t len = strcspn(arg + 1, "=");
	const struct mst_option *row = len > 1 ? mst_row_find(o->table, arg + 1, len) : NULL;
	char word[64];

	if (row != NULL)
		return mst_options_refuse(o, "unknown option %.60s: did you mean --%s?", arg,
					  row->name);
	snprintf(word, sizeof(word), "%.*s", (int)(len < sizeof(word) ? len : 0), arg + 1);
	const char *habit = mst_habit_say(o->table, word);
	return habit == NULL ? 0 : mst_options_refuse(o, "unknown option -%s: %s", word, habit);
}

static int flag_find_letter(struct mst_options *o, const char *arg, struct flag *out)
{
	const struct mst_option *row = o->table;

	while (row->name != NULL && row->letter != arg[1])
		row++;
	if (row->name == NULL || arg[2] != '\0') {
		int rc = flag_refuse_word(o, arg);
		if (rc != 0)
			return rc;
	}
	if (row->name == NULL)
		return mst_options_refuse(o, "unknown option %.60s", arg);
	out->row = row;
	out->value = arg[2] != '\0' ? arg + 2 : NULL;
	snprintf(out->label, sizeof(out->label), "option -%c", arg[1]);
	return 0;
}

/* The argument after a flag is its value, also "-5" and "-". Only an argument that begins with two
 * dashes is refused, since it is probably the next flag. */
static int value_missing(struct mst_options *o, const struct flag *flag, const char *next)
{
	char expects[MST_ROW_EXPECTS_MAX];

	if (next != NULL && strcmp(next, "--") != 0)
		return mst_options_refuse(o,
					  "%s needs a value, but %.60s follows; if that is it,"
					  " write --%s=%.60s",
					  flag->label, next, flag->row->name, next);
	bool text = flag->row->kind == MST_OPTION_STRING || flag->row->kind == MST_OPTION_LIST;
	if (text && flag->row->value != NULL)
		return mst_options_refuse(o, "%s needs a value: %s", flag->label, flag->row->value);
	mst_row_expects(flag->row, expects, sizeof(expects));
	return mst_options_refuse(o, "%s needs a value: %s", flag->label, expects);
}

/* Reads the flag at argv[0], and its value.
 * Return: how many arguments were used, or -errno. */
static int flag_take(struct mst_options *o, struct mst_pass *pass, int argc, char **argv)
{
	struct flag flag;
	bool is_long = argv[0][1] == '-';
	int rc = is_long ? flag_find_long(o, argv[0], &flag) : flag_find_letter(o, argv[0], &flag);
	int used = 1;

	if (rc != 0)
		return rc;
	if (flag.row->kind == MST_OPTION_FLAG) {
		if (flag.value != NULL)
			return mst_options_refuse(o, "%s takes no value", flag.label);
		flag.value = "true";
	}
	if (flag.value == NULL) {
		const char *next = argc > 1 ? argv[1] : NULL;
		if (next == NULL || strncmp(next, "--", 2) == 0)
			return value_missing(o, &flag, next);
		flag.value = next;
		used = 2;
	}
	mst_row_begin(o, flag.row, pass);
	rc = mst_row_set(o, flag.row, flag.value, flag.label);
	return rc != 0 ? rc : used;
}

int mst_options_argv(struct mst_options *o, int argc, char **argv, int *operand)
{
	struct mst_pass pass = { { 0 } };
	int at = 1;

	while (at < argc && argv[at][0] == '-' && argv[at][1] != '\0') {
		if (strcmp(argv[at], "--") == 0) {
			at++;
			break;
		}
		int used = flag_take(o, &pass, argc - at, argv + at);
		if (used < 0)
			return used;
		at += used;
	}
	*operand = at < argc ? at : argc;
	return 0;
}
