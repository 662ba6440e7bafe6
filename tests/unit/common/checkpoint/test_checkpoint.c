/* SPDX-License-Identifier: MIT */
/* What is written is read again, by any number of servers, and the newest is found. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/crc32c.h"
#include "common/checkpoint/keep.h"
#include "common/checkpoint/lock.h"
#include "common/checkpoint/manifest/manifest_fields.h"
#include "common/checkpoint/names.h"
#include "common/checkpoint/part_file.h"
#include "tests/fixtures.h"
#include "tests/unit/common/checkpoint/checkpoint_case.h"
#include "tests/ut.h"

static struct fix_folder folder;
static struct mst_reason why;

static void begin(void)
{
	fix_folder_new(&folder);
	why.text[0] = '\0';
}

static void end(void)
{
	fix_folder_free(&folder);
}

static void write_version(uint64_t version, uint32_t parts)
{
	struct checkpoint_case c = { .version = version, .elems = 1000, .parts = parts };

	CU_ASSERT_EQUAL_FATAL(checkpoint_write(folder.root, &c, &why), 0);
}

/* Return: the version that is found, or -errno. */
static int64_t newest(const struct mst_checkpoint_wanted *wanted)
{
	struct mst_checkpoint_manifest m;

	mst_checkpoint_manifest_init(&m);
	int rc = mst_checkpoint_find(folder.root, wanted, &m, &why);
	int64_t version = (int64_t)m.id.version;
	mst_checkpoint_manifest_fini(&m);
	return rc == 0 ? version : rc;
}

static const struct mst_checkpoint_wanted any = { 0 };

static int versions(void)
{
	uint64_t *version = NULL;
	int count = mst_checkpoint_versions(folder.root, &version, &why);

	free(version);
	return count;
}

static bool exists(const char *name)
{
	char path[256];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", folder.root, name);
	return stat(path, &st) == 0;
}

/* ---- reading what was written ---- */

static void is_read_again(void)
{
	struct mst_checkpoint_manifest m;
	uint64_t clock = 0;

	begin();
	write_version(123, 1);
	mst_checkpoint_manifest_init(&m);
	CU_ASSERT_EQUAL_FATAL(mst_checkpoint_find(folder.root, &any, &m, &why), 0);
	CU_ASSERT_EQUAL(m.id.version, 123);
	CU_ASSERT_EQUAL(m.samples, 320 * 123);
	CU_ASSERT_EQUAL(m.workers, 8);
	CU_ASSERT_EQUAL(m.type, MUSTER_BF16);
	CU_ASSERT_STRING_EQUAL(m.policy, "backup:6");
	CU_ASSERT_STRING_EQUAL(m.muster, MST_VERSION);
	CU_ASSERT_EQUAL(mst_values_u64(&m.values, "ledger.clock", &clock), 0);
	CU_ASSERT_EQUAL(clock, 123);
	CU_ASSERT_EQUAL(checkpoint_read(folder.root, &m, 0, 1000, &why), 0);
	CU_ASSERT_EQUAL(mst_checkpoint_verify(folder.root, &m, &why), 0);
	mst_checkpoint_manifest_fini(&m);
	end();
}

static void by_other_servers(void)
{
	static const struct muster_tensor table[] = {
		{ .name = "a", .first = 0, .count = 10 },
		{ .name = "b", .first = 10, .count = 600 },
		{ .name = "c", .first = 610, .count = 390 },
	};
	struct checkpoint_case c = { .version = 7, .elems = 1000, .parts = 3 };
	struct mst_checkpoint_manifest m;

	for (unsigned with = 0; with < 2; with++) {
		begin();
		c.table = with != 0 ? table : NULL;
		c.tensors = with != 0 ? 3 : 0;
		CU_ASSERT_EQUAL_FATAL(checkpoint_write(folder.root, &c, &why), 0);
		mst_checkpoint_manifest_init(&m);
		CU_ASSERT_EQUAL_FATAL(mst_checkpoint_find(folder.root, &any, &m, &why), 0);
		CU_ASSERT_EQUAL(m.parts, 3);
		for (uint64_t first = 0; first < 1000; first += 125)
			for (uint64_t count = 0; first + count <= 1000; count += 125)
				CU_ASSERT_EQUAL(
					checkpoint_read(folder.root, &m, first, count, &why), 0);
		CU_ASSERT_EQUAL(checkpoint_read(folder.root, &m, 333, 1, &why), 0);
		mst_checkpoint_manifest_fini(&m);
		end();
	}
}

/* Long texts, numbers of every kind, a list as long as a large job. */
static void a_manifest_comes_back(void)
{
	static uint64_t clocks[4096];
	struct mst_checkpoint_manifest m, back;
	const uint64_t *list = NULL;
	char *text = NULL;
	double rate = 0;
	uint32_t count = 0;
	size_t len = 0;

	begin();
	struct checkpoint_case c = { .version = 5, .elems = 100, .parts = 3, .job = "a \"b\"\\" };
	for (unsigned i = 0; i < 4096; i++)
		clocks[i] = UINT64_MAX - i;
	CU_ASSERT_EQUAL_FATAL(checkpoint_write_parts(folder.root, &c, &m, &why), 0);
	CU_ASSERT_EQUAL(mst_values_add_list(&m.values, "ledger.clocks", clocks, 4096), 0);
	CU_ASSERT_EQUAL(mst_values_add_real(&m.values, "rate", 0.1), 0);
	CU_ASSERT_EQUAL(mst_values_add_text(&m.values, "quoted \" name", "and \\ text"), 0);
	CU_ASSERT_EQUAL_FATAL(mst_checkpoint_manifest_compose(&m, &text, &len, &why), 0);
	CU_ASSERT_EQUAL_FATAL(mst_checkpoint_manifest_parse(text, len, &back, &why), 0);
	CU_ASSERT_STRING_EQUAL(back.id.job, "a \"b\"\\");
	CU_ASSERT_EQUAL(memcmp(&back.id, &m.id, sizeof(m.id)), 0);
	CU_ASSERT_EQUAL(memcmp(back.part, m.part, sizeof(m.part)), 0);
	CU_ASSERT_EQUAL(mst_values_list(&back.values, "ledger.clocks", &list, &count), 0);
	CU_ASSERT_FATAL(count == 4096);
	CU_ASSERT_EQUAL(memcmp(list, clocks, sizeof(clocks)), 0);
	CU_ASSERT_EQUAL(mst_values_real(&back.values, "rate", &rate), 0);
	CU_ASSERT_EQUAL(rate, 0.1);
	CU_ASSERT_EQUAL(back.values.count, 3);
	free(text);
	mst_checkpoint_manifest_fini(&m);
	mst_checkpoint_manifest_fini(&back);
	end();
}

/* As an earlier release wrote it: without the line of @key. Return: of reading it. */
static int parse_without(const char *text, const char *key, struct mst_checkpoint_manifest *back)
{
	const char *end = strstr(text, MST_MANIFEST_END_BEGIN), *line = strstr(text, key);
	char *body = NULL, *old = NULL;

	CU_ASSERT_FATAL(end != NULL && line != NULL && line < end);
	while (line > text && line[-1] != '\n')
		line--;
	const char *next = strchr(line, '\n') + 1;
	int len = asprintf(&body, "%.*s%.*s", (int)(line - text), text, (int)(end - next), next);
	CU_ASSERT_FATAL(len > 0);
	len = asprintf(&old, "%s" MST_MANIFEST_END_BEGIN "%08" PRIx32 MST_MANIFEST_END_END, body,
		       mst_crc32c(0, body, (size_t)len));
	CU_ASSERT_FATAL(len > 0);
	int rc = mst_checkpoint_manifest_parse(old, (size_t)len, back, &why);
	free(body);
	free(old);
	return rc;
}

static void a_manifest_says_which_run_it_is_of(void)
{
	struct mst_checkpoint_manifest m, back;
	char *text = NULL;
	size_t len = 0;

	begin();
	struct checkpoint_case c = { .version = 5, .elems = 100 };
	CU_ASSERT_EQUAL_FATAL(checkpoint_write_parts(folder.root, &c, &m, &why), 0);
	for (int known = 0; known < 2; known++) {
		(void)snprintf(m.run, sizeof(m.run), "%s", known ? "0123456789abcdef" : "");
		m.generation = known ? 3 : 0;
		CU_ASSERT_EQUAL_FATAL(mst_checkpoint_manifest_compose(&m, &text, &len, &why), 0);
		CU_ASSERT_EQUAL_FATAL(mst_checkpoint_manifest_parse(text, len, &back, &why), 0);
		CU_ASSERT_STRING_EQUAL(back.run, m.run);
		CU_ASSERT_EQUAL(back.generation, m.generation);
		mst_checkpoint_manifest_fini(&back);
		CU_ASSERT_EQUAL_FATAL(parse_without(text, "\"generation\"", &back), 0);
		CU_ASSERT_EQUAL(back.generation, 0);
		mst_checkpoint_manifest_fini(&back);
		CU_ASSERT_EQUAL(parse_without(text, "\"samples\"", &back), -EBADMSG);
		free(text);
	}
	(void)snprintf(m.run, sizeof(m.run), "0123456789ABCDEF");
	CU_ASSERT_EQUAL(mst_checkpoint_manifest_compose(&m, &text, &len, &why), -EINVAL);
	CU_ASSERT(checkpoint_says(why.text, "run"));
	mst_checkpoint_manifest_fini(&m);
	end();
}

/* ---- names of tensors ---- */

/* The name that the file of a part gives the element, of a vector. */
static void name_of(const struct mst_checkpoint_manifest *m, uint32_t part, const char *group,
		    uint64_t element, char out[64])
{
	struct mst_part_file f;

	out[0] = '\0';
	CU_ASSERT_EQUAL_FATAL(mst_part_file_open(folder.root, m->part[part].file, &f, &why), 0);
	for (uint32_t i = 0; i < f.header.tensors; i++) {
		const struct mst_tensor_entry *t = &f.header.tensor[i];
		if (strcmp(t->group, group) == 0 && element >= t->first &&
		    element - t->first < t->count)
			(void)snprintf(out, 64, "%s", t->name);
	}
	mst_part_file_close(&f);
}

static void odd_names(void)
{
	static const struct {
		const char *name, *expected;
	} odd[] = {
		{ "fc1.weight", "fc1.weight" },
		{ "", "tensor#1" },
		{ NULL, "tensor#2" },
		{ "twice", "twice#3" },
		{ "twice", "twice#4" },
		{ "__metadata__", "__metadata__#5" },
		{ "momentum/x", "momentum/x#6" },
		{ "x#6", "x#6#7" },
		{ "quote\"back\\slash", "quote\"back\\slash" },
		{ "line\nfeed", "line?feed" },
		{ "\xff\xc3\xa4", "?\xc3\xa4" },
		{ "layer/fc", "layer/fc" },
	};
	enum { COUNT = sizeof(odd) / sizeof(odd[0]) };
	struct muster_tensor table[COUNT];
	struct checkpoint_case c = {
		.version = 1, .elems = 10 * COUNT, .parts = 2, .table = table, .tensors = COUNT
	};
	struct mst_checkpoint_manifest m;
	char name[64], expected[64];

	begin();
	for (unsigned i = 0; i < COUNT; i++)
		table[i] = (struct muster_tensor){ .name = odd[i].name,
						   .first = (uint64_t)10 * i,
						   .count = 10 };
	CU_ASSERT_EQUAL_FATAL(checkpoint_write(folder.root, &c, &why), 0);
	mst_checkpoint_manifest_init(&m);
	CU_ASSERT_EQUAL_FATAL(mst_checkpoint_find(folder.root, &any, &m, &why), 0);
	for (unsigned i = 0; i < COUNT; i++) {
		name_of(&m, i < COUNT / 2 ? 0 : 1, "parameters", (uint64_t)10 * i, name);
		CU_ASSERT_STRING_EQUAL(name, odd[i].expected);
		name_of(&m, i < COUNT / 2 ? 0 : 1, "momentum", (uint64_t)10 * i, name);
		(void)snprintf(expected, sizeof(expected), "momentum/%s", odd[i].expected);
		CU_ASSERT_STRING_EQUAL(name, expected);
	}
	CU_ASSERT_EQUAL(checkpoint_read(folder.root, &m, 0, c.elems, &why), 0);
	mst_checkpoint_manifest_fini(&m);
	end();
}

/* A part may end in the middle of a tensor: both have it, under the same name. */
static void a_tensor_is_cut(void)
{
	static const struct muster_tensor table[] = {
		{ .name = "a", .first = 0, .count = 80 },
		{ .name = "b", .first = 80, .count = 20 },
	};
	struct checkpoint_case c = {
		.version = 1, .elems = 100, .parts = 2, .table = table, .tensors = 2
	};
	struct mst_checkpoint_manifest m;
	struct mst_part_file f;

	begin();
	CU_ASSERT_EQUAL_FATAL(checkpoint_write(folder.root, &c, &why), 0);
	mst_checkpoint_manifest_init(&m);
	CU_ASSERT_EQUAL_FATAL(mst_checkpoint_find(folder.root, &any, &m, &why), 0);
	CU_ASSERT_EQUAL_FATAL(mst_part_file_open(folder.root, m.part[1].file, &f, &why), 0);
	CU_ASSERT_EQUAL(f.header.tensors, 6);
	CU_ASSERT_STRING_EQUAL(f.header.tensor[0].name, "a");
	CU_ASSERT_EQUAL(f.header.tensor[0].first, 50);
	CU_ASSERT_EQUAL(f.header.tensor[0].offset, 50);
	CU_ASSERT_EQUAL(f.header.tensor[0].count, 30);
	CU_ASSERT_EQUAL(f.header.tensor[0].total, 80);
	CU_ASSERT_EQUAL(f.header.data % MST_TENSORS_PAGE, 0);
	mst_part_file_close(&f);
	mst_checkpoint_manifest_fini(&m);
	end();
}

/* ---- what stays ---- */

static void two_are_kept(void)
{
	begin();
	fix_folder_put(&folder, "/notes.txt", "the user's");
	fix_folder_put(&folder, "/v1.json", "{}");
	fix_folder_put(&folder, "/v0000000001-0123456789.part0-of-1.safetensors", "not ours");
	fix_folder_put(&folder, "/v0000000002-01234567.part0-of-1.safetensors", "an orphan");
	fix_folder_put(&folder, "/v0000000003.json.tmp", "half a manif");
	fix_folder_put(&folder, "/v0000000009-01234567.part0-of-1.safetensors.tmp", "under way");
	for (uint64_t version = 1; version <= 5; version++) {
		write_version(version, 2);
		CU_ASSERT_EQUAL(mst_checkpoint_keep(folder.root, 2, &why), 0);
	}
	CU_ASSERT_EQUAL(versions(), 2);
	CU_ASSERT_EQUAL(newest(&any), 5);
	CU_ASSERT(exists("v0000000004.json") && !exists("v0000000003.json"));
	CU_ASSERT(!exists("v0000000002-01234567.part0-of-1.safetensors"));
	CU_ASSERT(!exists("v0000000003.json.tmp"));
	CU_ASSERT(exists("v0000000009-01234567.part0-of-1.safetensors.tmp"));
	CU_ASSERT(exists("notes.txt") && exists("v1.json"));
	CU_ASSERT(exists("v0000000001-0123456789.part0-of-1.safetensors"));
	end();
}

/* Return: the version of what is found before @version. */
static int64_t newest_before(uint64_t version)
{
	struct mst_checkpoint_wanted before = { .before = version };

	return newest(&before);
}

/* How many files of parts a version has. */
static unsigned parts_of(uint64_t version)
{
	DIR *dir = opendir(folder.root);
	const struct dirent *entry;
	unsigned count = 0;
	char begins[32];

	(void)snprintf(begins, sizeof(begins), "v%010u-", (unsigned)version);
	while (dir != NULL && (entry = readdir(dir)) != NULL)
		count += strncmp(entry->d_name, begins, strlen(begins)) == 0;
	if (dir != NULL)
		closedir(dir);
	return count;
}

static void damaged_ones_do_not_count(void)
{
	begin();
	write_version(1, 1);
	write_version(2, 1);
	write_version(3, 1);
	fix_folder_put(&folder, "/v0000000003.json", "{}");
	CU_ASSERT_EQUAL(mst_checkpoint_keep(folder.root, 2, &why), 0);
	CU_ASSERT_EQUAL(newest(&any), 2);
	CU_ASSERT_EQUAL(newest_before(2), 1);
	write_version(4, 1);
	CU_ASSERT_EQUAL(mst_checkpoint_keep(folder.root, 2, &why), 0);
	CU_ASSERT(exists("v0000000003.json"));
	CU_ASSERT_EQUAL(parts_of(3), 1); /* somebody may still fix the manifest */
	CU_ASSERT_EQUAL(newest_before(4), 2);
	CU_ASSERT_EQUAL(newest_before(2), -ENOENT);
	end();
}

static void a_job_goes_back(void)
{
	begin();
	write_version(10, 2);
	write_version(11, 2);
	write_version(20, 2);
	CU_ASSERT_EQUAL(mst_checkpoint_set_aside(folder.root, 10, &why), 0);
	CU_ASSERT_EQUAL(newest(&any), 10);
	CU_ASSERT(exists("v0000000010.json"));
	CU_ASSERT(exists("v0000000011.json.refused"));
	CU_ASSERT(exists("v0000000020.json.refused"));
	write_version(15, 2);
	CU_ASSERT_EQUAL(mst_checkpoint_keep(folder.root, 2, &why), 0);
	CU_ASSERT(!exists("v0000000011.json.refused"));
	CU_ASSERT(exists("v0000000020.json.refused"));
	CU_ASSERT_EQUAL(newest(&any), 15);
	write_version(20, 2); /* once more, which leaves the old parts alone until it is there */
	CU_ASSERT_EQUAL(newest(&any), 20);
	write_version(25, 2);
	CU_ASSERT_EQUAL(mst_checkpoint_keep(folder.root, 2, &why), 0);
	CU_ASSERT(!exists("v0000000020.json.refused"));
	CU_ASSERT_EQUAL(newest(&any), 25);
	end();
}

/* ---- pace ---- */

struct stopping {
	unsigned calls, stop_at;
};

static bool stops(void *arg)
{
	struct stopping *s = arg;

	return s->calls++ == s->stop_at;
}

static void is_stopped(void)
{
	struct stopping s = { .stop_at = 3 };
	struct checkpoint_case c = { .version = 9,
				     .elems = 1000,
				     .pace = { .bytes_per_second = 1, .stops = stops, .arg = &s } };

	begin();
	write_version(8, 1);
	CU_ASSERT_EQUAL(checkpoint_write(folder.root, &c, &why), -ECANCELED);
	CU_ASSERT(checkpoint_says(why.text, "told to stop"));
	CU_ASSERT_EQUAL(newest(&any), 8);
	CU_ASSERT_EQUAL(mst_checkpoint_keep(folder.root, 2, &why), 0);
	end();
}

/* 10000 bytes, of which the last 1000 come when the others have taken their time. */
static void keeps_its_pace(void)
{
	struct checkpoint_case c = { .version = 1,
				     .elems = 1000,
				     .pace = { .bytes_per_second = 50000 } };

	begin();
	uint64_t began_ns = mst_now_ns();
	CU_ASSERT_EQUAL(checkpoint_write(folder.root, &c, &why), 0);
	CU_ASSERT(mst_now_ns() - began_ns >= 180 * MST_MS);
	end();
}

/* ---- the directory ---- */

static void one_leader(void)
{
	struct mst_checkpoint_lock *first = NULL, *second = NULL;
	char dir[128], pid[32];

	begin();
	(void)snprintf(dir, sizeof(dir), "%s/state", folder.root);
	CU_ASSERT_EQUAL_FATAL(mst_checkpoint_lock(dir, &first, &why), 0);
	CU_ASSERT_EQUAL(mst_checkpoint_lock(dir, &second, &why), -EBUSY);
	(void)snprintf(pid, sizeof(pid), "process %ld,", (long)getpid());
	CU_ASSERT(checkpoint_says(why.text, pid));
	CU_ASSERT_EQUAL(mst_checkpoint_directory(dir, &why), 0);
	mst_checkpoint_unlock(first);
	CU_ASSERT_EQUAL(mst_checkpoint_lock(dir, &second, &why), 0);
	mst_checkpoint_unlock(second);
	mst_checkpoint_unlock(NULL);
	end();
}

static void directories_that_will_not_do(void)
{
	char path[128];

	begin();
	(void)snprintf(path, sizeof(path), "%s/no/such", folder.root);
	CU_ASSERT_EQUAL(mst_checkpoint_directory(path, &why), -ENOENT);
	CU_ASSERT(checkpoint_says(why.text, "above it does not exist"));
	fix_folder_put(&folder, "/file", "");
	(void)snprintf(path, sizeof(path), "%s/file", folder.root);
	CU_ASSERT_EQUAL(mst_checkpoint_directory(path, &why), -ENOTDIR);
	CU_ASSERT(checkpoint_says(why.text, "is not a directory"));
	CU_ASSERT_EQUAL(mst_checkpoint_directory("", &why), -EINVAL);
	if (geteuid() != 0) {
		(void)snprintf(path, sizeof(path), "%s/locked", folder.root);
		CU_ASSERT_EQUAL(mkdir(path, 0500), 0);
		CU_ASSERT_EQUAL(mst_checkpoint_directory(path, &why), -EACCES);
		CU_ASSERT(checkpoint_says(why.text, "cannot write to the directory"));
	}
	end();
}

static void too_full(void)
{
	struct mst_checkpoint_writing w = { 0 };
	struct mst_checkpoint_id id = { .job = "night",
					.save = "0123456789abcdef0123456789abcdef",
					.version = 1,
					.elems = UINT64_C(1) << 60 };
	struct mst_checkpoint_piece piece = { "", id.elems };
	struct mst_checkpoint_vector vector = { "parameters", MST_DTYPE_F32, &piece, 1 };
	struct mst_checkpoint_part part;

	begin();
	w = (struct mst_checkpoint_writing){
		.id = &id, .parts = 1, .count = id.elems, .vector = &vector, .vectors = 1
	};
	CU_ASSERT_EQUAL(mst_checkpoint_part_write(folder.root, &w, &part, &why), -ENOSPC);
	CU_ASSERT(checkpoint_says(why.text, "the file needs 4.0 EiB"));
	CU_ASSERT(mst_checkpoint_part_bytes(&w) > UINT64_C(4) << 60);
	end();
}

/* Return: what is said of a part that is not written; "": it is. */
static const char *refused_part(const struct mst_checkpoint_writing *w)
{
	struct mst_checkpoint_part part;

	why.text[0] = '\0';
	int rc = mst_checkpoint_part_write(folder.root, w, &part, &why);
	CU_ASSERT_EQUAL(rc, why.text[0] != '\0' ? -EINVAL : 0);
	return why.text;
}

static void arguments_that_do_not_fit(void)
{
	static const float memory[100];
	struct muster_tensor table[] = { { .first = 0, .count = 60 },
					 { .first = 60, .count = 40 } };
	struct mst_checkpoint_id id = { .job = "night",
					.save = "0123456789abcdef0123456789abcdef",
					.version = 1,
					.elems = 100 };
	struct mst_checkpoint_piece piece = { memory, 100 };
	struct mst_checkpoint_vector vector[] = { { "parameters", MST_DTYPE_F32, &piece, 1 },
						  { "momentum", MST_DTYPE_F32, &piece, 1 } };
	const struct mst_checkpoint_writing good = { .id = &id,
						     .parts = 1,
						     .count = 100,
						     .table = table,
						     .tensors = 2,
						     .vector = vector,
						     .vectors = 2 };
	struct mst_checkpoint_writing w = good;

	begin();
	CU_ASSERT_STRING_EQUAL(refused_part(&w), "");
	w.part = 1;
	CU_ASSERT(checkpoint_says(refused_part(&w), "there is no part 1 of 1"));
	w = good;
	w.first = 1;
	CU_ASSERT(checkpoint_says(refused_part(&w), "100 elements from 1 on"));
	w = good;
	w.vectors = 0;
	CU_ASSERT(checkpoint_says(refused_part(&w), "0 vectors"));
	w = good;
	piece.count = 99;
	CU_ASSERT(checkpoint_says(refused_part(&w), "the vector parameters has 99 elements"));
	piece.count = 100;
	vector[1].group = "parameters";
	CU_ASSERT(checkpoint_says(refused_part(&w), "cannot be the name of a vector"));
	vector[1].group = "a/b";
	CU_ASSERT(checkpoint_says(refused_part(&w), "\"a/b\" cannot be"));
	vector[1].group = "momentum";
	table[1].first = 61;
	CU_ASSERT(checkpoint_says(refused_part(&w), "tensor 1 of the job does not begin"));
	table[1].first = 60;
	w.tensors = 1;
	CU_ASSERT(checkpoint_says(refused_part(&w), "have 60 elements, and its vector has 100"));
	w = good;
	memcpy(id.save, "../../..", 8);
	CU_ASSERT(checkpoint_says(refused_part(&w), "a save id is 32 hexadecimal digits"));
	end();
}

/* The sentences of a range that a checkpoint does not have. */
static void ranges_that_are_not_there(void)
{
	struct mst_checkpoint_manifest m;
	static float into[1000];
	struct mst_checkpoint_loading what = { "squares", MST_DTYPE_F32, 0, 1000, into };

	begin();
	write_version(3, 2);
	mst_checkpoint_manifest_init(&m);
	CU_ASSERT_EQUAL_FATAL(mst_checkpoint_find(folder.root, &any, &m, &why), 0);
	CU_ASSERT_EQUAL(mst_checkpoint_load(folder.root, &m, &what, &why), -ENOENT);
	CU_ASSERT(checkpoint_says(why.text, "has no vector \"squares\""));
	what.group = "average";
	CU_ASSERT_EQUAL(mst_checkpoint_load(folder.root, &m, &what, &why), -EINVAL);
	CU_ASSERT(checkpoint_says(why.text, "is BF16, and F32 was asked for"));
	what.group = "momentum";
	what.first = 1;
	CU_ASSERT_EQUAL(mst_checkpoint_load(folder.root, &m, &what, &why), -EINVAL);
	CU_ASSERT(checkpoint_says(why.text, "1000 from 1 on were asked for"));
	mst_checkpoint_manifest_fini(&m);
	end();
}

static CU_TestInfo cases[] = {
	{ "arguments that do not fit are refused in words", arguments_that_do_not_fit },
	{ "ranges that are not there are refused in words", ranges_that_are_not_there },
	{ "what is written is read again", is_read_again },
	{ "three parts are read as any ranges", by_other_servers },
	{ "a manifest comes back", a_manifest_comes_back },
	{ "a manifest says which run it is of", a_manifest_says_which_run_it_is_of },
	{ "odd names of tensors become names that differ", odd_names },
	{ "a tensor that is cut is in both parts", a_tensor_is_cut },
	{ "two checkpoints are kept, and files of others", two_are_kept },
	{ "damaged checkpoints do not count as kept", damaged_ones_do_not_count },
	{ "a job that went back is found where it goes on", a_job_goes_back },
	{ "a writer stops when it is told to", is_stopped },
	{ "a writer is not faster than it may be", keeps_its_pace },
	{ "one leader has a directory", one_leader },
	{ "a directory that will not do is refused in words", directories_that_will_not_do },
	{ "a file that is too large for the disk is refused in words", too_full },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("checkpoint", cases);
}
