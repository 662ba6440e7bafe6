/* SPDX-License-Identifier: MIT */
/* Random numbers by a seed (xoshiro256**, filled by splitmix64): the same seed gives the same
 * numbers. */
#ifndef MST_BASE_RAND_H
#define MST_BASE_RAND_H

#include <stdint.h>

struct mst_rand {
	uint64_t state[4];
};

void mst_rand_seed(struct mst_rand *r, uint64_t seed);
uint64_t mst_rand_next(struct mst_rand *r);
/* Uniform in [0, bound), without bias; bound > 0. */
uint64_t mst_rand_below(struct mst_rand *r, uint64_t bound);
/* Uniform in [0, 1), 53 bits. */
double mst_rand_unit(struct mst_rand *r);
/* Standard normal. */
double mst_rand_normal(struct mst_rand *r);

/* Bytes from the kernel for tokens and nonces. Return: 0 or -errno. */
int mst_rand_secret(void *out, unsigned len);

#endif
