/* SPDX-License-Identifier: MIT */
/* Runs cases without CUnit; see CUnit/CUnit.h here. */
#include "tests/ut.h"

#include <stdio.h>
#include <stdlib.h>

static unsigned checks, failures;

void ut_check(bool good, bool fatal, const char *what, const char *file, int line)
{
	checks++;
	if (good)
		return;
	failures++;
	printf("%s:%d: %s\n", file, line, what);
	if (fatal)
		exit(EXIT_FAILURE);
}

int ut_main(const char *suite, CU_TestInfo *cases)
{
	for (; cases->name != NULL; cases++) {
		unsigned before = failures;

		cases->run();
		printf("%s: %s ... %s\n", suite, cases->name,
		       failures == before ? "passed" : "FAILED");
	}
	printf("%u assertions, %u failed\n", checks, failures);
	return failures == 0 && checks > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
