/* SPDX-License-Identifier: MIT */
/*
 * The header of a safetensors file of ours: which tensors it has, and what its metadata say of
 * them. docs/checkpoints.md has the format.
 *
 *   u64, little-endian: bytes of the JSON after it, which spaces fill up to a page
 *   {"__metadata__":{...},"fc1.weight":{"dtype":"F32","shape":[100],"data_offsets":[0,400]},...}
 *   data, without a gap
 *
 * Pure.
 */
#ifndef MST_COMMON_CHECKPOINT_MANIFEST_TENSORS_H
#define MST_COMMON_CHECKPOINT_MANIFEST_TENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "common/checkpoint/manifest/manifest.h"

#define MST_TENSORS_PAGE 4096u                     /* data begin at a multiple of it */
#define MST_TENSORS_HEADER_MAX UINT64_C(100000000) /* other readers take no more either */
#define MST_TENSORS_PREFIX 8u                      /* bytes of the length */

struct mst_tensor_entry {
	const char *name; /* in the file: "fc1.weight", "momentum/fc1.weight" */
	enum mst_dtype type;
	uint64_t count;      /* elements */
	uint64_t begin, end; /* bytes, from the first byte of data on */
	char group[MST_CHECKPOINT_GROUP_LEN];
	uint64_t first;         /* element of the vector with which the tensor begins here */
	uint64_t offset, total; /* which element of the whole tensor that is, and of how many */
	uint32_t crc;           /* CRC32C of its data */
};

struct mst_tensor_file {
	struct mst_checkpoint_id id;
	uint32_t part, parts;
	uint64_t first, count;
	uint32_t tensors;
	struct mst_tensor_entry *tensor; /* in the order of their data */
	char *names;                     /* that the entries point to */
	uint64_t data;                   /* byte of the file with which data begin */
	uint64_t bytes;                  /* of the file */
	uint32_t header_crc;
};

/* Frees tensors and names. */
void mst_tensor_file_fini(struct mst_tensor_file *f);

/* The header as it stands in the file, from its length on; the caller frees it. Sets @f->data,
 * @f->bytes and @f->header_crc. Its length does not depend on checksums.
 * Return: 0 or -ENOMEM, or -E2BIG: it is larger than MST_TENSORS_HEADER_MAX. */
int mst_tensor_file_compose(struct mst_tensor_file *f, char **out);

/* The reverse. @header: @len bytes, the whole header with its length. @bytes: of the file. Nothing
 * is believed: all that the struct says agrees with itself, the tensors of each group cover the
 * part in order, and their data cover the file.
 * @out: filled on success only.
 * Return: 0, -ENOMEM, -ENOTSUP: the format is a later one, or -EBADMSG; @why: a clause such as "its
 * header's checksum is wrong". */
int mst_tensor_file_parse(const char *header, size_t len, uint64_t bytes,
			  struct mst_tensor_file *out, struct mst_reason *why);

#endif
