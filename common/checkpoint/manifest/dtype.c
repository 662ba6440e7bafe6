/* SPDX-License-Identifier: MIT */
#include "common/checkpoint/manifest/dtype.h"

#include <errno.h>
#include <string.h>

#include "common/base/assert.h"

static const struct {
	const char *name;
	size_t bytes;
} types[MST_DTYPES] = {
	[MST_DTYPE_F32] = { "F32", 4 }, [MST_DTYPE_BF16] = { "BF16", 2 },
	[MST_DTYPE_F16] = { "F16", 2 }, [MST_DTYPE_U64] = { "U64", 8 },
	[MST_DTYPE_F64] = { "F64", 8 },
};

const char *mst_dtype_name(enum mst_dtype type)
{
	MST_ASSERT((unsigned)type < MST_DTYPES);
	return types[type].name;
}

size_t mst_dtype_bytes(enum mst_dtype type)
{
	MST_ASSERT((unsigned)type < MST_DTYPES);
	return types[type].bytes;
}

int mst_dtype_parse(const char *name, enum mst_dtype *out)
{
	for (unsigned i = 0; i < MST_DTYPES; i++)
		if (strcmp(types[i].name, name) == 0) {
			*out = (enum mst_dtype)i;
			return 0;
		}
	return -EINVAL;
}
