/* SPDX-License-Identifier: MIT */
/*
 * A problem that `muster sim` is to train on: whatever it is, it is refused in a sentence, or all
 * its figures are in their ranges.
 */
#include <string.h>

#include "common/base/assert.h"
#include "common/base/reason.h"
#include "tools/sim/learn/curve.h"
#include "tools/sim/problem/problem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct mst_sim_problem_spec spec;
	char text[5000];
	struct mst_reason why = { "" };
	struct mst_sim_every every;

	size = size < sizeof(text) ? size : sizeof(text) - 1;
	memcpy(text, data, size);
	text[size] = '\0';
	if (mst_sim_every_parse(text, &every) == 0)
		MST_ASSERT(every.distance > 0);
	if (mst_sim_problem_parse(text, &spec, &why) != 0) {
		MST_ASSERT(why.text[0] != '\0');
		return 0;
	}
	for (unsigned i = 0; i < MST_SIM_PARAMETERS_MAX; i++) {
		const struct mst_optim_parameter *p = &spec.row->parameter[i];
		if (p->name != NULL)
			MST_ASSERT(spec.parameter[i] >= p->min && spec.parameter[i] <= p->max);
	}
	MST_ASSERT(spec.directory[0] == '\0' || spec.row->directory != NULL);
	return 0;
}
