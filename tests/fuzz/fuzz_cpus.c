/* SPDX-License-Identifier: MIT */
/* Whatever text comes as a list of processors, it is refused in a sentence or is a list of numbers
 * below the bound, each once. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "server/options/cpus.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct mst_cpus cpus;
	bool seen[MST_CPUS_MAX] = { false };
	struct mst_reason why = { "" };
	char *text = strndup((const char *)data, size);

	MST_ASSERT(text != NULL);
	int rc = mst_cpus_parse(text, &cpus, &why);
	MST_ASSERT(rc == 0 || (rc == -EINVAL && why.text[0] != '\0'));
	for (uint32_t i = 0; rc == 0 && i < cpus.count; i++) {
		MST_ASSERT(cpus.cpu[i] < MST_CPUS_MAX && !seen[cpus.cpu[i]]);
		seen[cpus.cpu[i]] = true;
	}
	free(text);
	return 0;
}
