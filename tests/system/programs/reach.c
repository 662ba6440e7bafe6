/* SPDX-License-Identifier: MIT */
/*
 * A worker that would like to change what is not its own: a result, and the memory in which results
 * are. It tries all that the kernel has for that, with every shared mapping and every descriptor
 * that its library got from the server; none of it may work. Then it waits for the end of its
 * standard input, takes part in a step, and prints the result.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "muster/muster.h"

#define ELEMS 9001u

struct reached {
	uintptr_t begin, end;
	char rights[8];
	char name[256];
};

static void must(bool fine, const char *what)
{
	if (fine)
		return;
	printf("reach: %s\n", what);
	exit(EXIT_FAILURE);
}

static bool holds(const struct reached *m, const void *p)
{
	return m->begin <= (uintptr_t)p && (uintptr_t)p < m->end;
}

/* Memory that is another's: nothing makes it writable, shorter, or empty. */
static void try_file(int fd)
{
	char byte = 0;

	must(mmap(NULL, 1, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED, "it was mapped writable");
	must(pwrite(fd, &byte, 1, 0) < 0, "it was written to");
	must(ftruncate(fd, 0) < 0, "it was made shorter");
	must(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) < 0,
	     "a hole was made in it");
}

/* A process that may not open its mappings cannot do this, either. */
static void try_mapping(const struct reached *m)
{
	char path[96];

	must(mprotect((void *)m->begin, m->end - m->begin, PROT_READ | PROT_WRITE) < 0,
	     "a mapping was made writable");
	snprintf(path, sizeof(path), "/proc/self/map_files/%" PRIxPTR "-%" PRIxPTR, m->begin,
		 m->end);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	try_file(fd);
	close(fd);
}

/* The next shared mapping of memory without a file. */
static bool next_mapping(FILE *maps, struct reached *m)
{
	char line[512];

	while (fgets(line, sizeof(line), maps) != NULL) {
		int got = sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s %*s %*s %*s %255s", &m->begin,
				 &m->end, m->rights, m->name);
		if (got == 4 && strncmp(m->name, "/memfd:", 7) == 0 && m->rights[3] == 's')
			return true;
	}
	return false;
}

static void try_mappings(const float *gradient, const float *result)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	bool own = false, others = false;
	struct reached m;

	must(maps != NULL, "no list of mappings");
	while (next_mapping(maps, &m)) {
		if (m.rights[1] == 'w') {
			own |= holds(&m, gradient);
			must(!holds(&m, result), "the result is in memory that it may write to");
			continue;
		}
		others |= holds(&m, result);
		try_mapping(&m);
	}
	fclose(maps);
	must(own && others, "its gradient or the result is in no shared mapping");
}

/* Descriptors of memory that it may not write to by a mapping. Its own it has closed. */
static void try_descriptors(void)
{
	char path[64], name[256];

	for (int fd = 3; fd < 1024; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		ssize_t length = readlink(path, name, sizeof(name) - 1);
		if (length > 7 && strncmp(name, "/memfd:", 7) == 0)
			try_file(fd);
	}
}

int main(void)
{
	struct muster_options options = { .size = sizeof(options), .elems = ELEMS, .rank = -1 };
	struct muster_contribution c = { .size = sizeof(c), .weight = 1, .full = true };
	struct muster_outcome out = MUSTER_OUTCOME;
	float *state = calloc(ELEMS, sizeof(*state));
	struct muster *m = NULL;

	must(state != NULL && muster_open(&options, &m) == 0, muster_error(NULL));
	must(muster_start(m, state, &out) == 0, muster_error(m));
	float *gradient = muster_gradient(m);
	must(gradient != NULL, muster_error(m));
	try_mappings(gradient, out.result);
	try_descriptors();
	printf("reach: its own slots alone\n");
	fflush(stdout);
	while (getchar() != EOF)
		;
	for (uint32_t i = 0; i < ELEMS; i++)
		gradient[i] = 1;
	must(muster_push(m, &c, NULL) == 0, muster_error(m));
	must(muster_wait(m, &out) >= 0, muster_error(m));
	const float *result = out.result;
	for (uint32_t i = 0; i < ELEMS; i++)
		must(result[i] == result[0], "elements differ");
	printf("reach: the result is %.9g\n", (double)result[0]);
	muster_close(m);
	free(state);
	return EXIT_SUCCESS;
}
