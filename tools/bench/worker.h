/* SPDX-License-Identifier: MIT */
/* A worker of a benchmark: this program again, with the path of the plan. */
#ifndef MST_TOOLS_BENCH_WORKER_H
#define MST_TOOLS_BENCH_WORKER_H

/* argv[1] of a worker; argv[2] is the path of the plan. It is no option: nobody types it. */
#define MST_BENCH_WORKER "--as-worker-of"

/* Return: the exit status. */
int mst_bench_worker(const char *plan_path);

#endif
