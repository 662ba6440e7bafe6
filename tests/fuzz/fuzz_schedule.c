/* SPDX-License-Identifier: MIT */
/*
 * Whatever text comes as a schedule, it is refused in a sentence, or its factor is from 0 to 1 for
 * any number of samples, and 0 from its end on.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/optim/schedule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mst_schedule s;
	struct mst_reason why = { "" };
	struct mst_reason short_why;
	char *text = strndup((const char *)data, size);

	MST_ASSERT(text != NULL);
	int rc = mst_schedule_parse(text, &s, &why);
	MST_ASSERT(rc == 0 || (rc == -EINVAL && why.text[0] != '\0'));
	MST_ASSERT(mst_schedule_parse(text, &s, &short_why) == rc);
	for (double samples = 0x1p-53; rc == 0 && samples < 1e20; samples *= 7) {
		double factor = mst_schedule_factor(&s, samples);
		MST_ASSERT(factor >= 0 && factor <= 1);
		MST_ASSERT(samples < mst_schedule_end(&s) || factor == 0);
	}
	free(text);
	return 0;
}
