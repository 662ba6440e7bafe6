/* SPDX-License-Identifier: MIT */
/* Element types of tensors in a file, by the names that safetensors gives them. */
#ifndef MST_COMMON_CHECKPOINT_MANIFEST_DTYPE_H
#define MST_COMMON_CHECKPOINT_MANIFEST_DTYPE_H

#include <stddef.h>

enum mst_dtype { MST_DTYPE_F32, MST_DTYPE_BF16, MST_DTYPE_F16, MST_DTYPE_U64, MST_DTYPE_F64 };
#define MST_DTYPES 5u

/* "F32". */
const char *mst_dtype_name(enum mst_dtype type);
/* Bytes of one element. */
size_t mst_dtype_bytes(enum mst_dtype type);
/* Finds the type of a name. Return: 0 or -EINVAL. */
int mst_dtype_parse(const char *name, enum mst_dtype *out);

#endif
