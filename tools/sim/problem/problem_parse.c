/* SPDX-License-Identifier: MIT */
/* From "quadratic:dim=10" to a row and its parameters, and the sentences about what is wrong. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "common/base/reason.h"
#include "common/config/option.h"
#include "tools/sim/problem/problem.h"

#define LIST_LEN 120u

/* "dim, cond and noise" */
static const char *list(const char *const *name, const char *last, char text[LIST_LEN])
{
	size_t used = 0;

	text[0] = '\0';
	for (unsigned i = 0; name[i] != NULL && used < LIST_LEN; i++)
		used += (size_t)snprintf(text + used, LIST_LEN - used, "%s%s",
					 i == 0                ? ""
					 : name[i + 1] == NULL ? last
							       : ", ",
					 name[i]);
	return text;
}

static int refuse_problem(const char *name, struct mst_reason *why)
{
	const char *names[8] = { NULL };
	char known[LIST_LEN];

	for (unsigned i = 0; i + 1 < 8 && mst_sim_problems[i].name != NULL; i++)
		names[i] = mst_sim_problems[i].name;
	const char *near = mst_nearest(name, names);
	return mst_reason_fail(
		why, -EINVAL, "\"%.60s\" is neither %s, such as quadratic:dim=10,noise=0%s%s%s",
		name, list(names, " nor ", known), near != NULL ? ": did you mean " : "",
		near != NULL ? near : "", near != NULL ? "?" : "");
}

static int refuse_parameter(const struct mst_sim_problem_row *row, const char *name,
			    struct mst_reason *why)
{
	const char *names[MST_SIM_PARAMETERS_MAX + 1] = { NULL };
	char known[LIST_LEN];

	for (unsigned i = 0; i < MST_SIM_PARAMETERS_MAX; i++)
		names[i] = row->parameter[i].name;
	const char *near = mst_nearest(name, names);
	return mst_reason_fail(why, -EINVAL, "%s has no \"%.60s\", it has %s%s%s%s", row->name,
			       name, list(names, " and ", known),
			       near != NULL ? ": did you mean " : "", near != NULL ? near : "",
			       near != NULL ? "?" : "");
}

static bool in_range(const struct mst_optim_parameter *p, double value)
{
	bool above = p->above_min ? value > p->min : value >= p->min;

	return above && value <= p->max && (!p->whole || value == floor(value));
}

/* "dim=10" */
static int read_parameter(char *text, struct mst_sim_problem_spec *s, bool *given,
			  struct mst_reason *why)
{
	const struct mst_optim_parameter *p = s->row->parameter;
	char *value = strchr(text, '='), range[MST_OPTIM_RANGE_LEN];
	unsigned i = 0;

	*value++ = '\0';
	while (i < MST_SIM_PARAMETERS_MAX && p[i].name != NULL && strcmp(p[i].name, text) != 0)
		i++;
	if (i == MST_SIM_PARAMETERS_MAX || p[i].name == NULL)
		return refuse_parameter(s->row, text, why);
	if (given[i])
		return mst_reason_fail(why, -EINVAL, "%s gives %s twice", s->row->name, text);
	given[i] = true;
	if (mst_parse_real(value, &s->parameter[i]) != 0 || !in_range(&p[i], s->parameter[i]))
		return mst_reason_fail(why, -EINVAL, "%s of %s is \"%.40s\" and has to be %s", text,
				       s->row->name, value, mst_optim_range(&p[i], range));
	return 0;
}

/* What has no '=' is the directory. */
static int read_item(char *text, struct mst_sim_problem_spec *s, bool *given,
		     struct mst_reason *why)
{
	if (strchr(text, '=') != NULL)
		return read_parameter(text, s, given, why);
	if (text[0] == '\0')
		return mst_reason_fail(why, -EINVAL, "%s has an empty item: each is NAME=NUMBER%s",
				       s->row->name,
				       s->row->directory != NULL ? ", or a directory" : "");
	if (s->row->directory == NULL)
		return mst_reason_fail(why, -EINVAL,
				       "%s reads no directory such as \"%.60s\": its items are "
				       "NAME=NUMBER",
				       s->row->name, text);
	if (s->directory[0] != '\0')
		return mst_reason_fail(why, -EINVAL,
				       "%s has two directories, \"%.60s\" and \"%.60s\"",
				       s->row->name, s->directory, text);
	(void)snprintf(s->directory, sizeof(s->directory), "%s", text);
	return 0;
}

static int read_items(char *text, struct mst_sim_problem_spec *s, struct mst_reason *why)
{
	bool given[MST_SIM_PARAMETERS_MAX] = { false };
	int rc = 0;

	for (char *item = text; rc == 0 && item != NULL;) {
		char *comma = strchr(item, ',');
		if (comma != NULL)
			*comma++ = '\0';
		rc = read_item(item, s, given, why);
		item = comma;
	}
	return rc;
}

int mst_sim_problem_parse(const char *text, struct mst_sim_problem_spec *out,
			  struct mst_reason *why)
{
	char copy[sizeof(out->directory)];
	const struct mst_sim_problem_row *row = mst_sim_problems;

	if (strlen(text) >= sizeof(copy))
		return mst_reason_fail(why, -EINVAL, "\"%.60s...\" is longer than %zu characters",
				       text, sizeof(copy) - 1);
	(void)snprintf(copy, sizeof(copy), "%s", text);
	char *items = strchr(copy, ':');
	if (items != NULL)
		*items++ = '\0';
	while (row->name != NULL && strcmp(row->name, copy) != 0)
		row++;
	if (row->name == NULL)
		return refuse_problem(copy, why);
	out->row = row;
	out->directory[0] = '\0';
	for (unsigned i = 0; i < MST_SIM_PARAMETERS_MAX; i++)
		out->parameter[i] = row->parameter[i].fallback;
	return items != NULL ? read_items(items, out, why) : 0;
}
