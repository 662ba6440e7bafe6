/* SPDX-License-Identifier: MIT */
/*
 * What a program inherits of its parent without having asked for it: standard files, which may be
 * closed; blocked signals; the size of the stack. A program of muster brings them into order at its
 * start, for itself and for its children. What a parent means by it stays: nohup ignores SIGHUP.
 */
#ifndef MST_HOST_INHERITED_H
#define MST_HOST_INHERITED_H

#include "common/base/reason.h"

/* At the start of a program, before a thread: opens standard files that are closed; unblocks all
 * signals, for a blocked SIGTERM would end nobody; ignores SIGXFSZ, so that what is longer than
 * `ulimit -f` allows is an error, which is told; sees to a stack that is large enough.
 * Return: 0; -ENOMEM: the stack is too small for this program, and @why tells what to do. */
int mst_inherited_settle(struct mst_reason *why);

/* In a child that is about to execute another program: SIGXFSZ does what it did when this program
 * was started. */
void mst_inherited_hand_on(void);

#endif
