/* SPDX-License-Identifier: MIT */
/* The readers of this build. */
#include "tests/bench/ceiling.h"

#include <string.h>

struct ceiling_reader {
	const char *isa;
	ceiling_fn *fn;
};

#ifdef __x86_64__
ceiling_fn ceiling_avx512, ceiling_avx2, ceiling_baseline;

static const struct ceiling_reader readers[] = {
	{ "avx512", ceiling_avx512 },
	{ "avx2", ceiling_avx2 },
	{ "baseline", ceiling_baseline },
};
#elif defined(__aarch64__)
ceiling_fn ceiling_neon;

static const struct ceiling_reader readers[] = { { "neon", ceiling_neon } };
#else
ceiling_fn ceiling_baseline;

static const struct ceiling_reader readers[] = { { "baseline", ceiling_baseline } };
#endif

const struct ceiling_variant ceiling_variants[CEILING_VARIANTS] = {
	{ 1, 0, true },    { 2, 0, true },    { 4, 0, true },    { 1, 1024, true },
	{ 2, 1024, true }, { 4, 1024, true }, { 1, 2048, true }, { 2, 2048, true },
	{ 4, 2048, true }, { 1, 0, false },   { 2, 0, false },   { 4, 0, false },
};

ceiling_fn *ceiling_find(const char *isa)
{
	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++)
		if (strncmp(readers[i].isa, isa, strlen(readers[i].isa)) == 0)
			return readers[i].fn;
	return NULL;
}
