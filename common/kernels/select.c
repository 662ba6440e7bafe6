/* SPDX-License-Identifier: MIT */
/* The tables of this build, and the one in use: found when it is first asked for, by any thread. */
#include "common/kernels/select.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "common/base/log.h"
#include "common/kernels/variant.h"

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

/* What is used. Threads that find a table in use find the variant too. */
static const struct mst_isa *_Atomic in_use;
static struct mst_variant variant;
static bool variant_named;

static const struct choice *choice_find(const char *name, size_t len)
{
	for (size_t i = 0; i < CHOICES; i++)
		if (strlen(choices[i].isa->name) == len &&
		    memcmp(choices[i].isa->name, name, len) == 0)
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

/* Release: pairs with mst_isa(), the variant has been written. */
static void use(const struct mst_isa *isa, const struct mst_variant *v, bool named)
{
	variant = *v;
	variant_named = named;
	atomic_store_explicit(&in_use, isa, memory_order_release);
}

int mst_kernels_select(const char *text)
{
	size_t len = strcspn(text, ":");
	const struct choice *choice = choice_find(text, len);
	struct mst_variant v = mst_variant_default();
	bool named = text[len] == ':';

	if (choice == NULL || (named && mst_variant_parse(text + len + 1, &v) != 0))
		return -EINVAL;
	if (!choice->runs())
		return -ENOTSUP;
	use(choice->isa, &v, named);
	return 0;
}

static void pick(void)
{
	const char *text = getenv(VARIABLE);
	struct mst_variant v = mst_variant_default();

	if (text != NULL && mst_kernels_select(text) == 0)
		return;
	use(best(), &v, false);
	if (text != NULL)
		mst_warn("%s=%s: no such kernels on this processor; using %s", VARIABLE, text,
			 best()->name);
}

const struct mst_isa *mst_isa(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const struct mst_isa *isa = atomic_load_explicit(&in_use, memory_order_acquire);

	if (isa != NULL)
		return isa;
	(void)pthread_once(&once, pick);
	return atomic_load_explicit(&in_use, memory_order_acquire);
}

const struct mst_variant *mst_variant(void)
{
	(void)mst_isa();
	return &variant;
}

bool mst_variant_named(void)
{
	(void)mst_isa();
	return variant_named;
}

void mst_variant_use(const struct mst_variant *v)
{
	use(mst_isa(), v, variant_named);
}

void mst_kernels_text(char text[MST_KERNELS_TEXT])
{
	int len = snprintf(text, MST_KERNELS_TEXT, "%s:", mst_isa()->name);

	mst_variant_text(&variant, text + len, MST_KERNELS_TEXT - (size_t)len);
}

bool mst_kernels_streams(uint64_t bytes)
{
	return bytes >= mst_variant()->stream;
}

const char *mst_kernels_name(size_t index)
{
	for (size_t i = 0; i < CHOICES; i++)
		if (choices[i].runs() && index-- == 0)
			return choices[i].isa->name;
	return NULL;
}
