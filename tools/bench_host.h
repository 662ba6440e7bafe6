/* SPDX-License-Identifier: MIT */
/* Where a benchmark runs: what has to stand beside its figures. */
#ifndef MST_TOOLS_BENCH_HOST_H
#define MST_TOOLS_BENCH_HOST_H

#include <stddef.h>

/* "Linux 6.1.0 x86_64, MODEL, 2 processors, load 0.31" */
void mst_bench_host_words(char *out, size_t len);

#endif
