/* SPDX-License-Identifier: MIT */
/*
 * The number of workers in force (PROTOCOL 11): that of the leader's command line, or another one
 * that an operator has asked for, and that workers bring back. Pure.
 *
 * A change comes with the number that the command line said when it was made. A leader that is
 * started with the same number goes on with the change; one that is started with another number has
 * been given it on purpose, after the change.
 */
#ifndef MST_SERVER_CONTROL_GENERATIONS_WORKFORCE_H
#define MST_SERVER_CONTROL_GENERATIONS_WORKFORCE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/message.h"

/* Different numbers that workers bring are told apart up to so many. */
#define MST_WORKFORCE_TOLD 4u

/* What a leader that begins anew keeps. */
struct mst_renewal {
	uint32_t given;                 /* --workers; 0: it is the first, and nothing is kept */
	struct mst_workforce workforce; /* the newest that it knows; workers 0: none */
	uint32_t record_ranks; /* the most that records of earlier generations might name */
};

struct mst_job_workforce {
	uint32_t given;              /* --workers */
	struct mst_workforce newest; /* that is believed; workers 0: none is */
	uint32_t record_ranks;       /* the most that records of earlier generations might name */
	struct {
		struct mst_workforce number; /* workers 0: the row is free */
		uint32_t rank;               /* that has said so first */
	} told[MST_WORKFORCE_TOLD];
};

/* @kept: what the leader knew before it began anew. @workers: of its options. */
void mst_workforce_init(struct mst_job_workforce *w, const struct mst_renewal *kept,
			uint32_t workers);
/* What the next one is to know. */
struct mst_renewal mst_workforce_keep(const struct mst_job_workforce *w);
/* The number in force. */
struct mst_workforce mst_workforce_now(const struct mst_job_workforce *w);
/* A rank says what it was told last. It is believed once a second rank has said the same, so that
 * one that is broken makes no job smaller; of a job of one or two workers the first is believed, if
 * no other has said anything else. */
void mst_workforce_hear(struct mst_job_workforce *w, uint32_t rank,
			const struct mst_workforce *told);
/* Records of a generation that is known may name so many ranks. */
static inline void mst_workforce_names(struct mst_job_workforce *w, uint32_t record_ranks)
{
	if (record_ranks > w->record_ranks)
		w->record_ranks = record_ranks;
}
/* An operator wants @workers. Return: the number from then on. */
struct mst_workforce mst_workforce_change(struct mst_job_workforce *w, uint32_t workers);

#endif
