/* SPDX-License-Identifier: MIT */
#include "tests/unit/server/core/ledger/save_case.h"

struct mst_ledger_cfg save_case_cfg(const char *policy, uint32_t workers, uint64_t commits)
{
	struct mst_ledger_cfg cfg = job_cfg(policy, workers);

	cfg.shards = 2;
	cfg.saves = (struct mst_saves){ .wanted = true, .commits = commits };
	return cfg;
}

void save_case_reported(struct ledger_job *j, uint32_t shard, uint64_t version, bool failed)
{
	struct mst_ledger_event ev = { .kind = MST_EV_SAVED };

	ev.saved.shard = shard;
	ev.saved.version = version;
	ev.saved.failed = failed;
	job_event(j, &ev);
}

void save_case_all_reported(struct ledger_job *j, uint64_t version)
{
	save_case_reported(j, 0, version, false);
	save_case_reported(j, 1, version, false);
}

void save_case_push(struct ledger_job *j, int versions)
{
	while (versions-- > 0) {
		job_push(j, 0);
		job_answered(j, 0);
	}
}

size_t save_case_count(const struct ledger_job *j)
{
	return job_count(j, MST_DO_SAVE, -1);
}

uint64_t save_case_last(const struct ledger_job *j)
{
	const struct mst_decision *d = job_last(j, MST_DO_SAVE, -1);

	return d != NULL ? d->commit.version : 0;
}
