/* SPDX-License-Identifier: MIT */
/* Pixels stay bytes, a quarter of what floats would take, until a sample is wanted. */
#include "common/digits/dataset.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/digits/idx.h"

#define DRAWN_TRAIN 8000u
#define DRAWN_TEST 2000u

/* One pair of files, read and found to fit. */
struct pair {
	struct mst_idx images, labels;
};

/* Writes DIRECTORY/SET-KIND or the same with .gz to @path. Return: is one of them there? */
static bool find_file(char path[PATH_MAX], const char *directory, const char *set, const char *kind)
{
	static const char *const endings[] = { "", ".gz" };

	for (int i = 0; i < 2; i++) {
		int n = snprintf(path, PATH_MAX, "%s/%s-%s%s", directory, set, kind, endings[i]);
		if (n > 0 && n < PATH_MAX && access(path, F_OK) == 0)
			return true;
	}
	return false;
}

static void pair_fini(struct pair *p)
{
	mst_idx_fini(&p->images);
	mst_idx_fini(&p->labels);
}

static int check_labels(const struct pair *p, const char *path, struct mst_reason *why)
{
	if (p->images.count != p->labels.count) {
		mst_reason_set(why, "%s: has %u labels, but its file of images has %u images", path,
			       p->labels.count, p->images.count);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < p->labels.count; i++) {
		if (p->labels.bytes[i] < MST_DATASET_CLASSES)
			continue;
		mst_reason_set(why, "%s: label %u is %u; digits go from 0 to 9", path, i,
			       p->labels.bytes[i]);
		return -EINVAL;
	}
	return 0;
}

/* Return: 1 read; 0 neither file is there; a negative errno. */
static int pair_read(const char *directory, const char *set, struct pair *out,
		     struct mst_reason *why)
{
	char images[PATH_MAX], labels[PATH_MAX];
	bool have_images = find_file(images, directory, set, "images-idx3-ubyte");
	bool have_labels = find_file(labels, directory, set, "labels-idx1-ubyte");
	struct pair p = { 0 };

	if (!have_images && !have_labels)
		return 0;
	/* If one file of the two is missing, the attempt to read it gives the best sentence. */
	int rc = mst_idx_init(images, MST_IDX_IMAGES, &p.images, why);
	if (rc == 0)
		rc = mst_idx_init(labels, MST_IDX_LABELS, &p.labels, why);
	if (rc == 0)
		rc = check_labels(&p, labels, why);
	if (rc) {
		pair_fini(&p);
		return rc;
	}
	*out = p;
	return 1;
}

static struct mst_samples samples_of(const struct pair *p, uint32_t first, uint32_t count)
{
	size_t image_pixels = (size_t)p->images.rows * p->images.columns;

	return (struct mst_samples){ .count = count,
				     .pixels = p->images.bytes + first * image_pixels,
				     .labels = p->labels.bytes + first };
}

static void use_both(struct mst_dataset *d, const struct pair *train, const struct pair *test)
{
	*d = (struct mst_dataset){
		.image_pixels = test->images.rows * test->images.columns,
		.train = samples_of(train, 0, train->images.count),
		.test = samples_of(test, 0, test->images.count),
		.owned = { train->images.bytes, train->labels.bytes, test->images.bytes,
			   test->labels.bytes },
	};
}

static void split_one(struct mst_dataset *d, const struct pair *all)
{
	uint32_t count = all->images.count;
	uint32_t first_test = count - count / 5;

	*d = (struct mst_dataset){
		.image_pixels = all->images.rows * all->images.columns,
		.train = samples_of(all, 0, first_test),
		.test = samples_of(all, first_test, count - first_test),
		.owned = { all->images.bytes, all->labels.bytes },
	};
}

/* Puts together what was found. Return: 0, and @out owns the pairs' bytes; or a negative errno. */
static int join_pairs(const struct pair *train, const struct pair *test, struct mst_dataset *out,
		      struct mst_reason *why)
{
	if (train->images.bytes == NULL && test->images.count < 5) {
		mst_reason_set(why, "t10k- has %u images; 5 is the least that can be split",
			       test->images.count);
		return -EINVAL;
	}
	if (train->images.bytes == NULL) {
		split_one(out, test);
		return 0;
	}
	if (train->images.rows != test->images.rows ||
	    train->images.columns != test->images.columns) {
		mst_reason_set(why, "images of train- have %u x %u pixels, those of t10k- %u x %u",
			       train->images.rows, train->images.columns, test->images.rows,
			       test->images.columns);
		return -EINVAL;
	}
	use_both(out, train, test);
	return 0;
}

int mst_dataset_load(const char *directory, struct mst_dataset *out, struct mst_reason *why)
{
	struct pair train = { 0 }, test = { 0 };
	int rc = pair_read(directory, "t10k", &test, why);

	if (rc == 0) {
		mst_reason_set(why, "%s: holds no t10k-images-idx3-ubyte, plain or .gz", directory);
		rc = -ENOENT;
	}
	if (rc > 0)
		rc = pair_read(directory, "train", &train, why);
	if (rc >= 0)
		rc = join_pairs(&train, &test, out, why);
	if (rc < 0) {
		pair_fini(&train);
		pair_fini(&test);
	}
	return rc;
}

int mst_dataset_draw(uint64_t seed, struct mst_dataset *out)
{
	uint32_t count = DRAWN_TRAIN + DRAWN_TEST;
	uint8_t *pixels = malloc((size_t)count * MST_STROKES_PIXELS);
	uint8_t *labels = malloc(count);
	struct mst_rand chance;

	if (pixels == NULL || labels == NULL) {
		free(pixels);
		free(labels);
		return -ENOMEM;
	}
	mst_rand_seed(&chance, seed);
	for (uint32_t i = 0; i < count; i++) {
		labels[i] = (uint8_t)mst_rand_below(&chance, MST_DATASET_CLASSES);
		mst_strokes_draw(&chance, labels[i], pixels + (size_t)i * MST_STROKES_PIXELS);
	}
	*out = (struct mst_dataset){
		.image_pixels = MST_STROKES_PIXELS,
		.train = { DRAWN_TRAIN, pixels, labels },
		.test = { DRAWN_TEST, pixels + (size_t)DRAWN_TRAIN * MST_STROKES_PIXELS,
			  labels + DRAWN_TRAIN },
		.owned = { pixels, labels },
	};
	return 0;
}

void mst_dataset_fini(struct mst_dataset *d)
{
	for (int i = 0; i < 4; i++)
		free(d->owned[i]);
	*d = (struct mst_dataset){ 0 };
}

uint8_t mst_dataset_sample(const struct mst_dataset *d, const struct mst_samples *from,
			   uint32_t index, float *x)
{
	assert(index < from->count);
	const uint8_t *pixels = from->pixels + (size_t)index * d->image_pixels;

	for (uint32_t i = 0; i < d->image_pixels; i++)
		x[i] = ((float)pixels[i] * (1.0f / 255.0f) - MST_DATASET_MEAN) * MST_DATASET_GAIN;
	return from->labels[index];
}
