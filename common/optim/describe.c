/* SPDX-License-Identifier: MIT */
/* Rows in words: for sentences, for --help and for the manual page. */
#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/optim/optim.h"

char *mst_optim_example(const struct mst_optim *row, char text[MST_OPTIM_EXAMPLE_LEN])
{
	size_t len = (size_t)snprintf(text, MST_OPTIM_EXAMPLE_LEN, "%s", row->name);
	char before = ':';

	for (uint32_t i = 0; i < mst_optim_parameters(row) && len < MST_OPTIM_EXAMPLE_LEN; i++) {
		if (row->parameter[i].fallback == 0)
			continue;
		len += (size_t)snprintf(text + len, MST_OPTIM_EXAMPLE_LEN - len, "%c%s=%g", before,
					row->parameter[i].name, row->parameter[i].fallback);
		before = ',';
	}
	return text;
}

/* 17 digits give the same double back; fewer do for most figures, and read better. */
static size_t add_figure(char *text, size_t len, const char *name, double value, char before)
{
	char figure[32];

	(void)mst_text_print(figure, sizeof(figure), "%g", value);
	if (mst_text_real(figure, NULL) != value)
		(void)mst_text_print(figure, sizeof(figure), "%.17g", value);
	int more = snprintf(text + len, MST_OPTIM_TEXT_LEN - len, "%c%s=%s", before, name, figure);
	size_t end = len + (size_t)more;
	return end < MST_OPTIM_TEXT_LEN ? end : MST_OPTIM_TEXT_LEN - 1;
}

char *mst_optimizer_text(const struct mst_optimizer *o, char text[MST_OPTIM_TEXT_LEN])
{
	char before = ':';

	text[0] = '\0';
	if (o->row == NULL)
		return text;
	size_t len = (size_t)snprintf(text, MST_OPTIM_TEXT_LEN, "%s", o->row->name);
	for (uint32_t i = 0; i < mst_optim_parameters(o->row); i++) {
		const struct mst_optim_parameter *p = &o->row->parameter[i];
		if (o->parameter[i] == p->fallback && p->fallback == 0)
			continue;
		len = add_figure(text, len, p->name, o->parameter[i], before);
		before = ',';
	}
	return text;
}

/* A bound that only keeps a number in f32 is not given in figures. */
char *mst_optim_range(const struct mst_optim_parameter *p, char text[MST_OPTIM_RANGE_LEN])
{
	int len = snprintf(text, MST_OPTIM_RANGE_LEN, "%s%s %g", p->whole ? "a whole number, " : "",
			   p->above_min ? "above" : "at least", p->min);

	if (p->max < (double)FLT_MAX)
		(void)snprintf(text + len, MST_OPTIM_RANGE_LEN - (size_t)len, " and %s %g",
			       p->below_max ? "below" : "at most", p->max);
	else
		(void)snprintf(text + len, MST_OPTIM_RANGE_LEN - (size_t)len,
			       ", and a number in float");
	return text;
}

void mst_optim_help(FILE *out)
{
	char text[MST_OPTIM_EXAMPLE_LEN], range[MST_OPTIM_RANGE_LEN];
	const struct mst_optim *row;

	for (unsigned i = 0; (row = mst_optim_row(i)) != NULL; i++) {
		fprintf(out, "  %s\n      %s\n", mst_optim_example(row, text), row->help);
		for (uint32_t k = 0; k < mst_optim_parameters(row); k++)
			fprintf(out, "      %s=%g: %s; %s\n", row->parameter[k].name,
				row->parameter[k].fallback, row->parameter[k].help,
				mst_optim_range(&row->parameter[k], range));
	}
}

void mst_optim_man(FILE *out)
{
	char text[MST_OPTIM_EXAMPLE_LEN], range[MST_OPTIM_RANGE_LEN];
	const struct mst_optim *row;

	fputs(".SH OPTIMISERS\n", out);
	for (unsigned i = 0; (row = mst_optim_row(i)) != NULL; i++) {
		fprintf(out, ".TP\n.B %s\n%s\n", mst_optim_example(row, text), row->help);
		for (uint32_t k = 0; k < mst_optim_parameters(row); k++)
			fprintf(out, ".RS\n.TP\n.B %s=%g\n%s; %s\n.RE\n", row->parameter[k].name,
				row->parameter[k].fallback, row->parameter[k].help,
				mst_optim_range(&row->parameter[k], range));
	}
}
