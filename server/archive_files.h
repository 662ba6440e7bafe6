/* SPDX-License-Identifier: MIT */
/*
 * The archive of a server: a thread that writes checkpoints to the files of a directory
 * (docs/checkpoints.md). The disk may take its time, or be full: no other thread waits for it. If
 * it is silent for long, ended() of the archive logs a warning.
 */
#ifndef MST_SERVER_ARCHIVE_FILES_H
#define MST_SERVER_ARCHIVE_FILES_H

#include <stdint.h>

#include "common/base/reason.h"
#include "server/control/job/archive.h"

struct mst_archive_files;

struct mst_archive_files_cfg {
	const char *dir; /* must outlive the archive */
	bool leads;      /* this server writes manifests, and nobody else may */
	/* Another process that has the directory locked, such as the server before this one, is
	 * waited for: so long, 0: for ever; or until is_stopped(). */
	bool waits;
	uint64_t wait_ns;
	bool (*is_stopped)(void *ctx);
	/* The log has a warning when the disk has taken nothing for so long, and again after twice,
	 * four times as long, and so on; 0: never. Time in which this server stood still counts
	 * little. */
	uint64_t silence_ns;
	void (*wake)(void *ctx); /* work has ended: called by the thread */
	void *wake_ctx;          /* also that of is_stopped() */
};

/* Makes sure that the directory can be written to, and starts the thread. It may wait for another
 * process, as the figures say.
 * @why: on failure a sentence.
 * Return: 0 or -errno. */
int mst_archive_files_start(const struct mst_archive_files_cfg *cfg, struct mst_archive_files **out,
			    struct mst_reason *why);
struct mst_archive *mst_archive_files_archive(struct mst_archive_files *f);
/* Ends work that is under way, and the thread. Waits for at most some seconds for a disk that does
 * not answer. Accepts NULL.
 * Return: false: the thread still waits for the disk, so that nothing that it reads may be
 * freed. */
bool mst_archive_files_stop(struct mst_archive_files *f);

#endif
