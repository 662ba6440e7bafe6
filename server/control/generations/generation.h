/* SPDX-License-Identifier: MIT */
/*
 * The generation of a job, as its leader knows it (PROTOCOL 11): which run it is of, which number
 * it has once it has begun, and, where servers own, from which generations it comes. A worker that
 * comes back says in its hello which generation its last outcome was of. Here that claim is
 * compared with the generation, before the ledger hears of it.
 *
 * Control thread only.
 */
#ifndef MST_SERVER_CONTROL_GENERATIONS_GENERATION_H
#define MST_SERVER_CONTROL_GENERATIONS_GENERATION_H

#include <stdbool.h>

#include "common/base/reason.h"
#include "common/checkpoint/manifest/manifest.h"
#include "common/wire/message.h"
#include "server/control/generations/line.h"
#include "server/core/ledger/ledger.h"
#include "server/options/options.h"

struct mst_job_generation {
	bool counts;               /* --server-patience is given */
	struct mst_generation now; /* number 0: it has not begun */
	char drawn[MST_RUN_LEN];   /* at this start, as the id: what it saves has this name */
	/* The run is that of a checkpoint, or of a worker that has come back; or it has begun. */
	bool is_run_known;
	struct mst_claimed newest; /* what it began with; number 0: with nothing */
	/* Servers own: the checkpoint that says which run it is; "": none does. */
	const char *saved_in;
	uint64_t saved;
	struct mst_job_line line;  /* servers own */
	struct mst_claimed absent; /* a worker's newest claim before the start; number 0: none */
	bool told_absent;          /* the log says that nothing goes on from there */
};

/* Draws run and id.
 * @why: on failure a sentence.
 * Return: 0 or -errno. */
int mst_generation_init(struct mst_job_generation *g, const struct mst_server_options *o,
			struct mst_reason *why);
/* Servers own, and the job goes on from this checkpoint in @dir, which outlives *@g: its run goes
 * on. */
void mst_generation_resume(struct mst_job_generation *g, const struct mst_checkpoint_manifest *m,
			   const char *dir);
/* The id of the generation that has written a checkpoint; 0: none was counted. */
uint64_t mst_generation_maker(const struct mst_checkpoint_manifest *m);
/* Adds to a manifest which run and generation it is of.
 * Return: 0 or -ENOMEM. */
int mst_generation_save(const struct mst_job_generation *g, struct mst_checkpoint_manifest *m);
/* Has this hello the claim of a worker that comes back? */
static inline bool mst_hello_returns(const struct mst_hello *hello)
{
	return hello->returning.run[0] != '\0';
}
/* Does it come back from another run than that of this server? */
bool mst_generation_is_another(const struct mst_job_generation *g, const struct mst_hello *hello);
/* May the worker of this hello join? Before the start the first worker that comes back says which
 * run it is.
 * @why: a sentence.
 * Return: 0; -EINVAL: it comes from another run (-EBUSY before the start, which is tried again), or
 * generations are not counted here; -EPROTO: there is no such claim. */
int mst_generation_check(struct mst_job_generation *g, const struct mst_hello *hello,
			 const struct mst_server_options *o, struct mst_reason *why);
/* What the ledger is told of the hello's claim. */
struct mst_claimed mst_generation_claimed(const struct mst_hello *hello);
/* The newest version that this worker claims and that is not void. */
uint64_t mst_generation_stands(const struct mst_job_generation *g, const struct mst_claimed *of);
/* Which run it is of, and its number. */
void mst_generation_tell(const struct mst_job_generation *g, struct mst_status *out);
/* The generation has begun, as the ledger says. */
void mst_generation_begins(struct mst_job_generation *g, const struct mst_generation_view *view);

#endif
