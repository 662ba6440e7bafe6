/* SPDX-License-Identifier: MIT */
/*
 * An input of two parts, as a text a person can read and write: lines up to the first empty one,
 * then the text of a file.
 */
#ifndef MST_TESTS_FUZZ_TEXT_H
#define MST_TESTS_FUZZ_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUZZ_LINES_MAX 32u

struct fuzz_text {
	char *lines; /* owned; what line[] points into */
	char *line[FUZZ_LINES_MAX];
	unsigned line_count;
	char path[64]; /* of the file: it is in memory, and nothing else may be opened */
	int fd;
};

void fuzz_text_init(struct fuzz_text *t, const uint8_t *data, size_t size);
void fuzz_text_fini(struct fuzz_text *t);

/* Is there no file? */
bool fuzz_text_is_empty(const struct fuzz_text *t);
/* Replaces what the file holds. */
void fuzz_text_write(struct fuzz_text *t, const void *data, size_t size);

#endif
