/* SPDX-License-Identifier: MIT */
/*
 * What the manifest of a checkpoint keeps of the ledger: written and read in one file, so that a
 * job goes on from whatever another one has written. The ranges are those of common/wire/range.h,
 * within which the ledger counts.
 */
#ifndef MST_SERVER_CONTROL_JOB_KEPT_H
#define MST_SERVER_CONTROL_JOB_KEPT_H

#include "common/checkpoint/manifest/manifest.h"
#include "common/wire/message.h"
#include "server/core/ledger/config.h"

/* Adds the figures to a manifest. Return: 0; -ENOMEM; -EINVAL: the version, or a figure, is none
 * that mst_kept_read() would take. @why: a clause. */
int mst_kept_write(const struct mst_kept *kept, struct mst_checkpoint_manifest *m,
		   struct mst_reason *why);

/* The same for the last change of policy, if there was one; apart from what the ledger keeps.
 * Return: 0 or -ENOMEM. */
int mst_kept_write_in_force(const struct mst_in_force *what, struct mst_values *v);
/* The reverse. Nothing, or what cannot be: there was none. */
void mst_kept_in_force(const struct mst_values *v, struct mst_in_force *out);

/* The reverse, but for the figures of a controller (mst_resume_policy()).
 * @dir: where the manifest is from, for the sentence. @out: written on success only; the caller
 * frees out->rank.
 * Return: 0; -ENOMEM; -EBADMSG: a figure is missing or out of its range. @why: a sentence. */
int mst_kept_read(const struct mst_checkpoint_manifest *m, const char *dir, struct mst_kept *out,
		  struct mst_reason *why);

#endif
