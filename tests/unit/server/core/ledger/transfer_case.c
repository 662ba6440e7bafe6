/* SPDX-License-Identifier: MIT */
#include "tests/unit/server/core/ledger/transfer_case.h"

struct mst_ledger_cfg transfer_case_cfg(const char *policy, uint32_t workers)
{
	struct mst_ledger_cfg cfg = job_cfg(policy, workers);

	cfg.owner = MUSTER_WORKERS_OWN;
	cfg.optimizer.row = NULL;
	cfg.history = 2;
	cfg.catch_up = 3;
	return cfg;
}

void transfer_case_join(struct ledger_job *j, int32_t rank)
{
	struct mst_ledger_event ev = { .kind = MST_EV_JOIN };

	ev.join.rank = rank;
	ev.join.comes_back = true;
	job_event(j, &ev);
}

void transfer_case_enter(struct ledger_job *j, uint32_t rank)
{
	transfer_case_join(j, (int32_t)rank);
	job_link(j, rank, 0);
	job_start(j, rank, false);
}

void transfer_case_begin(struct ledger_job *j, const struct mst_ledger_cfg *cfg)
{
	job_open(j, cfg);
	for (uint32_t rank = 0; rank < cfg->workers; rank++)
		transfer_case_enter(j, rank);
	job_forget(j);
}

void transfer_case_versions(struct ledger_job *j, uint32_t workers, int count)
{
	for (int i = 0; i < count; i++) {
		for (uint32_t rank = 0; rank < workers; rank++)
			job_push(j, rank);
		for (uint32_t rank = 0; rank < workers; rank++)
			job_answered(j, rank);
	}
}

void transfer_case_given(struct ledger_job *j, uint32_t rank, uint64_t number, uint64_t version)
{
	struct mst_ledger_event ev = { .kind = MST_EV_GIVEN, .who = j->worker[rank].who };

	ev.given.number = number;
	ev.given.version = version;
	job_event(j, &ev);
}

void transfer_case_taken(struct ledger_job *j, uint32_t rank, uint64_t number, uint64_t version)
{
	struct mst_ledger_event ev = { .kind = MST_EV_TAKEN, .who = j->worker[rank].who };

	j->worker[rank].have = version;
	ev.given.number = number;
	job_event(j, &ev);
}

const struct mst_decision *transfer_case_asked(const struct ledger_job *j)
{
	return job_last(j, MST_DO_WANT, -1);
}
