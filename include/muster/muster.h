/* SPDX-License-Identifier: MIT */
/*
 * muster.h - the one public header of muster.
 *
 * A worker opens a handle, starts, and then goes round: fill the gradient, push it, wait for what
 * the rule gives next. Which synchronisation mode that is, the policy at the server decides; the
 * same loop serves all of them.
 *
 * Threads: one handle is used by one thread at a time (any thread); only muster_check() may be
 * called from any thread at any moment. The library keeps one small thread for heartbeats.
 * Returns: 0 or a positive count, or a negative errno whose sentence muster_error() gives.
 * Blocking: no call blocks beyond the time its contract names.
 *
 * Errors that several calls share:
 *   -ENOTCONN   this session has ended: evicted, or the server is gone; open a new handle. What was
 *               applied since the last good call is void.
 *   -EHOSTDOWN  the job has failed: too few live workers; the sentence names who is missing.
 *   -ESTALE     workers own: this worker is behind the history of versions the server keeps.
 *   -ETIMEDOUT, -EINTR  nothing is lost; call again.
 *   -EAGAIN     every slot is in flight; muster_wait() first.
 *   -EPROTO     the other side speaks another version of the protocol, or breaks it.
 *   -EINVAL     an argument is wrong; the sentence says which, and what would be right.
 *   -ENOMEM     no memory, here or at the server, for this worker's slots.
 */
#ifndef MUSTER_MUSTER_H
#define MUSTER_MUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct muster;

/* Element types. Partial sums are always f32, whatever goes in and comes out. */
enum muster_type { MUSTER_F32, MUSTER_BF16, MUSTER_F16 };

/* What a result is: parameters that the servers update, or mean gradients that every worker
 * applies, each version, in order. */
enum muster_owner { MUSTER_SERVERS_OWN, MUSTER_WORKERS_OWN };

/* The fate of a contribution. Every ticket gets exactly one. */
enum muster_verdict {
	MUSTER_NONE,    /* this outcome is about no push */
	MUSTER_COUNTED, /* part of version `counted_in`, for good, unless the job fails before it */
	MUSTER_LATE,    /* dropped: its step was committed without it */
	MUSTER_STALE,   /* rejected as too old: compute the same samples again */
	MUSTER_CANCELLED, /* abandoned, or its session or job ended before it was counted */
	MUSTER_REFUSED,   /* invalid: a weight that is no number, a tag from the future */
};

/* What muster_check() advises a busy worker. */
enum muster_advice {
	MUSTER_GO_ON,
	MUSTER_HAND_IN, /* push what is finished now */
	MUSTER_GIVE_UP, /* what is being computed can no longer count: muster_abandon() */
};

/* A named range of the vector. Optional: tells layers apart for optimisers and checkpoints. */
struct muster_tensor {
	const char *name;
	uint64_t first, count; /* elements */
	float lr_scale, decay_scale;
};

/* Start from MUSTER_OPTIONS. What is left unset (NULL, -1, 0) comes from the environment:
 * MUSTER_SERVER, MUSTER_JOB, MUSTER_RANK. Only there: MUSTER_TRANSPORT (auto, shm, verbs; auto is
 * what the server offers), MUSTER_DEVICE, MUSTER_DATA_ADDRESS, MUSTER_GID_INDEX, MUSTER_LOG. */
struct muster_options {
	size_t size;                  /* of this struct at the caller, so that it may grow */
	const char *server;           /* HOST:PORT of the lead; default 127.0.0.1:17077 */
	const char *job;              /* the job's name; default "default" */
	int32_t rank;                 /* -1: MUSTER_RANK, or else the lead gives a free one */
	uint64_t elems;               /* length of the vector; must be the job's */
	enum muster_type type;        /* of gradients */
	enum muster_type result_type; /* of results */
	enum muster_owner owner;
	const struct muster_tensor *tensors;
	uint32_t tensor_count;
	uint32_t join_ms; /* how long muster_open() and muster_start() may take; 0: 60 s */
	uint32_t wait_ms; /* how long muster_wait() may take; 0: the job's patience + lease */
};
/* clang-format off */
#define MUSTER_OPTIONS { .size = sizeof(struct muster_options), .rank = -1 }
/* clang-format on */

/* What a push says of its gradient. */
struct muster_contribution {
	double weight; /* samples in it; > 0, at most 2^53 */
	double loss;   /* their mean; NaN: not told */
	bool sum;      /* the data are a sum over the samples, not their mean */
	bool full;     /* ends the worker's own batch */
	bool keep;     /* I go on reading the result: this push does not ask, and its verdict comes
	                * with a later wait */
};

/* One rank's part in a version. */
struct muster_share {
	uint32_t rank;
	uint32_t count; /* contributions */
	double weight;  /* samples in them */
};

/* What the server orders for the version at hand. */
struct muster_orders {
	double lr_scale; /* workers own: multiply the learning rate of this version by it */
	double alpha;
	uint32_t local_steps, push_every, fetch_every;
};

/* What became of a push, and what to go on with. Set `size` to sizeof(struct muster_outcome), so
 * that the struct may grow; MUSTER_OUTCOME does it. The library writes the rest. */
struct muster_outcome {
	size_t size;
	enum muster_verdict verdict;
	uint64_t ticket;     /* the push it is about; 0: none */
	uint64_t counted_in; /* the version it is part of, published or not; 0 unless counted */
	uint64_t version;    /* what `result` is, and what the next contribution is computed on */
	bool fresh;          /* another version than the outcome before; else `result` stays put */
	bool finished;       /* the job has ended: this is its last version, no ticket is open */
	/* result_type[elems], read only, valid until the next push without keep, pull or wait.
	 * NULL: workers own, version 0, and nobody offered a start state. */
	const void *result;
	const struct muster_share
		*set;     /* exactly who is in `version`, by rank; valid like result */
	uint32_t set_len; /* 0 for version 0 */
	double weight;    /* samples in `version` */
	struct muster_orders orders;
};
/* clang-format off */
#define MUSTER_OUTCOME { .size = sizeof(struct muster_outcome) }
/* clang-format on */

/* A fate that an earlier session of this rank may not have heard of before it ended. */
struct muster_fate {
	uint64_t ticket; /* of that session */
	enum muster_verdict verdict;
	uint64_t counted_in;
};

/* The job as this worker joined it. */
struct muster_job {
	size_t size;
	const char *name;
	const char *policy; /* as the user typed it */
	uint32_t rank, incarnation, workers;
	uint32_t slots; /* gradient buffers of this worker */
	uint64_t elems;
	enum muster_type type, result_type;
	enum muster_owner owner;
	uint32_t lease_ms, patience_ms;
	const struct muster_fate *fates; /* of this rank's session before, if it had one */
	uint32_t fate_count;
};

/**
 * muster_open - join a job.
 * @opt: see above; read during the call only.
 * @out: the handle, written on success only; the caller's, to muster_close().
 * Blocks at most opt->join_ms. The server may be started later than the worker.
 * Return: 0; -EINVAL options, or they do not match the job's; -EEXIST another live worker has this
 * rank; -ENOSPC all ranks are taken; -EBUSY earlier sessions are still being cleared away, try
 * again; -EPROTO other protocol version; -ETIMEDOUT no server answered; -ESHUTDOWN the job is over;
 * -ESTALE joining too late (workers own); -ENOMEM; another errno of the connection. The sentence:
 * muster_error(NULL).
 */
int muster_open(const struct muster_options *opt, struct muster **out);

/**
 * muster_close - leave the job. What was pushed still counts; the others go on without this
 * worker. NULL is fine. Blocks for a moment only (a message is sent). Never fails.
 */
void muster_close(struct muster *m);

/** muster_error - the last failure in words, valid until the handle's next call. NULL: of this
 * thread's last muster_open(). Never NULL; empty if nothing has failed. */
const char *muster_error(const struct muster *m);

/** muster_job - the job as joined; valid until muster_close(). */
const struct muster_job *muster_job(const struct muster *m);

/**
 * muster_start - say that this worker is ready, and get what all start from.
 * @own: result_type[elems], a start state to offer, or NULL; read during the call only. The lowest
 *       rank that offers gives version 0 to everybody, itself included. A worker that joins a
 *       running job gets the version the rule lets it start with.
 * @out: the first outcome.
 * Blocks until all workers have started, at most join_ms.
 * Return: 0; -EINVAL servers own and nobody offered a state; -ETIMEDOUT workers are missing, call
 * again; and the shared errors.
 */
int muster_start(struct muster *m, const void *own, struct muster_outcome *out);

/** muster_gradient - type[elems] to fill next: contents undefined. The same buffer until it is
 * pushed or abandoned. NULL: all slots are in flight (wait first), before start, after the end.
 * Never blocks. The first call after an outcome fixes the tag: the version computed on. */
void *muster_gradient(struct muster *m);

/**
 * muster_push_range - a finished range of the contribution, to be sent while the rest is computed.
 * @first, @count: elements, within the vector; each element may be given once per contribution,
 *       in at most 65536 separate pieces.
 * @src: type[count], copied or sent before return; NULL: it lies in muster_gradient()'s buffer.
 * Never waits for the server; over RDMA it may wait a moment, while as many ranges are on their way
 * as the link holds. Return: 0; -EINVAL outside, or given before; -EAGAIN no free slot; shared
 * errors.
 */
int muster_push_range(struct muster *m, uint64_t first, uint64_t count, const void *src);

/**
 * muster_push - hand the contribution in: the rest (what no range covered, taken from
 * muster_gradient()'s buffer) and the header. After it the buffer is the server's, and unless
 * c->keep the result of the last outcome may no longer be read.
 * @ticket: may be NULL; numbers the contribution, from 1 in each session; 0 once the job is over.
 * As muster_push_range() it never waits for the server. Return: 0; -EINVAL weight not a positive
 * number; -EAGAIN; shared errors.
 */
int muster_push(struct muster *m, const struct muster_contribution *c, uint64_t *ticket);

/** muster_abandon - give the unfinished contribution up, ranges already sent included. The next
 * muster_wait() says CANCELLED with ticket 0. As muster_push_range() it never waits for the server.
 * Return: 0; shared errors. */
int muster_abandon(struct muster *m);

/** muster_check - advice for a busy worker: a read of local memory, cheap enough for every
 * micro-batch. May be called from any thread. GIVE_UP also when the job or session has ended. */
enum muster_advice muster_check(const struct muster *m);

/** muster_pull - ask for the newest version without contributing; muster_wait() brings it. Lets
 * go of the last result. As muster_push_range() it never waits for the server. Return: 0; shared
 * errors. */
int muster_pull(struct muster *m);

/**
 * muster_wait - wait until the rule lets this worker go on.
 * Asks, if no ask is out. Returns when the verdicts of all pushes that asked, the answer and a
 * free gradient buffer are there. An outcome brings one verdict at most, oldest ticket first, and
 * one version at most.
 * Blocks at most wait_ms.
 * Return: 0; 1 more outcomes are ready, call again at once; -ETIMEDOUT, -EINTR call again;
 * shared errors.
 */
int muster_wait(struct muster *m, struct muster_outcome *out);

/** muster_finish - end the job for everybody. @why goes to the log; may be NULL. Does not wait:
 * muster_wait() then brings the last outcome. Return: 0; shared errors. */
int muster_finish(struct muster *m, const char *why);

/* The loop's hooks. Each returns 0, or a negative errno that ends muster_train() with it. */
struct muster_hooks {
	void *ctx;
	/* One micro-batch. @grad is undefined while c->weight == 0: store then, later add. Add the
	 * samples to c->weight and keep c->loss their mean; set c->full at the end of a batch. */
	int (*compute)(void *ctx, void *grad, struct muster_contribution *c);
	/* Optional: an own step between exchanges. */
	int (*local)(void *ctx, void *grad);
	/* Once per fresh result, and every version in order where workers own; not for the start
	 * state, which muster_start() has given already. > 0: enough, finish the job for
	 * everybody. */
	int (*apply)(void *ctx, const struct muster_outcome *out);
};

/**
 * muster_train - the loop for every policy: compute micro-batches until a batch is full, looking
 * at muster_check() between them; push; wait; apply; until the job is finished. Called after
 * muster_start(). Return: 0 finished; what a hook returned; -ETIMEDOUT a wait took more than
 * wait_ms; shared errors.
 */
int muster_train(struct muster *m, const struct muster_hooks *hooks);

#ifdef __cplusplus
}
#endif

#endif
