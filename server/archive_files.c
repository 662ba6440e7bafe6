/* SPDX-License-Identifier: MIT */
#include "server/archive_files.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/eventcount.h"
#include "common/base/log.h"
#include "common/checkpoint/find.h"
#include "common/checkpoint/keep.h"
#include "common/checkpoint/lock.h"
#include "common/checkpoint/names.h"
#include "common/host/tasks.h"

/* Checkpoints that stay. */
#define KEPT 2u
/* How long a disk that does not answer is waited for at the end. */
#define GRACE_NS (5 * MST_SECOND)
/* How often a lock that another process has is looked at. */
#define LOCK_LOOK_NS (20 * MST_MS)
/* What counts at most between two looks at the disk: in a longer time this server stood still. */
#define LOOK_MOST_NS MST_SECOND

enum phase { RESTS, ASKED, DONE };

struct mst_archive_files {
	struct mst_archive archive; /* first */
	struct mst_archive_files_cfg cfg;
	char *dir; /* outlives the options, where a disk that does not answer is left behind */
	struct mst_checkpoint_lock *lock; /* NULL: this server does not lead */
	pthread_t thread;
	struct mst_eventcount asked, ends;
	_Atomic bool stop, ended;
	_Atomic bool hurry;                        /* no pace is kept any more */
	_Atomic uint64_t answered_ns;              /* when the disk last took something */
	_Atomic int phase;                         /* enum phase: who may use what follows */
	const struct mst_checkpoint_writing *part; /* NULL: a manifest is to be written */
	struct mst_checkpoint_manifest *manifest;
	struct mst_archive_end end;
	struct mst_checkpoint_part own; /* this server's part, as it was written last */
	/* The work that is under way, as the control thread sees it: */
	uint64_t asked_ns;
	uint64_t looked_ns; /* when it last looked at the disk */
	uint64_t heard_ns;  /* answered_ns, as it was then */
	uint64_t silent_ns; /* how long the disk has not answered since, as far as looks tell */
	uint64_t warn_ns;   /* after so long a silence there is a warning */
	bool warned;        /* there was one */
};

static struct mst_archive_files *files_of(struct mst_archive *a)
{
	return (struct mst_archive_files *)a;
}

/* ---- the control thread ---- */

static void ask(struct mst_archive_files *f)
{
	MST_ASSERT(atomic_load_explicit(&f->phase, memory_order_relaxed) == RESTS);
	f->asked_ns = f->looked_ns = mst_now_ns();
	f->heard_ns = 0;
	f->warned = false;
	atomic_store_explicit(&f->answered_ns, f->asked_ns, memory_order_relaxed);
	/* Release: pairs with has_work(). */
	atomic_store_explicit(&f->phase, ASKED, memory_order_release);
	mst_eventcount_open(&f->asked);
}

static void files_write(struct mst_archive *a, const struct mst_checkpoint_writing *part)
{
	struct mst_archive_files *f = files_of(a);

	f->part = part;
	ask(f);
}

static void files_complete(struct mst_archive *a, struct mst_checkpoint_manifest *manifest)
{
	struct mst_archive_files *f = files_of(a);

	f->part = NULL;
	f->manifest = manifest;
	ask(f);
}

static double seconds(uint64_t ns)
{
	return (double)ns / (double)MST_SECOND;
}

static void name_file(const struct mst_archive_files *f, char *out, size_t len)
{
	const struct mst_checkpoint_writing *p = f->part;
	char name[MST_CHECKPOINT_FILE_LEN];

	if (p != NULL)
		mst_checkpoint_part_name(p->id, p->part, p->parts, name);
	else
		mst_checkpoint_manifest_name(f->manifest->id.version, name);
	(void)snprintf(out, len, "%s/%s", f->dir, name);
}

/* Each warning of the same silence comes after twice as long as the one before. */
static void look_at_disk(struct mst_archive_files *f)
{
	uint64_t answered_ns = atomic_load_explicit(&f->answered_ns, memory_order_relaxed);
	uint64_t now_ns = mst_now_ns(), past_ns = now_ns - f->looked_ns;
	char path[512];

	f->looked_ns = now_ns;
	if (answered_ns != f->heard_ns) {
		f->heard_ns = answered_ns;
		f->silent_ns = 0;
		f->warn_ns = f->cfg.silence_ns;
		return;
	}
	f->silent_ns += past_ns < LOOK_MOST_NS ? past_ns : LOOK_MOST_NS;
	if (f->cfg.silence_ns == 0 || f->silent_ns < f->warn_ns)
		return;
	f->warn_ns = 2 * f->silent_ns;
	f->warned = true;
	name_file(f, path, sizeof(path));
	mst_warn("the disk has not answered for %.3g s while %s is written, which was begun "
		 "%.3g s ago; the job goes on, and there are no newer checkpoints until it "
		 "answers: see whether its file system hangs or is overloaded",
		 seconds(f->silent_ns), path, seconds(now_ns - f->asked_ns));
}

static bool files_ended(struct mst_archive *a, struct mst_archive_end *out)
{
	struct mst_archive_files *f = files_of(a);
	char path[512];

	/* Acquire: pairs with do_work(). */
	int phase = atomic_load_explicit(&f->phase, memory_order_acquire);
	if (phase == ASKED)
		look_at_disk(f);
	if (phase != DONE)
		return false;
	if (f->warned) {
		name_file(f, path, sizeof(path));
		mst_warn("the disk answers again: writing %s has %s after %.3g s", path,
			 f->end.error == 0 ? "ended" : "failed",
			 seconds(mst_now_ns() - f->asked_ns));
	}
	*out = f->end;
	atomic_store_explicit(&f->phase, RESTS, memory_order_relaxed);
	return true;
}

static void files_hurry(struct mst_archive *a)
{
	atomic_store_explicit(&files_of(a)->hurry, true, memory_order_relaxed);
}

static const struct mst_archive_ops ops = { files_write, files_complete, files_hurry, files_ended };

/* ---- the thread ---- */

static bool is_stopped(const struct mst_archive_files *f)
{
	return atomic_load_explicit(&f->stop, memory_order_relaxed);
}

/* A part while it is written, asked between two blocks. */
struct paced_part {
	struct mst_archive_files *of;
	struct mst_checkpoint_writing writing;
};

static bool stops(void *arg)
{
	struct paced_part *p = arg;

	atomic_store_explicit(&p->of->answered_ns, mst_now_ns(), memory_order_relaxed);
	if (atomic_load_explicit(&p->of->hurry, memory_order_relaxed))
		p->writing.pace.bytes_per_second = 0;
	return is_stopped(p->of);
}

static int write_part(struct mst_archive_files *f)
{
	struct paced_part part = { f, *f->part };

	part.writing.pace.stops = stops;
	part.writing.pace.arg = &part;
	int rc = mst_checkpoint_part_write(f->dir, &part.writing, &f->own, &f->end.why);
	f->end.bytes = rc == 0 ? f->own.bytes : 0;
	return rc;
}

/* The other servers have written their parts to the same directory. */
static int take_parts(struct mst_archive_files *f)
{
	struct mst_checkpoint_manifest *m = f->manifest;
	int rc = 0;

	for (uint32_t i = 0; i < m->parts && rc == 0; i++) {
		rc = i == 0 ? 0
			    : mst_checkpoint_part_find(f->dir, &m->id, i, m->parts, &m->part[i],
						       &f->end.why);
		if (i == 0)
			m->part[0] = f->own;
		f->end.bytes += m->part[i].bytes;
	}
	return rc;
}

static void remove_old(const struct mst_archive_files *f)
{
	struct mst_reason why;

	if (mst_checkpoint_keep(f->dir, KEPT, &why) != 0)
		mst_warn("old checkpoints stay: %s", why.text);
}

static int write_manifest(struct mst_archive_files *f)
{
	int rc = take_parts(f);

	if (rc == 0)
		rc = mst_checkpoint_check(f->dir, f->manifest, &f->end.why);
	if (rc == 0)
		rc = mst_checkpoint_manifest_write(f->dir, f->manifest, &f->end.why);
	if (rc == 0)
		remove_old(f);
	return rc;
}

static void do_work(struct mst_archive_files *f)
{
	f->end = (struct mst_archive_end){ 0 };
	f->end.error = f->part != NULL ? write_part(f) : write_manifest(f);
	/* Release: pairs with files_ended(). */
	atomic_store_explicit(&f->phase, DONE, memory_order_release);
	f->cfg.wake(f->cfg.wake_ctx);
}

static bool has_work(const struct mst_archive_files *f)
{
	/* Acquire: pairs with ask(). */
	return atomic_load_explicit(&f->phase, memory_order_acquire) == ASKED;
}

static void *files_main(void *arg)
{
	struct mst_archive_files *f = arg;

	while (!is_stopped(f)) {
		if (has_work(f))
			do_work(f);
		mst_eventcount_shut(&f->asked);
		if (has_work(f) || is_stopped(f))
			mst_eventcount_leave(&f->asked);
		else
			mst_eventcount_wait(&f->asked, MST_SECOND);
	}
	/* Release: pairs with mst_archive_files_stop(). */
	atomic_store_explicit(&f->ended, true, memory_order_release);
	mst_eventcount_open(&f->ends);
	return NULL;
}

/* ---- beginning and end ---- */

static int start_thread(struct mst_archive_files *f, struct mst_reason *why)
{
	struct mst_reason cause;
	sigset_t all, before;

	sigfillset(&all); /* the control thread handles signals */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = -pthread_create(&f->thread, NULL, files_main, f);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0)
		mst_reason_set(why, "cannot start the thread that writes checkpoints: %s",
			       mst_host_tasks_failed(rc, &cause));
	return rc;
}

/* A server that takes the place of another may be there before the other has ended. */
static int take_lock(struct mst_archive_files *f, struct mst_reason *why)
{
	const struct mst_archive_files_cfg *cfg = &f->cfg;
	uint64_t until_ns = cfg->wait_ns != 0 ? mst_deadline_ns(cfg->wait_ns) : MST_NEVER;
	bool told = false;
	int rc;

	while ((rc = mst_checkpoint_lock(f->dir, &f->lock, why)) == -EBUSY && cfg->waits &&
	       mst_left_ns(until_ns) > 0 && !cfg->is_stopped(cfg->wake_ctx)) {
		if (!told)
			mst_info("waiting for the other process (--join-timeout): %s", why->text);
		told = true;
		mst_sleep_ns(LOCK_LOOK_NS);
	}
	if (rc == 0 && told)
		mst_info("the other process has ended, and %s is this server's", f->dir);
	return rc;
}

int mst_archive_files_start(const struct mst_archive_files_cfg *cfg, struct mst_archive_files **out,
			    struct mst_reason *why)
{
	struct mst_archive_files *f = calloc(1, sizeof(*f));

	if (f == NULL) {
		mst_reason_set(why, "no memory to write checkpoints to %s", cfg->dir);
		return -ENOMEM;
	}
	f->archive.ops = &ops;
	f->cfg = *cfg;
	f->dir = strdup(cfg->dir);
	int rc = f->dir == NULL ? -ENOMEM : 0;
	if (rc != 0)
		mst_reason_set(why, "no memory to write checkpoints to %s", cfg->dir);
	if (rc == 0)
		rc = cfg->leads ? take_lock(f, why) : mst_checkpoint_directory(cfg->dir, why);
	if (rc == 0)
		rc = start_thread(f, why);
	if (rc != 0) {
		mst_checkpoint_unlock(f->lock);
		free(f->dir);
		free(f);
		return rc;
	}
	*out = f;
	return 0;
}

struct mst_archive *mst_archive_files_archive(struct mst_archive_files *f)
{
	return &f->archive;
}

bool mst_archive_files_stop(struct mst_archive_files *f)
{
	uint64_t until_ns = mst_deadline_ns(GRACE_NS);

	if (f == NULL)
		return true;
	atomic_store_explicit(&f->stop, true, memory_order_relaxed);
	mst_eventcount_open(&f->asked);
	/* Acquire: pairs with files_main(). */
	while (!atomic_load_explicit(&f->ended, memory_order_acquire)) {
		if (mst_left_ns(until_ns) == 0) {
			mst_error("a checkpoint in %s is not complete: the disk did not answer for "
				  "%" PRIu64 " s",
				  f->dir, GRACE_NS / MST_SECOND);
			return false;
		}
		mst_eventcount_shut(&f->ends);
		if (atomic_load_explicit(&f->ended, memory_order_acquire))
			mst_eventcount_leave(&f->ends);
		else
			mst_eventcount_wait(&f->ends, mst_left_ns(until_ns));
	}
	(void)pthread_join(f->thread, NULL);
	mst_checkpoint_unlock(f->lock);
	free(f->dir);
	free(f);
	return true;
}
