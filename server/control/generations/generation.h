/* SPDX-License-Identifier: MIT */
/*
 * The generation of a job, as its leader knows it (PROTOCOL 11): which run it is of, and which
 * number it has once it has begun. A worker that comes back says in its hello which generation its
 * last outcome was of; here that claim is compared with the generation, before the ledger hears of
 * it.
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_GENERATIONS_GENERATION_H
#define MST_SERVER_CONTROL_GENERATIONS_GENERATION_H

#include <stdbool.h>

#include "common/base/reason.h"
#include "common/wire/message.h"
#include "server/core/ledger/ledger.h"
#include "server/options/options.h"

struct mst_job_generation {
	bool counts;               /* --server-patience is given */
	struct mst_generation now; /* number 0: it has not begun */
	bool is_run_known;         /* a worker has come back from this run, or it has begun */
	struct mst_claimed newest; /* what it began with; number 0: with nothing */
};

/* Draws run and id.
 * @why: on failure a sentence.
 * Return: 0 or -errno. */
int mst_generation_init(struct mst_job_generation *g, const struct mst_server_options *o,
			struct mst_reason *why);
/* Has this hello the claim of a worker that comes back? */
static inline bool mst_hello_returns(const struct mst_hello *hello)
{
	return hello->returning.run[0] != '\0';
}
/* May the worker of this hello join? Before the start the first worker that comes back says which
 * run it is.
 * @why: a sentence.
 * Return: 0; -EINVAL: it comes from another run (-EBUSY before the start, which is tried again), or
 * generations are not counted here; MST_AGAIN: it
 * comes from a later generation; -EPROTO: there is no such claim. */
int mst_generation_check(struct mst_job_generation *g, const struct mst_hello *hello,
			 const struct mst_server_options *o, struct mst_reason *why);
/* What the ledger is told of the hello's claim. */
struct mst_claimed mst_generation_claimed(const struct mst_hello *hello);
/* The generation has begun, as the ledger says. */
void mst_generation_begins(struct mst_job_generation *g, const struct mst_generation_view *view);

#endif
