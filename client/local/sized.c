/* SPDX-License-Identifier: MIT */
#include "client/local/sized.h"

#include <errno.h>
#include <string.h>

static size_t size_at(const void *theirs)
{
	size_t size;

	memcpy(&size, theirs, sizeof(size));
	return size;
}

int mst_sized_check(const struct mst_sized *s, const void *theirs, struct mst_reason *why)
{
	size_t size = size_at(theirs);

	if (size > sizeof(size) && size <= MST_SIZED_MAX)
		return 0;
	mst_reason_set(why,
		       "%s.size is %zu, this library's struct has %zu bytes; start from %s, which "
		       "sets it",
		       s->name, size, s->bytes, s->initial);
	return -EINVAL;
}

/* How many bytes are not zero of those that this library does not know. */
static size_t unknown_bytes(const struct mst_sized *s, const char *theirs)
{
	size_t count = 0;

	for (size_t i = s->bytes; i < size_at(theirs); i++)
		count += theirs[i] != 0;
	return count;
}

int mst_sized_read(const struct mst_sized *s, const void *theirs, void *ours,
		   struct mst_reason *why)
{
	int rc = mst_sized_check(s, theirs, why);

	if (rc != 0)
		return rc;
	size_t size = size_at(theirs);
	if (unknown_bytes(s, theirs) > 0) {
		mst_reason_set(why,
			       "%s has %zu bytes, this library knows %zu of them, and the program "
			       "has set fields beyond those; it was compiled with a newer muster.h "
			       "and needs a newer libmuster",
			       s->name, size, s->bytes);
		return -EINVAL;
	}
	memcpy(ours, theirs, size < s->bytes ? size : s->bytes);
	memcpy(ours, &s->bytes, sizeof(s->bytes));
	return 0;
}

void mst_sized_write(const struct mst_sized *s, const void *ours, void *theirs)
{
	size_t size = size_at(theirs);

	memcpy((char *)theirs + sizeof(size), (const char *)ours + sizeof(size),
	       (size < s->bytes ? size : s->bytes) - sizeof(size));
	if (size > s->bytes)
		memset((char *)theirs + s->bytes, 0, size - s->bytes);
}
