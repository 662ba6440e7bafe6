/* SPDX-License-Identifier: MIT */
/* An aggregator of some ranks over links that only take notes, one step a line. */
#ifndef MST_TESTS_UNIT_SERVER_DATA_AGGREGATOR_CASE_H
#define MST_TESTS_UNIT_SERVER_DATA_AGGREGATOR_CASE_H

#include "server/data/aggregator.h"
#include "server/data/shard.h"

#define ELEMS 13000u
#define RANKS 12u
#define GROUP 4u
#define CHUNK 1024u

/* What was put, in order. */
struct note {
	uint32_t rank;
	struct mst_put put;
	union {
		struct mst_lane_answer answer;
		struct mst_lane_grant grant;
		uint64_t word;
		char cells[1024]; /* as much as there is */
	};
};
extern struct note note[];
extern int note_count;
extern bool member;          /* the next is not the lead's; false after every end */
extern bool unguarded;       /* the next lets everything pass; false after every end */
extern double clips;         /* the next: servers own, by sgd so clipped; 0 after every end */
extern uint32_t shards;      /* of the next that begins; 1 after every end */
extern int answers_to;       /* what put() says of what lies in place */
extern bool full;            /* the link: -EAGAIN */
extern void (*on_put)(void); /* what happens meanwhile; NULL: nothing */

extern struct mst_aggregator *aggregator;
extern struct mst_aggregator_cfg cfg;
extern struct mst_session session[RANKS];
extern struct mst_link link[RANKS];
extern struct mst_ledger_event event[];
extern int event_count, over_count;
extern int worked; /* how often a shard has said that a job is done */

void begin(bool maps);
void begin_with(bool maps, uint64_t chunk_elems);
/* A chunk of each shard. Return: was there any? */
bool work_all(void);
void end(void); /* nothing counted is left open */

/* The ledger. Versions are in buffer 2. */
void decide(const struct mst_decision *d);
void judge(uint32_t slot); /* rank 0's: counted */
void regrant(uint32_t slot);
void commit(void);
void release(uint32_t rank, uint32_t buffer); /* version 3, a copy, to its first ask */
void evict(uint32_t rank);
void fail(void); /* the job: nobody will commit what is counted */
/* It answers @rank's ask with a copy of version 3, and the shard has done all it can. */
void answer_to(uint32_t rank, uint64_t number);

/* The link. */
void arrive(uint32_t rank, uint32_t imm);
void ask(uint32_t rank);
void count(uint32_t slot); /* rank 0's contribution is full, and counted */
void count_of(uint32_t rank, uint32_t slot);
void report_sent(uint32_t rank, uint64_t cookie);
/* All parts put to the rank are sent; only the last says that the answer is. Return: how many. */
int report_parts_sent(uint32_t rank);

/* What came of it. */
bool said(int i, enum mst_ledger_event_kind kind, uint32_t rank);
const void *cell_at(int i, size_t offset); /* what note i wrote there */
bool is_part(int i, uint64_t first, uint64_t elems);

#endif
