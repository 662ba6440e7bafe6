/* SPDX-License-Identifier: MIT */
/*
 * A fuzzer without a guide: replay MUTATIONS FOLDER runs a harness on each file of the folder and
 * on so many mutations of it, each made of file and number alone, so that a run repeats itself. The
 * harness runs in a child; an input that kills it is named, and written to the working folder.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/rand.h"

#define INPUT_BYTES_MAX 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	uint8_t bytes[INPUT_BYTES_MAX];
	size_t len;
};

static uint32_t pick(struct mst_rand *r, size_t below)
{
	return (uint32_t)mst_rand_below(r, below);
}

static void cut(struct input *in, size_t at, size_t len)
{
	memmove(in->bytes + at, in->bytes + at + len, in->len - at - len);
	in->len -= len;
}

/* Copies @len bytes from @from to before @at, as far as there is room. */
static void repeat(struct input *in, size_t from, size_t len, size_t at)
{
	uint8_t piece[INPUT_BYTES_MAX];

	if (len > INPUT_BYTES_MAX - in->len)
		len = INPUT_BYTES_MAX - in->len;
	memcpy(piece, in->bytes + from, len);
	memmove(in->bytes + at + len, in->bytes + at, in->len - at);
	memcpy(in->bytes + at, piece, len);
	in->len += len;
}

/* One change of an input that is not empty. */
static void change(struct input *in, struct mst_rand *r)
{
	/* What parsers split at, count with, and stumble over. */
	static const char telling[] =
		"0123456789-+.,:;=|\"\\/*#@ \n\tKMGLeExX_{}[]()\0\x7f\x80\xff";
	size_t at = pick(r, in->len);
	size_t len = 1 + pick(r, in->len - at);

	switch (pick(r, 5)) {
	case 0:
		in->bytes[at] ^= (uint8_t)(1u << pick(r, 8));
		break;
	case 1:
		in->bytes[at] = (uint8_t)telling[pick(r, sizeof(telling) - 1)];
		break;
	case 2:
		cut(in, at, 1 + pick(r, len));
		break;
	case 3:
		repeat(in, at, 1 + pick(r, len), pick(r, in->len + 1));
		break;
	default:
		repeat(in, at, 1, at);
		in->bytes[at] = (uint8_t)telling[pick(r, sizeof(telling) - 1)];
		break;
	}
}

/* Mutation 0 is the input as it is. */
static void mutate(const struct input *from, unsigned number, struct input *out)
{
	struct mst_rand r;

	*out = *from;
	mst_rand_seed(&r, number);
	for (unsigned changes = number == 0 ? 0 : 1 + pick(&r, 6); changes > 0; changes--) {
		if (out->len > 0)
			change(out, &r);
	}
}

static void input_read(const char *folder, const char *name, struct input *out)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *f = fopen(path, "rb");
	MST_ASSERT(f != NULL);
	out->len = fread(out->bytes, 1, sizeof(out->bytes), f);
	fclose(f);
}

/* In the child. @reached: shared with the parent, which wants to know where it ended. */
static _Noreturn void mutations_run(const struct input *in, unsigned mutations, unsigned *reached)
{
	static struct input mutated;

	for (unsigned number = 0; number <= mutations; number++) {
		*reached = number;
		mutate(in, number, &mutated);
		/* A copy of its exact length, so that a sanitizer sees a byte too many. */
		uint8_t *copy = malloc(mutated.len > 0 ? mutated.len : 1);
		MST_ASSERT(copy != NULL);
		memcpy(copy, mutated.bytes, mutated.len);
		LLVMFuzzerTestOneInput(copy, mutated.len);
		free(copy);
	}
	exit(EXIT_SUCCESS);
}

static void culprit_keep(const struct input *in, const char *name, unsigned number)
{
	static struct input mutated;
	char path[512];

	mutate(in, number, &mutated);
	snprintf(path, sizeof(path), "crash-%.200s-%u", name, number);
	fprintf(stderr, "replay: %s, mutation %u: see %s\n", name, number, path);
	FILE *f = fopen(path, "wb");
	if (f == NULL || fwrite(mutated.bytes, 1, mutated.len, f) != mutated.len)
		fprintf(stderr, "replay: %s cannot be written\n", path);
	if (f != NULL)
		fclose(f);
}

static bool file_pass(const char *folder, const char *name, unsigned mutations)
{
	static struct input in;
	int status;

	input_read(folder, name, &in);
	unsigned *reached = mmap(NULL, sizeof(*reached), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MST_ASSERT(reached != MAP_FAILED);
	fflush(NULL);
	pid_t child = fork();
	MST_ASSERT(child >= 0);
	if (child == 0)
		mutations_run(&in, mutations, reached);
	MST_ASSERT(waitpid(child, &status, 0) == child);
	bool passed = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
	if (!passed)
		culprit_keep(&in, name, *reached);
	munmap(reached, sizeof(*reached));
	return passed;
}

int main(int argc, char **argv)
{
	/* Static, so that the search for leaks at the end of a child still finds it. */
	static DIR *folder;
	unsigned files = 0, failed = 0;

	if (argc == 3)
		folder = opendir(argv[2]);
	if (folder == NULL) {
		fprintf(stderr, "usage: %s MUTATIONS FOLDER\n", argv[0]);
		return 2;
	}
	unsigned mutations = (unsigned)strtoul(argv[1], NULL, 10);
	for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
		if (entry->d_name[0] == '.')
			continue;
		files++;
		failed += !file_pass(argv[2], entry->d_name, mutations);
	}
	closedir(folder);
	printf("%u inputs and %u mutations of each: %u failed\n", files, mutations, failed);
	return files == 0 || failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
