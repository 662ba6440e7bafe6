/* SPDX-License-Identifier: MIT */
/* The parts that the servers of a job have of its vector: contiguous, in order, by weight. */
#ifndef MST_WIRE_PART_H
#define MST_WIRE_PART_H

#include <stdint.h>

#define MST_SERVERS_MAX 16u
#define MST_PART_WEIGHT_MAX 1000u
/* Borders are multiples of this: pages, whatever the type of an element. */
#define MST_PART_ELEMS_MIN 4096u

/* Where part @k of @servers begins, in elements; @k == @servers: where the last part ends. The size
 * of a part follows its weight (1 .. MST_PART_WEIGHT_MAX; @weights NULL: all equal) as closely as
 * borders allow: at multiples of 1 Mi if each part has 4 Mi or more, else of 32 Ki if each part has
 * that much, else of MST_PART_ELEMS_MIN.
 * Return: -EINVAL: some part would be empty, or a figure is impossible. */
int64_t mst_part_border(uint64_t elems, uint32_t servers, const uint32_t *weights, uint32_t k);

#endif
