/* SPDX-License-Identifier: MIT */
/*
 * The writer of checkpoints: in a server a thread with a disk (server/archive_files.h), in the
 * simulated world an object of the test. An archive does one piece of work at a time. None of its
 * functions waits for a disk.
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_JOB_ARCHIVE_H
#define MST_SERVER_CONTROL_JOB_ARCHIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/checkpoint/manifest/manifest.h"
#include "common/checkpoint/part.h"

struct mst_archive_end {
	int error; /* 0 or -errno */
	uint64_t bytes;
	struct mst_reason why; /* a sentence, if it has failed */
};

struct mst_archive_ops;
struct mst_archive {
	const struct mst_archive_ops *ops;
};

/* No member is NULL. */
struct mst_archive_ops {
	/* Begins to write this server's part. @part and what it points to do not change until the
	 * end has been taken. */
	void (*write)(struct mst_archive *a, const struct mst_checkpoint_writing *part);
	/* Begins to write the manifest, when all servers have written their parts. The archive
	 * fills in the parts, and removes checkpoints that are older than the last but one. */
	void (*complete)(struct mst_archive *a, struct mst_checkpoint_manifest *manifest);
	/* The job is over, or the server is stopped: the work is to be done as fast as the disk
	 * takes it. */
	void (*hurry)(struct mst_archive *a);
	/* Takes the end of the work, once.
	 * Return: false: it goes on, or there is none. */
	bool (*ended)(struct mst_archive *a, struct mst_archive_end *out);
};

#endif
