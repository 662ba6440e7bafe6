/* SPDX-License-Identifier: MIT */
/*
 * muster.h - the public header of muster. It includes state.h, its part about states of workers.
 *
 * A worker opens a handle, starts, and then goes round: fill the gradient, push it, wait for what
 * the rule gives next. The policy at the server decides which synchronisation mode that is; the
 * same loop serves all of them.
 *
 * Threads: one handle is used by one thread at a time (any thread); only muster_check() and
 * muster_wake() may be called from any thread at any moment. A small thread sends heartbeats.
 * Returns: 0 or a positive count, or a negative errno whose sentence muster_error() gives.
 * Blocking: no call blocks beyond the time its contract names. Only the first call that finds the
 * session ended may take two seconds longer: it waits for the leader to say why, so that all
 * workers report the same reason.
 * Processes: a handle belongs to the process that opened it. In a child of fork() every call that
 * returns an int returns -ECHILD, muster_gradient() returns NULL and muster_check() GIVE_UP;
 * muster_error() and muster_job() work, and muster_close() frees the child's copy without the
 * parent or the server noticing. fork() itself closes the handle's descriptors in the child, and
 * exec closes them, so that no child keeps a session alive after the parent has died. There is one
 * exception: a child that is forked while another thread is inside muster_open(), or while
 * muster_close() frees a handle, may keep the descriptors until it ends or calls exec. If the
 * parent dies meanwhile, the server notices this only when the lease runs out. The child must not
 * touch memory that the handle has given out: over shared memory it is the parent's too, over RDMA
 * it is not there. The child may open a handle of its own. clone() and _Fork() tell a library
 * nothing: where they are used instead of fork(), the child must not touch the handle.
 *
 * Errors that several calls share:
 *   -ENOTCONN   this session has ended: the worker was evicted, or a server is gone or was silent
 *               for longer than --server-lease, and no other has taken its place in time; open a
 *               new handle. What was applied since the last call that succeeded is void.
 *   -EIDRM      the job goes on with fewer workers, and this rank is over (muster workers N).
 *   -EHOSTDOWN  the job has failed; the sentence says why: too few live workers, and who is
 *               missing; or a version would not have been finite, and whose gradient made it so.
 *   -ESTALE     workers own: this worker lacks versions that the servers no longer keep. With
 *               options.comes_back the session goes on: muster_take_state() brings the state of
 *               another worker. Else, and where no other worker gives one, it has ended. Not once
 *               the job has ended well: the last outcome then says what is lacking.
 *   -ETIMEDOUT  nothing is lost; call again. A server that has been silent for a lease is named:
 *               it stands still, or is cut off, and may come back.
 *   -EINTR      a signal came while the call slept, and its handler has run on this thread; or
 *               another thread has called muster_wake(). Nothing is lost, call again. A process
 *               that is stopped and continued simply goes on waiting.
 *   -ECHILD     another process opened this handle, and this one is a child that it forked.
 *   -EAGAIN     every slot is in flight, or MUSTER_TICKETS_MAX pushes wait for their outcomes;
 *               muster_wait() first.
 *   -EPROTO     the other side speaks another version of the protocol, or breaks it.
 *   -EINVAL     an argument is wrong; the sentence says which, and what would be right.
 *   -ENOMEM     no memory, here or at the server, for this worker's slots.
 *
 * Lost servers: with musterd --server-patience a handle outlives its servers. Inside
 * muster_start(), muster_wait() and muster_try_wait() it comes back, with its rank, to the server
 * that takes the place of one that is lost; outcome.generation tells. Until then muster_gradient(),
 * muster_push(), muster_push_range() and muster_abandon() work on, what is pushed is CANCELLED, and
 * muster_check() says GIVE_UP. What had been pushed is COUNTED if a version that is still there has
 * it, else CANCELLED. The contribution at hand is given up, and from then on the buffers of
 * gradients and the place of results are others; not options.result_into, registered memory, and
 * muster_fd(). A worker that an operator has evicted, or that broke the protocol, does not return.
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

/* What became of a contribution. Every ticket gets exactly one verdict. */
enum muster_verdict {
	MUSTER_NONE, /* this outcome has no verdict of a push */
	/* In version `counted_in` for good, unless the job fails before it, or is withdrawn. */
	MUSTER_COUNTED,
	MUSTER_LATE,      /* dropped: its step was committed without it */
	MUSTER_STALE,     /* rejected as too old: compute the same samples again */
	MUSTER_CANCELLED, /* abandoned, or its session or job ended before it was counted */
	MUSTER_REFUSED,   /* invalid: a weight out of its range, a tag from the future */
	MUSTER_OUTLIER,   /* dropped: its norm is beyond musterd's --norm-limit, or not finite */
	MUSTER_DAMAGED,   /* dropped: its data are not those that were pushed (--checksum) */
};

/* What muster_check() advises a busy worker. */
enum muster_hint {
	MUSTER_GO_ON,
	/* The servers want what is finished now: muster_push() it, or muster_abandon() if nothing
	 * is, which tells them so. Only nonblocking without an age and anytime say so. */
	MUSTER_HAND_IN,
	MUSTER_GIVE_UP, /* what is being computed cannot count any more: muster_abandon() */
};

/* How many tensors a table may have, and how many bytes a name. */
#define MUSTER_TENSORS_MAX 65536u
#define MUSTER_TENSOR_NAME_MAX 255u

/* A named range of the vector. Optional: sentences about an element then name its tensor. The
 * tensors of a table name every element of the vector once, in order. All workers of a job that
 * give a table give the same one, names included: muster_open() refuses a worker whose table
 * differs from the first one's, and names the tensor that differs. A worker may also give none if
 * all scales are 1. */
struct muster_tensor {
	const char *name; /* UTF-8 without control characters; NULL: it is called by its number */
	uint64_t first, count; /* elements */
	/* Servers own: what the rate, and the weight decay, are multiplied by for this tensor, each
	 * product rounded to f32. Finite and not negative; 1 changes nothing; a tensor with
	 * lr_scale 0 is frozen, and gathers momentum. muster_open() refuses two zeros, which
	 * are most likely forgotten; it refuses other scales than 1 where they have no effect:
	 * where workers own, or with the optimiser add. */
	float lr_scale, decay_scale;
};

/* Structs that begin with `size` may grow in later versions of the library. Each has an initialiser
 * named after it, which sets `size` to the size of the struct when the program was compiled. A
 * program that was compiled with an older, smaller struct goes on working: the library takes the
 * defaults for the fields that the struct lacks. A newer, larger struct is accepted as long as the
 * fields that the library does not know are zero; otherwise the call returns -EINVAL. */

/* Start from MUSTER_OPTIONS. What is left unset (NULL, -1, 0) comes from the environment:
 * MUSTER_SERVER, MUSTER_JOB, MUSTER_RANK, MUSTER_CLIP. Where these are not set either, the library
 * reads the variables of launchers. The rank is the first that is set of: RANK with WORLD_SIZE
 * (torchrun), OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK (mpirun, mpiexec), SLURM_PROCID (srun),
 * RANK alone. The server is MASTER_ADDR (torchrun) with port 17077. An empty variable counts as
 * unset; a rank that is neither a number from 0 on nor -1 is an error that names the variable.
 * Some settings come from the environment only: MUSTER_TRANSPORT (auto, or one or several of shm,
 * verbs and tcp, as in "verbs,tcp"; links go over the first of these that all servers offer and
 * that works), MUSTER_DEVICE, MUSTER_DATA_ADDRESS, MUSTER_GID_INDEX, MUSTER_LOG. */
struct muster_options {
	size_t size;           /* of this struct at the caller, so that it may grow */
	const char *server;    /* HOST:PORT of the leader, or HOST alone for port 17077; else as
				* above, or 127.0.0.1:17077 */
	const char *job;       /* the job's name; default "default" */
	int32_t rank;          /* -1: as above, or else the leader gives a free one */
	uint64_t elems;        /* length of the vector; must be the job's */
	enum muster_type type; /* of gradients */
	enum muster_type result_type; /* of results */
	enum muster_owner owner;
	const struct muster_tensor *tensors;
	uint32_t tensor_count;
	uint32_t join_ms; /* how long muster_open() and muster_start() may take; 0: 60 s */
	uint32_t wait_ms; /* how long a wait may take; 0: patience + lease + --server-patience */
	/* result_type[elems], memory of the program's own that each result is written to; NULL: the
	 * library has the place of results. See "Results in memory of the program's own" at
	 * muster_wait(). */
	void *result_into;
	/* The largest norm of a contribution: a longer one counts as if it were multiplied by
	 * clip / norm. 0: there is none. The norm is that of the mean gradient over the samples
	 * of the contribution, over the whole vector; under downpour that of the sum that is
	 * pushed. The data stay as they are. Not under policies whose contributions are
	 * differences of parameters. */
	double clip;
	/* Workers own: this program gives its state to others and takes theirs, as
	 * muster_state_wanted() and muster_take_state() say. So it may join a job that is running,
	 * and -ESTALE does not end its session. */
	bool comes_back;
	/* Files in PEM: the authority whose certificates are believed, the own certificate, and its
	 * key, which nobody else may read. With them the control connection is TLS 1.3, and both
	 * ends prove who they are. All three or none; each else by MUSTER_TLS_CA, MUSTER_TLS_CERT
	 * and MUSTER_TLS_KEY. */
	const char *tls_ca, *tls_cert, *tls_key;
	/* The version that the start state of muster_start() is of, in the job that it comes from;
	 * 0: of none. */
	uint64_t start_version;
};
/* clang-format off */
#define MUSTER_OPTIONS { .size = sizeof(struct muster_options), .rank = -1 }
/* clang-format on */

/* What a push says about its gradient. Start from MUSTER_CONTRIBUTION and set the weight; the
 * other fields may stay as they are. */
struct muster_contribution {
	size_t size;   /* of this struct at the caller, so that it may grow */
	double weight; /* samples in it, from 2^-53 to 2^53. musterd's --weigh says what they count
	                * for in a version; by default a version is the mean over its samples, so
	                * that each sample counts as much as any other */
	double loss;   /* mean loss of the samples; read only if has_loss is set */
	bool has_loss; /* loss is set */
	bool sum;      /* the data are a sum over the samples, not their mean */
	bool full;     /* the worker's batch ends here: muster_train() pushes it then, and under
	                * nonblocking all other workers are asked to hand in what they have */
	bool keep;     /* the worker goes on reading the result: this push does not ask, and its
	                * verdict comes with the first wait that asks after it */
	bool part;     /* a micro-batch, whose batch goes on in the next contribution: see by_micro
	                * of struct muster_orders; with `full`, and elsewhere, it says nothing */
};
/* clang-format off */
#define MUSTER_CONTRIBUTION { .size = sizeof(struct muster_contribution) }
/* clang-format on */

/* One rank's part in a version. */
struct muster_share {
	uint32_t rank;
	uint32_t count; /* contributions */
	double weight;  /* samples in them */
};

/* What the server orders for this version. */
struct muster_orders {
	/* Workers own: multiply the learning rate of this version by it. It is what --lr-scale and
	 * --lr-schedule of the server say together. */
	double lr_scale;
	/* What a worker does between two exchanges. muster_train() follows these orders itself; a
	 * loop of the program's own has to. 0 everywhere: it contributes a gradient on the result,
	 * after every batch.
	 *   local_steps T  It makes T steps on parameters of its own, which it has from the result,
	 *                  and contributes the difference: own - result (local).
	 *   alpha A        If it is set, the contribution is A (own - newest result), which is
	 *                  subtracted from its own parameters, with which it goes on (easgd,
	 *                  easgdsync).
	 *   push_every P, fetch_every F
	 *                  It steps on parameters of its own with every batch, contributes the sum
	 *                  of its last P gradients, and takes the newest result for its own
	 *                  parameters after every F batches (downpour). */
	double alpha;
	uint32_t local_steps, push_every, fetch_every;
	/* nonblocking:MS,AGE: every micro-batch is to be pushed when it is finished, with `part`
	 * set while its batch goes on, and with `full` at the end of it. A loop that pushes whole
	 * batches need not look at this: each of them makes a version. */
	bool by_micro;
};

/* What became of a push, and the version to go on with. Start from MUSTER_OUTCOME, which sets
 * `size`; the library writes the rest. */
struct muster_outcome {
	size_t size;
	enum muster_verdict verdict;
	uint64_t ticket;     /* the push that the verdict is about; 0: none */
	uint64_t counted_in; /* the version with that push, published or not; 0 unless counted */
	uint64_t version;    /* the version of `result`; the next contribution is computed on it */
	bool fresh; /* another version than in the outcome before; else `result` is the same */
	/* The job has ended, and no ticket is open. `version` is its last one, `newest`; or a lower
	 * one, if workers own and this worker lacks versions that the servers no longer keep. */
	bool finished;
	/* result_type[elems], read only, valid until the next push without keep, pull or wait;
	 * options.result_into, where that was set. NULL: workers own, version 0, and no worker
	 * offered a start state; or finished, with a `version` below `newest`; or not fresh, of
	 * another generation, where the lost server had begun to write over it. */
	const void *result;
	const struct muster_share
		*set;     /* exactly who is in `version`, by rank; valid like result */
	uint32_t set_len; /* 0 for version 0, and for one that muster_take_state() brought */
	double weight;    /* samples in `version` */
	struct muster_orders orders;
	/* The newest version that this worker has heard of: `version`, or a later one, so that it
	 * is behind by the difference. If finished: the job's last. */
	uint64_t newest;
	/* Which generation of servers this comes from, from 1. Another one than in the outcome
	 * before: a server was lost, and the job has gone on. 0: musterd --server-patience is 0. */
	uint64_t generation;
	/* In the first outcome of another generation: so many of this worker's last versions, or
	 * more, are void with all that counted in them. `version` may be lower than before. */
	uint64_t withdrawn;
	uint32_t workers; /* of the job when `version` was made (muster workers N); 0: not known */
};
/* clang-format off */
#define MUSTER_OUTCOME { .size = sizeof(struct muster_outcome) }
/* clang-format on */

/* How many pushes of a session may wait for the muster_wait() that brings their verdicts; one more
 * returns -EAGAIN. Only a worker that pushes with `keep` and never waits gets there. */
#define MUSTER_TICKETS_MAX 256u

/* What became of a push of an earlier session of this rank. That session may not have heard the
 * verdict: no outcome had brought it when the session last pushed. */
struct muster_push_verdict {
	uint64_t ticket;      /* of that session */
	uint32_t incarnation; /* of that session */
	enum muster_verdict verdict;
	uint64_t counted_in; /* 0 unless counted */
};

/* The job as this worker joined it, anew in each generation. */
struct muster_job {
	size_t size;
	const char *name;
	const char *policy; /* in force, as typed; a wait may change it (muster policy) */
	uint32_t rank, incarnation, workers;
	uint32_t slots; /* gradient buffers of this worker */
	uint64_t elems;
	enum muster_type type, result_type;
	enum muster_owner owner;
	uint32_t lease_ms, patience_ms;
	/* The verdicts of pushes of this rank's last session that started, if it had one: in the
	 * order of tickets, at most MUSTER_TICKETS_MAX. A push that no server had read has no
	 * verdict; it does not count. */
	const struct muster_push_verdict *verdicts;
	uint32_t verdict_count;
	/* The version that the job began with, and the samples that had been counted in all
	 * versions up to it: 0 and 0, or those of the checkpoint that the job goes on from. The
	 * result of muster_start() is of this version, or, in a running job, of a later one. */
	uint64_t first_version;
	double first_samples;
};

/** muster_version - the release of the library, such as "0.1.0". Structs may grow from one minor
 * release to the next; bindings that lay them out themselves should compare. */
const char *muster_version(void);

/**
 * muster_open - join a job.
 * @opt: see above; read during the call only, but for the memory at opt->result_into.
 * @out: the handle, written on success only; the caller's, to muster_close().
 * Blocks at most opt->join_ms. The server may be started later than the worker. A server that is
 * busy is asked again until the time is over.
 * Return: 0; -EINVAL options, or they do not match the job's; -EEXIST another live worker has this
 * rank; -ENOSPC all ranks are taken; -EBUSY the time is over, and the last answer was that the
 * server cannot take this worker yet: earlier sessions are still being cleared away, or this rank
 * has joined too often in a short time; -ETIMEDOUT the time is over, and no
 * server has taken the connection, or the server has not answered the last hello (it may have been
 * busy before), or a link was not made: the sentence says which; -EPROTO other protocol version;
 * -ESHUTDOWN the job is over; -ESTALE joining too late (workers own, and options.comes_back is not
 * set); -EACCES this user may not reach the server's shared memory, or the server has sent this
 * process away and said nothing else; the end of this session before it was there, as after
 * muster evict, has the code and the sentence that it has later; -EFAULT not all of
 * opt->result_into is mapped, or it may not be written, or it cannot be
 * pinned; -ENOTSUP forked children would lose that memory, as on Linux before 5.12; -ENOMEM, also
 * if it is beyond what this process may lock or map (RLIMIT_AS), which the sentence names; -EFBIG
 * shared memory would be longer than RLIMIT_FSIZE allows, which is found before the kernel sends
 * SIGXFSZ; -EMFILE no descriptor is left; -EPERM, -ENOSYS a filter of system calls refuses one,
 * which the sentence names; another errno of the connection. The sentence: muster_error(NULL).
 *
 * No descriptor of the library has one of the numbers 0 to 2, also where these are closed.
 */
int muster_open(const struct muster_options *opt, struct muster **out);

/**
 * muster_close - leave the job. What was pushed still counts; the others go on without this
 * worker. Blocks until the server has judged the last push, at most 5 s. Accepts NULL; never fails.
 */
void muster_close(struct muster *m);

/** muster_error - the last failure in words, valid until the handle's next call. With @m NULL it is
 * the failure of this thread's last muster_open(). Never returns NULL; the text is empty if nothing
 * has failed. */
const char *muster_error(const struct muster *m);

/** muster_job - the job as joined; valid until muster_close(). */
const struct muster_job *muster_job(const struct muster *m);

/**
 * muster_start - say that this worker is ready, and get the version that all start from.
 * @own: result_type[elems], a start state to offer, or NULL; read during the call only. It may be
 *       options.result_into. The rank that offers the newest one (options.start_version), and
 *       of several the lowest rank, gives the first version to everybody, itself included. Where
 *       a job goes on from a checkpoint (muster_job, first_version): if servers own they have that
 *       version, and nobody is asked; if workers own, the state that is offered must be of that
 *       version. A worker that joins a running job gets the version the rule lets it start with;
 *       with options.comes_back it gets -ESTALE, and takes the state of another.
 * @out: the first outcome.
 * Blocks until all workers have started, at most join_ms.
 * Return: 0; -EINVAL servers own and nobody offered a state; -ENOTSUP options.clip is set under a
 * policy that it is not for: close the handle; -EDOM an element of @own is infinite
 * or NaN: the sentence names it and its tensor, nothing of the state has been sent, and the call
 * may be repeated with another state (musterd --guard off lets it pass); -ETIMEDOUT workers are
 * missing, or a server is silent, call again; and the shared errors.
 */
int muster_start(struct muster *m, const void *own, struct muster_outcome *out);

/** muster_gradient - the buffer to fill next, type[elems], with undefined contents. It is the same
 * buffer until it is pushed or abandoned. NULL: all slots are in flight, or MUSTER_TICKETS_MAX
 * pushes wait for their outcomes (call muster_wait() first); or muster_start() has not been called;
 * or the job or session has ended. Never blocks. The first call after an outcome fixes the version
 * that the contribution is computed on. */
void *muster_gradient(struct muster *m);

/**
 * muster_push_range - a finished range of the contribution, to be sent while the rest is computed.
 * @first, @count: elements, within the vector; each element may be given once per contribution,
 *       in at most 65536 separate pieces.
 * @src: type[count]; NULL: it lies in muster_gradient()'s buffer. Memory that is registered is
 *       lent, as muster_register() says; any other is copied before return, unless it is the place
 *       of the range in that buffer.
 * Never waits for the server; over RDMA it may wait a moment, while as many ranges are on their way
 * as the link holds. Return: 0; -EINVAL a part of the range is outside the vector, or was given
 * before, or a part of @src alone is in registered memory; -EAGAIN no free slot; -EDOM an element
 * is infinite or NaN: the sentence names it and its tensor, and the contribution has been given up
 * as by muster_abandon(), together with the ranges sent before; shared errors.
 * musterd's --guard says which data are looked at: by default all; under "worker" those of @src,
 * wherever it lies, and not those of NULL.
 */
int muster_push_range(struct muster *m, uint64_t first, uint64_t count, const void *src);

/* A piece of a contribution, as the arguments of muster_push_range() give it. */
struct muster_piece {
	uint64_t first, count; /* elements */
	const void *src;       /* type[count], or NULL */
};

/**
 * muster_push_ranges - many finished ranges in one call, where calls are dear.
 * @pieces: @count of them; read during the call only.
 * The same as muster_push_range() for each piece in order, up to the first that is refused: what is
 * before it has been handed over. Return: as muster_push_range(); -EINVAL also if @pieces is NULL
 * and @count is not 0.
 */
int muster_push_ranges(struct muster *m, const struct muster_piece *pieces, uint32_t count);

/**
 * muster_push - hand the contribution in: the rest (what no range covered, taken from
 * muster_gradient()'s buffer) and the header. After it the buffer is the server's, and unless
 * c->keep the result of the last outcome may no longer be read.
 * @ticket: may be NULL; gets the number of the contribution, which rises from push to push of a
 *       session: by one, and by one more for each pass since the last push (muster_abandon()). 0
 *       once the job is over.
 * Like muster_push_range() it never waits for the server. Return: 0; -EINVAL the weight is no
 * number from 2^-53 to 2^53; -EAGAIN; -EDOM the loss is set and is infinite or NaN, or an element
 * of the rest is (--guard full, the default): the contribution has been given up, there is no
 * ticket, and the next muster_wait() says CANCELLED with ticket 0; shared errors.
 */
int muster_push(struct muster *m, const struct muster_contribution *c, uint64_t *ticket);

/** muster_abandon - give up the unfinished contribution, together with the ranges already sent. The
 * next muster_wait() says CANCELLED with ticket 0. If muster_check() says HAND_IN, the servers are
 * told that this worker has nothing for the step (it passes, which takes a number among the
 * tickets); then the next muster_wait() says CANCELLED only if ranges had been sent, and else has
 * no verdict. It never asks, so the result of the last outcome may still be read. Like
 * muster_push_range() it never waits for the server. Return: 0; shared errors. */
int muster_abandon(struct muster *m);

/** muster_check - a hint for a busy worker: a read of local memory, cheap enough for every
 * micro-batch. May be called from any thread. Says GIVE_UP also after the job or the session. */
enum muster_hint muster_check(const struct muster *m);

/** muster_pull - ask for the newest version without contributing; muster_wait() brings it. The
 * result of the last outcome may no longer be read. Like muster_push_range() it never waits for the
 * server. Return: 0; shared errors. */
int muster_pull(struct muster *m);

/**
 * muster_wait - wait until the rule lets this worker go on.
 * It asks the server, unless a push without keep or a pull has asked already. It returns when the
 * answer, the verdicts of all pushes up to that ask, and a free gradient buffer are there, and the
 * memory that was lent to those pushes is back. An outcome brings one verdict at most, oldest
 * ticket first, and one version at most.
 * Where workers own, the version is the one after the version that this worker has. Where servers
 * own, it is the newest there is when the rule lets this worker go on. Under bsp, backup, ksync,
 * kasync, async, bounded and ssp it is counted_in or newer for each counted push up to the ask;
 * kbatchsync, kbatchasync, softsync and nonblocking with an age let a worker go on before the
 * version that its push is part of has its other contributions. There, where workers own, an
 * outcome may bring no version, since there is none newer (fresh is not set).
 * Results in memory of the program's own: if options.result_into was set, each result is written
 * there, and is read there alone. Over RDMA the servers write it there, and the memory is pinned,
 * as by muster_register(). Over shared memory, and where workers own, --server-patience is given
 * and comes_back is not set, it is copied once before this call returns 0 or 1. If the outcome is
 * not fresh, the memory has what it had; where another generation has begun, that is undefined.
 * The memory is the library's, with undefined contents, from an ask until its outcome: from a push
 * without keep, a pull, muster_start() or this call until this call or muster_start() returns 0 or
 * 1, however often it returns -ETIMEDOUT or -EINTR before. From then until the next ask it is the
 * program's, which may also write to it. Of a job that has finished it is the program's for good.
 * Once a call has returned an error that ends the session or the job (-ENOTCONN, -EHOSTDOWN,
 * -ESTALE, -EPROTO), or muster_close() has returned, nothing is written there any more; if an ask
 * was out, its contents are undefined. The program must not free it before muster_close() has
 * returned. It need not begin or end on a page; each handle needs memory of its own. Children of
 * fork() have it as they have any other.
 * Blocks at most wait_ms.
 * Return: 0; 1 more outcomes are ready, call again at once (but where workers own, and this worker
 * has pushed, pulled or passed between an ask and its outcome, the rule may have the next outcome
 * wait for other workers); -ETIMEDOUT and -EINTR call again, -ETIMEDOUT also after a lease in which
 * a server was silent; shared errors.
 */
int muster_wait(struct muster *m, struct muster_outcome *out);

/**
 * muster_try_wait - muster_wait() without the wait.
 * It asks the server as muster_wait() does, so it is a wait that has begun: until it returns 0 or 1
 * the same holds for options.result_into as for a wait that returned -ETIMEDOUT. Over RDMA it may
 * wait a moment, as muster_push_range() does; after a lost server it dials the next, 10 s at most.
 * Return: 0, 1 and errors as muster_wait(), but never -ETIMEDOUT; -EAGAIN nothing is ready yet.
 */
int muster_try_wait(struct muster *m, struct muster_outcome *out);

/** muster_wake - end the wait of another thread: the muster_wait() or muster_start() that is under
 * way returns -EINTR, or else the next one that does not find its outcome ready, muster_try_wait()
 * too. Several calls before such a return are as one. May be called from any thread at any moment
 * before muster_close(), and from a signal handler. Never blocks. */
void muster_wake(struct muster *m);

/**
 * muster_fd - a descriptor for programs that wait for several things in a poll() of their own.
 * It polls readable when, since the last muster_try_wait() that returned -EAGAIN, something has
 * happened after which a try may succeed, or muster_wake() has been called. A try may also find
 * nothing then. Try before the first poll(), and go on trying until -EAGAIN. Try at least once in a
 * lease as well: no descriptor tells that a server has fallen silent. Use it with poll(), level
 * triggered, and for nothing else; it is the library's, and muster_close() closes it. From the
 * first call on each result costs the server a system call.
 * Never blocks. Return: the descriptor, the same each time; -ENOTSUP the network has none;
 * -ENOTCONN the session has ended; -EMFILE, -ENFILE or -ENOMEM there is none left; -ECHILD.
 */
int muster_fd(struct muster *m);

/** muster_finish - end the job for everybody. @why goes to the server's log; it may be NULL. Does
 * not wait: muster_wait() then brings the last outcome.
 * Return: 0; -EACCES the server leaves this to an operator (musterd --finish operator): the job
 * goes on, and so may the worker; shared errors.
 */
int muster_finish(struct muster *m, const char *why);

/**
 * muster_goal - have the job end with a @version, from 1 on, for everybody.
 * @ends_with: gets the version that the job ends with as things are: @version, or a lower one that
 *       musterd --commits or another worker has given. May be NULL; written on success only.
 * The least that is given counts, and nobody is given a version after it. So all workers best give
 * the same, before their first push; the server's log names those that differ. A version that has
 * been made already ends the job now. The server knows of it before all that is pushed after this
 * call, which changes nothing else. Blocks at most wait_ms, like muster_wait(); muster_wake() ends
 * it. Return: 0, also if the job has ended: then @ends_with gets its last version; -EINVAL @version
 * is 0, or muster_start() has not returned 0 yet; -EACCES the server leaves this to an operator
 * (musterd --finish operator), who gives --commits, and the job goes on; -ETIMEDOUT, -EINTR and
 * -ENOMEM call again; shared errors.
 */
int muster_goal(struct muster *m, uint64_t version, uint64_t *ends_with);

/* How many bytes the name of a metric may have. */
#define MUSTER_METRIC_NAME_MAX 63u

/**
 * muster_report - tell the servers a value that this worker has found out about the version it
 * has, such as the loss or the accuracy on samples that nobody trains on.
 * @name: of the metric, the same at each report; read during the call only. 1 to
 *       MUSTER_METRIC_NAME_MAX bytes of UTF-8 without control characters.
 * @value: finite.
 * The leader keeps of each name the value of the newest version, with the rank that told it, and
 * of several of that version the last that came. It keeps the first 16 names of a job, logs that
 * there are more, and drops what they say. `muster status`, and `muster run` at its end, show the
 * values. They change nothing in the job, unless its policy follows the value of this name
 * (adasync:POLICY,loss=NAME), which then hears of four of them in a millisecond. They are for a few
 * values a version: the leader takes 128 messages of a worker in a millisecond, and a worker that
 * has sent more in each of 1024 of them in a row has broken the protocol: its session ends.
 * The version is that of the last outcome. After the last outcome of the job a worker may still
 * report, until muster_close(); the leader waits for its workers as long as musterd --patience.
 * Never blocks. Return: 0 it is on its way; -EINVAL the name cannot be, or muster_start() has not
 * been called; -EDOM the value is infinite or NaN: nothing has been sent; -EAGAIN the control
 * connection is busy, try again; -ENOMEM; -ENOTCONN also if the job has ended well and the leader
 * does not wait any more; shared errors.
 */
int muster_report(struct muster *m, const char *name, double value);

/**
 * muster_average - the moving average of the parameters, for evaluation (musterd --average).
 * @average: gets f32[elems], whatever the type of results is. The memory is the library's: a call
 *       that asks allocates it, after it has freed that of the call before. It may be read until
 *       the next call of muster_average(), whatever that returns, or muster_close().
 * @version: gets the version that the average is of: all of it is as it was right after the commit
 *       of this version, on every server. It was the newest when the servers came to serve this
 *       worker, so it is not older than that of the last outcome before the first of the calls that
 *       brought it. Before the first commit it is the start state.
 * Both are written on success only.
 * The servers send it over the control connection while the steps go on: no commit waits for it.
 * They serve one worker after the other. What comes between two calls is taken in, too. A worker
 * that does not take 4 MiB of it, or the rest, while the leader waits for it as long as musterd
 * --patience, loses its session. The call changes nothing about what this worker has pushed or
 * asked for; but a step waits for this worker as it does for one that computes, for up to
 * --patience. May be called after the last outcome of the job too, until muster_close(); the leader
 * waits for its workers as long as --patience.
 * Called by the thread that uses the handle. Blocks at most wait_ms, like muster_wait();
 * muster_wake() ends it.
 * Return: 0; -ENOTSUP the servers keep no average, and where workers own they never do; -EINVAL
 * muster_start() has not returned 0 yet, or an argument is NULL; -ETIMEDOUT not all of it has come
 * within wait_ms, perhaps because others are served first, or a server is silent, and -EINTR a
 * signal or muster_wake(): call again, what has come of it stays, and the next call goes on;
 * -ENOMEM no memory for elems x 4 bytes, or for a message: call again; -ENOTCONN also if the job
 * has ended well and the leader has closed the connection before all of it had come; shared errors.
 */
int muster_average(struct muster *m, const float **average, uint64_t *version);

/**
 * muster_register - let gradients be sent from memory of the program without a copy.
 * @base, @bytes: the memory. It stays the program's, which must not free it before
 *       muster_unregister() or muster_close() has returned. It need not begin or end on a page.
 * Over RDMA the memory is pinned. It counts against the limit of locked memory, once for each
 * handle that registers it. A @src of muster_push_range() that lies in it is *lent*: the device
 * reads it where it lies until it has been sent to every server, and the program must not write to
 * it before.
 * When muster_wait() returns 0 or 1, all memory is back that was lent to the pushes up to its ask,
 * and with the last outcome of the job, to all pushes. muster_released() tells it of any push, and
 * of what was given up. What a lost link was still sending comes back when muster_close() returns;
 * if options.result_into was set, so does what any link of a session that has failed was sending.
 * Over shared memory nothing is pinned or lent: a @src is copied once before muster_push_range()
 * returns, registered or not. There only what is computed in muster_gradient()'s buffer is not.
 * May be called at any time between muster_open() and muster_close(), by the thread that uses the
 * handle. Pinning may take seconds, and sends no message; heartbeats go on meanwhile. Children of
 * fork() have the memory as they have any other.
 * Return: 0; -EINVAL the memory has 0 bytes, reaches beyond the end of memory, or is a buffer or a
 * result of this handle, options.result_into included; -EEXIST a part of it is registered with this
 * handle already; -EFAULT not all of it is mapped, or this process may not read it, whatever the
 * network; or it cannot be pinned: Linux before 6.2 refuses a shared mapping that may not be
 * written, while a private one may be read only; -ENOMEM it is beyond what this process may lock,
 * which the sentence names, or beyond what the device can hold; -ENOTSUP forked children would lose
 * it, as on Linux before 5.12; -ECHILD.
 */
int muster_register(struct muster *m, void *base, size_t bytes);

/**
 * muster_unregister - end what muster_register() began for the memory at @base.
 * Never waits for the server; unpinning takes less time than pinning. muster_close() unregisters
 * what is still registered. Return: 0; -EBUSY the memory is lent, and stays registered; -EINVAL no
 * registered memory of this handle begins at @base; -ECHILD.
 */
int muster_unregister(struct muster *m, const void *base);

/**
 * muster_released - is the memory back that was lent to a push?
 * @ticket: of the push; 0: all that was lent, also for what was given up or is not pushed yet.
 * Never waits for the server. Return: 1 it is back, or nothing was lent; 0 not yet; -EINVAL no push
 * has this ticket; -ENOTCONN a link was lost that was still sending, and only muster_close() gives
 * the memory back; shared errors.
 */
int muster_released(struct muster *m, uint64_t ticket);

/* Memory that a handle gives out: room for a gradient, or the place of a result. If
 * options.result_into was set, that is the only place of results. */
struct muster_region {
	const void *base;
	size_t bytes;
	bool writable; /* room for a gradient */
};

/**
 * muster_regions - list all buffers of muster_gradient() and all places of results, for programs
 * that make them known to a device.
 * @out: gets the first @max of them; may be NULL where @max is 0. Neither their number nor their
 *       places change before muster_close(), which unmaps them.
 * Never blocks. Return: how many there are; -EINVAL @out is NULL; -ECHILD.
 */
int muster_regions(struct muster *m, struct muster_region *out, uint32_t max);

/* The loop's hooks; start from MUSTER_HOOKS. Each returns 0, or a negative errno that ends
 * muster_train() with it. */
struct muster_hooks {
	size_t size; /* of this struct at the caller, so that it may grow */
	void *ctx;   /* passed to each hook */
	/* One micro-batch. While c->weight is 0 the contents of @grad are undefined: the first
	 * micro-batch stores its gradient, later ones add theirs. Add the number of samples to
	 * c->weight; set c->full at the end of a batch. If the loss is known, keep c->loss its mean
	 * over the samples, and set c->has_loss. */
	int (*compute)(void *ctx, void *grad, struct muster_contribution *c);
	/* A step of the worker's own optimiser with the mean gradient of a batch, f32[elems], on
	 * muster_parameters(), which it may write to. Only local, easgd, easgdsync and downpour
	 * have such steps; NULL: muster_train() refuses these policies. */
	int (*local)(void *ctx, void *grad);
	/* Called once for each fresh result, and where workers own for every version in order; not
	 * for the start state, which muster_start() has given already. A positive return finishes
	 * the job for everybody. */
	int (*apply)(void *ctx, const struct muster_outcome *out);
	/* NULL, or called for each verdict, before apply(): STALE and LATE, the samples of that
	 * contribution have not counted, and a program that wants them to computes them again;
	 * CANCELLED with ticket 0, the batch at hand was given up. */
	int (*judged)(void *ctx, const struct muster_outcome *out);
	/* NULL, or called before apply() with an outcome whose `withdrawn` is not 0: of the
	 * versions up to V that the program had, those above V - out->withdrawn are void. If it
	 * counts them, or verdicts in them, it takes that back. out->version may be a later one. */
	int (*withdrawn)(void *ctx, const struct muster_outcome *out);
};
/* clang-format off */
#define MUSTER_HOOKS { .size = sizeof(struct muster_hooks) }
/* clang-format on */

/** muster_parameters - the parameters to compute the next gradient on: the last result; under
 * local, easgd and downpour the worker's own, which only hooks->local may write to. The same rules
 * as for outcome.result hold. With --owner workers it is the last mean gradient, and of no use.
 * NULL: before muster_start(), or where the result is NULL, or in a child. Never blocks. */
void *muster_parameters(struct muster *m);

/**
 * muster_train - the loop for every policy: compute micro-batches until a batch is full, looking
 * at muster_check() between them; push; wait; apply; until the job is finished. Call it after
 * muster_start(). A compute() that does not set full must add to the weight, and a batch must
 * become full within the job's patience + lease.
 * Under nonblocking a batch may be pushed before it is full, because another worker's was.
 * compute() then goes on with the rest of it in the next contribution, whose weight begins at 0
 * again. Under nonblocking:MS,AGE each micro-batch is pushed when it is finished, so that compute()
 * begins each of them with the weight 0, and sets full in the last one of its batch. Under anytime
 * contributions grow until the servers ask for them, whatever batches end meanwhile. Under local,
 * easgd and downpour the gradient that compute() gets is not the buffer that is pushed.
 * Call it again after any error but those that end the session: it goes on where it was, but begins
 * the batch anew whose hook has failed.
 * Return: 0 finished; what a hook returned; -EDOM a batch was given up because it is not finite,
 * call again to go on with the next batch, under local, easgd and downpour with the newest result;
 * -EINVAL compute() broke these rules, or a hook is missing, or the size of the struct is wrong;
 * -ENOTSUP the policy needs hooks.local, which is NULL, or results and gradients of type f32;
 * -ENOMEM for parameters of the worker's own; -ETIMEDOUT a wait took more than wait_ms, or a server
 * is silent: call again; shared errors.
 */
int muster_train(struct muster *m, const struct muster_hooks *hooks);

#ifdef __cplusplus
}
#endif

#include "muster/state.h" /* muster_agree(), muster_give_state(), muster_take_state() */

#endif
