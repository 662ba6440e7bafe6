/* SPDX-License-Identifier: MIT */
#include "tests/ut.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/digits/dataset.h"

static char directory[] = "digits_dataset.XXXXXX"; /* in the working directory */
static struct mst_reason why;

static const char *const names[] = { "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte",
				     "train-images-idx3-ubyte", "train-labels-idx1-ubyte" };
enum which { T10K_IMAGES, T10K_LABELS, TRAIN_IMAGES, TRAIN_LABELS, WHICH_COUNT };

static void put(enum which which, const uint8_t *bytes, size_t len)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", directory, names[which]);
	FILE *f = fopen(path, "wb");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_EQUAL(fwrite(bytes, 1, len, f), len);
	CU_ASSERT_EQUAL(fclose(f), 0);
}

/* @count images of @rows x 2, each pixel the number of its image. */
static void put_images(enum which which, uint8_t count, uint8_t rows)
{
	uint8_t bytes[16 + 256] = { 0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, rows, 0, 0, 0, 2 };
	size_t len = 16;

	for (uint8_t i = 0; i < count; i++, len += 2u * rows)
		memset(bytes + len, i, 2u * rows);
	put(which, bytes, len);
}

static void put_labels(enum which which, uint8_t count, uint8_t last)
{
	uint8_t bytes[8 + 256] = { 0, 0, 8, 1, 0, 0, 0, count };

	for (uint8_t i = 0; i < count; i++)
		bytes[8 + i] = i % 10;
	bytes[8 + count - 1] = last;
	put(which, bytes, 8u + count);
}

static void clear(void)
{
	char path[256];

	for (int i = 0; i < WHICH_COUNT; i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		unlink(path);
	}
}

static void refused(int rc, const char *words)
{
	struct mst_dataset d;

	why.text[0] = '\0';
	CU_ASSERT_EQUAL(mst_dataset_load(directory, &d, &why), rc);
	if (strstr(why.text, words))
		return;
	printf("\n    \"%s\" lacks \"%s\"", why.text, words);
	CU_FAIL("the sentence lacks the words");
}

static void one_pair_is_split_four_to_one(void)
{
	struct mst_dataset d;
	float x[6];

	clear();
	put_images(T10K_IMAGES, 12, 3);
	put_labels(T10K_LABELS, 12, 5);
	CU_ASSERT_EQUAL_FATAL(mst_dataset_load(directory, &d, &why), 0);
	CU_ASSERT_EQUAL(d.image_pixels, 6);
	CU_ASSERT_EQUAL(d.train.count, 10);
	CU_ASSERT_EQUAL(d.test.count, 2);
	CU_ASSERT_EQUAL(mst_dataset_sample(&d, &d.train, 7, x), 7);
	CU_ASSERT_DOUBLE_EQUAL(x[5], (7 / 255.0 - 0.13) * 1.3, 1e-6);
	CU_ASSERT_EQUAL(mst_dataset_sample(&d, &d.test, 1, x), 5);
	CU_ASSERT_DOUBLE_EQUAL(x[0], (11 / 255.0 - 0.13) * 1.3, 1e-6);
	mst_dataset_fini(&d);
}

static void of_two_pairs_one_trains_and_one_tests(void)
{
	struct mst_dataset d;

	clear();
	put_images(T10K_IMAGES, 3, 3);
	put_labels(T10K_LABELS, 3, 1);
	put_images(TRAIN_IMAGES, 6, 3);
	put_labels(TRAIN_LABELS, 6, 9);
	CU_ASSERT_EQUAL_FATAL(mst_dataset_load(directory, &d, &why), 0);
	CU_ASSERT_EQUAL(d.train.count, 6);
	CU_ASSERT_EQUAL(d.train.labels[5], 9);
	CU_ASSERT_EQUAL(d.test.count, 3);
	CU_ASSERT_EQUAL(d.test.labels[2], 1);
	mst_dataset_fini(&d);
}

static void counts_that_differ_are_named(void)
{
	clear();
	put_images(T10K_IMAGES, 10, 3);
	put_labels(T10K_LABELS, 9, 5);
	refused(-EINVAL, "has 9 labels, but its file of images has 10 images");
}

static void a_label_that_is_no_digit_is_named(void)
{
	clear();
	put_images(T10K_IMAGES, 10, 3);
	put_labels(T10K_LABELS, 10, 10);
	refused(-EINVAL, "t10k-labels-idx1-ubyte: label 9 is 10;");
}

static void a_missing_file_is_named(void)
{
	clear();
	refused(-ENOENT, "holds no t10k-images-idx3-ubyte");
	put_images(T10K_IMAGES, 10, 3);
	refused(-ENOENT, "t10k-labels-idx1-ubyte");
	put_labels(T10K_LABELS, 10, 5);
	put_labels(TRAIN_LABELS, 10, 5);
	refused(-ENOENT, "train-images-idx3-ubyte");
}

static void pairs_of_different_images_are_refused(void)
{
	clear();
	put_images(T10K_IMAGES, 10, 3);
	put_labels(T10K_LABELS, 10, 5);
	put_images(TRAIN_IMAGES, 10, 4);
	put_labels(TRAIN_LABELS, 10, 5);
	refused(-EINVAL, "4 x 2 pixels");
}

static void too_few_to_split_are_refused(void)
{
	clear();
	put_images(T10K_IMAGES, 4, 3);
	put_labels(T10K_LABELS, 4, 5);
	refused(-EINVAL, "has 4 images");
}

static void drawn_digits_depend_on_the_seed_alone(void)
{
	struct mst_dataset a, b, c;
	size_t bytes = (size_t)MST_STROKES_PIXELS * 8000;

	CU_ASSERT_EQUAL_FATAL(mst_dataset_draw(5, &a), 0);
	CU_ASSERT_EQUAL_FATAL(mst_dataset_draw(5, &b), 0);
	CU_ASSERT_EQUAL_FATAL(mst_dataset_draw(6, &c), 0);
	CU_ASSERT_EQUAL(a.train.count, 8000);
	CU_ASSERT_EQUAL(a.test.count, 2000);
	CU_ASSERT_EQUAL(memcmp(a.train.pixels, b.train.pixels, bytes), 0);
	CU_ASSERT_EQUAL(memcmp(a.train.labels, b.train.labels, 8000), 0);
	CU_ASSERT_NOT_EQUAL(memcmp(a.train.pixels, c.train.pixels, bytes), 0);
	mst_dataset_fini(&a);
	mst_dataset_fini(&b);
	mst_dataset_fini(&c);
}

/* Noise alone stays below 32, so more than that is ink. */
static void every_digit_leaves_ink_and_paper(void)
{
	uint8_t image[MST_STROKES_PIXELS];
	struct mst_rand chance;

	mst_rand_seed(&chance, 1);
	for (unsigned i = 0; i < 1000; i++) {
		unsigned dark = 0;
		mst_strokes_draw(&chance, i % 10, image);
		for (unsigned p = 0; p < MST_STROKES_PIXELS; p++)
			dark += image[p] > 127;
		CU_ASSERT(dark > 10 && dark < MST_STROKES_PIXELS / 2);
	}
}

static CU_TestInfo cases[] = {
	{ "one pair of files is split four to one", one_pair_is_split_four_to_one },
	{ "of two pairs one trains and one tests", of_two_pairs_one_trains_and_one_tests },
	{ "counts that differ are named", counts_that_differ_are_named },
	{ "a label that is no digit is named", a_label_that_is_no_digit_is_named },
	{ "a missing file is named", a_missing_file_is_named },
	{ "pairs of different images are refused", pairs_of_different_images_are_refused },
	{ "too few images to split are refused", too_few_to_split_are_refused },
	{ "drawn digits depend on the seed alone", drawn_digits_depend_on_the_seed_alone },
	{ "every drawn digit leaves ink and paper", every_digit_leaves_ink_and_paper },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	if (mkdtemp(directory) == NULL) {
		perror(directory);
		return EXIT_FAILURE;
	}
	int status = ut_main("digits: dataset", cases);
	clear();
	rmdir(directory);
	return status;
}
