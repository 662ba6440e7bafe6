/* SPDX-License-Identifier: MIT */
/* Any bytes, read as labels and as images: refused with a sentence, or held in full. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/digits/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* Every byte that is said to be there must be: reading them is what the sanitizer watches. */
static void check_held(const struct mst_idx *idx)
{
	uint64_t total = (uint64_t)idx->count * idx->rows * idx->columns;
	unsigned sum = 0;

	MST_ASSERT(total > 0 && total <= MST_IDX_BYTES_MAX);
	for (uint64_t i = 0; i < total; i++)
		sum += idx->bytes[i];
	MST_ASSERT(sum <= 255 * total);
}

static void read_as(const char *path, enum mst_idx_kind kind)
{
	struct mst_idx idx = { 0 };
	struct mst_reason why = { "" };

	if (mst_idx_init(path, kind, &idx, &why) == 0)
		check_held(&idx);
	else
		MST_ASSERT(why.text[0] != '\0' && idx.bytes == NULL);
	mst_idx_fini(&idx);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	char path[32];
	int fd = memfd_create("idx", MFD_CLOEXEC);

	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	read_as(path, MST_IDX_LABELS);
	read_as(path, MST_IDX_IMAGES);
	close(fd);
	return 0;
}
