/* SPDX-License-Identifier: MIT */
/* Composes JSON in memory that grows. Internal to common/checkpoint. */
#ifndef MST_COMMON_CHECKPOINT_MANIFEST_JSON_OUT_H
#define MST_COMMON_CHECKPOINT_MANIFEST_JSON_OUT_H

#include <stdbool.h>
#include <stddef.h>

struct mst_json_out {
	char *text; /* [len], and a NUL; the caller frees it */
	size_t len, capacity;
	bool failed; /* no memory: what came since is missing */
};

void mst_json_out_format(struct mst_json_out *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Puts @text in quotes. A character that JSON does not allow in a text becomes an escape. @text:
 * clean, or with control characters. */
void mst_json_out_text(struct mst_json_out *o, const char *text);
/* The same, with @prefix before the text, inside the quotes. */
void mst_json_out_prefixed_text(struct mst_json_out *o, const char *prefix, const char *text);

#endif
