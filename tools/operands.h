/* SPDX-License-Identifier: MIT */
/* A command line of options and of at most two operands, in any order. */
#ifndef MST_TOOLS_OPERANDS_H
#define MST_TOOLS_OPERANDS_H

#include "common/config/option.h"

#define MST_OPERANDS_MAX 2

struct mst_operands {
	int count;
	const char *text[MST_OPERANDS_MAX];
};

/* Return: 0 or -EINVAL: @parsed->why is a sentence. */
int mst_operands_read(struct mst_options *parsed, int argc, char **argv, struct mst_operands *out);

#endif
