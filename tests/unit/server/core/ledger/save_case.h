/* SPDX-License-Identifier: MIT */
/* A job that saves versions, for the tests of the ledger that are about that. */
#ifndef MST_TESTS_UNIT_SERVER_CORE_SAVE_CASE_H
#define MST_TESTS_UNIT_SERVER_CORE_SAVE_CASE_H

#include "tests/unit/server/core/ledger/ledger_job.h"

/* A job of two servers that saves every @commits versions. */
struct mst_ledger_cfg save_case_cfg(const char *policy, uint32_t workers, uint64_t commits);
/* A server reports that it has written its part of a version, or has failed to. */
void save_case_reported(struct ledger_job *j, uint32_t shard, uint64_t version, bool failed);
/* Both servers report that they have written theirs. */
void save_case_all_reported(struct ledger_job *j, uint64_t version);
/* Rank 0 pushes so often, and is answered each time. */
void save_case_push(struct ledger_job *j, int versions);
/* How many versions were to be saved, and which was the last; 0: none. */
size_t save_case_count(const struct ledger_job *j);
uint64_t save_case_last(const struct ledger_job *j);

#endif
