/* SPDX-License-Identifier: MIT */
/* The tables of this build, and the one in use: found when it is first asked for, by any thread. */
#include "common/kernels/select.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "common/base/log.h"
#include "common/kernels/isa.h"

#define VARIABLE "MUSTER_KERNELS"

struct choice {
	const struct mst_isa *isa;
	bool (*runs)(void);
};

static bool runs_anywhere(void)
{
	return true;
}

#ifdef __x86_64__

extern const struct mst_isa mst_isa_avx512, mst_isa_avx2, mst_isa_baseline;

static bool has_f16c(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

static bool runs_avx2(void)
{
	return __builtin_cpu_supports("avx2") && has_f16c();
}

static bool runs_avx512(void)
{
	return runs_avx2() && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
	       __builtin_cpu_supports("avx512vl");
}

static const struct choice choices[] = {
	{ &mst_isa_avx512, runs_avx512 },
	{ &mst_isa_avx2, runs_avx2 },
	{ &mst_isa_baseline, runs_anywhere },
};

#elif defined(__aarch64__)

extern const struct mst_isa mst_isa_neon; /* every such processor has it */

static const struct choice choices[] = { { &mst_isa_neon, runs_anywhere } };

#else

extern const struct mst_isa mst_isa_baseline;

static const struct choice choices[] = { { &mst_isa_baseline, runs_anywhere } };

#endif

#define CHOICES (sizeof(choices) / sizeof(choices[0]))

/* The tables are constants, so the pointer brings nothing that has to be ordered behind it. */
static const struct mst_isa *_Atomic in_use;

static const struct choice *choice_find(const char *name)
{
	for (size_t i = 0; i < CHOICES; i++)
		if (strcmp(choices[i].isa->name, name) == 0)
			return &choices[i];
	return NULL;
}

static const struct mst_isa *best(void)
{
	size_t i = 0;

	while (!choices[i].runs())
		i++;
	return choices[i].isa;
}

static const struct mst_isa *pick(void)
{
	const char *name = getenv(VARIABLE);
	const struct choice *named = name == NULL ? NULL : choice_find(name);
	const struct mst_isa *isa = named != NULL && named->runs() ? named->isa : best();

	if (name != NULL && strcmp(name, isa->name) != 0)
		mst_warn("%s=%s: no such kernels on this processor; using %s", VARIABLE, name,
			 isa->name);
	atomic_store_explicit(&in_use, isa, memory_order_relaxed);
	return isa;
}

const struct mst_isa *mst_isa(void)
{
	const struct mst_isa *isa = atomic_load_explicit(&in_use, memory_order_relaxed);

	return isa != NULL ? isa : pick();
}

const char *mst_kernels_name(size_t index)
{
	for (size_t i = 0; i < CHOICES; i++)
		if (choices[i].runs() && index-- == 0)
			return choices[i].isa->name;
	return NULL;
}

int mst_kernels_select(const char *name)
{
	const struct choice *choice = choice_find(name);

	if (choice == NULL)
		return -EINVAL;
	if (!choice->runs())
		return -ENOTSUP;
	atomic_store_explicit(&in_use, choice->isa, memory_order_relaxed);
	return 0;
}
