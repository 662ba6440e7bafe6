/* SPDX-License-Identifier: MIT */
/*
 * How fast one core sums gradients, beside what it can read and copy. The three are timed in turn,
 * round by round, so that a noisy machine spoils them alike; medians are printed, in GB of input
 * (or of copied bytes) a second. Every sum is checked.
 *
 * usage: bench_sum [ROUNDS [CHUNK_KIB]]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/kernels/sum.h"
#include "common/kernels/tree.h"

#define ELEMS (UINT64_C(4) << 20)
#define SOURCES 16
#define GROUP 8
/* Bases equal modulo the page size would meet in the same sets of the caches. */
#define COLOUR 320
#define ROOM (ELEMS * sizeof(float) + SOURCES * COLOUR)
#define ROUNDS_MAX 101

struct row {
	const char *name;
	enum muster_type type;
	uint32_t sources;
	float coefficient;
};

static const struct row rows[] = {
	{ "f32", MUSTER_F32, 4, 1 },   { "f32", MUSTER_F32, 8, 1 },
	{ "f32", MUSTER_F32, 16, 1 },  { "f32 scaled", MUSTER_F32, 8, 0.5f },
	{ "bf16", MUSTER_BF16, 8, 1 }, { "f16", MUSTER_F16, 8, 1 },
};

enum { SUM, READ, COPY, KINDS };

struct bench {
	unsigned rounds;
	size_t chunk; /* elements */
	char *source[SOURCES];
	float *total, *scratch;
	char *copy;
	uint64_t read; /* what plain reads came to; kept, or they would be left out */
	double rate[KINDS][ROUNDS_MAX];
};

/* Small integers: exact in every type, and so is their sum. */
static float element(uint32_t rank, size_t i)
{
	return (float)(rank + 1 + i % 100);
}

static float element_of_total(const struct row *row, size_t i)
{
	uint32_t n = row->sources;

	return row->coefficient * (float)(n * (i % 100) + n * (n + 1) / 2);
}

static void fill(struct bench *b, const struct row *row)
{
	for (uint32_t rank = 0; rank < row->sources; rank++) {
		for (size_t i = 0; i < ELEMS; i++)
			b->total[i] = element(rank, i);
		mst_sum_store(b->source[rank], row->type, b->total, ELEMS);
	}
}

static void sum(struct bench *b, const struct row *row)
{
	struct mst_leaf leaf[SOURCES];
	struct mst_tree tree = { row->type, GROUP, leaf, row->sources };

	for (uint32_t rank = 0; rank < row->sources; rank++)
		leaf[rank] = (struct mst_leaf){ .rank = rank,
						.coefficient = row->coefficient,
						.data = b->source[rank] };
	for (size_t first = 0; first < ELEMS; first += b->chunk) {
		size_t count = ELEMS - first < b->chunk ? ELEMS - first : b->chunk;

		mst_tree_sum(&tree, first, count, b->total + first, b->scratch);
	}
}

static uint64_t read_words(const uint64_t *word, size_t count)
{
	uint64_t all = 0;

	for (size_t i = 0; i < count; i++)
		all += word[i];
	return all;
}

/* Bytes of input; all sources are gone through once, whatever is done with them. */
static size_t go_through(struct bench *b, const struct row *row, int kind)
{
	size_t bytes = ELEMS * mst_type_bytes(row->type);

	if (kind == SUM)
		sum(b, row);
	for (uint32_t rank = 0; rank < row->sources && kind != SUM; rank++) {
		if (kind == READ)
			b->read += read_words((const void *)b->source[rank], bytes / 8);
		else
			memcpy(b->copy, b->source[rank], bytes);
	}
	return bytes * row->sources;
}

static bool total_is_right(const struct bench *b, const struct row *row)
{
	for (size_t i = 0; i < ELEMS; i++) {
		if (b->total[i] != element_of_total(row, i)) {
			fprintf(stderr, "%s x %" PRIu32 ": element %zu is %g instead of %g\n",
				row->name, row->sources, i, (double)b->total[i],
				(double)element_of_total(row, i));
			return false;
		}
	}
	return true;
}

static int by_rate(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(struct bench *b, int kind)
{
	qsort(b->rate[kind], b->rounds, sizeof(double), by_rate);
	return b->rate[kind][b->rounds / 2];
}

static bool measure(struct bench *b, const struct row *row)
{
	fill(b, row);
	for (unsigned round = 0; round < b->rounds; round++) {
		for (int kind = 0; kind < KINDS; kind++) {
			uint64_t began = mst_now_ns();
			size_t bytes = go_through(b, row, kind);

			b->rate[kind][round] = (double)bytes / (double)(mst_now_ns() - began);
		}
		if (!total_is_right(b, row))
			return false;
	}
	printf("%-12s %7" PRIu32 " %8.2f %8.2f %8.2f %10.2f\n", row->name, row->sources,
	       median(b, SUM), median(b, READ), median(b, COPY), median(b, SUM) / median(b, READ));
	return true;
}

/* Exits where there is no memory: nothing has begun yet. Touched, so that no round faults pages. */
static void *room(size_t bytes)
{
	void *p = malloc(bytes);

	if (p == NULL) {
		fprintf(stderr, "bench_sum: no memory for another %zu bytes\n", bytes);
		exit(EXIT_FAILURE);
	}
	memset(p, 1, bytes);
	return p;
}

int main(int argc, char **argv)
{
	static struct bench b;
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 7;
	unsigned long chunk_kib = argc > 2 ? strtoul(argv[2], NULL, 10) : 128;

	if (rounds < 1 || rounds > ROUNDS_MAX || chunk_kib < 1 || chunk_kib > 16384) {
		fprintf(stderr, "usage: %s [ROUNDS 1..%d [CHUNK_KIB 1..16384]]\n", argv[0],
			ROUNDS_MAX);
		return EXIT_FAILURE;
	}
	b.rounds = (unsigned)rounds;
	b.chunk = chunk_kib * 1024 / sizeof(float);
	for (unsigned i = 0; i < SOURCES; i++)
		b.source[i] = (char *)room(ROOM) + i * COLOUR;
	b.total = room(ROOM);
	b.scratch = room(2 * b.chunk * sizeof(float));
	b.copy = room(ROOM);
	printf("%lu rounds, %" PRIu64 " elements a source, chunks of %lu KiB; GB/s of input\n",
	       rounds, ELEMS, chunk_kib);
	printf("%-12s %7s %8s %8s %8s %10s\n", "type", "sources", "sum", "read", "memcpy",
	       "sum/read");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!measure(&b, &rows[i]))
			return EXIT_FAILURE;
	printf("all sums right (read: %" PRIx64 ")\n", b.read);
	return EXIT_SUCCESS;
}
