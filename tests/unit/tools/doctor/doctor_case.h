/* SPDX-License-Identifier: MIT */
/* A made-up host on which nothing is wrong, for each test to spoil; and what doctor says of it. */
#ifndef MST_TESTS_UNIT_TOOLS_DOCTOR_DOCTOR_CASE_H
#define MST_TESTS_UNIT_TOOLS_DOCTOR_DOCTOR_CASE_H

#include <stdio.h>
#include <string.h>

#include "tests/ut.h"
#include "tools/doctor/judge.h"

/* rxe0 with one port over eth0, which has 10.0.0.1; lo beside it. */
extern struct mst_doctor_facts doctor_facts;
extern struct mst_doctor_wish doctor_wish;
extern struct mst_findings doctor_found;

void doctor_host(void);                   /* sets host and wish anew */
void doctor_add_device(const char *name); /* one more like rxe0, its port without a GID */
struct mst_probe_port *doctor_port(void); /* rxe0's */
void doctor_address(uint8_t raw[16], const char *text);

#define DOCTOR_TEXT(field, text) (void)snprintf(field, sizeof(field), "%s", text)

void doctor_judge(void); /* fills found */
/* The one finding of @check; NULL: there is none, or more than one. */
const struct mst_finding *doctor_finding(const char *check, const char *subject);

/* The finding is of this level, and what it says, why and what fixes it hold these words. */
#define DOCTOR_SAYS(check, subject, level_, found_, cause_, fix_)                                  \
	do {                                                                                       \
		const struct mst_finding *f_ = doctor_finding(check, subject);                     \
		CU_ASSERT_PTR_NOT_NULL_FATAL(f_);                                                  \
		CU_ASSERT_EQUAL(f_->level, level_);                                                \
		CU_ASSERT_PTR_NOT_NULL(strstr(f_->found, found_));                                 \
		CU_ASSERT_PTR_NOT_NULL(strstr(f_->cause, cause_));                                 \
		CU_ASSERT_PTR_NOT_NULL(strstr(f_->fix, fix_));                                     \
	} while (0)

#endif
