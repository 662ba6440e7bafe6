/* SPDX-License-Identifier: MIT */
/*
 * One row and its field. A text is first read into a value, which is stored only if it is allowed.
 * So a refused value leaves the field as it was.
 */
#include "common/config/row.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/bitset.h"

/* Kinds that are whole numbers have read and write; the others are cases in the functions below. */
struct kind {
	const char *value; /* what --help calls it */
	const char *noun;
	int (*read)(const char *text, uint64_t *out);
	void (*write)(uint64_t value, char *out, size_t len);
};

static const struct kind kinds[] = {
	[MST_OPTION_FLAG] = { NULL, "true or false", NULL, NULL },
	[MST_OPTION_U32] = { "N", "a whole number", mst_parse_u64, mst_format_u64 },
	[MST_OPTION_U64] = { "N", "a whole number", mst_parse_u64, mst_format_u64 },
	[MST_OPTION_REAL] = { "NUMBER", "a number", NULL, NULL },
	[MST_OPTION_SIZE] = { "SIZE", "a size such as 4096, 128K, 3M or 2G", mst_parse_size,
			      mst_format_size },
	[MST_OPTION_DURATION] = { "DURATION", "a duration such as 500us, 20ms, 5s, 2min or 1h",
				  mst_parse_duration, mst_format_duration },
	[MST_OPTION_STRING] = { "TEXT", "a text", NULL, NULL },
	[MST_OPTION_CHOICE] = { NULL, "one of", NULL, NULL },
	[MST_OPTION_LIST] = { "TEXT", "a text, or a list of them", NULL, NULL },
};

#define CHOICES_MAX 8u /* most choices that a mistyped word is compared with */

union value {
	bool flag;
	uint64_t whole;
	double real;
};

/* A list that keeps the strings of a struct mst_options. */
struct string {
	struct string *next;
	char text[];
};

static const char *string_keep(struct mst_options *o, const char *text)
{
	size_t bytes = strlen(text) + 1;
	struct string *kept = malloc(sizeof(*kept) + bytes);

	if (kept == NULL)
		return NULL;
	memcpy(kept->text, text, bytes);
	kept->next = o->strings;
	o->strings = kept;
	return kept->text;
}

void mst_options_free(struct mst_options *o)
{
	struct string *kept = o->strings;

	while (kept != NULL) {
		struct string *next = kept->next;
		free(kept);
		kept = next;
	}
	o->strings = NULL;
}

const struct mst_option *mst_row_find(const struct mst_option *table, const char *name, size_t len)
{
	for (; table->name != NULL; table++) {
		if (strlen(table->name) == len && memcmp(table->name, name, len) == 0)
			return table;
	}
	return NULL;
}

const char *mst_row_value(const struct mst_option *row)
{
	if (row->value != NULL)
		return row->value;
	return row->kind == MST_OPTION_CHOICE ? row->choices : kinds[row->kind].value;
}

bool mst_row_choice(const struct mst_option *row, unsigned index, char *out, size_t len)
{
	const char *at = row->choices;

	while (index > 0 && at != NULL) {
		at = strchr(at, '|');
		at = at != NULL ? at + 1 : NULL;
		index--;
	}
	if (at == NULL)
		return false;
	snprintf(out, len, "%.*s", (int)strcspn(at, "|"), at);
	return true;
}

static bool is_ranged(const struct mst_option *row)
{
	return row->min != 0 || row->max != 0;
}

static void bound_format(const struct mst_option *row, double bound, char *out, size_t len)
{
	if (kinds[row->kind].write != NULL)
		kinds[row->kind].write((uint64_t)bound, out, len);
	else
		mst_format_real(bound, out, len);
}

/* Writes " from 1 to 64", " of at least 1", or nothing if everything is allowed. */
static void range_format(const struct mst_option *row, char *out, size_t len)
{
	char min[MST_ROW_TEXT_MAX], max[MST_ROW_TEXT_MAX];

	out[0] = '\0';
	if (row->kind == MST_OPTION_U64 && !is_ranged(row))
		snprintf(out, len, " from 0 to %llu", (unsigned long long)UINT64_MAX);
	else if (row->kind == MST_OPTION_U32 && !is_ranged(row))
		snprintf(out, len, " from 0 to %u", UINT32_MAX);
	if (!is_ranged(row))
		return;
	bound_format(row, row->min, min, sizeof(min));
	if (isinf(row->max)) {
		snprintf(out, len, " of at least %s", min);
		return;
	}
	bound_format(row, row->max, max, sizeof(max));
	snprintf(out, len, " from %s to %s", min, max);
}

void mst_row_expects(const struct mst_option *row, char *out, size_t len)
{
	bool choice = row->kind == MST_OPTION_CHOICE;
	char range[2 * MST_ROW_TEXT_MAX + 16];

	/* "a duration such as 5s, from 1ms to 1h": the comma shows that the range is not part of
	 * the example. */
	bool exemplified = row->kind == MST_OPTION_SIZE || row->kind == MST_OPTION_DURATION;

	range_format(row, range, sizeof(range));
	snprintf(out, len, "%s%s%s%s%s%s%s", kinds[row->kind].noun, choice ? " " : "",
		 choice ? row->choices : "", exemplified && range[0] != '\0' ? "," : "", range,
		 row->automatic != NULL ? ", or " : "",
		 row->automatic != NULL ? row->automatic : "");
}

static size_t field_bytes(const struct mst_option *row)
{
	switch (row->kind) {
	case MST_OPTION_FLAG:
		return sizeof(bool);
	case MST_OPTION_U32:
	case MST_OPTION_CHOICE:
		return sizeof(uint32_t);
	case MST_OPTION_U64:
	case MST_OPTION_SIZE:
	case MST_OPTION_DURATION:
		return sizeof(uint64_t);
	case MST_OPTION_REAL:
		return sizeof(double);
	case MST_OPTION_STRING:
		return sizeof(const char *);
	case MST_OPTION_LIST:
		return sizeof(struct mst_option_list);
	}
	MST_ASSERT(false);
}

void mst_row_clear(struct mst_options *o, const struct mst_option *row)
{
	memset(mst_row_field(o, row), 0, field_bytes(row));
}

bool mst_row_unset(const struct mst_options *o, const struct mst_option *row)
{
	const char *field = mst_row_field(o, row);

	for (size_t i = 0; i < field_bytes(row); i++) {
		if (field[i] != 0)
			return false;
	}
	return true;
}

void mst_row_begin(struct mst_options *o, const struct mst_option *row, struct mst_pass *pass)
{
	size_t index = (size_t)(row - o->table);

	if (row->kind != MST_OPTION_LIST || mst_bitset_test(pass->begun, index))
		return;
	mst_bitset_add(pass->begun, index);
	mst_row_clear(o, row);
}

static bool in_range(const struct mst_option *row, double value)
{
	return !is_ranged(row) || (value >= row->min && value <= row->max);
}

static bool choice_read(const struct mst_option *row, const char *text, uint64_t *out)
{
	char choice[MST_ROW_TEXT_MAX];

	for (unsigned i = 0; mst_row_choice(row, i, choice, sizeof(choice)); i++) {
		if (strcmp(choice, text) == 0) {
			*out = i;
			return true;
		}
	}
	return false;
}

/* Reads the text of a row.
 * Return: false: the row does not accept it. */
static bool value_read(const struct mst_option *row, const char *text, union value *out)
{
	const struct kind *kind = &kinds[row->kind];

	memset(out, 0, sizeof(*out));
	if (row->automatic != NULL && strcmp(text, row->automatic) == 0)
		return true;
	if (row->kind == MST_OPTION_FLAG) {
		out->flag = strcmp(text, "true") == 0;
		return out->flag || strcmp(text, "false") == 0;
	}
	if (row->kind == MST_OPTION_CHOICE)
		return choice_read(row, text, &out->whole);
	if (row->kind == MST_OPTION_REAL)
		return mst_parse_real(text, &out->real) == 0 && in_range(row, out->real);
	if (kind->read(text, &out->whole) != 0)
		return false;
	if (out->whole == 0 && row->automatic != NULL && strcmp(row->automatic, "0") == 0)
		return true; /* "0s" is no less than "0" */
	if (!in_range(row, (double)out->whole))
		return false;
	return row->kind != MST_OPTION_U32 || out->whole <= UINT32_MAX;
}

static void value_store(struct mst_options *o, const struct mst_option *row, union value v)
{
	void *field = mst_row_field(o, row);

	switch (row->kind) {
	case MST_OPTION_FLAG:
		*(bool *)field = v.flag;
		return;
	case MST_OPTION_REAL:
		*(double *)field = v.real;
		return;
	case MST_OPTION_U32:
	case MST_OPTION_CHOICE:
		*(uint32_t *)field = (uint32_t)v.whole;
		return;
	default:
		*(uint64_t *)field = v.whole;
		return;
	}
}

static int text_set(struct mst_options *o, const struct mst_option *row, const char *text,
		    const char *label)
{
	struct mst_option_list *list = mst_row_field(o, row);
	bool is_list = row->kind == MST_OPTION_LIST;

	if (is_list && list->count == MST_OPTION_LIST_MAX)
		return mst_options_refuse(o, "%s: \"%.60s\" is one too many, %u may be given",
					  label, text, MST_OPTION_LIST_MAX);
	const char *kept = string_keep(o, text);
	if (kept == NULL) {
		mst_options_refuse(o, "%s: no memory for its value", label);
		return -ENOMEM;
	}
	if (is_list)
		list->item[list->count++] = kept;
	else
		*(const char **)mst_row_field(o, row) = kept;
	return 0;
}

/* Finds the choice that a mistyped word was meant to be.
 * Return: false: none is near. */
static bool choice_near(const struct mst_option *row, const char *text, char *out, size_t len)
{
	char choice[CHOICES_MAX][MST_ROW_TEXT_MAX];
	const char *names[CHOICES_MAX + 1] = { NULL };

	for (unsigned i = 0; i < CHOICES_MAX && mst_row_choice(row, i, choice[i], len); i++)
		names[i] = choice[i];
	const char *near = mst_nearest(text, names);
	if (near != NULL)
		snprintf(out, len, "%s", near);
	return near != NULL;
}

int mst_row_set(struct mst_options *o, const struct mst_option *row, const char *text,
		const char *label)
{
	char expects[MST_ROW_EXPECTS_MAX], near[MST_ROW_TEXT_MAX];
	union value v;

	if (row->kind == MST_OPTION_STRING || row->kind == MST_OPTION_LIST)
		return text_set(o, row, text, label);
	if (!value_read(row, text, &v)) {
		mst_row_expects(row, expects, sizeof(expects));
		if (row->kind == MST_OPTION_CHOICE && choice_near(row, text, near, sizeof(near)))
			return mst_options_refuse(o, "%s: \"%.60s\" is not %s: did you mean %s?",
						  label, text, expects, near);
		return mst_options_refuse(o, "%s: \"%.60s\" is not %s", label, text, expects);
	}
	value_store(o, row, v);
	return 0;
}

void mst_row_text(const struct mst_options *o, const struct mst_option *row, char *out, size_t len)
{
	const void *field = mst_row_field(o, row);

	if (row->automatic != NULL && mst_row_unset(o, row))
		snprintf(out, len, "%s", row->automatic);
	else if (row->kind == MST_OPTION_FLAG)
		snprintf(out, len, "%s", *(const bool *)field ? "true" : "false");
	else if (row->kind == MST_OPTION_REAL)
		mst_format_real(*(const double *)field, out, len);
	else if (row->kind == MST_OPTION_CHOICE)
		MST_ASSERT(mst_row_choice(row, *(const uint32_t *)field, out, len));
	else if (row->kind == MST_OPTION_U32)
		mst_format_u64(*(const uint32_t *)field, out, len);
	else
		kinds[row->kind].write(*(const uint64_t *)field, out, len);
}
