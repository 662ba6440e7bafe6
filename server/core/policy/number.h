/* SPDX-License-Identifier: MIT */
/* The numbers in a policy as a user types it: "4", "-1", "0.5". Pure. */
#ifndef MST_SERVER_CORE_POLICY_NUMBER_H
#define MST_SERVER_CORE_POLICY_NUMBER_H

#include <stdbool.h>

struct mst_number {
	double min, max;
	bool whole; /* the number has no fraction */
};

/* Reads a decimal number in the range. strtod() alone would also take blanks, "inf" and
 * hexadecimal.
 * Return: what follows the number, or NULL. */
const char *mst_number_parse(const char *text, const struct mst_number *number, double *out);

#endif
