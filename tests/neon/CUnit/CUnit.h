/* SPDX-License-Identifier: MIT */
/*
 * As much of CUnit as the tests of the kernels use, for a processor that the library is not
 * packaged for here. A failed assertion counts and says where; a fatal one also ends the process.
 */
#ifndef MST_TESTS_NEON_CUNIT_H
#define MST_TESTS_NEON_CUNIT_H

#include <stdbool.h>
#include <string.h>

typedef struct {
	const char *name;
	void (*run)(void);
} CU_TestInfo;

#define CU_TEST_INFO_NULL                                                                          \
	{                                                                                          \
		NULL, NULL                                                                         \
	}

void ut_check(bool good, bool fatal, const char *what, const char *file, int line);

#define CU_ASSERT(value) ut_check((value), false, #value, __FILE__, __LINE__)
#define CU_ASSERT_FATAL(value) ut_check((value), true, #value, __FILE__, __LINE__)
#define CU_ASSERT_EQUAL(a, b) ut_check((a) == (b), false, #a " == " #b, __FILE__, __LINE__)
#define CU_ASSERT_EQUAL_FATAL(a, b) ut_check((a) == (b), true, #a " == " #b, __FILE__, __LINE__)
#define CU_ASSERT_STRING_EQUAL(a, b)                                                               \
	ut_check(strcmp(a, b) == 0, false, #a " is " #b, __FILE__, __LINE__)

#endif
