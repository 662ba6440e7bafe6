/* SPDX-License-Identifier: MIT */
/* Finds the file of one part of a checkpoint. */
#include <errno.h>
#include <string.h>

#include "common/checkpoint/names.h"
#include "common/checkpoint/part.h"
#include "common/checkpoint/part_file.h"
#include "common/checkpoint/say.h"

int mst_checkpoint_part_find(const char *dir, const struct mst_checkpoint_id *id, uint32_t part,
			     uint32_t parts, struct mst_checkpoint_part *out, char *why, size_t len)
{
	struct mst_checkpoint_part found = { .bytes = 0 };
	struct mst_part_file file;

	mst_checkpoint_part_name(id, part, parts, found.file);
	int rc = mst_part_file_open(dir, found.file, &file, why, len);
	if (rc != 0)
		return rc;
	const struct mst_tensor_file *h = &file.header;
	if (strcmp(h->id.save, id->save) != 0 || h->id.version != id->version || h->part != part ||
	    h->parts != parts) {
		rc = mst_checkpoint_say(-EBADMSG, why, len, "%s is a part of another save",
					file.path);
	} else {
		found.bytes = h->bytes;
		found.first = h->first;
		found.count = h->count;
		found.header_crc = h->header_crc;
		*out = found;
	}
	mst_part_file_close(&file);
	return rc;
}
