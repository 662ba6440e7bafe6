/* SPDX-License-Identifier: MIT */
/* In a build without zlib, which has no common/digits. */
#include <errno.h>

#include "common/base/reason.h"
#include "tools/sim/problem/problem.h"

int mst_sim_digits_new(const struct mst_sim_problem_spec *spec, struct mst_sim_problem **out,
		       struct mst_reason *why)
{
	(void)spec;
	(void)out;
	mst_reason_set(why, "this muster was built without zlib and cannot read digits: install "
			    "zlib1g-dev and build it again, or say --train quadratic");
	return -ENOTSUP;
}
