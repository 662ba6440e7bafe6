/* SPDX-License-Identifier: MIT */
/*
 * An observer of one ledger that knows no policy: it sees events and decisions, and tells of the
 * first promise that does not hold. One verdict a contribution, one commit a version, a set is
 * exactly what was counted, no buffer is written while it is held, nothing after the end.
 */
#ifndef MST_TESTS_UNIT_SERVER_CORE_LEDGER_WATCH_H
#define MST_TESTS_UNIT_SERVER_CORE_LEDGER_WATCH_H

#include "server/core/ledger/ledger.h"

struct watch;

struct watch *watch_new(const struct mst_ledger_cfg *cfg, const struct mst_ledger *ledger);
void watch_free(struct watch *w);

void watch_event(struct watch *w, const struct mst_ledger_event *ev);
void watch_decision(struct watch *w, const struct mst_decision *d);
/* The time of the event or tick that comes next. */
void watch_time(struct watch *w, uint64_t now_ns);
/* After all decisions on an event; after those of a tick at @now_ns. */
void watch_settled(struct watch *w);
/* A commit is due, and only a free buffer is missing. */
void watch_blocked(struct watch *w);
void watch_ticked(struct watch *w, uint64_t now_ns);

/* The first promise that was broken, or NULL. */
const char *watch_complaint(const struct watch *w);

#endif
