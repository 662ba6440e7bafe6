/* SPDX-License-Identifier: MIT */
/* The promises of server/control/job/metrics.h. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "server/control/job/metrics.h"
#include "tests/ut.h"

static unsigned infos, warnings, debugs;

/* In place of the log's. */
void __wrap_mst_log(enum mst_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

void __wrap_mst_log(enum mst_log_level level, const char *fmt, ...)
{
	(void)fmt;
	infos += level == MST_LOG_INFO;
	warnings += level == MST_LOG_WARN;
	debugs += level == MST_LOG_DEBUG;
}

static struct mst_metrics metrics;
static struct mst_status status;

static void begin(void)
{
	metrics = (struct mst_metrics){ 0 };
	infos = warnings = debugs = 0;
}

static const char *take(uint32_t rank, const char *name, double value, uint64_t version)
{
	struct mst_metric said = { .value = value, .version = version };

	(void)snprintf(said.name, sizeof(said.name), "%s", name);
	const char *wrong = mst_metrics_wrong(&said);
	if (wrong == NULL)
		mst_metrics_take(&metrics, rank, &said);
	return wrong;
}

static void the_newest_version_is_told(void)
{
	begin();
	CU_ASSERT_PTR_NULL(take(0, "accuracy", 0.5, 10));
	CU_ASSERT_PTR_NULL(take(1, "loss", -3, 0));
	CU_ASSERT_PTR_NULL(take(2, "accuracy", 0.7, 20));
	CU_ASSERT_PTR_NULL(take(1, "accuracy", 0.6, 15)); /* older */
	mst_metrics_tell(&metrics, &status);
	CU_ASSERT_EQUAL(status.metric_count, 2);
	CU_ASSERT_STRING_EQUAL(status.metric[0].newest.name, "accuracy");
	CU_ASSERT_EQUAL(status.metric[0].newest.value, 0.7);
	CU_ASSERT_EQUAL(status.metric[0].newest.version, 20);
	CU_ASSERT_EQUAL(status.metric[0].rank, 2);
	CU_ASSERT_EQUAL(status.metric[0].reports, 3);
	CU_ASSERT_EQUAL(status.metric[1].newest.value, -3);
	CU_ASSERT_PTR_NULL(take(1, "accuracy", 0.1, 20)); /* the same version: the last that came */
	mst_metrics_tell(&metrics, &status);
	CU_ASSERT_EQUAL(status.metric[0].newest.value, 0.1);
	CU_ASSERT_EQUAL(status.metric[0].rank, 1);
}

static void what_cannot_be_is_refused(void)
{
	begin();
	CU_ASSERT_PTR_NOT_NULL(take(0, "", 1, 1));
	CU_ASSERT_PTR_NOT_NULL(take(0, "loss", (double)NAN, 1));
	CU_ASSERT_PTR_NOT_NULL(take(0, "loss", (double)-INFINITY, 1));
	CU_ASSERT(!metrics.changed);
	mst_metrics_tell(&metrics, &status);
	CU_ASSERT_EQUAL(status.metric_count, 0);
}

static void further_names_are_dropped_and_that_is_said_once(void)
{
	char name[16];

	begin();
	for (unsigned i = 0; i < MST_STATUS_METRICS + 5; i++) {
		(void)snprintf(name, sizeof(name), "m%u", i);
		CU_ASSERT_PTR_NULL(take(0, name, i, 1));
	}
	CU_ASSERT_EQUAL(infos, MST_STATUS_METRICS);
	CU_ASSERT_EQUAL(warnings, 1);
	CU_ASSERT_PTR_NULL(take(0, "m15", 99, 2)); /* a known one goes on */
	mst_metrics_tell(&metrics, &status);
	CU_ASSERT_EQUAL(status.metric_count, MST_STATUS_METRICS);
	CU_ASSERT_EQUAL(status.metric[15].newest.value, 99);
}

static void only_the_first_of_a_name_is_logged_at_info(void)
{
	begin();
	for (uint64_t version = 1; version <= 10; version++)
		CU_ASSERT_PTR_NULL(take(0, "loss", 1, version));
	CU_ASSERT_EQUAL(infos, 1);
	CU_ASSERT_EQUAL(debugs, 10);
	CU_ASSERT(metrics.changed);
}

static CU_TestInfo cases[] = {
	{ "the value of the newest version is told", the_newest_version_is_told },
	{ "what cannot be is refused", what_cannot_be_is_refused },
	{ "further names are dropped, and that is said once",
	  further_names_are_dropped_and_that_is_said_once },
	{ "only the first report of a name is logged at info",
	  only_the_first_of_a_name_is_logged_at_info },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("metrics", cases);
}
