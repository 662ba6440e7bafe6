/* SPDX-License-Identifier: MIT */
#include "tests/ut.h"

#include <CUnit/Basic.h>
#include <stdlib.h>

int ut_main(const char *suite, CU_TestInfo *cases)
{
	CU_SuiteInfo suites[] = {
		{ suite, NULL, NULL, NULL, NULL, cases },
		CU_SUITE_INFO_NULL,
	};

	if (CU_initialize_registry() != CUE_SUCCESS || CU_register_suites(suites) != CUE_SUCCESS)
		return EXIT_FAILURE;
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
