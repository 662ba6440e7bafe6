/* SPDX-License-Identifier: MIT */
/*
 * A file is on the disk before it has its name, and the name before the call returns. No test can
 * cut the power, so the calls that bring it there are looked at: which there are, of what, in which
 * order. (faults.checkpoints has the same order of a whole save, and what follows where one fails.)
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/checkpoint/safe_file.h"
#include "tests/fixtures.h"
#include "tests/ut.h"

enum step { WRITE, SYNC_FILE, RENAME, SYNC_DIRECTORY, UNLINK };

static enum step taken[16];
static size_t count;
static ino_t synced_file;
static bool fsync_fails;

static void take(enum step step)
{
	CU_ASSERT_FATAL(count < sizeof(taken) / sizeof(taken[0]));
	taken[count++] = step;
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
	struct stat at;

	CU_ASSERT_EQUAL_FATAL(fstat(fd, &at), 0);
	take(S_ISDIR(at.st_mode) ? SYNC_DIRECTORY : SYNC_FILE);
	if (!S_ISDIR(at.st_mode))
		synced_file = at.st_ino;
	if (!fsync_fails)
		return __real_fsync(fd);
	errno = EIO;
	return -1;
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
	take(RENAME);
	return __real_rename(from, to);
}

ssize_t __real_pwrite(int fd, const void *from, size_t bytes, off_t at);
ssize_t __wrap_pwrite(int fd, const void *from, size_t bytes, off_t at);
ssize_t __wrap_pwrite(int fd, const void *from, size_t bytes, off_t at)
{
	take(WRITE);
	return __real_pwrite(fd, from, bytes, at);
}

int __real_unlink(const char *path);
int __wrap_unlink(const char *path);
int __wrap_unlink(const char *path)
{
	take(UNLINK);
	return __real_unlink(path);
}

static bool took(const enum step *wanted, size_t n)
{
	return count == n && memcmp(taken, wanted, n * sizeof(*wanted)) == 0;
}
#define TOOK(...)                                                                                  \
	took((const enum step[]){ __VA_ARGS__ },                                                   \
	     sizeof((const enum step[]){ __VA_ARGS__ }) / sizeof(enum step))

static struct mst_reason why;

/* In a folder: writes a file in two pieces. Return: what its commit returned. */
static int write_file(const struct fix_folder *folder, struct mst_safe_file *f)
{
	count = 0;
	CU_ASSERT_EQUAL_FATAL(mst_safe_file_open(f, folder->root, "file", 8, &why), 0);
	CU_ASSERT_EQUAL(mst_safe_file_write(f, 0, "abcd", 4), 0);
	CU_ASSERT_EQUAL(mst_safe_file_write(f, 4, "efgh", 4), 0);
	return mst_safe_file_commit(f);
}

static void on_the_disk_before_it_has_its_name(void)
{
	struct fix_folder folder;
	struct mst_safe_file f;
	struct stat at;

	fix_folder_new(&folder);
	CU_ASSERT_EQUAL(write_file(&folder, &f), 0);
	CU_ASSERT(TOOK(WRITE, WRITE, SYNC_FILE, RENAME, SYNC_DIRECTORY));
	CU_ASSERT_EQUAL_FATAL(stat(f.path, &at), 0);
	CU_ASSERT_EQUAL(at.st_ino, synced_file);
	CU_ASSERT_EQUAL(at.st_size, 8);
	fix_folder_free(&folder);
}

static void what_is_not_on_the_disk_gets_no_name(void)
{
	struct fix_folder folder;
	struct mst_safe_file f;

	fix_folder_new(&folder);
	fsync_fails = true;
	CU_ASSERT_EQUAL(write_file(&folder, &f), -EIO);
	fsync_fails = false;
	CU_ASSERT(TOOK(WRITE, WRITE, SYNC_FILE));
	mst_safe_file_abandon(&f);
	CU_ASSERT(TOOK(WRITE, WRITE, SYNC_FILE, UNLINK));
	CU_ASSERT_EQUAL(access(f.path, F_OK), -1);
	CU_ASSERT_EQUAL(access(f.temporary, F_OK), -1);
	fix_folder_free(&folder);
}

/* The kernel would send SIGXFSZ in the middle of the file. */
static void longer_than_the_limit_is_refused_before(void)
{
	struct fix_folder folder;
	struct mst_safe_file f;
	struct rlimit was, low;

	fix_folder_new(&folder);
	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_FSIZE, &was), 0);
	low = (struct rlimit){ 4096, was.rlim_max };
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &low), 0);
	CU_ASSERT_EQUAL(mst_safe_file_open(&f, folder.root, "file", 4097, &why), -EFBIG);
	CU_ASSERT_EQUAL(mst_safe_file_open(&f, folder.root, "file", 4096, &why), 0);
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &was), 0);
	mst_safe_file_abandon(&f);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "/file: "));
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "RLIMIT_FSIZE"));
	fix_folder_free(&folder);
}

static CU_TestInfo cases[] = {
	{ "a file is on the disk before it has its name, and then its name is",
	  on_the_disk_before_it_has_its_name },
	{ "what could not be brought to the disk gets no name",
	  what_is_not_on_the_disk_gets_no_name },
	{ "what is longer than the limit of files is refused before",
	  longer_than_the_limit_is_refused_before },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("files on the disk", cases);
}
