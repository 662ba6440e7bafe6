/* SPDX-License-Identifier: MIT */
/* Writes the sentence of a failure and returns its error, in one expression. Internal to
 * common/checkpoint. */
#ifndef MST_COMMON_CHECKPOINT_SAY_H
#define MST_COMMON_CHECKPOINT_SAY_H

#include <stddef.h>

/* Return: @rc. */
int mst_checkpoint_say(int rc, char *why, size_t len, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* "4.0 GiB", for a sentence. Return: @out. */
char *mst_checkpoint_size(unsigned long long bytes, char out[32]);

#endif
