/* SPDX-License-Identifier: MIT */
/*
 * The tensor table of a job. A worker may give one with its hello. The first table is the job's;
 * a worker whose table differs is refused, in a sentence that names both workers and says in what
 * the tables differ. How tensors are scaled is fixed by the first hello, with the length of the
 * vector: the plan of the job counts memory for the scales. If the optimiser takes norms of
 * tensors, so is whether there is a table at all. Pure.
 */
#ifndef MST_SERVER_CONTROL_JOB_TABLES_H
#define MST_SERVER_CONTROL_JOB_TABLES_H

#include "common/base/reason.h"
#include "common/wire/message.h"
#include "common/wire/tensor_table.h"

#define MST_GIVER_LEN 128u

struct mst_tables {
	struct mst_table table;    /* tensors 0: nobody has given one yet */
	char giver[MST_GIVER_LEN]; /* who gave it; until then, whose hello was the first */
	bool taken;                /* an admitted worker has given it */
	bool fixed;                /* the first hello has come: */
	uint32_t runs;
	uint64_t scales;
	const char *norms; /* the name of the optimiser that takes norms of tensors; NULL: none */
};

/* A worker, for sentences: "rank 2 (127.0.0.1:4711, process 99)". @rank: below 0: the worker has
 * none yet.
 * Return: @out. */
const char *mst_tables_giver(int64_t rank, const char *peer, uint32_t pid, char out[MST_GIVER_LEN]);
/* Can @table join the others? @giver: who gives it. @why: on failure a sentence.
 * Return: 0 or -EINVAL. */
int mst_tables_check(const struct mst_tables *t, const struct mst_table *table, const char *giver,
		     struct mst_reason *why);
/* The hello with @table is the job's first. @norms: the name of the optimiser, if it takes norms of
 * tensors, else NULL; it must outlive @t. */
void mst_tables_fix(struct mst_tables *t, const struct mst_table *table, const char *giver,
		    const char *norms);
/* A worker with @table, which has been checked, is admitted. */
void mst_tables_take(struct mst_tables *t, const struct mst_table *table, const char *giver);

/* Looks at tensors of a table that is not the job's: which one differs? @of: the job's table,
 * whole. @giver: who gives @piece. @why: a sentence with both workers, names and sizes.
 * Return: false: none of these does. */
bool mst_tables_differ(const struct mst_tables *t, const struct mst_tensor_table *of,
		       const struct mst_tensor_piece *piece, const char *giver,
		       struct mst_reason *why);

#endif
