/* SPDX-License-Identifier: MIT */
#include "server/core/policy/number.h"

#include <stdlib.h>
#include <string.h>

const char *mst_number_parse(const char *text, const struct mst_number *number, double *out)
{
	size_t len = strspn(text, number->whole ? "-0123456789" : "0123456789.");
	char copy[32], *end;

	if (len == 0 || len >= sizeof(copy))
		return NULL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	double value = strtod(copy, &end);
	if (*end != '\0' || !(value >= number->min && value <= number->max))
		return NULL;
	*out = value;
	return text + len;
}
