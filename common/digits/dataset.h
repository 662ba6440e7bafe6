/* SPDX-License-Identifier: MIT */
/* What is learnt: images of digits and what they are, to train with and to test with. */
#ifndef MST_DIGITS_DATASET_H
#define MST_DIGITS_DATASET_H

#include <stdint.h>

#include "common/base/rand.h"
#include "common/base/reason.h"

#define MST_DATASET_CLASSES 10u
#define MST_DATASET_MEAN 0.13f
/* Learns faster than 1 would; from 2 on stale gradients begin to do harm. */
#define MST_DATASET_GAIN 1.3f

struct mst_samples {
	uint32_t count;
	const uint8_t *pixels; /* count images, one after the other */
	const uint8_t *labels; /* count, each below MST_DATASET_CLASSES */
};

struct mst_dataset {
	uint32_t image_pixels;
	struct mst_samples train, test;
	void *owned[4]; /* what the samples point into */
};

/**
 * mst_dataset_load - MNIST from a directory: t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte,
 * with or without .gz, and the same with train- for t10k-. Both there: train- trains and t10k-
 * tests. Only t10k-: its first four fifths train, the rest tests.
 * @out: written on success only; mst_dataset_fini().
 * @why: on failure a sentence that names file and numbers.
 * Return: 0; the errors of mst_idx_init(); -EINVAL files that do not fit each other; -ENOENT.
 */
int mst_dataset_load(const char *directory, struct mst_dataset *out, struct mst_reason *why);

/* 8000 drawn digits to train and 2000 to test; the same for the same seed. Return: 0 or -ENOMEM. */
int mst_dataset_draw(uint64_t seed, struct mst_dataset *out);

void mst_dataset_fini(struct mst_dataset *d); /* fine for a zeroed one */

/* Image @index of @from to x[image_pixels]: ink less its mean, MST_DATASET_MEAN for MNIST and
 * not far from it for drawn digits, times MST_DATASET_GAIN. Not so centred, momentum and stale
 * gradients together swing out of hand. Return: its label. */
uint8_t mst_dataset_sample(const struct mst_dataset *d, const struct mst_samples *from,
			   uint32_t index, float *x);

/* ---- strokes.c: digits drawn by the program itself ---- */

#define MST_STROKES_SIDE 28u
#define MST_STROKES_PIXELS (MST_STROKES_SIDE * MST_STROKES_SIDE)

/* Draws @digit (0 to 9) into @image, rows from the top, 0 paper to 255 ink. All chance comes from
 * @chance: same state, same image. */
void mst_strokes_draw(struct mst_rand *chance, unsigned digit, uint8_t image[MST_STROKES_PIXELS]);

#endif
