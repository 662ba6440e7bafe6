/* SPDX-License-Identifier: MIT */
/* From "sgd:lr=0.1" to a row and its parameters, and the sentences about what is wrong with it. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/config/option.h"
#include "common/optim/optim.h"

#define NAMES_MAX 16u /* that a mistyped one is compared with */
#define LIST_LEN 160u

/* Adds to a text that may be full. */
static void append(char *text, size_t len, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void append(char *text, size_t len, const char *fmt, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text + used, len - used, fmt, args);
	va_end(args);
}

/* ---- names ---- */

/* "lr, momentum and decay" */
static void list(const char *const *name, uint32_t count, const char *last, char *text, size_t len)
{
	text[0] = '\0';
	for (uint32_t i = 0; i < count; i++)
		append(text, len, "%s%s", i == 0 ? "" : i + 1 == count ? last : ", ", name[i]);
}

static int refuse_name(const char *text, struct mst_reason *why)
{
	const char *names[NAMES_MAX + 1] = { NULL };
	char typed[40], known[LIST_LEN], example[MST_OPTIM_EXAMPLE_LEN];
	uint32_t count = 0;

	for (; count < NAMES_MAX && mst_optim_row(count) != NULL; count++)
		names[count] = mst_optim_row(count)->name;
	list(names, count, " nor ", known, sizeof(known));
	(void)snprintf(typed, sizeof(typed), "%.*s", (int)strcspn(text, ":,="), text);
	const char *near = mst_nearest(typed, names);
	return mst_reason_fail(why, -EINVAL, "\"%.60s\" is neither %s, such as %s%s%s%s", text,
			       known, mst_optim_example(mst_optim_row(0), example),
			       near != NULL ? ": did you mean " : "", near != NULL ? near : "",
			       near != NULL ? "?" : "");
}

static int refuse_parameter(const struct mst_optim *row, const char *all, const char *name,
			    struct mst_reason *why)
{
	const char *names[MST_PARAMETERS_MAX + 1] = { NULL };
	char known[LIST_LEN], example[MST_OPTIM_EXAMPLE_LEN];
	uint32_t count = mst_optim_parameters(row);

	for (uint32_t i = 0; i < count; i++)
		names[i] = row->parameter[i].name;
	if (count == 0)
		return mst_reason_fail(why, -EINVAL,
				       "\"%.60s\": %s takes no figures, leave out \"%.40s\"", all,
				       row->name, name);
	list(names, count, " and ", known, sizeof(known));
	const char *near = mst_nearest(name, names);
	return mst_reason_fail(why, -EINVAL,
			       "\"%.60s\": %s has no \"%s\", it has %s, as in %s%s%s%s", all,
			       row->name, name, known, mst_optim_example(row, example),
			       near != NULL ? ": did you mean " : "", near != NULL ? near : "",
			       near != NULL ? "?" : "");
}

/* ---- values ---- */

/* Kernels have the parameter in f32, so it must be in the range after rounding, too: 1e-60 is 0
 * there, and 0.99999999 is 1. */
static bool in_range(const struct mst_optim_parameter *p, double value)
{
	double rounded = (double)(float)value;
	bool above = p->above_min ? value > p->min && rounded > p->min : value >= p->min;
	bool below = p->below_max ? value < p->max && rounded < p->max : value <= p->max;

	return above && below && (!p->whole || value == floor(value));
}

static double value_of(const struct mst_optimizer *o, const char *name)
{
	uint32_t i = 0;

	while (strcmp(o->row->parameter[i].name, name) != 0)
		i++;
	return o->parameter[i];
}

/* What would seem to take effect, and would not. */
static int check_needs(const struct mst_optimizer *o, struct mst_reason *why)
{
	for (uint32_t i = 0; i < mst_optim_parameters(o->row); i++) {
		const struct mst_optim_parameter *p = &o->row->parameter[i];
		if (p->needs != NULL && o->parameter[i] != 0 && value_of(o, p->needs) == 0)
			return mst_reason_fail(why, -EINVAL,
					       "%s=%g means nothing with %s=0: leave it out",
					       p->name, o->parameter[i], p->needs);
	}
	return 0;
}

static int check_ranges(const struct mst_optimizer *o, struct mst_reason *why)
{
	for (uint32_t i = 0; i < mst_optim_parameters(o->row); i++) {
		const struct mst_optim_parameter *p = &o->row->parameter[i];
		char range[MST_OPTIM_RANGE_LEN];
		if (in_range(p, o->parameter[i]))
			continue;
		mst_optim_range(p, range);
		return mst_reason_fail(why, -EINVAL, "%s %g has to be %s", p->name, o->parameter[i],
				       range);
	}
	return check_needs(o, why);
}

/* Reads one "lr=0.1", which is @len characters of @all. What is not given yet is NaN. */
static int value_parse(const char *all, const char *text, size_t len, struct mst_optimizer *o,
		       struct mst_reason *why)
{
	uint32_t count = mst_optim_parameters(o->row), i = 0;
	char name[40], example[MST_OPTIM_EXAMPLE_LEN];

	(void)snprintf(name, sizeof(name), "%.*s", (int)len, text);
	char *value = strchr(name, '=');
	if (value != NULL)
		*value++ = '\0';
	while (i < count && strcmp(o->row->parameter[i].name, name) != 0)
		i++;
	if (i == count)
		return refuse_parameter(o->row, all, name, why);
	if (!isnan(o->parameter[i]))
		return mst_reason_fail(why, -EINVAL, "\"%.60s\" gives %s twice", all, name);
	if (value == NULL || mst_parse_real(value, &o->parameter[i]) != 0)
		return mst_reason_fail(why, -EINVAL, "\"%.60s\": %s needs a number, as in %s", all,
				       name, mst_optim_example(o->row, example));
	return 0;
}

/* @text: what follows "sgd:" in @all. */
static int values_parse(const char *all, const char *text, struct mst_optimizer *o,
			struct mst_reason *why)
{
	for (;; text++) {
		size_t len = strcspn(text, ",");
		int rc = value_parse(all, text, len, o, why);
		if (rc != 0 || text[len] == '\0')
			return rc;
		text += len;
	}
}

static void fill_in(struct mst_optimizer *o)
{
	for (uint32_t i = 0; i < mst_optim_parameters(o->row); i++)
		if (isnan(o->parameter[i]))
			o->parameter[i] = o->row->parameter[i].fallback;
}

int mst_optimizer_parse(const char *text, struct mst_optimizer *out, struct mst_reason *why)
{
	char name[MST_OPTIM_NAME_LEN];
	size_t len = strcspn(text, ":");
	struct mst_optimizer o = { 0 };
	int rc = 0;

	(void)snprintf(name, sizeof(name), "%.*s", (int)len, text);
	o.row = len < sizeof(name) ? mst_optim_find(name) : NULL;
	if (o.row == NULL)
		return refuse_name(text, why);
	for (uint32_t i = 0; i < mst_optim_parameters(o.row); i++)
		o.parameter[i] = (double)NAN;
	if (text[len] == ':')
		rc = values_parse(text, text + len + 1, &o, why);
	if (rc != 0)
		return rc;
	fill_in(&o);
	rc = check_ranges(&o, why);
	if (rc == 0)
		*out = o;
	return rc;
}

int mst_optimizer_take(const char *name, const double *parameter, uint32_t count,
		       struct mst_optimizer *out, struct mst_reason *why)
{
	struct mst_optimizer o = { .row = mst_optim_find(name) };

	if (o.row == NULL)
		return refuse_name(name, why);
	if (count != mst_optim_parameters(o.row))
		return mst_reason_fail(why, -EINVAL, "%s has %u figures, not %u", name,
				       mst_optim_parameters(o.row), count);
	memcpy(o.parameter, parameter, count * sizeof(*parameter));
	int rc = check_ranges(&o, why);
	if (rc == 0)
		*out = o;
	return rc;
}
