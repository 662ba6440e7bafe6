/* SPDX-License-Identifier: MIT */
/* Prints findings as text and as JSON. */
#ifndef MST_TOOLS_DOCTOR_PRINT_H
#define MST_TOOLS_DOCTOR_PRINT_H

#include <jansson.h>
#include <stdio.h>

#include "tools/doctor/try.h"

/* A line each, and below what is not ok why and what fixes it; then what all of it comes to. */
void mst_doctor_print(const struct mst_findings *findings, FILE *out);

/* Return: a new object, or NULL if memory is short. */
json_t *mst_doctor_json(const struct mst_findings *findings, const struct mst_doctor_tries *tries);

#endif
