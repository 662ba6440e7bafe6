/* SPDX-License-Identifier: MIT */
/* A disk that does not answer. A FIFO that nobody reads stands in the place of a file: to open it
 * takes until somebody does. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/checkpoint/names.h"
#include "server/archive_files.h"
#include "tests/fixtures.h"
#include "tests/ut.h"

#define ELEMS 8u
#define HANG_NS (60 * MST_SECOND)

static struct fix_folder folder;
static struct mst_archive_files *files;
static struct mst_archive *archive;
static char log_path[96], file[MST_CHECKPOINT_FILE_LEN], fifo[256];
static int stderr_before;

static void wake(void *ctx)
{
	(void)ctx;
}

/* @silence_ns: that is worth a warning. */
static void begin(uint64_t silence_ns)
{
	struct mst_archive_files_cfg cfg = {
		.dir = folder.root, .leads = true, .silence_ns = silence_ns, .wake = wake
	};
	struct mst_reason why;

	fix_folder_new(&folder);
	(void)snprintf(log_path, sizeof(log_path), "%s/log", folder.root);
	int fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	stderr_before = dup(STDERR_FILENO);
	CU_ASSERT_FATAL(fd >= 0 && stderr_before >= 0);
	dup2(fd, STDERR_FILENO);
	close(fd);
	CU_ASSERT_EQUAL_FATAL(mst_archive_files_start(&cfg, &files, &why), 0);
	archive = mst_archive_files_archive(files);
}

static void end(void)
{
	(void)mst_archive_files_stop(files);
	dup2(stderr_before, STDERR_FILENO);
	close(stderr_before);
	fix_folder_free(&folder);
}

static void put_fifo(void)
{
	(void)snprintf(fifo, sizeof(fifo), "%s/%s.tmp", folder.root, file);
	CU_ASSERT_EQUAL_FATAL(mkfifo(fifo, 0600), 0);
}

/* How often the log has these words. */
static unsigned said(const char *words)
{
	static char text[65536];
	unsigned count = 0;
	FILE *f = fopen(log_path, "re");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	(void)fclose(f);
	for (const char *at = text; (at = strstr(at, words)) != NULL; at++)
		count++;
	return count;
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000 * 1000 }, NULL);
}

/* As the control thread does it, until the log has so many of them; the work must not end. */
static void look_until_said(const char *words, unsigned count)
{
	uint64_t until_ns = mst_deadline_ns(HANG_NS);
	struct mst_archive_end none;

	while (said(words) < count && mst_left_ns(until_ns) > 0) {
		CU_ASSERT_FALSE_FATAL(archive->ops->ended(archive, &none));
		nap();
	}
	CU_ASSERT_TRUE_FATAL(said(words) >= count);
}

static struct mst_archive_end look_until_ended(void)
{
	uint64_t until_ns = mst_deadline_ns(HANG_NS);
	struct mst_archive_end found = { 0 };

	while (!archive->ops->ended(archive, &found)) {
		CU_ASSERT_TRUE_FATAL(mst_left_ns(until_ns) > 0);
		nap();
	}
	return found;
}

/* The disk answers: the file can be opened, though not be brought to it. */
static void answer(void)
{
	int fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	CU_ASSERT_TRUE_FATAL(fd >= 0);
	struct mst_archive_end found = look_until_ended();
	CU_ASSERT_TRUE(found.error < 0 && found.why.text[0] != '\0');
	close(fd);
}

static float values[ELEMS];
static const struct mst_checkpoint_piece piece = { values, ELEMS };
static const struct mst_checkpoint_vector vector = { "parameters", MST_DTYPE_F32, &piece, 1 };
static const struct mst_checkpoint_id id = {
	.job = "night", .save = "0123456789abcdef0000000000000005", .version = 5, .elems = ELEMS
};
static const struct mst_checkpoint_writing part = {
	.id = &id, .parts = 1, .count = ELEMS, .vector = &vector, .vectors = 1
};

/* Makes a manifest of a job where workers own: it is the whole checkpoint. */
static void make_manifest(struct mst_checkpoint_manifest *m)
{
	mst_checkpoint_manifest_init(m);
	m->id = id;
	m->owner = MUSTER_WORKERS_OWN;
	m->workers = 1;
	(void)snprintf(m->policy, sizeof(m->policy), "bsp");
}

static void a_part_that_hangs_is_named_again_and_again(void)
{
	begin(1);
	mst_checkpoint_part_name(&id, 0, 1, file);
	put_fifo();
	archive->ops->write(archive, &part);
	look_until_said("has not answered", 2);
	CU_ASSERT_TRUE(said(file) >= 2);
	CU_ASSERT_EQUAL(said("answers again"), 0);
	answer();
	CU_ASSERT_EQUAL(said("answers again"), 1);
	archive->ops->write(archive, &part); /* the FIFO has been removed with what failed */
	CU_ASSERT_EQUAL(look_until_ended().error, 0);
	end();
}

static void a_manifest_that_hangs_is_named(void)
{
	struct mst_checkpoint_manifest m;

	make_manifest(&m);
	begin(1);
	mst_checkpoint_manifest_name(id.version, file);
	put_fifo();
	archive->ops->complete(archive, &m);
	look_until_said(file, 1);
	answer();
	archive->ops->complete(archive, &m);
	CU_ASSERT_EQUAL(look_until_ended().error, 0);
	end();
	mst_checkpoint_manifest_fini(&m);
}

static void a_disk_that_answers_in_time_is_not_mentioned(void)
{
	struct mst_checkpoint_manifest m;

	make_manifest(&m);
	begin(MST_NEVER);
	archive->ops->write(archive, &part);
	CU_ASSERT_EQUAL(look_until_ended().error, 0);
	archive->ops->complete(archive, &m);
	CU_ASSERT_EQUAL(look_until_ended().error, 0);
	CU_ASSERT_EQUAL(said("the disk"), 0);
	end();
	mst_checkpoint_manifest_fini(&m);
}

static CU_TestInfo cases[] = {
	{ "a part that hangs is named again and again",
	  a_part_that_hangs_is_named_again_and_again },
	{ "a manifest that hangs is named", a_manifest_that_hangs_is_named },
	{ "a disk that answers in time is not mentioned",
	  a_disk_that_answers_in_time_is_not_mentioned },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("archive_files", cases);
}
