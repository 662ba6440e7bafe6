/* SPDX-License-Identifier: MIT */
/*
 * xoshiro256** (Blackman and Vigna, "Scrambled Linear Pseudorandom Number Generators", 2021). Its
 * state is filled by splitmix64, as its authors advise, so that any seed is good, also 0.
 */
#include "common/base/rand.h"

#include <errno.h>
#include <math.h>
#include <sys/random.h>
#include <sys/types.h>

#include "common/base/assert.h"

static uint64_t splitmix_next(uint64_t *state)
{
	*state += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = *state;

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t x, unsigned bits)
{
	return (x << bits) | (x >> (64 - bits));
}

void mst_rand_seed(struct mst_rand *r, uint64_t seed)
{
	for (unsigned i = 0; i < 4; i++)
		r->state[i] = splitmix_next(&seed);
}

uint64_t mst_rand_next(struct mst_rand *r)
{
	uint64_t *s = r->state;
	uint64_t result = rotate_left(s[1] * 5, 7) * 9;
	uint64_t shifted = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= shifted;
	s[3] = rotate_left(s[3], 45);
	return result;
}

uint64_t mst_rand_below(struct mst_rand *r, uint64_t bound)
{
	MST_ASSERT(bound > 0);
	/* The numbers below (2^64 mod bound) are too many for equal shares, so another number is
	 * drawn when one of them comes. At worst every second number is thrown away, usually
	 * none. */
	uint64_t surplus = (UINT64_MAX - bound + 1) % bound;
	uint64_t x;

	do {
		x = mst_rand_next(r);
	} while (x < surplus);
	return x % bound;
}

double mst_rand_unit(struct mst_rand *r)
{
	return (double)(mst_rand_next(r) >> 11) * 0x1p-53;
}

/* Box and Muller's method, only its cosine half. Keeping the second number would be a state that
 * the seed does not determine, and no caller needs normals so fast. */
double mst_rand_normal(struct mst_rand *r)
{
	double radius = sqrt(-2.0 * log(1.0 - mst_rand_unit(r))); /* 1 - unit is never 0 */

	return radius * cos(2.0 * M_PI * mst_rand_unit(r));
}

int mst_rand_secret(void *out, unsigned len)
{
	unsigned char *at = out;

	while (len > 0) {
		ssize_t got = getrandom(at, len, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		at += got;
		len -= (unsigned)got;
	}
	return 0;
}
