/* SPDX-License-Identifier: MIT */
/*
 * Members that come back from an earlier generation, whose servers are lost (PROTOCOL 11). Each
 * claims the version of its last outcome. The newest one claimed is what the next generation begins
 * with: where workers own, whoever was told that something counted has the version that it is in,
 * or somebody else has.
 */
#ifndef MST_SERVER_CORE_LEDGER_STATE_RETURNS_H
#define MST_SERVER_CORE_LEDGER_STATE_RETURNS_H

#include "server/core/ledger/state/state.h"

/* Has the member started, and does it bring a claim? */
bool mst_returns_claims(const struct mst_member *m);
/* The highest number of a start of another leader that a worker with this claim has taken part in;
 * 0: it claims nothing. */
uint64_t mst_returns_seen(const struct mst_ledger *l, const struct mst_claimed *claimed);
/* Has a member started that has taken part in an earlier generation? */
bool mst_returns_any(const struct mst_ledger *l);
/* The same, whether it has started or has only said hello. */
bool mst_returns_are_here(const struct mst_ledger *l);
/* Until when a start waits for the member. One that has said hello may compute still, and is there;
 * of one that has not nobody knows. */
uint64_t mst_returns_awaited_until(const struct mst_ledger *l, const struct mst_member *m);
/* Until when a job that has not started waits for workers: for --join-timeout, and for those that
 * come back and compute still, as long as --patience. */
uint64_t mst_returns_until(const struct mst_ledger *l);
/* The newest claim, by generation and version; its number is 0 if there is none. If three members
 * or more claim something, and one is further ahead of all others than versions are kept, its claim
 * is void from now on: there is no such version. Members that have taken their version over are
 * not counted. */
struct mst_claimed mst_returns_newest(struct mst_ledger *l);
/* A member that has the newest version, while another one that comes back lacks it: if there is
 * one, a member whose copy is whole. NULL: nobody lacks it. */
struct mst_member *mst_returns_donor(struct mst_ledger *l, const struct mst_claimed *newest);
/* Workers own: the generation begins with the newest version: who has it, or the one before it,
 * goes on with what it has, and all others are as if they joined a job that runs. Servers own: it
 * begins with the checkpoint, whatever is claimed. Its number is one more than all that is known of
 * the run. */
void mst_returns_begin(struct mst_ledger *l, const struct mst_claimed *newest);

/* A member joins a generation that runs, or comes back to it: if it is on its line, it has the
 * version that it claims. */
void mst_returns_join(struct mst_ledger *l, struct mst_member *m);
/* May a member that claims this go on from what it has, in the generation that runs? */
bool mst_returns_is_on_line(const struct mst_ledger *l, const struct mst_claimed *claimed);

/* Must @m, which is to be given @version, get it by the state of another worker? The first version
 * of a later generation is of use only to who has the version before, and only if a worker has
 * brought it. */
bool mst_returns_lacks_first(const struct mst_ledger *l, const struct mst_member *m,
			     uint64_t version);

#endif
