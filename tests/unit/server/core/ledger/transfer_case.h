/* SPDX-License-Identifier: MIT */
/* Jobs whose workers own the parameters, and give and take states. */
#ifndef MST_TESTS_UNIT_SERVER_CORE_TRANSFER_CASE_H
#define MST_TESTS_UNIT_SERVER_CORE_TRANSFER_CASE_H

#include "tests/unit/server/core/ledger/ledger_job.h"

/* History 2, and 3 more while somebody comes back. */
struct mst_ledger_cfg transfer_case_cfg(const char *policy, uint32_t workers);
void transfer_case_join(struct ledger_job *j, int32_t rank);
/* The rank joins, and starts. */
void transfer_case_enter(struct ledger_job *j, uint32_t rank);
/* All have version 0, and come back if need be. */
void transfer_case_begin(struct ledger_job *j, const struct mst_ledger_cfg *cfg);
/* The first @workers push, and are answered, so often. */
void transfer_case_versions(struct ledger_job *j, uint32_t workers, int count);
/* A worker gives a state of this version. */
void transfer_case_given(struct ledger_job *j, uint32_t rank, uint64_t number, uint64_t version);
/* A worker has all of it. */
void transfer_case_taken(struct ledger_job *j, uint32_t rank, uint64_t number, uint64_t version);
/* The last asking for a state. */
const struct mst_decision *transfer_case_asked(const struct ledger_job *j);

#endif
