/* SPDX-License-Identifier: MIT */
#include "tests/ut.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/digits/idx.h"

/* Two images of 2 x 3. */
static const uint8_t images[] = { 0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2,  0,  0,
				  0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
#define IMAGES_HEADER 16u

/* Labels 7, 2, 1, as gzip writes them. */
static const uint8_t labels_gz[] = { 0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00,
				     0x02, 0xff, 0x63, 0x60, 0xe0, 0x60, 0x64, 0x60,
				     0x60, 0x60, 0x66, 0x67, 0x62, 0x04, 0x00, 0x15,
				     0xf8, 0x3e, 0x4e, 0x0b, 0x00, 0x00, 0x00 };

static char path[] = "digits_idx.XXXXXX"; /* in the working directory */
static struct mst_reason why;

static void write_bytes(const uint8_t *bytes, size_t len)
{
	FILE *f = fopen(path, "wb");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_EQUAL(fwrite(bytes, 1, len, f), len);
	CU_ASSERT_EQUAL(fclose(f), 0);
}

/* The file is refused, in a sentence that names it and has @words. */
static void refused(const uint8_t *bytes, size_t len, enum mst_idx_kind kind, int rc,
		    const char *words)
{
	struct mst_idx idx;

	write_bytes(bytes, len);
	why.text[0] = '\0';
	CU_ASSERT_EQUAL(mst_idx_init(path, kind, &idx, &why), rc);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, path));
	if (strstr(why.text, words))
		return;
	printf("\n    \"%s\" lacks \"%s\"", why.text, words);
	CU_FAIL("the sentence lacks the words");
}

static void images_come_as_they_lie(void)
{
	struct mst_idx idx;

	write_bytes(images, sizeof(images));
	CU_ASSERT_EQUAL_FATAL(mst_idx_init(path, MST_IDX_IMAGES, &idx, &why), 0);
	CU_ASSERT_EQUAL(idx.count, 2);
	CU_ASSERT_EQUAL(idx.rows, 2);
	CU_ASSERT_EQUAL(idx.columns, 3);
	CU_ASSERT_EQUAL(memcmp(idx.bytes, images + IMAGES_HEADER, 12), 0);
	mst_idx_fini(&idx);
}

static void gzip_is_read_like_plain(void)
{
	struct mst_idx idx;

	write_bytes(labels_gz, sizeof(labels_gz));
	CU_ASSERT_EQUAL_FATAL(mst_idx_init(path, MST_IDX_LABELS, &idx, &why), 0);
	CU_ASSERT_EQUAL(idx.count, 3);
	CU_ASSERT_EQUAL(memcmp(idx.bytes, (uint8_t[]){ 7, 2, 1 }, 3), 0);
	mst_idx_fini(&idx);
}

static void a_file_longer_than_the_first_read_is_whole(void)
{
	uint32_t count = 200000;
	uint8_t *bytes = malloc(8 + count);
	struct mst_idx idx;

	CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
	memcpy(bytes, (uint8_t[]){ 0, 0, 8, 1, 0, 3, 0x0d, 0x40 }, 8);
	for (uint32_t i = 0; i < count; i++)
		bytes[8 + i] = (uint8_t)(i * 7 + i / 256);
	write_bytes(bytes, 8 + count);
	CU_ASSERT_EQUAL_FATAL(mst_idx_init(path, MST_IDX_LABELS, &idx, &why), 0);
	CU_ASSERT_EQUAL_FATAL(idx.count, count);
	CU_ASSERT_EQUAL(memcmp(idx.bytes, bytes + 8, count), 0);
	mst_idx_fini(&idx);
	free(bytes);
}

static void a_cut_header_is_refused_at_every_length(void)
{
	char words[64];

	for (size_t len = 0; len < IMAGES_HEADER; len++) {
		snprintf(words, sizeof(words), "ends after %zu bytes; the header", len);
		refused(images, len, MST_IDX_IMAGES, -EINVAL, words);
	}
}

static void a_cut_body_is_refused_at_every_length(void)
{
	char words[64];

	for (size_t len = 0; len < 12; len++) {
		snprintf(words, sizeof(words), "ends after %zu of the 12 bytes", len);
		refused(images, IMAGES_HEADER + len, MST_IDX_IMAGES, -EINVAL, words);
	}
}

static void cut_gzip_is_refused_at_every_length(void)
{
	for (size_t len = 0; len < sizeof(labels_gz); len++)
		refused(labels_gz, len, MST_IDX_LABELS, -EINVAL, "");
	refused(labels_gz, sizeof(labels_gz) - 1, MST_IDX_LABELS, -EINVAL, "damaged or cut short");
}

static void damaged_gzip_is_refused(void)
{
	uint8_t bytes[sizeof(labels_gz)];

	memcpy(bytes, labels_gz, sizeof(bytes));
	bytes[sizeof(bytes) - 8] ^= 1; /* of the checksum */
	refused(bytes, sizeof(bytes), MST_IDX_LABELS, -EINVAL, "damaged or cut short");
}

static void another_kind_of_file_is_named(void)
{
	refused(images, sizeof(images), MST_IDX_LABELS, -EINVAL,
		"begins with 0x00000803; an IDX file of labels with 0x00000801");
	refused((const uint8_t *)"GIF89a and some more", 20, MST_IDX_IMAGES, -EINVAL, "0x47494638");
}

static void too_large_an_extent_is_refused_before_memory(void)
{
	uint8_t bytes[sizeof(images)];

	memcpy(bytes, images, sizeof(bytes));
	memset(bytes + 4, 0xff, 12); /* a product beyond 64 bits */
	refused(bytes, sizeof(bytes), MST_IDX_IMAGES, -EFBIG, "4294967295 images of 4294967295 x");
	memcpy(bytes + 4, (uint8_t[]){ 0, 0x10, 0, 1, 0, 0, 0, 32, 0, 0, 0, 32 }, 12);
	refused(bytes, sizeof(bytes), MST_IDX_IMAGES, -EFBIG, "at most 1 GiB");
}

static void a_header_that_promises_too_much_is_found_out(void)
{
	uint8_t bytes[sizeof(images)];

	memcpy(bytes, images, sizeof(bytes));
	memcpy(bytes + 4, (uint8_t[]){ 0, 0x10, 0, 0 }, 4);
	refused(bytes, sizeof(bytes), MST_IDX_IMAGES, -EINVAL,
		"ends after 12 of the 6291456 bytes");
}

static void nothing_inside_is_refused(void)
{
	for (size_t at = 4; at < IMAGES_HEADER; at += 4) {
		uint8_t bytes[sizeof(images)];
		memcpy(bytes, images, sizeof(bytes));
		bytes[at + 3] = 0;
		refused(bytes, sizeof(bytes), MST_IDX_IMAGES, -EINVAL, "at least one byte");
	}
}

static void bytes_after_the_end_are_refused(void)
{
	uint8_t bytes[sizeof(images) + 1] = { 0 };

	memcpy(bytes, images, sizeof(images));
	refused(bytes, sizeof(bytes), MST_IDX_IMAGES, -EINVAL, "goes on after the 12 bytes");
}

static void a_file_that_cannot_be_read_says_why(void)
{
	struct mst_idx idx;

	CU_ASSERT_EQUAL(mst_idx_init("no/such/file", MST_IDX_LABELS, &idx, &why), -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "no/such/file: cannot be opened: No such file"));
	CU_ASSERT_EQUAL(mst_idx_init(".", MST_IDX_LABELS, &idx, &why), -EISDIR);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "cannot be read: Is a directory"));
}

static CU_TestInfo cases[] = {
	{ "images come as they lie in the file", images_come_as_they_lie },
	{ "gzip is read like plain bytes", gzip_is_read_like_plain },
	{ "a file longer than the first read is whole",
	  a_file_longer_than_the_first_read_is_whole },
	{ "a header cut at any length is refused", a_cut_header_is_refused_at_every_length },
	{ "a body cut at any length is refused", a_cut_body_is_refused_at_every_length },
	{ "gzip cut at any length is refused", cut_gzip_is_refused_at_every_length },
	{ "gzip with a wrong checksum is refused", damaged_gzip_is_refused },
	{ "another kind of file is refused by its first bytes", another_kind_of_file_is_named },
	{ "too large an extent is refused before memory is taken",
	  too_large_an_extent_is_refused_before_memory },
	{ "a header that promises too much is found out",
	  a_header_that_promises_too_much_is_found_out },
	{ "a file with nothing inside is refused", nothing_inside_is_refused },
	{ "bytes after the end are refused", bytes_after_the_end_are_refused },
	{ "a file that cannot be read says why", a_file_that_cannot_be_read_says_why },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	int fd = mkstemp(path);

	if (fd < 0) {
		perror(path);
		return EXIT_FAILURE;
	}
	close(fd);
	int status = ut_main("digits: idx", cases);
	unlink(path);
	return status;
}
