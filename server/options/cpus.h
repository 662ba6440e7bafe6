/* SPDX-License-Identifier: MIT */
/* A list of processors, written as the kernel does: "0-3,8". */
#ifndef MST_SERVER_OPTIONS_CPUS_H
#define MST_SERVER_OPTIONS_CPUS_H

#include <stdint.h>

#include "common/base/reason.h"

#define MST_CPUS_MAX 1024u /* processors have numbers below this */

struct mst_cpus {
	uint32_t count;
	uint16_t cpu[MST_CPUS_MAX]; /* in the order of the list, each once */
};

/* Reads a list; "auto" is an empty one.
 * @why: a sentence.
 * Return: 0; -EINVAL: no list, or one with a processor twice. */
int mst_cpus_parse(const char *text, struct mst_cpus *out, struct mst_reason *why);

/* The first processor of the list that this process may not run on; -1: it may run on all. */
int mst_cpus_forbidden(const struct mst_cpus *cpus);

#endif
