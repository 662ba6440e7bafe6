/* SPDX-License-Identifier: MIT */
/* What is written is read again, by any number of servers, and the newest is found. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/checkpoint/keep.h"
#include "common/checkpoint/lock.h"
#include "common/checkpoint/names.h"
#include "common/checkpoint/part_file.h"
#include "tests/fixtures.h"
#include "tests/unit/common/checkpoint/checkpoint_case.h"
#include "tests/ut.h"

static struct fix_folder folder;
static char why[MST_CHECKPOINT_WHY_LEN];

static void begin(void)
{
	fix_folder_new(&folder);
	why[0] = '\0';
}

static void end(void)
{
	fix_folder_free(&folder);
}

static void write_version(uint64_t version, uint32_t parts)
{
	struct checkpoint_case c = { .version = version, .elems = 1000, .parts = parts };

	CU_ASSERT_EQUAL_FATAL(checkpoint_write(folder.root, &c, why, sizeof(why)), 0);
}

/* Return: the version that is found, or -errno. */
static int64_t newest(const struct mst_checkpoint_wanted *wanted)
{
	struct mst_checkpoint_manifest m;

	mst_checkpoint_manifest_init(&m);
	int rc = mst_checkpoint_find(folder.root, wanted, &m, why, sizeof(why));
	int64_t version = (int64_t)m.id.version;
	mst_checkpoint_manifest_fini(&m);
	return rc == 0 ? version : rc;
}

static const struct mst_checkpoint_wanted any = { 0 };

static int versions(void)
{
	uint64_t *version = NULL;
	int count = mst_checkpoint_versions(folder.root, &version, why, sizeof(why));

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
	CU_ASSERT_EQUAL_FATAL(mst_checkpoint_find(folder.root, &any, &m, why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(m.id.version, 123);
	CU_ASSERT_EQUAL(m.samples, 320 * 123);
	CU_ASSERT_EQUAL(m.workers, 8);
	CU_ASSERT_EQUAL(m.type, MUSTER_BF16);
	CU_ASSERT_STRING_EQUAL(m.policy, "backup:6");
	CU_ASSERT_STRING_EQUAL(m.muster, MST_VERSION);
	CU_ASSERT_EQUAL(mst_values_u64(&m.values, "ledger.clock", &clock), 0);
	CU_ASSERT_EQUAL(clock, 123);
	CU_ASSERT_EQUAL(checkpoint_read(folder.root, &m, 0, 1000, why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(mst_checkpoint_verify(folder.root, &m, why, sizeof(why)), 0);
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
		CU_ASSERT_EQUAL_FATAL(checkpoint_write(folder.root, &c, why, sizeof(why)), 0);
		mst_checkpoint_manifest_init(&m);
		CU_ASSERT_EQUAL_FATAL(mst_checkpoint_find(folder.root, &any, &m, why, sizeof(why)),
				      0);
		CU_ASSERT_EQUAL(m.parts, 3);
		for (uint64_t first = 0; first < 1000; first += 125)
			for (uint64_t count = 0; first + count <= 1000; count += 125)
				CU_ASSERT_EQUAL(checkpoint_read(folder.root, &m, first, count, why,
								sizeof(why)),
						0);
		CU_ASSERT_EQUAL(checkpoint_read(folder.root, &m, 333, 1, why, sizeof(why)), 0);
		mst_checkpoint_manifest_fini(&m);
		end();
	}
}

static CU_TestInfo cases[] = {
	{ "what is written is read again", is_read_again },
	{ "three parts are read as any ranges", by_other_servers },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	(void)newest, (void)versions, (void)exists;
	return ut_main("checkpoint", cases);
}
