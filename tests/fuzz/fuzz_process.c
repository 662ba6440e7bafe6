/* SPDX-License-Identifier: MIT */
/* An input is the text of a /proc/PID/status, of a /proc/PID/limits or of /proc/loadavg: whatever
 * it says, a figure is read or refused, and what is refused changes nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/host/process.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_same(const struct mst_process *a, const struct mst_process *b)
{
	return a->uid == b->uid && a->threads == b->threads && a->capabilities == b->capabilities &&
	       a->pinned_bytes == b->pinned_bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct mst_process before = { 7, 8, 9, 10 };
	struct mst_process p = before;
	char *text = strndup((const char *)data, size);

	MST_ASSERT(text != NULL);
	if (mst_process_read(text, &p))
		MST_ASSERT(strstr(text, "\nUid:") != NULL && strstr(text, "\nCapEff:") != NULL);
	else
		MST_ASSERT(is_same(&p, &before));
	if (mst_process_limit(text, "Max processes") != MST_PROCESS_UNLIMITED)
		MST_ASSERT(strstr(text, "\nMax processes") != NULL);
	if (mst_process_all(text) != MST_PROCESS_UNLIMITED)
		MST_ASSERT(strchr(text, '/') != NULL);
	free(text);
	return 0;
}
