/* SPDX-License-Identifier: MIT */
/* From "warmup:5000+cosine:1000000" to rows and numbers, and the sentences about what is wrong. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/config/option.h"
#include "common/optim/schedule.h"

#define ROWS_MAX 16u
#define NAME_LEN 16u
#define NUMBER_LEN 32u

/* A part of the text. */
struct span {
	const char *at;
	size_t len;
};

/* The '+' of 1e+6 separates nothing. */
static bool is_exponent(const char *plus, const char *begin)
{
	return plus - begin >= 2 && (plus[-1] == 'e' || plus[-1] == 'E') && plus[-2] >= '0' &&
	       plus[-2] <= '9';
}

/* Takes what stands before the next @separator off the front of @rest.
 * Return: false: nothing is left. */
static bool next(struct span *rest, char separator, struct span *out)
{
	if (rest->at == NULL)
		return false;
	const char *end = memchr(rest->at, separator, rest->len), *last = rest->at + rest->len;
	while (end != NULL && separator == '+' && is_exponent(end, rest->at))
		end = memchr(end + 1, separator, (size_t)(last - end - 1));
	*out = (struct span){ rest->at, end != NULL ? (size_t)(end - rest->at) : rest->len };
	if (end != NULL)
		*rest = (struct span){ end + 1, rest->len - out->len - 1 };
	else
		rest->at = NULL;
	return true;
}

static void name_of(const struct mst_schedule_row *row, char name[NAME_LEN])
{
	(void)snprintf(name, NAME_LEN, "%.*s", (int)strcspn(row->form, ":"), row->form);
}

static int refuse_name(struct span name, struct mst_reason *why)
{
	char known[ROWS_MAX][NAME_LEN], typed[NAME_LEN + 8], all[ROWS_MAX * (NAME_LEN + 2)] = "";
	const char *names[ROWS_MAX + 1] = { NULL };

	for (uint32_t i = 0; i < ROWS_MAX && mst_schedule_rows[i].form != NULL; i++) {
		name_of(&mst_schedule_rows[i], known[i]);
		names[i] = known[i];
		size_t used = strlen(all);
		(void)snprintf(all + used, sizeof(all) - used, "%s%s", i > 0 ? ", " : "", known[i]);
	}
	(void)snprintf(typed, sizeof(typed), "%.*s", (int)name.len, name.at);
	const char *near = mst_nearest(typed, names);
	return mst_reason_fail(why, -EINVAL, "there is no schedule \"%.*s\", there are %s%s%s%s",
			       (int)(name.len < 40 ? name.len : 40), name.at, all,
			       near != NULL ? ": did you mean " : "", near != NULL ? near : "",
			       near != NULL ? "?" : "");
}

static const struct mst_schedule_row *find(struct span name)
{
	for (uint32_t i = 0; mst_schedule_rows[i].form != NULL; i++) {
		char known[NAME_LEN];
		name_of(&mst_schedule_rows[i], known);
		if (strlen(known) == name.len && memcmp(known, name.at, name.len) == 0)
			return &mst_schedule_rows[i];
	}
	return NULL;
}

/* Numbers from 0 on, as people write them: 50000, 5e4, 0.94. */
static int read_number(struct span text, double *out)
{
	char number[NUMBER_LEN];

	if (text.len == 0 || text.len >= sizeof(number))
		return -EINVAL;
	(void)snprintf(number, sizeof(number), "%.*s", (int)text.len, text.at);
	int rc = mst_parse_real(number, out);
	return rc != 0 || !(*out >= 0 && *out <= 1e15) ? -EINVAL : 0;
}

static int read_numbers(struct span text, struct mst_schedule_term *t, struct mst_reason *why)
{
	struct span one;

	while (next(&text, ',', &one)) {
		if (t->row->most == 0)
			return mst_reason_fail(why, -EINVAL, "%s takes no numbers", t->row->form);
		if (t->count == t->row->most)
			return mst_reason_fail(why, -EINVAL, "%s takes no more than %u numbers",
					       t->row->form, t->row->most);
		if (read_number(one, &t->number[t->count]) != 0)
			return mst_reason_fail(
				why, -EINVAL, "\"%.*s\" is no number from 0 to 1e15, as %s needs",
				(int)(one.len < 40 ? one.len : 40), one.at, t->row->form);
		t->count++;
	}
	return 0;
}

static int read_term(struct span text, struct mst_schedule_term *t, struct mst_reason *why)
{
	struct span rest = text, name;

	(void)next(&rest, ':', &name);
	*t = (struct mst_schedule_term){ .row = find(name) };
	if (t->row == NULL)
		return refuse_name(name, why);
	int rc = read_numbers(rest, t, why);
	if (rc != 0)
		return rc;
	if (t->count < t->row->least)
		return mst_reason_fail(why, -EINVAL, "it needs its numbers: %s", t->row->form);
	const char *wrong = t->row->check != NULL ? t->row->check(t->number, t->count) : NULL;
	return wrong == NULL ? 0 : mst_reason_fail(why, -EINVAL, "%s, in %s", wrong, t->row->form);
}

int mst_schedule_parse(const char *text, struct mst_schedule *out, struct mst_reason *why)
{
	struct span rest = { text, strlen(text) }, one;

	*out = (struct mst_schedule){ .count = 0 };
	while (next(&rest, '+', &one)) {
		struct mst_schedule_term t;
		if (read_term(one, &t, why) != 0)
			return mst_reason_fail(why, -EINVAL, "\"%.60s\": %s", text, why->text);
		if (t.row->factor == NULL)
			continue;
		if (out->count == MST_SCHEDULE_TERMS_MAX)
			return mst_reason_fail(why, -EINVAL, "\"%.60s\": more than %u schedules",
					       text, MST_SCHEDULE_TERMS_MAX);
		out->term[out->count++] = t;
	}
	return 0;
}
