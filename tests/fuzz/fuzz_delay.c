/* SPDX-License-Identifier: MIT */
/*
 * Lines are specs, then comes the file of every trace among them. Whatever they are, they are
 * refused in a sentence or give delays that are bounded and come again with the seed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/delay/delay.h"
#include "tests/fuzz/text.h"

#define SPEC_BYTES 256
#define TRACE "trace:"

/* A trace may name no other file than the one at hand. */
static void spec_tame(const struct fuzz_text *t, const char *line, char *out)
{
	const char *trace = strstr(line, TRACE);

	if (trace != NULL)
		snprintf(out, SPEC_BYTES, "%.*s%s", (int)(trace - line) + (int)strlen(TRACE), line,
			 t->path);
	else
		snprintf(out, SPEC_BYTES, "%s", line);
}

static void delays_check(const struct mst_delay_options *opt, struct mst_delay *d)
{
	struct mst_delay *again;
	struct mst_reason why;

	MST_ASSERT(mst_delay_new(opt, &again, &why) == 0);
	for (unsigned i = 0; i < 20; i++) {
		uint64_t ns = mst_delay_next(d);
		MST_ASSERT(ns <= UINT64_C(1) << 62);
		MST_ASSERT(mst_delay_next(again) == ns);
	}
	mst_delay_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char spec[FUZZ_LINES_MAX][SPEC_BYTES];
	const char *specs[FUZZ_LINES_MAX];
	struct mst_delay *d = NULL;
	struct fuzz_text t;
	struct mst_reason why = { "" };

	fuzz_text_init(&t, data, size);
	struct mst_delay_options opt = {
		.spec = specs,
		.spec_count = t.line_count,
		.rank = (uint32_t)size % 4,
		.seed = size,
	};
	for (unsigned i = 0; i < t.line_count; i++) {
		spec_tame(&t, t.line[i], spec[i]);
		specs[i] = spec[i];
	}
	int rc = mst_delay_new(&opt, &d, &why);
	/* ENOENT and the like: bytes before "trace:" that made it another file's name. */
	MST_ASSERT((rc == 0) == (d != NULL));
	MST_ASSERT(rc == 0 || strncmp(why.text, "delay \"", 7) == 0);
	if (rc == 0)
		delays_check(&opt, d);
	mst_delay_free(d);
	fuzz_text_fini(&t);
	return 0;
}
