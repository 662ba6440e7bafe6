/* SPDX-License-Identifier: MIT */
/* CUnit through one call: a list of promises, and an exit status. */
#ifndef MST_TESTS_UT_H
#define MST_TESTS_UT_H

#include <CUnit/CUnit.h>
#include <CUnit/TestDB.h>

#include "common/base/reason.h"

/* For a call whose sentence the test does not read. */
#define UT_UNREAD (&(struct mst_reason){ 0 })

#define UT_SKIP 77 /* exit status of a test that cannot run here; it prints why */

/* Runs all cases, prints failures and CUnit's summary. Return: the process's exit status. */
int ut_main(const char *suite, CU_TestInfo *cases);

#endif
