/* SPDX-License-Identifier: MIT */
/*
 * A shard's own state; only the files of the shard include it:
 *
 *   shard.c    slots, arrivals, decisions that take effect at once
 *   job.c      the queue of work: folds, commits, answers, chunk by chunk
 *   send.c     what is put to workers, and what of it is on its way
 */
#ifndef MST_SERVER_SHARD_STATE_H
#define MST_SERVER_SHARD_STATE_H

#include "common/kernels/tree.h"
#include "server/shard.h"

#define MST_PARTS_MAX 16u /* that a result is sent in, and the rest */

/* Elements. */
struct mst_span {
	uint64_t begin, end;
};

enum mst_job_kind { MST_JOB_FOLD, MST_JOB_COMMIT, MST_JOB_ANSWER };

/* The sum of a rank that has contributed twice or more to one step. */
struct mst_fold {
	float *sum;
	uint32_t rank;
	bool taken;
	struct mst_fold *next; /* of the same step */
};

/* Work on the whole range, one chunk at a time. */
struct mst_job {
	enum mst_job_kind kind;
	uint64_t cursor; /* elements done */
	union {
		struct {
			struct mst_slot *slot;
			struct mst_fold *into;
			bool starts; /* it is the first of the sum */
		} fold;
		struct {
			struct mst_slot *slots; /* summands, in order of rank and seq */
			struct mst_fold *folds; /* in order of rank */
			uint32_t buffer;
			float divisor, rate;
			const void *before; /* the version it starts from */
		} commit;
		struct {
			struct mst_session *session;
			const struct mst_record *record;
			struct mst_lane_answer answer;
			uint32_t window; /* of the rule in force when it was decided */
			bool preempt;
		} answer;
	};
};

/* What a rank has in the open step: a fold with all of it, or slots. */
struct mst_rank_open {
	struct mst_slot *first, *last;
	struct mst_fold *fold;
};

struct mst_shard {
	struct mst_shard_cfg cfg;
	struct mst_shard_up up;
	struct mst_session **session; /* by rank: the present one, or NULL */

	struct mst_rank_open *rank; /* the open step */
	struct mst_fold *fold;

	struct mst_job *queue;
	uint32_t queue_size, queue_head, queue_count;
	struct mst_leaf *leaf; /* of the commit at work */
	uint32_t leaf_count;

	struct mst_lane_session finished; /* the word of a session that begins after the end */
	uint32_t newest_buffer;           /* of the newest version decided; MST_BUFFER_NONE: none */
	float *theta;           /* servers own 16-bit results: the parameters in f32, else NULL */
	float *momentum;        /* NULL where there is none */
	float *total, *scratch; /* one chunk, two chunks */
	uint64_t *due;          /* set of ranks with verdicts or grants still to be put */
	char *letter;           /* answer and record, as they are put */
};

/* shard.c */
void mst_shard_read_done(struct mst_shard *s, struct mst_slot *slot);
/* One thing less refers to the session: the last lets go of it once it is over. */
void mst_shard_unbusy(struct mst_shard *s, struct mst_session *session);
/* Gives the rank's summands of the open step a fold, if there are several and a buffer is free. */
void mst_shard_fold(struct mst_shard *s, uint32_t rank);
/* Tells the ledger once that this session's link is of no more use. */
void mst_shard_lose(struct mst_shard *s, struct mst_session *session, int error);

/* send.c */
/* Puts to the worker; a link that cannot take it is reported lost. Return: as the put, -EPIPE to a
 * session that is over. */
int mst_shard_put(struct mst_shard *s, struct mst_session *session, const struct mst_put *put);
/* The slot's verdict, or grant, is new. It leaves with the session's answer if one is queued, else
 * with mst_shard_deliver(). */
void mst_shard_post_verdict(struct mst_shard *s, const struct mst_slot *slot);
void mst_shard_post_grant(struct mst_shard *s, const struct mst_slot *slot);
/* What is due goes now, before something that must not pass it. */
void mst_shard_put_due(struct mst_shard *s, struct mst_session *session);
/* The answer, the record if there is one, and all that is due. */
void mst_shard_put_answer(struct mst_shard *s, struct mst_session *session,
			  const struct mst_lane_answer *answer, size_t record_bytes);
/* Where that record is composed. */
struct mst_lane_record *mst_shard_letter_record(const struct mst_shard *s);
/* What was computed on an older version than this cannot count any more. */
void mst_shard_advise(struct mst_shard *s, struct mst_session *session, uint64_t version);
/* A part of a copied result, from where it is published; parts are sent in order. */
void mst_shard_send_result(struct mst_shard *s, struct mst_session *session,
			   const struct mst_lane_answer *answer, const struct mst_span *part);
/* A copied result has been sent: its buffer is not read for this session any more. */
void mst_shard_answered(struct mst_shard *s, struct mst_session *session, uint64_t number);
/* MST_SENT has come. */
void mst_shard_sent(struct mst_shard *s, struct mst_session *session, uint64_t cookie);
/* The session is over: of what is on its way to it nothing more is heard. */
void mst_shard_forget_sends(struct mst_session *session);

/* job.c */
/* A new job at the end of the queue, zeroed. */
struct mst_job *mst_job_add(struct mst_shard *s, enum mst_job_kind kind);
void mst_job_commit(struct mst_shard *s, const struct mst_decision *d, const struct mst_record *r);
void *mst_shard_buffer(const struct mst_shard *s, uint32_t buffer);
const void *mst_shard_gradient(const struct mst_shard *s, const struct mst_slot *slot);

#endif
