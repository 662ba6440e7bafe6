/* SPDX-License-Identifier: MIT */
/*
 * How fast commits are computed, beside what memory gives at most (ceiling.h) and beside summing
 * pairwise, each gradient as it arrives. All are timed in turn, round by round, so that a noisy
 * machine spoils them alike; medians are printed, in GB a second. Bytes are those that a commit has
 * to move, read and written: each source, the parameters and what the optimiser keeps once,
 * whatever a way of doing it moves in fact. So ratios of rates are ratios of times. An optimiser
 * with a reduce phase goes through the vector twice. Every result is checked.
 *
 * usage: bench_sum [--rounds N] [--mib N] [--chunk-kib N] [--threads N] [--kernels TEXT]
 *                  [--case NAME] [--json FILE]
 *
 *   --rounds N      of which medians are taken, 7
 *   --mib N         of f32 in each source, 64; no fewer than the caches hold between them
 *   --chunk-kib N   a commit's chunk, 128
 *   --threads N     1 or 2; each of both if left out
 *   --kernels TEXT  as MUSTER_KERNELS names them: avx512, avx2, baseline, neon, or one with a
 *                   variant; left out: the best, and where no variant is named, the one that is
 *                   measured for each number of sources
 *   --case NAME     rows of this name alone: f32, "f32 adam", bf16, ...
 */
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/kernels/commit.h"
#include "common/kernels/select.h"
#include "common/kernels/sum.h"
#include "common/kernels/tune.h"
#include "common/optim/kernels.h"
#include "common/optim/optim.h"
#include "tests/bench/ceiling.h"

#define SOURCES 16
#define GROUP 8
/* Bases equal modulo the page size would meet in the same sets of the caches. */
#define COLOUR 320
#define ROUNDS_MAX 101
#define BLOCK 4096 /* elements whose squares are added at a time */
#define THREADS_MAX 2

struct sum_row {
	const char *name;
	enum muster_type type, result_type;
	unsigned sources;
	float coefficient;
	const char *optimizer; /* NULL: the result is the mean itself */
	unsigned states;
	bool averages; /* the last of them is the moving average of the parameters */
};

static const struct sum_row rows[] = {
	{ "f32", MUSTER_F32, MUSTER_F32, 2, 1, NULL, 0, false },
	{ "f32", MUSTER_F32, MUSTER_F32, 4, 1, NULL, 0, false },
	{ "f32", MUSTER_F32, MUSTER_F32, 8, 1, NULL, 0, false },
	{ "f32", MUSTER_F32, MUSTER_F32, 16, 1, NULL, 0, false },
	{ "f32 scaled", MUSTER_F32, MUSTER_F32, 8, 0.5f, NULL, 0, false },
	{ "f32 sgd", MUSTER_F32, MUSTER_F32, 8, 1, "sgd:lr=0.25,momentum=0", 0, false },
	{ "f32 momentum", MUSTER_F32, MUSTER_F32, 8, 1, "sgd:lr=0.25,momentum=0.5", 1, false },
	{ "f32 average", MUSTER_F32, MUSTER_F32, 8, 1, "sgd:lr=0.25,momentum=0.5", 2, true },
	{ "f32 clip", MUSTER_F32, MUSTER_F32, 8, 1, "sgd:lr=0.25,momentum=0.5,clip=1e9", 1, false },
	{ "f32 lars", MUSTER_F32, MUSTER_F32, 8, 1, "lars", 1, false },
	{ "f32 lamb", MUSTER_F32, MUSTER_F32, 8, 1, "lamb", 2, false },
	{ "f32 adagrad", MUSTER_F32, MUSTER_F32, 8, 1, "adagrad", 1, false },
	{ "f32 rmsprop", MUSTER_F32, MUSTER_F32, 8, 1, "rmsprop", 2, false },
	{ "f32 adam", MUSTER_F32, MUSTER_F32, 8, 1, "adam", 2, false },
	{ "f32 adamw", MUSTER_F32, MUSTER_F32, 8, 1, "adamw", 2, false },
	{ "bf16 to f32", MUSTER_BF16, MUSTER_F32, 8, 1, NULL, 0, false },
	{ "bf16", MUSTER_BF16, MUSTER_BF16, 8, 1, NULL, 0, false },
	{ "f16", MUSTER_F16, MUSTER_F16, 8, 1, NULL, 0, false },
};

/* The ways that take turns; after the last one each variant of the ceiling. */
enum sum_kind { STREAM, CACHE, PAIRWISE, CEILING, KINDS = CEILING + CEILING_VARIANTS };

struct bench {
	unsigned rounds, threads_first, threads_last;
	size_t elems, chunk_elems;
	const char *kernels, *only;
	ceiling_fn *ceiling;
	FILE *json;
	bool json_begun;
	char *source[SOURCES];
	float *out, *theta, *state[MST_STATES_MAX], *expected, *pairwise, *mean;
	_Atomic uint64_t read; /* what plain reads came to; kept, or they would be left out */
	double rate[KINDS][ROUNDS_MAX];
};

/* One thread's part of one pass. */
struct part {
	struct bench *bench;
	const struct sum_row *row;
	enum sum_kind kind;
	size_t first, count;
};

/* Small integers: exact in every type, and so is their sum. */
static float element(unsigned rank, size_t i)
{
	return (float)(rank + 1 + i % 13);
}

static float theta_of(size_t i)
{
	return (float)(i % 7);
}

#define STATE_BEFORE 2.0f
#define PERIOD (7 * 13) /* in which all that goes into a result repeats itself */

static float sum_of(const struct sum_row *row, size_t i)
{
	unsigned n = row->sources;

	return row->coefficient * (float)(n * (i % 13) + n * (n + 1) / 2);
}

static float mean_of(const struct sum_row *row, size_t i)
{
	return sum_of(row, i) / (float)row->sources;
}

/* The optimiser, with the figures of the first version. */
static struct mst_optimizer optimizer_of(const struct sum_row *row, struct mst_figures *figures)
{
	struct mst_optim_version first = { .version = 1, .lr_scale = 1 };
	struct mst_optimizer o;
	struct mst_reason why;

	if (mst_optimizer_parse(row->optimizer, &o, &why) != 0) {
		fprintf(stderr, "bench_sum: %s\n", why.text);
		exit(EXIT_FAILURE);
	}
	mst_optimizer_figures(&o, figures);
	mst_optimizer_scalars(&o, &first, figures->scalar);
	return o;
}

/* What the optimiser's kernel alone makes of exact means. */
static void expect(const struct sum_row *row, float out[PERIOD])
{
	float theta[PERIOD], mean[PERIOD], state[MST_STATES_MAX][PERIOD];
	struct mst_figures figures;
	struct mst_apply apply = {
		.next = out, .theta = theta, .mean = mean, .figures = &figures, .count = PERIOD
	};

	for (size_t i = 0; i < PERIOD; i++) {
		theta[i] = theta_of(i);
		mean[i] = mean_of(row, i);
		for (unsigned k = 0; k < row->states; k++)
			state[k][i] = STATE_BEFORE;
	}
	for (unsigned k = 0; k < row->states; k++)
		apply.state[k] = state[k];
	if (row->optimizer == NULL)
		memcpy(out, mean, sizeof(mean));
	else
		optimizer_of(row, &figures).row->apply[mst_isa()->index](&apply);
}

static void fill(struct bench *b, const struct sum_row *row)
{
	float expected[PERIOD];

	expect(row, expected);
	for (unsigned rank = 0; rank < row->sources; rank++) {
		for (size_t i = 0; i < b->elems; i++)
			b->out[i] = element(rank, i);
		mst_sum_store(b->source[rank], row->type, b->out, b->elems);
	}
	for (size_t i = 0; i < b->elems; i++) {
		mst_sum_store((char *)b->expected + i * mst_type_bytes(row->result_type),
			      row->result_type, &expected[i % PERIOD], 1);
		b->theta[i] = theta_of(i);
	}
}

static void go_through(const struct part *p, const struct mst_commit *c)
{
	size_t chunk = p->bench->chunk_elems;

	for (size_t done = 0, count; done < p->count; done += count) {
		count = p->count - done < chunk ? p->count - done : chunk;
		mst_commit_range(c, p->first + done, count);
	}
}

/* Adds the squares of a chunk, whose mean is in the caches. */
static void add_squares(const struct bench *b, const struct mst_optimizer *o,
			const struct mst_commit *c, size_t first, size_t count)
{
	static _Thread_local float direction[BLOCK];
	static _Thread_local struct mst_squares squares;

	for (size_t at = first; at < first + count; at += BLOCK) {
		size_t left = first + count - at;
		struct mst_apply block = { .next = direction,
					   .theta = b->theta + at,
					   .mean = b->mean + at,
					   .figures = &c->figures,
					   .count = left < BLOCK ? left : BLOCK };

		for (unsigned k = 0; k < MST_STATES_MAX; k++)
			block.state[k] = c->state[k] != NULL ? c->state[k] + at : NULL;
		if (mst_optimizer_trusts(o))
			mst_optimizer_add_block(o, &block, &squares);
		else
			mst_exact_add(&squares.direction,
				      mst_isa()->squares(block.mean, block.count));
	}
}

/* First the mean, and its squares; then the step, from the mean. The result is that of a factor of
 * 1, which costs nothing. */
static void two_passes(const struct part *p, const struct mst_optimizer *o, struct mst_commit *c)
{
	const struct bench *b = p->bench;
	struct mst_leaf mean = { .coefficient = 1, .data = b->mean };
	struct mst_commit first = {
		.tree = c->tree, .divisor = c->divisor, .result_type = MUSTER_F32, .out = b->mean
	};

	for (size_t done = 0, count; done < p->count; done += count) {
		count = p->count - done < b->chunk_elems ? p->count - done : b->chunk_elems;
		mst_commit_range(&first, p->first + done, count);
		add_squares(b, o, c, p->first + done, count);
	}
	c->tree = (struct mst_tree){ MUSTER_F32, 1, &mean, 1 };
	c->divisor = 1;
	go_through(p, c);
}

static void commit(const struct part *p, bool streams)
{
	const struct bench *b = p->bench;
	const struct sum_row *row = p->row;
	struct mst_optimizer optimizer = { .row = NULL };
	struct mst_leaf leaf[SOURCES];
	struct mst_commit c = {
		.tree = { row->type, GROUP, leaf, row->sources },
		.divisor = (float)row->sources,
		.result_type = row->result_type,
		.out = b->out,
		.streams = streams,
		.theta = b->theta,
		.next = b->out,
	};

	if (row->optimizer != NULL)
		optimizer = optimizer_of(row, &c.figures), c.apply = optimizer.row->apply;
	for (unsigned k = 0; k < row->states; k++)
		c.state[k] = b->state[k];
	if (row->averages) {
		c.average = b->state[row->states - 1];
		c.state[row->states - 1] = NULL;
		c.average_rest = 0.75f;
	}
	for (unsigned rank = 0; rank < row->sources; rank++)
		leaf[rank] = (struct mst_leaf){ .rank = rank,
						.coefficient = row->coefficient,
						.data = b->source[rank] };
	if (mst_optimizer_reduces(&optimizer))
		two_passes(p, &optimizer, &c);
	else
		go_through(p, &c);
}

/* On arrival: the first gradient is copied and each further one added, vector by vector. What is to
 * be done with the sum is left out. */
static void pairwise(const struct part *p)
{
	const struct sum_row *row = p->row;
	float *acc = p->bench->pairwise + p->first;
	size_t at = p->first * mst_type_bytes(row->type);

	mst_sum_first(acc, p->bench->source[0] + at, row->type, row->coefficient, p->count);
	for (unsigned rank = 1; rank < row->sources; rank++)
		mst_sum_add(acc, p->bench->source[rank] + at, row->type, row->coefficient,
			    p->count);
}

/* The same streams; those of f32 beside streams of 16 bits are twice as long, so they count as two
 * halves. */
static void read_only(const struct part *p, const struct ceiling_variant *how)
{
	struct bench *b = p->bench;
	const struct sum_row *row = p->row;
	size_t size = mst_type_bytes(row->type), out_size = mst_type_bytes(row->result_type);
	struct ceiling c = { .written = (char *)b->out, .how = how };

	for (unsigned rank = 0; rank < row->sources; rank++)
		c.read[c.reads++] = b->source[rank];
	if (row->optimizer != NULL)
		c.read[c.reads++] = (char *)b->theta;
	for (unsigned k = 0; k < row->states; k++) {
		c.read[c.reads++] = (char *)b->state[k];
		c.replaced[c.replaces++] = (char *)b->state[k];
	}
	atomic_store_explicit(&b->read, b->ceiling(&c, p->first * size, p->count * size),
			      memory_order_relaxed);
	if (out_size > size) {
		struct ceiling other = { .written = (char *)b->out + b->elems * size, .how = how };

		b->ceiling(&other, p->first * size, p->count * size);
	}
}

static void *part_run(void *data)
{
	const struct part *p = data;

	if (p->kind >= CEILING)
		read_only(p, &ceiling_variants[p->kind - CEILING]);
	else if (p->kind == PAIRWISE)
		pairwise(p);
	else
		commit(p, p->kind == STREAM);
	return NULL;
}

/* Return: seconds. Exits where there is no thread to be had. */
static double pass_time(struct bench *b, const struct sum_row *row, enum sum_kind kind,
			unsigned threads)
{
	struct part part[THREADS_MAX];
	pthread_t thread[THREADS_MAX];
	uint64_t began = mst_now_ns();

	for (unsigned t = 0; t < threads; t++) {
		size_t count = b->elems / threads;

		part[t] = (struct part){ b, row, kind, t * count, count };
		if (t > 0 && pthread_create(&thread[t], NULL, part_run, &part[t]) != 0)
			exit(EXIT_FAILURE);
	}
	part_run(&part[0]);
	for (unsigned t = 1; t < threads; t++)
		pthread_join(thread[t], NULL);
	return (double)(mst_now_ns() - began) * 1e-9;
}

static double bytes_of(const struct bench *b, const struct sum_row *row)
{
	size_t bytes = row->sources * mst_type_bytes(row->type) + mst_type_bytes(row->result_type);

	if (row->optimizer != NULL)
		bytes += (1 + 2 * row->states) * sizeof(float);
	return (double)(bytes * b->elems);
}

static bool result_is_right(const struct bench *b, const struct sum_row *row, enum sum_kind kind)
{
	bool right = true;

	if (kind == STREAM || kind == CACHE)
		right = memcmp(b->out, b->expected, b->elems * mst_type_bytes(row->result_type)) ==
			0;
	for (size_t i = 0; i < b->elems && kind == PAIRWISE; i++)
		right = right && b->pairwise[i] == sum_of(row, i);
	if (!right)
		fprintf(stderr, "bench_sum: %s, %u sources, way %d: wrong result\n", row->name,
			row->sources, kind);
	return right;
}

static int by_rate(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(struct bench *b, enum sum_kind kind)
{
	qsort(b->rate[kind], b->rounds, sizeof(double), by_rate);
	return b->rate[kind][b->rounds / 2];
}

static double ceiling_of(struct bench *b)
{
	double best = 0;

	for (enum sum_kind kind = CEILING; kind < KINDS; kind++)
		best = median(b, kind) > best ? median(b, kind) : best;
	return best;
}

static void report(struct bench *b, const struct sum_row *row, unsigned threads)
{
	double stream = median(b, STREAM), cache = median(b, CACHE), pair = median(b, PAIRWISE);
	double ceiling = ceiling_of(b), best = stream > cache ? stream : cache;
	char text[MST_KERNELS_TEXT];

	mst_kernels_text(text);
	printf("%-13s %7u %7u %7.2f %7.2f %8.2f %9.2f %9.2f %9.2f  %s\n", row->name, row->sources,
	       threads, stream, cache, ceiling, pair, best / ceiling, best / pair,
	       strchr(text, ':') + 1);
	if (b->json == NULL)
		return;
	fprintf(b->json,
		"%s\n  {\"kernels\": \"%s\", \"case\": \"%s\", \"sources\": %u, \"threads\": %u, "
		"\"stream\": %.3f, \"cache\": %.3f, \"ceiling\": %.3f, \"pairwise\": %.3f, "
		"\"spread\": [%.3f, %.3f]}",
		b->json_begun ? "," : "[", text, row->name, row->sources, threads, stream, cache,
		ceiling, pair, b->rate[STREAM][0], b->rate[STREAM][b->rounds - 1]);
	b->json_begun = true;
}

static void states_reset(struct bench *b, const struct sum_row *row)
{
	for (unsigned k = 0; k < row->states; k++)
		for (size_t i = 0; i < b->elems; i++)
			b->state[k][i] = STATE_BEFORE;
}

static bool measure(struct bench *b, const struct sum_row *row, unsigned threads)
{
	for (unsigned round = 0; round < b->rounds; round++) {
		for (enum sum_kind kind = 0; kind < KINDS; kind++) {
			states_reset(b, row);
			b->rate[kind][round] = bytes_of(b, row) / pass_time(b, row, kind, threads) *
					       1e-9;
			if (!result_is_right(b, row, kind))
				return false;
		}
	}
	report(b, row, threads);
	return true;
}

/* Exits where there is no memory: nothing has begun yet. Touched, so that no round faults pages. */
static void *room(size_t bytes, unsigned index)
{
	size_t whole = (bytes + 2 * SOURCES * COLOUR + 4095) & ~(size_t)4095;
	char *p = aligned_alloc(4096, whole);

	if (p == NULL) {
		fprintf(stderr, "bench_sum: no memory for another %zu bytes\n", bytes);
		exit(EXIT_FAILURE);
	}
	memset(p, 1, whole);
	return p + index * COLOUR;
}

static unsigned long number(const char *option, unsigned long min, unsigned long max)
{
	char *end;
	unsigned long value = strtoul(optarg, &end, 10);

	if (*end != '\0' || value < min || value > max) {
		fprintf(stderr, "bench_sum: --%s has to be %lu to %lu\n", option, min, max);
		exit(EXIT_FAILURE);
	}
	return value;
}

static FILE *file_open(const char *path)
{
	FILE *file = fopen(path, "w");

	if (file == NULL) {
		perror(path);
		exit(EXIT_FAILURE);
	}
	return file;
}

static void options_parse(struct bench *b, int argc, char **argv)
{
	static const struct option options[] = {
		{ "rounds", required_argument, NULL, 'r' },
		{ "mib", required_argument, NULL, 'm' },
		{ "chunk-kib", required_argument, NULL, 'c' },
		{ "threads", required_argument, NULL, 't' },
		{ "kernels", required_argument, NULL, 'k' },
		{ "case", required_argument, NULL, 'o' },
		{ "json", required_argument, NULL, 'j' },
		{ NULL, 0, NULL, 0 },
	};

	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (option == 'r')
			b->rounds = (unsigned)number("rounds", 1, ROUNDS_MAX);
		else if (option == 'm')
			b->elems = number("mib", 1, 1024) << 18;
		else if (option == 'c')
			b->chunk_elems = number("chunk-kib", 1, 16384) << 8;
		else if (option == 't')
			b->threads_first = b->threads_last = (unsigned)number("threads", 1,
									      THREADS_MAX);
		else if (option == 'k')
			b->kernels = optarg;
		else if (option == 'o')
			b->only = optarg;
		else if (option == 'j')
			b->json = file_open(optarg);
		else
			exit(EXIT_FAILURE);
	}
}

static void kernels_choose(struct bench *b)
{
	if (b->kernels == NULL)
		b->kernels = mst_kernels_name(0);
	b->ceiling = ceiling_find(b->kernels);
	if (mst_kernels_select(b->kernels) != 0 || b->ceiling == NULL) {
		fprintf(stderr, "bench_sum: no kernels \"%s\" on this processor\n", b->kernels);
		exit(EXIT_FAILURE);
	}
}

int main(int argc, char **argv)
{
	static struct bench b = { .rounds = 7,
				  .threads_first = 1,
				  .threads_last = THREADS_MAX,
				  .elems = (size_t)64 << 18,
				  .chunk_elems = (size_t)128 << 8 };
	unsigned index = 0;

	options_parse(&b, argc, argv);
	kernels_choose(&b);
	while (index < SOURCES) {
		b.source[index] = room(b.elems * sizeof(float), index);
		index++;
	}
	b.out = room(b.elems * sizeof(float), 0);
	b.theta = room(b.elems * sizeof(float), ++index);
	for (unsigned k = 0; k < MST_STATES_MAX; k++)
		b.state[k] = room(b.elems * sizeof(float), ++index);
	b.expected = room(b.elems * sizeof(float), ++index);
	b.pairwise = room(b.elems * sizeof(float), ++index);
	b.mean = room(b.elems * sizeof(float), ++index);
	printf("%s, %u rounds, %zu MiB of f32 a source, chunks of %zu KiB; GB/s\n", b.kernels,
	       b.rounds, b.elems >> 18, b.chunk_elems >> 8);
	printf("%-13s %7s %7s %7s %7s %8s %9s %9s %9s\n", "", "sources", "threads", "stream",
	       "cache", "ceiling", "pairwise", "/ceiling", "/pairwise");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (b.only != NULL && strcmp(rows[i].name, b.only) != 0)
			continue;
		fill(&b, &rows[i]);
		(void)mst_kernels_tune(rows[i].type, rows[i].result_type, rows[i].sources,
				       UINT64_MAX);
		for (unsigned t = b.threads_first; t <= b.threads_last; t++)
			if (!measure(&b, &rows[i], t))
				return EXIT_FAILURE;
	}
	if (b.json != NULL && (fprintf(b.json, "\n]\n") < 0 || fclose(b.json) != 0))
		return EXIT_FAILURE;
	printf("all results right\n");
	return EXIT_SUCCESS;
}
