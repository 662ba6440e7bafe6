/* SPDX-License-Identifier: MIT */
/* What the user can set: one table, read from the command line. */
#ifndef DIGITS_SETTINGS_H
#define DIGITS_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/config/option.h"

/* In the order of the option's choices. */
enum product { PRODUCT_AUTO, PRODUCT_BLAS, PRODUCT_PLAIN };

struct settings {
	struct mst_options source; /* owns the strings */
	const char *data;          /* directory; NULL: drawn digits */
	const char *json;          /* file for the result; NULL: none */
	uint32_t batch, micro;     /* samples per contribution, and per step of computing */
	uint32_t hidden;
	uint64_t seed;
	uint32_t product;    /* enum product; PRODUCT_BLAS only where it is built in */
	uint32_t owner;      /* enum muster_owner */
	double lr, momentum; /* workers own */
	uint32_t test_every; /* versions; 0: at the end only */
	struct mst_option_list delay;
	bool help;
};

/* Return: 0; 1 help was asked for and given; -EINVAL what is wrong was said on stderr; -ENOMEM. */
int settings_init(struct settings *s, int argc, char **argv);
void settings_fini(struct settings *s);

#endif
