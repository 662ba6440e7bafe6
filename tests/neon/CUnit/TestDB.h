/* SPDX-License-Identifier: MIT */
/* Where CUnit declares its lists of cases. */
#ifndef MST_TESTS_NEON_TESTDB_H
#define MST_TESTS_NEON_TESTDB_H

#include "tests/neon/CUnit/CUnit.h"

#endif
