/* SPDX-License-Identifier: MIT */
/* Where a failed assertion ends. Unlike the logger it trusts nothing: no level, no lock. */
#include "common/base/assert.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void mst_assert_failed(const char *expr, const char *file, int line)
{
	fprintf(stderr, "muster: assertion failed at %s:%d: %s\n", file, line, expr);
	abort();
}
