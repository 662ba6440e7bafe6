/* SPDX-License-Identifier: MIT */
#include "tools/sim/learn/curve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/config/option.h"

/* A number with the unit after it. Return: 0 or -EINVAL. */
static int read_number(const char *text, const char *unit, double *out)
{
	size_t len = strlen(text), unit_len = strlen(unit);
	char number[32];

	if (len <= unit_len || len - unit_len >= sizeof(number) ||
	    strcmp(text + len - unit_len, unit) != 0)
		return -EINVAL;
	memcpy(number, text, len - unit_len);
	number[len - unit_len] = '\0';
	uint64_t value;
	if (mst_parse_u64(number, &value) != 0 || value == 0)
		return -EINVAL;
	*out = (double)value;
	return 0;
}

int mst_sim_every_parse(const char *text, struct mst_sim_every *out)
{
	uint64_t ns;

	out->unit = MST_SIM_EVERY_COMMITS;
	if (read_number(text, "commits", &out->distance) == 0)
		return 0;
	out->unit = MST_SIM_EVERY_SAMPLES;
	if (read_number(text, "samples", &out->distance) == 0)
		return 0;
	out->unit = MST_SIM_EVERY_TIME;
	if (mst_parse_duration(text, &ns) != 0 || ns == 0)
		return -EINVAL;
	out->distance = (double)ns;
	return 0;
}

int mst_sim_curve_add(struct mst_sim_curve *c, const struct mst_sim_point *point)
{
	if (c->count == MST_SIM_POINTS_MAX)
		return -E2BIG;
	if (c->count == c->room) {
		uint32_t room = c->room > 0 ? 2 * c->room : 32;
		struct mst_sim_point *grown = realloc(c->point, room * sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		c->point = grown;
		c->room = room;
	}
	c->point[c->count++] = *point;
	return 0;
}

void mst_sim_curve_fini(struct mst_sim_curve *c)
{
	free(c->point);
	*c = (struct mst_sim_curve){ .count = 0 };
}
