/* SPDX-License-Identifier: MIT */
/* The operator asks the leader for another policy, or for the rest of a worker. It is a process
 * that connects to the control port, asks, and gets the answer. An observer asks for the same, and
 * must be refused.
 */
#ifndef MST_TESTS_SIM_OPERATOR_H
#define MST_TESTS_SIM_OPERATOR_H

#include "tests/sim/plan.h"

void operator_begin(void);
/* Asks for what the change says. */
void operator_asks(const struct sim_fault *change);
/* Has everything been answered? */
bool operator_is_home(void);

#endif
