/* SPDX-License-Identifier: MIT */
/* The readers of this build. */
#include "tests/bench/ceiling.h"

#include <string.h>

struct reader {
	const char *isa;
	ceiling_fn *fn;
};

#ifdef __x86_64__
ceiling_fn ceiling_avx512, ceiling_avx2, ceiling_baseline;

static const struct reader readers[] = {
	{ "avx512", ceiling_avx512 },
	{ "avx2", ceiling_avx2 },
	{ "baseline", ceiling_baseline },
};
#elif defined(__aarch64__)
ceiling_fn ceiling_neon;

static const struct reader readers[] = { { "neon", ceiling_neon } };
#else
ceiling_fn ceiling_baseline;

static const struct reader readers[] = { { "baseline", ceiling_baseline } };
#endif

ceiling_fn *ceiling_find(const char *isa)
{
	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++)
		if (strcmp(readers[i].isa, isa) == 0)
			return readers[i].fn;
	return NULL;
}
