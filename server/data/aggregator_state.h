/* SPDX-License-Identifier: MIT */
/*
 * The private state of an aggregator, which only the files of struct mst_aggregator include:
 *
 *   aggregator.c  slots, arrivals, decisions that take effect at once
 *   open_step.c   the contributions that are counted and wait for the next commit
 *   tensors.c     the tensors of this part, and their scales
 *   norms.c       the norms of tensors
 *   distance.c    how far the parameters have moved since a worker read them
 *   validate.c    what its leader may order a follower to do
 *   task.c        the queue of work: partial sums, groups, commits, answers
 *   shard.c       that work, on a range of the vector
 *   spoil.c       what made a version that is not finite
 *   send.c        what is put to workers, and what of it is on its way
 */
#ifndef MST_SERVER_DATA_AGGREGATOR_STATE_H
#define MST_SERVER_DATA_AGGREGATOR_STATE_H

#include <stdatomic.h>

#include "server/core/ranks.h"
#include "server/data/aggregator.h"
#include "server/data/shard.h"

#define MST_PARTS_MAX 17u /* that a result is sent in: a link has room for this number of parts */
static_assert(MST_PARTS_MAX > MST_SHARDS_MAX, "each shard's range may have a rest to send");

#define MST_AVERAGES_MAX 3u /* places of the average */

enum mst_task_kind {
	MST_TASK_EXAMINE, /* what has arrived in a slot is read before it is reported */
	MST_TASK_REPORT,  /* moves nothing: something else that a session says, in its turn */
	MST_TASK_PARTIAL,
	MST_TASK_GROUP,
	/* the mean alone and its squares, and the distance of two versions, as far as either is
	 * wanted; the commit after it waits for APPLY */
	MST_TASK_REDUCE,
	MST_TASK_COMMIT,
	MST_TASK_ANSWER,
	MST_TASK_SETTLE, /* moves nothing: all before it has been done */
	MST_TASK_SAVE,   /* moves nothing: the version before it is made */
	MST_TASK_LEND,   /* the same, and its average is lent */
};

/* A sum that is ready before the commit: of a rank that has contributed twice or more to the step,
 * or of a whole group. */
struct mst_partial {
	float *sum;
	uint32_t rank, rank_end; /* whose; of a group several */
	bool taken;
	/* If a group's sum is not finite: the gradient that made it so. `found`: this is set. */
	bool found;
	struct mst_spoilt culprit;
	struct mst_partial *next; /* of the same step */
};

/* Work on the vector. Once it is in the queue nothing in it changes but what `answer` says. */
struct mst_task {
	enum mst_task_kind kind;
	bool moves;    /* it moves data: the shards do it, each its range, then it is over */
	uint64_t work; /* number among those */
	union {
		struct {
			struct mst_session *session;
			struct mst_ledger_event event;
		} report; /* EXAMINE, REPORT */
		struct {
			struct mst_slot *slot;
			struct mst_partial *into;
			bool starts; /* it is the first of the sum */
		} partial;
		struct {
			struct mst_slot *slots; /* summands, in order of rank */
			struct mst_partial *into;
		} group;
		struct {
			struct mst_slot *slots;       /* summands, in order of rank and seq */
			struct mst_partial *partials; /* in order of rank */
			uint64_t version;
			uint32_t buffer;
			float divisor;
			float scalar[MST_SCALARS_MAX];
			float average;      /* what is left of the moving average */
			const void *before; /* the version it starts from */
			const void *read;   /* REDUCE: the one it is compared with, or NULL */
			/* The sides that it reads and writes, of vectors that are updated in
			 * place. */
			uint8_t from, to;
			uint8_t average_from, average_to; /* the same of the average */
			/* After REDUCE, which has used the summands: */
			bool waits; /* the leader has not said yet what the mean is multiplied by */
			float factor; /* what it has said */
		} commit;             /* REDUCE, COMMIT */
		struct mst_saving save;
		struct {
			uint64_t version;
			const float *average;
		} lend;
		struct {
			struct mst_session *session;
			const struct mst_record *record;
			/* Parts of the record, as it was when the answer was decided. */
			struct mst_pace pace;
			uint32_t window;
			bool until_asked, by_micro;
			struct mst_lane_answer answer;
		} answer;
	};
};

/* What a rank has in the open step: a partial sum with all of it, or slots. */
struct mst_rank_open {
	struct mst_slot *first, *last;
	struct mst_partial *partial;
};

/* What is counted and waits for the next commit: open_step.h. */
struct mst_open_step {
	struct mst_rank_open *rank;
	struct mst_ranks counted; /* the ranks that have something in it */
	uint32_t entries;         /* contributions in it */
	struct mst_ranks ready;   /* the groups that can be summed already */
	/* The buffers for partial sums, cfg.partials of them: also those of steps that are
	 * committed and not yet summed. */
	struct mst_partial *partial;
};

struct mst_aggregator {
	struct mst_aggregator_cfg cfg;
	struct mst_aggregator_up up;
	struct mst_session **session; /* by rank: the present one, or NULL */

	struct mst_open_step open;

	struct mst_task *queue;
	uint32_t queue_size, queue_head, queue_count;
	uint32_t queue_begun; /* tasks begun: a commit that waits holds up those after it */
	/* The tasks in the queue that move data, by number modulo queue_size. work_count is how
	 * many there ever were: when it grows, the shards know of one more. */
	const struct mst_task **work;
	uint64_t work_count;
	_Atomic uint64_t work_posted;
	struct mst_shard *shard[MST_SHARDS_MAX];

	struct mst_lane_session finished; /* the word of a session that begins after the end */
	bool settles;                     /* SETTLE has been ordered */
	/* A version is not finite, or never got its factor: that one and all after it are
	 * answered to nobody. */
	bool spoilt;
	uint32_t newest_buffer; /* of the newest version decided; MST_BUFFER_NONE: none */
	uint64_t newest;        /* that version */
	/* Vectors that are updated in place, and have a second side if versions are saved. The
	 * commit after a version that is saved writes to the other side, so that nothing has to be
	 * copied; the commits after that one stay there. */
	struct mst_kept_vectors {
		float *theta; /* servers own 16-bit results: the parameters in f32, else NULL */
		float *state[MST_STATES_MAX]; /* the optimiser's; NULL: not kept */
		/* The version that they have when all decisions have been carried out. What the
		 * shards have done so far each of them knows of its range: mst_shard_kept(). */
		uint64_t version;
	} kept[2];
	/* The moving average of the parameters; NULL: not kept. It has places of its own, because a
	 * worker reads it while the steps go on: the place that the newest version decided has, one
	 * that is lent, and, if versions are saved, one that is being saved. The commit after a
	 * version whose average is lent or saved writes to a place that nobody reads. */
	float *average[MST_AVERAGES_MAX];
	uint8_t average_now;
	uint8_t average_lent, average_saved; /* MST_AVERAGES_MAX: none is */
	uint8_t side;                        /* that the newest version decided has */
	bool forks;                          /* the next commit changes sides */
	bool saving;        /* SAVE has been ordered, and what it saves may not change yet */
	uint8_t saved_side; /* where that is */
	bool resumes;       /* the job goes on from a checkpoint: theta has been filled */
	/* Scales of the tensors in this part; neighbours with equal scales have one. NULL: all are
	 * 1. Where the optimiser wants norms of tensors: one for each tensor, never NULL. */
	struct mst_scale *scale;
	uint32_t scales;
	/* Where the optimiser wants norms: does the first tensor begin before this part, does the
	 * last one end beyond it? */
	bool cut_left, cut_right;
	float *mean;          /* between REDUCE and its commit; NULL: no reduce phase */
	struct mst_ranks due; /* the ranks with verdicts or grants still to be put */
	struct mst_reports reports;
	char *response; /* verdicts, grants, answer, record: as they are put */
};

/* aggregator.c */
void mst_aggregator_read_done(struct mst_aggregator *a, struct mst_slot *slot);
/* One reference to the session is dropped. If it was the last and the session is over, the session
 * is freed. */
void mst_aggregator_unbusy(struct mst_aggregator *a, struct mst_session *session);
/* Reports what a task has brought in its turn, and lets go of the session. */
void mst_aggregator_report(struct mst_aggregator *a, struct mst_session *session,
			   struct mst_ledger_event *ev);
/* Tells the ledger once that this session's link is of no more use. */
void mst_aggregator_lose(struct mst_aggregator *a, struct mst_session *session, int error);
/* What the worker does is not what the protocol allows: keeps @fmt, a sentence that begins with
 * "it", for the control thread, which may read it from the first loss on. Return: -EPROTO, to be
 * passed to mst_aggregator_lose(). */
int mst_aggregator_refuse(struct mst_session *session, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Are contributions read when they arrive? */
static inline bool mst_aggregator_examines(const struct mst_aggregator_cfg *cfg)
{
	return cfg->measures || cfg->checks;
}

/* send.c */
/* Puts to the worker; a link that cannot take it is reported lost. Return: as the put, -EPIPE to a
 * session that is over. */
int mst_aggregator_put(struct mst_aggregator *a, struct mst_session *session,
		       const struct mst_put *put);
/* The slot's verdict, or grant, is new. It leaves with the session's answer if one is queued, else
 * with mst_aggregator_deliver(). */
void mst_aggregator_post_verdict(struct mst_aggregator *a, const struct mst_slot *slot);
void mst_aggregator_post_grant(struct mst_aggregator *a, const struct mst_slot *slot);
/* What is due goes now, before something that must not pass it. */
void mst_aggregator_put_due(struct mst_aggregator *a, struct mst_session *session);
/* The answer, the record if there is one, and all that is due. */
void mst_aggregator_put_answer(struct mst_aggregator *a, struct mst_session *session,
			       const struct mst_lane_answer *answer, size_t record_bytes);
/* Where that record is composed. */
size_t mst_aggregator_response_bytes(const struct mst_lane_layout *l);
struct mst_lane_record *mst_aggregator_response_record(const struct mst_aggregator *a);
/* What was computed on an older version than this cannot count any more. */
void mst_aggregator_advise(struct mst_aggregator *a, struct mst_session *session, uint64_t word);
/* A part of a copied result, from where it is published. */
struct mst_result_part {
	struct mst_span span;
	bool last; /* none follows */
};
void mst_aggregator_send_result(struct mst_aggregator *a, struct mst_session *session,
				const struct mst_lane_answer *answer,
				const struct mst_result_part *part);
/* A copied result has been sent: its buffer is not read for this session any more. */
void mst_aggregator_answered(struct mst_aggregator *a, struct mst_session *session,
			     uint64_t number);
/* MST_SENT has come. */
void mst_aggregator_sent(struct mst_aggregator *a, struct mst_session *session, uint64_t cookie);
/* The session is over: of what is on its way to it nothing more is heard. */
void mst_aggregator_forget_sends(struct mst_session *session);

/* task.c */
/* Appends a copy of @task to the queue. */
void mst_task_add(struct mst_aggregator *a, const struct mst_task *task);
void mst_task_commit(struct mst_aggregator *a, const struct mst_decision *d,
		     const struct mst_record *r);
/* Is the commit of this version the next task, and does it wait for the factor of its mean? */
bool mst_task_waits(const struct mst_aggregator *a, uint64_t version);
/* Gives that commit its factor, so that it goes on. */
void mst_task_apply(struct mst_aggregator *a, const struct mst_decision *d);
/* The newest version decided is to be saved when it has been made. */
void mst_task_save(struct mst_aggregator *a, const struct mst_decision *d);
/* Its average is to be lent then. */
void mst_task_lend(struct mst_aggregator *a, const struct mst_decision *d);
/* The job has ended: no commit waits any more. The commits that did wait are answered to nobody. */
void mst_task_apply_none(struct mst_aggregator *a);

static inline void *mst_version_buffer(const struct mst_aggregator *a, uint32_t buffer)
{
	return (char *)a->cfg.published +
	       buffer * mst_version_stride(a->cfg.elems, a->cfg.result_type);
}

/* Writes the number of a version into the word beside the memory that the calling thread is about
 * to write this version to. The fence keeps later stores after it, also those that go past the
 * caches, and on processors that write in another order. */
static inline void mst_mark(void *word, uint64_t version)
{
	atomic_store_explicit((_Atomic uint64_t *)word, version, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

/* The version that the buffer has, or is about to have. */
static inline void mst_version_mark(const struct mst_aggregator *a, uint32_t buffer,
				    uint64_t version)
{
	if (a->cfg.marks)
		mst_mark((uint64_t *)mst_version_buffer(a, a->cfg.buffers) + buffer, version);
}

/* spoil.c: what a commit put out is not finite. Where that comes from, while the slots still hold
 * the data; and the same of a group's sum, which keeps it. */
struct mst_spoilt mst_spoil_of_commit(const struct mst_aggregator *a, const struct mst_task *task);
void mst_spoil_of_group(const struct mst_aggregator *a, const struct mst_task *task);

/* tensors.c: how many scales there may be; and those of a vector that is one tensor */
uint32_t mst_scales_max(const struct mst_aggregator_cfg *cfg);
void mst_scales_init(struct mst_aggregator *a);

/* shard.c: of what lies in the slot, all of it. */
const void *mst_slot_gradient(const struct mst_aggregator *a, const struct mst_slot *slot);

#endif
