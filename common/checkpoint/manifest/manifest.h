/* SPDX-License-Identifier: MIT */
/*
 * The manifest of a checkpoint: a small JSON file DIR/v0000000123.json that says which files belong
 * to the checkpoint of version 123, and what they are. The leader writes it last, so a checkpoint
 * without a manifest does not exist. docs/checkpoints.md has the format.
 *
 * All functions that read or write files block. They may be called by any thread, and are meant for
 * one that nothing else waits for.
 */
#ifndef MST_COMMON_CHECKPOINT_MANIFEST_MANIFEST_H
#define MST_COMMON_CHECKPOINT_MANIFEST_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/reason.h"
#include "common/checkpoint/manifest/values.h"
#include "muster/muster.h"

/* Element types of tensors in a file, by the names that safetensors gives them. */
enum mst_dtype { MST_DTYPE_F32, MST_DTYPE_BF16, MST_DTYPE_F16, MST_DTYPE_U64, MST_DTYPE_F64 };
#define MST_DTYPES 5u

/* "F32". */
const char *mst_dtype_name(enum mst_dtype type);
/* Bytes of one element. */
size_t mst_dtype_bytes(enum mst_dtype type);
/* Finds the type of a name. Return: 0 or -EINVAL. */
int mst_dtype_parse(const char *name, enum mst_dtype *out);

#define MST_CHECKPOINT_FORMAT 1u
#define MST_CHECKPOINT_PARTS_MAX 64u
#define MST_CHECKPOINT_GROUPS_MAX 16u
#define MST_CHECKPOINT_TEXT_LEN 256u /* with NUL: job, optimiser, policy, schedule */
#define MST_CHECKPOINT_GROUP_LEN 32u /* with NUL */
#define MST_CHECKPOINT_SAVE_LEN 33u  /* with NUL: 32 hexadecimal digits */
#define MST_CHECKPOINT_RUN_LEN 17u   /* with NUL: 16 hexadecimal digits */
#define MST_CHECKPOINT_FILE_LEN 80u  /* with NUL: a file's name without its directory */

/* What all files of one checkpoint agree on. */
struct mst_checkpoint_id {
	char job[MST_CHECKPOINT_TEXT_LEN];
	char save[MST_CHECKPOINT_SAVE_LEN]; /* every checkpoint has its own */
	uint64_t version;                   /* above 0: version 0 is where every job begins */
	uint64_t elems;                     /* of the vector */
};

/* One file of tensors: the elements [first, first + count) of every group. */
struct mst_checkpoint_part {
	char file[MST_CHECKPOINT_FILE_LEN];
	uint64_t bytes; /* of the file */
	uint64_t first, count;
	uint32_t header_crc; /* CRC32C of the file's header */
};

/* A vector as long as the model: "parameters", "momentum". */
struct mst_checkpoint_group {
	char name[MST_CHECKPOINT_GROUP_LEN];
	enum mst_dtype type;
};

/* What a job must have in common with a checkpoint that it goes on from. */
struct mst_checkpoint_model {
	uint64_t elems;
	enum muster_type type, result_type;
	enum muster_owner owner;
};

struct mst_checkpoint_manifest {
	struct mst_checkpoint_id id;
	char muster[32];    /* the release that wrote it; set by mst_checkpoint_manifest_write() */
	int64_t written_ms; /* since 1970 in UTC; set by mst_checkpoint_manifest_write() */
	uint64_t samples;
	/* The run that the version is of, and its generation: docs/protocol.md, Generations. */
	char run[MST_CHECKPOINT_RUN_LEN]; /* "": the release that wrote it knew none */
	uint64_t generation;              /* 0: none was counted */
	enum muster_type type, result_type;
	enum muster_owner owner;
	uint32_t workers;
	char optimizer[MST_CHECKPOINT_TEXT_LEN];
	char policy[MST_CHECKPOINT_TEXT_LEN];
	uint32_t groups; /* where workers own, there may be no groups and no parts */
	struct mst_checkpoint_group group[MST_CHECKPOINT_GROUPS_MAX];
	uint32_t parts;
	struct mst_checkpoint_part part[MST_CHECKPOINT_PARTS_MAX]; /* in the order of the vector */
	struct mst_values values; /* whatever else the writer keeps */
};

/* Draws a save id. Return: 0 or -errno. */
int mst_checkpoint_draw(char save[MST_CHECKPOINT_SAVE_LEN]);

void mst_checkpoint_manifest_init(struct mst_checkpoint_manifest *m);
void mst_checkpoint_manifest_fini(struct mst_checkpoint_manifest *m);

/* Writes the manifest, which makes the checkpoint exist: to a temporary file first, then to the
 * disk, then under its name. Call it when every part has been written.
 * Return: 0; -EINVAL: the parts do not cover the vector, or a text has no end; -ENOSPC and so on.
 * @why is a sentence. Older checkpoints have not been touched. If only the last step failed, the
 * manifest has its name, and could lose it with the power. */
int mst_checkpoint_manifest_write(const char *dir, struct mst_checkpoint_manifest *m,
				  struct mst_reason *why);

/* Reads the manifest of a version, and judges only it: mst_checkpoint_find() also looks at the
 * parts. @out: initialised; filled on success only, then to be freed by the caller with fini.
 * Return: 0; -ENOENT; -EBADMSG: it is damaged; -ENOTSUP: its format is a later one; -ENOMEM; or
 * what the system says. */
int mst_checkpoint_manifest_read(const char *dir, uint64_t version,
				 struct mst_checkpoint_manifest *out, struct mst_reason *why);

/* As text, which ends with a line feed; the caller frees it. @out_len: without its NUL.
 * Return: 0, -ENOMEM, or -EINVAL with @why. */
int mst_checkpoint_manifest_compose(const struct mst_checkpoint_manifest *m, char **out,
				    size_t *out_len, struct mst_reason *why);
/* The reverse. @text: any bytes. Return: as mst_checkpoint_manifest_read(). */
int mst_checkpoint_manifest_parse(const char *text, size_t text_len,
				  struct mst_checkpoint_manifest *out, struct mst_reason *why);

#endif
