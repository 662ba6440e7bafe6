/* SPDX-License-Identifier: MIT */
/*
 * First how much is summed in one tile and what is asked for ahead, which depend on each other;
 * then how many lines a turn; then whether results gain by being written past the caches.
 */
#include "common/kernels/tune.h"

#include <sys/mman.h>

#include "common/base/clock.h"
#include "common/kernels/commit.h"
#include "common/kernels/variant.h"

#define TRIAL_BYTES (UINT64_C(1) << 20)
#define ROUNDS 5
#define ROUNDS_OF_ALL 2 /* in the later ones only what is near the best takes part */
#define SOURCES_MAX 16
/* Vectors begin apart in their pages, as slots do: else they would meet in the same sets. */
#define COLOUR_BYTES 320
#define PAGE_BYTES 4096
#define CANDIDATES_MAX 9

struct trial {
	struct mst_commit commit;
	struct mst_leaf leaf[SOURCES_MAX];
	char *memory;
	size_t elems;
};

/* Makes the vectors of a trial, of f32 or less. Return: whether there is memory; all of its pages
 * have been touched. */
static bool trial_make(struct trial *t, uint32_t sources)
{
	uint32_t vectors = sources + 1;
	size_t stride = TRIAL_BYTES / vectors / PAGE_BYTES * PAGE_BYTES;

	t->elems = (stride - vectors * COLOUR_BYTES) / sizeof(float) / MST_TILE_MAX * MST_TILE_MAX;
	t->memory = mmap(NULL, TRIAL_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (t->memory == MAP_FAILED)
		return false;
	for (uint32_t i = 0; i < sources; i++)
		t->leaf[i] = (struct mst_leaf){ .rank = i,
						.coefficient = 1,
						.data = t->memory + i * (stride + COLOUR_BYTES) };
	t->commit = (struct mst_commit){
		.tree = { .group = 8, .leaf = t->leaf, .leaf_count = sources },
		.divisor = (float)sources,
		.out = t->memory + sources * stride,
	};
	return true;
}

static uint64_t trial_time(struct trial *t, const struct mst_variant *v, bool streams)
{
	uint64_t began;

	mst_variant_use(v);
	t->commit.streams = streams;
	(void)mst_isa()->evict(t->memory, TRIAL_BYTES);
	began = mst_now_ns();
	(void)mst_commit_range(&t->commit, 0, t->elems);
	return mst_now_ns() - began;
}

static uint64_t least(const uint64_t *ns, uint32_t count)
{
	uint64_t least_ns = ns[0];

	for (uint32_t i = 1; i < count; i++)
		least_ns = ns[i] < least_ns ? ns[i] : least_ns;
	return least_ns;
}

/* The best times of candidates that take turns. A start waits for this. */
static void times(struct trial *t, const struct mst_variant *candidate, uint32_t count,
		  uint64_t *best_ns)
{
	for (uint32_t i = 0; i < count; i++)
		best_ns[i] = UINT64_MAX;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint64_t least_ns = least(best_ns, count), near_ns = least_ns + least_ns / 8;
		for (uint32_t i = 0; i < count; i++) {
			if (round >= ROUNDS_OF_ALL && best_ns[i] > near_ns)
				continue;
			uint64_t ns = trial_time(t, &candidate[i], true);
			best_ns[i] = ns < best_ns[i] ? ns : best_ns[i];
		}
	}
}

/* Return: the fastest of them, or the first where that is not slower by 3 %. */
static struct mst_variant fastest(struct trial *t, const struct mst_variant *candidate,
				  uint32_t count)
{
	uint64_t best_ns[CANDIDATES_MAX];
	uint32_t best = 0;

	times(t, candidate, count, best_ns);
	for (uint32_t i = 1; i < count; i++)
		if (best_ns[i] < best_ns[best])
			best = i;
	return candidate[best_ns[0] * 97 <= best_ns[best] * 100 ? 0 : best];
}

static struct mst_variant choose(struct trial *t, const struct mst_variant *usual)
{
	static const uint32_t tile[] = { 256, 64, 1024 }, ahead[] = { 1024, 0, 2048 };
	struct mst_variant candidate[CANDIDATES_MAX];

	for (uint32_t i = 0; i < CANDIDATES_MAX; i++) {
		candidate[i] = *usual;
		candidate[i].tile = tile[i / 3];
		candidate[i].ahead = ahead[i % 3];
	}
	candidate[0] = candidate[1] = candidate[2] = fastest(t, candidate, CANDIDATES_MAX);
	candidate[1].lines = 1;
	candidate[2].lines = 2;
	return fastest(t, candidate, 3);
}

/* What a commit through the caches leaves in them has yet to be written to memory: one vector more
 * than those that it has read, the result among them. */
static bool gains_by_streaming(struct trial *t, const struct mst_variant *v)
{
	uint64_t streamed_ns = UINT64_MAX, cached_ns = UINT64_MAX;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint64_t streamed = trial_time(t, v, true), cached = trial_time(t, v, false);

		streamed_ns = streamed < streamed_ns ? streamed : streamed_ns;
		cached_ns = cached < cached_ns ? cached : cached_ns;
	}
	return streamed_ns <= cached_ns + cached_ns / (t->commit.tree.leaf_count + 1);
}

uint64_t mst_kernels_tune(enum muster_type type, enum muster_type result_type, uint32_t sources,
			  uint64_t bytes)
{
	struct mst_variant v = mst_variant_default();
	uint64_t began = mst_now_ns();
	struct trial t;

	if (bytes < mst_cache_bytes() || mst_variant_named() || !mst_isa()->evict(&t, 0))
		return 0;
	sources = sources < 2 ? 2 : sources > SOURCES_MAX ? SOURCES_MAX : sources;
	if (!trial_make(&t, sources))
		return 0;
	t.commit.tree.type = type;
	t.commit.result_type = result_type;
	v = choose(&t, &v);
	if (!gains_by_streaming(&t, &v))
		v.stream = MST_STREAM_NEVER;
	mst_variant_use(&v);
	(void)munmap(t.memory, TRIAL_BYTES);
	return mst_now_ns() - began;
}
