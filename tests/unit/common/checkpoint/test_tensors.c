/* SPDX-License-Identifier: MIT */
/* A header with a right checksum is refused all the same where it does not agree with itself. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/crc32c.h"
#include "common/checkpoint/layout.h"
#include "common/checkpoint/manifest/tensors.h"
#include "tests/unit/common/checkpoint/checkpoint_case.h"
#include "tests/ut.h"

#define HEADER_MAX 16384u
#define CRC_KEY "\"header_crc32c\":\""

static struct mst_reason why;

/* Elements 40 to 99 of 100, of the tensors a (0 to 59) and b, for two vectors: four tensors, of 20
 * and 40 elements each. */
static void compose(struct mst_tensor_file *f, char **header)
{
	static const struct muster_tensor table[] = {
		{ .name = "a", .first = 0, .count = 60 },
		{ .name = "b", .first = 60, .count = 40 },
	};
	static const struct mst_checkpoint_id id = { .job = "night",
						     .save = "0123456789abcdef0123456789abcdef",
						     .version = 7,
						     .elems = 100 };
	static const struct mst_checkpoint_piece piece = { "", 60 };
	static const struct mst_checkpoint_vector vector[] = {
		{ "average", MST_DTYPE_BF16, &piece, 1 },
		{ "parameters", MST_DTYPE_F32, &piece, 1 },
	};
	const struct mst_checkpoint_writing w = { .id = &id,
						  .part = 1,
						  .parts = 2,
						  .first = 40,
						  .count = 60,
						  .table = table,
						  .tensors = 2,
						  .vector = vector,
						  .vectors = 2 };

	CU_ASSERT_EQUAL_FATAL(mst_checkpoint_layout(&w, f, &why), 0);
	CU_ASSERT_EQUAL_FATAL(mst_tensor_file_compose(f, header), 0);
}

static void comes_back(void)
{
	struct mst_tensor_file f, back;
	char *header = NULL;

	compose(&f, &header);
	CU_ASSERT_EQUAL(f.data, MST_TENSORS_PAGE);
	CU_ASSERT_EQUAL(f.bytes, MST_TENSORS_PAGE + 60 * (4 + 2));
	CU_ASSERT_EQUAL_FATAL(mst_tensor_file_parse(header, f.data, f.bytes, &back, &why), 0);
	CU_ASSERT_EQUAL(memcmp(&back.id, &f.id, sizeof(f.id)), 0);
	CU_ASSERT(back.part == 1 && back.parts == 2 && back.first == 40 && back.count == 60);
	CU_ASSERT_EQUAL_FATAL(back.tensors, 4);
	CU_ASSERT_STRING_EQUAL(back.tensor[0].name, "a"); /* long elements come first */
	CU_ASSERT_STRING_EQUAL(back.tensor[3].name, "average/b");
	CU_ASSERT(back.tensor[0].offset == 40 && back.tensor[0].count == 20);
	CU_ASSERT(back.tensor[1].first == 60 && back.tensor[1].offset == 0);
	CU_ASSERT_EQUAL(back.header_crc, f.header_crc);
	free(header);
	mst_tensor_file_fini(&f);
	mst_tensor_file_fini(&back);
}

/* Gives a header its length and its checksum. */
static void seal(char *header, size_t len)
{
	char digits[9], *crc = memmem(header, len, CRC_KEY, strlen(CRC_KEY));

	for (unsigned i = 0; i < MST_TENSORS_PREFIX; i++)
		header[i] = (char)(uint8_t)((uint64_t)(len - MST_TENSORS_PREFIX) >> 8 * i);
	if (crc == NULL)
		return;
	crc += strlen(CRC_KEY);
	memset(crc, '0', 8);
	(void)snprintf(digits, sizeof(digits), "%08" PRIx32, mst_crc32c(0, header, len));
	memcpy(crc, digits, 8);
}

/* Replaces @from by @to in the first header. Return: what is said; "": it is taken. */
static const char *edited(const char *from, const char *to, int *rc)
{
	static char text[HEADER_MAX];
	struct mst_tensor_file f, back;
	char *header = NULL;

	compose(&f, &header);
	char *at = memmem(header, f.data, from, strlen(from));
	CU_ASSERT_PTR_NOT_NULL_FATAL(at);
	size_t before = (size_t)(at - header), rest = f.data - before - strlen(from);
	size_t len = before + strlen(to) + rest;
	memcpy(text, header, before);
	memcpy(text + before, to, strlen(to));
	memcpy(text + before + strlen(to), at + strlen(from), rest);
	seal(text, len);
	why.text[0] = '\0';
	*rc = mst_tensor_file_parse(text, len, len + f.bytes - f.data, &back, &why);
	if (*rc == 0)
		mst_tensor_file_fini(&back);
	free(header);
	mst_tensor_file_fini(&f);
	return why.text;
}

static const struct edit {
	const char *from, *to, *says;
} edits[] = {
	{ "muster-checkpoint", "somebody's", "it is no part of a checkpoint of muster" },
	{ "\"format\":\"muster-checkpoint\",", "", "it is no part of a checkpoint of muster" },
	{ CRC_KEY, "\"another_crc32c\":\"", "no checksum" },
	{ "\"part\":\"1\"", "\"part\":\"2\"", "contradict each other" },
	{ "\"parts\":\"2\"", "\"parts\":\"65\"", "contradict each other" },
	{ "\"count\":\"60\"", "\"count\":\"61\"", "contradict each other" },
	{ "\"count\":\"60\"", "\"count\":60", "a metadatum is not a text" },
	{ "\"count\":\"60\"", "\"count\":\"060\"", "lack a number" },
	{ "\"count\":\"60\"", "\"count\":\"60\",\"count\":\"60\"", "have a key twice" },
	{ "\"count\":\"60\"", "\"count\":\"59\"", "a tensor lies outside of the part" },
	{ "\"job\":\"night\",", "", "lack a text" },
	{ "\"tensor/a\"", "\"tensor/c\"", "lack a tensor" },
	{ "\n\"b\":", "\n\"a\":", "two of its tensors have the same name" },
	{ "first=60 offset=0", "first=61 offset=0", "outside of the part" },
	{ "first=60 offset=0", "first=59 offset=0", "not in order" },
	{ "first=60 offset=0", "first=060 offset=0", "not as they should be" },
	{ "first=60 offset=0", "first=60 offset=1", "longer than itself" },
	{ "group=parameters first=60", "group=other first=60", "ends too early" },
	{ "group=average first=40", "group=parameters first=40", "do not follow each other" },
	{ "crc32c=00000000\"", "crc32c=0000000\"", "not as they should be" },
	{ "crc32c=00000000\"", "crc32c=00000000 \"", "not as they should be" },
	{ "\"F32\"", "\"I32\"", "none of ours" },
	{ "\"F32\"", "\"F64\"", "do not fit each other" },
	{ "\"F32\"", "\"BF16\"", "do not fit each other" },
	{ "\"shape\":[20]", "\"shape\":[21]", "do not fit each other" },
	{ "\"shape\":[20]", "\"shape\":[20,1]", "too many numbers" },
	{ "\"shape\":[20]", "\"shape\":[]", "too few numbers" },
	{ "\"shape\":[20]", "\"shape\":[18446744073709551615]", "do not fit each other" },
	{ "\"shape\":[20],", "", "lacks a key" },
	{ "\"shape\":[20]", "\"shape\":[20],\"shape\":[20]", "a key twice" },
	{ "\"shape\":[20]", "\"shape\":[20],\"order\":1", "one that is not ours" },
	{ "[0,80]", "[0,79]", "do not fit each other" },
	{ "[0,80]", "[1,81]", "do not fit each other" },
	{ "[0,80]", "[80,0]", "do not fit each other" },
	{ "[80,240]", "[0,160]", "do not fit each other" },
	{ "[280,360]", "[280,18446744073709551615]", "do not fit each other" },
	{ "[80,240]", "[84,244]", "do not fit each other" },
	{ "\n\"a\":", "\n\"__metadata__\":{},\"a\":", "__metadata__ twice" },
};

static void refused_with_a_right_checksum(void)
{
	int rc;

	CU_ASSERT_STRING_EQUAL(edited("night", "dawn!", &rc), "");
	CU_ASSERT_STRING_EQUAL(edited("\"job\"", "\"later\":\"key\",\"job\"", &rc), "");
	for (unsigned i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
		(void)edited(edits[i].from, edits[i].to, &rc);
		CU_ASSERT_EQUAL(rc, -EBADMSG);
		CU_ASSERT(checkpoint_says(why.text, edits[i].says));
	}
}

static void a_later_format(void)
{
	int rc;

	(void)edited("\"format_version\":\"1\"", "\"format_version\":\"2\"", &rc);
	CU_ASSERT_EQUAL(rc, -ENOTSUP);
	CU_ASSERT(checkpoint_says(why.text, "its format is 2, and this release reads 1"));
	(void)edited("{", "[", &rc);
	CU_ASSERT_EQUAL(rc, -EBADMSG);
}

static void data_of_another_length(void)
{
	struct mst_tensor_file f, back;
	char *header = NULL;

	compose(&f, &header);
	for (int more = -1; more <= 1; more += 2) {
		uint64_t bytes = f.bytes + (uint64_t)more;
		CU_ASSERT_EQUAL(mst_tensor_file_parse(header, f.data, bytes, &back, &why),
				-EBADMSG);
		CU_ASSERT(checkpoint_says(why.text, "longer or shorter"));
	}
	free(header);
	mst_tensor_file_fini(&f);
}

/* Each of @groups vectors has one tensor of one element. Return: what reading says. */
static int many_groups(uint32_t groups)
{
	static struct mst_tensor_entry tensor[MST_CHECKPOINT_GROUPS_MAX + 1];
	struct mst_tensor_file back, f = { .id = { .version = 1, .elems = 1 },
					   .parts = 1,
					   .count = 1,
					   .tensors = groups,
					   .tensor = tensor };
	char *header = NULL;

	for (uint32_t i = 0; i < groups; i++) {
		tensor[i] = (struct mst_tensor_entry){ .name = tensor[i].group,
						       .type = MST_DTYPE_F32,
						       .count = 1,
						       .begin = 4 * (uint64_t)i,
						       .end = 4 * (uint64_t)i + 4,
						       .total = 1 };
		(void)snprintf(tensor[i].group, sizeof(tensor[i].group), "group%u", i);
	}
	CU_ASSERT_EQUAL_FATAL(mst_tensor_file_compose(&f, &header), 0);
	int rc = mst_tensor_file_parse(header, f.data, f.bytes, &back, &why);
	if (rc == 0)
		mst_tensor_file_fini(&back);
	free(header);
	return rc;
}

static void too_many_groups(void)
{
	CU_ASSERT_EQUAL(many_groups(MST_CHECKPOINT_GROUPS_MAX), 0);
	CU_ASSERT_EQUAL(many_groups(MST_CHECKPOINT_GROUPS_MAX + 1), -EBADMSG);
	CU_ASSERT(checkpoint_says(why.text, "too many groups"));
}

static CU_TestInfo cases[] = {
	{ "a header comes back", comes_back },
	{ "a header that contradicts itself is refused", refused_with_a_right_checksum },
	{ "a later format is named", a_later_format },
	{ "data that are longer or shorter are refused", data_of_another_length },
	{ "more vectors than there may be are refused", too_many_groups },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("headers of checkpoints", cases);
}
