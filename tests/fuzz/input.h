/* SPDX-License-Identifier: MIT */
/* An input as a program for a harness: bytes that say what happens next, and with what. After its
 * end come zeros. */
#ifndef MST_TESTS_FUZZ_INPUT_H
#define MST_TESTS_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct fuzz_input {
	const uint8_t *at, *end;
};

static inline uint8_t fuzz_next(struct fuzz_input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

static inline uint32_t fuzz_word(struct fuzz_input *in)
{
	uint32_t word = 0;

	for (int i = 0; i < 4; i++)
		word = word << 8 | fuzz_next(in);
	return word;
}

/* The next bytes, at most *@count; *@count: how many there are. */
static inline const uint8_t *fuzz_take(struct fuzz_input *in, size_t *count)
{
	const uint8_t *at = in->at;

	if (*count > (size_t)(in->end - in->at))
		*count = (size_t)(in->end - in->at);
	in->at += *count;
	return at;
}

/* Writes bytes of the input over a part of what is there; where and how many, the input says. */
static inline void fuzz_overwrite(struct fuzz_input *in, void *to, size_t len)
{
	size_t first = fuzz_next(in) % len, count = fuzz_next(in) % (len - first + 1);
	const uint8_t *from = fuzz_take(in, &count);

	if (count > 0)
		memcpy((uint8_t *)to + first, from, count);
}

#endif
