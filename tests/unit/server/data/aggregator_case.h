/* SPDX-License-Identifier: MIT */
/* An aggregator of some ranks over links that only take notes, one step a line. */
#ifndef MST_TESTS_UNIT_SERVER_DATA_AGGREGATOR_CASE_H
#define MST_TESTS_UNIT_SERVER_DATA_AGGREGATOR_CASE_H

#include "server/data/aggregator.h"
#include "server/data/shard.h"

#define AGG_ELEMS 13000u
#define AGG_RANKS 12u
#define AGG_GROUP 4u
#define AGG_CHUNK 1024u
#define AGG_SAMPLES 1e6 /* in all versions */

/* What was put, in order. */
struct agg_note {
	uint32_t rank;
	struct mst_put put;
	union {
		struct mst_lane_answer answer;
		struct mst_lane_grant grant;
		uint64_t word;
		char written[1024]; /* as much as there is */
	};
};
extern struct agg_note agg_note[];
extern int agg_note_count;
extern bool agg_follower;  /* the next is not the leader's; false after every end */
extern bool agg_unguarded; /* the next lets everything pass; false after every end */
extern double agg_clips;   /* the next: servers own, by sgd so clipped; 0 after every end */
/* What else the next is to be; NULL after every end. */
extern void (*agg_adjust)(struct mst_aggregator_cfg *cfg);
extern uint32_t agg_shards;  /* of the next that begins; 1 after every end */
extern uint32_t agg_workers; /* of the next, more than have sessions; AGG_RANKS after every end */
extern int agg_put_rc;       /* what put() says of what lies in place */
extern bool agg_link_full;   /* the link: -EAGAIN */
extern int agg_link_refuses; /* likewise, so many puts */
extern void (*agg_on_put)(void); /* what happens meanwhile; NULL: nothing */

extern struct mst_aggregator *agg_aggregator;
extern struct mst_aggregator_cfg agg_cfg;
extern struct mst_session agg_session[AGG_RANKS];
extern struct mst_link agg_link[AGG_RANKS];
extern struct mst_ledger_event agg_event[];
extern int agg_event_count, agg_over_count;
/* The last version that is made and to be saved; and how many there were. */
extern struct mst_saving agg_saving;
extern int agg_saving_count;
extern uint64_t agg_lent_version;
extern const float *agg_lent;
extern int agg_lent_count;
extern int agg_worked; /* how often a shard has said that a job is done */

void agg_begin(bool maps);
void agg_begin_with(bool maps, uint64_t chunk_elems);
/* A chunk of each shard. Return: was there any? */
bool agg_work_all(void);
void agg_end(void); /* nothing counted is left open */

/* The ledger. Versions are in buffer 2. */
void agg_decide(const struct mst_decision *d);
void agg_judge(uint32_t slot); /* rank 0's: counted */
void agg_regrant(uint32_t slot);
void agg_commit(void);
/* With a rate of 1. */
void agg_commit_to(uint64_t version, uint32_t buffer);
void agg_save(uint64_t version, uint32_t buffer);
void agg_release(uint32_t rank, uint32_t buffer); /* version 3, a copy, to its first ask */
void agg_evict(uint32_t rank);
void agg_fail(void); /* the job: nobody will commit what is counted */
/* It answers @rank's ask with a copy of version 3, and the shard has done all it can. */
void agg_answer_to(uint32_t rank, uint64_t number);

/* The link. */
void agg_arrive(uint32_t rank, uint32_t imm);
void agg_ask(uint32_t rank);
void agg_count(uint32_t slot); /* rank 0's contribution is full, and counted */
void agg_count_of(uint32_t rank, uint32_t slot);
/* Writes a gradient there; the bits of sums of these depend on the order of the additions. */
void agg_fill(uint32_t rank, uint32_t slot);
void agg_report_sent(uint32_t rank, uint64_t cookie);
/* All parts put to the rank are sent; only the last says that the answer is. Return: how many. */
int agg_report_parts_sent(uint32_t rank);

/* What came of it. */
bool agg_said(int i, enum mst_ledger_event_kind kind, uint32_t rank);
const float *agg_result(void);                    /* the version in buffer 2 */
const void *agg_written_at(int i, size_t offset); /* what note i wrote there */
bool agg_is_part(int i, uint64_t first, uint64_t elems);

#endif
