/* SPDX-License-Identifier: MIT */
/* The end of a failed assertion. It relies on no level and no lock of the log. Lines that wait are
 * written before it, if standard error takes them; the process ends even if it does not. */
#include "common/base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"

_Noreturn void mst_assert_failed(const char *expr, const char *file, int line)
{
	char text[MST_LOG_LINE_MAX];

	(void)snprintf(text, sizeof(text), "muster: assertion failed at %s:%d: %s\n", file, line,
		       expr);
	mst_log_last_words(text, strlen(text));
	abort();
}
