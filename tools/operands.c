/* SPDX-License-Identifier: MIT */
#include "tools/operands.h"

#include <errno.h>
#include <stdio.h>

int mst_operands_read(struct mst_options *parsed, int argc, char **argv, struct mst_operands *out)
{
	int operand, rc;

	out->count = 0;
	while ((rc = mst_options_argv(parsed, argc, argv, &operand)) == 0 && operand < argc) {
		if (out->count == MST_OPERANDS_MAX) {
			(void)snprintf(parsed->why, sizeof(parsed->why),
				       "\"%.60s\" is one argument too many", argv[operand]);
			return -EINVAL;
		}
		out->text[out->count++] = argv[operand];
		argc -= operand, argv += operand;
	}
	return rc;
}
