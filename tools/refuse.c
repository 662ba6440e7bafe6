/* SPDX-License-Identifier: MIT */
#include "tools/refuse.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/base/log.h"
#include "tools/command.h"

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
