/* SPDX-License-Identifier: MIT */
#include "client/local/failure.h"

#include <stdarg.h>
#include <stdio.h>

int mst_client_fail(struct mst_failure *f, int error, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(f->text, sizeof(f->text), fmt, args);
	va_end(args);
	return error;
}
