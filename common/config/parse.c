/* SPDX-License-Identifier: MIT */
/*
 * Parses and prints single values, such as numbers with units. A text that is not used whole is
 * refused: "5x", "", " 5", "-1" where nothing is negative, and numbers that do not fit. strtoull()
 * and strtod() alone would accept more: they skip blanks, negate unsigned numbers, and take "nan",
 * "inf" and hexadecimal.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/config/row.h"

#define DIGITS "0123456789"

struct unit {
	const char *name;
	uint64_t scale;
};

/* Largest first: a value is printed in the first unit that divides it. The last has scale 1. */
static const struct unit size_units[] = {
	{ "G", UINT64_C(1) << 30 },
	{ "M", UINT64_C(1) << 20 },
	{ "K", UINT64_C(1) << 10 },
	{ "", 1 },
	{ NULL, 0 },
};

static const struct unit duration_units[] = {
	{ "h", UINT64_C(3600000000000) },
	{ "min", UINT64_C(60000000000) },
	{ "m", UINT64_C(60000000000) }, /* as sleep, timeout and others have it; printed as min */
	{ "s", UINT64_C(1000000000) },
	{ "ms", UINT64_C(1000000) },
	{ "us", UINT64_C(1000) },
	{ "ns", 1 },
	{ NULL, 0 },
};

/* Reads the digits that @text begins with.
 * Return: what follows them, or NULL. */
static const char *whole_read(const char *text, uint64_t *out)
{
	size_t len = strspn(text, DIGITS);

	if (len == 0)
		return NULL;
	errno = 0;
	unsigned long long value = strtoull(text, NULL, 10);
	if (errno != 0)
		return NULL;
	*out = value;
	return text + len;
}

static int scaled_parse(const char *text, const struct unit *unit, uint64_t *out)
{
	uint64_t whole, value;
	const char *rest = whole_read(text, &whole);

	if (rest == NULL)
		return -EINVAL;
	while (unit->name != NULL && strcmp(unit->name, rest) != 0)
		unit++;
	if (unit->name == NULL || __builtin_mul_overflow(whole, unit->scale, &value))
		return -EINVAL;
	*out = value;
	return 0;
}

static void scaled_format(uint64_t value, const struct unit *unit, char *out, size_t len)
{
	while (unit->scale > 1 && (value == 0 || value % unit->scale != 0))
		unit++;
	snprintf(out, len, "%" PRIu64 "%s", value / unit->scale, unit->name);
}

int mst_parse_u64(const char *text, uint64_t *out)
{
	uint64_t value;
	const char *rest = whole_read(text, &value);

	if (rest == NULL || *rest != '\0')
		return -EINVAL;
	*out = value;
	return 0;
}

int mst_parse_real(const char *text, double *out)
{
	if (*text == '\0' || text[strspn(text, DIGITS "+-.eE")] != '\0')
		return -EINVAL;
	char *end;
	double value = mst_text_real(text, &end);
	if (end == text || *end != '\0' || !isfinite(value))
		return -EINVAL;
	*out = value;
	return 0;
}

int mst_parse_size(const char *text, uint64_t *out)
{
	return scaled_parse(text, size_units, out);
}

int mst_parse_duration(const char *text, uint64_t *out)
{
	return scaled_parse(text, duration_units, out);
}

void mst_format_u64(uint64_t value, char *out, size_t len)
{
	snprintf(out, len, "%" PRIu64, value);
}

/* The fewest digits that are read as the same double. */
void mst_format_real(double value, char *out, size_t len)
{
	int digits = 1;

	do {
		(void)mst_text_print(out, len, "%.*g", digits, value);
	} while (mst_text_real(out, NULL) != value && ++digits <= 17);
}

void mst_format_size(uint64_t value, char *out, size_t len)
{
	scaled_format(value, size_units, out, len);
}

void mst_format_duration(uint64_t value, char *out, size_t len)
{
	scaled_format(value, duration_units, out, len);
}
