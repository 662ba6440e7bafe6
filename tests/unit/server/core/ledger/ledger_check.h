/* SPDX-License-Identifier: MIT */
/*
 * What the ledger keeps of its members so that it need not look at all of them, held against the
 * members themselves, one after the other: every set, number and heap, counted from scratch.
 */
#ifndef MST_TESTS_UNIT_SERVER_CORE_LEDGER_CHECK_H
#define MST_TESTS_UNIT_SERVER_CORE_LEDGER_CHECK_H

#include "server/core/ledger/ledger.h"

/* To be asked when an event or tick has been dealt with: no decision is left.
 * Return: the first thing that is not so, or NULL; valid until the next call. */
const char *ledger_check(const struct mst_ledger *l);

#endif
