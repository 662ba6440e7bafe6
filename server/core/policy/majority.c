/* SPDX-License-Identifier: MIT */
#include "server/core/policy/majority.h"

/* Where the least number is at most half, an old leader could go on with the others. A new process
 * remembers no start. So two starts share a rank that does only if each has more than half that
 * bring claims. */
bool mst_majority_starts(const struct mst_gathered *g)
{
	uint32_t majority = mst_majority(g->workers);

	return g->least >= majority && g->started >= g->least && g->claims >= majority;
}
