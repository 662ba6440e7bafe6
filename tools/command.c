/* SPDX-License-Identifier: MIT */
#include "tools/command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/base/log.h"
#include "common/base/reason.h"
#include "common/config/option.h"

int mst_refuse(const char *command, const char *fmt, ...)
{
	char why[MST_LOG_LINE_MAX];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	mst_error("%s", why);
	mst_error("see muster %s --help", command);
	return MST_EXIT_USAGE;
}

int mst_operands_read(struct mst_options *parsed, int argc, char **argv, struct mst_operands *out)
{
	int operand, rc;

	out->count = 0;
	while ((rc = mst_options_argv(parsed, argc, argv, &operand)) == 0 && operand < argc) {
		if (out->count == MST_OPERANDS_MAX) {
			mst_reason_set(&parsed->why,
				       "\"%.60s\" is one argument too many, after \"%.60s\" and "
				       "\"%.60s\"",
				       argv[operand], out->text[0], out->text[1]);
			return -EINVAL;
		}
		out->text[out->count++] = argv[operand];
		argc -= operand, argv += operand;
	}
	return rc;
}
