/* SPDX-License-Identifier: MIT */
/* What a worker learnt, for people and for programs. */
#ifndef DIGITS_REPORT_H
#define DIGITS_REPORT_H

#include <stddef.h>
#include <stdint.h>

struct report {
	uint32_t rank;
	uint64_t versions;
	double loss, accuracy;
	uint32_t train, test; /* samples */
	uint64_t parameters;
	const char *data;    /* directory; NULL: drawn */
	const char *product; /* blas or plain: what multiplied */
};

/* One line on stdout. */
void report_print(const struct report *r);

/* One JSON object to @file, in which the first %r stands for the rank. @why: on failure a sentence.
 * Return: 0 or a negative errno. */
int report_write(const struct report *r, const char *file, char *why, size_t why_len);

#endif
