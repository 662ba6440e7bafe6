/* SPDX-License-Identifier: MIT */
/* Large units put borders on huge pages, and on multiples of what a device moves at a time. A
 * vector that is too short for them is divided in smaller units. */
#include "common/wire/part.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/wire/lane.h"

static const struct part_unit {
	uint64_t elems;     /* borders are at multiples of this */
	uint64_t elems_min; /* in each part, else the next unit is tried */
} units[] = {
	{ UINT64_C(1) << 20, UINT64_C(4) << 20 },
	{ UINT64_C(32) << 10, UINT64_C(32) << 10 },
	{ MST_PART_ELEMS_MIN, 1 },
};
#define UNITS (sizeof(units) / sizeof(units[0]))

/* The weight of the first @k servers together. */
static uint64_t weight_of(const uint32_t *weights, uint32_t k)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < k; i++)
		sum += weights != NULL ? weights[i] : 1;
	return sum;
}

struct vector {
	uint64_t elems;
	uint32_t servers;
	const uint32_t *weights;
};

/* 2^40 elements times 16 weights of 1000 stay below 2^54. */
static uint64_t border(const struct vector *v, uint64_t unit, uint32_t k)
{
	if (k == v->servers)
		return v->elems;
	uint64_t share = v->elems * weight_of(v->weights, k) / weight_of(v->weights, v->servers);
	return share / unit * unit;
}

static bool unit_fits(const struct vector *v, const struct part_unit *unit)
{
	for (uint32_t k = 0; k < v->servers; k++) {
		uint64_t part = border(v, unit->elems, k + 1) - border(v, unit->elems, k);
		if (part < unit->elems_min)
			return false;
	}
	return true;
}

static bool figures_ok(const struct vector *v)
{
	if (v->elems > MST_ELEMS_MAX || v->servers == 0 || v->servers > MST_SERVERS_MAX)
		return false;
	for (uint32_t i = 0; v->weights != NULL && i < v->servers; i++) {
		if (v->weights[i] == 0 || v->weights[i] > MST_PART_WEIGHT_MAX)
			return false;
	}
	return true;
}

int64_t mst_part_border(uint64_t elems, uint32_t servers, const uint32_t *weights, uint32_t k)
{
	struct vector v = { elems, servers, weights };

	if (!figures_ok(&v) || k > servers)
		return -EINVAL;
	for (size_t i = 0; i < UNITS; i++) {
		if (unit_fits(&v, &units[i]))
			return (int64_t)border(&v, units[i].elems, k);
	}
	return -EINVAL;
}
