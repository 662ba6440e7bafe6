/* SPDX-License-Identifier: MIT */
/*
 * How long memory takes at least for passes of a commit: a pass reads streams side by side,
 * replaces some of those that it has read, and writes one more (ceiling.h). Passes and variants of
 * the loop take turns, round by round; of each pass the best variant counts, by its median and by
 * its least.
 *
 * usage: bench_streams [--rounds N] [--mib N] [--threads N] READS:REPLACED ...
 *
 * For each pass a line: READS:REPLACED, median and least in us, GB a second of the median. Bytes
 * are those that the pass has to move: READS + REPLACED + 1 streams.
 */
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/kernels/select.h"
#include "tests/bench/ceiling.h"

#define COLOUR 320 /* equal places in pages would meet in the same sets of the caches */
#define ROUNDS_MAX 101
#define PASSES_MAX 16
#define THREADS_MAX 16

struct pass {
	const char *text;
	unsigned reads, replaces;
	double us[CEILING_VARIANTS][ROUNDS_MAX];
};

struct streams {
	unsigned rounds, threads, passes, streams;
	size_t bytes; /* of a stream */
	ceiling_fn *fn;
	char *stream[CEILING_READS_MAX + 1]; /* the first one is written */
	struct pass pass[PASSES_MAX];
	_Atomic uint64_t read; /* what reads came to; kept, or they would be left out */
};

struct stretch {
	struct streams *bench;
	struct ceiling streams;
	size_t first, bytes;
};

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "bench_streams: %s\n", what);
	exit(EXIT_FAILURE);
}

static void *part_run(void *data)
{
	struct stretch *p = data;

	atomic_store_explicit(&p->bench->read, p->bench->fn(&p->streams, p->first, p->bytes),
			      memory_order_relaxed);
	return NULL;
}

static double pass_us(struct streams *b, const struct pass *pass, unsigned variant)
{
	struct ceiling c = { .reads = pass->reads,
			     .written = b->stream[0],
			     .replaces = pass->replaces,
			     .how = &ceiling_variants[variant] };
	struct stretch part[THREADS_MAX];
	pthread_t thread[THREADS_MAX];

	for (unsigned i = 0; i < pass->reads; i++)
		c.read[i] = b->stream[i + 1];
	for (unsigned i = 0; i < pass->replaces; i++)
		c.replaced[i] = b->stream[i + 1];
	uint64_t began = mst_now_ns();
	for (unsigned t = 0; t < b->threads; t++) {
		size_t bytes = b->bytes / b->threads / CEILING_STEP_BYTES * CEILING_STEP_BYTES;

		part[t] = (struct stretch){ b, c, t * bytes, bytes };
		if (t > 0 && pthread_create(&thread[t], NULL, part_run, &part[t]) != 0)
			fail("no thread");
	}
	part_run(&part[0]);
	for (unsigned t = 1; t < b->threads; t++)
		pthread_join(thread[t], NULL);
	return (double)(mst_now_ns() - began) * 1e-3;
}

static int by_time(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_pass(struct streams *b, struct pass *pass)
{
	double median = 0, least = 0, bytes = (double)(pass->reads + pass->replaces + 1);

	for (unsigned v = 0; v < CEILING_VARIANTS; v++) {
		qsort(pass->us[v], b->rounds, sizeof(double), by_time);
		if (v == 0 || pass->us[v][b->rounds / 2] < median)
			median = pass->us[v][b->rounds / 2];
		if (v == 0 || pass->us[v][0] < least)
			least = pass->us[v][0];
	}
	printf("%s %.1f %.1f %.2f\n", pass->text, median, least,
	       bytes * (double)b->bytes / median * 1e-3);
}

static unsigned number(const char *text, unsigned long min, unsigned long max)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if ((*end != '\0' && *end != ':') || value < min || value > max)
		fail(text);
	return (unsigned)value;
}

static void parse(struct streams *b, int argc, char **argv)
{
	static const struct option options[] = {
		{ "rounds", required_argument, NULL, 'r' },
		{ "mib", required_argument, NULL, 'm' },
		{ "threads", required_argument, NULL, 't' },
		{ NULL, 0, NULL, 0 },
	};

	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (option == 'r')
			b->rounds = number(optarg, 1, ROUNDS_MAX);
		else if (option == 'm')
			b->bytes = (size_t)number(optarg, 1, 1024) << 20;
		else if (option == 't')
			b->threads = number(optarg, 1, THREADS_MAX);
		else
			exit(EXIT_FAILURE);
	}
	for (; optind < argc && b->passes < PASSES_MAX; optind++) {
		struct pass *pass = &b->pass[b->passes++];
		const char *colon = strchr(argv[optind], ':');

		pass->text = argv[optind];
		pass->reads = number(pass->text, 1, CEILING_READS_MAX);
		pass->replaces = colon != NULL ? number(colon + 1, 0, CEILING_REPLACED_MAX) : 0;
		if (pass->replaces > pass->reads)
			fail("more is replaced than read");
		b->streams = pass->reads > b->streams ? pass->reads : b->streams;
	}
}

int main(int argc, char **argv)
{
	static struct streams b = { .rounds = 3, .threads = 2, .bytes = (size_t)100 << 20 };

	parse(&b, argc, argv);
	b.fn = ceiling_find(mst_kernels_name(0));
	if (b.passes == 0 || b.fn == NULL)
		fail("READS:REPLACED ... are missing, or there is no reader for this processor");
	for (unsigned i = 0; i <= b.streams; i++) {
		b.stream[i] = aligned_alloc(
			4096, (b.bytes + 2 * CEILING_READS_MAX * COLOUR + 4095) & ~(size_t)4095);
		if (b.stream[i] == NULL)
			fail("no memory");
		b.stream[i] += (size_t)i * COLOUR;
		memset(b.stream[i], 1, b.bytes); /* so that no round faults pages */
	}
	for (unsigned r = 0; r < b.rounds; r++)
		for (unsigned p = 0; p < b.passes; p++)
			for (unsigned v = 0; v < CEILING_VARIANTS; v++)
				b.pass[p].us[v][r] = pass_us(&b, &b.pass[p], v);
	for (unsigned p = 0; p < b.passes; p++)
		print_pass(&b, &b.pass[p]);
	return EXIT_SUCCESS;
}
