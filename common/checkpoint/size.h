/* SPDX-License-Identifier: MIT */
/* An amount of bytes in words. */
#ifndef MST_COMMON_CHECKPOINT_SIZE_H
#define MST_COMMON_CHECKPOINT_SIZE_H

/* "4.0 GiB", for a sentence. Return: @out. */
char *mst_checkpoint_size(unsigned long long bytes, char out[32]);

#endif
