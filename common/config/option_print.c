/* SPDX-License-Identifier: MIT */
/* Prints a table of options: for a terminal, as a file that can be read back, for a manual page. */
#include <string.h>

#include "common/config/row.h"

#define PAGE_COLUMNS 100u
#define HELP_COLUMN 34u /* column at which the help begins */

/* Wraps words into lines. */
struct flow {
	FILE *out;
	const char *margin; /* each further line begins with it */
	unsigned column;    /* where the next word goes */
	bool fresh;         /* nothing but the margin on this line yet */
};

static void flow_word(struct flow *flow, const char *word, size_t len)
{
	if (!flow->fresh && flow->column + 1 + len > PAGE_COLUMNS) {
		fprintf(flow->out, "\n%s", flow->margin);
		flow->column = (unsigned)strlen(flow->margin);
		flow->fresh = true;
	}
	if (!flow->fresh) {
		fputc(' ', flow->out);
		flow->column++;
	}
	fwrite(word, 1, len, flow->out);
	flow->column += (unsigned)len;
	flow->fresh = false;
}

static void flow_text(struct flow *flow, const char *text)
{
	while (*text != '\0') {
		size_t len = strcspn(text, " ");
		if (len > 0)
			flow_word(flow, text, len);
		text += len + (text[len] == ' ');
	}
}

/* "  -c, --config FILE". Return: its length. */
static unsigned help_flag(const struct mst_option *row, FILE *out)
{
	const char *value = mst_row_value(row);
	int len = fprintf(out, "  ");

	if (row->letter != 0)
		len += fprintf(out, "-%c, ", row->letter);
	len += fprintf(out, "--%s", row->name);
	if (value != NULL)
		len += fprintf(out, " %s", value);
	return (unsigned)len;
}

static void help_row(const struct mst_option *row, FILE *out)
{
	char margin[HELP_COLUMN + 1], fallback[PAGE_COLUMNS];
	struct flow flow = { .out = out, .margin = margin, .column = HELP_COLUMN, .fresh = true };
	unsigned len = help_flag(row, out);

	memset(margin, ' ', HELP_COLUMN);
	margin[HELP_COLUMN] = '\0';
	if (len + 2 > HELP_COLUMN)
		fprintf(out, "\n%s", margin);
	else
		fprintf(out, "%*s", (int)(HELP_COLUMN - len), "");
	flow_text(&flow, row->help);
	if (row->fallback != NULL) {
		snprintf(fallback, sizeof(fallback), "(default %s)", row->fallback);
		flow_word(&flow, fallback, strlen(fallback));
	}
	fputc('\n', out);
}

void mst_options_help(const struct mst_option *table, FILE *out)
{
	for (; table->name != NULL; table++)
		help_row(table, out);
}

/* A libconfig string. What is not printable ASCII is written as \xNN. */
static void quoted_print(const char *text, FILE *out)
{
	fputc('"', out);
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;
		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20 || c > 0x7e)
			fprintf(out, "\\x%02x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

static void list_print(const struct mst_option_list *list, FILE *out)
{
	fputs("[ ", out);
	for (uint32_t i = 0; i < list->count; i++) {
		fputs(i > 0 ? ", " : "", out);
		quoted_print(list->item[i], out);
	}
	fputs(list->count > 0 ? " ]" : "]", out);
}

/* Can libconfig read this value without quotes? Larger numbers are printed in quotes
 * (option_scan.c). */
static bool is_bare(const struct mst_option *row, const char *text)
{
	uint64_t whole;

	if (row->kind == MST_OPTION_FLAG)
		return true;
	if (row->kind == MST_OPTION_REAL && strpbrk(text, ".e") != NULL)
		return true;
	if (row->kind == MST_OPTION_SIZE || row->kind == MST_OPTION_DURATION)
		return false;
	return mst_parse_u64(text, &whole) == 0 && whole <= INT32_MAX;
}

static void setting_print(const struct mst_options *o, const struct mst_option *row, FILE *out)
{
	const void *field = mst_row_field(o, row);
	char text[MST_ROW_TEXT_MAX];

	if (row->kind == MST_OPTION_LIST) {
		list_print(field, out);
	} else if (row->kind == MST_OPTION_STRING) {
		quoted_print(*(const char *const *)field, out);
	} else {
		mst_row_text(o, row, text, sizeof(text));
		if (is_bare(row, text))
			fputs(text, out);
		else
			quoted_print(text, out);
	}
}

static void key_print(const char *name, FILE *out)
{
	for (; *name != '\0'; name++)
		fputc(*name == '-' ? '_' : *name, out);
}

void mst_options_print(const struct mst_options *o, FILE *out)
{
	fputs(MST_OPTIONS_FIRST_LINE "\n", out);
	for (const struct mst_option *row = o->table; row->name != NULL; row++) {
		struct flow flow = { .out = out, .margin = "# ", .column = 1 };
		if (row->typed_only)
			continue;
		fputc('#', out);
		flow_text(&flow, row->help);
		fputc('\n', out);
		/* A text that is not set has no value to print. */
		bool absent = row->fallback == NULL && row->kind != MST_OPTION_FLAG &&
			      mst_row_unset(o, row);
		fputs(absent ? "# " : "", out);
		key_print(row->name, out);
		fputs(" = ", out);
		if (absent)
			fputs(mst_row_value(row), out);
		else
			setting_print(o, row, out);
		fputs(absent ? "\n" : ";\n", out);
	}
	fputs(MST_OPTIONS_LAST_LINE "\n", out);
}

/* Text that roff prints as it is: no requests, no escapes, no typographic dashes and quotes. */
static void roff_print(const char *text, FILE *out)
{
	static const struct {
		char plain;
		const char *escaped;
	} escapes[] = {
		{ '\\', "\\e" },  { '-', "\\-" },   { '\'', "\\(aq" },
		{ '`', "\\(ga" }, { '^', "\\(ha" }, { '~', "\\(ti" },
	};

	fputs("\\&", out);
	for (; *text != '\0'; text++) {
		const char *written = NULL;
		for (size_t i = 0; i < sizeof(escapes) / sizeof(escapes[0]); i++) {
			if (escapes[i].plain == *text)
				written = escapes[i].escaped;
		}
		if (written != NULL)
			fputs(written, out);
		else
			fputc(*text, out);
	}
}

static void man_flag(const struct mst_option *row, FILE *out)
{
	const char *value = mst_row_value(row);

	fputs(".TP\n", out);
	if (row->letter != 0)
		fprintf(out, "\\fB\\-%c\\fR, ", row->letter);
	fputs("\\fB\\-\\-", out);
	roff_print(row->name, out);
	fputs("\\fR", out);
	if (value != NULL) {
		fputs(" \\fI", out);
		roff_print(value, out);
		fputs("\\fR", out);
	}
	fputc('\n', out);
}

static void man_row(const struct mst_option *row, FILE *out)
{
	char expects[MST_ROW_EXPECTS_MAX];

	man_flag(row, out);
	roff_print(row->help, out);
	fputs(".\n", out);
	if (row->kind != MST_OPTION_FLAG && row->kind != MST_OPTION_STRING) {
		mst_row_expects(row, expects, sizeof(expects));
		fputs("Takes ", out);
		roff_print(expects, out);
		fputs(".\n", out);
	}
	if (row->fallback != NULL) {
		fputs("Default: ", out);
		roff_print(row->fallback, out);
		fputs(".\n", out);
	}
}

void mst_options_man(const struct mst_option *table, FILE *out)
{
	fputs(".SH OPTIONS\n", out);
	for (; table->name != NULL; table++)
		man_row(table, out);
}
