/* SPDX-License-Identifier: MIT */
/* Files that are cut, changed, or not the job's own are refused by name, and the older checkpoint
 * is taken. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/crc32c.h"
#include "common/base/rand.h"
#include "common/base/reason.h"
#include "common/checkpoint/names.h"
#include "tests/fixtures.h"
#include "tests/unit/common/checkpoint/checkpoint_case.h"
#include "tests/ut.h"

#define ELEMS 24u

static struct fix_folder folder;
static struct mst_reason why;
static char refusal[MST_REASON_LEN];
static uint64_t refused_version;

/* A file of the newer checkpoint. */
struct content {
	char path[MST_CHECKPOINT_FILE_LEN + 1]; /* begins with a slash */
	uint8_t *byte;
	size_t bytes;
};

static void read_file(struct content *c)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s%s", folder.root, c->path);
	FILE *f = fopen(path, "re");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	c->byte = malloc(65536);
	CU_ASSERT_PTR_NOT_NULL_FATAL(c->byte);
	c->bytes = fread(c->byte, 1, 65536, f);
	CU_ASSERT_EQUAL(fclose(f), 0);
}

/* The part of a version that has only one. */
static void read_part_of(uint64_t version, struct content *out)
{
	struct mst_checkpoint_manifest m;

	mst_checkpoint_manifest_init(&m);
	CU_ASSERT_EQUAL_FATAL(mst_checkpoint_manifest_read(folder.root, version, &m, &why), 0);
	(void)snprintf(out->path, sizeof(out->path), "/%s", m.part[0].file);
	mst_checkpoint_manifest_fini(&m);
	read_file(out);
}

/* Version 1 is in order; version 2 has @part and @manifest. */
static void begin(struct content *part, struct content *manifest)
{
	struct checkpoint_case c = { .version = 1, .elems = ELEMS };

	fix_folder_new(&folder);
	CU_ASSERT_EQUAL_FATAL(checkpoint_write(folder.root, &c, &why), 0);
	c.version = 2;
	CU_ASSERT_EQUAL_FATAL(checkpoint_write(folder.root, &c, &why), 0);
	read_part_of(2, part);
	(void)snprintf(manifest->path, sizeof(manifest->path), "/v0000000002.json");
	read_file(manifest);
}

static void end(struct content *part, struct content *manifest)
{
	free(part->byte);
	free(manifest->byte);
	fix_folder_free(&folder);
}

static void put(const struct content *c, size_t bytes)
{
	fix_folder_put_bytes(&folder, c->path, c->byte, bytes);
}

static void remember(void *arg, uint64_t version, const char *sentence)
{
	(void)arg;
	refused_version = version;
	(void)snprintf(refusal, sizeof(refusal), "%s", sentence);
}

/* Takes the newest whose data are right, too. Return: its version. */
static uint64_t resume(void)
{
	struct mst_checkpoint_wanted wanted = { .refused = remember };
	struct mst_checkpoint_manifest m;
	int rc = -EBADMSG;

	refused_version = 0;
	while (rc == -EBADMSG) {
		mst_checkpoint_manifest_init(&m);
		if (mst_checkpoint_find(folder.root, &wanted, &m, &why) != 0)
			return 0;
		rc = checkpoint_read(folder.root, &m, 0, ELEMS, &why);
		if (rc == -EBADMSG)
			remember(NULL, m.id.version, why.text);
		wanted.before = m.id.version;
		mst_checkpoint_manifest_fini(&m);
	}
	return rc == 0 ? wanted.before : 0;
}

/* The older one is taken, and the file of the newer one is named. */
static bool falls_back(const struct content *c)
{
	return resume() == 1 && refused_version == 2 && strstr(refusal, c->path) != NULL;
}

/* Cuts a file shorter and shorter, and restores it. Return: how often it was not noticed. */
static unsigned cut_all(const struct content *c)
{
	unsigned missed = 0;
	char path[256];

	(void)snprintf(path, sizeof(path), "%s%s", folder.root, c->path);
	for (size_t bytes = c->bytes; bytes-- > 0;) {
		CU_ASSERT_EQUAL_FATAL(truncate(path, (off_t)bytes), 0);
		missed += !falls_back(c);
	}
	put(c, c->bytes);
	return missed;
}

static void cut_anywhere(void)
{
	struct content part, manifest;

	begin(&part, &manifest);
	CU_ASSERT_EQUAL(resume(), 2);
	CU_ASSERT_EQUAL(cut_all(&part), 0);
	CU_ASSERT_EQUAL(cut_all(&manifest), 0);
	CU_ASSERT_EQUAL(resume(), 2);
	end(&part, &manifest);
}

static void put_byte(int fd, size_t at, uint8_t byte)
{
	CU_ASSERT_EQUAL(pwrite(fd, &byte, 1, (off_t)at), 1);
}

/* Changes every bit of [first, last) in turn. Return: how often it was not noticed. */
static unsigned flip_all(const struct content *c, size_t first, size_t last)
{
	unsigned missed = 0;
	char path[256];

	(void)snprintf(path, sizeof(path), "%s%s", folder.root, c->path);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	CU_ASSERT_FATAL(fd >= 0);
	for (size_t bit = 8 * first; bit < 8 * last; bit++) {
		put_byte(fd, bit / 8, (uint8_t)(c->byte[bit / 8] ^ 1u << bit % 8));
		missed += !falls_back(c);
		put_byte(fd, bit / 8, c->byte[bit / 8]);
	}
	(void)close(fd);
	return missed;
}

/* Where the JSON of a header ends; spaces follow up to the page. */
static size_t json_end(const struct content *part)
{
	size_t at = 4096;

	while (part->byte[at - 1] == ' ')
		at--;
	return at;
}

static void every_bit_of_header_and_manifest(void)
{
	struct content part, manifest;

	begin(&part, &manifest);
	CU_ASSERT_EQUAL(flip_all(&part, 0, json_end(&part) + 16), 0);
	CU_ASSERT_EQUAL(flip_all(&part, 4090, 4096), 0);
	CU_ASSERT_EQUAL(flip_all(&manifest, 0, manifest.bytes), 0);
	CU_ASSERT_EQUAL(resume(), 2);
	end(&part, &manifest);
}

static void every_bit_of_the_data(void)
{
	struct content part, manifest;

	begin(&part, &manifest);
	CU_ASSERT_EQUAL(part.bytes, 4096 + ELEMS * 10);
	CU_ASSERT_EQUAL(flip_all(&part, 4096, part.bytes), 0);
	end(&part, &manifest);
}

/* Writes a manifest of version 2 with a right checksum, in which @from is replaced by @to. */
static void put_edited(const struct content *manifest, const char *from, const char *to)
{
	char text[8192];
	char *body = (char *)manifest->byte;
	size_t body_len = manifest->bytes - strlen("  \"crc32c\": \"01234567\"\n}\n");

	body[manifest->bytes] = '\0';
	char *at = strstr(body, from);
	CU_ASSERT_PTR_NOT_NULL_FATAL(at);
	int len = snprintf(text, sizeof(text), "%.*s%s%.*s", (int)(at - body), body, to,
			   (int)(body_len - (size_t)(at - body) - strlen(from)), at + strlen(from));
	len += snprintf(text + len, sizeof(text) - (size_t)len,
			"  \"crc32c\": \"%08" PRIx32 "\"\n}\n", mst_crc32c(0, text, (size_t)len));
	fix_folder_put_bytes(&folder, manifest->path, text, (size_t)len);
}

static void files_of_others(void)
{
	struct content part, manifest;
	struct checkpoint_case other = { .version = 2, .elems = ELEMS };

	begin(&part, &manifest);
	/* The same version of the same job, saved once more: its parts do not belong to the old
	 * manifest, even where they have its names. */
	CU_ASSERT_EQUAL_FATAL(checkpoint_write(folder.root, &other, &why), 0);
	CU_ASSERT_EQUAL(resume(), 2);
	struct content again = manifest, other_part;
	read_file(&again);
	read_part_of(2, &other_part);
	CU_ASSERT_NOT_EQUAL(memcmp(again.byte, manifest.byte, manifest.bytes), 0);
	free(again.byte);
	put(&manifest, manifest.bytes);
	CU_ASSERT_EQUAL(resume(), 2); /* the old parts are still there */
	put_edited(&manifest, part.path + 1, other_part.path + 1);
	CU_ASSERT_EQUAL(resume(), 1);
	CU_ASSERT(checkpoint_says(refusal, "it was written by another save"));
	free(other_part.byte);
	put(&manifest, manifest.bytes);
	fix_folder_put_bytes(&folder, "/v0000000003.json", manifest.byte, manifest.bytes);
	CU_ASSERT_EQUAL(resume(), 2);
	CU_ASSERT(checkpoint_says(refusal, "it is the manifest of version 2"));
	end(&part, &manifest);
}

static void edited_manifests(void)
{
	static const struct {
		const char *from, *to, *says;
	} edits[] = {
		{ "\"format_version\": 1", "\"format_version\": 2", "its format is 2" },
		{ "muster-checkpoint", "muster-something", "no manifest of a checkpoint" },
		{ "\"workers\": 8", "\"workers\": 8,\n  \"workers\": 8", "a key is there twice" },
		{ "  \"workers\": 8,\n", "", "is missing" },
		{ "\"workers\": 8", "\"workers\": -8", "a whole number" },
		{ "\"workers\": 8", "\"workers\": 4294967296", "too large" },
		{ "\"first\": 0", "\"first\": 1", "leave elements" },
		{ "\"count\": 24", "\"count\": 25", "more elements than the vector" },
		{ "\"count\": 24", "\"count\": 0", "leave elements" },
		{ "\"file\": \"v", "\"file\": \"../v", "a name that no part has" },
		{ "\"bytes\": 4", "\"bytes\": 5", "and its manifest says" },
		{ "\"elems\": 24", "\"elems\": 18446744073709551615", "leave elements" },
		{ "\"elems\": 24", "\"elems\": 0", "has no elements" },
		{ "\"ledger.clock\": 2", "\"ledger.clock\": 2, \"ledger.clock\": 3",
		  "another one" },
		{ "\"ledger.clock\": 2", "\"ledger.clock\": {}", "a number is missing" },
		{ "\"ledger.clock\": 2", "\"ledger.clock\": [1,", "is missing" },
		{ "\"average\"", "\"momentum\"", "two of its vectors have the same name" },
		{ "\"BF16\"", "\"I8\"", "a dtype that is none of ours" },
		{ "\"BF16\"", "\"F16\"", "it lacks a vector" },
		{ "\"job\": \"night\"", "\"job\": \"day\"", "for another job" },
	};
	struct content part, manifest;

	begin(&part, &manifest);
	for (unsigned i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
		put_edited(&manifest, edits[i].from, edits[i].to);
		CU_ASSERT_EQUAL(resume(), 1);
		CU_ASSERT(checkpoint_says(refusal, edits[i].says));
	}
	const char *crc = strstr((char *)manifest.byte, "header_crc32c");
	CU_ASSERT_PTR_NOT_NULL_FATAL(crc);
	char digits[9] = "";
	memcpy(digits, crc + strlen("header_crc32c\": \""), 8);
	put_edited(&manifest, digits, strcmp(digits, "01234567") != 0 ? "01234567" : "12345678");
	CU_ASSERT_EQUAL(resume(), 1);
	CU_ASSERT(checkpoint_says(refusal, "its header has another checksum"));
	put_edited(&manifest, "\"workers\": 8", "\"workers\": 8,\n  \"later\": {\"a\": [1, null]}");
	CU_ASSERT_EQUAL(resume(), 2);
	end(&part, &manifest);
}

/* Return: what find says of a job that is not the checkpoint's. */
static const char *refused_for(const struct mst_checkpoint_wanted *wanted)
{
	struct mst_checkpoint_manifest m;

	mst_checkpoint_manifest_init(&m);
	CU_ASSERT_EQUAL(mst_checkpoint_find(folder.root, wanted, &m, &why), -EBADMSG);
	return why.text;
}

static void other_jobs(void)
{
	struct mst_checkpoint_model model = { .elems = ELEMS, .type = MUSTER_BF16 };
	struct mst_checkpoint_wanted wanted = { .job = "day" };
	struct mst_checkpoint_manifest m;
	struct content part, manifest;

	begin(&part, &manifest);
	CU_ASSERT(checkpoint_says(refused_for(&wanted), "it is of the job \"night\""));
	CU_ASSERT(checkpoint_says(why.text, "none of the 2 checkpoints"));
	wanted = (struct mst_checkpoint_wanted){ .job = "night", .model = &model };
	mst_checkpoint_manifest_init(&m);
	CU_ASSERT_EQUAL(mst_checkpoint_find(folder.root, &wanted, &m, &why), 0);
	mst_checkpoint_manifest_fini(&m);
	model.elems = 25;
	CU_ASSERT(checkpoint_says(refused_for(&wanted), "its vector has 24 elements"));
	model.elems = ELEMS;
	model.type = MUSTER_F32;
	CU_ASSERT(checkpoint_says(refused_for(&wanted), "its gradients are bf16"));
	model.type = MUSTER_BF16;
	model.owner = MUSTER_WORKERS_OWN;
	CU_ASSERT(checkpoint_says(refused_for(&wanted), "its servers own"));
	end(&part, &manifest);
}

static void missing_parts(void)
{
	struct content part, manifest;
	char path[256];

	begin(&part, &manifest);
	(void)snprintf(path, sizeof(path), "%s%s", folder.root, part.path);
	CU_ASSERT_EQUAL(unlink(path), 0);
	CU_ASSERT(falls_back(&part));
	CU_ASSERT(checkpoint_says(refusal, "is missing"));
	end(&part, &manifest);
}

static CU_TestInfo cases[] = {
	{ "a file that is cut anywhere is refused", cut_anywhere },
	{ "every bit of header and manifest counts", every_bit_of_header_and_manifest },
	{ "every bit of the data counts", every_bit_of_the_data },
	{ "files of another save or version are refused", files_of_others },
	{ "a manifest with a wrong figure and a right checksum is refused", edited_manifests },
	{ "checkpoints of other jobs are refused", other_jobs },
	{ "a part that is missing is named", missing_parts },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("damaged checkpoints", cases);
}
