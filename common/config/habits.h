/* SPDX-License-Identifier: MIT */
/*
 * Options of other programs (torchrun, mpirun, srun) that people type here out of habit, and what
 * they are called here. No edit distance leads from --np to --workers.
 */
#ifndef MST_CONFIG_HABITS_H
#define MST_CONFIG_HABITS_H

#include "common/config/option.h"

/* @word: without dashes in front; '_' counts as '-', and capital letters as small ones if there are
 * several.
 * Return: a clause that says what to type, for a program that has this table; NULL: none. */
const char *mst_habit_say(const struct mst_option *table, const char *word);

#endif
