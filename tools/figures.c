/* SPDX-License-Identifier: MIT */
#include "tools/figures.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/base/assert.h"

enum type { U32, FLAG, NEW_FLAG, U64, NEW_U64, F64, NEW_F64 };
enum shown { COUNT, REAL, SOME, SECONDS, MS, BOOL };

struct figure_row {
	const char *key, *means;
	size_t offset; /* of the member */
	enum type type;
	enum shown shown;
};

#define ROW(of, type, member, key, shown, means)                                                   \
	{                                                                                          \
		key, means, offsetof(struct of, member), type, shown                               \
	}
#define JOB(tag, type, member, key, shown, means) ROW(mst_status, type, member, key, shown, means),
#define POLICY(tag, type, member, key, shown, means)                                               \
	ROW(mst_status_policy, type, member, key, shown, means),
#define RANK(tag, type, member, key, shown, means)                                                 \
	ROW(mst_status_rank, type, member, key, shown, means),
#define SERVER(tag, type, member, key, shown, means)                                               \
	ROW(mst_status_server, type, member, key, shown, means),

static const struct figure_row job[] = { MST_JOB_FIGURES(JOB) };
static const struct figure_row policy[] = { MST_POLICY_FIGURES(POLICY) };
static const struct figure_row rank[] = { MST_RANK_FIGURES(RANK) };
static const struct figure_row server[] = { MST_SERVER_FIGURES(SERVER) };

static const struct {
	const struct figure_row *row;
	size_t count;
} tables[] = {
#define TABLE(rows)                                                                                \
	{                                                                                          \
		rows, sizeof(rows) / sizeof((rows)[0])                                             \
	}
	[MST_FIGURES_OF_JOB] = TABLE(job),
	[MST_FIGURES_OF_POLICY] = TABLE(policy),
	[MST_FIGURES_OF_RANK] = TABLE(rank),
	[MST_FIGURES_OF_SERVER] = TABLE(server),
};

/* ---- JSON ---- */

json_t *mst_figures_real(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static uint64_t load_whole(const struct figure_row *r, const void *of)
{
	const char *at = (const char *)of + r->offset;
	uint32_t narrow;
	uint64_t wide;

	if (r->type == U32 || r->type == FLAG || r->type == NEW_FLAG) {
		memcpy(&narrow, at, sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, at, sizeof(wide));
	return wide;
}

static json_t *show_real(const struct figure_row *r, const void *of)
{
	double value;

	memcpy(&value, (const char *)of + r->offset, sizeof(value));
	return r->shown == SOME && !(value > 0) ? json_null() : mst_figures_real(value);
}

static json_t *show(const struct figure_row *r, const void *of)
{
	if (r->type == F64 || r->type == NEW_F64)
		return show_real(r, of);
	uint64_t value = load_whole(r, of);
	if (value == MST_NOT_KNOWN)
		return json_null();
	switch (r->shown) {
	case SECONDS:
		return json_real((double)value / 1e9);
	case MS:
		return json_real((double)value / 1e6);
	case BOOL:
		return json_boolean(value != 0);
	default:
		return json_integer((json_int_t)value);
	}
}

/* Sets @key, or the member of an object that the part of @key before its dot names. */
static int set(json_t *into, const char *key, json_t *value)
{
	const char *dot = strchr(key, '.');

	if (dot == NULL)
		return json_object_set_new(into, key, value);
	char name[32];
	MST_ASSERT((size_t)(dot - key) < sizeof(name));
	memcpy(name, key, (size_t)(dot - key));
	name[dot - key] = '\0';
	if (json_object_get(into, name) == NULL &&
	    json_object_set_new(into, name, json_object()) != 0) {
		json_decref(value);
		return -1;
	}
	return json_object_set_new(json_object_get(into, name), dot + 1, value);
}

int mst_figures_json(enum mst_figures_of table, const void *of, json_t *into)
{
	int failed = 0;

	for (size_t i = 0; i < tables[table].count; i++) {
		const struct figure_row *r = &tables[table].row[i];
		failed |= set(into, r->key, show(r, of));
	}
	return failed;
}

/* ---- the manual ---- */

/* A hyphen that is typed is a minus for man(7). */
static void print_text(const char *text, FILE *out)
{
	for (; *text != '\0'; text++) {
		if (*text == '-')
			(void)fputc('\\', out);
		(void)fputc(*text, out);
	}
	(void)fputc('\n', out);
}

void mst_figures_man(enum mst_figures_of table, FILE *out)
{
	for (size_t i = 0; i < tables[table].count; i++) {
		const struct figure_row *r = &tables[table].row[i];
		(void)fprintf(out, ".TP\n.B %s\n", r->key);
		print_text(r->means, out);
	}
}
