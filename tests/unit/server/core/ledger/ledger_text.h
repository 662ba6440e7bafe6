/* SPDX-License-Identifier: MIT */
/* Events and decisions as one line of text each, for traces and failed checks. */
#ifndef MST_TESTS_UNIT_SERVER_CORE_LEDGER_TEXT_H
#define MST_TESTS_UNIT_SERVER_CORE_LEDGER_TEXT_H

#include "server/core/ledger/ledger.h"

#define LEDGER_TEXT_LEN 192u

void ledger_event_text(const struct mst_ledger_event *ev, char text[LEDGER_TEXT_LEN]);
void ledger_decision_text(const struct mst_decision *d, char text[LEDGER_TEXT_LEN]);
void ledger_rule_text(const struct mst_rule *rule, char text[LEDGER_TEXT_LEN]);

#endif
