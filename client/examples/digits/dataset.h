/* SPDX-License-Identifier: MIT */
/* What is learnt: images of digits and what they are, to train with and to test with. */
#ifndef DIGITS_DATASET_H
#define DIGITS_DATASET_H

#include <stddef.h>
#include <stdint.h>

#define DATASET_CLASSES 10u
#define DATASET_MEAN 0.13f
#define DATASET_GAIN 1.3f /* learns faster; from 2 on stale gradients begin to do harm */

struct samples {
	uint32_t count;
	const uint8_t *pixels; /* count images, one behind the other */
	const uint8_t *labels; /* count, each below DATASET_CLASSES */
};

struct dataset {
	uint32_t image_pixels;
	struct samples train, test;
	void *owned[4]; /* what the samples point into */
};

/**
 * dataset_load - MNIST from a directory: t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, with or
 * without .gz, and the same with train- for t10k-. Both there: train- trains and t10k- tests. Only
 * t10k-: its first four fifths train, the rest tests.
 * @out: written on success only; dataset_fini().
 * @why: on failure a sentence that names file and numbers.
 * Return: 0; the errors of idx_init(); -EINVAL files that do not fit each other; -ENOENT.
 */
int dataset_load(const char *directory, struct dataset *out, char *why, size_t why_len);

/* 8000 drawn digits to train and 2000 to test; the same for the same seed. Return: 0 or -ENOMEM. */
int dataset_draw(uint64_t seed, struct dataset *out);

void dataset_fini(struct dataset *d); /* fine for a zeroed one */

/* Image @index of @from to x[image_pixels]: ink less the mean of ink, DATASET_MEAN for MNIST and
 * not far from it for drawn digits, times DATASET_GAIN. Not so centred, momentum and stale
 * gradients together swing out of hand. Return: its label. */
uint8_t dataset_sample(const struct dataset *d, const struct samples *from, uint32_t index,
		       float *x);

#endif
