/* SPDX-License-Identifier: MIT */
/*
 * The input is a trace or a recording. Whatever it is, it is refused in a sentence, or it gives
 * figures that agree with each other: arrivals in order, gains that are numbers, intervals around
 * them, a quorum among those that are compared.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/reason.h"
#include "tools/plan/advice.h"

static void arrivals_check(const struct mst_arrivals *a)
{
	MST_ASSERT(a->steps >= 2 && a->ranks >= 2);
	MST_ASSERT(a->absent <= a->censored && a->at_least_cells <= a->censored);
	for (size_t i = 0; i < (size_t)a->steps * a->ranks; i++) {
		MST_ASSERT(a->us[i] >= 0 && a->us[i] <= 2 * MST_ARRIVAL_MAX_US);
		MST_ASSERT(i % a->ranks == 0 || a->sorted[i] >= a->sorted[i - 1]);
	}
}

static void advice_check(const struct mst_advice *advice, const struct mst_arrivals *a)
{
	MST_ASSERT(advice->count > 0 && advice->count <= MST_QUORUMS_MAX);
	MST_ASSERT(advice->row[advice->count - 1].quorum == a->ranks);
	MST_ASSERT(advice->told.index < advice->count && advice->untold.index < advice->count);
	for (uint32_t i = 0; i < advice->count; i++) {
		const struct mst_quorum_row *row = &advice->row[i];
		MST_ASSERT(row->quorum > 0 && row->quorum <= a->ranks);
		MST_ASSERT(row->gain >= 0 && !isnan(row->backup_gain));
		MST_ASSERT(row->interval.gain.low <= row->gain);
		MST_ASSERT(row->interval.gain.high >= row->gain);
	}
	MST_ASSERT(advice->slow.stragglers <= a->ranks);
	MST_ASSERT(advice->slow.persistent <= advice->slow.stragglers);
	MST_ASSERT(!isnan(advice->replaced_speedup) && advice->replaced_us >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mst_rows_cfg cfg = { .to = UINT64_MAX, .pair = (enum mst_rows_pair)(size % 2) };
	struct mst_arrival_rows rows = { 0 };
	struct mst_arrivals arrivals = { 0 };
	struct mst_advice advice = { 0 };
	struct mst_reason why = { "" };
	FILE *f = size > 0 ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL;

	if (f == NULL)
		return 0;
	int rc = mst_rows_read(f, &cfg, &rows, &why);
	(void)fclose(f);
	if (rc == 0)
		rc = mst_arrivals_new(&rows, &arrivals, &why);
	MST_ASSERT((rc == 0) == (why.text[0] == '\0'));
	/* what many ranks and samples take is not what is looked for here */
	const struct mst_bootstrap_cfg samples = { .samples = 20, .seed = size };
	if (rc == 0 && (size_t)arrivals.steps * arrivals.ranks <= 128) {
		arrivals_check(&arrivals);
		MST_ASSERT(mst_plan_advise(&arrivals, &samples, &advice) == 0);
		advice_check(&advice, &arrivals);
	}
	mst_advice_fini(&advice);
	mst_arrivals_free(&arrivals);
	mst_rows_free(&rows);
	return 0;
}
