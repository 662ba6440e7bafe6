/* SPDX-License-Identifier: MIT */
/* The promises of server/control/connections/complaint.h, read off the lines that it logs. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "server/control/connections/complaint.h"
#include "tests/ut.h"

static char said[1 << 16];

/* In place of the log's. */
void __wrap_mst_log(enum mst_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

void __wrap_mst_log(enum mst_log_level level, const char *fmt, ...)
{
	size_t used = strlen(said);
	va_list args;

	CU_ASSERT_EQUAL(level, MST_LOG_WARN);
	va_start(args, fmt);
	(void)vsnprintf(said + used, sizeof(said) - used - 1, fmt, args);
	va_end(args);
	strncat(said, "\n", 2);
}

static unsigned lines(void)
{
	unsigned count = 0;

	for (const char *c = said; *c != '\0'; c++)
		count += *c == '\n';
	return count;
}

static void flood_is_bounded(void)
{
	struct mst_complaints c;
	unsigned complaints = 0;

	said[0] = '\0';
	mst_complaints_init(&c);
	for (uint64_t ms = 0; ms < 60000; ms++, complaints++) { /* a thousand times a second */
		mst_complaints_step(&c, ms * MST_MS);
		mst_complain(&c, MST_COMPLAINT_BROKEN, "caller %u", complaints);
	}
	CU_ASSERT(lines() <= 6 * (MST_COMPLAINT_BURST + 1));
	CU_ASSERT_EQUAL(strncmp(said,
				"caller 0\ncaller 1\ncaller 2\ncaller 3\ncaller 4\n"
				"9995 more callers broke the protocol in the last 10 s\n"
				"caller 10000\n",
				40 + 5 + 54 + 13),
			0);
	mst_complaints_step(&c, MST_NEVER);
	CU_ASSERT(lines() == 6 * (MST_COMPLAINT_BURST + 1));
}

static void kinds_do_not_hide_each_other(void)
{
	struct mst_complaints c;

	said[0] = '\0';
	mst_complaints_init(&c);
	mst_complaints_step(&c, MST_SECOND);
	for (unsigned i = 0; i < 1000; i++)
		mst_complain(&c, MST_COMPLAINT_SILENT, "silent");
	mst_complain(&c, MST_COMPLAINT_REFUSED, "a rank that is taken");
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "a rank that is taken\n"));
	said[0] = '\0';
	mst_complaints_step(&c, 11 * MST_SECOND);
	CU_ASSERT_STRING_EQUAL(said, "995 more callers said nothing in the last 10 s\n");
}

static CU_TestInfo cases[] = {
	{ "a flood of complaints is a few lines in a window, and their number", flood_is_bounded },
	{ "one kind does not hide another", kinds_do_not_hide_each_other },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("complaint", cases);
}
