/* SPDX-License-Identifier: MIT */
/*
 * What this worker knows of generations of servers (PROTOCOL 11): which one it is in, and what it
 * claims when it comes back: the version of its last outcome, and who has made it.
 *
 * The handle's thread gives outcomes; the heartbeat's thread takes the claim when the session is
 * lost. From then on the old session gives no outcome any more: what is claimed is what the program
 * has.
 */
#ifndef MST_CLIENT_SESSION_LINEAGE_H
#define MST_CLIENT_SESSION_LINEAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/wire/message.h"

struct mst_lineage {
	struct mst_generation of; /* of the session; number 0: it has not begun, or none counts */
	/* Its generation has, or is to have, this number and id; and the last one before it that
	 * this worker has said START to. */
	uint64_t number, id;
	uint64_t seen, seen_id;
	bool in_order;                  /* workers own: each version is the one after the last */
	uint32_t incarnation;           /* of the last session */
	uint32_t workers;               /* of the job in that session, */
	uint32_t record_ranks;          /* and the ranks that its records might name */
	struct mst_workforce workforce; /* as this worker was told last */
	/* The handle's thread: the last outcome was of the first version of the run, with which no
	 * state came: each worker had its own. */
	bool stateless;
	/* The last outcome and the one before: the word says which is which. */
	struct mst_returning mark[2];
	_Atomic uint64_t word;
	/* The last generation that this worker was in; number 0: none. The thread that takes the
	 * claim has it. */
	struct mst_generation was_in;
	/* The handle's thread: who has made the last versions that were given, and later ones in
	 * which gradients of this worker are known to have counted. */
	struct mst_lineage_made {
		uint64_t version, made;
	} made[MST_COUNTED_MAX];
};

/* Begins without an outcome. */
void mst_lineage_init(struct mst_lineage *l, bool in_order);
/* A session begins, in the generation of the welcome as far as it is known. */
void mst_lineage_session(struct mst_lineage *l, const struct mst_welcome *welcome);
/* What it says of the number of workers. */
struct mst_workforce mst_lineage_workforce_of(const struct mst_welcome *welcome);
/* The number of workers, as the leader has told it. An older one is not taken. */
void mst_lineage_workforce(struct mst_lineage *l, const struct mst_workforce *told);
/* START is about to be said: from now on this worker knows of that generation, whether it gets an
 * outcome of it or not. Return: false: the claim has been taken, so START must not be said. */
bool mst_lineage_start(struct mst_lineage *l);
/* The generation has begun. */
void mst_lineage_begins(struct mst_lineage *l, const struct mst_generation *of);

/* An outcome of @version is given now, with so many samples in all versions up to it.
 * Return: false: it must not be: the claim has been taken. */
bool mst_lineage_outcome(struct mst_lineage *l, uint64_t version, double samples);
/* The same, where the version has been taken over with the state of another worker. */
bool mst_lineage_taken(struct mst_lineage *l, uint64_t version, double samples);
/* Any thread: takes the claim: of the last outcome, or without a version if there was none yet.
 * @begun: the generation of the session, as far as its leader has told that it runs; number 0: it
 * has not begun.
 * Return: false: there is none, for the worker was in no generation; *out is zeroed then. */
bool mst_lineage_claim(struct mst_lineage *l, const struct mst_generation *begun,
		       struct mst_returning *out);

/* The handle's thread: the id of the generation that made @version, which is one of the last that
 * were given, or a later one of this generation; 0: none has, or it is not known. */
uint64_t mst_lineage_maker(const struct mst_lineage *l, uint64_t version);
/* The handle's thread: gradients of this worker have counted in @version, which it has not been
 * given yet, and which the generation of this id has made. */
void mst_lineage_counted(struct mst_lineage *l, uint64_t version, uint64_t made);
/* Is that so? */
bool mst_lineage_has_counted(const struct mst_lineage *l, uint64_t version, uint64_t made);
/* The newest version up to @have, the worker's last one, that the generation @next goes on from
 * too. If it has gone on from another line since two generations or more, it may be an earlier one
 * yet. */
uint64_t mst_lineage_shared(const struct mst_lineage *l, const struct mst_generation *next,
			    uint64_t have);

#endif
