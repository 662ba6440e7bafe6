/* SPDX-License-Identifier: MIT */
/* The fields of every message, as data: one table per kind. Private to common/wire. */
#ifndef MST_WIRE_MESSAGE_FIELDS_H
#define MST_WIRE_MESSAGE_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include "common/wire/fields.h"
#include "common/wire/message.h"

#define MST_FRAME_MAGIC 0x7274736du /* "mstr" */

struct mst_body {
	const char *name; /* of the kind */
	size_t base;      /* what the fields' offsets are relative to, in struct mst_message */
	struct mst_shape shape;
};

/* By kind; NULL: there is no such kind. */
const struct mst_body *mst_body_of(uint32_t kind);

#endif
