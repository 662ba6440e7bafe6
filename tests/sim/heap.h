/* SPDX-License-Identifier: MIT */
/* Counts what is allocated and not freed by a program that is linked with --wrap=malloc and the
 * like. */
#ifndef MST_TESTS_SIM_HEAP_H
#define MST_TESTS_SIM_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct sim_heap {
	uint64_t blocks; /* that are allocated now */
	uint64_t bytes;
	uint64_t calls; /* of allocating functions so far */
};

struct sim_heap sim_heap_now(void);

#endif
