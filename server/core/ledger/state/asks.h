/* SPDX-License-Identifier: MIT */
/*
 * Asks, and the buffers that they hold. With an ask a worker also says that it does not read any
 * more what it had, unless it is told to keep it. phases/answers.c answers asks.
 */
#ifndef MST_SERVER_CORE_LEDGER_STATE_ASKS_H
#define MST_SERVER_CORE_LEDGER_STATE_ASKS_H

#include "server/core/ledger/state/state.h"

/* Takes an ask of @m that was sent after its header @after. By asking a worker says that it does
 * not read any more what it had.
 * Return: false if the ask breaks the protocol. */
bool mst_ask_take(struct mst_ledger *l, struct mst_member *m, const struct mst_lane_ask *ask,
		  uint64_t after);
/* Has all asks tried again, whatever they wait for, after a change that may concern all of them. */
void mst_ask_try_all(struct mst_ledger *l);
/* After a commit: lets go of the buffers that were held for asks because they had the newest
 * version. */
void mst_ask_new_version(struct mst_ledger *l);
/* Does the ask of @m wait only because of the clock bound? */
bool mst_ask_bound_parks(const struct mst_ledger *l, const struct mst_member *m,
			 uint64_t clock_min);
/* A buffer is not held any more, for whatever holds @buffer, which is no copy: @buffer becomes
 * MST_BUFFER_NONE, as it may have been before. Asks that wait for room are tried again. The version
 * that an ask waits to be sent may be gone now. */
void mst_ask_let_go(struct mst_ledger *l, uint32_t *buffer);
/* The same of the buffer that is being copied to @m, if one is. */
void mst_ask_copied(struct mst_ledger *l, struct mst_member *m);
/* How a copy to @m holds its buffer. */
enum mst_hold mst_ask_hold_of_copy(const struct mst_ledger *l, const struct mst_member *m);
/* When a session ends: lets go of the buffers that the worker reads or that are copied to it. */
void mst_ask_drop(struct mst_ledger *l, struct mst_member *m);

#endif
