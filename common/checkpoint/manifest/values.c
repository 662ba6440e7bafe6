/* SPDX-License-Identifier: MIT */
#include "common/checkpoint/manifest/values.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/checkpoint/manifest/json.h"

void mst_values_init(struct mst_values *v)
{
	*v = (struct mst_values){ 0 };
}

static void value_fini(struct mst_value *value)
{
	free(value->name);
	free(value->text);
	free(value->list);
}

void mst_values_fini(struct mst_values *v)
{
	for (uint32_t i = 0; i < v->count; i++)
		value_fini(&v->value[i]);
	free(v->value);
	mst_values_init(v);
}

static const struct mst_value *find(const struct mst_values *v, const char *name)
{
	for (uint32_t i = 0; i < v->count; i++)
		if (strcmp(v->value[i].name, name) == 0)
			return &v->value[i];
	return NULL;
}

static int grow(struct mst_values *v)
{
	uint32_t capacity = v->capacity > 0 ? 2 * v->capacity : 16;

	if (v->count < v->capacity)
		return 0;
	if (v->count == MST_VALUES_MAX)
		return -E2BIG;
	struct mst_value *value = realloc(v->value, capacity * sizeof(*value));
	if (value == NULL)
		return -ENOMEM;
	v->value = value;
	v->capacity = capacity;
	return 0;
}

/* Takes over what @value points to, but for the name; frees it after a failure. */
static int add(struct mst_values *v, const char *name, struct mst_value value)
{
	int rc = 0;

	value.name = strdup(name);
	if (value.name == NULL || (value.text == NULL && value.list == NULL))
		rc = -ENOMEM;
	if (rc == 0) {
		mst_text_clean(value.name);
		rc = find(v, value.name) != NULL ? -EEXIST : grow(v);
	}
	if (rc == 0)
		v->value[v->count++] = value;
	else
		value_fini(&value);
	return rc;
}

int mst_values_add_number(struct mst_values *v, const char *name, const char *number)
{
	return add(v, name, (struct mst_value){ .kind = MST_VALUE_NUMBER, .text = strdup(number) });
}

int mst_values_add_u64(struct mst_values *v, const char *name, uint64_t number)
{
	char text[MST_JSON_NUMBER_LEN];

	(void)snprintf(text, sizeof(text), "%" PRIu64, number);
	return mst_values_add_number(v, name, text);
}

/* JSON has no numbers that are not finite: these are texts. */
int mst_values_add_real(struct mst_values *v, const char *name, double number)
{
	char text[MST_JSON_NUMBER_LEN];

	(void)snprintf(text, sizeof(text), "%.17g", number);
	if (isnan(number))
		return mst_values_add_text(v, name, "nan");
	return isinf(number) ? mst_values_add_text(v, name, text)
			     : mst_values_add_number(v, name, text);
}

int mst_values_add_text(struct mst_values *v, const char *name, const char *text)
{
	char *copy = strdup(text);

	if (copy != NULL)
		mst_text_clean(copy);
	return add(v, name, (struct mst_value){ .kind = MST_VALUE_TEXT, .text = copy });
}

int mst_values_add_list(struct mst_values *v, const char *name, const uint64_t *list,
			uint32_t count)
{
	struct mst_value value = { .kind = MST_VALUE_LIST, .count = count };

	value.list = malloc((count > 0 ? count : 1) * sizeof(*list));
	if (value.list != NULL && count > 0)
		memcpy(value.list, list, count * sizeof(*list));
	return add(v, name, value);
}

/* ---- to take values out ---- */

static int get(const struct mst_values *v, const char *name, enum mst_value_kind kind,
	       const struct mst_value **out)
{
	*out = find(v, name);
	if (*out == NULL)
		return -ENOENT;
	return (*out)->kind == kind ? 0 : -EINVAL;
}

int mst_values_u64(const struct mst_values *v, const char *name, uint64_t *out)
{
	const struct mst_value *value;
	uint64_t number;
	int rc = get(v, name, MST_VALUE_NUMBER, &value);

	if (rc != 0)
		return rc;
	const char *end = value->text + strlen(value->text);
	if (mst_json_digits(value->text, end, &number) != end)
		return -EINVAL;
	*out = number;
	return 0;
}

static int read_infinite(const char *text, double *out)
{
	if (strcmp(text, "nan") == 0)
		*out = (double)NAN;
	else if (strcmp(text, "inf") == 0)
		*out = (double)INFINITY;
	else if (strcmp(text, "-inf") == 0)
		*out = -(double)INFINITY;
	else
		return -EINVAL;
	return 0;
}

int mst_values_real(const struct mst_values *v, const char *name, double *out)
{
	const struct mst_value *value = find(v, name);

	if (value == NULL)
		return -ENOENT;
	if (value->kind == MST_VALUE_TEXT)
		return read_infinite(value->text, out);
	if (value->kind != MST_VALUE_NUMBER)
		return -EINVAL;
	double number = mst_text_real(value->text, NULL);
	if (!isfinite(number))
		return -EINVAL;
	*out = number;
	return 0;
}

int mst_values_text(const struct mst_values *v, const char *name, const char **out)
{
	const struct mst_value *value;
	int rc = get(v, name, MST_VALUE_TEXT, &value);

	if (rc == 0)
		*out = value->text;
	return rc;
}

int mst_values_list(const struct mst_values *v, const char *name, const uint64_t **out,
		    uint32_t *count)
{
	const struct mst_value *value;
	int rc = get(v, name, MST_VALUE_LIST, &value);

	if (rc != 0)
		return rc;
	*out = value->list;
	*count = value->count;
	return 0;
}
