/* SPDX-License-Identifier: MIT */
/* Each call that writing or reading a checkpoint makes fails in turn, or is the last one of its
 * process: the checkpoint before is whole, and what failed is said. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/checkpoint/keep.h"
#include "common/checkpoint/lock.h"
#include "tests/faults/scenario.h"
#include "tests/fixtures.h"
#include "tests/unit/common/checkpoint/checkpoint_case.h"
#include "tests/ut.h"

enum { SERVER = 1 };

#define ELEMS UINT64_C(600)
#define MOST 80u

static struct fix_folder model, folder;
static struct mst_reason why;
static bool refused;

/* Versions 1 and 2, and an orphan that is older than what will be written. Made once, for the disk
 * takes its time. */
static void model_make(void)
{
	struct checkpoint_case c = { .elems = ELEMS, .parts = 2 };

	fix_folder_new(&model);
	fix_folder_put(&model, "/v0000000002-01234567.part1-of-2.safetensors", "an orphan");
	for (c.version = 1; c.version <= 2; c.version++)
		CU_ASSERT_EQUAL_FATAL(checkpoint_write(model.root, &c, &why), 0);
}

/* A folder with the files of the model. No file is ever changed, so that they can be linked. */
static void prepare(void)
{
	const struct dirent *entry;
	char from[384], to[384];

	fix_folder_new(&folder);
	DIR *dir = opendir(model.root);
	CU_ASSERT_PTR_NOT_NULL_FATAL(dir);
	while ((entry = readdir(dir)) != NULL) {
		(void)snprintf(from, sizeof(from), "%s/%s", model.root, entry->d_name);
		(void)snprintf(to, sizeof(to), "%s/%s", folder.root, entry->d_name);
		if (entry->d_name[0] != '.')
			CU_ASSERT_EQUAL(link(from, to), 0);
	}
	closedir(dir);
}

/* What a leader does: lock, write, keep two. Return: 0 or the first failure. */
static int save(void)
{
	struct checkpoint_case c = { .version = 3, .elems = ELEMS, .parts = 2 };
	struct mst_checkpoint_lock *lock = NULL;
	int rc = mst_checkpoint_lock(folder.root, &lock, &why);

	if (rc == 0)
		rc = checkpoint_write(folder.root, &c, &why);
	if (rc == 0)
		rc = mst_checkpoint_keep(folder.root, 2, &why);
	mst_checkpoint_unlock(lock);
	return rc;
}

static void remember(void *arg, uint64_t version, const char *sentence)
{
	(void)arg, (void)version;
	refused = strlen(sentence) > 10;
}

/* Return: the version that a new leader goes on from, or the failure. */
static int64_t resume(void)
{
	struct mst_checkpoint_wanted wanted = { .job = "night", .refused = remember };
	struct mst_checkpoint_manifest m;

	refused = false;
	mst_checkpoint_manifest_init(&m);
	int rc = mst_checkpoint_find(folder.root, &wanted, &m, &why);
	if (rc == 0)
		rc = checkpoint_read(folder.root, &m, 100, 400, &why);
	int64_t version = (int64_t)m.id.version;
	mst_checkpoint_manifest_fini(&m);
	return rc == 0 ? version : rc;
}

static bool is_whole(uint64_t version)
{
	struct mst_checkpoint_manifest m;

	mst_checkpoint_manifest_init(&m);
	int rc = mst_checkpoint_manifest_read(folder.root, version, &m, &why);
	if (rc == 0)
		rc = mst_checkpoint_check(folder.root, &m, &why);
	if (rc == 0)
		rc = checkpoint_read(folder.root, &m, 0, ELEMS, &why);
	mst_checkpoint_manifest_fini(&m);
	return rc == 0;
}

static unsigned temporary_files(void)
{
	DIR *dir = opendir(folder.root);
	const struct dirent *entry;
	unsigned count = 0;

	while (dir != NULL && (entry = readdir(dir)) != NULL)
		count += strstr(entry->d_name, ".tmp") != NULL;
	if (dir != NULL)
		closedir(dir);
	return count;
}

/* ---- calls that fail ---- */

static void save_once(void)
{
	prepare();
	why.text[0] = '\0';
	faulty_enter(SERVER);
	int rc = save();
	faulty_enter(FAULTY_NOBODY);
	scenario_holds(rc <= 0 && rc > -4096, "the result is an error number");
	scenario_holds(rc == 0 || faulty_struck(), "without a fault it is written");
	scenario_holds(rc == 0 || strlen(why.text) > 20, "a failure comes with a sentence");
	scenario_holds(temporary_files() == 0, "no temporary file is left");
	scenario_holds(is_whole(2), "the checkpoint before is whole");
	int64_t version = resume();
	scenario_holds(version == 3 || (rc != 0 && version == 2),
		       "the newest that is whole is found");
	if (!faulty_struck()) /* what cannot be looked at is no reason to remove anything */
		scenario_holds(!is_whole(1), "the oldest is removed");
	fix_folder_free(&folder);
}

static void a_save_that_fails(void)
{
	struct scenario s = { .name = "save",
			      .side = SERVER,
			      .most = MOST,
			      .patience_ns = 60 * MST_SECOND,
			      .run = save_once };

	CU_ASSERT(scenario_play(&s) >= 40);
}

static void resume_once(void)
{
	faulty_enter(SERVER);
	int64_t version = resume();
	faulty_enter(FAULTY_NOBODY);
	scenario_holds(version > 0 || faulty_struck(), "without a fault it is read");
	scenario_holds(version > 0 || strlen(why.text) > 20, "a failure comes with a sentence");
	scenario_holds(version <= 0 || version == 2 || refused,
		       "that an older one is taken is said");
	scenario_holds(version != -EILSEQ, "wrong elements are never taken for right ones");
}

static void a_resume_that_fails(void)
{
	struct scenario s = { .name = "resume",
			      .side = SERVER,
			      .most = MOST,
			      .patience_ns = 60 * MST_SECOND,
			      .run = resume_once };

	prepare();
	CU_ASSERT(scenario_play(&s) >= 20);
	fix_folder_free(&folder);
}

/* Has a call of a resume fail with an errno that says nothing of what the file contains. Return:
 * whether there was such a call. */
static bool unread_once(enum faulty_call call, unsigned n, int error)
{
	why.text[0] = '\0';
	faulty_arm(SERVER, call, n);
	faulty_leave(error);
	faulty_enter(SERVER);
	int64_t version = resume();
	faulty_enter(FAULTY_NOBODY);
	bool struck = faulty_struck();
	faulty_disarm();
	if (!struck) {
		CU_ASSERT_EQUAL(version, 2);
		return false;
	}
	CU_ASSERT_EQUAL(version, -error);
	CU_ASSERT(!refused);
	CU_ASSERT(checkpoint_says(why.text, strerror(error)));
	return true;
}

/* Where rights are wrong or the network is gone for a moment, the newest may be whole: no older one
 * is taken instead. */
static void what_cannot_be_looked_at_is_not_given_up(void)
{
	static const int errors[] = { EACCES, EPERM, ESTALE, ETIMEDOUT };
	static const enum faulty_call calls[] = { FAULTY_open, FAULTY_fstat, FAULTY_pread };
	unsigned struck = 0;

	prepare();
	for (unsigned e = 0; e < 4; e++) {
		for (unsigned c = 0; c < 3; c++) {
			unsigned n = 1;
			while (n < MOST && unread_once(calls[c], n, errors[e]))
				n++;
			CU_ASSERT(n > 1);
			struck += n - 1;
		}
	}
	printf("%u calls ", struck);
	faulty_arm(SERVER, FAULTY_open, 2); /* the first is of the manifest */
	faulty_leave(EACCES);
	faulty_enter(SERVER);
	CU_ASSERT_EQUAL(resume(), -EACCES);
	faulty_enter(FAULTY_NOBODY);
	faulty_disarm();
	CU_ASSERT(checkpoint_says(why.text, "cannot open "));
	CU_ASSERT(checkpoint_says(why.text,
				  ".safetensors: Permission denied; so nobody knows whether"));
	CU_ASSERT(checkpoint_says(why.text, "v0000000002.json away, to go on from an older one"));
	fix_folder_free(&folder);
}

/* ---- what is on the disk before what ---- */

/* Has a call fail. Return: how many times something was brought to the disk before. */
static unsigned syncs_before(enum faulty_call call, unsigned n)
{
	prepare();
	faulty_arm(SERVER, call, n);
	faulty_enter(SERVER);
	CU_ASSERT(save() != 0);
	faulty_enter(FAULTY_NOBODY);
	faulty_disarm();
	fix_folder_free(&folder);
	return faulty_made(FAULTY_fsync);
}

/* A file is on the disk before it has its name, and its name before the next file is; so is the
 * removal of a manifest before that of a part. Three files are written: two parts, a manifest. */
static void the_order_on_the_disk(void)
{
	for (unsigned n = 1; n <= 3; n++)
		CU_ASSERT_EQUAL(syncs_before(FAULTY_rename, n), 2 * n - 1);
	CU_ASSERT_EQUAL(syncs_before(FAULTY_unlink, 1), 6);
	CU_ASSERT_EQUAL(syncs_before(FAULTY_unlink, 2), 7);
}

/* A disk that has room and is full all the same. */
static void figures_of_a_full_disk(void)
{
	(void)syncs_before(FAULTY_pwrite, 2); /* the first writes the pid of the lock */
	CU_ASSERT(checkpoint_says(why.text, "No space left on device; the file needs 7096 bytes"));
	CU_ASSERT(checkpoint_says(why.text, "and the disk reports "));
	CU_ASSERT(checkpoint_says(why.text, ".safetensors"));
}

/* ---- a process that is killed ---- */

/* Before the n-th call of a kind. Return: whether there was such a call. */
static bool kill_once(enum faulty_call call, unsigned n)
{
	int status = 0;

	prepare();
	(void)fflush(stdout);
	faulty_arm(SERVER, call, n);
	pid_t child = fork();
	CU_ASSERT_FATAL(child >= 0);
	if (child == 0) {
		faulty_kill();
		faulty_enter(SERVER);
		_exit(save() == 0 ? 0 : 1);
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	scenario_holds(killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0),
		       "a process that is not killed writes it");
	scenario_holds(is_whole(2), "the checkpoint before is whole");
	scenario_holds(resume() >= 2, "the newest that is whole is found");
	scenario_holds(!refused, "what is not whole is not listed");
	why.text[0] = '\0';
	scenario_holds(save() == 0, "the next process writes it");
	scenario_holds(resume() == 3 && is_whole(2) && !is_whole(1), "the newest two are kept");
	fix_folder_free(&folder);
	faulty_disarm();
	return killed;
}

static void a_save_that_is_killed(void)
{
	unsigned kills = 0;

	for (unsigned call = 0; call < FAULTY_CALL_COUNT; call++) {
		unsigned n = 1;
		while (n < MOST && kill_once((enum faulty_call)call, n))
			n++;
		kills += n - 1;
	}
	printf("killed %u times ", kills);
	CU_ASSERT(kills >= 40);
}

static void model_remove(void)
{
	prepare();
	CU_ASSERT(is_whole(1) && is_whole(2));
	fix_folder_free(&folder);
	fix_folder_free(&model);
}

static CU_TestInfo cases[] = {
	{ "two checkpoints are made for the cases below", model_make },
	{ "a save that fails is said, and leaves what was there", a_save_that_fails },
	{ "a resume that fails is said", a_resume_that_fails },
	{ "what cannot be looked at is not given up for an older one",
	  what_cannot_be_looked_at_is_not_given_up },
	{ "files are on the disk before their names, and in their order", the_order_on_the_disk },
	{ "a full disk is told with its figures", figures_of_a_full_disk },
	{ "a save that is killed at any call leaves what was there", a_save_that_is_killed },
	{ "nothing has changed a file of these", model_remove },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return ut_main("checkpoints that meet faults", cases);
}
