/* SPDX-License-Identifier: MIT */
/* Stacks that take turns on one thread. The fiber that runs decides when its turn is over. */
#ifndef MST_TESTS_SIM_FIBER_H
#define MST_TESTS_SIM_FIBER_H

#include <stdbool.h>

struct fiber;

/* @main runs at the first fiber_run(); the fiber has ended when it returns. Aborts if there is no
 * memory: a test is worth nothing then. */
struct fiber *fiber_new(void (*main)(void *arg), void *arg);
/* One that has ended, or never ran. */
void fiber_free(struct fiber *f);

/* From outside any fiber: runs @f until it pauses or ends. Return: has it ended? */
bool fiber_run(struct fiber *f);
/* From within: back to the caller that ran it. */
void fiber_pause(void);

#endif
